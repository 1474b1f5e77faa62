//! A dashboard and its panels: title, unit, expressions; and the JSON that Grafana imports.

use fleet_model::metrics::{ADAPTER_TYPE, Kind as MetricKind, Metric, all};
use serde_json::{Value, json};

/// A dashboard.
pub(crate) struct Dashboard {
    /// Name of its file, without the ending; also its uid in Grafana.
    pub(crate) name: &'static str,
    pub(super) title: &'static str,
    pub(super) panels: &'static [Panel],
}

/// A panel.
pub(super) struct Panel {
    title: &'static str,
    /// Unit by Grafana's name, such as `s` or `reqps`.
    unit: &'static str,
    kind: Kind,
    /// Text beside the title.
    note: &'static str,
    /// Expression and legend of each target.
    targets: &'static [(&'static str, &'static str)],
}

/// The form of a panel.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Lines over time.
    Lines,
    /// The present number.
    Number,
    /// Bars of the present values, longest first.
    Bars,
    /// Bars of a histogram's buckets.
    Histogram,
}

/// Columns of Grafana's grid, and the size of a panel in it.
const COLUMNS: usize = 24;
const WIDTH: usize = 8;
const HEIGHT: usize = 8;

pub(super) const fn panel(
    kind: Kind,
    title: &'static str,
    unit: &'static str,
    targets: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel { title, unit, kind, note: "", targets }
}

impl Panel {
    pub(super) const fn with_note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    fn render(&self, index: usize) -> Value {
        let kind = match self.kind {
            Kind::Lines => "timeseries",
            Kind::Number => "stat",
            Kind::Bars | Kind::Histogram => "bargauge",
        };
        let format = if matches!(self.kind, Kind::Histogram) { "heatmap" } else { "time_series" };
        let is_instant = !matches!(self.kind, Kind::Lines);
        let targets = self.targets.iter().zip('A'..).map(|((expression, legend), id)| {
            json!({
                "datasource": datasource(),
                "expr": expression,
                "format": format,
                "instant": is_instant,
                "range": !is_instant,
                "legendFormat": legend,
                "refId": id.to_string(),
            })
        });
        let per_row = COLUMNS / WIDTH;
        json!({
            "id": index + 1,
            "type": kind,
            "title": self.title,
            "description": self.description(),
            "datasource": datasource(),
            "gridPos": {"h": HEIGHT, "w": WIDTH, "x": index % per_row * WIDTH, "y": index / per_row * HEIGHT},
            "fieldConfig": {"defaults": {"unit": self.unit, "min": 0}, "overrides": []},
            "options": self.options(),
            "targets": targets.collect::<Vec<_>>(),
        })
    }

    /// The note, and the meaning of each metric in the expressions.
    fn description(&self) -> String {
        let metrics = all::ALL.iter().flat_map(|catalogue| catalogue.metrics);
        let used = metrics.filter(|metric| self.targets.iter().any(|(expression, _)| names(expression, metric)));
        let meanings = used.map(|metric| format!("`{}`: {}.", series(metric), metric.help()));
        let note = (!self.note.is_empty()).then(|| self.note.to_owned());
        note.into_iter().chain(meanings).collect::<Vec<_>>().join("\n\n")
    }

    fn options(&self) -> Value {
        let reduce = json!({"calcs": ["lastNotNull"], "fields": "", "values": false});
        match self.kind {
            Kind::Lines => {
                json!({"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}})
            }
            Kind::Number => json!({"reduceOptions": reduce, "colorMode": "none"}),
            Kind::Bars | Kind::Histogram => json!({"reduceOptions": reduce, "orientation": "horizontal"}),
        }
    }
}

impl Dashboard {
    /// The dashboard as Grafana imports it.
    pub(crate) fn render(&self) -> String {
        let panels: Vec<_> = self.panels.iter().enumerate().map(|(index, panel)| panel.render(index)).collect();
        let dashboard = json!({
            "uid": self.name,
            "title": self.title,
            "tags": ["pull-secret"],
            "schemaVersion": 39,
            "version": 1,
            "editable": false,
            "timezone": "utc",
            "refresh": "1m",
            "time": {"from": "now-6h", "to": "now"},
            "templating": {"list": [{
                "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
            }]},
            "panels": panels,
        });
        format!("{dashboard:#}\n")
    }
}

/// The name of a metric in expressions about the pull secret adapter.
fn series(metric: &Metric) -> String {
    metric.series().replace(ADAPTER_TYPE, "pullsecret")
}

/// Returns true if the expression names the metric.
fn names(expression: &str, metric: &Metric) -> bool {
    let series = series(metric);
    let suffixes: &[&str] = if metric.kind == MetricKind::Histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
    let mut words = expression.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.any(|word| suffixes.iter().any(|suffix| word.strip_suffix(suffix) == Some(&series)))
}

fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}
