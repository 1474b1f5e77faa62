//! The choice of embedded and real parts, validated before anything starts.

mod store;

use std::path::PathBuf;
use std::time::Duration;

use daemon::environment::Environment;
use daemon::settings::traces::{Export, Tracing};
use message_broker::Broker;
use message_broker::pubsub::{self, PubSub};
use message_broker::rabbitmq::{self, RabbitMq};
use secrecy::{ExposeSecret as _, SecretString};
use secret_store::{AwsSettings, AzureSettings, VaultSettings};
use tracing::level_filters::LevelFilter;

use crate::cli::{StoreKind, UpArguments};
use crate::scenario::Scenario;
use crate::scripted::Faults;

pub(crate) use store::store;

/// The variable that may hold a broker's address with its password.
const BROKER_VARIABLE: &str = "LOCAL_BROKER";
/// The variable that may hold a database's address with its password.
const DATABASE_VARIABLE: &str = "LOCAL_DATABASE_URL";

/// The variable that names the file with the token for OpenBao or Vault.
pub(crate) const TOKEN_FILE_VARIABLE: &str = "VAULT_TOKEN_FILE";
/// The variable that names another address of AWS Secrets Manager.
pub(crate) const AWS_ENDPOINT_VARIABLE: &str = "AWS_ENDPOINT_URL_SECRETS_MANAGER";
/// The variables of a workload identity at Azure, and of its authorities.
pub(crate) const TENANT_VARIABLE: &str = "AZURE_TENANT_ID";
pub(crate) const CLIENT_VARIABLE: &str = "AZURE_CLIENT_ID";
pub(crate) const ASSERTION_VARIABLE: &str = "AZURE_FEDERATED_TOKEN_FILE";
pub(crate) const AUTHORITY_VARIABLE: &str = "AZURE_AUTHORITY_HOST";
pub(crate) const AZURE_CA_VARIABLE: &str = "AZURE_CA_FILE";
/// One call to the secret store may take so long.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(30);

/// The validated options.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The data directory; `None` removes all data at the end.
    pub(crate) data_dir: Option<PathBuf>,
    /// The first of the ports; 0 for free ones.
    pub(crate) port: u16,
    /// A real cluster's kubeconfig.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A real broker; `None` for the embedded one.
    pub(crate) broker: Option<Broker>,
    /// A real PostgreSQL; `None` for a file.
    pub(crate) database: Option<SecretString>,
    /// The secret store to use.
    pub(crate) store: Store,
    /// The mirror to use.
    pub(crate) mirror: Option<Store>,
    /// The image that Jobs run.
    pub(crate) image: String,
    /// The least severe events that are logged.
    pub(crate) level: LevelFilter,
    /// The fleet to prepare.
    pub(crate) scenario: Option<Scenario>,
    /// The scripted faults of the embedded emulators: one's own, then those of the scenario.
    pub(crate) faults: Faults,
    /// The export of traces, by OpenTelemetry's variables.
    pub(crate) export: Option<Export>,
}

/// The secret store to use.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// The emulator of Secret Manager, in this process.
    Embedded,
    /// An emulator of Secret Manager elsewhere, `HOST:PORT`.
    Emulator(String),
    /// Google's Secret Manager.
    Google,
    /// OpenBao or Vault.
    Vault(VaultSettings),
    /// AWS Secrets Manager.
    Aws(AwsSettings),
    /// The emulator of Azure Key Vault, in this process.
    EmbeddedAzure,
    /// Azure Key Vault.
    Azure(AzureSettings),
}

// === impl Options ===

impl Options {
    /// Everything embedded, in memory and on free ports.
    pub(crate) fn embedded(level: LevelFilter) -> Self {
        Self {
            data_dir: None,
            port: 0,
            kubeconfig: None,
            broker: None,
            database: None,
            store: Store::Embedded,
            mirror: None,
            image: "pull-secret".to_owned(),
            level,
            scenario: None,
            faults: Faults::default(),
            export: None,
        }
    }

