//! Discovery: groups, versions, resources, the server's version, and a little `OpenAPI`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::Answer;
use super::engine::Engine;
use super::resources::Resource;
use super::route::Route;

mod open_api;

use open_api::MINOR;

/// Answers what is no resource; none if there is no such thing.
pub(crate) fn answer(engine: &Engine, route: &Route) -> Option<Answer> {
    let all = engine.store.read(|state| state.catalog.all().to_vec());
    let value = match route {
        Route::Health => return Some(Answer::Text(b"ok".to_vec())),
        Route::Version => version(),
        Route::CoreVersions => json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        }),
        Route::Groups => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(&all)}),
        Route::Group(name) => {
            let mut group = groups(&all).into_iter().find(|group| group.get("name") == Some(&json!(name)))?;
            super::value::set(&mut group, &["kind"], "APIGroup");
            super::value::set(&mut group, &["apiVersion"], "v1");
            group
        }
        Route::Resources { group, version } => resources(&all, group, version)?,
        Route::OpenApi => open_api::paths(&all),
        Route::OpenApiOf { group, version } => open_api::of(&all, group, version)?,
        Route::OpenApiV2 => return Some(Answer::Protobuf(open_api::version_2(&all))),
        Route::Object(_) | Route::Unknown => return None,
    };
    Some(Answer::ok(value))
}

fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0+emulator"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "emulator",
    })
}

fn groups(all: &[Arc<Resource>]) -> Vec<Value> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in all.iter().filter(|resource| !resource.group.is_empty()) {
        let versions = versions.entry(&resource.group).or_default();
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    let group = |(name, versions): (&str, Vec<&str>)| {
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
            .collect();
        json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
    };
    versions.into_iter().map(group).collect()
}

fn resources(all: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let ours: Vec<&Arc<Resource>> =
        all.iter().filter(|resource| resource.group == group && resource.version == version).collect();
    let api_version = ours.first()?.api_version();
    let mut listed = Vec::new();
    for resource in ours {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.is_namespaced(),
            "kind": resource.kind, "verbs": resource.verbs(),
        });
        for (member, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
            if !names.is_empty() {
                super::value::set(&mut entry, &[member], names.clone());
            }
        }
        listed.push(entry);
        listed.extend(subresources(resource));
    }
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}))
}

fn subresources(resource: &Resource) -> Vec<Value> {
    let entry = |name: &str, kind: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.is_namespaced(),
            "kind": kind, "verbs": verbs,
        })
    };
    let mut entries = Vec::new();
    if resource.has_status() {
        entries.push(entry("status", &resource.kind, &["get", "patch", "update"]));
    }
    for name in resource.subresources {
        entries.push(match *name {
            "token" => entry("token", "TokenRequest", &["create"]),
            name => entry(name, &resource.kind, &["get"]),
        });
    }
    entries
}
