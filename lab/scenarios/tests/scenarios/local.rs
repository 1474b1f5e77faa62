//! `local up`: a fleet plane in one process, which loses nothing when it is killed, and ends in order.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use hyperfleet_client::Resource;
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use testkit::fleet::{self, Up, condition, document, folder, is_available, run, up, view};
use testkit::program;
use testkit::rig::{Signal, signal};

const ID: &str = "cls-1";

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gets_its_pull_secret_keeps_it_right_and_loses_it_with_its_deletion() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    let (player, cluster) = (&up.player, up.cluster().await);
    player.create(ID, &document("a")).await;
    let waiting = player.until(ID, |cluster| !view(cluster).is_null()).await;
    let message = condition(&waiting, "Available")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("validation"), "{message}");
    player.make_ready(&cluster, ID, 1).await;
    let available = player.until(ID, |cluster| is_available(cluster, 1)).await;
    assert_eq!(view(&available)["data"]["secretVersion"], 1);
    assert_eq!(view(&available)["data"]["digest"], available.spec["pullSecret"]["data"]["digest"]);
    assert_eq!(up.versions(ID).await, [document("a")]);
    assert_eq!(up.applied_secret(ID).await, Some(document("a")));
    player.rotate(ID, &document("b")).await;
    player.make_ready(&cluster, ID, 2).await;
    player.until(ID, |cluster| is_available(cluster, 2)).await;
    assert_eq!(up.versions(ID).await, [document("b"), document("a")]);
    assert_eq!(up.applied_secret(ID).await, Some(document("b")));
    let terminating = player.delete(ID).await;
    player.finalize(ID, terminating.generation).await;
    player.until_gone(ID).await;
    assert_eq!((up.versions(ID).await, up.applied_secret(ID).await), (vec![], None));
    let (code, output) = up.interrupt().await;
    assert_eq!(code, Some(0), "{output}");
    let job = r#""component":"job""#;
    assert!(output.lines().any(|line| line.contains(job) && line.contains("SecretStored")), "{output}");
}

/// Killed at every stage, it goes on where it was.
#[rstest]
#[case::created(false, |_: &Resource| true)]
#[case::waiting(false, |cluster: &Resource| !view(cluster).is_null())]
#[case::ready(true, |cluster: &Resource| cluster.status.adapters.as_ref().is_some_and(|adapters| adapters.contains_key("placement")))]
#[case::running(true, |cluster: &Resource| condition(cluster, "Applied")["status"] == "True")]
#[case::available(true, |cluster: &Resource| is_available(cluster, 1))]
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_stage_it_goes_on_and_nothing_is_lost(
    #[case] is_ready: bool,
    #[case] is_stage: fn(&Resource) -> bool,
) {
    let folder = folder();
    let first = Up::in_folder(folder.path()).await;
    first.player.create(ID, &document("a")).await;
    if is_ready {
        first.player.make_ready(&first.cluster().await, ID, 1).await;
    }
    first.player.until(ID, is_stage).await;
    first.kill().await;
    let second = Up::in_folder(folder.path()).await;
    if !is_ready {
        second.player.make_ready(&second.cluster().await, ID, 1).await;
    }
    second.player.until(ID, |cluster| is_available(cluster, 1)).await;
    assert_eq!(second.versions(ID).await, [document("a")]);
    assert_eq!(second.applied_secret(ID).await, Some(document("a")));
    let configurations = ["api.yaml", "sentinel.yaml", "adapter.yaml", "kubeconfig", "ports.json"];
    fleet::check_files(folder.path(), &configurations);
}

