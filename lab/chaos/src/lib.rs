//! Chaos: the test in `tests/` runs every part as a process, kills and disconnects them at random, and checks that every
//! cluster ends in the right state.
