//! `docs/reference/emulators.md`, from the scenarios, the recorded answers and the emulator's.

use std::fmt::Write as _;

use serde_json::Value;

use crate::answers::{Answer, Recording, differing};
use crate::suite::{Scenario, Suite};

/// The longest value in a cell.
const LONGEST: usize = 120;

const HEAD: &str = "# Emulators

<!-- Written by `UPDATE_DIFFERENCES=1 cargo test --test differences` (lab/emulators/tests/differences); change the scenarios instead. -->

`pull-secret-local` and the tests run on emulators of Secret Manager, Key Vault, Quay and Kubernetes. They are for development and
tests only: no quota, everything stored unencrypted, and no TLS but for Key Vault, whose clients insist on it. The emulator of
Secret Manager is held to Google's own clients (`lab/emulators/tests/real_google_clients.rs`), that of Key Vault to Microsoft's
(`real_azure_clients.rs`), that of Quay to the answers of Quay's own code (`lab/emulators/tests/quay/golden`) and to a real
registry with skopeo (`real_registry.rs`), that of Kubernetes to kubectl (`real_kubectl.rs`), to the suites that run on both
(`crates/*/tests`), and to the recorded answers of a real control plane.
";

/// The page, and every fault: differences without a reason, reasons without a difference.
pub(crate) fn render(suite: &Suite, real: &Recording, emulator: &Recording) -> (String, String) {
    let (mut rows, mut faults) = (String::new(), String::new());
    let (mut differing, mut count) = (0, 0);
    for family in &suite.families {
        let mut section = String::new();
        for scenario in &family.scenarios {
            count += 1;
            let found = cells(scenario, real, emulator);
            // Writing to a String cannot fail, here and below.
            match (&scenario.left, found) {
                (None, None) => {}
                (Some(_), None) => {
                    let _infallible =
                        writeln!(faults, "{}: does not differ any more: remove its `left`", scenario.title);
                }
                (left, Some((theirs, ours))) => {
                    if left.is_none() {
                        let _infallible = writeln!(
                            faults,
                            "{}: differs: fix the emulator, or give the reason in `left`\n  Kubernetes: {theirs}\n  emulator: {ours}",
                            scenario.title
                        );
                    }
                    differing += 1;
                    let reason = left.as_deref().unwrap_or_default();
                    let _infallible = writeln!(section, "| {} | {theirs} | {ours} | {reason} |", scenario.title);
                }
            }
        }
        if !section.is_empty() {
            let header =
                format!("| scenario | Kubernetes {} | emulator | why it is left |\n|---|---|---|---|", real.minor());
            let _infallible = write!(rows, "\n### {}\n\n{header}\n{section}", family.title);
        }
    }
    let summary = format!(
        "\n## Known differences of the Kubernetes emulator\n\nOf {count} scenarios, played on the emulator and on Kubernetes {}, \
         {differing} differ. Shown are the differing parts of the answers; values that change from run to run stand in angle \
         brackets, and long ones are cut.\n\nNot compared is what depends on a server's age: Kubernetes forgets revisions after \
         five minutes, the emulator after 4096 changes or when a test demands it (`forget_history`). Both then answer 410 to \
         continuations and watches.\n",
        real.version
    );
    (format!("{HEAD}{summary}{rows}"), faults)
}

/// The differing answers of a scenario as two cells; none if nothing differs.
fn cells(scenario: &Scenario, real: &Recording, emulator: &Recording) -> Option<(String, String)> {
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for (index, step) in scenario.steps.iter().enumerate() {
        let answers = [real, emulator].map(|recording| recording.of(&scenario.title).get(index));
        let parts = differing(answers[0], answers[1]);
        if parts.is_empty() {
            continue;
        }
        let call = if scenario.steps.len() > 1 { format!("{}: ", short(&step.call)) } else { String::new() };
        let names: Vec<&str> = parts.iter().map(|(name, ..)| name.as_str()).collect();
        let [real, emulator] =
            answers.map(|answer| format!("{call}{}", side(answer.unwrap_or(&Answer::new()), &names)));
        theirs.push(real);
        ours.push(emulator);
    }
    (!theirs.is_empty()).then(|| (theirs.join("<br>"), ours.join("<br>")))
}

/// A call without the path of its group and namespace.
fn short(call: &str) -> String {
    let (method, path) = call.split_once(' ').unwrap();
    let path = path.rsplit_once("}/").map_or(path, |(_, path)| path);
    format!("{method} `{path}`")
}

/// One server's answer, by the parts in which it differs from the other's.
fn side(answer: &Answer, names: &[&str]) -> String {
    let mut parts = Vec::new();
    if let Some(message) = answer.get("message").and_then(Value::as_str) {
        let reason = answer.get("reason").and_then(Value::as_str).unwrap_or_default();
        parts.push(format!("{} {reason} `{}`", answer["status"], cut(message)));
    } else if names.contains(&"status") {
        parts.push(answer["status"].to_string());
    }
    if answer.contains_key("until") {
        parts.push("never otherwise".to_owned());
    }
    let shown = names.iter().filter(|name| !matches!(**name, "status" | "message" | "reason" | "causes" | "until"));
    for name in shown {
        match answer.get(*name) {
            None | Some(Value::Null) if answer.contains_key("message") => {}
            None | Some(Value::Null) => parts.push(format!("no {name}")),
            Some(Value::String(text)) => parts.push(format!("{name} `{}`", cut(text))),
            Some(other) => parts.push(format!("{name} `{}`", cut(&other.to_string()))),
        }
    }
    parts.join(", ")
}

/// A value as it can stand in a cell.
pub(crate) fn cut(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('`', "'").replace('\n', " ");
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST).chain(['…']).collect() }
}
