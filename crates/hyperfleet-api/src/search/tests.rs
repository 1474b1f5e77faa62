//! The language against tables of examples, against itself, and against both databases.
