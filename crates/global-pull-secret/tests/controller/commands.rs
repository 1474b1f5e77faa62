//! `merge` and `explain` as people run them.

use std::process::Command;

use k8s_openapi::api::core::v1::ConfigMap;

use crate::cluster::{Kind, STATUS, until};
use crate::rig::{Rig, document};

/// Exit code, stdout and stderr.
pub(crate) fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_global-pull-secret")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

pub(crate) fn file(folder: &std::path::Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    daemon::file::replace(&path, text.as_bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn files_are_merged_as_the_controller_does() {
    let folder = tempfile::tempdir().unwrap();
    let original = file(folder.path(), "o", &document("q.io=1 https://r.io/=1"));
    let one = file(folder.path(), "a", &document("r.io=2"));
    let two = file(folder.path(), "b", &document("r.io=3 q.io/x=3"));
    let merged = folder.path().join("m").to_str().unwrap().to_owned();
    let mut arguments = vec!["merge", "--original", &original, "--additional", &one, "--additional", &two];
    arguments.extend(["--protected-prefix", "q.io", "--write", &merged]);
    let (code, out, _) = run(&arguments);
    assert_eq!(
        (code, out.as_str()),
        (
            0,
            "q.io: from the original, the only one that names it\n\
             q.io/x: not taken, as the registry is protected (over additional 2)\n\
             r.io: from additional 1, which takes precedence over the original (over the original, additional 2)\n"
        )
    );
    let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&merged).unwrap()).unwrap();
    assert_eq!(written["auths"].as_object().unwrap().keys().collect::<Vec<_>>(), ["q.io", "r.io"]);
    arguments.extend(["--output", "json"]);
    let parsed: serde_json::Value = serde_json::from_str(&run(&arguments).1).unwrap();
    assert_eq!((&parsed["merged"], &parsed["registries"][2]["why"]), (&true.into(), &"additional-wins".into()));
}

#[test]
fn a_file_that_is_refused_ends_with_3_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let original = file(folder.path(), "o", &document("q.io=1"));
    let bad = file(folder.path(), "a", r#"{"auths": {"r.io": {"auth": "c4n4ry!"}, "s.io": {"auth": "YTpi"}}}"#);
    let arguments = ["merge", "--original", &original, "--additional", &bad];
    let (code, out, _) = run(&arguments);
    let line = "problem: additional 1: auths[\"r.io\"].auth: not base64 (line 1, column 29)\n";
    assert_eq!(
        (code, out.as_str()),
        (3, format!("q.io: from the original, the only one that names it\n{line}").as_str())
    );
    let (code, out, _) = run(&[&arguments[..], &["--invalid-entries", "skip"]].concat());
    assert_eq!(code, 0);
    assert!(out.contains("s.io: from additional 1") && out.contains("note: additional 1: left out"), "{out}");
}

#[test]
fn version_and_completion_are_printed() {
    let (code, text, _) = run(&["version"]);
    let (_, json, _) = run(&["version", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["program"]), (0, &"global-pull-secret".into()));
    for member in ["version", "commit", "buildDate"] {
        assert!(text.contains(json[member].as_str().unwrap()), "{member}: {text}");
    }
    let (code, script, _) = run(&["completion", "bash"]);
    assert!(code == 0 && script.contains("--control-plane-namespace"), "{script}");
}

#[test]
fn the_settings_in_effect_are_printed_with_their_sources() {
    let folder = tempfile::tempdir().unwrap();
    let config = file(folder.path(), "config.yaml", "conflict_policy: original-wins\n");
    let flags = ["--config", &config, "--control-plane-namespace", "clusters-1", "--syncer-image", "i"];
    let (code, yaml, errors) = run(&[&["config-dump"], &flags[..]].concat());
    assert_eq!(code, 0, "{errors}");
    let line = "control_plane_namespace: \"clusters-1\"  # flag --control-plane-namespace";
    assert!(yaml.lines().any(|given| given == line), "{yaml}");
    let (_, json, _) = run(&[&["config-dump", "--output", "json"], &flags[..]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let settings = json["settings"].as_array().unwrap();
    let policy = settings.iter().find(|setting| setting["key"] == "conflict_policy").unwrap();
    assert_eq!((&policy["value"], &policy["source"]), (&"original-wins".into(), &"file".into()));
    let (code, _, errors) = run(&["config-dump"]);
    assert!(code == 2 && errors.contains("control_plane_namespace: missing"), "{errors}");
}

#[test]
fn missing_settings_are_named_at_once() {
    let (code, _, error) = run(&["run"]);
    assert_eq!(code, 2);
    assert!(error.contains("control_plane_namespace: missing") && error.contains("syncer.image: missing"));
    let (code, _, error) = run(&["merge", "--original", "/nowhere/c4n4ry", "--additional", "/nowhere/c4n4ry"]);
    assert_eq!(code, 1);
    assert!(error.contains("cannot read the file of the original") && !error.contains("c4n4ry"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_the_key_that_wins_for_an_image() {
    let rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    let kubeconfig = rig.cluster.kubeconfig().to_str().unwrap().to_owned();
    let (code, out, _) = run(&["explain", "--hosted-kubeconfig", &kubeconfig]);
    assert_eq!((code, out.as_str()), (1, "there is no global-pull-secret\n"));
    rig.add("q.io/team=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    let (code, out, error) = run(&["explain", "q.io/team/app:1", "--hosted-kubeconfig", &kubeconfig]);
    assert_eq!(code, 0, "{error}");
    let expected = "q.io/team/app\n\
                    \u{20} kubelet tries 1.: q.io/team, from additional-pull-secret\n\
                    \u{20} kubelet tries 2.: q.io, from the original\n\
                    \u{20} containers/image uses: q.io/team, from additional-pull-secret\n\n\
                    q.io: from the original, the only one that names it\n\
                    q.io/team: from additional-pull-secret, the only one that names it (used before q.io of the original)\n\n\
                    nodes with revision REVISION: node-000, node-001, node-002\n\
                    nodes without it: none\n\n\
                    Valid=True (Valid): every entry can be used\n";
    let expected = expected.replace("REVISION", &rig.revision().await.unwrap());
    assert!(out.starts_with(&expected), "{out}");
    let json = run(&["explain", "other.io/x", "--hosted-kubeconfig", &kubeconfig, "--output", "json"]).1;
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&parsed["image"], parsed.get("kubelet")), (&"other.io/x".into(), None));
    assert_eq!(run(&["explain", "not an image", "--hosted-kubeconfig", &kubeconfig]).0, 1);
    let status: ConfigMap = rig.cluster.get(STATUS).await.unwrap();
    assert!(status.data.unwrap()["summary"].contains("RolledOut=True (RolledOut): 3/3 nodes have the content"));
    // A node that does not have it any more.
    rig.broken.breaks("node-001");
    until("the node is named", async || {
        let (_, out, _) = run(&["explain", "--hosted-kubeconfig", &kubeconfig, "--output", "json"]);
        let nodes = serde_json::from_str::<serde_json::Value>(&out).unwrap()["nodes"].clone();
        let is_behind = nodes["behind"].as_object()?.keys().eq(["node-001"]);
        (is_behind && nodes["inSync"] == serde_json::json!(["node-000", "node-002"])).then_some(())
    })
    .await;
}
