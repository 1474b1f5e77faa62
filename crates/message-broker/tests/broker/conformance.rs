//! One suite of cases that every broker passes, whatever it is made of.

use crate::rig::{Part, Subject};
use crate::{delivering, draining, failing};

/// Runs each case against each broker, under names of its own.
macro_rules! kept_by_every_broker {
    ($($module:ident: { $($case:ident)+ })+) => {$($(
        mod $case {
            use super::{$module, Part, Subject};

            async fn with(part: Part) {
                if let Some(subject) = Subject::new(part).await {
                    $module::$case(&subject).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory() {
                with(Part::Memory).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn with_a_journal() {
                with(Part::Journal).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_rabbitmq() {
                with(Part::RabbitMq).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_pubsub() {
                with(Part::PubSub).await;
            }
        }
    )+)+};
}

kept_by_every_broker! {
    delivering: {
        an_event_arrives_as_it_was_published
        every_subscription_gets_every_event
        consumers_of_one_subscription_share_its_events
        no_more_is_out_than_may_be
        what_hyperfleet_writes_is_read
        a_topic_without_subscription_is_an_error
    }
    failing: {
        what_a_dead_consumer_had_comes_again
        an_event_that_kills_its_consumers_is_a_dead_letter
        what_no_consumer_took_is_not_counted
        an_attribute_may_be_long
        a_dropped_delivery_comes_again
        a_nacked_event_lets_others_pass
        an_event_that_fails_too_often_is_a_dead_letter
        a_poison_message_is_a_dead_letter
        a_postponed_event_spends_no_attempt
        dead_letters_are_replayed
        dead_letters_are_looked_at_and_deleted
        a_delivery_outstays_its_lease
    }
    draining: {
        a_drain_waits_for_what_is_out
        what_is_not_drained_comes_again
        a_stop_ends_the_deliveries
        a_temporary_subscription_leaves_nothing
    }
}
