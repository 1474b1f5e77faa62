//! "Registry Credentials": accounts of clusters at image registries.

use super::panel::{Dashboard, Kind, panel};

pub(super) const DASHBOARD: Dashboard = Dashboard {
    name: "pull-secret-credentials",
    title: "Registry Credentials",
    panels: &[
        panel(
            Kind::Bars,
            "Waiting for a person",
            "short",
            &[(
                "max by (registry, reason) (hyperfleet_credentials_standing{reason=~\"AwaitingApproval|Denied|Displaced|LoginRefused|\
                 NeverPulled|NeverReported|NewerPublished|NoUsageLog|NodesNeverReported|NotWritable|PullNotPermitted|\
                 StillAccepted|StillNamed\"})",
                "{{registry}}: {{reason}}",
            )],
        )
        .with_note("What to do: docs/guides/credentials.md, \"Inspect\"."),
        panel(
            Kind::Lines,
            "Credentials, by state",
            "short",
            &[("max by (registry, state) (hyperfleet_credentials)", "{{registry}}: {{state}}")],
        ),
        panel(
            Kind::Bars,
            "Credentials, by reason",
            "short",
            &[("max by (registry, reason) (hyperfleet_credentials_standing)", "{{registry}}: {{reason}}")],
        ),
        panel(
            Kind::Lines,
            "Pool",
            "short",
            &[
                ("max by (registry) (hyperfleet_credentials_pool_ready)", "{{registry}}: ready"),
                ("max by (registry) (hyperfleet_credentials_pool_target)", "{{registry}}: target"),
            ],
        ),
        panel(
            Kind::Lines,
            "Oldest publication that is not adopted",
            "s",
            &[("max by (registry) (hyperfleet_credentials_oldest_unadopted_seconds)", "{{registry}}")],
        ),
        panel(
            Kind::Number,
            "Since the last complete list of clusters",
            "s",
            &[("time() - max by (registry) (hyperfleet_credentials_last_resync_timestamp_seconds)", "{{registry}}")],
        ),
        panel(
            Kind::Lines,
            "Clusters of a rotation",
            "short",
            &[(
                "max by (registry, progress) (hyperfleet_credentials_rotation_clusters)",
                "{{registry}}: {{progress}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Rotations",
            "short",
            &[("max by (registry, phase) (hyperfleet_credentials_rotations)", "{{registry}}: {{phase}}")],
        ),
        panel(
            Kind::Lines,
            "Entries of pull secrets that expire",
            "short",
            &[("max by (maker, end) (hyperfleet_credentials_entries_expiring)", "made by {{maker}}: {{end}}")],
        ),
        panel(
            Kind::Lines,
            "Age of the oldest entry",
            "s",
            &[("max by (maker) (hyperfleet_credentials_oldest_entry_seconds)", "made by {{maker}}")],
        ),
        panel(
            Kind::Lines,
            "Registry calls",
            "ops",
            &[(
                "sum by (registry, operation) (rate(hyperfleet_credentials_registry_calls_total[5m]))",
                "{{registry}}: {{operation}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Registry calls that did not succeed",
            "ops",
            &[(
                "sum by (registry, operation, outcome) \
                 (rate(hyperfleet_credentials_registry_calls_total{outcome!~\"success|pulls\"}[5m]))",
                "{{registry}}: {{operation}} {{outcome}}",
            )],
        )
        .with_note("A probe that is `refused` after a deletion is the proof of it."),
        panel(
            Kind::Lines,
            "Registries that fail",
            "short",
            &[("max by (registry) (hyperfleet_credentials_registry_failing)", "{{registry}}")],
        ),
        panel(
            Kind::Lines,
            "Registry calls that wait, by lane",
            "short",
            &[(
                "max by (registry, lane) (hyperfleet_credentials_registry_waiting_calls)",
                "{{registry}}: {{lane}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Database statements (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le, operation, table) \
                 (rate(hyperfleet_credentials_db_query_duration_seconds_bucket[5m])))",
                "{{operation}} {{table}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Errors",
            "ops",
            &[
                ("sum(rate(hyperfleet_credentials_db_errors_total[5m]))", "database"),
                ("sum(rate(hyperfleet_credentials_trace_spans_dropped_total[5m]))", "spans of traces dropped"),
            ],
        ),
        panel(
            Kind::Number,
            "Passwords on old keys",
            "short",
            &[("max(hyperfleet_credentials_passwords_on_old_keys)", "passwords")],
        ),
    ],
};
