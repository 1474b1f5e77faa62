//! client-go against the Kubernetes emulator, and against a real API server: whatever Go controllers rely on, both have.
//!
//! `make real-parts` builds the Go program (`hack/real-parts/go-clients.sh`) and starts the real server. Whichever is missing is
//! printed in a line and lets its test pass, unless `CI=true`.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;

use emulators::kubernetes::{Call, Kubernetes, Settings};
use rstest::rstest;
use testkit::environment::{missing, variable};
use tokio::process::Command;

/// The bodies that a client of Go types sends.
const ENCODINGS: [&str; 2] = ["json", "protobuf"];

#[rstest]
#[case::apply("apply")]
#[case::election("election")]
#[case::informers("informers")]
#[case::objects("objects")]
#[tokio::test]
async fn a_story_on_the_emulator(#[case] story: &str, #[values("json", "protobuf")] encoding: &str) {
    let Some(command) = testkit::go::command("kubernetes") else { return };
    let calls = on_the_emulator(command, Settings::default(), &[story, encoding]).await;
    assert!(calls.len() > 4, "the calls went elsewhere");
}

/// A watch that is cut is continued; one that is too old is begun anew.
#[tokio::test]
async fn an_informer_survives_the_end_of_its_watches() {
    let Some(command) = testkit::go::command("kubernetes") else { return };
    let faults = ["watch/configmaps:cut(after=3)", "watch/configmaps:gone(after=2)@2"];
    let settings = Settings { faults: faults.map(|fault| fault.parse().unwrap()).into(), ..Settings::default() };
    let calls = on_the_emulator(command, settings, &["informers", "json"]).await;
    let of_maps = |verb: &str| calls.iter().filter(|call| call.resource == "configmaps" && call.verb == verb).count();
    // One of the watches is that of metadata. All lists were streamed.
    assert_eq!((of_maps("watch"), of_maps("list")), (4, 0));
}

#[rstest]
#[case::apply("apply")]
#[case::election("election")]
#[case::informers("informers")]
#[case::objects("objects")]
#[tokio::test]
async fn a_story_on_a_real_server(#[case] story: &str) {
    let Some(kubeconfig) = variable("REAL_KUBECONFIG") else {
        return missing("REAL_KUBECONFIG is not set: no real API server; `make real-parts` starts one")
            .unwrap_or_default();
    };
    for encoding in ENCODINGS {
        let Some(command) = testkit::go::command("kubernetes") else { return };
        run(command, Path::new(&kubeconfig), &[story, encoding]).await;
    }
}

/// Runs a story on an emulator of its own; returns the calls.
async fn on_the_emulator(command: Command, settings: Settings, story: &[&str; 2]) -> Vec<Call> {
    let kubernetes = Kubernetes::start(settings).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    daemon::file::replace(&kubeconfig, kubernetes.kubeconfig().as_bytes()).unwrap();
    run(command, &kubeconfig, story).await;
    let calls = kubernetes.calls();
    kubernetes.shutdown().await;
    calls
}

/// Runs a story to its end, which must be a good one.
async fn run(mut command: Command, kubeconfig: &Path, [story, encoding]: &[&str; 2]) {
    let namespace = format!("client-go-{story}-{encoding}-{}", std::process::id());
    command.args([&namespace, *encoding, *story]).env("KUBECONFIG", kubeconfig);
    let output = command.output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{story} with {encoding}: {}\n{stdout}\n{stderr}", output.status);
}
