//! `pull-secret doctor`: checks of the parts that the service depends on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::faults::Faults;
use daemon::output;
use daemon::settings::Loaded;
use diagnosis::doctor::facts::{ApiFacts, BrokerFacts, Facts, FileFacts, StoreFacts, StorePlace};
use diagnosis::doctor::{self, decide, observe};
use jiff::Timestamp;
use message_broker::{Broker, Subscription};
use secret_store::{AnyStore, AzureIdentity, StoreSettings, VaultLogin};
use sentinel::settings::table::EVENTS;
use sentinel::settings::{self, EventsSettings};

use crate::cli::{ClientFlags, DoctorArguments, OutputFormat};
use crate::context::Chosen;
use crate::credentials::checked_if_set;
use crate::{broker, client, store};

/// The variable that Kubernetes sets in every Pod.
const IN_POD: &str = "KUBERNETES_SERVICE_HOST";

/// Checks everything that is configured, all at once.
pub(crate) fn doctor(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let context = Chosen::of_fleet(&arguments.api)?;
    let access = context.kubernetes(arguments.kubeconfig.as_ref())?;
    let namespace = context.namespace(arguments.namespace.as_ref());
    let place =
        store::settings(&arguments.store, &context, observe::CHECK_TIMEOUT).map_err(|error| line(&error)).transpose();
    let mut broker = arguments.broker.0.clone();
    context.broker(&EVENTS, &mut broker)?;
    let mut named = client::files(&arguments.api, &context)?;
    named.extend(access.kubeconfig.clone().map(|path| ("--kubeconfig", path)));
    if let Some(Ok(place)) = &place {
        named.extend(files_of(place)?);
    }
    let checked = checked_if_set(arguments.credentials_config.as_ref())?;
    let files = named.into_iter().map(file).collect();
    let has_kubernetes = access.kubeconfig.is_some() || ProcessEnvironment.text(IN_POD)?.is_some();
    let has_broker = has_broker(&broker)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    let facts = runtime.block_on(async {
        let kubernetes =
            async { if has_kubernetes { Some(observe::kubernetes(&access, &namespace).await) } else { None } };
        let broker = async { if has_broker { Some(observe_broker(broker).await) } else { None } };
        let store = async {
            match place {
                Some(Ok(place)) => Some(Ok(observe_store(&place).await)),
                Some(Err(fault)) => Some(Err(fault)),
                None => None,
            }
        };
        let credentials = async {
            match &checked {
                Some(Ok(checked)) => Some(Ok(Box::pin(observe::credentials(checked, &ProcessEnvironment)).await)),
                Some(Err(fault)) => Some(Err(fault.clone())),
                None => None,
            }
        };
        let (api, kubernetes, broker, store, credentials) =
            tokio::join!(observe_api(&arguments.api, &context), kubernetes, broker, store, credentials);
        Facts { now: Timestamp::now(), api, kubernetes, broker, store, credentials, files }
    });
    let lines = decide::lines(&facts);
    match arguments.output {
        OutputFormat::Table => output::print(doctor::text(&lines))?,
        OutputFormat::Json => {
            let lines = lines.iter().map(|line| Ok(serde_json::to_string(line)? + "\n"));
            output::print(lines.collect::<serde_json::Result<String>>()?)?
        }
    };
    Ok(if doctor::none_failed(&lines) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Observes the API, unless its settings cannot be used.
async fn observe_api(flags: &ClientFlags, context: &Chosen) -> Result<ApiFacts, String> {
    let client = client::client_in(flags, context).map_err(|error| line(&error))?;
    Ok(Box::pin(observe::api(&client)).await)
}

/// An error on one line.
fn line(error: &anyhow::Error) -> String {
    format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Returns true if a broker is set anywhere.
fn has_broker(flags: &BTreeMap<&'static str, String>) -> anyhow::Result<bool> {
    let mut is_set = !flags.is_empty() || Path::new(settings::SEARCHED).exists();
    for variable in EVENTS.variables() {
        is_set |= ProcessEnvironment.text(&variable)?.is_some();
    }
    Ok(is_set)
}

async fn observe_broker(flags: BTreeMap<&'static str, String>) -> Result<BrokerFacts, String> {
    let (broker, subscription) = broker_of(flags).map_err(|error| line(&error))?;
    observe::broker(&broker, subscription).await
}

/// The broker, and the subscription of the adapter.
fn broker_of(flags: BTreeMap<&'static str, String>) -> anyhow::Result<(Broker, Subscription)> {
    let loaded = settings::read::<EventsSettings>(&EVENTS, flags, &ProcessEnvironment).and_then(Loaded::done);
    let EventsSettings { clients, broker } = loaded.map_err(Faults::of_configuration)?;
    let id = clients.broker.subscription_id.or_else(observe::subscription_id).unwrap_or_default();
    let subscription = Subscription::new(&clients.broker.topic.unwrap_or_default(), &id)
        .context("the topic's or subscription's name")?;
    Ok((broker::broker(broker)?, subscription))
}

/// Observes the secret store.
async fn observe_store(settings: &StoreSettings) -> StoreFacts {
    let place = match settings {
        StoreSettings::Google(settings) => StorePlace::Google { project: settings.project.to_string() },
        StoreSettings::Vault(settings) => {
            let folder = [settings.namespace.as_ref(), Some(&settings.mount), Some(&settings.folder)];
            let folder = folder.into_iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join("/");
            StorePlace::Vault { server: settings.address.to_string(), folder }
        }
        StoreSettings::Aws(settings) => {
            StorePlace::Aws { region: settings.region.to_string(), folder: settings.folder.to_string() }
        }
        StoreSettings::Azure(settings) => StorePlace::Azure { vault: settings.vault.to_string() },
    };
    match AnyStore::connect(settings, None).await {
        Ok(store) => observe::store(&store, place).await,
        Err(error) => StoreFacts { place, listed: Err(error), permissions: None },
    }
}

/// A file, and the setting that names it.
type NamedFile = (&'static str, PathBuf);

/// The setting of the certificate authorities of OpenBao or Vault.
const VAULT_AUTHORITIES: &str = "VAULT_CACERT";

/// The setting of the certificate authorities of Azure Key Vault.
const AZURES_AUTHORITIES: &str = "AZURE_CA_FILE";

/// The files that the identity at a store is made of.
fn files_of(store: &StoreSettings) -> anyhow::Result<Vec<NamedFile>> {
    let variables: &[&'static str] = match store {
        StoreSettings::Vault(settings) => {
            let login = match &settings.login {
                VaultLogin::TokenFile(path) => ("VAULT_TOKEN_FILE", path),
                VaultLogin::Jwt { token_file, .. } => ("VAULT_JWT_FILE", token_file),
                VaultLogin::AppRole { secret_id_file, .. } => ("VAULT_SECRET_ID_FILE", secret_id_file),
            };
            let authorities = settings.ca_file.as_ref().map(|path| (VAULT_AUTHORITIES, path));
            let files = [Some(login), authorities].into_iter().flatten();
            return Ok(files.map(|(variable, path)| (variable, path.clone())).collect());
        }
        StoreSettings::Google(_) => &["GOOGLE_APPLICATION_CREDENTIALS", "SECRET_MANAGER_EMULATOR_TOKEN_FILE"],
        StoreSettings::Azure(settings) => {
            let token = match &settings.identity {
                AzureIdentity::Workload { token_file, .. } => Some(("AZURE_FEDERATED_TOKEN_FILE", token_file)),
                AzureIdentity::ManagedIdentity { .. } => None,
            };
            let authorities = settings.ca_file.as_ref().map(|path| (AZURES_AUTHORITIES, path));
            let files = [token, authorities].into_iter().flatten();
            return Ok(files.map(|(variable, path)| (variable, path.clone())).collect());
        }
        StoreSettings::Aws(_) => &["AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"],
    };
    let mut files = Vec::new();
    for variable in variables {
        files.extend(ProcessEnvironment.text(variable)?.map(|path| (*variable, path.into())));
    }
    Ok(files)
}

/// Observes a file that is set.
fn file((setting, path): NamedFile) -> FileFacts {
    if [client::CA_FILE.flag, VAULT_AUTHORITIES, AZURES_AUTHORITIES].contains(&setting) {
        observe::certificate_file(setting, path)
    } else {
        observe::credential_file(setting, path)
    }
}
