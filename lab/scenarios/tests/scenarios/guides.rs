//! The command blocks of the guides, executed as they are written.
//!
//! Only addresses are replaced: ports by free ones, RabbitMQ's by the real one.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use testkit::environment::{missing, variable};
use testkit::{broker, program};
use tokio::process::Command;

const FLEET_PLANE: &str = include_str!("../../../../docs/guides/fleet-plane.md");
const LOCAL: &str = include_str!("../../../../docs/guides/local.md");
const ON_CALL: &str = include_str!("../../../../docs/guides/on-call-exercise.md");
const JOB: &str = include_str!("../../../../docs/guides/job.md");
const ADMIN: &str = include_str!("../../../../docs/guides/hosted-cluster-admin.md");

/// Time for the whole of a guide, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Ends every process that the script has started, and waits until a command succeeds.
const PRELUDE: &str = "set -eu
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
until_ok() { until \"$@\" >attempt.log 2>&1; do sleep 0.1; done; cat attempt.log; }
";

/// The indented blocks between a heading and the next one of the same level; the whole page without a heading.
fn commands(page: &str, heading: &str) -> String {
    let section = page.split_once(heading).map_or("", |(_, rest)| rest).split("\n## ").next().unwrap_or_default();
    let section = if heading.is_empty() { page } else { section };
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// As many different free ports, below those that programs get which ask for any port: one of them could be taken meanwhile.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // None has one of the guide's ports in its digits, which are replaced one after the other.
    let first = 11_000 + u16::try_from(std::process::id() % 60).unwrap() * 100;
    let next = || first + NEXT.fetch_add(1, Ordering::Relaxed) % 100;
    std::iter::repeat_with(next).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).take(count).collect()
}

