//! Migrations of the schema, oldest first. Migrations are only ever added.

use database::{Component, Migration, Schema};

/// The ledger as a user of its database.
pub const COMPONENT: Component = Component {
    application: "pull-secret-credentials",
    tables: &[
        "credentials",
        "credential_events",
        "credential_event_links",
        "registry_budgets",
        "rotations",
        "rotation_members",
        "pull_secrets",
        "pull_secret_entries",
        "pull_secret_passes",
        "ams_credentials",
        "ams_imports",
        "ams_clusters",
        "ams_entries",
        "ams_uses",
        "write_probe",
    ],
};

/// The schema of the ledger.
pub const SCHEMA: Schema = Schema {
    migrations: &[Migration {
        id: "0001-credentials",
        sqlite: include_str!("schema/0001-credentials.sqlite.sql"),
        postgres: include_str!("schema/0001-credentials.postgres.sql"),
    }],
    table: "credentials_migrations",
    lock: 7_310_455_120_886,
};
