//! Robot accounts of a project at Harbor (API 2.0).
//!
//! A robot has the permission to pull from its project from its creation on, as Harbor makes none without a permission. Harbor
//! keeps no metadata, so the id of its credential ends the description. Harbor makes each password and shows it once: after an
//! answer that was lost, the robot gets another password. Only users may give one, change a robot or disable it; Harbor lets no
//! robot do that to another one. Errors are recognized by status, and Harbor's own messages are never shown.

mod logs;
mod pages;
mod robots;
mod settings;
mod wire;

use std::fmt;
use std::sync::Mutex;

use http::{Method, StatusCode};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use crate::client::{Api, Call, Client, Remedies};
use crate::contract::{
    Account, Capabilities, Credential, Disables, Identities, ListedAccounts, Lists, Login, NewAccount, Passwords,
    Registry, Usage,
};
use crate::description::{ID_LENGTH, with_id};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::identity::Identity;
use crate::name::{AccountName, Image};
use crate::probe::{Finding, Prober, Verdict};
use crate::request::Request;
use wire::{Created, Refreshed, Robot};

pub use settings::{HarborSettings, InvalidHarborName, ProjectName, RobotPrefix, Username};

/// The longest description of a robot, in characters.
const MAX_DESCRIPTION: usize = 1024;
/// The longest name of a robot with its project, in bytes.
const MAX_NAME: usize = 255;

/// A [`Registry`] at Harbor.
pub struct HarborRegistry {
    settings: HarborSettings,
    client: Client,
    prober: Prober,
    /// Harbor's number of the project, once it is known.
    project_id: Mutex<Option<u64>>,
}

// === impl HarborRegistry ===

impl HarborRegistry {
    /// Sets up the client. No request is sent; an identity that does not work fails the first call.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect(settings: HarborSettings) -> Result<Self, AccountError> {
        let project = &settings.project;
        let client = Client::new(Api {
            address: settings.address.clone(),
            root: "/api/v2.0/",
            identity: Identity::User {
                username: settings.username.as_str().to_owned(),
                password: settings.password.clone(),
            },
            ca_file: settings.ca_file.clone(),
            call_timeout: settings.call_timeout,
            calls: settings.calls.clone(),
            remedies: Remedies {
                unauthenticated: "check user and password of the identity: Harbor knows them not, or the identity is \
                                  disabled or expired"
                    .to_owned(),
                denied: format!(
                    "make the identity an administrator of the project `{project}`, and check that `{project}` exists; robots \
                     may not change other robots"
                ),
                not_found: format!("check that the address is that of Harbor, and that the project `{project}` exists"),
            },
        })?;
        let prober = client.prober()?;
        Ok(Self { settings, client, prober, project_id: Mutex::default() })
    }

    fn call(&self, operation: Operation, name: &AccountName) -> Call<'_> {
        self.client.call(operation, self.login(name))
    }

    /// Checks that a robot logs in as it was foreseen.
    fn check_login(&self, call: &Call<'_>, robot: &Robot, name: &AccountName) -> Result<(), AccountError> {
        if robot.name == self.login(name) {
            return Ok(());
        }
        let hint = Some("set robot_prefix to the prefix of robots in Harbor's system settings".to_owned());
        let failed = AccountError { hint, ..call.failed(ErrorKind::NotPrepared) };
        Err(failed.with_detail(format!("the names of robots do not begin with `{}`", self.settings.robot_prefix)))
    }

    /// Checks what Harbor has kept of a new robot, and returns it.
    fn accepted(
        &self,
        call: &Call<'_>,
        new: &NewAccount,
        robot: Robot,
        secret: Option<SecretString>,
    ) -> Result<Credential, AccountError> {
        self.check_login(call, &robot, &new.name)?;
        let account = robot.into_account(&new.name);
        if account.credential != Some(new.credential) {
            let detail = "the id of the credential is not in its description";
            return Err(call.failed(ErrorKind::Corrupt).with_detail(detail));
        }
        if account.description != new.description {
            return Err(call.failed(ErrorKind::Corrupt).with_detail("the description is another one"));
        }
        let password = secret.filter(|secret| !secret.expose_secret().is_empty()).ok_or_else(|| call.unreadable())?;
        Ok(Credential { account, password })
    }

    /// Returns the account that has the name already, with another password, if it has this credential's id: an earlier answer
    /// was lost, so that the first password is used nowhere.
    async fn existing(&self, call: &Call<'_>, new: &NewAccount) -> Result<Credential, AccountError> {
        let Some(robot) = self.robot(call, &new.name).await? else {
            // Deleted in between: the name is spent.
            return Err(call.failed(ErrorKind::NameTaken));
        };
        if robot.credential() != Some(new.credential) {
            return Err(call.failed(ErrorKind::NameTaken));
        }
        self.check_login(call, &robot, &new.name)?;
        let request = Request::new("refresh_robot", Method::PATCH, format!("robots/{}", robot.id));
        let answer = call.send(&request.with_body(&json!({}))).await?;
        match answer.status {
            StatusCode::OK => {
                let Refreshed { secret } = answer.parse().ok_or_else(|| call.unreadable())?;
                self.accepted(call, new, robot, secret)
            }
            StatusCode::FORBIDDEN => {
                let detail = "the identity may not give a robot another one";
                Err(call.failed(ErrorKind::PasswordLost).with_detail(detail))
            }
            StatusCode::NOT_FOUND => Err(call.failed(ErrorKind::NameTaken)),
            _ => Err(call.refused(&answer)),
        }
    }

    fn check(&self, call: &Call<'_>, new: &NewAccount) -> Result<(), AccountError> {
        let Capabilities { max_description, max_name_bytes, .. } = self.capabilities();
        call.check_description(new, max_description)?;
        if new.name.as_str().len() > max_name_bytes {
            let detail = format!("the name has more than {MAX_NAME} characters with its project; use a shorter prefix");
            return Err(call.failed(ErrorKind::Invalid).with_detail(detail));
        }
        Ok(())
    }
}

