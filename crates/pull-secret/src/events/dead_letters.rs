//! `pull-secret events dead-letters`: lists, shows, replays and deletes the dead letters of a subscription.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::output::{self, plain};
use message_broker::dead_letters::{self, Disposition, Fate, HELD, Letters};
use message_broker::{Delivery, Subscription};
use serde_json::json;

use super::common;
use crate::broker::broker_of_queues;
use crate::cli::{DeadLettersCommand, LettersArguments, OutputFormat};

/// The action on the dead letters that are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    List,
    Show,
    Replay,
    /// Only says which would be deleted.
    DropDry,
    Drop,
}

/// The dead letters that are selected; all without ids.
#[derive(Debug)]
struct Selected(BTreeSet<String>);

/// Does what the command says.
pub(super) async fn handle(command: DeadLettersCommand) -> anyhow::Result<ExitCode> {
    let (letters, ids, action) = match command {
        DeadLettersCommand::List(letters) => (letters, Vec::new(), Action::List),
        DeadLettersCommand::Show(some) => (some.letters, some.ids, Action::Show),
        DeadLettersCommand::Replay(some) => (some.letters, some.ids, Action::Replay),
        DeadLettersCommand::Drop(some) => {
            (some.letters, some.ids, if some.yes { Action::Drop } else { Action::DropDry })
        }
    };
    let LettersArguments { subscription, queue, idle, output: format, context, flags } = letters;
    let settings = common::settings(flags.0, &context)?;
    let topic = settings.clients.broker.topic.unwrap_or_default();
    let subscription = Subscription::new(&topic, &subscription).context("the topic's or subscription's name")?;
    let broker = broker_of_queues(settings.broker, queue)?;
    let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
    let selected = Selected(ids.into_iter().collect());
    let (mut found, mut done, mut printed) = (BTreeSet::new(), 0_u64, Ok(()));
    let disposition = |letter: &Delivery| match action {
        Action::Replay if selected.has(letter) => Disposition::Replay,
        Action::Drop if selected.has(letter) => Disposition::Drop,
        _ => Disposition::Keep,
    };
    let each = |letter: &Delivery, fate| {
        if !selected.has(letter) {
            return;
        }
        found.insert(dead_letters::id(letter));
        done += u64::from(fate != Fate::Kept || matches!(action, Action::List | Action::Show | Action::DropDry));
        let shown = output::print(text(letter, action, fate, format));
        printed = std::mem::replace(&mut printed, Ok(())).and(shown.map(drop));
    };
    let letters =
        Letters { broker: &broker, subscription: &subscription, idle: Duration::from_secs(idle), stop: &stop };
    let walked = letters.walk(disposition, each).await;
    printed?;
    let is_whole = match walked {
        Ok(is_whole) => is_whole,
        Err(error) => return Ok(common::refused(&error)),
    };
    output::note(summary(action, done, found.len() as u64));
    if !is_whole {
        output::note(format_args!("only the first {HELD} were looked at: replay or delete some of them first"));
    }
    let missing: Vec<&str> = selected.0.difference(&found).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    output::note(format_args!("error: no dead letter has the id {}", plain(&missing.join(", "))));
    Ok(ExitCode::FAILURE)
}

fn summary(action: Action, done: u64, found: u64) -> String {
    match action {
        Action::List | Action::Show => format!("{found} dead letters"),
        Action::Replay => format!("{done} replayed, {} kept", found.saturating_sub(done)),
        Action::Drop => format!("{done} deleted"),
        Action::DropDry => format!("{found} would be deleted; nothing was changed: add --yes"),
    }
}

/// The text that is printed for a dead letter.
fn text(letter: &Delivery, action: Action, fate: Fate, format: OutputFormat) -> String {
    let word = match (action, fate) {
        (Action::List | Action::Show, _) => None,
        (Action::DropDry, _) => Some("would delete"),
        (_, Fate::Replayed) => Some("replayed"),
        (_, Fate::Dropped) => Some("deleted"),
        (_, Fate::Kept) => Some("kept"),
    };
    let mut described = dead_letters::describe(letter);
    if let (Some(word), Some(members)) = (word, described.as_object_mut()) {
        members.insert("result".to_owned(), json!(word));
    }
    if format == OutputFormat::Json {
        return described.to_string() + "\n";
    }
    if action == Action::Show {
        // Pretty JSON escapes control characters.
        return format!("{described:#}\n");
    }
    let member = |name: &str| described.get(name).and_then(serde_json::Value::as_str).unwrap_or("-").to_owned();
    let kind = letter.event().map_or_else(ToString::to_string, |event| event.kind.clone());
    let word = word.map(|word| format!("{word}  ")).unwrap_or_default();
    let (id, reason, subject) = (member("id"), member("reason"), member("subject"));
    format!("{word}{}  {}  {}  {}\n", plain(&id), plain(&reason), plain(&kind), plain(&subject))
}

// === impl Selected ===

impl Selected {
    fn has(&self, letter: &Delivery) -> bool {
        self.0.is_empty() || self.0.contains(&dead_letters::id(letter))
    }
}
