//! Component schemas that are derived from the types which the server serialises.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value};

use crate::http::document::{ProblemDocument, ServiceDocument};
use crate::resource::Target;

/// The derived schemas by name, with those that they refer to.
pub(super) fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    add::<Target>(&mut generator);
    add::<ProblemDocument<'_>>(&mut generator);
    add::<ServiceDocument<'_>>(&mut generator);
    generator.take_definitions(true)
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    let _reference = generator.subschema_for::<T>();
}
