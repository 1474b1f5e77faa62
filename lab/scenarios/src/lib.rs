//! Scenarios across crates: the tests in `tests/` start the programs and walk clusters through their life, on embedded parts
//! and on real ones.
