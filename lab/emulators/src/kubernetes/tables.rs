//! Objects as rows for people, with the columns that `kubectl get` shows of a real server.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::meta;
use super::resources::Resource;
use super::store::Object;
use super::value::{list, text};
use super::views;

mod cells;
mod columns;
mod words;

/// A table of objects; `include` says how much of each object a row carries.
pub(crate) fn table(resource: &Resource, objects: &[Object], include: &str, now: Timestamp) -> Value {
    let columns: Vec<Value> = match &resource.custom {
        Some(version) => custom_columns(version),
        None => columns::of(&resource.storage).iter().map(columns::Column::json).collect(),
    };
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells = match &resource.custom {
                Some(version) => custom_cells(version, object, now),
                None => cells::of(&resource.storage, object, now),
            };
            let shown = match include {
                "None" => Value::Null,
                "Object" => views::present(resource, object),
                _ => views::metadata_only(object),
            };
            json!({"cells": cells, "object": shown})
        })
        .collect();
    let revision = match objects {
        [one] => text(one, "/metadata/resourceVersion"),
        _ => "",
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": revision},
        "columnDefinitions": columns, "rows": rows,
    })
}

fn custom_columns(version: &Value) -> Vec<Value> {
    let own = list(version, "/additionalPrinterColumns").iter().map(|column| {
        json!({
            "name": text(column, "/name"), "type": text(column, "/type"), "format": text(column, "/format"),
            "description": text(column, "/description"),
            "priority": column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
        })
    });
    let mut columns = vec![columns::Column::NAME.json()];
    columns.extend(own);
    if columns.len() == 1 {
        columns.push(columns::Column::AGE.json());
    }
    columns
}

fn custom_cells(version: &Value, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![json!(meta::name(object))];
    let own = list(version, "/additionalPrinterColumns");
    for column in own {
        let found = words::at_path(object, text(column, "/jsonPath"));
        cells.push(match (text(column, "/type"), found) {
            (_, None) => Value::Null,
            ("date", Some(time)) => json!(words::since(time.as_str().unwrap_or_default(), now)),
            ("integer" | "number" | "boolean", Some(value)) => value.clone(),
            (_, Some(Value::String(text))) => json!(text),
            (_, Some(value)) => json!(value.to_string()),
        });
    }
    if own.is_empty() {
        cells.push(json!(words::age(object, now)));
    }
    cells
}
