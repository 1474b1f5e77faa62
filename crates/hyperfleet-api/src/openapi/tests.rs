//! The consistency of the document, for the standard kinds and for others.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::entity::{Descriptor, ReferenceRule};

const METHODS: &[&str] = &["get", "put", "post", "patch", "delete"];

fn documents() -> Vec<Value> {
    let reference = ReferenceRule { ref_type: "image".to_owned(), target_kind: "Image".to_owned(), min: 1, max: 0 };
    let plain = |kind: &str, plural: &str| Descriptor {
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        ..Descriptor::default()
    };
    let machine = Descriptor {
        parent_kind: Some("Image".to_owned()),
        references: vec![reference],
        spec_schema_name: Some("MachineSpec".to_owned()),
        name_min_len: 9,
        ..plain("Machine", "machines")
    };
    let disk = Descriptor { parent_kind: Some("Machine".to_owned()), ..plain("Disk", "disks") };
    let other = Registry::new(vec![plain("Image", "images"), machine, disk]).unwrap();
    let none = Registry::new(Vec::new()).unwrap();
    [Registry::standard(), other, none].iter().map(|registry| document(registry, "1")).collect()
}

/// Calls `visit` with each object of the document.
fn objects<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|member| objects(member, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| objects(item, visit)),
        _ => {}
    }
}

fn operations(document: &Value) -> Vec<(&String, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (_, &'_ Value)| {
        let item = item.as_object().unwrap().clone();
        let methods: Vec<&str> = METHODS.iter().copied().filter(|method| item.contains_key(*method)).collect();
        (path, methods)
    };
    paths
        .iter()
        .map(of_path)
        .flat_map(|(path, methods)| {
            methods.into_iter().map(move |method| (path, method, &document["paths"][path][method]))
        })
        .collect()
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    for document in documents() {
        let mut used = BTreeSet::new();
        objects(&document, &mut |object| {
            if let Some(Value::String(reference)) = object.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference} does not resolve");
                used.insert(reference.clone());
            }
        });
        let none = document["tags"].as_array().unwrap().len() == 2;
        for section in ["headers", "parameters", "responses", "schemas"] {
            for name in document["components"][section].as_object().unwrap().keys() {
                let reference = format!("#/components/{section}/{name}");
                assert!(none || used.contains(&reference), "{reference} is not used");
            }
        }
    }
}

#[test]
fn path_parameters_match_their_declarations() {
    for document in documents() {
        for (path, item) in document["paths"].as_object().unwrap() {
            let named: BTreeSet<&str> =
                path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect();
            let declared = item["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            let declared: BTreeSet<&str> =
                declared.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
            assert_eq!(named, declared, "{path}");
        }
    }
}

#[test]
fn operations_have_unique_ids_and_known_tags() {
    for document in documents() {
        let tags: BTreeSet<&str> =
            document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
        let mut ids = BTreeSet::new();
        for (path, method, operation) in operations(&document) {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} is a duplicate, at {method} {path}");
            assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{id}");
            assert!(operation["summary"].as_str().unwrap().len() > 5, "{id}");
        }
    }
}

#[test]
fn every_schema_is_valid_and_every_example_satisfies_it() {
    for document in documents() {
        let validator = |schema: &Value| {
            let mut whole = schema.clone();
            whole["components"] = document["components"].clone();
            jsonschema::draft202012::new(&whole).unwrap_or_else(|error| panic!("{schema}: {error}"))
        };
        for schema in document["components"]["schemas"].as_object().unwrap().values() {
            validator(schema);
        }
        let mut examples_checked = 0;
        objects(&document, &mut |media| {
            if let (Some(schema), Some(Value::Object(examples))) = (media.get("schema"), media.get("examples")) {
                let validator = validator(schema);
                for (name, example) in examples {
                    examples_checked += 1;
                    let faults: Vec<String> =
                        validator.iter_errors(&example["value"]).map(|error| error.to_string()).collect();
                    assert!(faults.is_empty(), "{name}: {faults:?}");
                }
            }
        });
        assert!(examples_checked > 10, "{examples_checked}");
    }
}

/// The paths of HyperFleet's contract, for each kind.
const CONTRACT: &[(&str, &[&str])] = &[
    ("", &["get", "post"]),
    ("/{}", &["delete", "get", "patch"]),
    ("/{}/force-delete", &["post"]),
    ("/{}/statuses", &["get", "put"]),
];

#[test]
fn the_core_is_the_contract_alone() {
    let whole = document(&Registry::standard(), "1");
    let core = core(&whole);
    let mut expected = BTreeSet::new();
    for collection in [
        "clusters",
        "nodepools",
        "clusters/{}/nodepools",
        "channels",
        "versions",
        "channels/{}/versions",
        "wifconfigs",
        "resources",
    ] {
        for (rest, methods) in CONTRACT {
            expected.extend(methods.iter().map(|method| format!("{method} /api/hyperfleet/v1/{collection}{rest}")));
        }
    }
    for path in ["", "/v1/openapi", "/v1/openapi.html"] {
        expected.insert(format!("get /api/hyperfleet{path}"));
    }
    let anonymous = |path: &str| {
        let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
        segments.collect::<Vec<_>>().join("/")
    };
    let actual = operations(&core).into_iter().map(|(path, method, _)| format!("{method} {}", anonymous(path)));
    assert_eq!(actual.collect::<BTreeSet<_>>(), expected);
    let text = core.to_string();
    for beyond in [
        "\"x-beyond-hyperfleet\"",
        "reason_since_time",
        "\"watch\"",
        "If-Match",
        "\"adapters\":",
        "observedGeneration",
        "ChangeEvent",
        "Tombstone",
        "Transition",
    ] {
        assert!(!text.contains(beyond), "{beyond}");
        assert!(whole.to_string().contains(beyond), "{beyond}");
    }
    // Whatever is referred to is there.
    objects(&core, &mut |members| {
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            assert!(core.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
    });
}
