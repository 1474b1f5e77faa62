//! Registration of metrics under the names of the catalogue in `fleet-model`, and a check of the result.

use std::collections::{BTreeMap, BTreeSet};

use fleet_model::metrics::{ADAPTER_TYPE, Metric, Unit};
use prometheus_client::registry::{self, Registry};

/// Registers a collector as a metric of the catalogue.
pub fn register(registry: &mut Registry, metric: &Metric, collector: impl registry::Metric) {
    register_named(registry, metric, metric.name.to_owned(), collector);
}

/// Registers a collector as a metric of an adapter's Jobs, which is named by the adapter's type.
pub fn register_for_adapter(
    registry: &mut Registry,
    metric: &Metric,
    adapter_type: &str,
    collector: impl registry::Metric,
) {
    register_named(registry, metric, name_for_adapter(metric, adapter_type), collector);
}

fn register_named(registry: &mut Registry, metric: &Metric, name: String, collector: impl registry::Metric) {
    match metric.unit {
        Unit::None => registry.register(name, metric.help(), collector),
        Unit::Seconds => {
            registry.register_with_unit(name, metric.help(), registry::Unit::Seconds, collector);
        }
    }
}

fn name_for_adapter(metric: &Metric, adapter_type: &str) -> String {
    metric.name.replace(ADAPTER_TYPE, &adapter_type.replace('-', "_"))
}

/// Compares the metrics of a registry with the catalogue and describes each difference: name, kind or labels. Each metric
/// must have a value. For tests.
pub fn differences(registry: &Registry, catalogue: &[&[Metric]], adapter_type: &str) -> Vec<String> {
    let mut text = String::new();
    if prometheus_client::encoding::text::encode(&mut text, registry).is_err() {
        return vec!["the registry cannot be encoded".to_owned()];
    }
    let mut exposed = exposed(&text);
    let mut differences = Vec::new();
    for metric in catalogue.iter().copied().flatten() {
        let unit = if metric.unit == Unit::Seconds { "_seconds" } else { "" };
        let name = name_for_adapter(metric, adapter_type) + unit;
        let Some((kind, labels)) = exposed.remove(name.as_str()) else {
            differences.push(format!("{name}: has no value"));
            continue;
        };
        if kind != metric.kind.as_str() {
            differences.push(format!("{name}: is a {kind}"));
        }
        let declared: BTreeSet<_> = metric.labels.iter().copied().collect();
        if labels != declared {
            differences.push(format!("{name}: has the labels {labels:?}"));
        }
    }
    differences.extend(exposed.into_keys().map(|name| format!("{name}: is not in the catalogue")));
    differences
}

/// Kind and non-empty labels of each metric in the `OpenMetrics` text format.
fn exposed(text: &str) -> BTreeMap<&str, (&str, BTreeSet<&str>)> {
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut exposed: BTreeMap<_, _> = kinds.map(|(name, kind)| (name, (kind, BTreeSet::new()))).collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, labels) = line.split_once('{').unwrap_or((line.split(' ').next().unwrap_or_default(), ""));
        let suffixes = ["", "_total", "_bucket", "_sum", "_count", "_info"];
        let name =
            suffixes.iter().filter_map(|suffix| series.strip_suffix(suffix)).find(|name| exposed.contains_key(name));
        let Some((_, known)) = name.and_then(|name| exposed.get_mut(name)) else { continue };
        let labels = labels.rsplit_once('}').map_or("", |(labels, _value)| labels);
        let pairs = labels.split("\",").filter_map(|pair| pair.split_once("=\""));
        known.extend(
            pairs
                .filter(|(name, value)| *name != "le" && !value.trim_end_matches('"').is_empty())
                .map(|(name, _)| name),
        );
    }
    exposed
}

#[cfg(test)]
mod tests {
    use fleet_model::metrics::{adapter, global_pull_secret, sentinel};
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::histogram::Histogram;

    use super::*;

    type Labels = Vec<(&'static str, &'static str)>;

    #[test]
    fn names_units_kinds_and_labels_are_those_of_the_catalogue() {
        let mut registry = Registry::default();
        let probes: Family<Labels, Counter> = Family::default();
        probes.get_or_create(&vec![("verdict", "accepted")]).inc();
        let durations = Histogram::new([1.0]);
        register(&mut registry, &global_pull_secret::PROBES, probes);
        register(&mut registry, &global_pull_secret::RECONCILE_DURATION, durations);
        register_for_adapter(&mut registry, &adapter::GCP_API_CALLS, "pull-secret", Counter::<u64>::default());
        let declared = [global_pull_secret::PROBES, global_pull_secret::RECONCILE_DURATION];
        assert_eq!(
            differences(&registry, &[&declared, &[adapter::GCP_API_CALLS]], "pull-secret"),
            ["pull_secret_gcp_api_calls: has the labels {}"]
        );
    }

    #[test]
    fn every_difference_is_described() {
        let mut registry = Registry::default();
        register(&mut registry, &global_pull_secret::NODES, Counter::<u64>::default());
        register(&mut registry, &sentinel::LEADER, Gauge::<i64>::default());
        let declared = [global_pull_secret::NODES, global_pull_secret::REGISTRIES];
        assert_eq!(
            differences(&registry, &[&declared], ""),
            [
                "global_pull_secret_nodes: is a counter",
                "global_pull_secret_registries: has no value",
                "hyperfleet_sentinel_leader: is not in the catalogue"
            ]
        );
    }
}