/// Runs a script in `folder`, with the programs under test and kubectl on PATH; returns what it prints.
async fn run(folder: &Path, script: &str) -> String {
    let programs = program::path("pull-secret");
    program::path("pull-secret-local");
    let tools = folder.join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    let link = tools.join("kubectl");
    if let Some(kubectl) = variable("REAL_KUBECTL").filter(|_| !link.exists()) {
        std::os::unix::fs::symlink(kubectl, link).unwrap();
    }
    let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", programs.parent().unwrap().display(), tools.display());
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{PRELUDE}{script}")]).current_dir(folder).env_clear();
    command.env("PATH", path).env("HOME", folder).env("no_proxy", "*");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(TIMEOUT, command.output()).await.unwrap_or_else(|_elapsed| {
        let last = std::fs::read_to_string(folder.join("attempt.log")).unwrap_or_default();
        panic!("the guide does not end; its last attempt: {last}")
    });
    let output = output.unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Makes the commands wait for each other where a person would: servers start, events travel.
fn patient(script: &str) -> String {
    script
        .replace("curl ", "until_ok curl -sS --fail ")
        .replace("until_ok curl -sS --fail -s ", "until_ok curl -sS --fail ")
        .replace("pull-secret explain", "until_explained")
        .replace("pull-secret status", "until_available")
        .replace("\nkubectl ", "\nuntil_ok kubectl ")
        .replace("\n. ./", "\nuntil_file ")
}

const WAITS: &str = "
until_explained() { until pull-secret explain \"$@\" >attempt.log 2>&1 || grep -q 'waiting' attempt.log; do sleep 0.1; done; }
until_available() { until pull-secret status | tee attempt.log | grep SecretStored; do sleep 0.1; done; }
until_file() { until grep -q = \"$1\"; do sleep 0.1; done; . ./\"$1\"; }
";

fn kubectl() -> Option<()> {
    variable("REAL_KUBECTL")
        .map(drop)
        .or_else(|| missing("REAL_KUBECTL is not set: no kubectl; `make real-parts` gets it"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_of_the_fleet_plane() {
    let (Some(()), Some(rabbitmq)) = (kubectl(), broker::rabbitmq()) else { return };
    let url = rabbitmq.iter().find(|(name, _)| *name == "BROKER_RABBITMQ_URL").unwrap().1.clone();
    let folder = tempfile::tempdir().unwrap();
    let mut script = commands(FLEET_PLANE, "");
    let names = ["8000", "8081", "8082", "8083", "9091", "9092", "9093"];
    let ports = free_ports(names.len());
    for (name, port) in names.iter().zip(&ports) {
        script = script.replace(name, &port.to_string());
    }
    // The API's own port is its default, so the guide does not name it.
    let port = ports[0];
    script = script.replace("pull-secret api ", &format!("pull-secret api --server-port {port} "));
    script = script.replace("amqp://guest:guest@localhost:5672/", &url);
    script = script.replace("hyperfleet-clusters", &format!("guide-{port}"));
    let output = run(folder.path(), &format!("{WAITS}{}", patient(&script))).await;
    assert!(output.contains("SecretStored") && output.contains("cls-123-pull-secret"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_of_local_mode() {
    let Some(()) = kubectl() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = commands(LOCAL, "## Run it").replace("local up ", "local up --port 0 ");
    let output = run(folder.path(), &format!("{WAITS}{}", patient(&script))).await;
    assert!(output.contains("SecretStored") && output.contains("cls-123-pull-secret"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_of_the_exercise() {
    let Some(()) = kubectl() else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = commands(ON_CALL, "## Start") + &commands(ON_CALL, "## Find out");
    // A watch has no end, and a cluster with a fault is explained with exit code 1.
    let lines: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.ends_with("--watch")).collect();
    let script = lines.join("\n") + "\n";
    let script = script
        .replace("local up ", "local up --port 0 ")
        .replace("\n. ./", "\nuntil_file ")
        .replace("pull-secret retry", "until_ok pull-secret retry")
        .replace("explain cluster cls-03", EXPLAINED);
    let output = run(folder.path(), &format!("{WAITS}{script}")).await;
    for words in ["PermissionDenied", "cls-21", "next: gcloud projects", "clusters-cls-16 created", "retried"] {
        assert!(output.contains(words), "{words}: {output}");
    }
}

/// Explains a cluster until its failure is reported, which the start does not wait for.
const EXPLAINED: &str = "explain cluster cls-03 > explained.txt || true
until grep -q 'next: gcloud projects' explained.txt; do
  sleep 0.5; pull-secret explain cluster cls-03 > explained.txt || true
done
cat explained.txt";

/// A Secret Manager emulator, and a namespace on a Kubernetes emulator, as the guide's reader has the real ones.
const STORE_AND_CLUSTER: &str = "
pull-secret-local emulator secret-manager > store.env 2>/dev/null &
pull-secret-local emulator kubernetes --write-kubeconfig kubeconfig > cluster.env 2>/dev/null &
until_file store.env; until_file cluster.env
until_ok kubectl --kubeconfig kubeconfig create namespace clusters-cls-abc123
export SECRET_MANAGER_EMULATOR_HOST SECRET_MANAGER_EMULATOR_TOKEN_FILE MANAGEMENT_KUBECONFIG=$PWD/kubeconfig
unset KUBECONFIG
";

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_of_the_job() {
    let Some(()) = kubectl() else { return };
    let folder: TempDir = tempfile::tempdir().unwrap();
    let document = br#"{"auths": {"quay.io": {"auth": "dXNlcjp3b3Jk"}}}"#;
    daemon::file::replace(&folder.path().join("pull-secret.json"), document).unwrap();
    let script = commands(JOB, "# The Pull Secret Job").replacen(
        "export CLUSTER_NAME",
        "export MANAGEMENT_KUBECONFIG=$KUBE CLUSTER_NAME",
        1,
    );
    let cluster = STORE_AND_CLUSTER.replace(" MANAGEMENT_KUBECONFIG=$PWD/kubeconfig", "; KUBE=$PWD/kubeconfig");
    let output = run(folder.path(), &format!("{WAITS}{cluster}{script}")).await;
    assert!(output.contains("SecretStored") && output.contains("KubernetesSecretApplied"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_offline_commands_of_the_admins_guide() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, host: &str| {
        let document = format!(r#"{{"auths": {{"{host}": {{"auth": "dXNlcjp3b3Jk"}}}}}}"#);
        daemon::file::replace(&folder.path().join(name), document.as_bytes()).unwrap();
    };
    write("original.json", "quay.io");
    write("mine.json", "registry.example.com");
    write("present.json", "registry.example.com");
    daemon::file::replace(&folder.path().join("images.txt"), b"quay.io/a:1\nregistry.example.com/b\n").unwrap();
    let all = commands(ADMIN, "");
    let command = |start: &str| all.lines().find(|line| line.starts_with(start)).unwrap();
    program::path("global-pull-secret");
    let output = run(folder.path(), command("global-pull-secret merge")).await;
    assert!(output.contains("quay.io") && output.contains("registry.example.com"), "{output}");
    let output = run(folder.path(), command("global-pull-secret plan --images")).await;
    assert!(output.contains("Pods: 2, images: 2; loses 0, replaced 0, gains 0, unchanged 2"), "{output}");
}

#[test]
fn the_commands_of_the_readme_are_targets_of_the_makefile() {
    let (readme, makefile) = (include_str!("../../../../README.md"), include_str!("../../../../Makefile"));
    let commands = commands(readme, "## Try it");
    let targets: Vec<_> = commands.lines().filter_map(|line| line.strip_prefix("make ")?.split(' ').next()).collect();
    assert_eq!(targets, ["demo", "test"]);
    for target in targets {
        assert!(makefile.lines().any(|line| line.starts_with(&format!("{target}:"))), "{target}");
    }
}

/// The targets, variables and output lines that the specification of the Job documents.
#[test]
fn images_are_built_and_pushed_by_the_specifications_targets() {
    let make = |arguments: &str| {
        let mut command = std::process::Command::new("make");
        command.args(["-s", "CONTAINER_TOOL=true", "COMMIT=f1bf914"]).args(arguments.split(' '));
        let output = command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
        (String::from_utf8(output.stdout).unwrap(), error)
    };
    for (arguments, expected) in [
        (
            "image-dev QUAY_USER=your-username",
            "Building dev image quay.io/your-username/pull-secret:dev-f1bf914...\n\
             Pushing dev image quay.io/your-username/pull-secret:dev-f1bf914...\n",
        ),
        (
            "image-push IMAGE_TAG=v1.0.0",
            "Building image quay.io/openshift-hyperfleet/pull-secret:v1.0.0...\n\
             Pushing image quay.io/openshift-hyperfleet/pull-secret:v1.0.0...\n",
        ),
        (
            "images IMAGE_TAG=v1.0.0 IMAGE_REGISTRY=quay.io/myorg",
            "Building image quay.io/myorg/pull-secret:v1.0.0...\n\
             Building image quay.io/myorg/global-pull-secret:v1.0.0...\n\
             Building image quay.io/myorg/sync-global-pullsecret:v1.0.0...\n\
             Building image quay.io/myorg/keyless-credential-provider:v1.0.0...\n",
        ),
    ] {
        assert_eq!(make(arguments), (expected.to_owned(), String::new()), "{arguments}");
    }
    assert_eq!(make("image-dev"), (String::new(), "Error: QUAY_USER is not set".to_owned()));
}

#[test]
fn the_examples_are_those_of_the_guides() {
    let guide = include_str!("../../../../docs/guides/adapter.md");
    for (name, example) in [
        ("adapter-config.yaml", include_str!("../../../../examples/adapter-config.yaml")),
        ("adapter-config-by-provider.yaml", include_str!("../../../../examples/adapter-config-by-provider.yaml")),
    ] {
        let example = example.split_once('\n').unwrap().1;
        assert!(guide.contains(example), "examples/{name} differs from docs/guides/adapter.md");
    }
}