    /// The options of flags and environment, or everything that is wrong with them, without a value.
    pub(crate) fn of(arguments: &UpArguments, environment: &impl Environment) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let mut keep = |fault: String| faults.push(fault);
        let level = daemon::log::level(&arguments.log_level);
        let level = level.map_err(|error| keep(format!("--log-level: {error}"))).unwrap_or(LevelFilter::INFO);
        if !(arguments.port == 0 || (1024..=65_000).contains(&arguments.port)) {
            keep("--port: must be 0 or 1024 to 65000".to_owned());
        }
        let broker = given("--broker", arguments.broker.as_deref(), BROKER_VARIABLE, environment);
        let broker = broker.and_then(|given| given.map(|(name, url)| broker_of(name, &url, environment)).transpose());
        let broker = broker.map_err(&mut keep).unwrap_or_default();
        let database = given("--database-url", arguments.database_url.as_deref(), DATABASE_VARIABLE, environment);
        let database = database.and_then(|given| given.map(|(name, url)| database_of(name, url)).transpose());
        let database = database.map_err(&mut keep).unwrap_or_default();
        let store = match (arguments.store.store, arguments.secret_manager.as_deref()) {
            (StoreKind::Google, place) => secret_manager(place),
            (other, None) => store(other, environment),
            (_, Some(_)) => Err("--secret-manager: has no effect with --store".to_owned()),
        };
        let store = store.map_err(&mut keep);
        let mirror = match arguments.mirror {
            Some(mirror) if mirror == arguments.store.store => {
                Err("--mirror: must be another store than --store".to_owned())
            }
            Some(mirror) => self::store(mirror, environment).map(Some),
            None => Ok(None),
        };
        let mirror = mirror.map_err(&mut keep).unwrap_or_default();
        let kubeconfig = arguments.kubeconfig.clone();
        if kubeconfig.as_ref().is_some_and(|path| !path.is_file()) {
            keep("--kubeconfig: there is no such file".to_owned());
        }
        let scripted = scripted(arguments).map_err(&mut keep);
        let export = Tracing::of_environment(environment).map_err(|more| faults.extend(more)).unwrap_or_default();
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            data_dir: arguments.data_dir.clone(),
            port: arguments.port,
            kubeconfig,
            broker,
            database,
            store: store.unwrap_or(Store::Embedded),
            mirror,
            image: arguments.image.clone(),
            level,
            scenario: arguments.scenario,
            faults: scripted.unwrap_or_default(),
            export,
        })
    }

    /// Warnings about options that do not work together without further setup.
    pub(crate) fn warnings(&self) -> Vec<&'static str> {
        let mut warnings = Vec::new();
        if self.kubeconfig.is_some() && matches!(self.store, Store::Embedded | Store::EmbeddedAzure) {
            warnings.push(
                "Jobs run in your cluster, where the emulator of Secret Manager on this machine's loopback is not: give \
                 --secret-manager too",
            );
        }
        warnings
    }
}

/// The scripted faults, which only an embedded emulator can inject.
fn scripted(arguments: &UpArguments) -> Result<Faults, String> {
    let mut faults = Faults::default();
    faults.extend(arguments.fault.iter().cloned());
    if !faults.kubernetes.is_empty() && arguments.kubeconfig.is_some() {
        return Err("--fault: a real cluster injects no faults; leave --kubeconfig out".to_owned());
    }
    let has_other_store = arguments.secret_manager.is_some() || arguments.store.store != StoreKind::Google;
    if !faults.secret_manager.is_empty() && has_other_store {
        return Err("--fault: only the embedded Secret Manager injects faults; leave --secret-manager and --store out"
            .to_owned());
    }
    if let Some(scenario) = arguments.scenario {
        if arguments.kubeconfig.is_some() || has_other_store {
            return Err(
                "--scenario: needs the embedded parts; leave --kubeconfig, --secret-manager and --store out".to_owned()
            );
        }
        let planted = scenario.faults().map_err(|error| format!("--scenario: {error}"))?;
        faults.secret_manager.extend(planted.secret_manager);
        faults.kubernetes.extend(planted.kubernetes);
    }
    Ok(faults)
}

