//! The access that a registry's token states (distribution's token specification).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::zeroize::Zeroizing;
use serde::Deserialize;
use serde_json::Value;

use crate::name::Repository;

/// The access to a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Pulls are permitted.
    Pulls,
    /// Pulls are not permitted.
    Nothing,
    /// The token does not say.
    Unknown,
}

/// An entry of the claim `access`.
#[derive(Deserialize)]
struct Entry {
    r#type: String,
    name: String,
    #[serde(default)]
    actions: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Claims {
    #[serde(default, deserialize_with = "present")]
    access: Option<Value>,
}

/// Keeps a null apart from an absent claim.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads the access in a token, without a check of its signature: the registry itself has just issued it.
pub(super) fn of(token: &str, repository: &Repository) -> Access {
    let mut parts = token.split('.');
    let (Some(_header), Some(payload), Some(_signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Access::Unknown;
    };
    let Ok(payload) = URL_SAFE_NO_PAD.decode(payload).map(Zeroizing::new) else { return Access::Unknown };
    let entries = match serde_json::from_slice::<Claims>(&payload) {
        Ok(Claims { access: Some(Value::Null) }) => Vec::new(),
        Ok(Claims { access: Some(access) }) => match serde_json::from_value::<Vec<Entry>>(access) {
            Ok(entries) => entries,
            Err(_unknown) => return Access::Unknown,
        },
        Ok(Claims { access: None }) | Err(_) => return Access::Unknown,
    };
    let pulls = entries.iter().any(|entry| {
        let actions = entry.actions.iter().flatten();
        entry.r#type == "repository"
            && entry.name == repository.as_str()
            && actions.into_iter().any(|action| action == "pull" || action == "*")
    });
    if pulls { Access::Pulls } else { Access::Nothing }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::pull(json!({"access": [{"type": "repository", "name": "ns/repo", "actions": ["pull"]}]}), Access::Pulls)]
    #[case::more(json!({"access": [{"type": "repository", "name": "ns/repo", "actions": ["push", "pull"]}]}), Access::Pulls)]
    #[case::all(json!({"access": [{"type": "repository", "name": "ns/repo", "actions": ["*"]}]}), Access::Pulls)]
    #[case::no_actions(json!({"access": [{"type": "repository", "name": "ns/repo", "actions": []}]}), Access::Nothing)]
    #[case::null_actions(json!({"access": [{"type": "repository", "name": "ns/repo", "actions": null}]}), Access::Nothing)]
    #[case::push(json!({"access": [{"type": "repository", "name": "ns/repo", "actions": ["push"]}]}), Access::Nothing)]
    #[case::another(json!({"access": [{"type": "repository", "name": "ns/other", "actions": ["pull"]}]}), Access::Nothing)]
    #[case::another_type(json!({"access": [{"type": "registry", "name": "ns/repo", "actions": ["pull"]}]}), Access::Nothing)]
    #[case::empty(json!({"access": []}), Access::Nothing)]
    #[case::null(json!({"access": null}), Access::Nothing)]
    #[case::absent(json!({"sub": "x"}), Access::Unknown)]
    #[case::another_form(json!({"access": "pull"}), Access::Unknown)]
    fn the_access_of_a_token_is_read(#[case] claims: Value, #[case] expected: Access) {
        let token = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()));
        assert_eq!(of(&token, &"ns/repo".parse().unwrap()), expected);
    }

    #[rstest]
    #[case("")]
    #[case("opaque")]
    #[case("a.b")]
    #[case("e30.e30.a.b")]
    #[case("e30.!!!.a")]
    #[case("e30.bm8ganNvbg.a")]
    fn what_is_no_token_says_nothing(#[case] token: &str) {
        assert_eq!(of(token, &"ns/repo".parse().unwrap()), Access::Unknown);
    }
}
