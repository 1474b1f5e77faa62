//! Where resources rest: SQLite or PostgreSQL behind one set of statements.

pub mod sql;