/// The flag's value, or the variable's, with the name of where it stands. A password in a flag shows in process lists.
fn given(
    flag: &'static str,
    value: Option<&str>,
    variable: &'static str,
    environment: &impl Environment,
) -> Result<Option<(&'static str, SecretString)>, String> {
    if let Some(value) = value {
        let authority = value.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        if user.contains(':') || value.contains("password=") {
            return Err(format!("{flag}: everybody could see the password in the process list; give it as {variable}"));
        }
        return Ok(Some((flag, value.trim().into())));
    }
    let text = environment.text(variable).map_err(|error| error.to_string())?;
    Ok(text.map(|text| (variable, text.into())))
}

fn broker_of(name: &str, url: &SecretString, environment: &impl Environment) -> Result<Broker, String> {
    let text = url.expose_secret();
    if text.starts_with("amqp://") || text.starts_with("amqps://") {
        let made = RabbitMq::new(rabbitmq::Settings::new(url.clone()));
        return made.map(Broker::RabbitMq).map_err(|error| format!("{name}: {error}"));
    }
    let project = text.strip_prefix("pubsub://").filter(|project| !project.is_empty() && !project.contains(['/', '@']));
    let project = project.ok_or_else(|| format!("{name}: must be amqp://HOST:PORT/VHOST or pubsub://PROJECT"))?;
    let emulator = environment.text("PUBSUB_EMULATOR_HOST").map_err(|error| error.to_string())?;
    Ok(Broker::PubSub(PubSub::new(pubsub::Settings {
        endpoint: emulator.map_or(pubsub::Endpoint::Google, pubsub::Endpoint::Emulator),
        provision: pubsub::Provision::Create,
        ..pubsub::Settings::new(project)
    })))
}

fn database_of(name: &str, url: SecretString) -> Result<SecretString, String> {
    let text = url.expose_secret();
    if text.starts_with("postgresql://") || text.starts_with("postgres://") {
        return Ok(url);
    }
    Err(format!("{name}: must be postgresql://USER@HOST:PORT/NAME"))
}