impl Registry for HarborRegistry {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            identities: Identities::Accounts,
            // Of this client's none does.
            expires: true,
            new_accounts_pull: true,
            passwords: Passwords::ShownOnce,
            lists: Lists::All,
            usage_log: true,
            disables: Disables::Reversibly,
            token_life: self.settings.token_life,
            calls_per_minute: self.settings.calls_per_minute,
            max_name_bytes: MAX_NAME.saturating_sub(self.settings.project.as_str().len()).saturating_sub(1),
            max_description: MAX_DESCRIPTION.saturating_sub(ID_LENGTH),
        }
    }

    fn host(&self) -> &str {
        self.settings.host()
    }

    /// Returns the prefix of robots and `PROJECT+NAME`.
    fn login(&self, name: &AccountName) -> String {
        let HarborSettings { robot_prefix, project, .. } = &self.settings;
        format!("{robot_prefix}{project}+{name}")
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        let call = self.call(Operation::Create, &new.name);
        self.check(&call, new)?;
        let description = with_id(&new.description, new.credential);
        let body = wire::new_robot(&new.name, &description, &self.settings.project);
        let request = Request::new("create_robot", Method::POST, "robots".to_owned()).with_body(&body);
        let answer = call.send(&request).await?;
        match answer.status {
            StatusCode::CREATED => {
                let Created { id, secret } = answer.parse().ok_or_else(|| call.unreadable())?;
                // The answer has no description.
                match self.robot_by_id(&call, id).await? {
                    Some(robot) => self.accepted(&call, new, robot, secret),
                    None => Err(call.failed(ErrorKind::Corrupt).with_detail("the robot is gone again")),
                }
            }
            StatusCode::CONFLICT => self.existing(&call, new).await,
            _ => Err(call.refused(&answer)),
        }
    }

    async fn find(&self, name: &AccountName) -> Result<Option<Account>, AccountError> {
        let call = self.call(Operation::Find, name);
        let Some(robot) = self.robot(&call, name).await? else { return Ok(None) };
        self.check_login(&call, &robot, name)?;
        Ok(Some(robot.into_account(name)))
    }

    /// Checks the permission that the robot has from its creation on, and gives it again if it was removed.
    async fn permit(&self, name: &AccountName) -> Result<(), AccountError> {
        let call = self.call(Operation::Permit, name);
        let Some(robot) = self.robot(&call, name).await? else { return Err(call.failed(ErrorKind::NotFound)) };
        if robot.pulls(&self.settings.project) {
            return Ok(());
        }
        self.change(&call, &robot, robot.disable).await
    }

    /// Logs in at the registry itself first: the token service answers to a wrong password as to one without permission, and in
    /// a public project as to one with it.
    async fn probe(&self, login: &Login, image: &Image) -> Finding {
        let request = login.probe(self.host(), image);
        let finding = self.prober.log_in(&request).await;
        if finding.verdict == Verdict::Accepted { self.prober.probe(&request).await } else { finding }
    }

    async fn usage(&self, name: &AccountName, since: Timestamp) -> Result<Usage, AccountError> {
        logs::usage(&self.call(Operation::Usage, name), &self.settings.project, name, since).await
    }

    async fn disable(&self, name: &AccountName) -> Result<(), AccountError> {
        let call = self.call(Operation::Disable, name);
        match self.robot(&call, name).await? {
            None => Err(call.failed(ErrorKind::NotFound)),
            Some(robot) if robot.disable => Ok(()),
            Some(robot) => self.change(&call, &robot, true).await,
        }
    }

    async fn delete(&self, name: &AccountName) -> Result<bool, AccountError> {
        let call = self.call(Operation::Delete, name);
        let Some(robot) = self.robot(&call, name).await? else { return Ok(false) };
        let request = Request::new("delete_robot", Method::DELETE, format!("robots/{}", robot.id));
        let answer = call.send(&request).await?;
        match answer.status {
            StatusCode::OK => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(call.refused(&answer)),
        }
    }

    async fn list(&self, page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        let call = self.client.call(Operation::List, self.settings.project.to_string());
        let number = match page.map(str::parse::<u64>) {
            None => 1,
            Some(Ok(number)) => number,
            Some(Err(_error)) => return Err(call.failed(ErrorKind::Invalid).with_detail("the page is no number")),
        };
        let page = self.page(&call, None, number).await?;
        let next = page.has_more.then(|| number.saturating_add(1).to_string());
        Ok(ListedAccounts { accounts: page.robots.iter().filter_map(Robot::listed).collect(), next })
    }
}

impl fmt::Debug for HarborRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        formatter
            .debug_struct("HarborRegistry")
            .field("address", &settings.address.as_str())
            .field("project", &settings.project.as_str())
            .field("username", &settings.username.as_str())
            .finish_non_exhaustive()
    }
}
