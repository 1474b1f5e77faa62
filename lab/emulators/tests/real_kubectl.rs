//! The real kubectl against the Kubernetes emulator: whatever it relies on, it has.
//!
//! `REAL_PARTS_KUBECTL` or `REAL_KUBECTL` names one (`hack/real-parts/kubernetes.sh up` tells the latter), else the one on the
//! PATH is taken. Without any the tests say so in a line and pass, unless `CI=true`.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests that may have to say which part is missing")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use emulators::kubernetes::{Authorization, Kubernetes, Settings, User};
use rstest::rstest;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

/// A Job, a `ConfigMap` and a custom kind, as people write them.
const MANIFEST: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: demo}}
data: {colour: blue, size: \"1\"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: store}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry/job:1, env: [{name: MODE, value: store}]}]
";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hostedclusters.hypershift.openshift.io}
spec:
  group: hypershift.openshift.io
  scope: Namespaced
  names: {plural: hostedclusters, kind: HostedCluster, shortNames: [hc]}
  versions:
  - name: v1beta1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Secret, type: string, jsonPath: .spec.pullSecret.name}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const HOSTED_CLUSTER: &str = "
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: hc1}
spec: {pullSecret: {name: first}}
";

const EVENT: &str = "
apiVersion: v1
kind: Event
metadata: {name: e}
type: Normal
reason: Stored
message: version 3
involvedObject: {kind: Secret, apiVersion: v1, namespace: default, name: s, uid: UID}
source: {component: pull-secret}
count: 1
firstTimestamp: \"2026-01-01T00:00:00Z\"
lastTimestamp: \"2026-01-01T00:00:00Z\"
";

/// kubectl with a server of its own.
struct Shell {
    kubernetes: Kubernetes,
    program: PathBuf,
    home: TempDir,
}

impl Shell {
    /// None if there is no kubectl.
    async fn start(settings: Settings) -> Option<Self> {
        let Some(program) = kubectl() else {
            missing();
            return None;
        };
        let kubernetes = Kubernetes::start(settings).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        daemon::file::replace(&home.path().join("kubeconfig"), kubernetes.kubeconfig().as_bytes()).unwrap();
        Some(Self { kubernetes, program, home })
    }

    /// A command on a command line without quotes.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(line.split_whitespace()).env("KUBECONFIG", self.home.path().join("kubeconfig"));
        command.env("HOME", self.home.path()).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn output(&self, line: &str, input: &str) -> Output {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        child.wait_with_output().await.unwrap()
    }

    /// The output of a command that succeeds.
    async fn says(&self, line: &str, input: &str) -> String {
        let Output { status, stdout, stderr } = self.output(line, input).await;
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "kubectl {line}: {status}\n{stdout}\n{stderr}");
        stdout.into_owned()
    }

    /// Checks that a command succeeds and says all of this.
    async fn check(&self, line: &str, input: &str, texts: &[&str]) {
        let said = self.says(line, input).await;
        for text in texts {
            assert!(said.contains(text), "kubectl {line}: {text:?} is missing\n{said}");
        }
    }

    /// Checks that a command fails and says this.
    async fn refused(&self, line: &str, input: &str, text: &str) {
        let Output { status, stdout, stderr } = self.output(line, input).await;
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success(), "kubectl {line} succeeded: {}", String::from_utf8_lossy(&stdout));
        assert!(stderr.contains(text), "kubectl {line}: {text:?} is missing\n{stderr}");
    }
}

