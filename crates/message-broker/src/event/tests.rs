//! Events in every form, against bytes that never change.
