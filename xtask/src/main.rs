//! Development tasks: check the rules of the code, generate reference pages, run the checks of CI.

mod ci;
mod circles;
mod dashboards;
#[cfg(test)]
mod documents;
mod generate;
mod language;
#[cfg(test)]
mod outputs;
mod signatures;
mod tidy;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Development tasks")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the rules that the compiler does not
    Tidy,
    /// Write the pages of docs/reference and the dashboards from the code
    Gen {
        /// Write nothing; fail if a page is not as it would be written
        #[arg(long)]
        check: bool,
    },
    /// Run every check of CI but the tests
    Ci,
}

fn main() -> ExitCode {
    let root = tree::root();
    let result = match Cli::parse().command {
        Command::Tidy => tidy::check(&root),
        Command::Gen { check } => generate::pages(&root, check),
        Command::Ci => ci::run(&root),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tree::eprint(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
