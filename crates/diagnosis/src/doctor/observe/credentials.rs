//! Observation of the parts that the credentials service depends on.

use std::collections::BTreeMap;

use credentials::server::{OpenError, open_existing};
use credentials::settings::{Checked, CheckedRegistry};
use daemon::environment::Environment;
use daemon::log::causes;
use daemon::retry::Budget;
use futures_util::future::join_all;
use hyperfleet_client::{Client, ListQuery, Patch};
use jiff::Timestamp;
use registry_account::contract::Registry as _;
use registry_account::name::AccountName;
use registry_account::{AccountError, ErrorKind, Operation};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{CHECK_TIMEOUT, answer};
use crate::doctor::facts::{ApiAccess, CredentialsFacts, LedgerFacts, Refusal, RegistryFacts};

/// Observes API, ledger and registries as the service uses them.
pub async fn credentials(checked: &Checked, environment: &impl Environment) -> CredentialsFacts {
    let registries = join_all(checked.registries.iter().map(registry));
    let ledger = async {
        match timeout(CHECK_TIMEOUT, ledger(checked, environment)).await {
            Ok(ledger) => ledger,
            Err(_elapsed) => Err("the database does not answer in time".to_owned()),
        }
    };
    let (api, ledger, registries) = tokio::join!(api(checked), ledger, registries);
    CredentialsFacts { api, ledger, registries }
}

async fn api(checked: &Checked) -> Result<ApiAccess, String> {
    let client = Client::new(checked.client.clone()).map_err(|error| causes(&error))?;
    let budget = Budget::new(CHECK_TIMEOUT, CancellationToken::new());
    let calls = client.within(&budget);
    let absent = format!("doctor-{}", Timestamp::now().as_nanosecond());
    let query = ListQuery { size: Some(1), fields: vec!["id".to_owned()], ..ListQuery::default() };
    let patch = Patch { labels: Some(BTreeMap::new()), ..Patch::default() };
    let (list, read, update) = tokio::join!(
        calls.list("clusters", &query),
        calls.get_with_pull_secret("clusters", &absent),
        calls.patch("clusters", &absent, &patch, None),
    );
    let update = match update {
        Err(error) if error.status() == Some(404) => Ok(()),
        other => other.map(drop).map_err(|error| Refusal::from(&error)),
    };
    Ok(ApiAccess { list: answer(list), read: answer(read), update })
}

/// Reads which keys the passwords of the ledger need.
async fn ledger(checked: &Checked, environment: &impl Environment) -> Result<LedgerFacts, String> {
    let ledger = match open_existing(checked, environment).await {
        Ok(ledger) => ledger,
        Err(OpenError::Outdated) => return Ok(LedgerFacts::default()),
        Err(error) => return Err(causes(&error)),
    };
    let (keyring, keys) = (ledger.keyring(), ledger.keys_in_use().await.map_err(|error| causes(&error))?);
    let known = keys.iter().filter(|(id, _)| keyring.has(id));
    let old = known.filter(|(id, _)| keyring.first() != Some(id.as_str())).map(|(_, number)| *number).sum();
    let passwords = keys.values().sum();
    let missing_keys = keys.into_keys().filter(|id| !keyring.has(id)).collect();
    Ok(LedgerFacts { is_current: true, passwords, missing_keys, old })
}

/// Looks an account up that need not exist: the registry answers to those only that may read its accounts.
async fn registry(configured: &CheckedRegistry) -> RegistryFacts {
    let (name, kind) = (configured.name.to_string(), configured.kind);
    let any = AccountName::random(&configured.prefix, 0);
    let found = match configured.connect() {
        Ok(served) => timeout(CHECK_TIMEOUT, served.registry.find(&any)).await.unwrap_or_else(|_elapsed| {
            Err(AccountError::new(Operation::Find, served.registry.login(&any), ErrorKind::TimedOut))
        }),
        Err(error) => Err(error),
    };
    let answer = match found {
        Err(error) if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::NameTaken) => Err(error),
        _ => Ok(()),
    };
    RegistryFacts { name, kind, answer }
}
