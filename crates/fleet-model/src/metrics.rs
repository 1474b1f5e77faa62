//! Every metric of this project, declared once: name, kind, unit, labels, help.

pub mod adapter;
pub mod all;
pub mod api;
pub mod common;
pub mod credentials;
pub mod global_pull_secret;
pub mod sentinel;
pub mod syncer;

/// Type of a metric in Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows; its name on `/metrics` ends in `_total`.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A distribution; its name on `/metrics` ends in `_bucket`, `_sum` or `_count`.
    Histogram,
    /// Always 1, with facts as labels; its name on `/metrics` ends in `_info`.
    Info,
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number without a unit.
    None,
    /// Seconds; the name on `/metrics` contains `_seconds`.
    Seconds,
}

/// A metric as Prometheus sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name without the suffixes of unit and kind.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Unit.
    pub unit: Unit,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    help: &'static str,
}

/// The metrics of one component.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue {
    /// The component, for people.
    pub component: &'static str,
    /// Its metrics.
    pub metrics: &'static [Metric],
}

/// Stands in the names of an adapter's Job metrics for the adapter's type.
pub const ADAPTER_TYPE: &str = "{adapter}";

/// Declares metrics as constants, together with the list of them. The doc comment is the metric's help.
macro_rules! metrics {
    ($(#[$list_doc:meta])* $list:ident: $(
        $(#[doc = $help:literal])+
        $constant:ident = $kind:ident $name:literal $(in $unit:ident)? by $labels:expr;
    )+) => {
        $(
            $(#[doc = $help])+
            pub const $constant: $crate::metrics::Metric = $crate::metrics::Metric::new(
                $name,
                $crate::metrics::Kind::$kind,
                $labels,
                concat!($($help),+),
            )$(.in_unit($crate::metrics::Unit::$unit))?;
        )+
        $(#[$list_doc])*
        pub const $list: &[$crate::metrics::Metric] = &[$($constant),+];
    };
}
use metrics;

// === impl Kind ===

impl Kind {
    /// The name that Prometheus gives the type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

// === impl Metric ===

impl Metric {
    const fn new(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind, unit: Unit::None, labels, help }
    }

    const fn in_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// The help text, without a full stop at its end.
    pub fn help(&self) -> &'static str {
        self.help.trim().trim_end_matches('.')
    }

    /// Name on `/metrics`, to which histograms add `_bucket`, `_sum` and `_count`.
    pub fn series(&self) -> String {
        let unit = match self.unit {
            Unit::None => "",
            Unit::Seconds => "_seconds",
        };
        let kind = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{}{unit}{kind}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> impl Iterator<Item = &'static Metric> {
        all::ALL.into_iter().flat_map(|catalogue| catalogue.metrics)
    }

    #[test]
    fn no_name_is_used_twice() {
        let names: BTreeSet<_> = all().map(|metric| metric.name).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn names_and_labels_are_valid_in_prometheus() {
        let fits =
            |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        for metric in all() {
            assert!(fits(&metric.name.replace(ADAPTER_TYPE, "a")), "{}", metric.name);
            assert!(metric.labels.iter().all(|label| fits(label)), "{}: {:?}", metric.name, metric.labels);
            assert!(!metric.name.ends_with("_total") && !metric.name.ends_with("_seconds"), "{}", metric.name);
            assert!(!metric.help().is_empty() && !metric.help().ends_with('.'), "{}", metric.name);
        }
    }

    #[test]
    fn series_have_the_suffixes_of_unit_and_kind() {
        assert_eq!(sentinel::EVENTS_PUBLISHED.series(), "hyperfleet_sentinel_events_published_total");
        assert_eq!(sentinel::POLL_DURATION.series(), "hyperfleet_sentinel_poll_duration_seconds");
        assert_eq!(api::BUILD.series(), "hyperfleet_api_build_info");
    }
}
