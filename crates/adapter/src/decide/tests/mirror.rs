//! Tables of mirrored pull secrets: their copies, the variables of their Jobs, and what is reported when a mirror fails.

use super::stores::{at_google, check_copies, configured, copy, copy_at, in_vault, kubernetes_secret, variables};
use super::*;
use crate::config::Destination;
use crate::manifest;

/// Stores at Google, mirrors in Vault.
pub(super) fn mirrored() -> Checked {
    configured("  secretStore: {mirror: vault, vault: {address: 'https://VAULT:8200/'}}\n")
}

/// Stores in Vault, mirrors at Google.
pub(super) fn swapped() -> Checked {
    configured("  secretStore: {type: vault, mirror: google, vault: {address: 'https://VAULT:8200/'}}\n")
}

fn in_folder() -> StoredCopy {
    copy("pull-secrets")
}

fn all() -> Vec<Value> {
    vec![json!(at_google()), json!(in_folder()), json!(kubernetes_secret())]
}

/// The members of a result that describe the copy in one store.
pub(super) fn members(copy: &StoredCopy, version: Option<u64>) -> Value {
    let mut members = match copy {
        StoredCopy::Secret { project, name, .. } => {
            json!({"gcpProject": project, "secretPath": format!("projects/{project}/secrets/{name}")})
        }
        StoredCopy::VaultSecret { server, .. } => json!({"vaultAddress": server, "secretPath": copy.vault_path()}),
        _ => panic!("{copy}"),
    };
    members["secretName"] = json!(copy.name());
    if let Some(version) = version {
        members["secretVersion"] = json!(version);
    }
    members
}

/// The result of a run that has stored in `first` and, with a version, in `mirror`.
pub(super) fn result(first: &Value, mirror: Option<Value>) -> Value {
    let mut result = first.clone();
    result["namespace"] = json!("clusters-cls-1");
    result["k8sSecretName"] = json!("cls-1-pull-secret");
    if let Some(mirror) = mirror {
        result["mirror"] = mirror;
    }
    result
}

/// A cluster whose last report has this data, and these copies.
fn reported(mut data: Value, copies: &[Value]) -> World {
    data["copies"] = json!(copies);
    World { last_report: report(3, "True", &data), ..world() }
}

fn both() -> Value {
    result(&members(&at_google(), Some(1)), Some(members(&in_folder(), Some(1))))
}

#[test]
fn both_copies_are_recorded_before_a_run_that_gets_both_places() {
    let plan = world().decide_with(&mirrored());
    assert_eq!(render(&plan), STARTED);
    check_copies(&plan, &all());
    let of_cluster = "LOG_LEVEL=debug CLUSTER_ID=cls-1 CLUSTER_NAME=one GENERATION=3";
    let applied = "MANAGEMENT_NAMESPACE=clusters-cls-1 PULL_SECRET_FILE=/var/run/pull-secret/pullsecret";
    let at_vault = "VAULT_ADDR=https://vault:8200 VAULT_MOUNT=secret VAULT_FOLDER=pull-secrets \
                    SECRET_NAME=hyperfleet-cls-1-pull-secret";
    let run = plan.starts_run().unwrap();
    assert_eq!(
        variables(&mirrored(), &world(), run),
        format!(
            "VAULT_ROLE=pull-secret-job GCP_API_TIMEOUT=10s {of_cluster} GCP_PROJECT_ID=proj-1 {applied} {at_vault} \
             SECRET_STORE_MIRROR=vault"
        )
    );
    let plan = world().decide_with(&swapped());
    check_copies(&plan, &all());
    assert_eq!(
        variables(&swapped(), &world(), plan.starts_run().unwrap()),
        format!(
            "VAULT_ROLE=pull-secret-job GCP_API_TIMEOUT=10s {of_cluster} GCP_PROJECT_ID=proj-1 {applied} SECRET_STORE=vault \
             {at_vault} SECRET_STORE_MIRROR=google"
        )
    );
}

/// A policy is for one store.
#[test]
fn a_replication_policy_is_given_to_the_first_store_only() {
    let mut world = world();
    world.resource.spec["pullSecret"]["replicationPolicy"] = json!("automatic=key");
    for (config, has_policy) in [(mirrored(), true), (swapped(), false)] {
        let plan = world.decide_with(&config);
        let given = variables(&config, &world, plan.starts_run().unwrap());
        assert_eq!(given.contains("REPLICATION_POLICY="), has_policy, "{given}");
    }
}

