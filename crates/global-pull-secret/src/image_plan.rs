//! `global-pull-secret plan`: which key serves each image that runs, before and after a change of the additional Secret.

mod inputs;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use docker_config::merge::InvalidEntries;
use jiff::Timestamp;
use serde::Serialize;

use crate::arguments::{CommandResult, Output, PlanArguments};
use crate::decide::images::{Effect, ImageEffect, effects};
use crate::decide::{Planned, planned_keys};
use crate::finding::Rules;
use crate::keys::Keys;
use crate::objects::Syncer;
use crate::offline::{REFUSED, invalid_entries, policy as merge_policy};
use crate::policy::{ADDITIONAL_WINS, Policy, REJECT_ALL, ReportedPolicy, Rollout};
use crate::record::Key;

use inputs::Inputs;

/// The answer; holds no credential.
#[derive(Debug, Default, Serialize)]
struct Answer {
    /// True if an image would lose its key, or a Secret is refused.
    refused: bool,
    pods: usize,
    images: Vec<ImageAnswer>,
    problems: Vec<String>,
    notes: Vec<String>,
}

/// The answer about the images of one repository.
#[derive(Debug, Serialize)]
struct ImageAnswer {
    image: String,
    pods: usize,
    namespaces: Vec<String>,
    effect: Effect,
    /// True if the loss was allowed by `--allow`.
    allowed: bool,
    before: Option<Key>,
    after: Option<Key>,
    /// The key that has the former credential, where another one is tried before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<Key>,
}

/// Plans a change; the exit code is 3 where an image would lose its key, or a Secret is refused.
pub async fn plan(arguments: &PlanArguments) -> anyhow::Result<CommandResult> {
    let inputs = Inputs::read(arguments).await?;
    let policy = policy(arguments, inputs.policy.as_ref())?;
    let answer = Answer::of(&inputs, arguments, &policy);
    let text = match arguments.output {
        Output::Text => answer.text(),
        Output::Json => serde_json::to_string_pretty(&answer)? + "\n",
    };
    Ok(CommandResult { text, code: if answer.refused { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS } })
}

/// The policy by which the controller would decide: as given, or else as it reports it.
fn policy(arguments: &PlanArguments, reported: Option<&ReportedPolicy>) -> anyhow::Result<Policy> {
    let conflict = arguments.conflict_policy.as_ref().or(reported.map(|reported| &reported.conflict_policy));
    let prefixes = Some(&arguments.protected_prefix).filter(|given| !given.is_empty());
    let prefixes = prefixes.or(reported.map(|reported| &reported.protected_prefixes));
    let invalid = arguments.invalid_entries.as_ref().or(reported.map(|reported| &reported.invalid_entries));
    let invalid: InvalidEntries = invalid_entries(invalid.map_or(REJECT_ALL, String::as_str));
    Ok(Policy {
        merge: merge_policy(conflict.map_or(ADDITIONAL_WINS, String::as_str), prefixes.map_or(&[], Vec::as_slice))?,
        invalid,
        probe: Rules::default(),
        rollout: Rollout::default(),
        syncer: Syncer::default(),
        running_images: true,
        node_deadline: Duration::ZERO,
        cleanup_deadline: Duration::ZERO,
    })
}

impl Answer {
    fn of(inputs: &Inputs, arguments: &PlanArguments, policy: &Policy) -> Self {
        let now = Timestamp::now();
        let before = match inputs.deployed_keys() {
            Some(keys) => Planned { keys: Some(keys), ..Planned::default() },
            None => planned_keys(&inputs.before(), policy, now),
        };
        let after = planned_keys(&inputs.after(), policy, now);
        let mut answer = Self { notes: inputs.notes(), ..Self::default() };
        answer.notes.extend(after.notes);
        answer.problems.extend(before.problems);
        answer.problems.extend(after.problems);
        answer.problems.sort();
        answer.problems.dedup();
        answer.pods = inputs.images.pods;
        if let (true, Some(before), Some(after)) = (answer.problems.is_empty(), before.keys, after.keys) {
            answer.compare(inputs, arguments, [&before, &after]);
        }
        let is_refused = |image: &ImageAnswer| image.effect == Effect::Loses && !image.allowed;
        answer.refused = !answer.problems.is_empty() || answer.images.iter().any(is_refused);
        answer
    }

    fn compare(&mut self, inputs: &Inputs, arguments: &PlanArguments, [before, after]: [&Keys; 2]) {
        let is_allowed = |name: &str| {
            arguments.allow.iter().any(|allowed| {
                let rest = name.strip_prefix(allowed.trim_end_matches('/'));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        self.images = effects(&inputs.images, before, after)
            .into_iter()
            .map(|ImageEffect { image, pods, effect, before, after, still }| ImageAnswer {
                image: image.name().to_owned(),
                pods: pods.pods,
                namespaces: pods.namespaces.iter().cloned().collect(),
                effect,
                allowed: effect == Effect::Loses && is_allowed(image.name()),
                before,
                after,
                then: still,
            })
            .collect();
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail, here and below.
        for image in &self.images {
            let _infallible = writeln!(text, "{}", image.line());
        }
        for note in &self.notes {
            let _infallible = writeln!(text, "note: {note}");
        }
        for problem in &self.problems {
            let _infallible = writeln!(text, "problem: {problem}");
        }
        let count = |effect: Effect| self.images.iter().filter(|image| image.effect == effect).count();
        if self.problems.is_empty() {
            let _infallible = writeln!(
                text,
                "Pods: {}, images: {}; loses {}, replaced {}, gains {}, unchanged {}",
                self.pods,
                self.images.len(),
                count(Effect::Loses),
                count(Effect::Replaced),
                count(Effect::Gains),
                count(Effect::Unchanged)
            );
        }
        if self.refused && self.problems.is_empty() {
            text.push_str("refused: keep the keys of these images, or confirm with --allow REPOSITORY\n");
        } else if self.refused {
            text.push_str("refused: correct the Secret\n");
        }
        text
    }
}

impl ImageAnswer {
    fn line(&self) -> String {
        let effect = match self.effect {
            Effect::Loses if self.allowed => "loses (allowed)",
            Effect::Loses => "loses",
            Effect::Replaced => "replaced",
            Effect::Gains => "gains",
            Effect::Unchanged => "unchanged",
        };
        let namespaces = match self.namespaces.as_slice() {
            [] => String::new(),
            some => format!(" in {}", some.join(", ")),
        };
        let pods = if self.pods == 1 { "Pod" } else { "Pods" };
        let key = |key: &Option<Key>| key.as_ref().map_or("no key".to_owned(), Key::to_string);
        let keys = match self.effect {
            Effect::Unchanged => key(&self.after),
            _ => format!("{} -> {}", key(&self.before), key(&self.after)),
        };
        let then = self.then.as_ref().map(|then| format!(", then {then}")).unwrap_or_default();
        format!("{effect}: {} ({} {pods}{namespaces}): {keys}{then}", self.image, self.pods)
    }
}
