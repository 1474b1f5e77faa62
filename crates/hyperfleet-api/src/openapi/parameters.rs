//! The parameters of paths, queries and headers.

use serde_json::{Value, json};

use super::reference::component;
use super::superset::{BEYOND, beyond};
use crate::resource::ID_PATTERN;
use crate::search;

/// The columns by which lists can be ordered.
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

/// Members of a resource that can only be selected as a whole.
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
    "traceparent",
];

const SEARCH: &str = "A condition on the resources, in the search language: comparisons (`=`, `!=`, `<`, `<=`, `>`, `>=`, `like`, `ilike`, \
`in [...]`, `between ... and ...`, `is null`) joined by `and`, `or`, `not` and parentheses.

Its fields are the columns by which lists can be ordered; `labels.KEY`; `spec.PATH`, whose names are lower-case letters, digits and \
`_`; `status.conditions.TYPE` with `=` and one of 'True', 'False', 'Unknown', or `is null`; and the parts `.last_updated_time`, \
`.last_transition_time`, `.observed_generation` and (beyond HyperFleet) `.reason` of a condition. Labels and conditions do not support `not`. A value may stand \
first: `3 < spec.replicas`. Compared with a text, a number or boolean of a spec is its text.";

const WATCH: &str = "Returns a stream of changes instead of a list: one JSON document per line, until the client \
disconnects. Without `resource_version` the current state comes first, as ADDED, and then a BOOKMARK. Of the other parameters \
only `search` applies: a resource that begins to match is ADDED, one that ceases to match is DELETED.";

/// The parameters that several operations share.
pub(super) fn components() -> Value {
    let order = alternatives(COLUMNS);
    let key = format!(" *({order})( +(asc|desc))? *");
    json!({
        "Page": query("page", "The page number, counted from 1.", &bounded(1, 100_000, 1)),
        "Size": query("size", "The number of items on a page.", &bounded(1, 100, 20)),
        "Search": with_examples(
            query("search", SEARCH, &json!({ "type": "string", "maxLength": search::MAX_LENGTH })),
            &[
                ("not_deleted", "deleted_time is null"),
                ("label", "labels.shard = '1' and labels.hyperfleet.io/cluster-id != 'cls-123'"),
                ("unreconciled", "status.conditions.Reconciled = 'False' and generation > 1"),
                ("spec", "spec.provider = 'gcp' and name like 'prod-%'"),
            ],
        ),
        "Order": list(
            "order",
            &format!(
                "The columns to order by, each with `asc` (the default) or `desc`. Repeated or separated by commas. \
                 One of: {}.",
                COLUMNS.join(", ")
            ),
            &json!({ "type": "string", "pattern": format!("^{key}(,{key})*$") }),
            &json!(["created_time desc"]),
        ),
        "Fields": query(
            "fields",
            "The members to return, by name or as a path such as `spec.gcp`; by default all. Repeated or separated by \
             commas. `id` is always returned; members that are otherwise required may be absent.",
            &json!({ "type": "array", "items": { "type": "string", "pattern": fields() } }),
        ),
        "RefType": query(
            "ref_type",
            "Only resources with a reference of this type to `ref_target_id`, which is then required.",
            &json!({ "type": "string" }),
        ),
        "RefTargetId": query("ref_target_id", "See `ref_type`.", &json!({ "type": "string" })),
        "Watch": beyond(query("watch", WATCH, &json!({ "type": "boolean", "default": false }))),
        "ResourceVersion": beyond(query(
            "resource_version",
            "With `watch`: resume after this version of an earlier stream. Ignored otherwise.",
            &json!({ "type": "string" }),
        )),
        "Include": beyond(query(
            "include",
            "Returns the pull secret in `spec.pullSecret.data` in clear, to callers with the grant `reads_pull_secrets`.",
            &json!({ "type": "array", "items": { "type": "string", "enum": ["pullSecret"] } }),
        )),
        "IfMatch": {
            BEYOND: true,
            "name": "If-Match",
            "in": "header",
            "description": "The generation that the caller has observed, in quotes. If the resource has another one, \
                            nothing is changed and the response is 412. `*` matches any.",
            "schema": { "type": "string", "pattern": "^(\\*|\"[1-9][0-9]{0,17}\")$" },
            "example": "\"3\"",
        },
    })
}

/// A reference to a shared parameter.
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
        "schema": { "type": "string", "pattern": ID_PATTERN, "maxLength": 63 },
    })
}

/// The kind as a parameter, for paths of every kind.
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

fn bounded(min: i64, max: i64, default: i64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max, "default": default })
}

fn alternatives(names: &[&str]) -> String {
    names.join("|")
}

/// The pattern of one or several members or paths, separated by commas.
fn fields() -> String {
    let whole = alternatives(WHOLE);
    let keys = r"(labels|tenancy|references)(\.[^,]*[^, ])?";
    let documents = r"(spec|status\.(adapters|conditions)|owner_references\.(id|kind|href))(\.[^.,]*[^., ])*";
    let name = format!(r" *({whole}|status|owner_references|{keys}|{documents})? *");
    format!("^{name}(,{name})*$")
}
