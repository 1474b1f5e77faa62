//! `global-pull-secret merge`: merges files as the controller merges Secrets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use docker_config::merge::{self, ConflictPolicy, InvalidEntries, Merged, Prefix, Source, admit, merge as merge_all};
use docker_config::{Document, Limits, Problem};
use secrecy::ExposeSecret as _;
use secrecy::zeroize::Zeroizing;
use serde::Serialize;

use crate::arguments::{CommandResult, MergeArguments, Output};
use crate::policy::{ORIGINAL_WINS, SKIP};
use crate::record::source_name;

/// The exit code of a rejected file, as in `pull-secret`.
pub(crate) const REFUSED: u8 = 3;
/// Maximum size of a file; a larger one is not read to its end.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// The result of a merge of files; holds no credential.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Verdict {
    merged: bool,
    registries: Vec<Registry>,
    /// The problems by file.
    problems: BTreeMap<String, Vec<String>>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Registry {
    #[serde(rename = "registry")]
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    over: Vec<String>,
    why: &'static str,
    #[serde(skip)]
    line: String,
}

/// Merges the files; the exit code is 3 where one of them is refused.
pub fn merge(arguments: &MergeArguments) -> anyhow::Result<CommandResult> {
    let mut verdict = Verdict::default();
    let document = verdict.merge(arguments)?;
    if let (Some(document), Some(path)) = (&document, &arguments.write) {
        let bytes = document.to_bytes();
        // The path is not printed: it may be a credential in the wrong argument.
        let written = daemon::file::replace(path, bytes.expose_secret());
        written.map_err(|error| anyhow::anyhow!("cannot write the merged document: {}", error.kind()))?;
    }
    let text = match arguments.output {
        Output::Text => verdict.text(),
        Output::Json => serde_json::to_string_pretty(&verdict)? + "\n",
    };
    let is_refused = document.is_none() || !verdict.problems.is_empty();
    Ok(CommandResult { text, code: if is_refused { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS } })
}

impl Verdict {
    /// The merged document, unless a file stands in the way.
    fn merge(&mut self, arguments: &MergeArguments) -> anyhow::Result<Option<Document>> {
        let policy = policy(&arguments.conflict_policy, &arguments.protected_prefix)?;
        let invalid = invalid_entries(&arguments.invalid_entries);
        let original = read(&arguments.original, "the original")?;
        let original = Document::parse(&original, &Limits::SECRET).map_err(|problems| {
            self.problems.insert("original".to_owned(), problems.iter().map(ToString::to_string).collect());
        });
        let mut additional = Vec::new();
        for (path, number) in arguments.additional.iter().zip(1..) {
            let name = format!("additional {number}");
            match admit(&read(path, &name)?, &Limits::SECRET, invalid) {
                Ok(admitted) => {
                    self.notes.extend(reported(&name, "left out", &admitted.left_out));
                    self.notes.extend(reported(&name, "warning", &admitted.warnings));
                    additional.push((name, admitted.document));
                }
                Err(problems) => {
                    self.problems.insert(name, problems.iter().map(ToString::to_string).collect());
                }
            }
        }
        let Ok(original) = original else { return Ok(None) };
        let sources: Vec<Source<'_>> = additional.iter().map(|(name, document)| Source { name, document }).collect();
        let merged = match merge_all(&original, &sources, &policy) {
            Ok(merged) => merged,
            Err(too_large) => {
                self.problems.insert("merged".to_owned(), vec![too_large.to_string()]);
                return Ok(None);
            }
        };
        let Merged { document, decisions, left_out } = merged;
        self.merged = true;
        self.notes.extend(left_out.iter().map(|(origin, name)| format!("{origin}: {name} is not taken over")));
        self.registries = decisions
            .iter()
            .map(|decision| Registry {
                key: decision.registry.clone(),
                from: decision.winner.as_ref().map(|winner| source_name(winner).to_owned()),
                over: decision.overridden.iter().map(|origin| source_name(origin).to_owned()).collect(),
                why: decision.reason.id(),
                line: decision.to_string(),
            })
            .collect();
        Ok(Some(document))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail, here and below.
        for registry in &self.registries {
            let _infallible = writeln!(text, "{}", registry.line);
        }
        for note in &self.notes {
            let _infallible = writeln!(text, "note: {note}");
        }
        for (name, problems) in &self.problems {
            for problem in problems {
                let _infallible = writeln!(text, "problem: {name}: {problem}");
            }
        }
        text
    }
}

fn reported(name: &str, what: &str, problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| format!("{name}: {what}: {problem}")).collect()
}

/// The treatment of an invalid entry by its name.
pub(crate) fn invalid_entries(name: &str) -> InvalidEntries {
    if name == SKIP { InvalidEntries::Skip } else { InvalidEntries::RejectAll }
}

/// The policy of a merge by the names of its parts.
pub(crate) fn policy(conflict: &str, protected_prefixes: &[String]) -> anyhow::Result<merge::Policy> {
    let conflict =
        if conflict == ORIGINAL_WINS { ConflictPolicy::OriginalWins } else { ConflictPolicy::AdditionalWins };
    let prefix = |text: &String| {
        Prefix::parse(text)
            .map_err(|kind| daemon::faults::Faults::of_configuration([format!("--protected-prefix: {kind}")]))
    };
    let protected = protected_prefixes.iter().map(prefix).collect::<Result<_, _>>()?;
    Ok(merge::Policy { conflict, protected, max_bytes: Limits::SECRET.max_bytes })
}

/// Reads a file with a credential document; `what` names it in the error.
pub(crate) fn read(path: &Path, what: &str) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    let read = File::open(path).and_then(|file| file.take(LARGEST_FILE).read_to_end(&mut bytes));
    // The path is not printed: it may be the document itself in the wrong argument.
    read.with_context(|| format!("cannot read the file of {what}"))?;
    Ok(bytes)
}
