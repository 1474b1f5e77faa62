//! `pull-secret validate`: a verdict on a pull secret, for people and for programs.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use daemon::output;
use docker_config::{Entry, Limits, Problem};
use fleet_model::job::Reason;
use secrecy::zeroize::Zeroizing;
use serde::Serialize;

use crate::cli::{OutputFormat, ValidateArguments};

/// The verdict about a pull secret, without credentials.
#[derive(Serialize)]
struct Verdict {
    valid: bool,
    registries: Vec<Registry>,
    problems: Vec<Finding>,
    warnings: Vec<Finding>,
}

#[derive(Serialize)]
struct Registry {
    key: String,
    normalized: String,
    credential: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    line: u32,
}

#[derive(Serialize)]
struct Finding {
    path: String,
    kind: &'static str,
    message: String,
    line: u32,
    column: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

/// A file beyond this is no pull secret, and is not read to its end.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// Checks the file; the exit code is 0 for a valid pull secret and 3 for another.
pub(crate) fn validate(arguments: &ValidateArguments) -> anyhow::Result<ExitCode> {
    let bytes = read(&arguments.file)?;
    let verdict = judge(&bytes);
    match arguments.output {
        OutputFormat::Table => output::print(verdict.table())?,
        OutputFormat::Json => output::print(serde_json::to_string_pretty(&verdict)? + "\n")?,
    };
    Ok(if verdict.valid { ExitCode::SUCCESS } else { ExitCode::from(Reason::InvalidPullSecret.exit_code()) })
}

fn read(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    let read = if path == Path::new("-") {
        io::stdin().lock().take(LARGEST_FILE).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(LARGEST_FILE).read_to_end(&mut bytes))
    };
    // The path is not printed: it may be the document itself, given as an argument.
    read.context("cannot read the file")?;
    Ok(bytes)
}

fn judge(bytes: &[u8]) -> Verdict {
    match docker_config::parse(bytes, &Limits::default()) {
        Ok(document) => Verdict {
            valid: true,
            registries: document.entries().iter().map(Registry::from).collect(),
            problems: Vec::new(),
            warnings: document.warnings().iter().map(Finding::from).collect(),
        },
        Err(problems) => Verdict {
            valid: false,
            registries: problems.entries().iter().map(Registry::from).collect(),
            problems: problems.iter().map(Finding::from).collect(),
            warnings: problems.warnings().iter().map(Finding::from).collect(),
        },
    }
}

// === impl Verdict ===

impl Verdict {
    fn table(&self) -> String {
        let mut text = String::new();
        if !self.registries.is_empty() {
            let rows = self.registries.iter().map(Registry::row);
            text = output::table(["REGISTRY", "CREDENTIAL", "USER", "LINE"], rows) + "\n";
        }
        for (word, findings) in [("problem", &self.problems), ("warning", &self.warnings)] {
            for finding in findings {
                // Writing to a String cannot fail.
                let _infallible = writeln!(text, "{word}: {}", finding.message);
                if let Some(hint) = finding.hint {
                    let _infallible = writeln!(text, "  hint: {hint}");
                }
            }
        }
        text + &self.summary()
    }

    fn summary(&self) -> String {
        let count = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let warnings = match self.warnings.len() {
            0 => String::new(),
            warnings => format!(", {}", count(warnings, "warning")),
        };
        if self.valid {
            let registries = self.registries.len();
            let registries = if registries == 1 { "1 registry".to_owned() } else { format!("{registries} registries") };
            format!("valid: {registries}{warnings}\n")
        } else {
            format!("invalid: {}{warnings}\n", count(self.problems.len(), "problem"))
        }
    }
}

impl Registry {
    fn row(&self) -> [String; 4] {
        let Self { key, normalized: _, credential, user, line } = self;
        let user = user.as_deref().unwrap_or("-");
        [key.clone(), (*credential).to_owned(), user.to_owned(), line.to_string()]
    }
}

impl From<&Entry> for Registry {
    fn from(entry: &Entry) -> Self {
        Self {
            key: entry.key().to_string(),
            normalized: entry.key().normalized().to_owned(),
            credential: entry.credential().label(),
            user: entry.masked_user(),
            line: entry.position().line,
        }
    }
}

impl From<&Problem> for Finding {
    fn from(problem: &Problem) -> Self {
        let position = problem.position();
        Self {
            path: problem.path().to_owned(),
            kind: problem.kind().id(),
            message: problem.to_string(),
            line: position.line,
            column: position.column,
            hint: problem.hint(),
        }
    }
}
