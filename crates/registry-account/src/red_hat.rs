//! Service accounts of a partner at Red Hat's registries.
//!
//! Red Hat publishes no description of this API. What is known comes from the public design of HyperFleet's pull secret service:
//! requests and answers of one account, the names' length, that a deletion can be taken back, and 120 calls a minute. The identity is
//! a client's certificate. Every account pulls; there are no permissions, no usage log and no list. No metadata are kept, so that the
//! id of a credential ends the description. An account that was deleted is never recovered: its password would come back with it.

mod settings;
mod wire;

use std::fmt;

use http::{Method, StatusCode};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use crate::client::{Answer, Api, Call, Client, Remedies};
use crate::contract::{
    Account, Capabilities, Credential, Disables, Identities, ListedAccounts, Lists, Login, NewAccount, Passwords,
    Registry, Usage,
};
use crate::description::with_id;
use crate::error::{AccountError, ErrorKind, Operation};
use crate::identity::Identity;
use crate::name::{AccountName, Image};
use crate::probe::{Finding, Prober};
use crate::request::Request;
use wire::ServiceAccount;

pub use settings::{InvalidPartner, Partner, RedHatSettings};

/// The longest name of an account, in bytes.
const MAX_NAME: usize = 49;
/// The text of the only 404 that means an account: a wrong address answers otherwise, and a deletion there has deleted nothing.
const NOT_FOUND: &[u8] = b"Service Account not found";
/// A name that no account of this service has: it has no random part.
const ABSENT: &str = "identity-check";

/// A [`Registry`] of Red Hat.
pub struct RedHatRegistry {
    settings: RedHatSettings,
    client: Client,
    prober: Prober,
}

// === impl RedHatRegistry ===

impl RedHatRegistry {
    /// Sets up the client. No request is sent; an identity that is not accepted fails the first call.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect(settings: RedHatSettings) -> Result<Self, AccountError> {
        let partner = &settings.partner;
        let client = Client::new(Api {
            address: settings.address.clone(),
            root: "/partners/",
            identity: Identity::Certificate(settings.certificate.clone()),
            ca_file: settings.ca_file.clone(),
            call_timeout: settings.call_timeout,
            calls: settings.calls.clone(),
            remedies: Remedies {
                unauthenticated: "check the client's certificate: Red Hat does not know it, or it has expired"
                    .to_owned(),
                denied: format!("check that the client's certificate is the one of the partner `{partner}`"),
                not_found: format!(
                    "check that the address has the path of the API, and that the partner `{partner}` exists"
                ),
            },
        })?;
        let prober = client.prober()?;
        Ok(Self { settings, client, prober })
    }

    fn call(&self, operation: Operation, name: &AccountName) -> Call<'_> {
        self.client.call(operation, self.login(name))
    }

    fn path(&self, name: &str) -> String {
        format!("{}/service-accounts/{name}", self.settings.partner)
    }

    /// Reads an account; `None` if it does not exist, or was deleted.
    async fn account(&self, call: &Call<'_>, name: &AccountName) -> Result<Option<ServiceAccount>, AccountError> {
        let request = Request::new("get_service_account", Method::GET, self.path(name.as_str()));
        let answer = call.send(&request).await?;
        match answer.status {
            StatusCode::OK => answer.parse().map(Some).ok_or_else(|| call.unreadable()),
            _ if is_absent(&answer) => Ok(None),
            _ => Err(call.refused(&answer)),
        }
    }

    /// Checks what Red Hat has kept of a new account, and returns it.
    fn accepted(&self, call: &Call<'_>, new: &NewAccount, kept: ServiceAccount) -> Result<Credential, AccountError> {
        let corrupt = |detail: &str| Err(call.failed(ErrorKind::Corrupt).with_detail(detail));
        if !kept.is_of(&self.settings.partner) {
            return corrupt("the account is another partner's");
        }
        let (account, password) = kept.into_account(&new.name).ok_or_else(|| call.unreadable())?;
        if account.login != self.login(&new.name) {
            return corrupt("the account logs in with another name");
        }
        if account.credential != Some(new.credential) {
            return corrupt("the id of the credential is not in its description");
        }
        if account.description != new.description {
            return corrupt("the description is another one");
        }
        if password.expose_secret().is_empty() {
            return Err(call.unreadable());
        }
        Ok(Credential { account, password })
    }

    fn unsupported(&self, operation: Operation, name: &AccountName) -> AccountError {
        self.call(operation, name).failed(ErrorKind::Unsupported)
    }
}

