//! helm, and the charts as it renders them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use testkit::environment::{missing, variable};

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Alerts for a chart that has none.
const ALERTS: &str = "groups:\n  - name: test\n    rules: [{alert: Test, expr: vector(1)}]\n";

/// The real helm, and copies of the charts that have alerts and dashboards.
pub(crate) struct Helm {
    pub(crate) program: String,
    folder: TempDir,
}

impl Helm {
    /// `None`, with a line that gives the reason, where there is none; in CI that is a failure.
    pub(crate) fn here() -> Option<Self> {
        let program = variable("REAL_HELM")
            .or_else(|| missing("REAL_HELM is not set: no helm; `hack/real-parts/tools.sh get helm` builds it"))?;
        let folder = tempfile::tempdir().unwrap();
        copy(&Path::new(ROOT).join("charts"), &folder.path().join("charts"));
        let helm = Self { program, folder };
        let (alerts, dashboard) = (helm.monitoring().join("alerts.yaml"), helm.monitoring().join("dashboards"));
        if !alerts.exists() {
            write(&alerts, ALERTS);
        }
        if !dashboard.exists() {
            write(&dashboard.join("test.json"), "{\"title\": \"Test\"}\n");
        }
        Some(helm)
    }

    pub(crate) fn monitoring(&self) -> PathBuf {
        self.chart("pull-secret").join("monitoring")
    }

    pub(crate) fn chart(&self, name: &str) -> PathBuf {
        self.folder.path().join("charts").join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        Command::new(&self.program).args(arguments).env("HOME", self.folder.path()).output().unwrap()
    }

    /// Renders a chart, or returns what helm says against it.
    pub(crate) fn template(&self, chart: &str, namespace: &str, options: &[&str]) -> Result<Vec<Value>, String> {
        let path = self.chart(chart);
        let arguments = ["template", "test", path.to_str().unwrap(), "--namespace", namespace];
        let output = self.run(&[&arguments, options].concat());
        if !output.status.success() {
            return Err(text(&output.stderr));
        }
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text(&output.stdout)).unwrap();
        Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
    }
}

/// A values file of the fixtures.
pub(crate) fn values(name: &str) -> String {
    format!("{}/tests/fixtures/charts/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    daemon::file::replace(path, text.as_bytes()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    for (name, text) in files(from) {
        write(&to.join(name), &text);
    }
}

/// The files below a folder, by their paths in it.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(here) = open.pop() {
        for entry in fs::read_dir(&here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}
