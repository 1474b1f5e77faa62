//! Clients of cloud services in Python and Node, as the scripts `hack/real-parts/*-clients.sh` have got them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::environment::{missing, variable};

/// A Python with the packages in `folder` of the real parts. `None`, with a line that says how to get it, if it is missing; in
/// CI that is a failure.
pub fn python(folder: &str) -> Option<Command> {
    let interpreter = parts().join(folder).join("python/bin/python");
    if !interpreter.exists() {
        return missing(&format!("{} is missing; `make real-parts` gets it", interpreter.display()));
    }
    Some(captured(&interpreter))
}

/// The folder of packages for Node in `folder` of the real parts, if Node is there and `package` among them. `None`, with a
/// line that says how to get it, if not; in CI that is a failure.
pub fn node_modules(folder: &str, package: &str) -> Option<PathBuf> {
    let modules = parts().join(folder).join("node/node_modules");
    if modules.join(package).exists() && on_path("node") {
        return Some(modules);
    }
    missing(&format!("node or {package} in {} is missing; `make real-parts` gets the latter", modules.display()))
}

/// Node, to be given a script.
pub fn node() -> Command {
    captured(Path::new("node"))
}

/// True if this machine has the program.
pub fn on_path(program: &str) -> bool {
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A program with captured output; of the environment it has the PATH only.
fn captured(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", variable("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

fn parts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real-parts")
}
