//! A cluster with its pull secret in clear, kept apart from all that may be shown.

use secrecy::SecretString;
use serde_json::{Value, json};
use zeroize::Zeroize as _;

use crate::wire::Resource;

/// A resource, and its inline pull secret apart from it.
#[derive(Debug)]
pub struct WithPullSecret {
    /// The resource; its pull secret is replaced by the redacted placeholder.
    pub resource: Resource,
    /// The credential document, if the resource has one inline and the API let us see it.
    pub pull_secret: Option<SecretString>,
}

// === impl WithPullSecret ===

impl WithPullSecret {
    /// Takes the pull secret out of `spec.pullSecret.data`.
    pub(crate) fn separate(mut resource: Resource) -> Self {
        let data = resource.spec.pointer_mut("/pullSecret/data");
        let pull_secret = data.and_then(|data| match data {
            Value::String(_) => match std::mem::replace(data, redacted_placeholder()) {
                Value::String(text) => Some(SecretString::from(text)),
                _ => None,
            },
            Value::Object(members) if !members.contains_key("redacted") => {
                let text = data.to_string();
                wipe(data);
                *data = redacted_placeholder();
                Some(SecretString::from(text))
            }
            _ => None,
        });
        Self { resource, pull_secret }
    }
}

fn redacted_placeholder() -> Value {
    json!({ "redacted": true })
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use secrecy::ExposeSecret as _;

    use super::*;

    #[rstest]
    #[case::text(json!("{\"auths\":{}}"), Some("{\"auths\":{}}"))]
    #[case::object(json!({"auths": {}}), Some("{\"auths\":{}}"))]
    #[case::redacted(json!({"redacted": true, "digest": "hmac-sha256:0"}), None)]
    #[case::null(json!(null), None)]
    fn the_pull_secret_leaves_the_resource(#[case] data: Value, #[case] expect: Option<&str>) {
        let spec = json!({"provider": "gcp", "pullSecret": {"data": data}});
        let separated = WithPullSecret::separate(Resource { spec, ..Resource::default() });
        assert_eq!(separated.pull_secret.as_ref().map(SecretString::expose_secret), expect);
        assert!(!separated.resource.spec.to_string().contains("auths"));
        assert_eq!(separated.resource.spec.pointer("/provider"), Some(&json!("gcp")));
    }

    #[test]
    fn a_resource_without_one_stays_as_it_is() {
        let spec = json!({"pullSecret": {"secretRef": {"name": "a"}}});
        let separated = WithPullSecret::separate(Resource { spec: spec.clone(), ..Resource::default() });
        assert!(separated.pull_secret.is_none());
        assert_eq!(separated.resource.spec, spec);
    }
}
