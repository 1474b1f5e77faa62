//! Validation of specs against a schema.

use serde_json::json;

use crate::rig::{Kind, Rig, cluster, file, merged, path_of, refusal, unique};

rules! {
    shared: ;
    own: are_checked_on_post_and_patch kinds_without_a_component_accept_any_spec missing_documents;
}

const DOCUMENT: &str = r"
openapi: 3.0.3
info: { title: t, version: '1' }
paths: {}
components:
  schemas:
    ClusterSpec:
      type: object
      required: [platform]
      properties:
        platform:
          type: object
          required: [type]
          properties:
            type: { type: string, enum: [gcp] }
            count: { type: integer, minimum: 1, nullable: true }
            release: { $ref: '#/components/schemas/Release' }
    Release:
      type: object
      properties:
        image: { type: string, maxLength: 10 }
";

fn settings(path: &std::path::Path, more: &str) -> String {
    format!(
        "server: {{ openapi_schema_path: '{}' }}\nentities:\n  - {{ kind: Cluster, plural: clusters, spec_schema_name: \
         ClusterSpec{more} }}\n  - {{ kind: Channel, plural: channels, spec_schema_name: NoSuchSpec }}\n",
        path.display()
    )
}

async fn are_checked_on_post_and_patch(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let yaml = settings(&file(folder.path(), "openapi.yaml", DOCUMENT), ", require_spec_schema: true");
    let rig = Rig::start(kind, &yaml).await;
    let good = json!({ "platform": { "type": "gcp", "count": null, "release": { "image": "x" } }, "more": 1 });
    let created = rig.create("/clusters", merged(cluster(&unique("c")), json!({ "spec": good }))).await;
    let line = format!("PATCH {}", path_of(&created));
    for (spec, field) in [
        (json!({}), "spec"),
        (json!({ "platform": 5 }), "spec.platform"),
        (json!({ "platform": {} }), "spec.platform"),
        (json!({ "platform": { "type": "sesame" } }), "spec.platform.type"),
        (json!({ "platform": { "type": "gcp", "count": 0 } }), "spec.platform.count"),
        (json!({ "platform": { "type": "gcp", "count": 1.5 } }), "spec.platform.count"),
        (
            json!({ "platform": { "type": "gcp", "release": { "image": "sesame-sesame" } } }),
            "spec.platform.release.image",
        ),
    ] {
        let body = merged(cluster(&unique("c")), json!({ "spec": spec }));
        for answer in [rig.ask("POST /clusters", body).await, rig.ask(&line, json!({ "spec": spec })).await] {
            let answer = answer.refuses("400 VAL-000", "Invalid ClusterSpec");
            let errors = answer.body()["errors"].clone();
            assert_eq!(errors.as_array().unwrap().len(), 1, "the first one only: {errors}");
            assert_eq!(errors[0]["field"], field, "{errors}");
            assert!(!answer.text().contains("sesame"), "{answer}");
        }
    }
    assert_eq!(rig.get(&path_of(&created)).await.is(200).body(), created);
    rig.ask(&line, json!({ "labels": { "a": "b" } })).await.is(200);
}

async fn kinds_without_a_component_accept_any_spec(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(kind, &settings(&file(folder.path(), "openapi.yaml", DOCUMENT), "")).await;
    rig.create("/channels", json!({ "kind": "Channel", "name": "any", "spec": { "x": [1, {}] } })).await;
}

async fn missing_documents(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let absent = settings(&folder.path().join("absent.yaml"), "");
    assert!(refusal(kind, &absent).await.contains("server.openapi_schema_path"));
    let broken = settings(&file(folder.path(), "broken.yaml", "{ sesame: ["), "");
    let fault = refusal(kind, &broken).await;
    assert!(fault.contains("server.openapi_schema_path") && !fault.contains("sesame"), "{fault}");
    let empty = settings(&file(folder.path(), "empty.yaml", "openapi: 3.0.3"), ", require_spec_schema: true");
    assert!(refusal(kind, &empty).await.contains("entities[0].spec_schema_name"));
}
