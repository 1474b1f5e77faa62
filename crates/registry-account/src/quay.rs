//! Robot accounts of an organization at Quay (quay.io, or Red Hat Quay).
//!
//! A robot is a member of one team, which may pull from the organization's repositories. The id of its credential is in the
//! robot's metadata. Quay answers 201 even to a body that it could not read, so each answer is compared with what was sent.
//! Quay's own messages repeat the request, so errors are recognized by status and by known beginnings of messages, which
//! are never shown.

mod errors;
mod federation;
mod logs;
mod prepare;
mod settings;
mod wire;

use std::fmt;
use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use crate::client::{Answer, Api, Call, Client};
use crate::contract::{
    Account, Capabilities, Credential, Disables, Identities, ListedAccounts, Lists, Login, NewAccount, Passwords,
    Registry, Usage,
};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::identity::Identity;
use crate::name::{AccountName, Image};
use crate::probe::{Finding, Prober};
use crate::request::Request;
use errors::Known;
use wire::Robot;

pub use federation::Issuer;
pub use settings::{OrganizationName, QuaySettings, TeamName};

/// Life of the tokens that Quay's token service issues.
const TOKEN_LIFE: Duration = Duration::from_hours(1);
/// The longest description of a robot, in characters.
const MAX_DESCRIPTION: usize = 255;
/// The longest login, in bytes.
const MAX_LOGIN: usize = 255;

/// A [`Registry`] at Quay.
pub struct QuayRegistry {
    settings: QuaySettings,
    client: Client,
    prober: Prober,
}

// === impl QuayRegistry ===

impl QuayRegistry {
    /// Sets up the client. No request is sent; an identity that does not work fails the first call.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect(settings: QuaySettings) -> Result<Self, AccountError> {
        let client = Client::new(Api {
            address: settings.address.clone(),
            root: "/api/v1/",
            identity: Identity::Token(settings.token.clone()),
            ca_file: settings.ca_file.clone(),
            call_timeout: settings.call_timeout,
            calls: settings.calls.clone(),
            remedies: errors::remedies(&settings.organization),
        })?;
        let prober = client.prober()?;
        Ok(Self { settings, client, prober })
    }

    fn call(&self, operation: Operation, name: &AccountName) -> Call<'_> {
        self.client.call(operation, self.login(name))
    }

    /// Returns the path of a robot, or of a part of it.
    fn robot_path(&self, name: &AccountName, part: &str) -> String {
        format!("organization/{}/robots/{name}{part}", self.settings.organization)
    }

    /// Reads a robot, as a part of an operation or as the whole; `None` if it does not exist.
    async fn robot(&self, call: &Call<'_>, name: &AccountName) -> Result<Option<Robot>, AccountError> {
        let request = Request::new("get_robot", Method::GET, self.robot_path(name, ""));
        let answer = call.send(&request).await?;
        match (answer.status, errors::known(&answer)) {
            (StatusCode::OK, _) => match answer.parse::<Robot>() {
                Some(robot) if robot.name == self.login(name) => Ok(Some(robot)),
                _ => Err(call.unreadable()),
            },
            (_, Some(Known::NoSuchRobot)) => Ok(None),
            _ => Err(call.refused(&answer)),
        }
    }

    /// Checks what Quay has kept of a new robot, and returns it.
    fn accepted(&self, call: &Call<'_>, new: &NewAccount, robot: Robot) -> Result<Credential, AccountError> {
        let (account, token) = robot.into_account(&new.name);
        if account.login != self.login(&new.name) || account.credential != Some(new.credential) {
            return Err(call.failed(ErrorKind::Corrupt).with_detail("the id of the credential is not in its metadata"));
        }
        if account.description != new.description {
            return Err(call.failed(ErrorKind::Corrupt).with_detail("the description is another one"));
        }
        let is_there = |token: &SecretString| !token.expose_secret().is_empty();
        match token.filter(is_there) {
            Some(password) => Ok(Credential { account, password }),
            None => Err(call.denied("the answer has no password")),
        }
    }

    /// Returns the account that has the name already, if it has this credential's id: an earlier answer was lost.
    async fn existing(&self, call: &Call<'_>, new: &NewAccount) -> Result<Credential, AccountError> {
        match self.robot(call, &new.name).await? {
            Some(robot) if robot.credential() == Some(new.credential) => self.accepted(call, new, robot),
            // Of another credential, or deleted in between: the name is spent.
            Some(_) | None => Err(call.failed(ErrorKind::NameTaken)),
        }
    }

    fn check(&self, call: &Call<'_>, new: &NewAccount) -> Result<(), AccountError> {
        call.check_description(new, MAX_DESCRIPTION)?;
        if self.login(&new.name).len() > MAX_LOGIN {
            let detail = format!("the login has more than {MAX_LOGIN} characters; use a shorter prefix");
            return Err(call.failed(ErrorKind::Invalid).with_detail(detail));
        }
        Ok(())
    }
}

