//! Tables of copies: recorded before they are written, cleaned up after a move, gone before a resource is finalized.

use fleet_model::StoredCopy;

use super::*;
use crate::config::Destination;

fn secret(project: &str) -> StoredCopy {
    let name = "hyperfleet-cls-1-pull-secret".to_owned();
    StoredCopy::Secret { project: project.to_owned(), location: None, name }
}

fn kubernetes_secret(namespace: &str) -> StoredCopy {
    StoredCopy::KubernetesSecret { namespace: namespace.to_owned(), name: "cls-1-pull-secret".to_owned() }
}

/// The data of a report after a run that has stored these two copies, and with all the recorded ones.
fn stored(project: &str, namespace: &str, recorded: &[StoredCopy]) -> Value {
    json!({
        "gcpProject": project, "secretName": "hyperfleet-cls-1-pull-secret",
        "namespace": namespace, "k8sSecretName": "cls-1-pull-secret",
        "copies": recorded,
    })
}

/// A resource whose pull secret is in project `proj-1` and namespace `clusters-cls-1`, with these recorded copies.
fn steady(recorded: &[StoredCopy]) -> World {
    World { last_report: report(3, "True", &stored("proj-1", "clusters-cls-1", recorded)), ..world() }
}

fn current() -> Vec<StoredCopy> {
    vec![kubernetes_secret("clusters-cls-1"), secret("proj-1")]
}

fn with_former(former: StoredCopy) -> Vec<StoredCopy> {
    current().into_iter().chain([former]).collect()
}

fn clean_up_job(end: Option<JobEnd>) -> ObservedJob {
    ObservedJob { name: "clean-up".to_owned(), ..job(3, end, 5, 1) }
}

fn copies(plan: &Plan) -> Vec<StoredCopy> {
    let mut copies: Vec<StoredCopy> =
        plan.data.get("copies").map(|listed| serde_json::from_value(listed.clone()).unwrap()).unwrap_or_default();
    copies.sort();
    copies
}

#[track_caller]
fn check_copies(plan: &Plan, mut expected: Vec<StoredCopy>) {
    expected.sort();
    assert_eq!(copies(plan), expected, "{}", plan.because);
}

#[test]
fn copies_are_recorded_before_the_first_run_and_only_then() {
    let plan = check(&world(), STARTED);
    check_copies(&plan, current());
    let recorded = World { last_report: report(2, "False", &json!({"copies": current()})), ..world() };
    check(&recorded, &STARTED.replace("record copies; ", ""));
}

#[test]
fn what_is_recorded_stays_recorded_whatever_happens() {
    let running = World { input: Some(input("7", Some("u"))), ..steady(&current()) };
    check_copies(&running.with(job(3, None, 0, 1), Purpose::Apply, None).decide(), current());
    let failed = steady(&current()).with(job(3, Some(broken()), 0, 1), Purpose::Apply, Some(outcome(4, "Denied")));
    check_copies(&failed.decide(), current());
    let waiting = World {
        resource: resource(&json!({})),
        last_report: report(2, "True", &json!({"copies": current()})),
        ..world()
    };
    check_copies(&waiting.decide(), current());
    let done =
        steady(&current()).with(job(3, Some(JobEnd::Complete), 5, 1), Purpose::Apply, Some(outcome(0, "SecretStored")));
    check_copies(&done.decide(), current());
}

#[test]
fn a_new_project_is_recorded_beside_the_former_one() {
    let mut moved =
        World { last_report: report(2, "True", &stored("proj-0", "clusters-cls-1", &[secret("proj-0")])), ..world() };
    moved.resource.generation = 3.into();
    let plan = check(&moved, STARTED);
    check_copies(&plan, with_former(secret("proj-0")));
}

#[test]
fn a_former_copy_is_deleted_only_after_the_new_one_is_stored() {
    let cleaning = "start CleanUp 1; Available=True/SecretStored; Health=True/NoErrors; Applied=True/CleanupInProgress";
    let plan = check(&steady(&with_former(secret("proj-0"))), cleaning);
    assert_eq!(plan.starts_run().unwrap().copy, Some(secret("proj-0")));
    check_copies(&plan, with_former(secret("proj-0")));
    let running = steady(&with_former(secret("proj-0"))).with_clean_up(clean_up_job(None), secret("proj-0"), None);
    check(&running, cleaning.trim_start_matches("start CleanUp 1; "));
    // The run for the new one has failed: the former copy is the only one that works.
    let failed =
        World { last_report: report(3, "False", &stored("proj-0", "ns", &with_former(secret("proj-0")))), ..world() }
            .with(job(3, Some(broken()), 0, 1), Purpose::Apply, Some(outcome(4, "PermissionDenied")));
    check(
        &failed,
        "Applied=True/ResourcesExist; Available=False/PermissionDenied; Health=True/NoErrors; next in 1800 s",
    );
}