/// The policy of the mirror is the template's, and is left out where the mirror knows none.
#[test]
fn a_replication_policy_of_the_mirror_is_given_where_the_mirror_has_replication() {
    let policy = "REPLICATION_POLICY_MIRROR=automatic=key";
    for (config, is_given) in [(mirrored(), false), (swapped(), true)] {
        let mut config = config;
        let mut binding = config.bindings.iter().find(|binding| binding.name == "LOG_LEVEL").cloned().unwrap();
        (binding.name, binding.value) = ("REPLICATION_POLICY_MIRROR".to_owned(), Some("automatic=key".to_owned()));
        config.bindings.push(binding);
        let plan = world().decide_with(&config);
        let given = variables(&config, &world(), plan.starts_run().unwrap());
        assert_eq!(given.contains(policy), is_given, "{given}");
        let without = Checked { mirror: None, ..config };
        let plan = world().decide_with(&without);
        assert!(plan.starts_run().is_none_or(|run| !variables(&without, &world(), run).contains(policy)));
    }
}

/// A run counts in both stores; a clean-up of one copy in that copy's.
#[test]
fn a_run_with_a_mirror_counts_against_the_quotas_of_both_stores() {
    for (config, first, second) in
        [(mirrored(), "proj-1", "https://vault:8200"), (swapped(), "https://vault:8200", "proj-1")]
    {
        let plan = world().decide_with(&config);
        let run = plan.starts_run().unwrap();
        assert_eq!(world().with_facts(|facts| manifest::quota(&config, facts, run)).as_deref(), Some(first));
        assert_eq!(world().with_facts(|facts| manifest::mirror_quota(&config, facts, run)).as_deref(), Some(second));
        let clean_up = StartRun::clean_up(in_folder(), String::new());
        assert_eq!(world().with_facts(|facts| manifest::mirror_quota(&config, facts, &clean_up)), None);
    }
}

#[rstest]
#[case::both(&["proj-*"], &["pull-secrets"], true)]
#[case::not_the_first(&["q-*"], &["pull-secrets"], false)]
#[case::not_the_mirror(&["proj-*"], &["tenants/*"], false)]
fn both_destinations_must_be_allowed(#[case] projects: &[&str], #[case] folders: &[&str], #[case] allowed: bool) {
    let mut config = mirrored();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    config.given.spec.destinations = Some(vec![Destination {
        projects: texts(projects),
        folders: texts(folders),
        namespaces: texts(&["clusters-*"]),
        ..Destination::default()
    }]);
    let plan = world().decide_with(&config);
    assert_eq!(plan.starts_run().is_some(), allowed, "{}", plan.because);
    assert_eq!(plan.reason == Reason::DestinationNotAllowed, !allowed);
}

#[rstest]
#[case::mirrored(both(), mirrored(), STORED)]
#[case::a_mirror_that_is_added(result(&members(&at_google(), Some(1)), None), mirrored(), "start Apply 1; ")]
#[case::a_mirror_that_was_never_read_back(
    result(&members(&at_google(), Some(1)), Some(members(&in_folder(), None))),
    mirrored(),
    "start Apply 1; "
)]
#[case::a_mirror_that_has_moved(
    result(&members(&at_google(), Some(1)), Some(members(&copy("old"), Some(1)))),
    mirrored(),
    "start Apply 1; "
)]
#[case::the_roles_are_swapped(both(), swapped(), "start Apply 1; ")]
#[case::a_mirror_that_is_given_up(both(), configured(""), "start CleanUp 1; Available=True/SecretStored")]
#[case::a_first_store_that_is_given_up(both(), in_vault(), "start Apply 1; ")]
fn a_mirror_is_written_and_cleaned_up_as_the_setting_changes(
    #[case] data: Value,
    #[case] config: Checked,
    #[case] expect: &str,
) {
    let plan = reported(data, &all()).decide_with(&config);
    assert!(render(&plan).starts_with(expect), "{}", render(&plan));
    check_copies(&plan, &all());
}

#[test]
fn a_mirror_that_has_moved_is_cleaned_up_where_it_was() {
    let former = copy_at("https://old:8200", None, "secret", "old");
    let plan = reported(both(), &[&all()[..], &[json!(former)]].concat()).decide_with(&mirrored());
    assert_eq!(plan.starts_run().unwrap().copy, Some(former));
}

#[test]
fn a_mirror_that_is_given_up_is_no_part_of_the_report() {
    let plan = reported(both(), &all()).decide_with(&configured(""));
    assert_eq!(plan.starts_run().unwrap().copy, Some(in_folder()));
    assert!(!plan.data.contains_key("mirror"), "{:?}", plan.data);
}

