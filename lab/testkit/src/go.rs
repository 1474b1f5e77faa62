//! The Go programs of `lab/interop/go`, as `hack/real-parts/go-clients.sh` has built them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use tokio::process::Command;

use crate::environment::missing;

/// A program with an empty environment and captured output. `None`, with a line that says how to get it, if it is missing or
/// older than its sources; in CI that is a failure.
pub fn command(name: &str) -> Option<Command> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("target/real-parts/go").join(name);
    let built = modified(&program);
    if built.is_none() || sources(&root.join("lab/interop/go")).iter().any(|source| modified(source) > built) {
        return missing(&format!(
            "{} is missing or older than its sources; `make real-parts` builds it (hack/real-parts/go-clients.sh)",
            program.display()
        ));
    }
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Some(command)
}

/// The files of a Go module.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension != "md")).collect()
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}
