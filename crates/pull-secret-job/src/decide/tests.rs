//! Plans as a table: the observed versions, and the plan as a dry run logs it.

use super::*;

/// Digest of a content by its name; `desired` is the desired one.
fn content(name: &str) -> Digest {
    Digest::of_bytes(name.as_bytes())
}

fn number(number: u64) -> VersionNumber {
    VersionNumber::new(number).unwrap()
}

fn identity(generation: u64) -> Identity {
    Identity { cluster: "cls-1".parse().unwrap(), incarnation: None, generation: Generation::new(generation) }
}

fn desired() -> Desired {
    let labels = [("managed-by", "hyperfleet"), ("cluster-id", "cls-1")];
    Desired {
        identity: identity(5),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        adopt: false,
        content: content("desired"),
        published_digest: Some("hmac-sha256:desired".to_owned()),
        retain: 3,
        always_add: false,
    }
}

/// A managed secret with this record: generation, version, added; the digest is that of the desired content.
fn secret(generation: u64, version: u64, added: &[u64]) -> Metadata {
    announcing(generation, version, 0, added)
}

/// The same, left by a run that has announced a version of the desired content while `old` was the current one.
fn announcing(generation: u64, version: u64, announced: u64, added: &[u64]) -> Metadata {
    let record = Record {
        generation: Generation::new(generation),
        incarnation: None,
        version: VersionNumber::new(version),
        announced: VersionNumber::new(announced),
        announced_digest: (announced > 0).then(|| content("desired").keyed_by(&content("old")).to_string()),
        digest: desired().published_digest,
        added: added.iter().copied().map(number).collect(),
        owner: None,
    };
    let mut metadata = Metadata { labels: desired().labels, etag: "e1".to_owned(), ..Metadata::default() };
    record.write(&mut metadata.annotations);
    metadata
}

/// Versions by number: a name of content for a live one, or `disabled`, or `destroyed`.
fn versions(states: &[(u64, &str)]) -> BTreeMap<VersionNumber, VersionState> {
    let state_of = |name: &str| match name {
        "disabled" => VersionState::Disabled,
        "destroyed" => VersionState::Destroyed,
        name => VersionState::Live(content(name)),
    };
    states.iter().map(|(version, name)| (number(*version), state_of(name))).collect()
}

fn observed(secret: Metadata, states: &[(u64, &str)]) -> Observed {
    Observed { secret: Some(secret), versions: versions(states), ..Observed::default() }
}

/// Metadata whose versions were not read, as a deletion observes it.
fn unread(secret: Option<Metadata>) -> Observed {
    Observed { secret, ..Observed::default() }
}

fn render(plan: &Plan) -> String {
    let mut lines = vec![format!("{}: {}", plan.reason, plan.cause)];
    for action in &plan.actions {
        let record = match action {
            Action::Create { annotations, .. } | Action::Update { annotations, .. } => {
                let record = Record::read(annotations);
                let added: Vec<_> = record.added.iter().map(ToString::to_string).collect();
                let generation = record.generation.map_or("none".to_owned(), |generation| generation.to_string());
                format!(" [generation {generation}, added {}]", added.join(","))
            }
            _ => String::new(),
        };
        lines.push(format!("{action}{record}"));
    }
    lines.join("\n")
}

