//! The HyperFleet API: resources, statuses, aggregation, search, change stream; SQLite or PostgreSQL.

pub mod decide;
pub mod entity;
pub mod excerpt;
pub mod http;
pub mod mapping;
pub mod metrics;
pub mod openapi;
pub mod page;
pub mod problem;
pub mod render;
pub mod resource;
pub mod sealed;
pub mod search;
pub mod server;
pub mod service;
pub mod settings;
pub mod spec_schema;
pub mod store;
