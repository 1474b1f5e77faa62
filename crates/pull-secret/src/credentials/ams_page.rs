//! Pages about leaving AMS. Nothing on them is a password.

use std::fmt::Write as _;

use accounts_mgmt::Ksuid;
use credentials::ams::{
    AmsCluster, AmsEntry, ClusterStatus, ImportPass, Imported, Issued, RegistryCount, Retired, Shadowed,
};
use credentials::decide::ams::{Obstacle, Phase};
use daemon::output::{self, plain};
use serde_json::{Value, json};

use super::page as credential;
use crate::cli::OutputFormat;

/// Maximum number of clusters that a page for people has.
const SHOWN: usize = 100;

/// The result of an import.
pub(super) fn imported(imported: &Imported, format: OutputFormat) -> String {
    if format == OutputFormat::Json {
        let missing =
            imported.not_found.iter().map(|one| json!({ "cluster": one.cluster, "entry": entry(&one.entry) }));
        let document = json!({
            "proven": imported.is_proven(),
            "registries": imported.counts.iter().map(count).collect::<Value>(),
            "clusters": imported.clusters,
            "notFound": missing.collect::<Value>(),
            "notReadable": imported.not_readable,
        });
        return format!("{document:#}\n");
    }
    let row = |count: &RegistryCount| {
        let agrees = if count.agrees() { "yes" } else { "NO" };
        [
            plain(&count.registry),
            plain(&count.host),
            count.total.to_string(),
            count.imported.to_string(),
            agrees.to_owned(),
        ]
    };
    let mut text = output::table(["REGISTRY", "HOST", "IN AMS", "IMPORTED", "AGREE"], imported.counts.iter().map(row));
    // Writing to a String cannot fail, here and below.
    let _infallible = writeln!(text, "{} clusters, {} entries not found", imported.clusters, imported.not_found.len());
    if !imported.not_found.is_empty() {
        let row = |one: &credentials::ams::NotFound| {
            let AmsEntry { host, username, finding, .. } = &one.entry;
            [plain(&one.cluster), plain(host), plain(username.as_deref().unwrap_or("-")), finding.to_string()]
        };
        let shown = imported.not_found.iter().take(SHOWN).map(row);
        text.push_str(&output::table(["CLUSTER", "HOST", "USER", "FINDING"], shown));
    }
    for cluster in imported.not_readable.iter().take(SHOWN) {
        let _infallible = writeln!(text, "the pull secret of cluster {} cannot be read", plain(cluster));
    }
    text
}

/// The result of a comparison.
pub(super) fn shadowed(compared: &Shadowed, format: OutputFormat) -> String {
    if format == OutputFormat::Json {
        let different = compared.different.iter().map(cluster).collect::<Value>();
        return format!("{:#}\n", json!({ "clusters": compared.clusters, "different": different }));
    }
    let rows = compared.different.iter().flat_map(|known| {
        known.differences.iter().map(|one| {
            let meaning = one.difference.meaning().to_owned();
            [plain(&known.cluster.id), plain(&one.host), one.difference.to_string(), meaning]
        })
    });
    output::table(["CLUSTER", "HOST", "DIFFERENCE", "MEANING"], rows.take(SHOWN))
}

/// The phases of clusters.
pub(super) fn status(
    found: &[ClusterStatus],
    import: Option<&ImportPass>,
    has_details: bool,
    format: OutputFormat,
) -> String {
    let number = |phase: Phase| found.iter().filter(|one| one.phase == phase).count();
    if format == OutputFormat::Json {
        let phases = Phase::ALL.map(|phase| (phase.to_string(), json!(number(phase))));
        let import = import.map(|import| {
            let counts = import.counts.iter().map(count).collect::<Value>();
            json!({ "finished": import.finished, "registries": counts })
        });
        let document = json!({
            "import": import,
            "phases": phases.into_iter().collect::<serde_json::Map<_, _>>(),
            "clusters": found.iter().map(object).collect::<Value>(),
        });
        return format!("{document:#}\n");
    }
    let mut text = String::new();
    if let Some(finished) = import.and_then(|import| import.finished) {
        let _infallible = writeln!(text, "IMPORT      {finished}");
    }
    let row = |phase: Phase| [phase.to_string(), number(phase).to_string(), phase.meaning().to_owned()];
    text.push_str(&output::table(["PHASE", "CLUSTERS", "MEANING"], Phase::ALL.into_iter().map(row)));
    let is_shown = |one: &&ClusterStatus| has_details || needs_a_person(one);
    let shown: Vec<&ClusterStatus> = found.iter().filter(is_shown).take(SHOWN).collect();
    if !shown.is_empty() {
        let row = |one: &&ClusterStatus| {
            let differences = one.compared.differences.iter();
            let different =
                differences.map(|one| format!("{} {}", plain(&one.host), one.difference)).collect::<Vec<_>>();
            let own = one.own.iter().map(|own| format!("{} {}", own.state, own.reason)).collect::<Vec<_>>();
            let since = credential::time(one.compared.clean_since);
            [plain(&one.compared.cluster.id), one.phase.to_string(), since, different.join(", "), own.join(", ")]
        };
        let header = ["CLUSTER", "PHASE", "AS EXPECTED SINCE", "DIFFERENCES", "OUR CREDENTIALS"];
        text.push_str(&output::table(header, shown.iter().map(row)));
    }
    text
}

