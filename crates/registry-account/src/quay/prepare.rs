//! Sets up what all robots share: the team, and its permission for new repositories.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::QuayRegistry;
use crate::client::Call;
use crate::error::{AccountError, Operation};
use crate::request::Request;

/// The role with which a repository may be pulled.
const READ: &str = "read";

/// The default permissions of an organization.
#[derive(Deserialize)]
struct Prototypes {
    prototypes: Vec<Prototype>,
}

#[derive(Deserialize)]
struct Prototype {
    delegate: Delegate,
    role: String,
    /// Only for repositories that this user creates.
    #[serde(default)]
    activating_user: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Delegate {
    name: String,
    kind: String,
}

// === impl QuayRegistry ===

impl QuayRegistry {
    /// Creates the team, if there is none, and lets it read every repository that is created from now on. Repositories that
    /// exist already need a permission of their own for the team. Repeating it changes nothing.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn prepare(&self) -> Result<(), AccountError> {
        let settings = &self.settings;
        let (organization, team) = (&settings.organization, &settings.team);
        let call = self.client.call(Operation::Prepare, organization.to_string());
        let request = Request::new("put_team", Method::PUT, format!("organization/{organization}/team/{team}"));
        let answer = call.send(&request.with_body(&json!({"role": "member"}))).await?;
        if answer.status != StatusCode::OK {
            return Err(call.refused(&answer));
        }
        let path = format!("organization/{organization}/prototypes");
        if self.has_permission(&call, &path).await? {
            return Ok(());
        }
        let body = json!({"delegate": {"name": team.as_str(), "kind": "team"}, "role": READ});
        let answer = call.send(&Request::new("create_prototype", Method::POST, path).with_body(&body)).await?;
        if answer.status == StatusCode::OK { Ok(()) } else { Err(call.refused(&answer)) }
    }

    /// Returns true if the team may read new repositories, of each creator: Quay would add the permission again.
    async fn has_permission(&self, call: &Call<'_>, path: &str) -> Result<bool, AccountError> {
        let answer = call.send(&Request::new("list_prototypes", Method::GET, path.to_owned())).await?;
        if answer.status != StatusCode::OK {
            return Err(call.refused(&answer));
        }
        let Prototypes { prototypes } = answer.parse().ok_or_else(|| call.unreadable())?;
        let team = self.settings.team.as_str();
        Ok(prototypes.iter().any(|prototype| {
            let Prototype { delegate, role, activating_user } = prototype;
            delegate.kind == "team" && delegate.name == team && role == READ && activating_user.is_none()
        }))
    }
}
