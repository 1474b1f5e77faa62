//! One suite of cases that every store passes.

mod page;
mod places;
mod secrets;
mod subject;
mod versions;

use subject::Subject;

/// The tests of one case, one for each place; every test has a store of its own.
macro_rules! at_each_place {
    ($module:ident $case:ident { $($place:ident)+ }) => {
        mod $case {
            use secret_store::SecretStore as _;

            use super::places::Place;
            use super::{$module, Subject};

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $place() {
                    let Some(subject) = Subject::$place().await else { return };
                    if !Place::named(stringify!($place)).leaves_out(stringify!($case), subject.store.capabilities()) {
                        $module::$case(&subject).await;
                    }
                }
            )+
        }
    };
}

/// Runs each case at each place.
macro_rules! every_store_passes {
    (at { $($place:ident)+ } $($rest:tt)+) => {
        const TESTS: &[&str] = &[$(stringify!($place)),+];
        every_store_passes! { { $($place)+ } $($rest)+ }
    };
    ($places:tt $($module:ident: { $($case:ident)+ })+) => {
        const CASES: &[&str] = &[$($(stringify!($case)),+),+];
        $($(at_each_place! { $module $case $places })+)+
    };
}

every_store_passes! {
    at {
        in_memory
        in_memory_with_records
        at_google
        at_google_in_one_region
        at_openbao
        as_hashicorp
        at_moto
        at_key_vault
    }
    secrets: {
        an_absent_secret_is_not_found
        a_created_secret_shows_its_labels_and_annotations
        a_secret_is_created_once
        of_many_creators_one_creates
        an_update_replaces_labels_and_annotations
        the_etag_of_an_update_serves_the_next_one
        a_stale_update_changes_nothing
        of_many_updates_at_one_etag_one_is_made
        secrets_are_listed_by_their_labels
        an_absent_secret_is_not_updated
        a_deleted_secret_is_gone_with_its_versions
        an_absent_secret_is_not_deleted
        a_stale_deletion_deletes_nothing
        a_secret_created_again_starts_anew
        an_etag_does_not_outlive_its_secret
        an_empty_etag_changes_nothing
        no_permission_is_missing
    }
    versions: {
        versions_are_numbered_from_one
        every_content_is_read_as_it_was_added
        the_largest_content_fits
        content_of_the_wrong_size_is_refused
        numbers_without_a_version_are_absent
        nothing_is_added_to_an_absent_secret
        versions_are_listed_newest_first
        a_secret_without_versions_lists_none
        an_absent_secret_lists_nothing
        a_disabled_version_is_not_read
        a_destroyed_version_is_gone_for_good
        a_destroyed_number_is_not_given_again
        a_disabled_version_can_be_destroyed
        an_absent_version_is_not_destroyed
        of_many_adders_all_get_a_number_or_one_does
        the_same_version_is_added_once_where_the_number_is_stated
        a_number_that_is_not_the_next_one_is_not_given
        a_record_is_read_with_its_version_where_versions_have_one
        the_newest_version_is_known_by_number_and_state
        the_longest_name_hides_no_state
    }
}
