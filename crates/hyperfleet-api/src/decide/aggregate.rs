//! What the reports of all required adapters say together: `Reconciled` and its companions.
