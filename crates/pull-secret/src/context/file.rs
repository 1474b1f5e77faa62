//! The file with the contexts: its place, its form, and changes to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use daemon::environment::Environment;
use daemon::settings::hint::{did_you_mean, similar};
use hyperfleet_client::BaseUrl;
use serde_json::{Map, Value, json};

use crate::cli::ContextValues;

/// The variable that names the file.
pub(crate) const VARIABLE: &str = "PULL_SECRET_CONFIG";

/// Longest name of a context.
const LONGEST_NAME: usize = 64;

/// A key of a context.
pub(crate) struct Key {
    /// Its name in the file.
    pub(crate) name: &'static str,
    /// True if its value is the name of a file.
    pub(crate) is_file: bool,
    /// Its value among the flags of `context set`.
    pub(crate) of: fn(&ContextValues) -> Option<&str>,
}

/// The keys of a context, none of which is a credential.
pub(crate) const KEYS: [Key; 12] = [
    Key { name: "api", is_file: false, of: |flags| flags.api.as_deref() },
    Key { name: "tokenFile", is_file: true, of: |flags| flags.token_file.as_deref() },
    Key { name: "caFile", is_file: true, of: |flags| flags.ca_file.as_deref() },
    Key { name: "plainHttpHost", is_file: false, of: |flags| flags.plain_http_host.as_deref() },
    Key { name: "kubeconfig", is_file: true, of: |flags| flags.kubeconfig.as_deref() },
    Key { name: "kubernetesContext", is_file: false, of: |flags| flags.kubernetes_context.as_deref() },
    Key { name: "namespace", is_file: false, of: |flags| flags.namespace.as_deref() },
    Key { name: "project", is_file: false, of: |flags| flags.project.as_deref() },
    Key { name: "location", is_file: false, of: |flags| flags.location.as_deref() },
    Key { name: "brokerConfig", is_file: true, of: |flags| flags.broker_config.as_deref() },
    Key { name: "brokerType", is_file: false, of: |flags| flags.broker_type.as_deref() },
    Key { name: "brokerTopic", is_file: false, of: |flags| flags.broker_topic.as_deref() },
];

/// The values of a context, by their keys.
pub(crate) type Values = BTreeMap<&'static str, String>;

/// The contexts of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contexts {
    /// The one that is used where none is named.
    pub(crate) current: Option<String>,
    pub(crate) all: BTreeMap<String, Values>,
}

/// The place of the file: the variable, else the folder for configuration of the XDG Base Directory Specification. `None`
/// without a home.
pub(crate) fn place(environment: &impl Environment) -> anyhow::Result<Option<PathBuf>> {
    if let Some(path) = environment.text(VARIABLE)? {
        return Ok(Some(path.into()));
    }
    // The specification has relative paths ignored.
    let folder = environment.text("XDG_CONFIG_HOME")?.map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = environment.text("HOME")?.map(|home| Path::new(&home).join(".config"));
    Ok(folder.or(home).map(|folder| folder.join("pull-secret").join("contexts.yaml")))
}

/// Reads the contexts; there are none without the file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Contexts> {
    match fs::read_to_string(path) {
        Ok(text) => parse(&text).with_context(|| format!("{}", path.display())),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Contexts::default())
        }
        Err(error) => bail!("cannot read {}: {}", path.display(), error.kind()),
    }
}

/// Returns true if this user must not read the file.
pub(crate) fn is_denied(path: &Path) -> bool {
    File::open(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Changes the file: one process at a time, and as a whole. It is readable by its owner only.
pub(crate) fn change<T>(path: &Path, change: impl FnOnce(&mut Contexts) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
    // A link stays one: what it leads to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_absent| path.to_path_buf());
    let _held = lock(&path)?;
    let mut contexts = read(&path)?;
    let done = change(&mut contexts)?;
    daemon::file::replace(&path, contexts.render().as_bytes())?;
    Ok(done)
}

/// Waits until no other process changes the file. The lock ends with the returned file.
fn lock(path: &Path) -> anyhow::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let options = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&name);
    let locked = options.and_then(|file| file.lock().map(|()| file));
    locked.with_context(|| format!("cannot lock {}", Path::new(&name).display()))
}

fn parse(text: &str) -> anyhow::Result<Contexts> {
    let options = serde_saphyr::options! { with_snippet: false };
    // The library's message may quote a value.
    let tree: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| match error.location() {
        Some(place) => anyhow::anyhow!("not valid YAML at line {}, column {}", place.line(), place.column()),
        None => anyhow::anyhow!("not valid YAML"),
    })?;
    let mut contexts = Contexts::default();
    for (key, value) in mapping(tree, "the file")? {
        match key.as_str() {
            "current" => contexts.current = Some(text_of(value, "current")?),
            "contexts" => {
                for (name, value) in mapping(value, "contexts")? {
                    check_name(&name)?;
                    let values = values(mapping(value, &format!("contexts.{name}"))?, &name)?;
                    contexts.all.insert(name, values);
                }
            }
            _ => bail!("{key}: unknown key{}", did_you_mean(similar(&key, ["current", "contexts"]))),
        }
    }
    match &contexts.current {
        Some(current) if !contexts.all.contains_key(current) => {
            bail!("current: there is no such context; {}", contexts.known())
        }
        _ => Ok(contexts),
    }
}

