//! Conditions that the configuration computes from the reports, by CEL expressions.