#[track_caller]
fn check(desired: &Desired, observed: &Observed, expected: &[&str]) {
    assert_eq!(render(&store(desired, observed)).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_missing_secret_is_created_with_its_record_and_gets_its_first_version() {
    check(
        &desired(),
        &Observed::default(),
        &[
            "SecretStored: the secret does not exist",
            "create the secret with 2 labels [generation 5, added 1]",
            "add version 1 and read it back",
        ],
    );
}

#[test]
fn an_unchanged_secret_is_left_alone() {
    check(
        &desired(),
        &observed(secret(5, 7, &[6, 7]), &[(7, "desired")]),
        &["SecretUnchanged: version 7, the newest, holds this pull secret"],
    );
}

#[test]
fn other_content_is_announced_added_and_confirmed() {
    check(
        &desired(),
        &observed(secret(4, 7, &[6, 7]), &[(7, "old")]),
        &[
            "SecretStored: version 7, the newest, holds other content",
            "announce version 8 [generation 5, added 6,7]",
            "add version 8 and read it back",
            "record version 8 as the current one [generation 5, added 6,7,8]",
        ],
    );
}

#[test]
fn the_surplus_is_destroyed_before_the_confirmation_and_only_own_versions() {
    check(
        &desired(),
        &observed(secret(4, 9, &[3, 6, 9]), &[(9, "old")]),
        &[
            "SecretStored: version 9, the newest, holds other content",
            "announce version 10 [generation 5, added 3,6,9]",
            "add version 10 and read it back",
            "destroy version 3",
            "record version 10 as the current one [generation 5, added 6,9,10]",
        ],
    );
}

#[test]
fn the_version_that_was_current_is_destroyed_after_the_confirmation() {
    let keep_one = Desired { retain: 1, ..desired() };
    check(
        &keep_one,
        &observed(secret(4, 9, &[6, 9]), &[(9, "old")]),
        &[
            "SecretStored: version 9, the newest, holds other content",
            "announce version 10 [generation 5, added 6,9]",
            "add version 10 and read it back",
            "destroy version 6",
            "record version 10 as the current one [generation 5, added 9,10]",
            "destroy version 9",
            "record version 10 as the current one [generation 5, added 10]",
        ],
    );
}

#[test]
fn a_version_that_a_killed_run_has_added_is_distinguished_from_one_added_by_hand() {
    let keep_one = Desired { retain: 1, ..desired() };
    let left = |announced: &str| {
        let mut secret = announcing(5, 7, 8, &[7]);
        let digest = content(announced).keyed_by(&content("old")).to_string();
        secret.annotations.insert("hyperfleet-announced-digest".to_owned(), digest);
        render(&store(&keep_one, &observed(secret, &[(7, "old"), (8, "left")])))
    };
    assert!(left("left").ends_with(
        "announce version 9 [generation 5, added 7,8]\n\
         add version 9 and read it back\n\
         record version 9 as the current one [generation 5, added 7,8,9]\n\
         destroy version 7\n\
         destroy version 8\n\
         record version 9 as the current one [generation 5, added 9]"
    ));
    assert!(!left("other").contains("destroy version 8"));
}

#[test]
fn a_run_killed_before_it_pruned_is_completed_by_the_next() {
    check(
        &desired(),
        &observed(secret(5, 10, &[3, 6, 9, 10]), &[(10, "desired")]),
        &[
            "SecretUnchanged: version 10, the newest, holds this pull secret",
            "destroy version 3",
            "record version 10 as the current one [generation 5, added 6,9,10]",
        ],
    );
}

#[test]
fn nothing_is_pruned_where_all_are_kept() {
    let keep_all = Desired { retain: 0, ..desired() };
    check(
        &keep_all,
        &observed(secret(5, 10, &[1, 2, 3, 4, 10]), &[(10, "desired")]),
        &["SecretUnchanged: version 10, the newest, holds this pull secret"],
    );
}

#[test]
fn the_current_version_is_never_pruned() {
    let keep_one = Desired { retain: 1, ..desired() };
    check(
        &keep_one,
        &observed(secret(5, 10, &[9, 10, 11]), &[(10, "desired")]),
        &[
            "SecretUnchanged: version 10, the newest, holds this pull secret",
            "destroy version 9",
            "record version 10 as the current one [generation 5, added 10,11]",
        ],
    );
}

#[test]
fn a_run_killed_before_it_added_is_completed_by_the_next() {
    check(
        &desired(),
        &observed(secret(5, 1, &[1]), &[]),
        &[
            "SecretStored: the secret has no version",
            "announce version 1 [generation 5, added 1]",
            "add version 1 and read it back",
            "record version 1 as the current one [generation 5, added 1]",
        ],
    );
    check(
        &desired(),
        &observed(announcing(5, 7, 8, &[7]), &[(7, "old")]),
        &[
            "SecretStored: version 7, the newest, holds other content",
            "add version 8 and read it back",
            "record version 8 as the current one [generation 5, added 7,8]",
        ],
    );
    // Rotated back before the next run: the announced version is not needed any more.
    check(
        &desired(),
        &observed(announcing(5, 7, 8, &[7]), &[(7, "desired")]),
        &[
            "SecretUnchanged: version 7, the newest, holds this pull secret",
            "record version 7 as the current one [generation 5, added 7]",
        ],
    );
}

#[test]
fn a_run_killed_before_it_confirmed_is_completed_by_the_next() {
    check(
        &desired(),
        &observed(announcing(5, 7, 8, &[7]), &[(7, "old"), (8, "desired")]),
        &[
            "SecretUnchanged: version 8, the newest, holds this pull secret",
            "record version 8 as the current one [generation 5, added 7,8]",
        ],
    );
}

#[test]
fn a_version_of_another_writer_is_never_destroyed() {
    let keep_one = Desired { retain: 1, ..desired() };
    // The same content, by hand: it is the current one now, and stays through the next rotation.
    check(
        &keep_one,
        &observed(secret(5, 7, &[7]), &[(7, "desired"), (8, "desired")]),
        &[
            "SecretUnchanged: version 8, the newest, holds this pull secret",
            "record version 8 as the current one [generation 5, added 7]",
            "destroy version 7",
            "record version 8 as the current one [generation 5, added ]",
        ],
    );
    check(
        &keep_one,
        &observed(secret(4, 8, &[]), &[(8, "old")]),
        &[
            "SecretStored: version 8, the newest, holds other content",
            "announce version 9 [generation 5, added ]",
            "add version 9 and read it back",
            "record version 9 as the current one [generation 5, added 9]",
        ],
    );
    // Other content under the number that a killed run had announced.
    check(
        &keep_one,
        &observed(announcing(5, 7, 8, &[7]), &[(7, "old"), (8, "by hand")]),
        &[
            "SecretStored: version 8, the newest, holds other content",
            "announce version 9 [generation 5, added 7]",
            "add version 9 and read it back",
            "record version 9 as the current one [generation 5, added 7,9]",
            "destroy version 7",
            "record version 9 as the current one [generation 5, added 9]",
        ],
    );
}

#[test]
fn a_newest_version_that_cannot_be_read_is_covered_by_one_that_can() {
    for state in ["disabled", "destroyed"] {
        let plan = store(&desired(), &observed(secret(5, 7, &[7]), &[(7, state)]));
        assert_eq!(plan.reason, Reason::SecretStored);
        assert_eq!(plan.version, Some(number(8)));
        assert_eq!(plan.cause.to_string(), format!("version 7, the newest, is {state}"));
    }
}

#[test]
fn of_two_versions_of_the_same_content_the_higher_stays() {
    let mut raced = observed(secret(5, 1, &[1]), &[(1, "desired"), (2, "desired")]);
    raced.added.insert(number(2));
    check(
        &desired(),
        &raced,
        &[
            "SecretStored: version 2, the newest, holds this pull secret",
            "record version 2 as the current one [generation 5, added 1,2]",
            "destroy version 1",
            "record version 2 as the current one [generation 5, added 2]",
        ],
    );
}

#[test]
fn labels_are_repaired_and_unmanaged_ones_kept() {
    let mut drifted = secret(5, 7, &[7]);
    drifted.labels.insert("team".to_owned(), "images".to_owned());
    let mut labelled = desired();
    labelled.labels.insert("cluster-name".to_owned(), "prod".to_owned());
    let plan = store(&labelled, &observed(drifted, &[(7, "desired")]));
    let [Action::Update { labels, .. }] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert_eq!(labels.keys().collect::<Vec<_>>(), ["cluster-id", "cluster-name", "managed-by", "team"]);
    assert_eq!(plan.reason, Reason::SecretUnchanged);
}

#[test]
fn a_newer_generation_of_the_same_content_is_recorded() {
    check(
        &desired(),
        &observed(secret(4, 7, &[7]), &[(7, "desired")]),
        &[
            "SecretUnchanged: version 7, the newest, holds this pull secret",
            "record version 7 as the current one [generation 5, added 7]",
        ],
    );
}

#[test]
fn an_older_generation_changes_nothing() {
    check(
        &desired(),
        &observed(secret(6, 7, &[7]), &[(7, "newer")]),
        &["Superseded: generation 6, a newer one, holds the secret"],
    );
    let unordered = Desired { identity: identity(0), ..desired() };
    assert_eq!(store(&unordered, &observed(secret(6, 7, &[7]), &[(7, "newer")])).reason, Reason::SecretStored);
}

#[test]
fn an_older_generation_that_was_overtaken_puts_the_newer_content_back_on_top() {
    let newer_on_top = [
        "Superseded: generation 6, a newer one, holds the secret",
        "add version 9 as a copy of version 7 and read it back",
        "destroy version 7",
        "destroy version 8",
        "record version 9 as the current one [generation 6, added 6,9]",
    ];
    let states = [(7, "newer"), (8, "desired")];
    let mut overtaken = observed(secret(6, 7, &[6, 7]), &states);
    overtaken.added.insert(number(8));
    check(&desired(), &overtaken, &newer_on_top);
    // The next run of that generation, where the one that added it was killed.
    check(&desired(), &observed(secret(6, 7, &[6, 7]), &states), &newer_on_top);
    // The newer run has added its version, but not confirmed it yet.
    let mut unconfirmed = observed(announcing(6, 6, 7, &[6]), &[(6, "old"), (7, "newer"), (8, "desired")]);
    unconfirmed.added.insert(number(8));
    check(&desired(), &unconfirmed, &newer_on_top);
}

#[test]
fn an_older_generation_below_the_newer_content_only_takes_its_version_away() {
    let mut below = observed(secret(6, 8, &[7, 8]), &[(7, "desired"), (8, "newer")]);
    below.added.insert(number(7));
    check(
        &desired(),
        &below,
        &[
            "Superseded: generation 6, a newer one, holds the secret",
            "destroy version 7",
            "record version 8 as the current one [generation 6, added 8]",
        ],
    );
}

#[test]
fn an_older_generation_leaves_its_version_where_the_newer_content_is_not_there_yet() {
    let mut before = observed(announcing(6, 1, 2, &[1]), &[(1, "old"), (2, "desired")]);
    before.added.insert(number(2));
    check(
        &desired(),
        &before,
        &["Superseded: generation 6, a newer one, holds the secret", "announce version 2 [generation 6, added 1,2]"],
    );
}

#[test]
fn without_generations_a_run_does_not_undo_a_later_one() {
    let unordered = Desired { identity: identity(0), ..desired() };
    let mut overtaken = observed(secret(0, 3, &[1, 3]), &[(3, "later")]);
    overtaken.versions.extend(versions(&[(2, "desired")]));
    overtaken.added.insert(number(2));
    check(
        &unordered,
        &overtaken,
        &[
            "Superseded: another run has added version 3 with other content since",
            "record version 3 as the current one [generation none, added 1,2,3]",
        ],
    );
}

#[test]
fn an_unmanaged_secret_is_not_changed_and_its_owner_named() {
    let conflict = |key: &str, value: Option<&str>| {
        let mut metadata = secret(1, 1, &[1]);
        match value {
            Some(value) => metadata.labels.insert(key.to_owned(), value.to_owned()),
            None => metadata.labels.remove(key),
        };
        render(&store(&desired(), &observed(metadata, &[(1, "old")])))
    };
    let expected = |owner: &str| format!("NameConflict: the secret is not managed for this cluster: it has {owner}");
    assert_eq!(
        conflict("managed-by", Some("terraform")),
        expected("the label `managed-by=terraform` and the label `cluster-id=cls-1`")
    );
    assert_eq!(conflict("managed-by", None), expected("no label `managed-by` and the label `cluster-id=cls-1`"));
    assert_eq!(
        conflict("cluster-id", Some("cls-2")),
        expected("the label `managed-by=hyperfleet` and the label `cluster-id=cls-2`")
    );
    assert_eq!(conflict("cluster-id", None), expected("the label `managed-by=hyperfleet` and no label `cluster-id`"));
}

#[test]
fn a_version_is_always_added_on_request_but_only_once_a_run() {
    let always = Desired { always_add: true, ..desired() };
    check(
        &always,
        &observed(secret(5, 7, &[7]), &[(7, "desired")]),
        &[
            "SecretStored: a version is always added (ALWAYS_ADD_VERSION)",
            "announce version 8 [generation 5, added 7]",
            "add version 8 and read it back",
            "record version 8 as the current one [generation 5, added 7,8]",
        ],
    );
    // Another copy has added version 9 at the same time: one of this run's is enough.
    let mut added = observed(secret(5, 9, &[7, 8, 9]), &[(9, "desired")]);
    added.added.insert(number(8));
    check(&always, &added, &["SecretStored: version 9, the newest, holds this pull secret"]);
}

#[test]
fn without_a_key_the_digest_of_other_content_is_removed() {
    let keyless = Desired { published_digest: None, ..desired() };
    let plan = store(&keyless, &observed(secret(4, 7, &[7]), &[(7, "old")]));
    let Some(Action::Update { annotations, .. }) = plan.actions.last() else { panic!("{plan:?}") };
    assert_eq!(Record::read(annotations).digest, None);
    let same = store(&keyless, &observed(secret(5, 7, &[7]), &[(7, "desired")]));
    assert_eq!(same.actions, []);
}

#[test]
fn a_secret_is_deleted_as_of_the_observed_etag() {
    let remove = |generation, secret| render(&delete(&identity(generation), &unread(secret)));
    assert_eq!(remove(5, None), "SecretAbsent: the secret does not exist");
    assert_eq!(
        remove(5, Some(secret(5, 1, &[1]))),
        "SecretDeleted: the secret is to be deleted\ndelete the secret with all its versions"
    );
    assert_eq!(remove(5, Some(secret(6, 1, &[1]))), "Superseded: generation 6, a newer one, holds the secret");
}

#[test]
fn a_deletion_leaves_the_secrets_of_others_alone() {
    let mut unmanaged = secret(5, 1, &[1]);
    unmanaged.labels.clear();
    assert_eq!(
        render(&delete(&identity(5), &unread(Some(unmanaged)))),
        "UnmanagedSecretKept: the secret is not managed for this cluster: it has no label `managed-by` and no label \
         `cluster-id`"
    );
    let earlier = of_incarnation("2026-01-01T00:00:00Z", secret(5, 1, &[1]));
    assert_eq!(
        render(&delete(&created_at("2026-02-01T00:00:00Z", 9), &unread(Some(earlier)))),
        "UnmanagedSecretKept: the secret belongs to an earlier cluster with this id, which was created at \
         2026-01-01T00:00:00Z"
    );
}

/// The identity of a cluster that was created at this time.
fn created_at(time: &str, generation: u64) -> Identity {
    Identity { incarnation: Some(time.parse().unwrap()), ..identity(generation) }
}

/// The secret with this recorded incarnation.
fn of_incarnation(time: &str, mut secret: Metadata) -> Metadata {
    secret.annotations.insert("hyperfleet-incarnation".to_owned(), time.to_owned());
    secret
}

#[test]
fn a_secret_of_an_earlier_cluster_with_the_id_is_not_changed_at_any_generation() {
    for generation in [1, 5, 9] {
        let recreated = Desired { identity: created_at("2026-02-01T00:00:00Z", generation), ..desired() };
        check(
            &recreated,
            &observed(of_incarnation("2026-01-01T00:00:00Z", secret(5, 7, &[7])), &[(7, "desired")]),
            &["DifferentIncarnation: the secret belongs to an earlier cluster with this id, which was created at \
              2026-01-01T00:00:00Z"],
        );
    }
}

#[test]
fn a_secret_of_an_earlier_cluster_is_taken_over_on_request_whatever_its_generation() {
    let adopting = Desired { identity: created_at("2026-02-01T00:00:00Z", 1), adopt: true, ..desired() };
    let earlier = of_incarnation("2026-01-01T00:00:00Z", secret(5, 7, &[7]));
    let plan = store(&adopting, &observed(earlier, &[(7, "old")]));
    assert_eq!(
        render(&plan).lines().collect::<Vec<_>>(),
        [
            "SecretStored: version 7, the newest, holds other content",
            "announce version 8 [generation 1, added 7]",
            "add version 8 and read it back",
            "record version 8 as the current one [generation 1, added 7,8]",
        ]
    );
    let Some(Action::Update { annotations, .. }) = plan.actions.first() else { panic!("{plan:?}") };
    assert_eq!(annotations.get("hyperfleet-incarnation").map(String::as_str), Some("2026-02-01T00:00:00Z"));
}

#[test]
fn a_run_that_knows_no_incarnation_keeps_the_recorded_one() {
    let earlier = of_incarnation("2026-01-01T00:00:00Z", secret(4, 7, &[7]));
    let plan = store(&desired(), &observed(earlier, &[(7, "old")]));
    let Some(Action::Update { annotations, .. }) = plan.actions.last() else { panic!("{plan:?}") };
    assert_eq!(annotations.get("hyperfleet-incarnation").map(String::as_str), Some("2026-01-01T00:00:00Z"));
}

mod laws;
mod with_version;
