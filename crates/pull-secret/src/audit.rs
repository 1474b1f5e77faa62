//! `pull-secret audit verify`: shows if audit records in a log were changed or are missing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use daemon::output;
use hyperfleet_api::audit::{self, Verified};

use crate::cli::{OutputFormat, VerifyArguments};

/// Verifies the chains in the files; the exit code is 1 if one has a fault, or if there is none.
pub(crate) fn verify(arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let chains = audit::verify(open(&arguments.files)?).context("cannot read the log")?;
    let is_whole = !chains.is_empty() && chains.iter().all(|chain| chain.fault.is_none());
    match arguments.output {
        OutputFormat::Table if chains.is_empty() => {
            output::note("no audit record was found: give the log of `pull-secret api` in JSON, a record a line");
        }
        OutputFormat::Table => {
            let heads = ["CHAIN", "RECORDS", "FIRST", "LAST", "STATE"];
            let _printed = output::print(output::table(heads, chains.iter().map(row)) + "\n")?;
        }
        OutputFormat::Json => {
            let _printed = output::print(serde_json::to_string_pretty(&chains)? + "\n")?;
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files one after the other, as one log: a record may be in any of them.
fn open(files: &[PathBuf]) -> anyhow::Result<Box<dyn BufRead>> {
    let mut log: Box<dyn BufRead> = Box::new(io::empty());
    for file in files {
        let next: Box<dyn BufRead> = if file == Path::new("-") {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
            Box::new(BufReader::new(opened))
        };
        log = Box::new(log.chain(next));
    }
    Ok(log)
}

fn row(chain: &Verified) -> [String; 5] {
    let state = match &chain.fault {
        Some(fault) => format!("BROKEN: {fault}"),
        None if chain.ended => "complete".to_owned(),
        None => "unbroken, without an end: the process runs, was killed, or the last records are missing".to_owned(),
    };
    [chain.chain.clone(), chain.records.to_string(), chain.first_time.clone(), chain.last_time.clone(), state]
}
