//! What we do to the code besides writing it: check the laws, generate reference pages, run CI.

mod ci;
mod generate;
mod tidy;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "What we do to the code besides writing it")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the laws of the house that the compiler does not
    Tidy,
    /// Write the pages of docs/reference from the code
    Gen {
        /// Write nothing; fail if a page is not as it would be written
        #[arg(long)]
        check: bool,
    },
    /// Run all that CI runs, one step after the other
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
            tree::tell(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
