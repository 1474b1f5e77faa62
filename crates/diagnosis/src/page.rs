//! The page as text for a terminal.

use std::fmt::Write as _;

use credentials::credential::Proof;
use fleet_model::condition::known_time;
use fleet_model::copy;
use fleet_model::names::condition;
use jiff::{Timestamp, Unit};
use serde_json::Value;

use crate::copies::{Copies, CopyView};
use crate::credentials::{CredentialView, CredentialsView};
use crate::decide::message::{Parts, failed_pods};
use crate::facts::{Change, JobView, Page, SecretView, State, StoreCheckView};
use daemon::output::{plain, table};

/// Stands before the first command of the next step.
const NEXT: &str = "  next: ";
/// Stands before its other commands.
const THEN: &str = "  then: ";

/// Formats the page; ages are counted from `now`, and lines of more than `width` characters are wrapped.
pub fn text(page: &Page, now: Timestamp, width: Option<usize>) -> String {
    let text = whole(page, now);
    match width {
        Some(width) => text.lines().map(|line| wrapped(line, width)).collect(),
        None => text,
    }
}

fn whole(page: &Page, now: Timestamp) -> String {
    let mut text = head(page, now);
    conditions(&mut text, page, now);
    adapters(&mut text, page, now);
    preconditions(&mut text, page);
    if let Some(job) = &page.job {
        run(&mut text, job, now);
    }
    stored(&mut text, page);
    if let Some(both) = &page.copies {
        copies(&mut text, both);
    }
    if let Some(secret) = &page.kubernetes_secret {
        secret_view(&mut text, secret, now);
    }
    if let Some(check) = &page.store_check {
        store_check(&mut text, check, now);
    }
    if let Some(view) = &page.registry_credentials {
        registry_credentials(&mut text, view, now);
    }
    history(&mut text, page, now);
    text
}

fn head(page: &Page, now: Timestamp) -> String {
    let word = match page.verdict.state {
        State::Absent => "THERE IS NO SUCH CLUSTER",
        State::Deleting => "TERMINATING",
        State::Waiting => "NOT AVAILABLE, waiting",
        State::Stalled => "NOT AVAILABLE, the adapter does not report",
        State::Running => "NOT AVAILABLE YET, reconciling",
        State::Failed => "NOT AVAILABLE, failed",
        State::Available => "AVAILABLE",
        State::Contradicted => "REPORTED AS AVAILABLE, BUT",
    };
    let mut text = plain(&page.cluster);
    // Writing to a String cannot fail, here and below.
    if page.verdict.state != State::Absent {
        let _infallible = write!(text, " ({}), generation {}", plain(&page.name), page.generation);
    }
    let _infallible = writeln!(text, ": {word}");
    for line in &page.verdict.because {
        let _infallible = writeln!(text, "  {}", plain(line));
    }
    let available = page.conditions.iter().find(|condition| condition.kind == condition::AVAILABLE);
    if let (Some(since), Some(reason)) = (page.reason_since, available.and_then(|found| found.reason.as_deref())) {
        let _infallible = writeln!(text, "  reported: {} since {}", plain(reason), moment(Some(since), now));
    }
    if let Some(hint) = &page.verdict.hint {
        let _infallible = writeln!(text, "  hint: {}", plain(hint));
    }
    for (command, label) in page.verdict.next.iter().zip(std::iter::once(NEXT).chain(std::iter::repeat(THEN))) {
        let _infallible = writeln!(text, "{label}{}", plain(command));
    }
    if let Some(Change { time, by }) = &page.changed {
        let by = by.as_deref().map(|by| format!(" by {}", plain(by))).unwrap_or_default();
        let _infallible = writeln!(text, "  spec last changed {}{by}", moment(Some(*time), now));
    }
    if page.deleted_time.is_some() {
        let _infallible = writeln!(text, "  deletion requested: {}", moment(page.deleted_time, now));
    }
    text
}

