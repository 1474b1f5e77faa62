//! Gauges of the entries of all pull secrets.

use daemon::metrics::register;
use fleet_model::metrics::credentials as catalogue;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::entries::EntryCounts;

/// The gauges. Clones share their values.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryGauges {
    number: Family<ByMaker, Gauge>,
    expiring: Family<ByEnd, Gauge>,
    oldest: Family<ByMaker, Gauge>,
    unread: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByMaker {
    maker: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEnd {
    maker: &'static str,
    end: &'static str,
}

// === impl EntryGauges ===

impl EntryGauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        register(registry, &catalogue::ENTRIES, self.number.clone());
        register(registry, &catalogue::ENTRIES_EXPIRING, self.expiring.clone());
        register(registry, &catalogue::OLDEST_ENTRY, self.oldest.clone());
        register(registry, &catalogue::UNREAD_PULL_SECRETS, self.unread.clone());
    }

    pub(super) fn show(&self, counts: &EntryCounts, now: Timestamp) {
        for (maker, group) in [("service", counts.service), ("elsewhere", counts.elsewhere)] {
            self.number.get_or_create(&ByMaker { maker }).set(gauge(group.number));
            for (end, number) in [("past", group.expired), ("soon", group.soon)] {
                self.expiring.get_or_create(&ByEnd { maker, end }).set(gauge(number));
            }
            let age = group.oldest.map_or(0, |oldest| now.duration_since(oldest).as_secs().max(0));
            self.oldest.get_or_create(&ByMaker { maker }).set(age);
        }
        self.unread.set(gauge(counts.unread));
    }
}

/// Returns a number as a gauge has it.
pub(super) fn gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
