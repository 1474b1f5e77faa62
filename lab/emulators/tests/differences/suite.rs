//! The scenarios as they are written in `scenarios/*.yaml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

/// All scenarios, by family.
pub(crate) struct Suite {
    pub(crate) families: Vec<Family>,
}

/// The scenarios of one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    /// The title of the page's section.
    #[serde(rename = "family")]
    pub(crate) title: String,
    /// Objects that requests build upon by name.
    #[serde(default)]
    pub(crate) objects: BTreeMap<String, Value>,
    pub(crate) scenarios: Vec<Scenario>,
}

/// A short sequence of requests in a namespace of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    #[serde(rename = "scenario")]
    pub(crate) title: String,
    /// The reason why the emulator differs here.
    pub(crate) left: Option<String>,
    pub(crate) steps: Vec<Step>,
}

/// One request and the parts of its answer that matter. Status, reason, message, causes and warnings always do.
///
/// Texts contain variables such as `${ns}`: see `play.rs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Method and path, such as `GET ${core}/secrets`.
    pub(crate) call: String,
    /// `anonymous`, or the name of the variable that holds the caller's token; an administrator if none.
    #[serde(rename = "as")]
    pub(crate) caller: Option<String>,
    /// The media type of the body; JSON if none. Those of patches have short names.
    #[serde(rename = "type")]
    pub(crate) media_type: Option<String>,
    pub(crate) accept: Option<String>,
    /// The name of the object that `body` is merged into.
    pub(crate) object: Option<String>,
    pub(crate) body: Option<Value>,
    /// A body that is no JSON, or is wrong.
    pub(crate) raw: Option<String>,
    /// This many bytes as the value of `data.padding`.
    pub(crate) padding: Option<usize>,
    /// Repeats the request until the answer is this: `status`, the number of `warnings`, or a pointer into the body.
    #[serde(default)]
    pub(crate) until: Map<String, Value>,
    /// Pointers into the body, in which `*` stands for every item or member; `content-type`; `text`.
    #[serde(default)]
    pub(crate) show: Vec<String>,
    /// Variables to set, with pointers into the body.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
}

impl Suite {
    pub(crate) fn read() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences/scenarios");
        let mut paths: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let read = |path: &PathBuf| -> Family {
            let text = std::fs::read_to_string(path).unwrap();
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let suite = Self { families: paths.iter().map(read).collect() };
        let mut titles: Vec<_> = suite.scenarios().map(|scenario| &scenario.title).collect();
        titles.sort();
        let doubled = titles.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(doubled, None, "two scenarios have one title");
        suite
    }

    pub(crate) fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        self.families.iter().flat_map(|family| &family.scenarios)
    }
}

impl Step {
    /// The media type of the body in full.
    pub(crate) fn full_media_type(&self) -> &str {
        match self.media_type.as_deref() {
            None => "application/json",
            Some("json-patch") => "application/json-patch+json",
            Some("merge") => "application/merge-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some("apply") => "application/apply-patch+yaml",
            Some(other) => other,
        }
    }
}
