//! A set of fields, a tree whose edges are written as `FieldsV1` writes them: `f:name`, `k:{"key":"value"}`, `v:value`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Some of an object's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    /// True if this very field is in the set.
    pub(crate) own: bool,
    pub(crate) below: BTreeMap<String, Self>,
}

/// An operand of a combination of sets.
#[derive(Clone, Copy)]
enum Keep {
    InBoth,
    NotInOther,
}

impl Set {
    pub(crate) fn insert(&mut self, path: &[String]) {
        self.reach(path).own = true;
    }

    /// The part of the set at a path, made if need be.
    fn reach(&mut self, path: &[String]) -> &mut Self {
        let mut set = self;
        for step in path {
            set = set.below.entry(step.clone()).or_default();
        }
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.own && self.below.values().all(Self::is_empty)
    }

    #[must_use]
    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.own |= other.own;
        for (step, theirs) in &other.below {
            let ours = self.below.remove(step).unwrap_or_default();
            self.below.insert(step.clone(), ours.union(theirs));
        }
        self
    }

    #[must_use]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.combine(Some(other), Keep::NotInOther)
    }

    /// The fields that are neither in the other set nor around a field of it.
    #[must_use]
    pub(crate) fn without(&self, other: &Self) -> Self {
        let below = self.below.iter().map(|(step, set)| match other.below.get(step) {
            Some(theirs) => (step.clone(), set.without(theirs)),
            None => (step.clone(), set.clone()),
        });
        Self { own: self.own && other.is_empty(), below: below.filter(|(_, set)| !set.is_empty()).collect() }
    }

    #[must_use]
    pub(crate) fn and(&self, other: &Self) -> Self {
        self.combine(Some(other), Keep::InBoth)
    }

    fn combine(&self, other: Option<&Self>, keep: Keep) -> Self {
        let in_other = other.is_some_and(|other| other.own);
        let own = self.own && in_other == matches!(keep, Keep::InBoth);
        let below = self.below.iter().map(|(step, set)| {
            let theirs = other.and_then(|other| other.below.get(step));
            (step.clone(), set.combine(theirs, keep))
        });
        Self { own, below: below.filter(|(_, set)| !set.is_empty()).collect() }
    }

    /// Takes out the fields at and below a path of plain names.
    pub(crate) fn cut(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else { return };
        let step = format!("f:{first}");
        if rest.is_empty() {
            self.below.remove(&step);
        } else if let Some(set) = self.below.get_mut(&step) {
            set.cut(rest);
            if set.is_empty() {
                self.below.remove(&step);
            }
        }
    }

    /// The paths of the fields, as refusals write them: `.spec.containers[name="a"].image`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, path: &str, paths: &mut Vec<String>) {
        if self.own {
            paths.push(path.to_owned());
        }
        for (step, set) in &self.below {
            set.collect(&format!("{path}{}", shown(step)), paths);
        }
    }

    pub(crate) fn json(&self) -> Value {
        let mut members = Map::new();
        if self.own && !self.below.is_empty() {
            members.insert(".".to_owned(), Value::Object(Map::new()));
        }
        members.extend(self.below.iter().map(|(step, set)| (step.clone(), set.json())));
        Value::Object(members)
    }

    /// Reads `FieldsV1`.
    pub(crate) fn read(fields: &Value) -> Self {
        let mut set = Self::branch(fields);
        set.own = false;
        set
    }

    fn branch(fields: &Value) -> Self {
        let Some(members) = fields.as_object() else { return Self::default() };
        let own = members.is_empty() || members.contains_key(".");
        let below = members.iter().filter(|(step, _)| *step != ".");
        Self { own, below: below.map(|(step, fields)| (step.clone(), Self::branch(fields))).collect() }
    }
}

/// One step of a path as refusals write it.
fn shown(step: &str) -> String {
    match step.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        _ => format!("[{step}]"),
    }
}
