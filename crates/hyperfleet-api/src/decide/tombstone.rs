//! Decides about tombstones: their content, and the copies that are left after a sweep.

use fleet_model::copy;
use serde_json::{Map, Value};

use super::body::{BodyError, JsonType, items};
use super::change::RequestInfo;
use crate::resource::Resource;
use crate::tombstone::Tombstone;

/// Returns the tombstone of a resource that is being removed by force.
pub fn bury(resource: &Resource, id: String, reason: &str, request: &RequestInfo) -> Tombstone {
    let mut copies: Vec<Value> = Vec::new();
    for report in resource.state.reports.values() {
        let reported = report.data.get(copy::MEMBER).and_then(Value::as_array).into_iter().flatten();
        for copy in reported {
            if !copies.contains(copy) {
                copies.push(copy.clone());
            }
        }
    }
    Tombstone {
        id,
        resource_id: resource.id.clone(),
        kind: resource.kind.clone(),
        name: resource.name.clone(),
        incarnation: resource.created_time,
        generation: resource.generation,
        tenancy: resource.state.tenancy.clone(),
        removed_time: request.time,
        removed_by: request.caller.clone(),
        reason: reason.to_owned(),
        copies,
    }
}

/// Returns the copies of a tombstone that are left when these were swept.
pub fn left(tombstone: &Tombstone, swept: &[Value]) -> Vec<Value> {
    tombstone.copies.iter().filter(|copy| !swept.contains(copy)).cloned().collect()
}

/// Parses the copies in the body of a request that reports them as swept.
pub fn swept(mut body: Map<String, Value>) -> Result<Vec<Value>, BodyError> {
    let wrong = BodyError::WrongType { path: copy::MEMBER, expected: JsonType::Array };
    items(&mut body, copy::MEMBER)?.ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fleet_model::Report;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::decide::body::Creation;
    use crate::decide::change::{PullSecretRights, Relations, create};
    use crate::tenancy::Reach;

    fn buried(reports: &[Value]) -> Tombstone {
        let request = RequestInfo {
            caller: "jane".to_owned(),
            tenancy: BTreeMap::from([("org".to_owned(), "acme".to_owned())]),
            reach: Reach::Unlimited,
            time: Timestamp::from_second(10).unwrap(),
            pull_secrets: PullSecretRights { reads: false, chooses_destination: false },
            trace: None,
        };
        let body = Creation { kind: "Cluster".to_owned(), name: "one".to_owned(), ..Creation::default() };
        let relations = Relations { tenancy: request.tenancy.clone(), ..Relations::default() };
        let mut resource = create(body, "cls-1".to_owned(), relations, &request);
        for (number, data) in reports.iter().enumerate() {
            let report: Report = serde_json::from_value(json!({
                "adapter": format!("adapter-{number}"), "observed_generation": 1, "conditions": [], "data": data,
                "created_time": request.time, "last_report_time": request.time,
            }))
            .unwrap();
            resource.state.reports.insert(report.adapter.clone(), report);
        }
        bury(&resource, "id".to_owned(), "lost", &request)
    }

    #[test]
    fn a_tombstone_has_every_reported_copy_once() {
        let (one, two) = (json!({ "kind": "secret", "name": "one" }), json!({ "name": "two" }));
        let tombstone = buried(&[
            json!({ "copies": [one, two] }),
            json!({ "copies": [two] }),
            json!({ "copies": "none" }),
            json!({ "other": 1 }),
        ]);
        assert_eq!(tombstone.copies, [one.clone(), two.clone()]);
        assert_eq!((tombstone.removed_by.as_str(), tombstone.tenancy["org"].as_str()), ("jane", "acme"));
        assert_eq!(left(&tombstone, &[json!({ "name": "two" }), json!(3)]), [one]);
        assert_eq!(left(&tombstone, &tombstone.copies), Vec::<Value>::new());
    }

    #[test]
    fn what_was_swept_is_a_list() {
        let parse = |body: Value| swept(body.as_object().unwrap().clone());
        assert_eq!(parse(json!({ "copies": [1] })), Ok(vec![json!(1)]));
        for body in [json!({}), json!({ "copies": null }), json!({ "copies": {} })] {
            assert!(parse(body).is_err());
        }
    }
}
