//! The places where the suite runs, and the cases that do not apply there.

use secret_store::{Capabilities, Destroys, Records};

use super::places::Reason::{
    CreationsWithoutCondition, EtagOfMetadata, PermissionsUnknown, ReadersVersionStays, UpdatesWithoutCondition,
};

/// A place where the suite runs.
pub(super) struct Place {
    /// The name of the tests there.
    pub(super) test: &'static str,
    pub(super) store: &'static str,
    pub(super) part: &'static str,
    /// The cases that do not apply.
    pub(super) left_out: &'static [(&'static str, Reason)],
}

/// The reason why a case does not apply to a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    UpdatesWithoutCondition,
    CreationsWithoutCondition,
    EtagOfMetadata,
    ReadersVersionStays,
    PermissionsUnknown,
}

pub(super) const PLACES: [Place; 8] = [
    Place { test: "in_memory", store: "a store like Google's", part: "in memory", left_out: &[] },
    Place { test: "in_memory_with_records", store: "a store with exclusive adds", part: "in memory", left_out: &[] },
    Place { test: "at_google", store: "Google", part: "emulator", left_out: &[] },
    Place { test: "at_google_in_one_region", store: "Google, one region", part: "emulator", left_out: &[] },
    Place { test: "at_openbao", store: "OpenBao", part: "real server", left_out: &[] },
    Place {
        test: "as_hashicorp",
        store: "HashiCorp Vault",
        part: "OpenBao behind a proxy with the differences",
        left_out: &[
            ("of_many_creators_one_creates", CreationsWithoutCondition),
            ("of_many_updates_at_one_etag_one_is_made", UpdatesWithoutCondition),
            ("a_stale_deletion_deletes_nothing", EtagOfMetadata),
            ("the_longest_name_hides_no_state", EtagOfMetadata),
        ],
    },
    Place {
        test: "at_moto",
        store: "AWS",
        part: "moto",
        left_out: &[
            ("of_many_updates_at_one_etag_one_is_made", UpdatesWithoutCondition),
            ("no_permission_is_missing", PermissionsUnknown),
            ("a_disabled_version_can_be_destroyed", ReadersVersionStays),
            ("a_destroyed_number_is_not_given_again", ReadersVersionStays),
            ("the_longest_name_hides_no_state", ReadersVersionStays),
        ],
    },
    Place {
        test: "at_key_vault",
        store: "Azure",
        part: "emulator",
        left_out: &[
            ("of_many_updates_at_one_etag_one_is_made", UpdatesWithoutCondition),
            ("no_permission_is_missing", PermissionsUnknown),
            ("a_destroyed_number_is_not_given_again", ReadersVersionStays),
            ("the_longest_name_hides_no_state", ReadersVersionStays),
        ],
    },
];

// === impl Place ===

impl Place {
    pub(super) fn named(test: &str) -> &'static Self {
        PLACES.iter().find(|place| place.test == test).unwrap()
    }

    pub(super) fn reason(&self, case: &str) -> Option<Reason> {
        self.left_out.iter().find(|(name, _)| *name == case).map(|(_, reason)| *reason)
    }

    /// Says why a case does not apply, if it does not; the store has to state that capability.
    pub(super) fn leaves_out(&self, case: &str, capabilities: Capabilities) -> bool {
        let Some(reason) = self.reason(case) else { return false };
        assert!(reason.is_stated_in(capabilities), "{case} applies: {capabilities:?}");
        eprintln!("skipped: {case}: {}", reason.text());
        true
    }
}

// === impl Reason ===

impl Reason {
    pub(super) fn text(self) -> &'static str {
        match self {
            UpdatesWithoutCondition => "of two changes of labels at the same moment both may succeed",
            CreationsWithoutCondition => "of two creations at the same moment both may succeed",
            EtagOfMetadata => "an update that changes nothing leaves the etag as it is",
            ReadersVersionStays => "the version that readers get is not destroyed",
            PermissionsUnknown => "the store does not say without trying what is permitted",
        }
    }

    /// The place where the store states it.
    pub(super) fn stated(self) -> &'static str {
        match self {
            UpdatesWithoutCondition => "`Records::WithVersion`",
            ReadersVersionStays => "`Destroys::Superseded`",
            CreationsWithoutCondition | EtagOfMetadata => {
                "[HashiCorp's server](../guides/providers/openbao.md#hashicorps-server)"
            }
            PermissionsUnknown => "`Permissions::unknown`",
        }
    }

    fn is_stated_in(self, capabilities: Capabilities) -> bool {
        match self {
            UpdatesWithoutCondition => capabilities.records == Records::WithVersion,
            ReadersVersionStays => capabilities.destroys == Destroys::Superseded,
            CreationsWithoutCondition | EtagOfMetadata | PermissionsUnknown => true,
        }
    }
}