fn secret_manager(value: Option<&str>) -> Result<Store, String> {
    match value.map(str::trim) {
        None => Ok(Store::Embedded),
        Some("google") => Ok(Store::Google),
        Some(place) => {
            let port = place.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !place.contains(['/', '@', ' ']));
            let is_address = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            is_address
                .then(|| Store::Emulator(place.to_owned()))
                .ok_or_else(|| "--secret-manager: must be `google` or an emulator's HOST:PORT".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Parser as _;
    use rstest::rstest;
    use secret_store::VaultLogin;

    use super::*;
    use crate::cli::{Cli, Command};

    fn options(line: &str, environment: &BTreeMap<&str, &str>) -> Result<Options, Vec<String>> {
        let arguments = ["pull-secret-local", "up"].into_iter().chain(line.split_whitespace());
        let Command::Up(arguments) = Cli::try_parse_from(arguments).unwrap().command else { panic!("must parse") };
        Options::of(&arguments, environment)
    }

    #[rstest]
    #[case("--broker amqp://guest:Zq7word@localhost:5672/", "--broker: everybody could see the password")]
    #[case("--broker nats://Zq7word", "--broker: must be amqp://")]
    #[case("--broker pubsub://", "--broker: must be amqp://")]
    #[case("--database-url postgresql://me:Zq7word@localhost/x", "--database-url: everybody could see")]
    #[case("--database-url postgresql://localhost/x?password=Zq7word", "--database-url: everybody could see")]
    #[case("--database-url mysql://Zq7word", "--database-url: must be postgresql://")]
    #[case("--secret-manager Zq7word", "--secret-manager: must be")]
    #[case("--secret-manager Zq7word:@host:1", "--secret-manager: must be")]
    #[case("--kubeconfig /nowhere/Zq7word", "--kubeconfig: there is no such file")]
    #[case("--port 80", "--port: must be")]
    #[case("--log-level loud", "--log-level: must be")]
    #[case("--secret-manager google --fault addVersion:hang", "--fault: only the embedded Secret Manager")]
    #[case("--secret-manager google --scenario on-call-50", "--scenario: needs the embedded parts")]
    #[case("--store vault", "--store vault: VAULT_ADDR is not set")]
    #[case("--store vault --secret-manager google", "--secret-manager: has no effect with --store")]
    #[case("--store aws", "--store aws: AWS_REGION is not set")]
    #[case("--mirror aws", "--store aws: AWS_REGION is not set")]
    #[case("--mirror google", "--mirror: must be another store than --store")]
    fn what_cannot_be_is_refused_by_its_name_and_not_quoted(#[case] line: &str, #[case] fault: &str) {
        let faults = options(line, &BTreeMap::new()).unwrap_err();
        assert!(faults.len() == 1 && faults[0].starts_with(fault) && !faults[0].contains("Zq7word"), "{faults:?}");
    }

    #[rstest]
    #[case("https://Vault.example.com:8200/", None)]
    #[case("http://vault.example.com/Zq7word", Some("VAULT_ADDR: must be an https:// address"))]
    fn vault_is_named_by_variables(#[case] address: &str, #[case] fault: Option<&str>) {
        let environment = BTreeMap::from([("VAULT_ADDR", address), ("VAULT_TOKEN_FILE", "/token")]);
        match (options("--store vault", &environment), fault) {
            (Ok(Options { store: Store::Vault(vault), .. }), None) => {
                assert_eq!(vault.address.as_str(), "https://vault.example.com:8200");
                assert_eq!(vault.login, VaultLogin::TokenFile("/token".into()));
            }
            (Err(faults), Some(fault)) => {
                assert!(faults.len() == 1 && faults[0].starts_with(fault) && !faults[0].contains("Zq7"), "{faults:?}");
            }
            (options, _) => panic!("{options:?}"),
        }
        let faults = options("--store vault --scenario on-call-50", &environment).unwrap_err();
        assert!(faults.iter().any(|fault| fault.starts_with("--scenario: needs the embedded parts")), "{faults:?}");
    }

    #[rstest]
    #[case(&[], Ok("embedded"))]
    #[case(&[("AZURE_KEY_VAULT_URL", "https://f.vault.azure.net")], Err("--store azure: AZURE_TENANT_ID is not set"))]
    #[case(
        &[
            ("AZURE_KEY_VAULT_URL", "https://f.vault.azure.net/"),
            ("AZURE_TENANT_ID", "t"),
            ("AZURE_CLIENT_ID", "c"),
            ("AZURE_FEDERATED_TOKEN_FILE", "/token"),
        ],
        Ok("https://f.vault.azure.net")
    )]
    fn azure_is_named_by_variables_or_embedded(#[case] given: &[(&str, &str)], #[case] expected: Result<&str, &str>) {
        let chosen = options("--store azure", &given.iter().copied().collect());
        let found = match &chosen {
            Ok(Options { store: Store::EmbeddedAzure, .. }) => Ok("embedded"),
            Ok(Options { store: Store::Azure(azure), .. }) => Ok(azure.vault.as_str()),
            Ok(other) => panic!("{other:?}"),
            Err(faults) => Err(faults[0].as_str()),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_variables_of_traces_are_checked() {
        let environment = BTreeMap::from([("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        let faults = options("", &environment).unwrap_err();
        assert_eq!(faults, ["OTEL_EXPORTER_OTLP_PROTOCOL: must be one of http/protobuf"]);
        let environment = BTreeMap::from([("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")]);
        assert!(options("", &environment).unwrap().export.is_some());
    }

    #[test]
    fn a_password_may_stand_in_a_variable_and_a_flag_comes_first() {
        let environment = BTreeMap::from([
            ("LOCAL_BROKER", "amqp://guest:guest@localhost:5672/"),
            ("LOCAL_DATABASE_URL", "postgresql://me:word@localhost/x"),
        ]);
        let both = options("", &environment).unwrap();
        assert!(matches!(both.broker, Some(Broker::RabbitMq(_))));
        assert_eq!(both.database.unwrap().expose_secret(), "postgresql://me:word@localhost/x");
        let flag = options("--broker pubsub://my-project-1", &environment).unwrap();
        assert!(matches!(flag.broker, Some(Broker::PubSub(_))));
    }

    #[test]
    fn a_real_cluster_with_an_embedded_secret_manager_is_warned_of() {
        assert_eq!(options("", &BTreeMap::new()).unwrap().warnings(), Vec::<&str>::new());
        let mut options = Options::embedded(LevelFilter::INFO);
        options.kubeconfig = Some("x".into());
        assert_eq!(options.warnings().len(), 1);
    }
}