fn values(members: Map<String, Value>, context: &str) -> anyhow::Result<Values> {
    let mut values = Values::new();
    for (name, value) in members {
        let place = format!("contexts.{context}.{name}");
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            bail!("{place}: unknown key{}", did_you_mean(similar(&name, KEYS.iter().map(|key| key.name))));
        };
        let value = text_of(value, &place)?;
        check(key, &value).with_context(|| place.clone())?;
        values.insert(key.name, value);
    }
    Ok(values)
}

fn mapping(value: Value, place: &str) -> anyhow::Result<Map<String, Value>> {
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        _ => bail!("{place}: must be a mapping of keys"),
    }
}

fn text_of(value: Value, place: &str) -> anyhow::Result<String> {
    match value {
        Value::String(text) => Ok(text),
        _ => bail!("{place}: must be a text"),
    }
}

/// Checks the name of a context.
pub(crate) fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        bail!("a context's name has up to {LONGEST_NAME} letters, digits, dots, underscores and hyphens");
    }
    Ok(())
}

/// Checks the value of a key. It is not quoted: it may be a credential in the wrong place.
pub(crate) fn check(key: &Key, value: &str) -> anyhow::Result<()> {
    if key.name == "api" {
        let _address: BaseUrl = value.parse()?;
    }
    if value.trim().is_empty() || value.chars().any(char::is_control) {
        bail!("must be one line of text");
    }
    if value.split_once("://").is_some_and(|(_, rest)| rest.contains('@')) {
        bail!("must not hold a credential: give the name of a file that holds it");
    }
    Ok(())
}

// === impl Contexts ===

impl Contexts {
    /// The values of a context.
    pub(crate) fn get(&self, name: &str) -> anyhow::Result<&Values> {
        self.all
            .get(name)
            .with_context(|| format!("there is no context {}; {}", daemon::output::plain(name), self.known()))
    }

    /// The contexts that there are, for a message.
    fn known(&self) -> String {
        if self.all.is_empty() {
            return "there are none yet: `pull-secret context set NAME --api URL` makes one".to_owned();
        }
        let names: Vec<&str> = self.all.keys().map(String::as_str).collect();
        format!("there are: {}", names.join(", "))
    }

    fn render(&self) -> String {
        let mut text = "# Contexts of pull-secret; written by `pull-secret context`.\n".to_owned();
        // Writing to a String cannot fail, here and below. JSON's texts are YAML's too.
        if let Some(current) = &self.current {
            let _infallible = writeln!(text, "current: {}", json!(current));
        }
        text.push_str("contexts:\n");
        for (name, values) in &self.all {
            let _infallible = writeln!(text, "  {}:", json!(name));
            for (key, value) in values {
                let _infallible = writeln!(text, "    {key}: {}", json!(value));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::key("contexts: {a: {apii: x}}", "contexts.a.apii: unknown key; did you mean api?")]
    #[case::top("context: {}", "context: unknown key; did you mean contexts?")]
    #[case::list("[1]", "the file: must be a mapping of keys")]
    #[case::number("contexts: {a: {project: 1}}", "contexts.a.project: must be a text")]
    #[case::current("current: b\ncontexts: {a: {}}", "current: there is no such context; there are: a")]
    #[case::credential("contexts: {a: {api: 'https://u:hunter2@h'}}", "contexts.a.api: the API's address must be")]
    #[case::credential_elsewhere("contexts: {a: {brokerTopic: 'amqp://u:hunter2@h'}}", "must not hold a credential")]
    #[case::name("contexts: {a b: {}}", "a context's name has up to 64")]
    #[case::yaml("contexts: {a: hunter2", "not valid YAML at line 1")]
    fn a_file_that_cannot_be_used_is_refused_with_the_place(#[case] text: &str, #[case] expected: &str) {
        let error = format!("{:#}", parse(text).unwrap_err());
        assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let values = Values::from([("api", "https://api".to_owned()), ("project", "a \"b\" # c: ü".to_owned())]);
        let all = ["null", "1.5", "production"].map(|name| (name.to_owned(), values.clone())).into_iter().collect();
        let contexts = Contexts { current: Some("null".to_owned()), all };
        assert_eq!(parse(&contexts.render()).unwrap(), contexts);
        assert_eq!(parse(&Contexts::default().render()).unwrap(), Contexts::default());
    }

    #[rstest]
    #[case(&[("PULL_SECRET_CONFIG", "/x.yaml"), ("HOME", "/h")], Some("/x.yaml"))]
    #[case(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")], Some("/c/pull-secret/contexts.yaml"))]
    #[case(&[("XDG_CONFIG_HOME", "c"), ("HOME", "/h")], Some("/h/.config/pull-secret/contexts.yaml"))]
    #[case(&[], None)]
    fn places(#[case] environment: &[(&str, &str)], #[case] expected: Option<&str>) {
        let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
        assert_eq!(place(&environment).unwrap().as_deref(), expected.map(Path::new));
    }
}
