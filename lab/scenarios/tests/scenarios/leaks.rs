//! No credential in anything that a whole fleet plane prints, logs, reports or exposes.

use testkit::fleet::{self, Up};
use testkit::leaks::{check, documents};
use testkit::program;

/// A fleet plane that is given every document: logs at their most detailed, metrics, reports, pages, objects.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_plane_prints_no_credential() {
    let folder = fleet::folder();
    let up = Up::in_folder(folder.path()).await;
    let cluster = up.cluster().await;
    for (number, (name, document)) in documents().iter().enumerate() {
        let id = format!("cls-{number}");
        let refused = up.player.try_create(&id, document).await.err();
        check(name, &format!("{refused:?} {}", refused.as_ref().map(ToString::to_string).unwrap_or_default()));
        if refused.is_none() {
            up.player.make_ready(&cluster, &id, 1).await;
            let is_over =
                |reason: &serde_json::Value| reason != "WorkloadInProgress" && reason != "PreconditionsNotMet";
            let is_over = |cluster: &_| {
                let available = fleet::condition(cluster, "Available");
                !available.is_null() && is_over(&available["reason"])
            };
            let cluster_state = up.player.until(&id, is_over).await;
            check(name, &serde_json::to_string(&cluster_state).unwrap());
        }
        for arguments in [vec!["explain", "cluster", &id], vec!["explain", "cluster", &id, "--output", "json"]] {
            drop(
                fleet::run(
                    program::pull_secret(&arguments)
                        .args(["--api", up.place("api")])
                        .env("KUBECONFIG", up.place("kubeconfig")),
                )
                .await,
            );
        }
        check(name, &format!("{:?}", cluster.jobs("hyperfleet-pull-secret", "").await.unwrap()));
    }
    for output in ["table", "json"] {
        let why = ["status", "--why", "--api", up.place("api"), "--output", output];
        let (code, shown, _) = fleet::run(&mut program::pull_secret(&why)).await;
        assert!(code == Some(0) && shown.contains("cls-"), "{shown}");
        drop(fleet::run(&mut program::pull_secret(&["status", "--api", up.place("api"), "--output", output])).await);
        let doctor = ["doctor", "--api", up.place("api"), "--project", fleet::PROJECT, "--output", output];
        let mut doctor = program::pull_secret(&doctor);
        doctor.arg("--token-file").arg(up.path("adapter-token")).env("KUBECONFIG", up.place("kubeconfig"));
        doctor.env("SECRET_MANAGER_EMULATOR_HOST", up.place("secret_manager").trim_start_matches("http://"));
        doctor.env("SECRET_MANAGER_EMULATOR_TOKEN_FILE", up.place("secret_manager_token_file"));
        let (code, shown, _) = fleet::run(&mut doctor).await;
        assert!(code == Some(0) && shown.contains("Jobs' permissions"), "{shown}");
    }
    for (name, address) in up.ready["listeners"].as_object().unwrap() {
        if name.ends_with("_metrics") {
            let url = format!("http://{}/metrics", address.as_str().unwrap());
            let mut curl = tokio::process::Command::new("curl");
            let (code, metrics, _) = fleet::run(curl.args(["-sS", "--fail", "--noproxy", "*", &url])).await;
            assert!(code == Some(0) && metrics.contains("# EOF"), "{name}: {metrics}");
        }
    }
    let (code, _) = up.interrupt().await;
    assert_eq!(code, Some(0));
}
