//! Recognizes refusals of Quay by the beginnings of known messages.

use http::StatusCode;
use serde_json::{Map, Value};

use super::settings::OrganizationName;
use crate::client::{Answer, Remedies};

/// A refusal that is recognized by its message, which is not shown: Quay's messages repeat the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// A robot of that name exists.
    RobotExists,
    /// There is no such robot.
    NoSuchRobot,
    /// The robot is a member of the team already.
    AlreadyMember,
    /// There is no such user, which may be a robot.
    UnknownUser,
}

/// Returns the known message of a refusal.
pub(super) fn known(answer: &Answer) -> Option<Known> {
    if answer.status == StatusCode::BAD_REQUEST { of_body(&answer.body) } else { None }
}

/// Returns the known message in a problem, or in a document with a bare message.
fn of_body(body: &[u8]) -> Option<Known> {
    let refusal: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let messages =
        ["error_message", "detail", "message"].into_iter().filter_map(|member| refusal.get(member)?.as_str());
    messages.into_iter().find_map(of_message)
}

fn of_message(message: &str) -> Option<Known> {
    match message {
        _ if message.starts_with("Existing robot with name") => Some(Known::RobotExists),
        _ if message.starts_with("Could not find robot with") => Some(Known::NoSuchRobot),
        _ if message.starts_with("User ") && message.contains("is already a member of team") => {
            Some(Known::AlreadyMember)
        }
        _ if message.starts_with("Unknown user") => Some(Known::UnknownUser),
        _ => None,
    }
}

/// Returns the remedy for refusals that no operation expects.
pub(super) fn remedies(organization: &OrganizationName) -> Remedies {
    Remedies {
        unauthenticated: "generate another access token of the OAuth application: this one is unknown or expired"
            .to_owned(),
        denied: format!(
            "give the access token the scope org:admin, make its creator an administrator of the organization \
             `{organization}`, and check that `{organization}` exists"
        ),
        not_found: "check that the address is that of Quay".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::problem(json!({"detail": "Existing robot with name: o+r", "status": 400}), Some(Known::RobotExists))]
    #[case::error(json!({"error_message": "Existing robot with name: o+r"}), Some(Known::RobotExists))]
    #[case::short(json!({"message": "Could not find robot with specified username"}), Some(Known::NoSuchRobot))]
    #[case::named(json!({"message": "Could not find robot with username: o+r"}), Some(Known::NoSuchRobot))]
    #[case::member(json!({"message": "User o+r is already a member of team t"}), Some(Known::AlreadyMember))]
    #[case::user(json!({"detail": "Unknown user", "error_type": "invalid_request"}), Some(Known::UnknownUser))]
    #[case::quoted(json!({"detail": "{'description': 'Existing robot with name'} is too long"}), None)]
    #[case::other(json!({"message": "Robot is being used by a mirror"}), None)]
    #[case::list(json!(["Unknown user"]), None)]
    fn messages_are_known_by_their_beginning(#[case] body: Value, #[case] expected: Option<Known>) {
        assert_eq!(of_body(body.to_string().as_bytes()), expected);
    }
}
