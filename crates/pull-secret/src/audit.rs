//! `pull-secret audit verify`: shows if audit records in a log were changed or are missing.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use daemon::output;
use hyperfleet_api::audit::{Verification, Verified};

use crate::cli::{OutputFormat, VerifyArguments};

/// Verifies the chains in the files; the exit code is 1 if one has a fault, or if there is none.
pub(crate) fn verify(arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let mut verification = Verification::default();
    for file in &arguments.files {
        read(&mut verification, file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let chains = verification.chains();
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

fn read(verification: &mut Verification, file: &Path) -> io::Result<()> {
    if file == Path::new("-") {
        return verification.read("stdin", io::stdin().lock());
    }
    verification.read(&file.to_string_lossy(), BufReader::new(File::open(file)?))
}

fn row(chain: &Verified) -> [String; 5] {
    let state = match &chain.fault {
        Some(fault) => format!("BROKEN: {fault}"),
        None if chain.ended => "complete".to_owned(),
        None => "unbroken, without an end: the process runs, was killed, or the last records are missing".to_owned(),
    };
    [chain.chain.clone(), chain.records.to_string(), chain.first_time.clone(), chain.last_time.clone(), state]
}
