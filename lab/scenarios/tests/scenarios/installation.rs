//! An installation on a control plane of its own: applied in one go and again, taken over from earlier manifests, upgraded, rolled
//! back and removed, by the commands of the guide.

mod controller;
mod node;
mod plane;
mod pulls;
mod rights;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::helm::{Helm, ROOT, files, text, values};
use plane::Plane;

const GUIDE: &str = include_str!("../../../../docs/guides/install.md");
const BEFORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/manifests-0.1.0");

/// The commands of a section of the guide.
fn all_commands(heading: &str) -> impl Iterator<Item = &'static str> {
    let (_, rest) = GUIDE.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap().lines().filter_map(|line| line.strip_prefix("    "))
}

/// The commands of a section of the guide, without those that wait for Pods: the control plane has no node.
fn commands(heading: &str) -> String {
    let lines = all_commands(heading).filter(|line| !line.contains("rollout status"));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn kustomize_applies_everything_in_one_go_and_again() {
    let Some(plane) = Plane::start() else { return };
    let deploy = plane.folder().join("deploy");
    for (name, text) in files(&Path::new(ROOT).join("deploy")) {
        // Workloads with Pods that Pod Security would refuse are warned of.
        let level = "pod-security.kubernetes.io/enforce: restricted";
        let text = text.replace(&format!("{{{level}}}"), &format!("\n    {level}"));
        let text = text.replace(level, &format!("{level}\n    pod-security.kubernetes.io/warn: restricted"));
        fs::create_dir_all(deploy.join(&name).parent().unwrap()).unwrap();
        daemon::file::replace(&deploy.join(&name), text.as_bytes()).unwrap();
    }
    let deploy = deploy.to_str().unwrap();
    let applied = plane.kubectl(&["apply", "--validate=strict", "-k", deploy]);
    assert!(applied.lines().count() > 30 && applied.lines().all(|line| line.ends_with(" created")), "{applied}");
    let first = (specs(&plane), generations(&plane));
    plane.kubectl(&["apply", "--validate=strict", "-k", deploy]);
    assert_eq!((specs(&plane), generations(&plane)), first);
    plane.kubectl(&["create", "namespace", "clusters-example"]);
    plane.kubectl(&["create", "namespace", "clusters-cls-123"]);
    let examples = ["cluster-access.yaml", "pull-secret-job.yaml", "additional-pull-secret.yaml"];
    let examples = examples.map(|name| format!("{ROOT}/examples/{name}"));
    for file in ["control-plane.yaml", "hosted-cluster.yaml"]
        .map(|name| format!("{deploy}/global-pull-secret/{name}"))
        .iter()
        .chain(&examples)
    {
        plane.kubectl(&["apply", "--server-side", "--validate=strict", "-f", file]);
    }
    // Both checks are in force: a field that is unknown, and a Pod that is not restricted.
    let job = fs::read_to_string(format!("{ROOT}/examples/pull-secret-job.yaml")).unwrap();
    let refused = |text: String| {
        let file = plane.folder().join("refused.yaml");
        daemon::file::replace(&file, text.as_bytes()).unwrap();
        let output =
            plane.try_kubectl(&["create", "--dry-run=server", "--validate=strict", "-f", file.to_str().unwrap()]);
        text_of(&output)
    };
    assert!(refused(job.replace("backoffLimit:", "backOffLimit:")).contains("backOffLimit"));
    let privileged = job.replace("allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true");
    assert!(refused(privileged.replace("gen1", "gen2")).contains("would violate PodSecurity"));
    rights::check_components(&plane);
    rights::check_what_the_adapter_may_grant(&plane);
}

fn text_of(output: &std::process::Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn the_guide_of_the_installation() {
    let (Some(helm), Some(plane)) = (Helm::here(), Plane::start()) else { return };
    let before = plane.objects();
    let run = |heading: &str| plane.bash(&helm, &commands(heading));
    run("Prepare");
    let said = run("Install it");
    assert!(said.contains("STATUS: deployed") && !said.contains("NOTHING IS STORED YET"), "{said}");
    let installed = specs(&plane);
    assert!(plane.objects().contains("apps/v1 Deployment hyperfleet-system/pullsecret-adapter"), "{installed:#?}");
    run("Upgrade");
    assert_eq!(specs(&plane), installed);
    run("Roll back");
    assert_eq!(specs(&plane), installed);
    run("Without helm");
    for release in commands("The Global Pull Secret controller").lines() {
        plane.bash(&helm, &format!("kubectl create namespace clusters-example --dry-run=client --output yaml | kubectl apply -f -\n{release}\n"));
    }
    plane.bash(
        &helm,
        "helm uninstall global-pull-secret --namespace kube-system --wait\nkubectl delete namespace clusters-example\n",
    );
    // What an adapter leaves where a cluster was not deleted.
    plane.bash(&helm, "kubectl create namespace clusters-cls-1
        kubectl --namespace clusters-cls-1 create role pullsecret-adapter:cls-1-pull-secret --verb=get --resource=secrets
        kubectl --namespace clusters-cls-1 label role pullsecret-adapter:cls-1-pull-secret hyperfleet.io/adapter=pullsecret");
    run("Uninstall");
    assert_eq!(plane.kubectl(&["--namespace", "clusters-cls-1", "get", "roles", "--output", "name"]), "");
    plane.kubectl(&["delete", "namespace", "clusters-cls-1"]);
    plane.assert_nothing_is_left(&before);
}

/// The number of changes of each object with a specification.
fn generations(plane: &Plane) -> String {
    let template = "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation}{\"\\n\"}{end}";
    plane.kubectl(&[
        "get",
        "deployments,cronjobs,networkpolicies,poddisruptionbudgets,validatingadmissionpolicies",
        "--all-namespaces",
        "--output",
        template,
    ])
}

/// The objects that an upgrade has made, as they are meant: without what servers and managers note.
fn specs(plane: &Plane) -> Vec<(String, Value)> {
    let all = plane.kubectl(&[
        "get",
        "deployments,configmaps,roles,rolebindings,networkpolicies,poddisruptionbudgets",
        "--all-namespaces",
        "--output",
        "json",
    ]);
    let all: Value = serde_json::from_str(&all).unwrap();
    let part = |object: &Value| {
        let meant: Vec<&Value> =
            ["spec", "data", "rules", "roleRef", "subjects"].iter().map(|member| &object[member]).collect();
        (format!("{} {}", object["kind"], object["metadata"]["name"]), serde_json::json!(meant))
    };
    let ours = |object: &&Value| object["metadata"]["labels"]["app.kubernetes.io/part-of"] == "hyperfleet-pull-secret";
    let mut specs: Vec<_> = all["items"].as_array().unwrap().iter().filter(ours).map(part).collect();
    specs.sort_by(|one, other| one.0.cmp(&other.0));
    specs
}

#[test]
fn earlier_manifests_are_taken_over() {
    let (Some(helm), Some(plane)) = (Helm::here(), Plane::start()) else { return };
    let before = plane.objects();
    let run = |heading: &str| plane.bash(&helm, &commands(heading));
    run("Prepare");
    run("Install it");
    let fresh = specs(&plane);
    run("Uninstall");
    run("Prepare");
    for namespace in ["clusters-cls-123", "clusters-example", "hyperfleet-pull-secret"] {
        plane.kubectl(&["create", "namespace", namespace]);
    }
    let applied = plane.try_kubectl(&["apply", "--validate=strict", "-f", BEFORE]);
    assert!(applied.status.success(), "{}", text_of(&applied));
    plane.bash(&helm, "kubectl create clusterrolebinding service-account-keys --clusterrole=system:service-account-issuer-discovery --group=system:unauthenticated");
    run("From manifests of 0.1.0");
    let taken_over = specs(&plane);
    let mine = |specs: &[(String, Value)]| specs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(mine(&taken_over), mine(&fresh));
    for ((name, taken_over), (_, fresh)) in taken_over.iter().zip(&fresh) {
        plane::assert_covers(name, taken_over, fresh);
    }
    run("Uninstall");
    plane.kubectl(&["delete", "namespace", "clusters-cls-123", "clusters-example"]);
    plane.kubectl(&["delete", "--ignore-not-found", "-f", &format!("{BEFORE}/global-pull-secret.yaml")]);
    plane.assert_nothing_is_left(&before);
}

#[test]
fn all_values_are_installed_twice_and_removed() {
    let (Some(helm), Some(plane)) = (Helm::here(), Plane::start()) else { return };
    if !plane.has_crds() {
        return;
    }
    let before = plane.objects();
    // The second has the HostedClusters, and with them the Secret that the controller's source is.
    plane.bash(&helm, "kubectl create namespace hyperfleet-system\nkubectl create namespace clusters\n");
    let (chart, global) = (helm.chart("pull-secret"), helm.chart("global-pull-secret"));
    for (release, chart, namespace, values, further) in [
        ("hyperfleet", &chart, "hyperfleet-system", values("full"), ""),
        ("controller", &global, "hyperfleet-system", values("global-full"), ""),
        (
            "controller",
            &global,
            "kube-system",
            values("global-full"),
            "--set part=hosted-cluster,monitoring.podMonitor.enabled=true",
        ),
    ] {
        let command = format!(
            "helm upgrade --install {release} {} --namespace {namespace} --values {values} {further}\n",
            chart.display()
        );
        plane.bash(&helm, &command);
        let installed = (specs(&plane), generations(&plane));
        plane.bash(&helm, &command);
        assert_eq!((specs(&plane), generations(&plane)), installed);
        let strictly = "kubectl apply --server-side --force-conflicts --dry-run=server --validate=strict --filename -";
        let rendered = command.replace("upgrade --install", "template").trim_end().to_owned();
        plane.bash(&helm, &format!("set -o pipefail\n{rendered} | {strictly}\n"));
    }
    rights::check_rotation(&plane);
    plane.bash(&helm, "helm uninstall controller --namespace kube-system --wait\nhelm uninstall controller hyperfleet --namespace hyperfleet-system --wait\n");
    plane.kubectl(&["delete", "namespace", "hyperfleet-system", "clusters"]);
    plane.assert_nothing_is_left(&before);
}
