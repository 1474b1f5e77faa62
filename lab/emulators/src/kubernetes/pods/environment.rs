//! A container's environment and arguments, resolved. Pure: the caller supplies the referenced objects.

use std::collections::BTreeMap;

use super::spec::{Container, Data, KeyRef, NameRef, Pod, Sources, ValueFrom, Variable};

/// A container's variables.
pub(crate) type Environment = BTreeMap<String, String>;

/// The variables of `container`, or why it cannot be started (`CreateContainerConfigError`), without any value.
pub(crate) fn resolve(pod: &Pod, container: &Container, sources: &dyn Sources) -> Result<Environment, String> {
    let mut environment = Environment::new();
    for from in &container.env_from {
        let (object, kind, data) = match (&from.secret_ref, &from.config_map_ref) {
            (Some(object), _) => (object, "secret", sources.secret(&object.name)),
            (None, Some(object)) => (object, "configmap", sources.config_map(&object.name)),
            (None, None) => continue,
        };
        let NameRef { name, optional } = object;
        let data = match data {
            Some(data) => data,
            None if *optional => continue,
            None => return Err(format!("{kind} {name:?} not found")),
        };
        let named = data.iter().filter(|(key, _)| !key.is_empty() && !key.contains('='));
        environment.extend(named.map(|(key, value)| (format!("{}{key}", from.prefix), text(value))));
    }
    for Variable { name, value, value_from } in &container.env {
        let value = match value_from {
            None => Some(expand(value, &environment)),
            Some(from) => referred(pod, from, sources)?,
        };
        if let Some(value) = value {
            environment.insert(name.clone(), value);
        }
    }
    Ok(environment)
}

/// The value that a reference points to; none if it may be missing and is.
fn referred(pod: &Pod, from: &ValueFrom, sources: &dyn Sources) -> Result<Option<String>, String> {
    if let Some(field) = &from.field {
        let path = &field.field_path;
        return pod.field(path).map(Some).ok_or_else(|| format!("unsupported fieldPath: {path}"));
    }
    if let Some(key) = &from.secret {
        return keyed(pod, key, ("secret", "Secret"), sources.secret(&key.name));
    }
    if let Some(key) = &from.config_map {
        return keyed(pod, key, ("configmap", "ConfigMap"), sources.config_map(&key.name));
    }
    Err("the emulator knows no such source of a variable".to_owned())
}

fn keyed(pod: &Pod, key: &KeyRef, kind: (&str, &str), data: Option<Data>) -> Result<Option<String>, String> {
    let KeyRef { name, key, optional } = key;
    let Some(data) = data else {
        return if *optional { Ok(None) } else { Err(format!("{} {name:?} not found", kind.0)) };
    };
    match data.get(key) {
        Some(value) => Ok(Some(text(value))),
        None if *optional => Ok(None),
        None => Err(format!("couldn't find key {key} in {} {}/{name}", kind.1, pod.metadata.namespace)),
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// Replaces `$(NAME)` by the variable's value; `$$` stands for `$`, and a name that is not known for itself.
pub(crate) fn expand(text: &str, environment: &Environment) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let name = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        let Some((name, after)) = name else {
            expanded.push('$');
            rest = after;
            continue;
        };
        match environment.get(name) {
            Some(value) => expanded.push_str(value),
            None => expanded.extend(["$(", name, ")"]),
        }
        rest = after;
    }
    expanded.push_str(rest);
    expanded
}
