//! The HyperFleet API as a process, and a client of it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::program;

/// A client of a server that closes a connection which was idle for five seconds: a request must not meet that moment.
pub fn http_client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().pool_idle_timeout(Duration::from_secs(2)).build().unwrap()
}

/// `pull-secret api` with these arguments, started in that folder.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = program::pull_secret(&["api"]);
    command.args(arguments).current_dir(folder);
    command
}

/// A server in that folder, and the address that it listens on.
pub async fn server(folder: &Path) -> (Child, String) {
    server_with(folder, &[]).await
}

/// A server in that folder with these variables, and the address that it listens on.
pub async fn server_with(folder: &Path, variables: &[(&str, &str)]) -> (Child, String) {
    let mut command = command(folder, &["--server-port=0", "--health-port=0", "--metrics-port=0"]);
    let mut child = command.envs(variables.iter().copied()).stdout(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).await.unwrap();
    let (_, address) = line.split(',').next().unwrap().split_once("://").unwrap();
    (child, address.to_owned())
}