#[test]
fn a_deleted_copy_is_forgotten_and_its_job_removed() {
    let done = steady(&with_former(secret("proj-0")));
    let done =
        done.with_clean_up(clean_up_job(Some(JobEnd::Complete)), secret("proj-0"), Some(outcome(0, "SecretDeleted")));
    let plan = check(&done, &format!("delete clean-up; {STORED}"));
    check_copies(&plan, current());
}

#[test]
fn a_failed_clean_up_of_a_copy_is_shown_and_repeated() {
    let failed = |seconds| {
        let job = ObservedJob { name: "clean-up".to_owned(), ..job(3, Some(broken()), seconds, 1) };
        let world = steady(&with_former(secret("proj-0")));
        world.with_clean_up(job, secret("proj-0"), Some(outcome(4, "PermissionDenied")))
    };
    let plan = check(
        &failed(0),
        "Available=True/SecretStored; Applied=True/DeletionError; Health=False/DeletionError; next in 1800 s",
    );
    check_copies(&plan, with_former(secret("proj-0")));
    let again = check(
        &failed(1_900),
        "start CleanUp 2 replacing clean-up; Available=True/SecretStored; Health=True/NoErrors; \
         Applied=True/CleanupInProgress",
    );
    assert_eq!(again.starts_run().unwrap().copy, Some(secret("proj-0")));
}

#[test]
fn a_copy_whose_clean_up_was_superseded_is_still_there() {
    let job = clean_up_job(Some(JobEnd::Complete));
    let world =
        steady(&with_former(secret("proj-0"))).with_clean_up(job, secret("proj-0"), Some(outcome(0, "Superseded")));
    let plan = world.decide();
    assert_eq!(plan.condition("Health").unwrap().status, Status::False, "{}", render(&plan));
    assert!(plan.condition("Applied").unwrap().message.contains("has deleted nothing"), "{}", render(&plan));
    assert!(plan.data["copies"].as_array().unwrap().contains(&json!(secret("proj-0"))), "{}", render(&plan));
}

#[test]
fn a_clean_up_of_a_copy_that_is_needed_again_is_stopped_first() {
    let mut back = World {
        last_report: report(2, "True", &stored("proj-0", "clusters-cls-1", &with_former(secret("proj-0")))),
        ..world()
    };
    back.resource.generation = 3.into();
    let running = back.with_clean_up(clean_up_job(None), secret("proj-1"), None);
    check(
        &running,
        "delete clean-up; Applied=False/CleanupInProgress; Available=False/CleanupInProgress; Health=True/NoErrors",
    );
}

#[test]
fn a_finished_clean_up_of_a_copy_in_use_says_nothing_about_a_later_one() {
    let done = steady(&current()).with_clean_up(clean_up_job(Some(JobEnd::Complete)), secret("proj-1"), None);
    let plan = check(&done, &format!("delete clean-up; {STORED}"));
    check_copies(&plan, current());
}

#[test]
fn a_namespace_that_was_moved_gets_a_run_without_a_new_generation() {
    let data = stored("proj-1", "clusters-old", &[secret("proj-1"), kubernetes_secret("clusters-old")]);
    let moved = World { last_report: report(3, "True", &data), ..world() };
    let plan = check(&moved, STARTED);
    assert_eq!(plan.because, "the destination is now Kubernetes Secret clusters-cls-1/cls-1-pull-secret");
    check_copies(&plan, with_former(kubernetes_secret("clusters-old")));
}

#[test]
fn nothing_is_deleted_while_the_result_does_not_say_where_the_pull_secret_is() {
    let former = with_former(secret("proj-0"));
    let silent = World { last_report: report(3, "True", &json!({"copies": former})), ..world() };
    check_copies(&check(&silent, STORED), former);
}