/// The number of clusters that can get a credential.
pub(super) fn ready(ready: usize, all: usize, format: OutputFormat) -> String {
    match format {
        OutputFormat::Json => format!("{:#}\n", json!({ "ready": ready, "clusters": all })),
        OutputFormat::Table => format!("{ready} of {all} clusters were compared for long enough\n"),
    }
}

/// The credentials that were issued.
pub(super) fn issued(issued: &Issued, format: OutputFormat) -> String {
    match format {
        OutputFormat::Json => {
            let credentials = issued.credentials.iter().map(credential::object).collect::<Value>();
            format!("{:#}\n", json!({ "credentials": credentials, "leftOut": issued.left_out }))
        }
        OutputFormat::Table => {
            let mut text = credential::list(&issued.credentials, format);
            for cluster in issued.left_out.iter().take(SHOWN) {
                let _infallible = writeln!(
                    text,
                    "left out: cluster {} was not compared for long enough, or its credential is on its way out",
                    plain(cluster)
                );
            }
            text
        }
    }
}

/// The credentials of AMS that are deleted, or stay.
pub(super) fn retired(found: &[Retired], format: OutputFormat) -> String {
    let state = |one: &Retired| match (one.is_deleted, one.obstacle) {
        (true, _) => "deleted",
        (false, Some(obstacle)) => obstacle.as_str(),
        (false, None) => "can be deleted",
    };
    match format {
        OutputFormat::Json => {
            let object = |one: &Retired| {
                json!({
                    "id": one.credential.id.as_str(), "registry": one.credential.registry.as_str(),
                    "username": one.credential.username, "deleted": one.is_deleted,
                    "obstacle": one.obstacle.map(Obstacle::as_str), "meaning": one.obstacle.map(Obstacle::meaning),
                })
            };
            format!("{:#}\n", found.iter().map(object).collect::<Value>())
        }
        OutputFormat::Table => {
            let row = |one: &Retired| {
                let meaning = one.obstacle.map_or("", Obstacle::meaning).to_owned();
                [one.credential.id.to_string(), plain(&one.credential.username), state(one).to_owned(), meaning]
            };
            output::table(["ID AT AMS", "USER", "STATE", "MEANING"], found.iter().map(row))
        }
    }
}

fn needs_a_person(one: &ClusterStatus) -> bool {
    !one.compared.differences.is_empty() || one.needs_a_person().is_some()
}

fn object(one: &ClusterStatus) -> Value {
    let mut object = cluster(&one.compared);
    if let Some(members) = object.as_object_mut() {
        members.insert("phase".to_owned(), json!(one.phase.as_str()));
        members.insert("needsAPerson".to_owned(), json!(needs_a_person(one)));
        members.insert("own".to_owned(), one.own.iter().map(credential::object).collect());
        let uses = one
            .uses
            .iter()
            .map(|found| json!({ "id": found.credential.as_str(), "host": found.host, "deleted": found.is_deleted }));
        members.insert("ofAms".to_owned(), uses.collect());
    }
    object
}

fn cluster(known: &AmsCluster) -> Value {
    json!({
        "cluster": known.cluster.id, "incarnation": known.cluster.incarnation, "compared": known.compared_at,
        "asExpectedSince": known.clean_since, "differences": known.differences,
        "entries": known.entries.iter().map(entry).collect::<Value>(),
    })
}

fn entry(entry: &AmsEntry) -> Value {
    json!({
        "host": entry.host, "username": entry.username, "finding": entry.finding.as_str(),
        "meaning": entry.finding.meaning(), "credentialOfAms": entry.credential.as_ref().map(Ksuid::as_str),
    })
}

fn count(count: &RegistryCount) -> Value {
    json!({
        "registry": count.registry, "host": count.host, "inAms": count.total, "imported": count.imported,
        "agree": count.agrees(),
    })
}
