//! The context that a command uses.

use std::collections::BTreeMap;
use std::path::PathBuf;

use adapter::config::JOB_NAMESPACE;
use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::output;
use daemon::settings::Table;
use diagnosis::cluster::KubernetesAccess;

use super::file::{self, Values};
use crate::cli::{ClientFlags, ContextFlag};

/// The variable that names the context.
const VARIABLE: &str = "PULL_SECRET_CONTEXT";

/// The context that a command uses; without one it has no values.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    name: String,
    values: Values,
}

/// A setting that a flag, a variable or a context gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) flag: &'static str,
    pub(crate) variable: &'static str,
    /// Its key in a context.
    pub(crate) key: &'static str,
}

/// The setting of the API's address.
pub(crate) const API: Setting = Setting { flag: "--api", variable: "HYPERFLEET_API_BASE_URL", key: "api" };

/// The setting of the management cluster.
const KUBECONFIG: Setting = Setting { flag: "--kubeconfig", variable: "KUBECONFIG", key: "kubeconfig" };

/// An address as it is compared.
fn bare(address: &str) -> &str {
    address.trim_end_matches('/')
}

/// A value, and the flag, variable or key that gave it.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) origin: String,
    pub(crate) value: String,
}

// === impl Chosen ===

impl Chosen {
    /// The context that the flag names, else the variable, else the current one of the file.
    pub(crate) fn of(flag: &ContextFlag) -> anyhow::Result<Self> {
        let named = match &flag.context {
            Some(name) => Some(("--context", name.clone())),
            None => ProcessEnvironment.text(VARIABLE)?.map(|name| (VARIABLE, name)),
        };
        let contexts = match file::place(&ProcessEnvironment)? {
            // In a Pod the home may be another user's.
            Some(path) if named.is_none() && file::is_denied(&path) => file::Contexts::default(),
            Some(path) => file::read(&path)?,
            None => file::Contexts::default(),
        };
        let Some((origin, name)) = named.or_else(|| contexts.current.clone().map(|name| ("current", name))) else {
            return Ok(Self::default());
        };
        let values = contexts.get(&name).context(origin)?.clone();
        Ok(Self { name, values })
    }

    /// The context of a command that asks the API. A context describes one fleet: where a flag or a variable gives the address of
    /// another API, nothing of the context holds, neither its credentials nor its project.
    pub(crate) fn of_fleet(flags: &ClientFlags) -> anyhow::Result<Self> {
        let context = Self::of(&flags.context)?;
        let given = context.value(&API, flags.api.as_deref())?;
        let is_other = |own: &String| given.as_ref().is_some_and(|given| bare(&given.value) != bare(own));
        if !context.values.get(API.key).is_some_and(is_other) {
            return Ok(context);
        }
        let name = &context.name;
        output::note(format_args!(
            "note: the context {name} is of another API than the given one: no value of it is used"
        ));
        Ok(Self::default())
    }

    /// The value of a flag, else of its variable, else of the context.
    pub(crate) fn value(&self, setting: &Setting, flag: Option<&str>) -> anyhow::Result<Option<Given>> {
        let Setting { flag: name, variable, key } = *setting;
        let given = |origin: &str, value: &str| Some(Given { origin: origin.to_owned(), value: value.to_owned() });
        if let Some(value) = flag {
            return Ok(given(name, value));
        }
        let own = self.values.get(key);
        if let Some(value) = ProcessEnvironment.text(variable)? {
            if own.is_some_and(|own| *own != value) {
                output::note(format_args!("note: {variable} takes precedence over {key} of the context {}", self.name));
            }
            return Ok(given(variable, &value));
        }
        Ok(own.and_then(|value| given(&format!("{key} of the context {}", self.name), value)))
    }

    /// The value of a setting without a variable: that of the flag, else of the context.
    pub(crate) fn or(&self, flag: Option<&String>, key: &str) -> Option<String> {
        flag.or_else(|| self.values.get(key)).cloned()
    }

    /// The namespace of Jobs.
    pub(crate) fn namespace(&self, flag: Option<&String>) -> String {
        self.or(flag, "namespace").unwrap_or_else(|| JOB_NAMESPACE.to_owned())
    }

    /// The kubeconfig of the flag, else of KUBECONFIG, else of the context, whose Kubernetes context holds for the latter two.
    pub(crate) fn kubernetes(&self, flag: Option<&PathBuf>) -> anyhow::Result<KubernetesAccess> {
        if let Some(path) = flag {
            return Ok(KubernetesAccess { kubeconfig: Some(path.clone()), context: None });
        }
        let given = self.value(&KUBECONFIG, None)?;
        let kubeconfig = given.map(|given| given.value.into());
        Ok(KubernetesAccess { kubeconfig, context: self.values.get("kubernetesContext").cloned() })
    }

    /// The kubeconfig of the flag, else of the context.
    pub(crate) fn kubernetes_of_context(&self, flag: Option<&PathBuf>) -> KubernetesAccess {
        if flag.is_some() {
            return KubernetesAccess { kubeconfig: flag.cloned(), context: None };
        }
        let value = |key: &str| self.values.get(key).cloned();
        KubernetesAccess { kubeconfig: value("kubeconfig").map(Into::into), context: value("kubernetesContext") }
    }

    /// Adds the broker's settings of the context to flags of `table`, where neither flag nor variable gives them, nor a
    /// configuration file that a flag or `HYPERFLEET_CONFIG` names.
    pub(crate) fn broker(&self, table: &Table, flags: &mut BTreeMap<&'static str, String>) -> anyhow::Result<()> {
        // A file that was named has the broker of another fleet, or the same settings.
        let is_named = flags.contains_key("config") || ProcessEnvironment.text("HYPERFLEET_CONFIG")?.is_some();
        if let Some(path) = self.values.get("brokerConfig").filter(|_| !is_named) {
            flags.insert("config", path.clone());
        }
        if is_named {
            return Ok(());
        }
        for (flag, key) in [("broker-type", "brokerType"), ("broker-topic", "brokerTopic")] {
            let Some(value) = self.values.get(key) else { continue };
            let row = table.scalars().into_iter().find(|row| row.flag == Some(flag));
            let mut is_set = false;
            for variable in row.map(|row| table.variables_of(row)).unwrap_or_default() {
                is_set |= ProcessEnvironment.text(&variable)?.is_some();
            }
            if !is_set {
                flags.entry(flag).or_insert_with(|| value.clone());
            }
        }
        Ok(())
    }
}