/// Killed without a data folder of its own, it leaves its files in the temporary directory.
#[tokio::test(flavor = "multi_thread")]
async fn killed_it_leaves_credentials_to_its_user_alone_and_the_next_start_removes_them() {
    let temporary = folder();
    let start = || {
        let mut command = program::local(&["up", "--port", "0", "--output", "json"]);
        command.env("TMPDIR", temporary.path());
        Up::start(command)
    };
    let entries = || fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap()).collect::<Vec<_>>();
    let first = start().await;
    first.player.create(ID, &document("a")).await;
    first.player.make_ready(&first.cluster().await, ID, 1).await;
    first.player.until(ID, |cluster| condition(cluster, "Applied")["status"] == "True").await;
    first.kill().await;
    let left = entries();
    assert!(!left.is_empty());
    for entry in left {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", entry.path().display());
    }
    let (code, output) = start().await.interrupt().await;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(entries().iter().map(fs::DirEntry::path).collect::<Vec<_>>(), [""; 0].map(PathBuf::from));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_shuts_down_in_order_and_removes_data_that_is_not_kept() {
    let up = Up::start(program::local(&["up", "--port", "0", "--output", "json"])).await;
    let data = up.path("");
    assert!(data.exists());
    let (code, output) = up.interrupt().await;
    assert_eq!(code, Some(0), "{output}");
    let lines: Vec<serde_json::Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ended = lines.iter().filter(|line| line["operation"] == "stop").map(|line| line["component"].as_str().unwrap());
    assert_eq!(ended.collect::<Vec<_>>(), ["sentinel", "adapter", "api", "cluster", "secrets"]);
    assert!(!data.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_twice_it_ends_at_once() {
    let folder = folder();
    let mut up = Up::in_folder(folder.path()).await;
    // A request that goes on holds the API for as long as it may.
    let mut open = TcpStream::connect(up.place("api").trim_start_matches("http://")).await.unwrap();
    let head =
        "POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n";
    open.write_all(head.as_bytes()).await.unwrap();
    // The answer says that the body is being waited for.
    open.read_u8().await.unwrap();
    signal(&up.child, Signal::INT);
    signal(&up.child, Signal::TERM);
    assert_eq!(up.child.wait().await.unwrap().code(), Some(143));
}

/// A shutdown in the middle of a run loses nothing.
#[tokio::test(flavor = "multi_thread")]
async fn ended_in_the_middle_of_a_run_it_goes_on() {
    let folder = folder();
    let first = Up::in_folder(folder.path()).await;
    first.player.create(ID, &document("a")).await;
    first.player.make_ready(&first.cluster().await, ID, 1).await;
    first.player.until(ID, |cluster| condition(cluster, "Applied")["status"] == "True").await;
    let (code, output) = first.interrupt().await;
    assert_eq!(code, Some(0), "{output}");
    let second = Up::in_folder(folder.path()).await;
    second.player.until(ID, |cluster| is_available(cluster, 1)).await;
    assert_eq!(second.versions(ID).await, [document("a")]);
    assert_eq!(second.applied_secret(ID).await, Some(document("a")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_for_one_at_a_time() {
    let folder = folder();
    let first = Up::in_folder(folder.path()).await;
    let (code, _, output) = run(&mut up(folder.path())).await;
    assert_eq!(code, Some(2));
    assert!(output.contains("another process uses the folder"), "{output}");
    assert!(first.player.get(ID).await.is_none(), "the first one still answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_before_anything_starts() {
    let folder = folder();
    fs::File::create(folder.path().join("thesis.txt")).unwrap();
    let (code, _, output) = run(&mut up(folder.path())).await;
    assert_eq!(code, Some(2));
    assert!(output.contains("holds something else"), "{output}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let password = testkit::leaks::PASSWORD;
    for (flag, value) in [
        ("--broker", format!("amqp://user:{password}@127.0.0.1:1/")),
        ("--database-url", format!("postgresql://user:{password}@127.0.0.1:1/x")),
        ("--secret-manager", password.to_owned()),
        ("--kubeconfig", format!("/nowhere/{password}")),
        ("--broker", password.to_owned()),
        ("--database-url", password.to_owned()),
    ] {
        let (code, _, output) = run(&mut program::local(&["up", flag, &value])).await;
        assert_eq!(code, Some(2), "{flag}");
        assert!(output.contains(&format!("{flag}: ")), "{output}");
    }
    for variable in ["LOCAL_BROKER", "LOCAL_DATABASE_URL"] {
        let (code, _, output) = run(program::local(&["up"]).env(variable, password)).await;
        assert_eq!(code, Some(2), "{variable}");
        assert!(output.contains(&format!("{variable}: ")), "{output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_named_with_what_to_do() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    // Secret Manager's is the third of the ports.
    let first = (listener.local_addr().unwrap().port() - 2).clamp(1024, 65_000).to_string();
    let (code, _, output) = run(&mut program::local(&["up", "--port", &first])).await;
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains(&format!("{port} (secret-manager)")) && output.contains("with --port"), "{output}");
}

/// Nothing of it is anywhere else, so nothing of it may go through a proxy.
#[tokio::test(flavor = "multi_thread")]
async fn proxies_do_not_matter() {
    let folder = folder();
    let mut command = up(folder.path());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1");
    }
    let up = Up::start(command).await;
    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&up.cluster().await, ID, 1).await;
    up.player.until(ID, |cluster| is_available(cluster, 1)).await;
    assert_eq!(up.versions(ID).await, [document("a")]);
}

/// Variables for other servers of the same machine have no effect.
#[tokio::test(flavor = "multi_thread")]
async fn variables_for_other_servers_do_not_matter() {
    let folder = folder();
    let mut command = up(folder.path());
    for (name, value) in [
        ("DATABASE_URL", "postgresql://unused@127.0.0.1:1/none"),
        ("HYPERFLEET_CONFIG", "/nowhere"),
        ("HYPERFLEET_API_BASE_URL", "http://127.0.0.1:1"),
        ("HYPERFLEET_SERVER_PORT", "1"),
        ("SECRET_MANAGER_EMULATOR_HOST", "127.0.0.1:1"),
        ("KUBECONFIG", "/nowhere"),
    ] {
        command.env(name, value);
    }
    let up = Up::start(command).await;
    assert!(up.player.get(ID).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_addresses_are_printed_for_people() {
    let mut child = program::local(&["up", "--port", "0"]).spawn().unwrap();
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
    let mut names = Vec::new();
    while names.len() < 4 {
        let line = lines.next_line().await.unwrap().unwrap();
        names.push(line.split_once('=').unwrap().0.to_owned());
    }
    let emulator = ["export SECRET_MANAGER_EMULATOR_HOST", "export SECRET_MANAGER_EMULATOR_TOKEN_FILE"];
    assert_eq!(names[..2], ["export HYPERFLEET_API_BASE_URL", "export KUBECONFIG"]);
    assert_eq!(names[2..], emulator);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    let output = String::from_utf8(output.stderr).unwrap();
    for part in ["HyperFleet API  ", "Kubernetes  ", "Secret Manager  ", "sentinel  info  ", "adapter   info  "] {
        assert!(output.contains(part), "{part} is missing: {output}");
    }
    assert!(output.contains("removed at the end"), "{output}");
}
