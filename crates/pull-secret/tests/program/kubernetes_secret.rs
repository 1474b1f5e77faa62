//! The Job's second phase, on the Kubernetes emulator and on a real API server.

use std::collections::BTreeSet;

use fleet_model::names;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use rstest::rstest;
use serde_json::json;

use testkit::cluster::{Kind, NAME, Place};
use testkit::rig::{calls, pull_secret};
use testkit::rights::{self, Account, AuditLog};

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_secret_that_hypershift_reads_is_created_then_left_alone(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let outcome = place.stored("a").await;
    assert_eq!(outcome.reason(), "SecretStored");
    assert_eq!(calls(&mut outcome.result.clone(), "k8sApiCalls"), ["1 create_secret 201", "1 get_secret 404"]);
    let secret = place.secret().await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/dockerconfigjson"));
    assert_eq!(Place::content(&secret), pull_secret("a"));
    assert_eq!(
        json!(secret.metadata.labels),
        json!({
            "managed-by": "hyperfleet",
            "adapter": "pullsecret",
            "cluster-id": "cls-123",
            "cluster-name": "production-cluster",
            "hyperfleet-version": "v1",
        })
    );
    let mut annotations = secret.metadata.annotations.clone().unwrap();
    assert!(annotations.remove(names::ANNOTATION_CREATED_AT).unwrap().ends_with('Z'));
    assert_eq!(
        json!(annotations),
        json!({
            "hyperfleet.io/gcp-secret-path":
                "projects/my-project-1/secrets/hyperfleet-cls-123-pull-secret/versions/latest",
            "hyperfleet.io/gcp-secret-version": "1",
            "hyperfleet.io/created-by": "pullsecret-adapter",
            "hyperfleet.io/generation": "1",
        })
    );
    let again = place.stored("a").await;
    assert_eq!(again.reason(), "SecretUnchanged");
    assert_eq!(calls(&mut again.result.clone(), "k8sApiCalls"), ["1 get_secret 200"]);
    let unchanged = place.secret().await.unwrap();
    assert_eq!(unchanged.metadata.resource_version, secret.metadata.resource_version);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_is_applied_and_keeps_the_time_of_creation(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.stored("a").await;
    let before = place.secret().await.unwrap();
    let outcome = place.stored("b").await;
    assert_eq!(calls(&mut outcome.result.clone(), "k8sApiCalls"), ["1 get_secret 200", "2 patch_secret 200"]);
    let after = place.secret().await.unwrap();
    assert_eq!(Place::content(&after), pull_secret("b"));
    assert_eq!(after.metadata.uid, before.metadata.uid);
    let annotation = |secret: &Secret, name: &str| secret.metadata.annotations.clone().unwrap()[name].clone();
    assert_eq!(annotation(&after, names::ANNOTATION_CREATED_AT), annotation(&before, names::ANNOTATION_CREATED_AT));
    assert_eq!(annotation(&after, names::ANNOTATION_STORE_VERSION), "2");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn whatever_has_drifted_is_repaired_and_the_store_left_alone(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.stored("a").await;
    for drift in [
        json!({"stringData": {".dockerconfigjson": pull_secret("e")}}),
        json!({"metadata": {"labels": {"cluster-name": "other"}}}),
        json!({"metadata": {"annotations": {"hyperfleet.io/created-by": null}}}),
    ] {
        let parameters = PatchParams { field_manager: Some("another-manager".to_owned()), ..PatchParams::default() };
        place.secrets().patch(NAME, &parameters, &Patch::Merge(&drift)).await.unwrap();
        let outcome = place.stored("a").await;
        assert_eq!(outcome.reason(), "KubernetesSecretApplied", "{drift}");
        let secret = place.secret().await.unwrap();
        assert_eq!(Place::content(&secret), pull_secret("a"));
        assert_eq!(secret.metadata.labels.unwrap()["cluster-name"], "production-cluster");
        assert_eq!(outcome.result["details"]["versionsAdded"], 0);
    }
    place.secrets().delete(NAME, &DeleteParams::default()).await.unwrap();
    assert_eq!(place.stored("a").await.reason(), "KubernetesSecretApplied");
    assert!(place.secret().await.is_some());
    assert_eq!(place.rig.versions().await, ["a"]);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn labels_of_others_stay(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.stored("a").await;
    let theirs = json!({"metadata": {"labels": {"team": "images"}}});
    place.secrets().patch(NAME, &PatchParams::default(), &Patch::Merge(&theirs)).await.unwrap();
    assert_eq!(place.stored("a").await.reason(), "SecretUnchanged");
    place.stored("b").await;
    assert_eq!(place.secret().await.unwrap().metadata.labels.unwrap()["team"], "images");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_another_type_is_replaced_and_that_is_said(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let opaque =
        place.put(json!({"managed-by": "hyperfleet", "cluster-id": "cls-123"}), json!({"type": "Opaque"})).await;
    let outcome = place.stored("a").await;
    assert!(outcome.operations().contains(&"replace-secret".to_owned()), "{outcome:#?}");
    let secret = place.secret().await.unwrap();
    assert_ne!(secret.metadata.uid, opaque.metadata.uid);
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/dockerconfigjson"));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_secret_is_refused_unless_its_adoption_is_asked_for(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let theirs = place.put(json!({"managed-by": "terraform"}), Place::docker("e")).await;
    let outcome = place.run("a", &[]).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(5), "NameConflict"), "{outcome:#?}");
    assert!(outcome.message().contains("managed-by=terraform"), "{outcome:#?}");
    assert!(outcome.message().contains("--adopt"), "{outcome:#?}");
    let failed = outcome.lines().into_iter().find(|line| line["level"] == "error").unwrap();
    assert_eq!(failed["phase"], "k8s-secret");
    let untouched = place.secret().await.unwrap();
    assert_eq!(untouched.metadata.resource_version, theirs.metadata.resource_version);
    let adopted = place.run("a", &["--adopt"]).await;
    assert_eq!(adopted.code, Some(0), "{adopted:#?}");
    let secret = place.secret().await.unwrap();
    assert_eq!(Place::content(&secret), pull_secret("a"));
    assert_eq!(secret.metadata.labels.unwrap()["managed-by"], "hyperfleet");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_immutable_secret_with_other_content_is_refused(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let mut object = Place::docker("e");
    object["immutable"] = json!(true);
    place.put(json!({"managed-by": "hyperfleet", "cluster-id": "cls-123"}), object).await;
    let outcome = place.run("a", &[]).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(5), "SecretImmutable"), "{outcome:#?}");
    assert!(outcome.message().contains("kubectl -n"), "{outcome:#?}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_does_not_exist_is_waited_for(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let missing = format!("{}-late", place.namespace);
    let arguments = ["--management-namespace", &missing, "--run-timeout", "20s"];
    let outcome = place.run("a", &arguments).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(75), "NamespaceMissing"), "{outcome:#?}");
    assert!(outcome.message().contains("placement"), "{outcome:#?}");
    let last = outcome.lines().pop().unwrap();
    let fields = ["phase", "namespace", "secret_name"].map(|name| last[name].as_str().unwrap_or_default().to_owned());
    assert_eq!(fields, ["k8s-secret".to_owned(), missing.clone(), "cls-123-pull-secret".to_owned()], "{last}");
    let mut job = place.job("a");
    let job = job.args(["--management-namespace", &missing]).spawn().unwrap();
    place.create_namespace(&missing).await;
    let outcome = place.rig.finish(job).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(0), "KubernetesSecretApplied"), "{outcome:#?}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_terminating_namespace_is_reported_as_such(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/held"]}});
    let held: ConfigMap = serde_json::from_value(held).unwrap();
    let config_maps = place.api::<ConfigMap>();
    config_maps.create(&PostParams::default(), &held).await.unwrap();
    place.delete_namespace().await;
    let outcome = place.run("a", &[]).await;
    let release = json!({"metadata": {"finalizers": null}});
    config_maps.patch("held", &PatchParams::default(), &Patch::Merge(&release)).await.unwrap();
    assert_eq!((outcome.code, outcome.reason()), (Some(75), "NamespaceTerminating"), "{outcome:#?}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_older_generation_does_not_touch_what_a_newer_one_has_written(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.run("b", &["--generation", "6"]).await;
    let newer = place.secret().await.unwrap();
    // Another store, which knows of no newer generation.
    let outcome = place.run("a", &["--generation", "5", "--secret-name", "another"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(outcome.message().contains("generation 6, a newer one, has written the Kubernetes Secret"), "{outcome:#?}");
    assert_eq!(place.secret().await.unwrap().metadata.resource_version, newer.metadata.resource_version);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn two_copies_at_once_leave_one_right_secret(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    for name in ["a", "b", "c", "d"] {
        let copies = [0, 1].map(|copy| {
            let mut job = place.job(name);
            job.env("RESULTS_PATH", place.rig.path(&copy.to_string())).spawn().unwrap()
        });
        for copy in copies {
            let outcome = place.rig.finish(copy).await;
            assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        }
        let secret = place.secret().await.unwrap();
        assert_eq!(Place::content(&secret), pull_secret(name));
        // What the two have reported may differ; one more run finds nothing left to do, or writes the last number.
        place.stored(name).await;
        assert_eq!(place.stored(name).await.reason(), "SecretUnchanged");
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_killed_anywhere_is_finished_by_the_next(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    // What the Job sends: over TLS its greetings too, so the higher numbers may come after its last request.
    for sent in 1..=8 {
        let name = if sent % 2 == 0 { "a" } else { "b" };
        let mut line = place.line().await;
        let mut job = place.job(name);
        let mut job = job.args(["--management-kubeconfig", line.kubeconfig.to_str().unwrap()]).spawn().unwrap();
        tokio::select! {
            () = line.until_sent(sent) => {}
            ended = job.wait() => assert!(ended.unwrap().success()),
        }
        job.kill().await.unwrap();
        place.stored(name).await;
        assert_eq!(Place::content(&place.secret().await.unwrap()), pull_secret(name), "after {sent}");
        assert_eq!(place.stored(name).await.reason(), "SecretUnchanged", "after {sent}");
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_waits_for_a_finalizer_has_not_gone(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.stored("a").await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    place.secrets().patch(NAME, &PatchParams::default(), &Patch::Merge(&held)).await.unwrap();
    let deletion = place.run("", &["--delete", "--run-timeout", "2s"]).await;
    assert_eq!((deletion.code, deletion.reason()), (Some(75), "DeadlineExceeded"), "{deletion:#?}");
    assert_eq!(place.rig.versions().await, ["a"], "the store is not touched before Kubernetes is done");
    let release = json!({"metadata": {"finalizers": null}});
    place.secrets().patch(NAME, &PatchParams::default(), &Patch::Merge(&release)).await.unwrap();
    assert_eq!(place.run("", &["--delete"]).await.code, Some(0));
    assert!(place.secret().await.is_none());
}

/// The same with the emulator's help to the call: before each is done, and after.
#[rstest]
#[case("hang")]
#[case("commit-then-hang")]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_killed_in_each_call_is_finished_by_the_next(#[case] effect: &str) {
    for (history, calls) in [(None, 2), (Some("a"), 2)] {
        for call in 1..=calls {
            let place = Place::new(Kind::Emulator).await.unwrap();
            if let Some(name) = history {
                place.stored(name).await;
            }
            let before = place.emulator().calls().len();
            place.emulator().inject(format!("*/secrets:{effect}@{call}").parse().unwrap());
            let mut job = place.job("b").spawn().unwrap();
            place.emulator().wait_for_calls(before + call).await;
            job.kill().await.unwrap();
            place.emulator().clear_faults();
            place.stored("b").await;
            assert_eq!(Place::content(&place.secret().await.unwrap()), pull_secret("b"), "{effect} in call {call}");
            assert_eq!(place.stored("b").await.reason(), "SecretUnchanged", "{effect} in call {call}");
        }
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_takes_kubernetes_first_then_the_store(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.stored("a").await;
    let planned = place.run("", &["--delete", "--dry-run"]).await;
    assert_eq!(planned.code, Some(0), "{planned:#?}");
    assert!(place.secret().await.is_some());
    let deleted = place.run("", &["--delete"]).await;
    assert_eq!((deleted.code, deleted.reason()), (Some(0), "SecretDeleted"), "{deleted:#?}");
    let steps: Vec<_> = deleted.lines().iter().filter(|line| line["operation"] == "delete-secret").cloned().collect();
    assert_eq!(
        steps.iter().map(|line| line["phase"].as_str().unwrap()).collect::<Vec<_>>(),
        ["k8s-secret", "gcp-secret-manager"]
    );
    assert!(place.secret().await.is_none());
    let again = place.run("", &["--delete"]).await;
    assert_eq!((again.code, again.reason()), (Some(0), "SecretAbsent"), "{again:#?}");
    place.put(json!({}), Place::docker("e")).await;
    let kept = place.run("", &["--delete"]).await;
    assert_eq!((kept.code, kept.reason()), (Some(0), "UnmanagedSecretKept"), "{kept:#?}");
    assert!(place.secret().await.is_some());
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn only_the_kubernetes_secret_is_deleted_on_request(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    place.stored("a").await;
    let deleted = place.run("", &["--delete", "--kubernetes-secret-only"]).await;
    assert_eq!((deleted.code, deleted.reason()), (Some(0), "SecretDeleted"), "{deleted:#?}");
    assert!(place.secret().await.is_none());
    assert_eq!(place.rig.versions().await, ["a"]);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_secrets_of_an_earlier_cluster_with_the_id_are_taken_over_on_request_only(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let earlier = place.run("a", &["--generation", "7", "--incarnation", "2026-01-01T00:00:00Z"]).await;
    assert_eq!(earlier.code, Some(0), "{earlier:#?}");
    let later = ["--generation", "1", "--incarnation", "2026-02-01T00:00:00Z"];
    let refused = place.run("b", &later).await;
    assert_eq!((refused.code, refused.reason()), (Some(5), "DifferentIncarnation"), "{refused:#?}");
    assert!(refused.message().contains("created at 2026-01-01T00:00:00Z"), "{refused:#?}");
    assert_eq!(place.rig.versions().await, ["a"]);
    // Another store, which knows of no earlier cluster: the Kubernetes Secret says so itself.
    let refused = place.run("b", &[&later[..], &["--secret-name", "another"]].concat()).await;
    assert_eq!((refused.code, refused.reason()), (Some(5), "DifferentIncarnation"), "{refused:#?}");
    assert_eq!(Place::content(&place.secret().await.unwrap()), pull_secret("a"));
    let kept = place.run("", &[&["--delete"][..], &later].concat()).await;
    assert_eq!((kept.code, kept.reason()), (Some(0), "UnmanagedSecretKept"), "{kept:#?}");
    let adopted = place.run("b", &[&later[..], &["--adopt"]].concat()).await;
    assert_eq!(adopted.code, Some(0), "{adopted:#?}");
    assert_eq!(Place::content(&place.secret().await.unwrap()), pull_secret("b"));
    let unchanged = place.run("b", &later).await;
    assert_eq!((unchanged.code, unchanged.reason()), (Some(0), "SecretUnchanged"), "{unchanged:#?}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_what_would_differ_and_has_the_server_try_it(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let dry_run_messages = |outcome: &testkit::rig::Outcome| {
        let lines = outcome.lines();
        let dry_run_messages =
            lines.iter().filter(|line| line["operation"] == "dry-run" && line["phase"] == "k8s-secret");
        dry_run_messages.map(|line| line["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = place.run("a", &["--dry-run"]).await;
    assert_eq!(first.code, Some(0), "{first:#?}");
    let lines = dry_run_messages(&first);
    assert!(lines[0].starts_with("DRY RUN: Would create the Kubernetes Secret"), "{lines:#?}");
    assert!(lines.contains(&"DRY RUN: + label cluster-name: production-cluster".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"DRY RUN: + content".to_owned()), "{lines:#?}");
    assert!(place.secret().await.is_none());
    place.stored("a").await;
    let before = place.secret().await.unwrap();
    let second = place.run("b", &["--dry-run"]).await;
    let lines = dry_run_messages(&second);
    assert!(lines.contains(&"DRY RUN: ~ content".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"DRY RUN: ~ annotation hyperfleet.io/gcp-secret-version: 1 -> 2".to_owned()), "{lines:#?}");
    assert_eq!(place.secret().await.unwrap().metadata.resource_version, before.metadata.resource_version);
    let late = format!("{}-late", place.namespace);
    let missing = place.run("a", &["--dry-run", "--management-namespace", &late]).await;
    assert_eq!((missing.code, missing.reason()), (Some(75), "NamespaceMissing"), "{missing:#?}");
}

#[rstest]
#[case::emulator(Kind::Guarded)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_deploy_is_enough_and_no_more(#[case] kind: Kind) {
    let Some(place) = Place::new(kind).await else { return };
    let audit = if kind == Kind::Real { AuditLog::here() } else { None };
    let kubeconfig = place.kubeconfig_of_the_job().await;
    let kubeconfig = ["--management-kubeconfig", kubeconfig.to_str().unwrap()];
    for arguments in [vec!["--dry-run"], vec![], vec!["--dry-run"], vec!["--delete"]] {
        let outcome = place.run("a", &[&kubeconfig, arguments.as_slice()].concat()).await;
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:#?}");
    }
    place.run("a", &kubeconfig).await;
    assert_eq!(place.run("b", &kubeconfig).await.code, Some(0));
    let other = place.run("a", &[&kubeconfig[..], &["--k8s-secret-name", "another"]].concat()).await;
    assert_eq!((other.code, other.reason()), (Some(4), "PermissionDenied"), "{other:#?}");
    // Where there is no namespace, its Role is missing too: still it is a matter of waiting, or of nothing to delete.
    let late = format!("{}-late", place.namespace);
    let late = [&kubeconfig[..], &["--management-namespace", &late]].concat();
    let missing = place.run("a", &[&late[..], &["--run-timeout", "20s"]].concat()).await;
    assert_eq!((missing.code, missing.reason()), (Some(75), "NamespaceMissing"), "{missing:#?}");
    assert_eq!(place.run("", &[&late[..], &["--delete"]].concat()).await.code, Some(0));
    let elsewhere =
        place.run("a", &[&kubeconfig[..], &["--management-namespace", "default", "--dry-run"]].concat()).await;
    assert_eq!((elsewhere.code, elsewhere.reason()), (Some(4), "PermissionDenied"), "{elsewhere:#?}");
    if let Some(audit) = audit {
        let name = "pullsecret-adapter-job".to_owned();
        let account = Account { namespace: place.namespace.clone(), name: name.clone() };
        let role = rights::Role { namespace: Some(place.namespace.clone()), name };
        let cluster_role = rights::Role { namespace: None, name: place.namespace.clone() };
        audit.assert_minimal(&place.client, &account, &[role, cluster_role]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_server_are_distinguished() {
    for (fault, code, reason) in [
        ("create/secrets:403(message=exceeded quota: q, requested: count/secrets=1)", 75, "NamespaceQuotaExceeded"),
        (
            "create/secrets:403(message=admission webhook \"policy.example.com\" denied the request: no)",
            4,
            "AdmissionDenied",
        ),
        ("create/secrets:403(message=secrets is forbidden: User \"x\" cannot create)", 4, "PermissionDenied"),
        ("get/secrets:401*0", 4, "Unauthenticated"),
        ("get/secrets:500*0", 75, "KubernetesUnavailable"),
    ] {
        let place = Place::new(Kind::Emulator).await.unwrap();
        place.emulator().inject(fault.parse().unwrap());
        let outcome = place.run("a", &[]).await;
        assert_eq!((outcome.code, outcome.reason()), (Some(code), reason), "{fault}: {outcome:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_faults_are_got_over() {
    for fault in [
        "get/secrets:429(retry-after=1s)*2",
        "create/secrets:503",
        "create/secrets:commit-then-cut",
        "get/secrets:cut",
        "create/secrets:409",
    ] {
        let place = Place::new(Kind::Emulator).await.unwrap();
        place.emulator().inject(fault.parse().unwrap());
        place.stored("a").await;
        assert_eq!(Place::content(&place.secret().await.unwrap()), pull_secret("a"), "{fault}");
        assert_eq!(place.stored("a").await.reason(), "SecretUnchanged", "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_api_server_is_called_and_the_user_agent_is_set() {
    let place = Place::new(Kind::Emulator).await.unwrap();
    let calls = place.emulator().calls().len();
    place.stored("a").await;
    let calls = place.emulator().calls().split_off(calls);
    assert!(calls.iter().all(|call| call.user_agent.starts_with("pull-secret/")), "{calls:#?}");
    let asked: BTreeSet<_> = calls.iter().map(|call| format!("{} {}", call.verb, call.resource)).collect();
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), ["create secrets", "get secrets"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_patch_for_the_hosted_cluster_is_printed() {
    let mut command = tokio::process::Command::new(testkit::program::path("pull-secret"));
    command.args(["run-job", "pull-secret", "--print-hosted-cluster-patch", "--cluster-id", "cls-123"]).env_clear();
    let printed = command.output().await.unwrap();
    assert_eq!(printed.status.code(), Some(0));
    assert_eq!(
        String::from_utf8_lossy(&printed.stdout),
        "{\"spec\":{\"pullSecret\":{\"name\":\"cls-123-pull-secret\"}}}\n"
    );
}
