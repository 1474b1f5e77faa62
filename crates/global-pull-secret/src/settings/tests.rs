//! Settings that are accepted, and the faults of others.

use std::collections::BTreeMap;

use rstest::rstest;

use super::Checked;

fn check(flags: &[(&'static str, &str)]) -> Result<Checked, Vec<String>> {
    let flags = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let environment: BTreeMap<&str, &str> =
        [("GLOBAL_PULL_SECRET_SYNCER_IMAGE", "syncer:1"), ("GLOBAL_PULL_SECRET_CONTROL_PLANE_NAMESPACE", "clusters-a")]
            .into();
    Checked::load(flags, &environment)
}

#[test]
fn two_settings_are_required() {
    let checked = check(&[]).unwrap();
    assert_eq!((checked.namespace.as_str(), checked.policy.syncer.image.as_str()), ("clusters-a", "syncer:1"));
    assert_eq!(checked.settings.original_secret, "pull-secret");
    let nothing: BTreeMap<&str, &str> = BTreeMap::new();
    let faults = Checked::load(BTreeMap::new(), &nothing).unwrap_err();
    assert_eq!(
        faults,
        [
            "control_plane_namespace: missing; set GLOBAL_PULL_SECRET_CONTROL_PLANE_NAMESPACE or \
             --control-plane-namespace",
            "syncer.image: missing; set GLOBAL_PULL_SECRET_SYNCER_IMAGE or --syncer-image",
        ]
    );
}

#[rstest]
#[case("conflict-policy", "hunter2", "--conflict-policy: must be one of additional-wins, original-wins")]
#[case("invalid-entries", "hunter2", "--invalid-entries: must be one of reject-all, skip")]
#[case("rollout", "hunter2", "--rollout: must be one of immediate, rolling")]
#[case("restart-policy", "hunter2", "--restart-policy: must be one of always, never")]
#[case("protected-prefix", "quay.io,user@quay.io", "protected_prefix: has a user or a credential in the registry key")]
#[case("max-unavailable", "0", "syncer.max_unavailable: must be a number, or a percentage from 1% to 100%")]
#[case("max-unavailable", "101%", "syncer.max_unavailable: must be a number, or a percentage from 1% to 100%")]
#[case("syncer-node-selector", "hunter2", "syncer.node_selector: must be KEY=VALUE,…")]
#[case("probe-credentials", "hunter2", "--probe-credentials: must be one of off, warn, block")]
#[case("probe-deny", "https://hunter2@a/", "probe.deny: must be hosts, without scheme and path")]
#[case("probe-timeout", "1h", "--probe-timeout: must be a duration from 100ms to 1m, such as 500ms, 5s or 1m30s")]
#[case("node-deadline", "1ms", "--node-deadline: must be a duration of 1s or more, such as 500ms, 5s or 1m30s")]
fn faults_name_the_setting_and_never_its_value(
    #[case] flag: &'static str,
    #[case] value: &str,
    #[case] expected: &str,
) {
    let faults = check(&[(flag, value)]).unwrap_err();
    assert_eq!(faults.first().map(String::as_str), Some(expected));
    assert!(!faults.join(" ").contains("hunter2"));
}

#[test]
fn lists_are_separated_by_commas() {
    let flags = [("protected-prefix", "quay.io/a, registry.redhat.io"), ("syncer-node-selector", "a=b,c=")];
    let policy = check(&flags).unwrap().policy;
    let protected: Vec<String> = policy.merge.protected.iter().map(ToString::to_string).collect();
    assert_eq!(protected, ["quay.io/a", "registry.redhat.io"]);
    assert_eq!(policy.syncer.node_selector.len(), 2);
}