#[test]
fn a_destination_that_no_rule_allows_is_refused() {
    let rule = |project: &str, namespace: &str| Destination {
        projects: vec![project.to_owned()],
        namespaces: vec![namespace.to_owned()],
        ..Destination::default()
    };
    let decide = |rules: Vec<Destination>| {
        let mut config = config();
        config.given.spec.destinations = Some(rules);
        world().decide_with(&config)
    };
    assert_eq!(render(&decide(vec![rule("proj-*", "clusters-*")])), STARTED);
    let refused = decide(vec![rule("q-*", "clusters-*")]);
    assert_eq!(
        render(&refused),
        "Applied=False/DestinationNotAllowed; Available=False/DestinationNotAllowed; Health=True/NoErrors"
    );
    assert_eq!(
        refused.because,
        "no rule of the adapter's `spec.destinations` allows secret hyperfleet-cls-1-pull-secret of project proj-1 for this \
         resource"
    );
    check_copies(&refused, Vec::new());
}

#[test]
fn a_deletion_deletes_every_recorded_copy_before_it_is_confirmed() {
    let recorded = with_former(secret("proj-0"));
    let gone = || World { last_report: report(2, "True", &stored("proj-1", "clusters-cls-1", &recorded)), ..deleted() };
    let in_progress = "Available=False/CleanupInProgress; Health=True/NoErrors; Finalized=False/CleanupInProgress";
    let plan = check(&gone(), &format!("start CleanUp 1; Applied=True/ResourcesExist; {in_progress}"));
    assert_eq!(plan.starts_run().unwrap().copy, Some(secret("proj-0")));
    let cleaned = || gone().with_clean_up(clean_up_job(Some(JobEnd::Complete)), secret("proj-0"), None);
    let plan =
        check(&cleaned(), &format!("start Delete 1; delete clean-up; Applied=True/ResourcesCreated; {in_progress}"));
    check_copies(&plan, current());
    let done = cleaned().with(job(3, Some(JobEnd::Complete), 1, 1), Purpose::Delete, Some(outcome(0, "SecretDeleted")));
    let plan = done.decide();
    assert_eq!(plan.condition("Finalized").unwrap().status, Status::True, "{}", render(&plan));
    check_copies(&plan, Vec::new());
}

#[test]
fn copies_are_deleted_also_when_the_destination_is_no_longer_known() {
    let mut world = World { last_report: report(2, "True", &json!({"copies": current()})), ..deleted() };
    *world.resource.spec.pointer_mut("/gcp").unwrap() = json!({});
    world.resource.status = serde_json::from_value(json!({"conditions": [], "adapters": {}})).unwrap();
    let plan = world.decide();
    assert_eq!(plan.starts_run().unwrap().copy, Some(secret("proj-1")), "{}", render(&plan));
    assert_eq!(plan.condition("Finalized").unwrap().status, Status::False);
}

#[test]
fn a_failed_clean_up_holds_a_deletion_and_not_the_other_copies() {
    let recorded = with_former(secret("proj-0"));
    let gone = || {
        let world =
            World { last_report: report(2, "True", &stored("proj-1", "clusters-cls-1", &recorded)), ..deleted() };
        let job = ObservedJob { name: "clean-up".to_owned(), ..job(3, Some(broken()), 0, 1) };
        world.with_clean_up(job, secret("proj-0"), Some(outcome(4, "PermissionDenied")))
    };
    let plan = gone().decide();
    assert!(render(&plan).starts_with("start Delete 1; "), "{}", render(&plan));
    let done = job(3, Some(JobEnd::Complete), 1, 1);
    let plan = gone().with(done, Purpose::Delete, Some(outcome(0, "SecretDeleted"))).decide();
    assert_eq!(
        render(&plan),
        "Applied=True/ResourcesExist; Available=False/DeletionError; Health=False/DeletionError; \
         Finalized=False/AdapterUnhealthy; next in 1800 s"
    );
    check_copies(&plan, recorded);
}

#[test]
fn a_failed_clean_up_does_not_keep_the_next_copy_from_being_deleted() {
    let recorded: Vec<_> = with_former(secret("proj-0")).into_iter().chain([secret("proj-2")]).collect();
    let job = ObservedJob { name: "clean-up".to_owned(), ..job(3, Some(broken()), 0, 1) };
    let plan = steady(&recorded).with_clean_up(job, secret("proj-0"), Some(outcome(4, "PermissionDenied"))).decide();
    assert_eq!(plan.starts_run().unwrap().copy, Some(secret("proj-2")), "{}", render(&plan));
}

