//! One suite of cases that every registry passes.

mod creation;
mod emulated;
mod lists;
mod proxy;
mod retirement;
mod subject;
mod usage;

use subject::Subject;

/// Runs each case against each registry; every case has a registry of its own.
macro_rules! every_registry_passes {
    ($($module:ident: { $($case:ident)+ })+) => {$($(
        mod $case {
            use super::{$module, Subject};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory() {
                $module::$case(&Subject::in_memory()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn at_harbor() {
                $module::$case(&Subject::at_harbor().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn at_quay() {
                $module::$case(&Subject::at_quay().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn at_red_hat() {
                $module::$case(&Subject::at_red_hat().await).await;
            }
        }
    )+)+};
}

every_registry_passes! {
    creation: {
        a_created_account_is_found_as_it_was_sent
        a_created_account_may_pull_as_stated
        a_permitted_account_pulls
        permitting_again_changes_nothing
        creating_again_returns_the_same_account
        of_many_creators_with_one_credential_all_get_one_account
        an_account_whose_answer_was_lost_is_created_again
        a_permission_whose_answer_was_lost_is_given_again
        a_name_of_another_credential_is_not_taken
        a_name_of_a_stranger_is_not_taken
        an_account_that_was_kept_otherwise_is_not_returned
        a_description_that_is_too_long_is_refused
        a_wrong_password_is_refused
        an_unknown_account_is_not_found
        an_exhausted_rate_says_so
    }
    usage: {
        an_account_that_was_not_used_has_no_usage
        pulls_are_counted_with_their_repositories
        probes_are_not_counted
        failed_logins_name_their_sources
        older_usage_is_left_out
    }
    retirement: {
        a_deleted_account_is_gone
        a_deletion_whose_answer_was_lost_is_repeated
        a_deleted_account_is_refused
        a_token_outlives_its_account_by_its_life
        a_disabled_account_is_refused_and_has_its_usage
        disabling_again_changes_nothing
    }
    lists: {
        an_empty_registry_lists_nothing
        each_account_is_listed_once
        a_deleted_account_is_not_listed
    }
}
