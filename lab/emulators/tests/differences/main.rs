//! The Kubernetes emulator against a real API server: one suite of scenarios for both, and every difference documented; and
//! the guesses of the Key Vault emulator; both of the Quay emulator; and the differences of the AMS emulator.
//!
//! - `scenarios/*.yaml` are the scenarios: requests, and the parts of their answers that matter.
//! - `kubernetes.json` holds the answers of the real server, recorded from the one that `REAL_KUBECONFIG` names.
//! - `docs/reference/emulators.md` is generated: scenarios with differing answers, and the reason why each is left. Behind them
//!   stand the guesses of the Key Vault emulator (`key_vault.yaml`), with its answers: there is no real vault to ask; and the
//!   differences and guesses of the Quay emulator (`quay.yaml`), and those of the AMS emulator (`accounts_mgmt.md`).
//!
//! A difference needs a reason in its scenario (`left`), and a reason needs a difference. After a change of a scenario, of
//! the emulator, or of the version of Kubernetes:
//!
//! ```text
//! UPDATE_DIFFERENCES=1 hack/real-parts/with.sh kubernetes -- cargo test --locked --workspace --test differences
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "what is missing fails the test that looks for it; another version of Kubernetes is reported"
)]

mod answers;
mod key_vault;
mod page;
mod play;
mod quay;
mod suite;

use std::path::PathBuf;
use std::sync::Arc;

use answers::Recording;
use play::Server;
use suite::Suite;
use testkit::api_server::Kind;
use testkit::environment::variable;

/// The command that brings recording and page up to date.
const COMMAND: &str =
    "UPDATE_DIFFERENCES=1 hack/real-parts/with.sh kubernetes -- cargo test --locked --workspace --test differences";

/// The differences of the Harbor emulator, for which no answers were recorded.
const HARBOR: &str = include_str!("harbor.md");

/// The differences of the emulator of Red Hat's service accounts, for which no answers were recorded.
const RED_HAT: &str = include_str!("red_hat.md");

/// The differences of the AMS emulator, for which no answers were recorded.
const ACCOUNTS_MGMT: &str = include_str!("accounts_mgmt.md");

fn is_update() -> bool {
    variable("UPDATE_DIFFERENCES").is_some()
}

fn page_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/emulators.md")
}

/// Compares the real server's answers with the recorded ones; records them if this is an update.
async fn record(suite: &Arc<Suite>) {
    let Some(server) = Server::start(Kind::Real).await else { return };
    let found = Recording { version: server.version().await, answers: server.play(suite).await };
    if is_update() {
        found.write();
        return;
    }
    let recorded = Recording::read();
    let differing = found.differing_from(&recorded, suite);
    if found.minor() == recorded.minor() {
        assert!(differing.is_empty(), "{} answers otherwise than recorded: {COMMAND}\n{differing}", found.version);
    } else if !differing.is_empty() {
        let (version, minor) = (&found.version, recorded.minor());
        eprintln!("the recorded answers are of {minor}; {version} answers otherwise:\n{differing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_answers_as_recorded() {
    if !is_update() {
        record(&Arc::new(Suite::read())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_difference_of_the_emulator_is_documented() {
    let suite = Arc::new(Suite::read());
    if is_update() {
        record(&suite).await;
    }
    let recorded = Recording::read();
    let server = Server::start(Kind::Emulator).await.unwrap();
    let found = Recording { version: "the emulator".to_owned(), answers: server.play(&suite).await };
    let (page, faults) = page::render(&suite, &recorded, &found);
    let unrecorded = [HARBOR, RED_HAT, ACCOUNTS_MGMT].map(|section| format!("\n{section}")).concat();
    let page = page + &key_vault::section().await + &quay::section().await + &unrecorded;
    if is_update() {
        daemon::file::replace(&page_path(), page.as_bytes()).unwrap();
    }
    assert!(faults.is_empty(), "{faults}");
    let committed = std::fs::read_to_string(page_path()).unwrap_or_default();
    assert!(committed == page, "docs/reference/emulators.md is not as it would be written: {COMMAND}\n{page}");
}
