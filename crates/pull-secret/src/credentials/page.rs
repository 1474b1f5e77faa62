//! Pages about credentials. Nothing on them is a password: the ledger's rows have none in clear.

use std::fmt::Write as _;

use credentials::credential::{Credential, Evidence, Naming, Order, Proof, Record, Successor};
use credentials::ledger::Entry;
use daemon::output::{self, plain};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::OutputFormat;

/// The list of credentials.
pub(super) fn list(found: &[Credential], format: OutputFormat) -> String {
    match format {
        OutputFormat::Json => format!("{:#}\n", found.iter().map(object).collect::<Value>()),
        OutputFormat::Table => {
            let row = |credential: &Credential| {
                [
                    credential.id.to_string(),
                    credential.registry.to_string(),
                    credential.account.to_string(),
                    credential.state.to_string(),
                    credential.reason.to_string(),
                    credential.cluster.as_ref().map_or_else(|| "-".to_owned(), |cluster| plain(&cluster.id)),
                    time(credential.record.created),
                ]
            };
            let header = ["ID", "REGISTRY", "ACCOUNT", "STATE", "REASON", "CLUSTER", "CREATED"];
            output::table(header, found.iter().map(row))
        }
    }
}

/// A credential as JSON.
pub(super) fn object(credential: &Credential) -> Value {
    let Credential { id, registry, account, state, reason, cluster, replaces, has_password, record } = credential;
    json!({
        "id": id.to_string(),
        "registry": registry.as_str(),
        "account": account.as_str(),
        "login": record.login,
        "state": state.as_str(),
        "reason": reason.as_str(),
        "meaning": reason.meaning(),
        "needsAPerson": reason.needs_a_person(),
        "cluster": cluster.as_ref().map(|cluster| json!({ "id": cluster.id, "incarnation": cluster.incarnation })),
        "replaces": replaces.map(|replaced| replaced.to_string()),
        "hasPassword": has_password,
        "record": record,
    })
}

/// The page of one credential.
pub(super) fn show(credential: &Credential, successor: Option<&Successor>, format: OutputFormat) -> String {
    if format == OutputFormat::Json {
        let mut object = object(credential);
        if let (Some(object), Some(successor)) = (object.as_object_mut(), successor) {
            let value = json!({ "id": successor.id.to_string(), "state": successor.state.as_str() });
            object.insert("successor".to_owned(), value);
        }
        return format!("{object:#}\n");
    }
    let Credential { id, registry, account, state, reason, cluster, replaces, record, .. } = credential;
    let mut text = format!(
        "CREDENTIAL  {id}\nREGISTRY    {registry}, account {account}\nSTATE       {state}: {}\nREASON      {reason}: {}\n",
        state.meaning(),
        reason.meaning(),
    );
    // Writing to a String cannot fail, here and below.
    let _infallible = match cluster {
        Some(cluster) => {
            writeln!(text, "CLUSTER     {}, generation {} names it", plain(&cluster.id), record.generation)
        }
        None => writeln!(text, "CLUSTER     none yet"),
    };
    if let Some(replaced) = replaces {
        let _infallible = writeln!(text, "REPLACES    {replaced}");
    }
    if let Some(Successor { id, state, .. }) = successor {
        let _infallible = writeln!(text, "REPLACED BY {id}, {state}");
    }
    times(&mut text, record);
    evidence(&mut text, &record.evidence);
    if let Some(Order { actor, reason, at, .. }) = &record.revocation_request {
        let _infallible = writeln!(text, "REQUEST     revoke at once, by {} at {at}: {}", plain(actor), plain(reason));
    }
    if let Some(Order { actor, reason, at, break_glass }) = &record.order {
        let kind = if *break_glass { "revoke at once" } else { "retire" };
        let _infallible = writeln!(text, "ORDER       {kind}, by {} at {at}: {}", plain(actor), plain(reason));
    }
    text
}

fn times(text: &mut String, record: &Record) {
    let times = [
        ("CREATED", record.created),
        ("EXPIRES", record.expires),
        ("PROBED", record.probed),
        ("PUBLISHED", record.published),
        ("ADOPTED", record.adopted),
        ("DISABLED", record.disabled),
        ("DELETED", record.deleted),
        ("REFUSED", record.dead),
    ];
    for (name, at) in times {
        if let Some(at) = at {
            let _infallible = writeln!(text, "{name:<11} {at}");
        }
    }
    if let (Some(failure), Some(retry)) = (record.failure, record.retry_at) {
        let _infallible =
            writeln!(text, "FAILURE     {failure}: {} attempts, the next one at {retry}", record.attempts);
    }
}

fn evidence(text: &mut String, evidence: &Evidence) {
    let Evidence { report, nodes, first_pull, quiet, usage, document, .. } = evidence;
    for (part, proof) in [("report", report), ("nodes", nodes), ("first pull", first_pull), ("quiet", quiet)] {
        let _infallible = match proof {
            Some(Proof { at, source }) => writeln!(text, "EVIDENCE    {part}: {at}, {}", plain(source)),
            // Silence is seen in the usage; only an attestation is a proof of its own.
            None if part == "quiet" => Ok(()),
            None => writeln!(text, "EVIDENCE    {part}: none"),
        };
    }
    if let Some(usage) = usage {
        let last = usage.last_pull.map_or_else(|| "no pull was seen".to_owned(), |pull| format!("last pull {pull}"));
        let rest = if usage.complete { "" } else { ", and there is more than could be read" };
        let _infallible = writeln!(text, "USAGE       {last}{rest} (looked at {})", usage.at);
    }
    if let Some(document) = document {
        let naming = match document.naming {
            Naming::Named => "names it",
            Naming::NotNamed => "does not name it",
            Naming::ClusterGone => "is gone with its cluster",
        };
        let _infallible = writeln!(text, "PULL SECRET {naming} (looked at {})", document.at);
    }
}

/// The events of a credential.
pub(super) fn events(entries: &[Entry], format: OutputFormat) -> String {
    match format {
        OutputFormat::Json => {
            let object = |entry: &Entry| {
                let Entry { credential, cluster, actor, action, outcome, reason, remark, time } = entry;
                json!({
                    "credential": credential.to_string(), "cluster": cluster, "actor": actor, "action": action,
                    "outcome": outcome.as_str(), "reason": reason, "remark": remark, "time": time,
                })
            };
            format!("{:#}\n", entries.iter().map(object).collect::<Value>())
        }
        OutputFormat::Table => {
            let row = |entry: &Entry| {
                [
                    entry.time.to_string(),
                    plain(&entry.actor),
                    entry.action.clone(),
                    entry.outcome.to_string(),
                    entry.reason.clone(),
                    entry.remark.as_deref().map_or_else(|| "-".to_owned(), plain),
                ]
            };
            output::table(["TIME", "ACTOR", "ACTION", "OUTCOME", "REASON", "REMARK"], entries.iter().map(row))
        }
    }
}

/// A time for people.
pub(super) fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| at.to_string())
}