/// One run for each copy: the mirror's first, then that of the first store and the Kubernetes Secret.
#[test]
fn a_deletion_deletes_both() {
    let mut world = reported(both(), &all());
    world.resource.deleted_time = Some(now());
    let plan = world.decide_with(&mirrored());
    let run = plan.starts_run().unwrap();
    assert_eq!((run.purpose, &run.copy), (Purpose::CleanUp, &Some(in_folder())));
    let given = variables(&mirrored(), &world, run);
    assert!(given.contains("SECRET_STORE=vault") && !given.contains("MIRROR") && !given.contains("GCP_"), "{given}");

    let clean_up = ObservedJob { name: "clean-up".to_owned(), ..job(3, Some(JobEnd::Complete), 5, 1) };
    let gone = world.with_clean_up(clean_up, in_folder(), Some(outcome(0, "SecretDeleted")));
    let plan = gone.decide_with(&mirrored());
    let run = plan.starts_run().unwrap();
    assert_eq!((run.purpose, &run.copy), (Purpose::Delete, &None));
    let given = variables(&mirrored(), &gone, run);
    assert!(
        given.contains("GCP_PROJECT_ID=proj-1") && !given.contains("MIRROR") && !given.contains("VAULT"),
        "{given}"
    );
    check_copies(&plan, &[json!(at_google()), json!(kubernetes_secret())]);
}

/// The mirror's outage does not keep the first store from being deleted, and is what the deletion waits for.
#[test]
fn a_mirror_that_is_down_holds_a_deletion() {
    let mut world = reported(both(), &all());
    world.resource.deleted_time = Some(now());
    let clean_up = ObservedJob { name: "clean-up".to_owned(), ..job(3, Some(broken()), 5, 1) };
    let down = world.with_clean_up(clean_up, in_folder(), Some(outcome(75, "StoreUnavailable")));
    assert_eq!(down.decide_with(&mirrored()).starts_run().unwrap().purpose, Purpose::Delete);
    let done = down.with(job(3, Some(JobEnd::Complete), 1, 1), Purpose::Delete, Some(outcome(0, "SecretDeleted")));
    let plan = done.decide_with(&mirrored());
    assert_eq!(plan.condition("Finalized").unwrap().status, Status::False, "{}", render(&plan));
    assert!(plan.data["copies"].to_string().contains("vaultSecret"), "{}", plan.data["copies"]);
    let messages: Vec<_> = plan.conditions.iter().map(|condition| condition.message.as_str()).collect();
    assert!(messages.iter().any(|message| message.contains("retrying with another clean-up Job")), "{messages:?}");
    assert!(!messages.join(" ").contains("does not name"), "the configuration names the mirror: {messages:?}");
}

/// The report has the run's work before the mirror failed, and the former content of the mirror.
#[test]
fn a_failure_of_the_mirror_is_reported_with_what_the_first_store_holds() {
    let failed = |before: Value, details: &Value| {
        let message = json!({"status": "failure", "reason": "StoreUnavailable", "message": "m", "details": details});
        let outcome = Outcome::of(75, &message.to_string());
        let world = reported(before, &all()).with(job(3, Some(broken()), 0, 1), Purpose::Apply, Some(outcome));
        world.decide_with(&mirrored()).data
    };
    let now = |version| result(&members(&at_google(), version), Some(members(&in_folder(), None)));
    let data = failed(both(), &now(Some(2)));
    assert_eq!((&data["secretVersion"], &data["mirror"]["secretVersion"]), (&json!(2), &json!(1)));
    let data = failed(result(&members(&at_google(), Some(1)), None), &now(Some(2)));
    assert_eq!((&data["secretVersion"], &data["mirror"]), (&json!(2), &members(&in_folder(), None)));
    let elsewhere = members(&copy_at("https://old:8200", None, "secret", "pull-secrets"), Some(1));
    let data = failed(result(&members(&at_google(), Some(1)), Some(elsewhere)), &now(Some(2)));
    assert_eq!(data["mirror"], members(&in_folder(), None), "the mirror has moved since");
    let data = failed(both(), &now(None));
    assert_eq!(
        (&data["secretVersion"], &data["mirror"]["secretVersion"]),
        (&json!(1), &json!(1)),
        "the first store failed"
    );
    let data = failed(json!({}), &now(None));
    assert_eq!(data["mirror"], members(&in_folder(), None), "it is known which copy is the mirror's");
    assert_eq!(data.get("secretVersion"), None);
}

/// A fleet is moved step by step, and each step begins at once.
#[rstest]
#[case::a_mirror_that_is_added(result(&members(&at_google(), Some(1)), None), &[json!(at_google())], mirrored(), true)]
#[case::the_roles_are_exchanged(both(), &all(), swapped(), true)]
#[case::a_mirror_that_results_never_name(result(&members(&at_google(), Some(1)), None), &all(), mirrored(), false)]
fn a_step_does_not_wait_for_the_back_off_of_the_one_before(
    #[case] data: Value,
    #[case] recorded: &[Value],
    #[case] config: Checked,
    #[case] at_once: bool,
) {
    let mut outcome = outcome(0, "SecretStored");
    outcome.details = data.as_object().unwrap().clone();
    let world = reported(data, recorded).with(job(3, Some(JobEnd::Complete), 1, 3), Purpose::Apply, Some(outcome));
    let plan = world.decide_with(&config);
    assert_eq!(plan.starts_run().is_some(), at_once, "{}", render(&plan));
}
