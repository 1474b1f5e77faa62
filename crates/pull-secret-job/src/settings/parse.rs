//! From texts to settings, collecting what is wrong instead of stopping at the first.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use daemon::log;
use fleet_model::{ClusterId, names};
use secrecy::SecretString;
use secret_store::google::{self, Endpoint};
use secret_store::{Location, ProjectId, Replica, Replication, label};
use tracing::level_filters::LevelFilter;

use super::table::{self, Setting};
use super::{ChangedLabel, Settings, Source, StoreTask, Task, Values};

/// A longer name is none.
const LONGEST_NAME: usize = 200;
const DEFAULT_RETAIN: usize = 3;
const DEFAULT_API_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_RUN_TIMEOUT: Duration = Duration::from_mins(5);
const DEFAULT_RESULTS_PATH: &str = "/results/adapter-result.json";
const DEFAULT_TERMINATION_LOG: &str = "/dev/termination-log";

pub(super) struct Parser<'a> {
    values: &'a dyn Values,
    pub(super) problems: Vec<String>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(values: &'a dyn Values) -> Self {
        Self { values, problems: Vec::new() }
    }

    /// `None` only when a problem says why.
    pub(super) fn settings(&mut self) -> Option<Settings> {
        // Every line looks at its setting even where an earlier one is missing, so that all problems are named.
        let project = self.required::<ProjectId>(&table::GCP_PROJECT_ID);
        let cluster = self.required::<ClusterId>(&table::CLUSTER_ID);
        let secret = match self.text(&table::SECRET_NAME) {
            Some(name) => self.check(&table::SECRET_NAME, name.parse()),
            None => cluster.as_ref().and_then(|cluster| names::secret_name(cluster).parse().ok()),
        };
        let location = self.parsed::<Location>(&table::GCP_LOCATION);
        let endpoint = self.endpoint();
        let generation = self.parsed(&table::GENERATION);
        // A trace must never be what keeps a run from running.
        let trace = self.text(&table::TRACEPARENT).and_then(|trace| trace.parse().ok());
        let task = self.task(cluster.as_ref(), location.is_some());
        let call_timeout = self.duration(&table::GCP_API_TIMEOUT).unwrap_or(DEFAULT_API_TIMEOUT);
        let run_timeout = self.duration(&table::RUN_TIMEOUT).unwrap_or(DEFAULT_RUN_TIMEOUT);
        let kubernetes_secret = self.kubernetes_secret(cluster.as_ref());
        let results_path = self.results_path();
        let termination_log = self.termination_log();
        let dry_run = self.switch(&table::DRY_RUN);
        self.parsed::<log::Format>(&table::LOG_FORMAT);
        self.log_level();
        Some(Settings {
            task: task?,
            dry_run,
            cluster: cluster?,
            secret: secret?,
            store: google::Settings { project: project?, location, endpoint, call_timeout },
            generation,
            trace,
            run_timeout,
            kubernetes_secret,
            results_path,
            termination_log,
        })
    }

    /// A deletion does not look at what only storing needs.
    fn task(&mut self, cluster: Option<&ClusterId>, is_regional: bool) -> Option<Task> {
        if self.switch(&table::DELETE) {
            return Some(Task::Delete);
        }
        let mut changed_labels = Vec::new();
        let labels = self.labels(cluster, &mut changed_labels);
        let replication = self.replication(is_regional);
        let retain = self.text(&table::RETAIN_VERSIONS).map(|text| text.parse());
        let retain = retain.and_then(|count| {
            self.check(&table::RETAIN_VERSIONS, count.map_err(|_error| "must be a whole number, 0 to keep all"))
        });
        let always_add = self.switch(&table::ALWAYS_ADD_VERSION);
        let digest_key_file = self.text(&table::DIGEST_KEY_FILE).map(PathBuf::from);
        let source = self.source()?;
        Some(Task::Store(Box::new(StoreTask {
            source,
            labels,
            changed_labels,
            replication,
            retain: retain.unwrap_or(DEFAULT_RETAIN),
            always_add,
            digest_key_file,
        })))
    }

    fn source(&mut self) -> Option<Source> {
        let file = self.text(&table::PULL_SECRET_FILE).map(|path| Source::File(path.into()));
        let text = self.verbatim(&table::PULL_SECRET_DATA).map(Source::Text);
        let fake = self.switch(&table::FAKE_PULL_SECRET).then_some(Source::Fake);
        let mut given = [file, text, fake].into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(only), None) => return Some(only),
            (Some(_), Some(_)) => self.problems.push(
                "PULL_SECRET_FILE, PULL_SECRET_DATA and --fake-pull-secret exclude each other: give one".to_owned(),
            ),
            (None, _) => self.problems.push(
                "missing pull secret: set PULL_SECRET_FILE or PULL_SECRET_DATA (--fake-pull-secret for a test)"
                    .to_owned(),
            ),
        }
        None
    }

    fn labels(&mut self, cluster: Option<&ClusterId>, changed: &mut Vec<ChangedLabel>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        let mut write = |key: &str, given: &str| {
            let written = label::sanitized(given);
            if written != given {
                let (key, given, written) = (key.to_owned(), given.to_owned(), written.clone());
                changed.push(ChangedLabel { key, given, written });
            }
            labels.insert(key.to_owned(), written);
        };
        let fixed = [
            (names::LABEL_MANAGED_BY, Some(names::MANAGED_BY.to_owned())),
            (names::LABEL_ADAPTER, Some(names::ADAPTER.to_owned())),
            (names::LABEL_CLUSTER_ID, cluster.map(ToString::to_string)),
            (names::LABEL_CLUSTER_NAME, self.cluster_name()),
            (names::LABEL_RESOURCE_TYPE, Some(names::RESOURCE_TYPE.to_owned())),
            (names::LABEL_SCHEMA, Some(names::SCHEMA.to_owned())),
        ];
        for (key, value) in &fixed {
            if let Some(value) = value {
                write(key, value);
            }
        }
        let further = self.text(&table::SECRET_LABELS).unwrap_or_default();
        let pairs = further.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let mut seen = Vec::new();
        for (index, pair) in pairs.enumerate() {
            let (key, value) = pair.split_once('=').map_or((pair, ""), |(key, value)| (key.trim(), value.trim()));
            let problem = if !pair.contains('=') {
                "is not KEY=VALUE"
            } else if !label::is_key(key) {
                "has a key that is not a lower-case letter and then a-z, 0-9, '_', '-'"
            } else if fixed.iter().any(|(fixed, _)| *fixed == key) {
                "would replace a label of ours"
            } else if seen.contains(&key) {
                "has a key that is given twice"
            } else if is_document(value) {
                "has a value that is no label"
            } else {
                write(key, value);
                seen.push(key);
                continue;
            };
            // Neither key nor value is told: it may be a credential, given in the wrong place.
            self.problems.push(format!("SECRET_LABELS: entry {} {problem}", index + 1));
        }
        if labels.len() > label::MAX_LABELS {
            self.problems.push(format!("SECRET_LABELS: more than {} labels with ours", label::MAX_LABELS));
        }
        labels
    }

    /// The cluster's name, unless it is something that must not be told.
    pub(super) fn cluster_name(&mut self) -> Option<String> {
        let name = self.text(&table::CLUSTER_NAME)?;
        let checked = if is_document(&name) { Err("must be a name") } else { Ok(name) };
        self.check(&table::CLUSTER_NAME, checked)
    }

    fn replication(&mut self, is_regional: bool) -> Replication {
        let given = self.text(&table::REPLICATION_POLICY);
        let automatic = if is_regional { "regional" } else { "automatic" };
        let policy = given.unwrap_or_else(|| automatic.to_owned());
        let with_key = |text: &str| {
            text.split_once('=')
                .map_or((text.to_owned(), None), |(before, key)| (before.to_owned(), Some(key.to_owned())))
        };
        let parsed = match (policy.split_once(':'), with_key(&policy)) {
            _ if policy.split(',').any(|part| part.ends_with('=')) => Err("has an empty key".to_owned()),
            (None, (name, kms_key)) if name == "automatic" && !is_regional => Ok(Replication::Automatic { kms_key }),
            (None, (name, kms_key)) if name == "regional" && is_regional => Ok(Replication::Regional { kms_key }),
            (Some(("user-managed", replicas)), _) if !is_regional => {
                let replica = |text: &str| {
                    let (location, kms_key) = with_key(text.trim());
                    location.parse().map(|location| Replica { location, kms_key }).map_err(|error| error.to_string())
                };
                replicas.split(',').map(replica).collect::<Result<_, _>>().map(Replication::UserManaged)
            }
            _ if is_regional => Err("must be regional[=KMS_KEY] where GCP_LOCATION is set".to_owned()),
            _ => Err("must be automatic[=KMS_KEY] or user-managed:LOCATION[=KMS_KEY],…".to_owned()),
        };
        self.check(&table::REPLICATION_POLICY, parsed).unwrap_or(Replication::Automatic { kms_key: None })
    }

    fn endpoint(&mut self) -> Endpoint {
        let emulator = self.text(&table::SECRET_MANAGER_EMULATOR_HOST);
        let custom = self.parsed(&table::GCP_SECRET_MANAGER_ENDPOINT);
        match (emulator, custom) {
            (None, None) => Endpoint::Google,
            (None, Some(url)) => Endpoint::Custom(url),
            (Some(host), None) => {
                let authority = host.parse::<http::uri::Authority>().ok().filter(|_| !host.contains('@'));
                self.check(&table::SECRET_MANAGER_EMULATOR_HOST, authority.ok_or("must be HOST:PORT"));
                Endpoint::Emulator(host)
            }
            (Some(_), Some(_)) => {
                self.problems
                    .push("SECRET_MANAGER_EMULATOR_HOST and GCP_SECRET_MANAGER_ENDPOINT exclude each other".to_owned());
                Endpoint::Google
            }
        }
    }

    pub(super) fn results_path(&mut self) -> Option<PathBuf> {
        let has_folder =
            |path: &PathBuf| path.parent().is_some_and(|folder| folder.as_os_str().is_empty() || folder.is_dir());
        let Some(given) = self.text(&table::RESULTS_PATH).map(PathBuf::from) else {
            return Some(PathBuf::from(DEFAULT_RESULTS_PATH)).filter(has_folder);
        };
        if !has_folder(&given) {
            self.problems.push("RESULTS_PATH: the folder of that file does not exist".to_owned());
        }
        Some(given)
    }

    pub(super) fn termination_log(&mut self) -> PathBuf {
        self.text(&table::TERMINATION_LOG_PATH).map_or_else(|| PathBuf::from(DEFAULT_TERMINATION_LOG), PathBuf::from)
    }

    pub(super) fn log_level(&mut self) -> Option<LevelFilter> {
        let level = log::level(&self.text(&table::LOG_LEVEL)?);
        self.check(&table::LOG_LEVEL, level)
    }

    pub(super) fn duration(&mut self, setting: &Setting) -> Option<Duration> {
        let text = self.text(setting)?;
        self.check(setting, super::duration(&text).ok_or("must be a duration from 1ms to 24h, such as `30s` or `2m`"))
    }

    pub(super) fn switch(&mut self, setting: &Setting) -> bool {
        match self.text(setting).as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                self.problems.push(format!("{}: must be true or false", setting.name()));
                false
            }
        }
    }

    pub(super) fn required<T: FromStr<Err: Display>>(&mut self, setting: &Setting) -> Option<T> {
        let problems = self.problems.len();
        let parsed = self.parsed(setting);
        if parsed.is_none() && self.problems.len() == problems {
            let flag = setting.flag.unwrap_or_default();
            self.problems.push(format!("missing required environment variable: {} (or --{flag})", setting.name()));
        }
        parsed
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, setting: &Setting) -> Option<T> {
        let text = self.text(setting)?;
        self.check(setting, text.parse())
    }

    pub(super) fn check<T>(&mut self, setting: &Setting, result: Result<T, impl Display>) -> Option<T> {
        result.map_err(|error| self.problems.push(format!("{}: {error}", setting.name()))).ok()
    }

    fn verbatim(&mut self, setting: &Setting) -> Option<SecretString> {
        self.values.verbatim(setting).unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        })
    }

    pub(super) fn text(&mut self, setting: &Setting) -> Option<String> {
        self.values.get(setting).unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        })
    }
}

/// Whether a text is rather a piece of a document than a name.
fn is_document(text: &str) -> bool {
    text.contains(['{', '}', '"', '\n']) || text.len() > LONGEST_NAME
}
