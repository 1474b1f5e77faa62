//! Plans for a store whose versions carry the record.

use super::*;

/// An observed secret whose annotations have the record of `noted`, and whose versions have one where a generation is stated.
fn observed_with_records(noted: Metadata, versions: &[(u64, &str, Option<u64>)]) -> Observed {
    let states: Vec<_> = versions.iter().map(|(version, state, _)| (*version, *state)).collect();
    let records = versions.iter().filter_map(|(version, _, generation)| {
        let mut added = noted_versions(&noted);
        added.insert(number(*version));
        let generation = Generation::new((*generation)?);
        let digest = desired().published_digest;
        Some((
            number(*version),
            Record { generation, version: Some(number(*version)), digest, added, ..Record::default() },
        ))
    });
    Observed { place: Records::WithVersion, records: records.collect(), ..observed(noted, &states) }
}

fn noted_versions(noted: &Metadata) -> BTreeSet<VersionNumber> {
    Record::read(&noted.annotations).added
}

#[test]
fn a_missing_secret_gets_its_first_version_with_the_record() {
    check(
        &desired(),
        &Observed { place: Records::WithVersion, ..Observed::default() },
        &[
            "SecretStored: the secret does not exist",
            "create the secret with 2 labels [generation 5, added 1]",
            "add version 1 with its record and read it back",
        ],
    );
}

#[test]
fn an_unchanged_secret_is_left_alone() {
    check(
        &desired(),
        &observed_with_records(secret(5, 7, &[6, 7]), &[(7, "desired", Some(5))]),
        &["SecretUnchanged: version 7, the newest, holds this pull secret"],
    );
}

#[test]
fn other_content_is_added_without_an_announcement() {
    check(
        &desired(),
        &observed_with_records(secret(4, 7, &[5, 6, 7]), &[(7, "old", Some(4))]),
        &[
            "SecretStored: version 7, the newest, holds other content",
            "add version 8 with its record and read it back",
            "destroy version 5",
            "record version 8 as the current one [generation 5, added 6,7,8]",
        ],
    );
}

#[test]
fn a_newer_generation_of_the_same_content_is_recorded_with_a_version_of_its_own() {
    check(
        &desired(),
        &observed_with_records(secret(4, 7, &[7]), &[(7, "desired", Some(4))]),
        &[
            "SecretStored: version 7, the newest, holds this pull secret, but not for this generation",
            "add version 8 with its record and read it back",
            "record version 8 as the current one [generation 5, added 7,8]",
            "destroy version 7",
            "record version 8 as the current one [generation 5, added 8]",
        ],
    );
}

#[test]
fn the_record_of_a_version_counts_where_the_annotations_are_behind() {
    let behind = || secret(4, 7, &[7]);
    check(
        &desired(),
        &observed_with_records(behind(), &[(7, "old", Some(4)), (8, "desired", Some(5))]),
        &[
            "SecretUnchanged: version 8, the newest, holds this pull secret",
            "record version 8 as the current one [generation 5, added 7,8]",
        ],
    );
    check(
        &desired(),
        &observed_with_records(behind(), &[(7, "old", Some(4)), (8, "new", Some(6))]),
        &[
            "Superseded: generation 6, a newer one, holds the secret",
            "record version 8 as the current one [generation 6, added 7,8]",
        ],
    );
}

#[test]
fn a_version_that_was_added_by_hand_is_covered_and_kept() {
    check(
        &desired(),
        &observed_with_records(secret(5, 7, &[7]), &[(7, "desired", Some(5)), (8, "by hand", None)]),
        &[
            "SecretStored: version 8, the newest, holds other content",
            "add version 9 with its record and read it back",
            "record version 9 as the current one [generation 5, added 7,9]",
            "destroy version 7",
            "record version 9 as the current one [generation 5, added 9]",
        ],
    );
}

#[test]
fn a_destroyed_version_leaves_the_record_of_the_annotations() {
    check(
        &desired(),
        &observed_with_records(secret(6, 7, &[7]), &[(7, "destroyed", None)]),
        &[
            "Superseded: generation 6, a newer one, holds the secret",
            "record version 7 as the current one [generation 6, added ]",
        ],
    );
}

#[test]
fn a_deletion_reads_the_record_of_the_newest_version() {
    let observed = observed_with_records(secret(5, 7, &[7]), &[(7, "old", Some(5)), (8, "new", Some(6))]);
    assert_eq!(render(&delete(&identity(5), &observed)), "Superseded: generation 6, a newer one, holds the secret");
    assert!(render(&delete(&identity(6), &observed)).starts_with("SecretDeleted"));
}

#[test]
fn a_creator_that_was_slower_is_superseded_by_the_first_version() {
    // Its own annotations name the number 1, which the newer generation was faster to get.
    check(
        &Desired { identity: identity(4), ..desired() },
        &observed_with_records(secret(4, 1, &[1]), &[(1, "new", Some(5))]),
        &[
            "Superseded: generation 5, a newer one, holds the secret",
            "record version 1 as the current one [generation 5, added 1]",
        ],
    );
}

#[test]
fn of_two_clusters_with_one_name_the_one_with_the_first_version_keeps_it() {
    let mut observed = observed_with_records(secret(5, 1, &[1]), &[(1, "desired", Some(5))]);
    let labels = [("managed-by", "hyperfleet"), ("cluster-id", "cls-2")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    observed.records.get_mut(&number(1)).unwrap().owner = Some(Owner::of(&labels));
    let message = "the secret is not managed for this cluster: it has the label `managed-by=hyperfleet` and the label \
                   `cluster-id=cls-2`";
    assert_eq!(render(&store(&desired(), &observed)), format!("NameConflict: {message}"));
    assert_eq!(render(&delete(&identity(5), &observed)), format!("UnmanagedSecretKept: {message}"));
}

#[test]
fn a_version_names_its_owner() {
    let plan = store(&desired(), &Observed { place: Records::WithVersion, ..Observed::default() });
    let Some(Action::Add { record, .. }) = plan.actions.last() else { panic!("{plan:?}") };
    assert!(Owner::of(record).is(&desired().identity.cluster), "{record:?}");
}
