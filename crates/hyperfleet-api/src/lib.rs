//! The HyperFleet API: resources, statuses, aggregation, search, change stream; SQLite or PostgreSQL.

pub mod decide;
pub mod entity;
pub mod resource;
pub mod search;
pub mod store;
