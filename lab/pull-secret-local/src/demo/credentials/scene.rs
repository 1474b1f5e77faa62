//! The parts beside the fleet plane: an emulated Quay, a real registry, skopeo, the credentials service and its commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::{Context as _, ensure};
use credentials::credential::Credential;
use credentials::ledger::{Filter, Ledger};
use emulators::quay::{self, Operation, Quay};
use emulators::real_registry::{Login, Programs, RealRegistry};
use tokio::process::Command;

use super::super::printer::Printer;
use super::super::world::{CLUSTER, until};
use crate::credentials::{Prepared, TEAM, Wiring, prepare};
use crate::fleet::{Fleet, job_program};
use crate::ready;

/// The repository of the image, without its organization.
const REPOSITORY: &str = "release";
/// The tag of the image.
const TAG: &str = "v1";
/// The robot that pushes the image.
const PUSHER: &str = "pusher";
/// The person who orders.
const PERSON: &str = "jane";

/// Everything beside the fleet plane. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(super) quay: Quay,
    pub(super) registry: RealRegistry,
    ledger: Ledger,
    config: PathBuf,
    program: PathBuf,
}

// === impl Scene ===

impl Scene {
    /// Starts the parts, of which the service is one of the fleet plane's, and pushes the image.
    pub(crate) async fn set(fleet: &mut Fleet, programs: Programs) -> anyhow::Result<Self> {
        let settings = quay::Settings {
            repositories: BTreeSet::new(),
            teams: [TEAM.to_owned()].into(),
            ..quay::Settings::default()
        };
        let quay = Quay::start(settings).await?;
        let registry = RealRegistry::start(programs, &quay).await?;
        let wiring = Wiring {
            folder: &fleet.folder,
            api: &fleet.places.api,
            quay: &quay,
            host: registry.address().to_string(),
            repository: REPOSITORY,
        };
        let Prepared { server, ledger, config } = prepare(&wiring).await?;
        let health = server.health_address();
        fleet.add("credentials", |stop| async move {
            Box::pin(server.run(stop)).await.context("the ledger cannot be used")
        });
        ready::wait_for("credentials", health).await?;
        let scene = Self { quay, registry, ledger, config, program: job_program()? };
        let password = scene.quay.add_pusher(PUSHER, REPOSITORY);
        let user = format!("{}+{PUSHER}", scene.quay.organization());
        scene.registry.push(&Login { user: &user, password: &password }, &scene.image()).await?;
        Ok(scene)
    }

    /// The image, without the registry's host.
    pub(super) fn image(&self) -> String {
        format!("{}/{REPOSITORY}:{TAG}", self.quay.organization())
    }

    /// The calls at Quay since the start, by operation; without the registry's reports, which Quay's own registry does not need.
    pub(super) fn calls(&self) -> BTreeMap<&'static str, usize> {
        let mut calls = self.quay.counts();
        calls.remove(Operation::ReportEvents.name());
        calls
    }

    /// Pulls with a pull secret, as a node does; returns the message of a refusal.
    pub(super) async fn pull(&self, pull_secret: &[u8]) -> anyhow::Result<Option<String>> {
        let output = self.registry.pull(pull_secret, &self.image()).await?;
        Ok((!output.status.success()).then(|| message(&String::from_utf8_lossy(&output.stderr))))
    }

    /// Runs a command of `pull-secret credentials`, and shows it with its messages; returns its data.
    pub(super) async fn order(&self, printer: &Printer, arguments: &[&str]) -> anyhow::Result<String> {
        let shown: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        printer.note(&format!("$ pull-secret credentials {}", shown.join(" ")))?;
        let Output { status, stdout, stderr } = self.command().args(arguments).output().await.context("pull-secret")?;
        let messages = String::from_utf8_lossy(&stderr);
        ensure!(status.success(), "pull-secret credentials {}: {}", shown.join(" "), messages.trim());
        messages.lines().try_for_each(|line| printer.quote(line))?;
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    /// A command of the service's operators. The environment of this process is not meant for it.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("credentials").env_clear().env("USER", PERSON).env("HYPERFLEET_CREDENTIALS_CONFIG", &self.config);
        command.current_dir(self.config.parent().unwrap_or(Path::new("/")));
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Waits until one of the cluster's credentials is so.
    pub(super) async fn until(&self, what: &str, is_so: impl Fn(&Credential) -> bool) -> anyhow::Result<Credential> {
        let all = async || {
            let filter = Filter { cluster: Some(CLUSTER.to_owned()), ..Filter::default() };
            Ok::<_, anyhow::Error>(self.ledger.list(&filter).await?)
        };
        let last = async || {
            let state = |found: &Credential| format!("credential {}: {}, {}", found.id, found.state, found.reason);
            Ok(all().await?.iter().map(state).collect::<Vec<_>>().join("; "))
        };
        until(what, async || Ok(all().await?.into_iter().find(|found| is_so(found))), last).await
    }
}

/// An argument as a shell reads it.
fn quoted(argument: &str) -> String {
    if argument.contains(' ') { format!("\"{argument}\"") } else { argument.to_owned() }
}

/// The message of skopeo's last line, without the rest of its log line.
fn message(errors: &str) -> String {
    let last = errors.trim().lines().next_back().unwrap_or_default();
    let inner = last.split_once(" msg=\"").map(|(_, rest)| rest.trim_end().trim_end_matches('"'));
    inner.unwrap_or(last).replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn skopeos_message_is_one_line() {
        let errors = "Getting image source signatures\n\
                      time=\"2026-11-27T20:38:45Z\" level=fatal msg=\"reading manifest v1 in \\\"a/b\\\": unauthorized\"\n";
        assert_eq!(message(errors), "reading manifest v1 in \"a/b\": unauthorized");
        assert_eq!(message("killed"), "killed");
        assert_eq!(message(""), "");
    }
}