fn conditions(text: &mut String, page: &Page, now: Timestamp) {
    let Some(generation) = page.reported_generation else { return };
    section(text, &format!("CONDITIONS (about generation {generation}, reported {})", moment(page.reported_time, now)));
    let rows = page.conditions.iter().map(|condition| {
        [
            plain(&condition.kind),
            condition.status.as_str().to_owned(),
            plain(condition.reason.as_deref().unwrap_or("-")),
            moment(known_time(condition.last_transition_time), now),
        ]
    });
    indent(text, &table(["TYPE", "STATUS", "REASON", "SINCE"], rows));
    // What is said above, or of another condition, is not repeated.
    for condition in &page.conditions {
        let message = condition.message.as_deref().unwrap_or_default();
        if let Some(line) = message.lines().next().filter(|line| !is_said(text, line)) {
            let _infallible = writeln!(text, "  {}: {}", plain(&condition.kind), plain(line));
        }
    }
}

/// True if the text has the fact of a message already.
fn is_said(text: &str, message: &str) -> bool {
    let about = failed_pods(message);
    let message = about.map_or(message, |(_, _, failed)| failed);
    text.contains(&plain(Parts::of(message).fact))
}

fn adapters(text: &mut String, page: &Page, now: Timestamp) {
    if page.adapters.is_empty() {
        return;
    }
    section(text, "ADAPTERS");
    let rows = page.adapters.iter().map(|adapter| {
        let available = adapter.available.map_or("-", hyperfleet_client::Status::as_str).to_owned();
        [plain(&adapter.adapter), available, moment(adapter.reported, now), moment(adapter.reported_any, now)]
    });
    indent(text, &table(["ADAPTER", "AVAILABLE", "LAST REPORT", "LAST REPORT ABOUT ANY CLUSTER"], rows));
    if let Some(lease) = &page.lease {
        let holder = lease.holder.as_deref().map_or_else(|| "no replica".to_owned(), plain);
        let (namespace, name, renewed) = (plain(&lease.namespace), plain(&lease.name), moment(lease.renewed, now));
        let _infallible = writeln!(text, "  Lease {namespace}/{name}: held by {holder}, renewed {renewed}");
    }
}

fn preconditions(text: &mut String, page: &Page) {
    if page.preconditions.is_empty() {
        return;
    }
    section(text, "PRECONDITIONS");
    for evaluation in &page.preconditions {
        let _infallible = writeln!(text, "  {:<18}  {}", evaluation.verdict, evaluation.expression);
        // The first line is the whole expression again.
        for line in evaluation.values.iter().skip(1).filter(|line| !line.ends_with(": not evaluated")) {
            let _infallible = writeln!(text, "  {:<18}  {}", "", plain(line));
        }
    }
}

fn run(text: &mut String, job: &JobView, now: Timestamp) {
    section(text, "JOB");
    let since = job.started.map(|started| format!(", started {}", moment(Some(started), now))).unwrap_or_default();
    let _infallible = writeln!(text, "  {}/{}: {}{since}", plain(&job.namespace), plain(&job.name), plain(&job.state));
    for pod in &job.pods {
        let code = pod.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
        let message = Some(&pod.message).filter(|message| !is_said(text, message));
        let parts = std::iter::once(&pod.reason).chain(message).filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.map(|part| plain(part)).collect();
        let parts = if parts.is_empty() { String::new() } else { format!("; {}", parts.join(": ")) };
        let _infallible = writeln!(text, "  pod {}: {}{code}{parts}", plain(&pod.name), plain(&pod.phase));
    }
    for (line, label) in job
        .last_line
        .iter()
        .map(|line| (line, "last log line"))
        .chain(job.warnings.iter().map(|line| (line, "warning")))
    {
        if !is_said(text, line) {
            let _infallible = writeln!(text, "  {label}: {}", plain(line));
        }
    }
}