#[test]
fn a_new_location_is_another_place() {
    let mut config = config();
    let location = |value: &str| crate::binding::Binding {
        name: "GCP_LOCATION".to_owned(),
        from: Vec::new(),
        value: Some(value.to_owned()),
        required: crate::binding::Required::No,
    };
    config.bindings.push(location("europe-west3"));
    let path = "projects/proj-1/secrets/hyperfleet-cls-1-pull-secret";
    let data = |path: &str| {
        let mut data = stored("proj-1", "clusters-cls-1", &current());
        data["secretPath"] = json!(path);
        World { last_report: report(3, "True", &data), ..world() }.decide_with(&config)
    };
    assert_eq!(render(&data(path)), STARTED);
    let regional = data("projects/proj-1/locations/europe-west3/secrets/hyperfleet-cls-1-pull-secret");
    assert_eq!(regional.starts_run().unwrap().copy, Some(secret("proj-1")), "{}", render(&regional));
}

#[test]
fn an_unknown_namespace_is_not_a_move() {
    let mut unknown = steady(&current());
    let mut adapters = ready();
    adapters["placement"]["data"] = json!({});
    unknown.resource = resource(&adapters);
    let plan = check(&unknown, STORED);
    check_copies(&plan, current());
}

#[test]
fn nothing_is_cleaned_up_while_a_run_that_was_stopped_may_still_write() {
    let older = ObservedJob { name: "older".to_owned(), is_terminating: true, ..job(2, None, 0, 1) };
    let world = steady(&with_former(secret("proj-0"))).with(older, Purpose::Apply, None);
    let plan = world.decide();
    assert!(plan.starts_run().is_none(), "{}", render(&plan));
    check_copies(&plan, with_former(secret("proj-0")));
}

#[rstest]
#[case::precondition(json!({"provider": "aws"}), PullSecretSource::Inline, "spec.provider")]
#[case::source(json!({}), PullSecretSource::Missing("the Secret is gone".to_owned()), "the Secret is gone")]
fn a_move_waits_for_what_every_run_waits_for(#[case] spec: Value, #[case] source: PullSecretSource, #[case] why: &str) {
    let data = stored("proj-1", "clusters-old", &[secret("proj-1"), kubernetes_secret("clusters-old")]);
    let mut moved = World { source, last_report: report(3, "True", &data), ..world() };
    moved.resource.spec.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let plan = moved.decide();
    assert_eq!(
        render(&plan),
        "Available=True/SecretStored; Health=True/NoErrors; Applied=True/PreconditionsNotMet",
        "{}",
        plan.because
    );
    assert!(plan.condition("Applied").unwrap().message.contains(why), "{:?}", plan.condition("Applied"));
    check_copies(&plan, vec![secret("proj-1"), kubernetes_secret("clusters-old")]);
}

#[rstest]
#[case("k8sSecretName", "My_Secret")]
#[case("secretName", "a/b")]
fn a_name_that_the_job_refuses_is_not_recorded(#[case] member: &str, #[case] name: &str) {
    let mut world = world();
    world.resource.spec["pullSecret"][member] = json!(name);
    let plan = world.decide();
    assert_eq!((plan.reason, plan.starts_run()), (Reason::DestinationNotAllowed, None), "{}", plan.because);
    check_copies(&plan, Vec::new());
}

#[rstest]
#[case::letter_case(json!("Customer_14"), "the project: must be 6 to 30 characters of a-z, 0-9 and '-'")]
#[case::path(json!("proj-1/secrets/x"), "the project: must be 6 to 30 characters of a-z, 0-9 and '-'")]
#[case::number(json!(7), "the project: must be 6 to 30 characters of a-z, 0-9 and '-'")]
fn an_invalid_project_is_neither_recorded_nor_cleaned_up(#[case] project: Value, #[case] why: &str) {
    let mut world = world();
    world.resource.spec["gcp"]["projectId"] = project;
    let plan = check(&world, &WAITING.replace("PreconditionsNotMet", "DestinationNotAllowed"));
    assert!(plan.because.starts_with(why), "{}", plan.because);
    check_copies(&plan, Vec::new());
    world.resource.deleted_time = Some(now());
    let plan = world.decide();
    assert!(plan.starts_run().is_none(), "{}", render(&plan));
    assert_eq!(plan.condition("Finalized").unwrap().status, Status::True, "{}", render(&plan));
}
