//! Migrations of the schema, oldest first. Migrations are only ever added.

#[cfg(test)]
mod tests;

use database::{Migration, Schema};

/// The schema of the API's database.
pub const SCHEMA: Schema = Schema { migrations: MIGRATIONS, table: "schema_migrations", lock: 4_837_020_914_372 };

const MIGRATIONS: &[Migration] = &[
    Migration {
        id: "0001-resources",
        sqlite: include_str!("schema/0001-resources.sqlite.sql"),
        postgres: include_str!("schema/0001-resources.postgres.sql"),
    },
    Migration {
        id: "0002-keys",
        sqlite: include_str!("schema/0002-keys.sqlite.sql"),
        postgres: include_str!("schema/0002-keys.postgres.sql"),
    },
    Migration {
        id: "0003-epoch",
        sqlite: include_str!("schema/0003-epoch.sqlite.sql"),
        postgres: include_str!("schema/0003-epoch.postgres.sql"),
    },
    Migration {
        id: "0004-tombstones",
        sqlite: include_str!("schema/0004-tombstones.sqlite.sql"),
        postgres: include_str!("schema/0004-tombstones.postgres.sql"),
    },
    Migration {
        id: "0005-tenancy",
        sqlite: include_str!("schema/0005-tenancy.sqlite.sql"),
        postgres: include_str!("schema/0005-tenancy.postgres.sql"),
    },
    Migration {
        id: "0006-counts",
        sqlite: include_str!("schema/0006-counts.sqlite.sql"),
        postgres: include_str!("schema/0006-counts.postgres.sql"),
    },
    Migration {
        id: "0007-reasons",
        sqlite: include_str!("schema/0007-reasons.sqlite.sql"),
        postgres: include_str!("schema/0007-reasons.postgres.sql"),
    },
    Migration {
        id: "0008-ranges",
        sqlite: include_str!("schema/0008-ranges.sqlite.sql"),
        postgres: include_str!("schema/0008-ranges.postgres.sql"),
    },
    Migration {
        id: "0009-compression",
        sqlite: include_str!("schema/0009-compression.sqlite.sql"),
        postgres: include_str!("schema/0009-compression.postgres.sql"),
    },
    Migration {
        id: "0010-fewer-indexes",
        sqlite: include_str!("schema/0010-fewer-indexes.sqlite.sql"),
        postgres: include_str!("schema/0010-fewer-indexes.postgres.sql"),
    },
    Migration {
        id: "0011-tenants",
        sqlite: include_str!("schema/0011-tenants.sqlite.sql"),
        postgres: include_str!("schema/0011-tenants.postgres.sql"),
    },
    Migration {
        id: "0012-no-checks-of-rows",
        sqlite: include_str!("schema/0012-no-checks-of-rows.sqlite.sql"),
        postgres: include_str!("schema/0012-no-checks-of-rows.postgres.sql"),
    },
];