fn stored(text: &mut String, page: &Page) {
    if page.stored.is_empty() && page.desired_digest.is_none() {
        return;
    }
    section(text, "STORED (as reported)");
    // The mirror is in the section about both copies.
    let is_shown = |name: &str| name != copy::MIRROR || page.copies.is_none();
    for (name, value) in page.stored.iter().filter(|(name, _)| is_shown(name)) {
        let value = match value {
            Value::String(text) => plain(text),
            other => plain(&other.to_string()),
        };
        let _infallible = writeln!(text, "  {:<18}  {value}", plain(name));
    }
    if let Some(digest) = &page.desired_digest {
        let _infallible = writeln!(text, "  {:<18}  {}", "desired digest", plain(digest));
    }
}

fn copies(text: &mut String, Copies { first, mirror, parity }: &Copies) {
    section(text, "COPIES");
    let row = |role: &str, copy: &CopyView| {
        let [version, generation, digest] =
            [copy.version.map(|version| version.to_string()), copy.generation.clone(), copy.digest.clone()]
                .map(|value| value.map_or_else(|| "-".to_owned(), |value| plain(&value)));
        [role.to_owned(), copy.store.to_owned(), version, generation, digest, plain(&copy.secret)]
    };
    let heading = ["ROLE", "STORE", "VERSION", "GENERATION", "DIGEST", "SECRET"];
    indent(text, &table(heading, [row("first store", first), row("mirror", mirror)]));
    let _infallible = writeln!(text, "  {}", plain(&parity.message));
}

fn secret_view(text: &mut String, secret: &SecretView, now: Timestamp) {
    section(text, "KUBERNETES SECRET");
    let since = secret.created.map(|time| format!(", created {}", moment(Some(time), now))).unwrap_or_default();
    let (namespace, name) = (plain(&secret.namespace), plain(&secret.name));
    let _infallible = writeln!(text, "  {namespace}/{name}: {}{since}", plain(&secret.state));
    for (name, value) in &secret.annotations {
        let _infallible = writeln!(text, "  {:<32}  {}", plain(name), plain(value));
    }
}

fn store_check(text: &mut String, check: &StoreCheckView, now: Timestamp) {
    section(text, "SECRET STORE");
    let Some(last) = check.last_checked else {
        let _infallible = writeln!(text, "  {}", plain(&check.state));
        return;
    };
    let _infallible = writeln!(text, "  last checked {}", moment(Some(last), now));
    if let Some(versions) = check.versions_checked {
        let _infallible = writeln!(text, "  the states of all versions were read by {}", moment(Some(versions), now));
    }
    if let Some(why) = &check.failure {
        let _infallible = writeln!(text, "  the store could not be read: {}", plain(why));
    }
    if let Some(found) = &check.found {
        let (when, message) = (moment(Some(found.found), now), plain(&found.message));
        let _infallible = writeln!(text, "  found {when}: {message}");
    } else if check.failure.is_none() {
        let _infallible = writeln!(text, "  nothing was found that differs from the report");
    }
}

fn registry_credentials(text: &mut String, view: &CredentialsView, now: Timestamp) {
    section(text, "REGISTRY CREDENTIALS");
    if let Some(why) = &view.failure {
        let _infallible = writeln!(text, "  the ledger could not be read: {}", plain(why));
    } else if view.credentials.is_empty() {
        let _infallible = writeln!(text, "  the ledger has none of this cluster");
    }
    for one in &view.credentials {
        let CredentialView { id, registry, account, state, reason, meaning, .. } = one;
        let _infallible = writeln!(text, "  {registry}, account {}: {state}, {reason}: {meaning}", plain(account));
        let times = [("made", one.created), ("expires", one.expires), ("probed", one.probed), ("adopted", one.adopted)];
        for (name, time) in times {
            if time.is_some() {
                let _infallible = writeln!(text, "    {name:<10}  {}", moment(time, now));
            }
        }
        if let (Some(published), Some(generation)) = (one.published, one.generation) {
            let published = moment(Some(published), now);
            let _infallible = writeln!(text, "    published   {published}, in generation {generation}");
        }
        if let Some(Proof { at, source }) = &one.first_pull {
            let _infallible = writeln!(text, "    first pull  {}: {}", moment(Some(*at), now), plain(source));
        }
        if let Some(read) = one.usage_read {
            let last = one.last_pull.map_or_else(|| "none observed".to_owned(), |last| moment(Some(last), now));
            let _infallible = writeln!(text, "    last pull   {last}; usage log read {}", moment(Some(read), now));
        }
        if one.needs_a_person {
            let _infallible = writeln!(text, "{NEXT}pull-secret credentials show {id}");
        }
    }
}