/// Returns true if an answer says that there is no such account.
fn is_absent(answer: &Answer) -> bool {
    answer.status == StatusCode::NOT_FOUND && answer.body.windows(NOT_FOUND.len()).any(|text| text == NOT_FOUND)
}

impl Registry for RedHatRegistry {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            identities: Identities::Accounts,
            // A password may state its end, which this client cannot choose.
            expires: true,
            new_accounts_pull: true,
            passwords: Passwords::Kept,
            lists: Lists::Nothing,
            usage_log: false,
            disables: Disables::Never,
            token_life: self.settings.token_life,
            calls_per_minute: self.settings.calls_per_minute,
            max_name_bytes: MAX_NAME,
            max_description: RedHatSettings::MAX_DESCRIPTION,
        }
    }

    fn host(&self) -> &str {
        &self.settings.host
    }

    /// Returns `|NAME`.
    fn login(&self, name: &AccountName) -> String {
        format!("|{name}")
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        let call = self.call(Operation::Create, &new.name);
        call.check_description(new, RedHatSettings::MAX_DESCRIPTION)?;
        let body = wire::new_account(&new.name, &with_id(&new.description, new.credential));
        let path = format!("{}/service-accounts", self.settings.partner);
        let answer = call.send(&Request::new("create_service_account", Method::POST, path).with_body(&body)).await?;
        match answer.status {
            StatusCode::OK | StatusCode::CREATED => {
                self.accepted(&call, new, answer.parse().ok_or_else(|| call.unreadable())?)
            }
            StatusCode::CONFLICT => match self.account(&call, &new.name).await? {
                Some(kept) if kept.credential() == Some(new.credential) => self.accepted(&call, new, kept),
                // Another's, or deleted: the name is spent.
                _ => Err(call.failed(ErrorKind::NameTaken)),
            },
            _ => Err(call.refused(&answer)),
        }
    }

    async fn find(&self, name: &AccountName) -> Result<Option<Account>, AccountError> {
        let call = self.call(Operation::Find, name);
        let Some(kept) = self.account(&call, name).await? else { return Ok(None) };
        let (account, _password) = kept.into_account(name).ok_or_else(|| call.unreadable())?;
        Ok(Some(account))
    }

    /// Checks that the account is there: each pulls.
    async fn permit(&self, name: &AccountName) -> Result<(), AccountError> {
        let call = self.call(Operation::Permit, name);
        self.account(&call, name).await?.map(drop).ok_or_else(|| call.failed(ErrorKind::NotFound))
    }

    async fn probe(&self, login: &Login, image: &Image) -> Finding {
        self.prober.probe(&login.probe(self.host(), image)).await
    }

    async fn usage(&self, name: &AccountName, _since: Timestamp) -> Result<Usage, AccountError> {
        Err(self.unsupported(Operation::Usage, name))
    }

    async fn disable(&self, name: &AccountName) -> Result<(), AccountError> {
        Err(self.unsupported(Operation::Disable, name))
    }

    async fn delete(&self, name: &AccountName) -> Result<bool, AccountError> {
        let call = self.call(Operation::Delete, name);
        let request = Request::new("delete_service_account", Method::DELETE, self.path(name.as_str()));
        let answer = call.send(&request).await?;
        match answer.status {
            StatusCode::OK | StatusCode::NO_CONTENT => Ok(true),
            _ if is_absent(&answer) => Ok(false),
            _ => Err(call.refused(&answer)),
        }
    }

    /// Lists nothing, and proves the identity: an account is asked for that is not there.
    async fn list(&self, _page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        let call = self.client.call(Operation::List, self.settings.partner.to_string());
        let answer = call.send(&Request::new("get_service_account", Method::GET, self.path(ABSENT))).await?;
        let is_read = |answer: &Answer| answer.parse::<ServiceAccount>().is_some();
        match answer.status {
            _ if is_absent(&answer) => Ok(ListedAccounts::default()),
            StatusCode::OK if is_read(&answer) => Ok(ListedAccounts::default()),
            StatusCode::OK => Err(call.unreadable()),
            _ => Err(call.refused(&answer)),
        }
    }
}

impl fmt::Debug for RedHatRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RedHatSettings { address, host, partner, .. } = &self.settings;
        formatter
            .debug_struct("RedHatRegistry")
            .field("address", &address.as_str())
            .field("host", host)
            .field("partner", &partner.as_str())
            .finish_non_exhaustive()
    }
}