#[tokio::test]
async fn secrets_from_their_creation_to_their_end() {
    let Some(shell) = Shell::start(Settings::default()).await else { return };
    shell.check("create secret generic s --from-literal=key=value", "", &["secret/s created"]).await;
    shell.check("get secrets", "", &["NAME", "TYPE", "DATA", "AGE", "s ", "Opaque"]).await;
    shell.check("get secret s -o yaml", "", &["key: dmFsdWU=", "resourceVersion: "]).await;
    shell.check("describe secret s", "", &["Name:         s", "Type:  Opaque", "key:  5 bytes"]).await;
    shell.check("label secret s tier=1", "", &["secret/s labeled"]).await;
    shell.check("annotate secret s note=x", "", &["secret/s annotated"]).await;
    shell.check("get secrets -l tier=1 --no-headers", "", &["s "]).await;
    shell.refused("create secret generic s", "", "secrets \"s\" already exists").await;
    let invalid = "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"t\"}, \"type\": \
                   \"kubernetes.io/dockerconfigjson\", \"stringData\": {\".dockerconfigjson\": \"topsecret\"}}";
    shell.refused("create -f -", invalid, "Invalid value: \"<secret contents redacted>\": invalid character").await;
    shell.check("delete secret s", "", &["secret \"s\" deleted"]).await;
    shell.refused("get secret s", "", "Error from server (NotFound): secrets \"s\" not found").await;
}

#[tokio::test]
async fn manifests_are_applied_by_server_and_client() {
    let Some(shell) = Shell::start(Settings::default()).await else { return };
    let apply = "apply --server-side -f -";
    let applied = ["configmap/settings serverside-applied", "job.batch/store serverside-applied"];
    shell.check(apply, MANIFEST, &applied).await;
    let before = shell.says("get configmap settings -o jsonpath={.metadata.resourceVersion}", "").await;
    shell.check(apply, MANIFEST, &applied).await;
    assert_eq!(shell.says("get configmap settings -o jsonpath={.metadata.resourceVersion}", "").await, before);
    let other = "apply --server-side --field-manager=other -f -";
    let changed = MANIFEST.replace("blue", "red");
    shell.refused(other, &changed, "conflict with \"kubectl\": .data.colour").await;
    shell.check(&format!("{other} --force-conflicts"), &changed, &applied).await;
    shell
        .check("apply -f -", &MANIFEST.replace("size: \"1\"", "shape: round"), &["configmap/settings configured"])
        .await;
    shell
        .check("get configmap settings -o jsonpath={.data}", "", &["\"colour\":\"blue\"", "\"shape\":\"round\""])
        .await;
    shell.check("apply -f - --dry-run=server", MANIFEST, &["configured (server dry run)"]).await;
    let wide = ["STATUS", "COMPLETIONS", "CONTAINERS", "IMAGES", "registry/job:1"];
    shell.check("get jobs -o wide", "", &wide).await;
    shell.check("describe job store", "", &["Completions:", "registry/job:1", "MODE:"]).await;
    shell.check("delete -f -", MANIFEST, &["configmap \"settings\" deleted", "job.batch \"store\" deleted"]).await;
}

#[tokio::test]
async fn custom_kinds_have_their_columns() {
    let Some(shell) = Shell::start(Settings::default()).await else { return };
    shell.check("apply -f -", DEFINITION, &["created"]).await;
    shell.check("wait --for=condition=Established crd --all", "", &["condition met"]).await;
    shell.check("apply -f -", HOSTED_CLUSTER, &["hostedcluster.hypershift.openshift.io/hc1 created"]).await;
    shell.check("get hc", "", &["SECRET", "first"]).await;
    let patch = "patch hc hc1 --type=merge -p {\"spec\":{\"pullSecret\":{\"name\":\"second\"}}}";
    shell.check(patch, "", &["patched"]).await;
    shell.check("get hc hc1 -o jsonpath={.metadata.generation}", "", &["2"]).await;
}

#[tokio::test]
async fn events_are_listed_and_shown_with_their_object() {
    let Some(shell) = Shell::start(Settings::default()).await else { return };
    shell.says("create secret generic s", "").await;
    let uid = shell.says("get secret s -o jsonpath={.metadata.uid}", "").await;
    let event = EVENT.replace("UID", &uid);
    shell.check("create -f -", &event, &["event/e created"]).await;
    shell.check("get events", "", &["LAST SEEN", "REASON", "Stored", "secret/s", "version 3"]).await;
    shell.check("describe secret s", "", &["Name:         s"]).await;
    let selected = shell.says("get events --field-selector involvedObject.name=other", "").await;
    assert_eq!(selected, "");
}