fn history(text: &mut String, page: &Page, now: Timestamp) {
    if page.history.is_empty() {
        return;
    }
    section(text, "HISTORY (newest first)");
    let rows = page.history.iter().map(|change| {
        let from = change.from.map_or("-", hyperfleet_client::Status::as_str);
        let change_of = format!("{from} -> {}", change.to.as_str());
        let reason = plain(change.reason.as_deref().unwrap_or("-"));
        [
            moment(known_time(change.time), now),
            change.observed_generation.to_string(),
            plain(&change.kind),
            change_of,
            reason,
        ]
    });
    indent(text, &table(["WHEN", "GENERATION", "TYPE", "CHANGE", "REASON"], rows));
}

fn section(text: &mut String, title: &str) {
    let _infallible = writeln!(text, "\n{title}");
}

fn indent(text: &mut String, lines: &str) {
    for line in lines.lines() {
        let _infallible = writeln!(text, "  {line}");
    }
}

/// Wraps a line at spaces, with what follows indented deeper. Commands stay whole, so that they can be copied.
fn wrapped(line: &str, width: usize) -> String {
    let is_command = line.starts_with(NEXT) || line.starts_with(THEN);
    if is_command || line.chars().count() <= width {
        return format!("{line}\n");
    }
    let own = line.len() - line.trim_start().len();
    let indent = " ".repeat(own + 2);
    let (mut text, mut used) = (String::new(), 0);
    for (index, word) in line.trim_start().split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && used + 1 + length > width {
            text.push('\n');
            text.push_str(&indent);
            used = indent.len();
        } else if index > 0 {
            text.push(' ');
            used += 1;
        } else {
            text.push_str(line.get(..own).unwrap_or_default());
            used = own;
        }
        text.push_str(word);
        used += length;
    }
    text.push('\n');
    text
}

/// A time and its age.
pub(crate) fn moment(time: Option<Timestamp>, now: Timestamp) -> String {
    let Some(time) = time else { return "-".to_owned() };
    let seconds = now.since(time).ok().and_then(|ago| ago.total(Unit::Second).ok()).unwrap_or_default().max(0.0);
    let ago = match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    };
    format!("{} ({ago} ago)", time.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("  one two three", 9, "  one two\n    three\n")]
    #[case("short", 9, "short\n")]
    #[case("  next: kubectl get pods", 9, "  next: kubectl get pods\n")]
    #[case("a averylongword b", 6, "a\n  averylongword\n  b\n")]
    fn lines_are_wrapped_and_commands_are_not(#[case] line: &str, #[case] width: usize, #[case] expect: &str) {
        assert_eq!(wrapped(line, width), expect);
    }

    #[rstest]
    #[case("2026-01-01T00:00:03Z", "2026-01-01T00:00:00Z (3 s ago)")]
    #[case("2026-01-01T00:10:00Z", "2026-01-01T00:00:00Z (10 min ago)")]
    #[case("2026-01-01T10:00:00Z", "2026-01-01T00:00:00Z (10 h ago)")]
    #[case("2026-01-11T00:00:00Z", "2026-01-01T00:00:00Z (10 d ago)")]
    #[case("2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z (0 s ago)")]
    fn times_are_printed_with_their_age(#[case] now: &str, #[case] expect: &str) {
        assert_eq!(moment(Some("2026-01-01T00:00:00Z".parse().unwrap()), now.parse().unwrap()), expect);
    }
}
