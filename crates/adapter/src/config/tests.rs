//! Configurations that are taken, and ones that are not.
