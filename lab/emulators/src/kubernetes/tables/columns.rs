//! The columns of the built-in kinds.

use serde_json::{Value, json};

/// A column; those with a priority above 0 show with `-o wide` only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column(&'static str, &'static str, u8);

const fn text(name: &'static str) -> Column {
    Column(name, "string", 0)
}

const fn wide(name: &'static str) -> Column {
    Column(name, "string", 1)
}

const fn date(name: &'static str) -> Column {
    Column(name, "date", 0)
}

const fn number(name: &'static str) -> Column {
    Column(name, "integer", 0)
}

impl Column {
    pub(crate) const NAME: Self = text("Name");
    pub(crate) const AGE: Self = text("Age");

    pub(crate) fn json(&self) -> Value {
        let Self(name, kind, priority) = self;
        let format = if *name == "Name" && *priority == 0 { "name" } else { "" };
        json!({"name": name, "type": kind, "format": format, "description": "", "priority": priority})
    }
}

/// The columns of a storage's objects.
pub(crate) fn of(storage: &str) -> &'static [Column] {
    ROWS.iter().find(|row| row.0 == storage).map_or(&PLAIN, |row| row.1)
}

const PLAIN: [Column; 2] = [Column::NAME, Column::AGE];

const CREATED: [Column; 2] = [Column::NAME, date("Created At")];

const BINDING: [Column; 6] =
    [Column::NAME, text("Role"), Column::AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")];

const ROWS: [(&str, &[Column]); 15] = [
    ("namespaces", &[Column::NAME, text("Status"), Column::AGE]),
    ("secrets", &[Column::NAME, text("Type"), text("Data"), Column::AGE]),
    ("configmaps", &[Column::NAME, text("Data"), Column::AGE]),
    ("serviceaccounts", &[Column::NAME, Column::AGE]),
    (
        "pods",
        &[
            Column::NAME,
            text("Ready"),
            text("Status"),
            text("Restarts"),
            Column::AGE,
            wide("IP"),
            wide("Node"),
            wide("Nominated Node"),
            wide("Readiness Gates"),
        ],
    ),
    (
        "nodes",
        &[
            Column::NAME,
            text("Status"),
            text("Roles"),
            Column::AGE,
            text("Version"),
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ],
    ),
    (
        "events",
        &[
            text("Last Seen"),
            text("Type"),
            text("Reason"),
            text("Object"),
            wide("Subobject"),
            wide("Source"),
            text("Message"),
            wide("First Seen"),
            wide("Count"),
            wide("Name"),
        ],
    ),
    (
        "jobs.batch",
        &[
            Column::NAME,
            text("Status"),
            text("Completions"),
            text("Duration"),
            Column::AGE,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ],
    ),
    (
        "daemonsets.apps",
        &[
            Column::NAME,
            number("Desired"),
            number("Current"),
            number("Ready"),
            number("Up-to-date"),
            number("Available"),
            text("Node Selector"),
            Column::AGE,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ],
    ),
    ("leases.coordination.k8s.io", &[Column::NAME, text("Holder"), Column::AGE]),
    ("roles.rbac.authorization.k8s.io", &CREATED),
    ("clusterroles.rbac.authorization.k8s.io", &CREATED),
    ("rolebindings.rbac.authorization.k8s.io", &BINDING),
    ("clusterrolebindings.rbac.authorization.k8s.io", &BINDING),
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        &[
            Column::NAME,
            text("Scope"),
            text("Versions"),
            date("Created At"),
            wide("Group"),
            wide("Kind"),
            wide("ShortNames"),
            Column("Established", "boolean", 1),
        ],
    ),
];
