//! Checks the settings as given and makes those of a run of them, collecting all problems.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use fleet_model::{ClusterId, names};
use secret_store::{Endpoint, Replica, Replication, label};

use super::table::Given;
use super::vault::StoreKind;
use super::{ChangedLabel, Settings, Source, StoreTask, Task};
use crate::decide::Identity;

/// Maximum length of a name.
const LONGEST_NAME: usize = 200;
/// File that the result is written to where none is named, if its folder exists.
const DEFAULT_RESULTS_PATH: &str = "/results/adapter-result.json";

pub(super) struct Parser<'a> {
    pub(super) given: &'a Given,
    pub(super) problems: Vec<String>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(given: &'a Given) -> Self {
        Self { given, problems: Vec::new() }
    }

    /// Returns `None` only when a problem says why.
    pub(super) fn settings(&mut self) -> Option<Settings> {
        // Every line checks its setting even if an earlier one is missing, so that all problems are named.
        let given = self.given;
        let store = if given.kubernetes_secret_only { Some(None) } else { self.store().map(Some) };
        let mirror = if given.kubernetes_secret_only { None } else { self.mirror() };
        let cluster = self.required::<ClusterId>("CLUSTER_ID", "cluster-id", given.cluster_id.as_deref());
        let secret = match &given.secret_name {
            Some(name) => self.check("SECRET_NAME", name.parse()),
            None => cluster.as_ref().and_then(|cluster| names::secret_name(cluster).parse().ok()),
        };
        let generation = self.parsed("GENERATION", given.generation.as_deref());
        let incarnation = self.parsed("INCARNATION", given.incarnation.as_deref());
        // A malformed trace must never prevent a run.
        let trace = given.traceparent.as_deref().and_then(|trace| trace.parse().ok());
        let task = self.task(cluster.as_ref());
        let kubernetes_secret = self.kubernetes_secret(cluster.as_ref());
        self.problems.extend(given.tracing.faults());
        let results_path = self.results_path();
        // A dry run writes its result only to a file that is asked for: a reader of `success` would take the secret for
        // stored.
        let results_path = results_path.filter(|_| !given.dry_run || given.results_path.is_some());
        Some(Settings {
            task: task?,
            dry_run: given.dry_run,
            identity: Identity { cluster: cluster?, incarnation, generation },
            secret: secret?,
            store: store?,
            mirror,
            trace,
            run_timeout: given.run_timeout,
            kubernetes_secret,
            results_path,
            termination_log: given.termination_log_path.clone(),
        })
    }

    /// Settings that only storing needs do not matter to a deletion.
    fn task(&mut self, cluster: Option<&ClusterId>) -> Option<Task> {
        let given = self.given;
        if given.kubernetes_secret_only && !given.delete {
            self.problems.push("--kubernetes-secret-only: has no effect without --delete".to_owned());
        }
        match (given.delete, given.kubernetes_secret_only) {
            (true, true) => return Some(Task::DeleteKubernetesSecret),
            (true, false) => return Some(Task::Delete),
            (false, _) => {}
        }
        let mut changed_labels = Vec::new();
        let labels = self.labels(cluster, &mut changed_labels);
        let replication =
            self.replication("REPLICATION_POLICY", given.secret_store, given.replication_policy.as_deref());
        let mirror_replication = given.secret_store_mirror.map(|kind| {
            self.replication("REPLICATION_POLICY_MIRROR", kind, given.replication_policy_mirror.as_deref())
        });
        let source = self.source()?;
        Some(Task::Store(Box::new(StoreTask {
            source,
            labels,
            changed_labels,
            replication,
            mirror_replication: mirror_replication.unwrap_or(Replication::Automatic { kms_key: None }),
            adopt: given.adopt,
            retain: given.retain_versions,
            always_add: given.always_add_version,
            digest_key_file: given.digest_key_file.clone(),
        })))
    }

    fn source(&mut self) -> Option<Source> {
        let file = self.given.pull_secret_file.clone().map(Source::File);
        let text = self.given.pull_secret_data.clone().map(Source::Text);
        let fake = self.given.fake_pull_secret.then_some(Source::Fake);
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
        let further = self.given.secret_labels.clone().unwrap_or_default();
        let pairs = further.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let mut keys = Vec::new();
        for (index, pair) in pairs.enumerate() {
            let (key, value) = pair.split_once('=').map_or((pair, ""), |(key, value)| (key.trim(), value.trim()));
            let problem = if !pair.contains('=') {
                "is not KEY=VALUE"
            } else if !label::is_key(key) {
                "has a key that is not a lower-case letter and then a-z, 0-9, '_', '-'"
            } else if fixed.iter().any(|(fixed, _)| *fixed == key) {
                "would replace a label of this project"
            } else if keys.contains(&key) {
                "has a key that is given twice"
            } else if is_document(value) {
                "has a value that is no label"
            } else {
                write(key, value);
                keys.push(key);
                continue;
            };
            // Neither key nor value is printed: a credential is easily given in the wrong place.
            self.problems.push(format!("SECRET_LABELS: entry {} {problem}", index + 1));
        }
        if labels.len() > label::MAX_LABELS {
            self.problems
                .push(format!("SECRET_LABELS: more than {} labels with those of this project", label::MAX_LABELS));
        }
        labels
    }

    /// Returns the cluster's name, unless it resembles a piece of a document, which must not be printed.
    pub(super) fn cluster_name(&mut self) -> Option<String> {
        let name = self.given.cluster_name.clone()?;
        let checked = if is_document(&name) { Err("must be a name") } else { Ok(name) };
        self.check("CLUSTER_NAME", checked)
    }

    /// Returns the replication of new secrets in a store of this kind.
    fn replication(&mut self, name: &str, kind: StoreKind, given: Option<&str>) -> Replication {
        let is_regional = kind == StoreKind::Google && self.given.gcp_location.is_some();
        let policy = given.unwrap_or(if is_regional { "regional" } else { "automatic" });
        let with_key = |text: &str| {
            text.split_once('=')
                .map_or((text.to_owned(), None), |(before, key)| (before.to_owned(), Some(key.to_owned())))
        };
        let parsed = match (policy.strip_prefix("user-managed:"), with_key(policy)) {
            _ if policy.split(',').any(|part| part.ends_with('=')) => Err("has an empty key".to_owned()),
            (None, (name, kms_key)) if name == "automatic" && !is_regional => Ok(Replication::Automatic { kms_key }),
            (None, (name, kms_key)) if name == "regional" && is_regional => Ok(Replication::Regional { kms_key }),
            (Some(replicas), _) if !is_regional => {
                let replica = |text: &str| {
                    let (location, kms_key) = with_key(text.trim());
                    location.parse().map(|location| Replica { location, kms_key }).map_err(|error| error.to_string())
                };
                replicas.split(',').map(replica).collect::<Result<_, _>>().map(Replication::Locations)
            }
            _ if is_regional => Err("must be regional[=KMS_KEY] where GCP_LOCATION is set".to_owned()),
            _ => Err("must be automatic[=KMS_KEY] or user-managed:LOCATION[=KMS_KEY],…".to_owned()),
        };
        self.check(name, parsed).unwrap_or(Replication::Automatic { kms_key: None })
    }

    pub(super) fn endpoint(&mut self) -> Endpoint {
        let emulator = self.given.secret_manager_emulator_host.clone();
        let token_file = self.given.secret_manager_emulator_token_file.clone();
        if token_file.is_some() && emulator.is_none() {
            self.problems.push(
                "SECRET_MANAGER_EMULATOR_TOKEN_FILE has no effect without SECRET_MANAGER_EMULATOR_HOST".to_owned(),
            );
        }
        let custom = self.parsed("GCP_SECRET_MANAGER_ENDPOINT", self.given.gcp_secret_manager_endpoint.as_deref());
        match (emulator, custom) {
            (None, None) => Endpoint::Provider,
            (None, Some(url)) => Endpoint::Custom(url),
            (Some(host), None) => {
                let authority = host.parse::<http::uri::Authority>().ok().filter(|_| !host.contains('@'));
                self.check("SECRET_MANAGER_EMULATOR_HOST", authority.ok_or("must be HOST:PORT"));
                Endpoint::Emulator { host, token_file }
            }
            (Some(_), Some(_)) => {
                self.problems
                    .push("SECRET_MANAGER_EMULATOR_HOST and GCP_SECRET_MANAGER_ENDPOINT exclude each other".to_owned());
                Endpoint::Provider
            }
        }
    }

    pub(super) fn results_path(&mut self) -> Option<PathBuf> {
        let has_folder =
            |path: &PathBuf| path.parent().is_some_and(|folder| folder.as_os_str().is_empty() || folder.is_dir());
        let Some(given) = self.given.results_path.clone() else {
            return Some(PathBuf::from(DEFAULT_RESULTS_PATH)).filter(has_folder);
        };
        if !has_folder(&given) {
            self.problems.push("RESULTS_PATH: the folder of that file does not exist".to_owned());
        }
        Some(given)
    }

    /// Parses a setting that is required; the wording of a missing one is HyperFleet's.
    pub(super) fn required<T: FromStr<Err: Display>>(
        &mut self,
        name: &str,
        flag: &str,
        text: Option<&str>,
    ) -> Option<T> {
        if text.is_none() {
            self.problems.push(format!("missing required environment variable: {name} (or --{flag})"));
        }
        self.parsed(name, text)
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, name: &str, text: Option<&str>) -> Option<T> {
        self.check(name, text?.parse())
    }

    pub(super) fn check<T>(&mut self, name: &str, result: Result<T, impl Display>) -> Option<T> {
        result.map_err(|error| self.problems.push(format!("{name}: {error}"))).ok()
    }
}

/// Returns true for a text that is rather a piece of a document than a name.
fn is_document(text: &str) -> bool {
    text.contains(['{', '}', '"', '\n']) || text.len() > LONGEST_NAME
}
