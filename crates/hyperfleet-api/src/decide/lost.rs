//! Decides the state of a resource whose pull secret cannot be decrypted any more.

use serde_json::Value;

use super::change::{RequestInfo, later};
use crate::resource::Resource;

/// Returns the resource without its inline pull secret: a new generation, for which adapters report that the content is missing.
/// One that is being deleted needs no content, and keeps its generation.
pub fn without_pull_secret(before: &Resource, request: &RequestInfo) -> Resource {
    let mut after = before.clone();
    if let Some(secret) = after.spec.get_mut("pullSecret").and_then(Value::as_object_mut) {
        secret.remove("data");
        if secret.is_empty() {
            after.spec.remove("pullSecret");
        }
    }
    if !before.is_terminating() {
        after.generation = after.generation.next();
        after.updated_by.clone_from(&request.caller);
        after.state.trace.clone_from(&request.trace);
        after.updated_time = later(before.updated_time, request.time);
    }
    after
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::decide::body::Creation;
    use crate::decide::change::{PullSecretRights, Relations, create};
    use crate::decide::deletion::mark_for_deletion;
    use crate::tenancy::{Reach, Tenancy};

    #[test]
    fn only_the_content_goes() {
        let request = RequestInfo {
            caller: "operator".to_owned(),
            tenancy: Tenancy::new(),
            reach: Reach::Unlimited,
            time: Timestamp::from_second(10).unwrap(),
            pull_secrets: PullSecretRights { reads: false, chooses_destination: false },
            trace: None,
        };
        let resource = |spec: Value| {
            let spec = spec.as_object().cloned();
            let body = Creation { kind: "Cluster".to_owned(), name: "one".to_owned(), spec, ..Creation::default() };
            create(body, "one".to_owned(), Relations::default(), &request)
        };
        for (secret, left) in [
            (
                json!({ "data": { "redacted": true }, "secretName": "s" }),
                json!({ "region": "eu", "pullSecret": { "secretName": "s" } }),
            ),
            (json!({ "data": { "redacted": true } }), json!({ "region": "eu" })),
        ] {
            let before = resource(json!({ "region": "eu", "pullSecret": secret }));
            let after = without_pull_secret(&before, &request);
            assert_eq!(Value::Object(after.spec.clone()), left);
            assert_eq!(after.generation, before.generation.next());
            let terminating = mark_for_deletion(&before, &request);
            let after = without_pull_secret(&terminating, &request);
            assert_eq!((Value::Object(after.spec.clone()), after.generation), (left, terminating.generation));
        }
    }
}
