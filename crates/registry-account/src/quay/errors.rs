//! Maps Quay's refusals to kinds, by status and by the beginnings of known messages.

use serde_json::{Map, Value};

use super::settings::QuaySettings;
use crate::error::ErrorKind;

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

/// Kind and remedy of a refusal.
pub(super) struct Classified {
    pub(super) kind: ErrorKind,
    pub(super) hint: Option<String>,
}

/// Returns the known message of a refusal with status 400: in a problem, or in a document with a bare message.
pub(super) fn known(body: &[u8]) -> Option<Known> {
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

/// Returns kind and remedy of a status that no operation expects.
pub(super) fn classify(status: u16, settings: &QuaySettings) -> Classified {
    let (kind, hint) = match status {
        401 => (
            ErrorKind::Unauthenticated,
            Some("generate another access token of the OAuth application: this one is unknown or expired".to_owned()),
        ),
        403 => (
            ErrorKind::PermissionDenied,
            Some(format!(
                "give the access token the scope org:admin, make its creator an administrator of the organization `{0}`, \
                 and check that `{0}` exists",
                settings.organization
            )),
        ),
        408 | 504 => (ErrorKind::TimedOut, None),
        429 => (ErrorKind::QuotaExceeded, None),
        404 | 405 => (ErrorKind::Invalid, Some("check that the address is that of Quay".to_owned())),
        200..=299 | 500 => (ErrorKind::Internal, None),
        300..=499 => (ErrorKind::Invalid, None),
        _ => (ErrorKind::Unavailable, None),
    };
    Classified { kind, hint }
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
        assert_eq!(known(body.to_string().as_bytes()), expected);
    }
}
