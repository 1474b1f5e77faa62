//! The parameters of paths, queries and headers.

use serde_json::{Value, json};

use super::component;
use crate::search;

/// An id that a client may choose, which every id is: a DNS label.
pub(super) const ID: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";

/// What lists can be ordered by.
pub(super) const COLUMNS: &[&str] = &[
    "id",
    "kind",
    "name",
    "href",
    "generation",
    "created_time",
    "created_by",
    "updated_time",
    "updated_by",
    "deleted_time",
    "deleted_by",
    "owner_id",
    "owner_href",
    "owner_kind",
];

/// Members of a resource that can be asked for as a whole only.
const WHOLE: &[&str] = &[
    "id",
    "kind",
    "name",
    "href",
    "generation",
    "created_time",
    "created_by",
    "updated_time",
    "updated_by",
    "deleted_time",
    "deleted_by",
];

const SEARCH: &str = "Which resources, in the search language: comparisons (`=`, `!=`, `<`, `<=`, `>`, `>=`, `like`, `ilike`, \
`in [...]`, `between ... and ...`, `is null`) joined by `and`, `or`, `not` and parentheses.

It knows the columns that lists can be ordered by; `labels.KEY`; `spec.PATH`; `status.conditions.TYPE` with `=` and one of \
'True', 'False', 'Unknown'; and of a condition `.last_updated_time`, `.last_transition_time` and `.observed_generation`. Of labels and conditions there \
is no `not`.";

const WATCH: &str = "Answers with a stream of changes instead of a list: a JSON document a line, for as long as the client \
listens. Without `resource_version` the present state comes first, as ADDED, and then a BOOKMARK. Of the other parameters \
only `search` counts; what begins to match is ADDED, what ceases to match is DELETED.";

/// The parameters that several operations have.
pub(super) fn components() -> Value {
    let order = alternatives(COLUMNS);
    let key = format!(" *({order})( +(asc|desc))? *");
    json!({
        "Page": query("page", "Which page, counted from 1.", &bounded(1, 100_000, 1)),
        "Size": query("size", "How many on a page. Formerly `pageSize`, which is still taken.", &bounded(1, 100, 20)),
        "Search": with_examples(
            query("search", SEARCH, &json!({ "type": "string", "maxLength": search::LONGEST })),
            &[
                ("living", "deleted_time is null"),
                ("label", "labels.shard = '1' and labels.hyperfleet.io/cluster-id != 'cls-123'"),
                ("unreconciled", "status.conditions.Reconciled = 'False' and generation > 1"),
                ("spec", "spec.provider = 'gcp' and name like 'prod-%'"),
            ],
        ),
        "Order": list(
            "order",
            &format!(
                "By what, the first first; each with `asc` (which is also meant by nothing) or `desc`. Repeated or with \
                 commas. Formerly `orderBy`, which is still taken. One of: {}.",
                COLUMNS.join(", ")
            ),
            &json!({ "type": "string", "pattern": format!("^{key}(,{key})*$") }),
            &json!(["created_time desc"]),
        ),
        "Fields": query(
            "fields",
            "Which members, by name or as a path such as `spec.gcp`; all if none is named. Repeated or with commas. What \
             is not asked for is left out, even if it is there otherwise; `id` never is.",
            &json!({ "type": "array", "items": { "type": "string", "pattern": fields() } }),
        ),
        "RefType": query(
            "ref_type",
            "Only resources with a reference of this type to `ref_target_id`, which must be given as well.",
            &json!({ "type": "string" }),
        ),
        "RefTargetId": query("ref_target_id", "See `ref_type`.", &json!({ "type": "string" })),
        "Watch": query("watch", WATCH, &json!({ "type": "boolean", "default": false })),
        "ResourceVersion": query(
            "resource_version",
            "With `watch`: go on after this version, as an earlier stream told it. It means nothing else.",
            &json!({ "type": "string" }),
        ),
        "Include": query(
            "include",
            "Shows the pull secret in `spec.pullSecret.data` in clear, to those in `pull_secret.readers`.",
            &json!({ "type": "array", "items": { "type": "string", "enum": ["pullSecret"] } }),
        ),
        "IfMatch": {
            "name": "If-Match",
            "in": "header",
            "description": "The generation that the caller has seen, in quotes. If the resource has another one by now, \
                            nothing is changed and the answer is 412. `*` is any.",
            "schema": { "type": "string", "pattern": "^(\\*|\"[1-9][0-9]{0,17}\")$" },
            "example": "\"3\"",
        },
    })
}

/// A reference to one of them.
pub(super) fn shared(name: &str) -> Value {
    component("parameters", name)
}

/// An id in a path.
pub(super) fn id(name: &str, kind: &str) -> Value {
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": format!("The id of the {kind}."),
        "schema": { "type": "string", "pattern": ID, "maxLength": 63 },
    })
}

/// The kind, where the path does not say it.
pub(super) fn kind(kinds: &[&str]) -> Value {
    query("kind", "Only resources of this kind.", &json!({ "type": "string", "enum": kinds }))
}

fn query(name: &str, description: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

fn list(name: &str, description: &str, item: &Value, default: &Value) -> Value {
    query(name, description, &json!({ "type": "array", "items": item, "default": default }))
}

fn with_examples(mut parameter: Value, examples: &[(&str, &str)]) -> Value {
    if let Some(members) = parameter.as_object_mut() {
        let examples: serde_json::Map<String, Value> =
            examples.iter().map(|(name, value)| ((*name).to_owned(), json!({ "value": value }))).collect();
        members.insert("examples".to_owned(), Value::Object(examples));
    }
    parameter
}

fn bounded(least: i64, most: i64, default: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most, "default": default })
}

fn alternatives(names: &[&str]) -> String {
    names.join("|")
}

/// One or several names of members, or paths below those that have something below.
fn fields() -> String {
    let whole = alternatives(WHOLE);
    let keys = r"(labels|tenancy|references)(\.[^,]*[^, ])?";
    let documents = r"(spec|status\.(adapters|conditions)|owner_references\.(id|kind|href))(\.[^.,]*[^., ])*";
    let name = format!(r" *({whole}|status|owner_references|{keys}|{documents})? *");
    format!("^{name}(,{name})*$")
}