#[tokio::test]
async fn a_watch_shows_what_happens() {
    let Some(shell) = Shell::start(Settings::default()).await else { return };
    shell.says("create secret generic first", "").await;
    let mut child: Child = shell.command("get secrets --watch --no-headers").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().unwrap().starts_with("first "));
    shell.says("create secret generic second", "").await;
    assert!(lines.next_line().await.unwrap().unwrap().starts_with("second "));
    shell.kubernetes.shutdown().await;
    drop(child.kill().await);
}

#[tokio::test]
async fn credentials_reach_a_server_without_tls() {
    let tokens = [("alice".to_owned(), User { name: "alice".to_owned(), groups: Vec::new() })].into();
    let settings = Settings { authorization: Authorization::Rbac, tokens, ..Settings::default() };
    let Some(shell) = Shell::start(settings).await else { return };
    shell.check("auth can-i delete nodes", "", &["yes"]).await;
    shell.check("create role see --verb=get --resource=secrets --resource-name=s", "", &["created"]).await;
    shell.check("create rolebinding see --role=see --user=alice", "", &["created"]).await;
    let alice = shell.kubernetes.kubeconfig_for(Some("alice"));
    daemon::file::replace(&shell.home.path().join("kubeconfig"), alice.as_bytes()).unwrap();
    shell.check("auth can-i get secret/s", "", &["yes"]).await;
    shell
        .refused(
            "get secrets",
            "",
            "User \"alice\" cannot list resource \"secrets\" in API group \"\" in the namespace",
        )
        .await;
}

#[rstest]
#[case::namespaces("get namespaces", "kube-system")]
#[case::api_resources("api-resources", "secrets")]
#[case::everything("get all", "")]
#[case::version("version", "v1.37.0+emulator")]
#[case::dry_run("create configmap c --from-literal=a=b --dry-run=server", "configmap/c created (server dry run)")]
#[case::namespace("create namespace n", "namespace/n created")]
#[case::job("create job j --image=registry/job:1 -- run", "job.batch/j created")]
#[case::pod("run p --image=registry/pod:1", "pod/p created")]
#[case::deployment("create deployment d --image=registry/pod:1 --port=80", "deployment.apps/d created")]
#[case::service("create service clusterip svc --tcp=80:web", "service/svc created")]
#[case::quota("create quota q --hard=pods=2,requests.memory=2Gi", "resourcequota/q created")]
#[case::token("create token default", ".")]
#[case::caller("auth whoami", "ATTRIBUTE")]
#[tokio::test]
async fn the_usual_commands_work(#[case] line: &str, #[case] text: &str) {
    let Some(shell) = Shell::start(Settings::default()).await else { return };
    shell.check(line, "", &[text]).await;
}

/// The kubectl to test with.
fn kubectl() -> Option<PathBuf> {
    if let Some(given) = variable("REAL_PARTS_KUBECTL").or_else(|| variable("REAL_KUBECTL")) {
        return Some(PathBuf::from(given)).filter(|program| program.is_file());
    }
    let path = variable("PATH").unwrap_or_default();
    let parts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real-parts/kubernetes/bin");
    let folders = std::env::split_paths(&path).chain([parts]);
    folders.map(|folder| folder.join("kubectl")).find(|program| program.is_file())
}

/// Says which part is missing; in CI a missing part is a failure.
fn missing() {
    let ci = variable("CI").is_some_and(|value| value == "true");
    assert!(!ci, "kubectl is missing; `make real-parts` gets it");
    eprintln!("skipped: kubectl is missing; `make real-parts` gets it");
}

#[expect(clippy::disallowed_methods, reason = "the test's own switches, not a setting of the product")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
