//! The cluster as a program in a Pod sees it, and the program as the cluster sees it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Cluster, ended, pod, state, waits};

/// The log of a container that has run.
async fn log_of(cluster: &Cluster, container: Value) -> String {
    cluster.create("pods", pod("show", container));
    cluster.pod("p", ended).await;
    cluster.log("p")
}

fn secret() -> Value {
    let data = json!({ "user": STANDARD.encode("hyperfleet"), "token": STANDARD.encode("s3cret") });
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "data": data })
}

fn config_map() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": { "level": "debug" } })
}

#[tokio::test]
async fn the_environment_is_what_the_pod_says_and_nothing_else() {
    let cluster = Cluster::with(&[("show", "/usr/bin/env | /usr/bin/sort")]);
    cluster.create("secrets", secret());
    cluster.create("configmaps", config_map());
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let env = json!([
        { "name": "GREETING", "value": "hello $(USER_NAME), $$(USER_NAME) $(UNSET)" },
        { "name": "USER_NAME", "valueFrom": { "secretKeyRef": { "name": "s", "key": "user" } } },
        { "name": "LATER", "value": "$(USER_NAME) of $(C_level)" },
        { "name": "MISSING", "valueFrom": { "secretKeyRef": { "name": "s", "key": "none", "optional": true } } },
        field("POD", "metadata.name"), field("NAMESPACE", "metadata.namespace"), field("LABEL", "metadata.labels['app']"),
        field("ACCOUNT", "spec.serviceAccountName"), field("IP", "status.podIP"), field("NODE", "spec.nodeName"),
    ]);
    let from = json!([{ "prefix": "C_", "configMapRef": { "name": "c" } }, { "secretRef": { "name": "no", "optional": true } }]);
    let log = log_of(&cluster, json!({ "env": env, "envFrom": from })).await;
    let (shell, ours): (Vec<_>, Vec<_>) = log.lines().partition(|line| {
        let of_shell_and_image =
            ["PWD=", "OLDPWD=", "SHLVL=", "_=", "PATH=", "SSL_CERT_FILE=", "TERMINATION_LOG_PATH="];
        of_shell_and_image.iter().any(|name| line.starts_with(name))
    });
    assert!(shell.contains(&"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), "{shell:?}");
    let expected = [
        "ACCOUNT=default",
        "C_level=debug",
        "GREETING=hello $(USER_NAME), $(USER_NAME) $(UNSET)",
        "IP=127.0.0.1",
        "LABEL=x",
        "LATER=hyperfleet of debug",
        "NAMESPACE=default",
        "NODE=emulator",
        "POD=p",
        "USER_NAME=hyperfleet",
    ];
    assert_eq!(ours, expected);
    cluster.stop().await;
}

#[tokio::test]
async fn arguments_follow_the_program() {
    let cluster = Cluster::with(&[(
        "show",
        r#"for word in "$@"; do echo "<$word>"; done; ls -d Cargo.toml 2>/dev/null; touch x 2>/dev/null && echo written"#,
    )]);
    let env = json!([{ "name": "WHO", "value": "world" }]);
    let container = json!({ "command": ["/app/show", "greet"], "args": ["--to", "$(WHO) and all"], "env": env });
    assert_eq!(log_of(&cluster, container).await, "<greet>\n<--to>\n<world and all>\n");
    cluster.stop().await;
}

#[tokio::test]
async fn volumes_are_where_they_are_mounted() {
    let script = "cat $S/token; echo; cat $S/../labels/labels; echo; cat $ALL/a/level $ALL/b $ALL/token; echo; \
                  echo kept > $SCRATCH/file; cat $SCRATCH/file; cat $FILE; echo; stat -c %a $S/token";
    let cluster = Cluster::with(&[("show", script)]);
    cluster.create("secrets", secret());
    cluster.create("configmaps", config_map());
    let fields = json!({ "items": [{ "path": "labels", "fieldRef": { "fieldPath": "metadata.labels" } }] });
    let name = json!({ "items": [{ "path": "b", "fieldRef": { "fieldPath": "metadata.name" } }] });
    let volumes = json!([
        { "name": "secret", "secret": { "secretName": "s", "defaultMode": 0o440 } },
        { "name": "labels", "downwardAPI": fields },
        { "name": "all", "projected": { "sources": [
            { "configMap": { "name": "c", "items": [{ "key": "level", "path": "a/level" }] } },
            { "downwardAPI": name }, { "serviceAccountToken": { "path": "token" } },
        ] } },
        { "name": "scratch", "emptyDir": {} },
        { "name": "config", "configMap": { "name": "c" } },
    ]);
    let mounts = json!([
        { "name": "secret", "mountPath": "/etc/of-a-test/secret" }, { "name": "labels", "mountPath": "/etc/of-a-test/labels" },
        { "name": "all", "mountPath": "/all" }, { "name": "scratch", "mountPath": "/var/run/scratch" },
        { "name": "config", "mountPath": "/etc/level", "subPath": "level" },
    ]);
    let variable = |name: &str, value: &str| json!({ "name": name, "value": value });
    let env = json!([
        variable("S", "/etc/of-a-test/secret"),
        variable("ALL", "/all"),
        variable("SCRATCH", "/var/run/scratch"),
        variable("FILE", "/etc/level"),
    ]);
    let log = log_of(&cluster, json!({ "volumes": volumes, "volumeMounts": mounts, "env": env })).await;
    let mut lines = log.lines();
    assert_eq!((lines.next(), lines.next()), (Some("s3cret"), Some("app=\"x\"")), "{log}");
    assert!(lines.next().is_some_and(|line| line.starts_with("debugp") && line.len() > 6), "{log}");
    assert_eq!(lines.collect::<Vec<_>>(), ["kept", "debug", "440"]);
    assert!(!std::fs::exists("/etc/of-a-test").unwrap() && !std::fs::exists("/all").unwrap());
    cluster.stop().await;
}

#[rstest]
#[case::a_message("echo '{\"reason\":\"x\"}' > $TERMINATION_LOG_PATH; exit 3", "File", json!("{\"reason\":\"x\"}\n"), 3)]
#[case::no_more_than_fits("head -c 5000 /dev/zero | tr '\\0' a > $TERMINATION_LOG_PATH", "File", json!("a".repeat(4096)), 0)]
#[case::none("echo words; exit 3", "File", json!(null), 3)]
#[case::the_log_instead("echo last words >&2; exit 3", "FallbackToLogsOnError", json!("last words\n"), 3)]
#[case::not_after_a_success("echo last words", "FallbackToLogsOnError", json!(null), 0)]
#[case::a_signal("kill -9 $$", "File", json!(null), 137)]
#[tokio::test]
async fn the_last_words_are_kept(
    #[case] script: &str,
    #[case] policy: &str,
    #[case] message: Value,
    #[case] code: i32,
) {
    let cluster = Cluster::with(&[("show", script)]);
    cluster.create("pods", pod("show", json!({ "terminationMessagePolicy": policy })));
    let pod = cluster.pod("p", ended).await;
    let end = &state(&pod)["terminated"];
    assert_eq!((&end["message"], &end["exitCode"]), (&message, &json!(code)), "{end}");
    assert_eq!(end["reason"], if code == 0 { "Completed" } else { "Error" });
    assert_eq!(pod["status"]["phase"], if code == 0 { "Succeeded" } else { "Failed" });
    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_waits_for_what_it_points_to() {
    let cluster = Cluster::with(&[("show", "echo $TOKEN")]);
    let token = json!({ "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "s", "key": "token" } } });
    cluster.create("pods", pod("show", json!({ "env": [token] })));
    let waiting = cluster.pod("p", waits("CreateContainerConfigError")).await;
    assert_eq!(state(&waiting)["waiting"]["message"], "secret \"s\" not found");
    assert_eq!(waiting["status"]["phase"], "Pending");
    cluster.create("secrets", secret());
    cluster.pod("p", ended).await;
    assert_eq!(cluster.log("p"), "s3cret\n");
    cluster.stop().await;
}

#[tokio::test]
async fn a_volume_is_waited_for_too() {
    let cluster = Cluster::with(&[("show", "true")]);
    let volumes = json!([{ "name": "v", "secret": { "secretName": "s" } }]);
    cluster.create("pods", pod("show", json!({ "volumes": volumes })));
    cluster.until("events", || cluster.reasons().contains(&"FailedMount".to_owned()).then_some(())).await;
    cluster.pod("p", waits("ContainerCreating")).await;
    cluster.create("secrets", secret());
    cluster.pod("p", ended).await;
    cluster.stop().await;
}

#[tokio::test]
async fn an_image_that_nothing_stands_for_cannot_be_pulled() {
    let cluster = Cluster::with(&[("show", "true")]);
    cluster.create("pods", pod("quay.io/none", json!({})));
    let pod = cluster.pod("p", waits("ImagePullBackOff")).await;
    assert_eq!(pod["status"]["phase"], "Pending");
    cluster.delete("pods", "p");
    cluster.until("pods", || cluster.get("pods", "p").is_none().then_some(())).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_start_error() {
    let cluster = Cluster::with(&[("show", "true")]);
    std::fs::remove_file(cluster.folder.path().join("show")).unwrap();
    cluster.create("pods", pod("show", json!({})));
    let pod = cluster.pod("p", ended).await;
    assert_eq!(state(&pod)["terminated"]["reason"], "StartError");
    assert_eq!(state(&pod)["terminated"]["exitCode"], 128);
    cluster.stop().await;
}

#[tokio::test]
async fn a_container_that_keeps_crashing_waits_longer() {
    let cluster = Cluster::with(&[("show", "exit 1")]);
    cluster.create("pods", pod("show", json!({ "restartPolicy": "Always" })));
    let waiting = cluster.pod("p", waits("CrashLoopBackOff")).await;
    assert_eq!(waiting["status"]["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(waiting["status"]["phase"], "Running");
    assert_eq!(waiting["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 1);
    cluster.store.advance_clock(std::time::Duration::from_secs(11));
    cluster.pod("p", |pod| pod["status"]["containerStatuses"][0]["restartCount"] == 2).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_may_end_by_itself_when_it_is_deleted() {
    let cluster =
        Cluster::with(&[("show", "trap 'echo bye > $TERMINATION_LOG_PATH; exit 0' TERM; sleep 1000 & echo on; wait")]);
    cluster.create("pods", pod("show", json!({})));
    cluster.pod("p", |pod| state(pod).get("running").is_some()).await;
    let on = async {
        while cluster.log("p").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::TIMEOUT, on).await.unwrap();
    let mut changes = cluster.store.subscribe("pods");
    cluster.delete("pods", "p");
    let mut last = Value::Null;
    while cluster.get("pods", "p").is_some() {
        last = Value::clone(&changes.next().await.object);
    }
    while let Ok(event) = tokio::time::timeout(std::time::Duration::ZERO, changes.next()).await {
        last = Value::clone(&event.object);
    }
    assert_eq!(state(&last)["terminated"]["message"], "bye\n");
    assert_eq!(cluster.store.read_log("default", "p", None), None);
    cluster.stop().await;
}
