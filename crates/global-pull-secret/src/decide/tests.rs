//! Every row of the behaviour that is written down, on a world in which writes happen at once.

mod cleaning;
mod confirming;
mod keys;
mod probing;
mod repairing;
mod rows;
mod world;