impl Registry for QuayRegistry {
    fn capabilities(&self) -> Capabilities {
        let settings = &self.settings;
        Capabilities {
            identities: Identities::Accounts,
            expires: false,
            new_accounts_pull: false,
            passwords: Passwords::Kept,
            lists: Lists::All,
            usage_log: true,
            // By another password, which is given to no one.
            disables: Disables::ForGood,
            token_life: TOKEN_LIFE,
            calls_per_minute: settings.calls_per_minute,
            max_name_bytes: MAX_LOGIN.saturating_sub(settings.organization.as_str().len()).saturating_sub(1),
            max_description: MAX_DESCRIPTION,
        }
    }

    fn host(&self) -> &str {
        self.settings.host()
    }

    /// Returns `ORGANIZATION+NAME`.
    fn login(&self, name: &AccountName) -> String {
        format!("{}+{name}", self.settings.organization)
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        let call = self.call(Operation::Create, &new.name);
        self.check(&call, new)?;
        let body = json!({
            "description": new.description,
            "unstructured_metadata": wire::metadata(new.credential),
        });
        let request = Request::new("create_robot", Method::PUT, self.robot_path(&new.name, "")).with_body(&body);
        let answer = call.send(&request).await?;
        match (answer.status, errors::known(&answer)) {
            (StatusCode::CREATED, _) => {
                let robot = answer.parse().ok_or_else(|| call.unreadable())?;
                self.accepted(&call, new, robot)
            }
            (_, Some(Known::RobotExists)) => self.existing(&call, new).await,
            _ => Err(call.refused(&answer)),
        }
    }

    async fn find(&self, name: &AccountName) -> Result<Option<Account>, AccountError> {
        let robot = self.robot(&self.call(Operation::Find, name), name).await?;
        Ok(robot.map(|robot| robot.into_account(name).0))
    }

    async fn permit(&self, name: &AccountName) -> Result<(), AccountError> {
        let call = self.call(Operation::Permit, name);
        let settings = &self.settings;
        let (organization, team) = (&settings.organization, &settings.team);
        let path = format!("organization/{organization}/team/{team}/members/{organization}%2B{name}");
        let answer = call.send(&Request::new("add_to_team", Method::PUT, path)).await?;
        match (answer.status, errors::known(&answer)) {
            (StatusCode::OK, _) | (_, Some(Known::AlreadyMember)) => Ok(()),
            (_, Some(Known::UnknownUser | Known::NoSuchRobot)) => Err(call.failed(ErrorKind::NotFound)),
            (StatusCode::NOT_FOUND, _) => {
                let detail = format!("the organization `{organization}` has no team `{team}`");
                let hint = Some("create the team and its default permission".to_owned());
                Err(AccountError { hint, ..call.failed(ErrorKind::NotPrepared) }.with_detail(detail))
            }
            _ => Err(call.refused(&answer)),
        }
    }

    async fn probe(&self, login: &Login, image: &Image) -> Finding {
        self.prober.probe(&login.probe(self.settings.host(), image)).await
    }

    async fn usage(&self, name: &AccountName, since: Timestamp) -> Result<Usage, AccountError> {
        let call = self.call(Operation::Usage, name);
        match logs::usage(&call, &self.settings.organization, since).await {
            // Quay fails if it does not know whose entries are asked for.
            Err(error) if error.kind == ErrorKind::Internal => match self.robot(&call, name).await {
                Ok(None) => Ok(Usage::none()),
                Ok(Some(_)) | Err(_) => Err(error),
            },
            other => other,
        }
    }

    /// Gives the robot another password, which is not read: Quay knows no disabled robots.
    async fn disable(&self, name: &AccountName) -> Result<(), AccountError> {
        let call = self.call(Operation::Disable, name);
        let request = Request::new("regenerate_robot", Method::POST, self.robot_path(name, "/regenerate"));
        let answer = call.send(&request).await?;
        match (answer.status, errors::known(&answer)) {
            (StatusCode::OK, _) => Ok(()),
            (_, Some(Known::NoSuchRobot)) => Err(call.failed(ErrorKind::NotFound)),
            _ => Err(call.refused(&answer)),
        }
    }

    async fn delete(&self, name: &AccountName) -> Result<bool, AccountError> {
        let call = self.call(Operation::Delete, name);
        let answer = call.send(&Request::new("delete_robot", Method::DELETE, self.robot_path(name, ""))).await?;
        match (answer.status, errors::known(&answer)) {
            (StatusCode::NO_CONTENT, _) => Ok(true),
            (_, Some(Known::NoSuchRobot)) => Ok(false),
            _ => Err(call.refused(&answer)),
        }
    }

    /// Returns all robots on one page: Quay has no pages of them.
    async fn list(&self, _page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        let call = self.client.call(Operation::List, self.settings.organization.to_string());
        let path = format!("organization/{}/robots?token=false", self.settings.organization);
        let answer: Answer = call.send(&Request::new("list_robots", Method::GET, path)).await?;
        if answer.status != StatusCode::OK {
            return Err(call.refused(&answer));
        }
        let accounts = wire::listed(&answer, &self.settings.organization).ok_or_else(|| call.unreadable())?;
        Ok(ListedAccounts { accounts, next: None })
    }
}

impl fmt::Debug for QuayRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        formatter
            .debug_struct("QuayRegistry")
            .field("address", &settings.address.as_str())
            .field("organization", &settings.organization.as_str())
            .field("team", &settings.team.as_str())
            .finish_non_exhaustive()
    }
}
