//! References between resources, with the bounds of the configuration.

use serde_json::{Value, json};

use crate::rig::{Kind, Rig, path_of, unique};

const ENTITIES: &str = r"
entities:
  - { kind: Key, plural: keys }
  - kind: Door
    plural: doors
    references:
      - { ref_type: opens, target_kind: Key, min: 1, max: 2 }
      - { ref_type: spare, target_kind: Key }
";

rules! {
    shared: a_cluster_and_its_wif_config;
    own: messages changing finding;
}

async fn key(rig: &Rig) -> Value {
    rig.create("/keys", json!({ "kind": "Key", "name": unique("key"), "spec": {} })).await
}

#[expect(clippy::needless_pass_by_value, reason = "it is written where it is used")]
fn door(references: Value) -> Value {
    json!({ "kind": "Door", "name": unique("door"), "spec": {}, "references": references })
}

async fn messages(kind: Kind) {
    let rig = Rig::start(kind, ENTITIES).await;
    let (one, two, three, gone) = (key(&rig).await, key(&rig).await, key(&rig).await, unique("gone"));
    let id = |key: &Value| json!({ "id": key["id"] });
    let rows: &[(Value, String)] = &[
        (Value::Null, "required reference type \"opens\" missing for Door (min 1)".into()),
        (json!({}), "required reference type \"opens\" missing for Door (min 1)".into()),
        (json!({ "opens": [] }), "required reference type \"opens\" missing for Door (min 1)".into()),
        (json!({ "opens": [id(&one)], "x": [] }), "unknown reference type \"x\" for Door".into()),
        (
            json!({ "opens": [id(&one), id(&two), id(&three)] }),
            "reference type \"opens\" for Door exceeds max count 2 (got 3)".into(),
        ),
        (json!({ "opens": [{}] }), "reference type \"opens\" for Door: id is required".into()),
        (json!({ "opens": [{ "id": "" }] }), "reference type \"opens\" for Door: id is required".into()),
        (json!({ "opens": [id(&one), id(&one)] }), "reference type \"opens\" for Door: duplicate target id".into()),
        (
            json!({ "opens": [{ "id": one["id"], "kind": "Door" }] }),
            "reference type \"opens\" for Door: kind \"Door\" does not match expected target kind \"Key\"".into(),
        ),
        (
            json!({ "opens": [{ "id": gone }] }),
            format!("reference type \"opens\" for Door: target Key \"{gone}\" not found"),
        ),
    ];
    for (references, detail) in rows {
        rig.ask("POST /doors", door(references.clone())).await.refuses("400 VAL-000", detail);
    }
    for malformed in [json!([]), json!({ "opens": {} }), json!({ "opens": ["x"] }), json!({ "opens": [{ "id": 1 }] })] {
        rig.ask("POST /doors", door(malformed)).await.problem("400 VAL-000");
    }
    let created = rig.create("/doors", door(json!({ "opens": [id(&one), id(&two)] }))).await;
    let target = |key: &Value| json!({ "id": key["id"], "kind": "Key", "href": key["href"] });
    let mut expected = [target(&one), target(&two)];
    expected.sort_by_key(|target| target["id"].to_string());
    assert_eq!(created["references"], json!({ "opens": expected }));
    // A target of the wrong kind is not found.
    let other = json!({ "opens": [{ "id": created["id"] }] });
    let detail = format!("reference type \"opens\" for Door: target Key {} not found", created["id"]);
    rig.ask("POST /doors", door(other)).await.refuses("400 VAL-000", &detail);
}

async fn changing(kind: Kind) {
    let rig = Rig::start(kind, ENTITIES).await;
    let (one, two) = (key(&rig).await, key(&rig).await);
    let body = door(json!({ "opens": [{ "id": one["id"] }], "spare": [{ "id": two["id"] }] }));
    let created = rig.create("/doors", body).await;
    let line = format!("PATCH {}", path_of(&created));
    let same = rig.ask(&line, json!({ "spec": { "a": 1 } })).await.is(200).body();
    assert_eq!(same["references"], created["references"], "absent is untouched");
    let missing = "required reference type \"opens\" missing for Door (min 1)";
    rig.ask(&line, json!({ "references": {} })).await.refuses("400 VAL-000", missing);
    rig.ask(&line, json!({ "references": { "opens": null } })).await.refuses("400 VAL-000", missing);
    let patched = rig.ask(&line, json!({ "references": { "opens": [{ "id": two["id"] }] } })).await.is(200).body();
    assert_eq!(patched["generation"], 3);
    assert_eq!(patched["references"].get("spare"), None, "all of them are replaced");
    assert_eq!(patched["references"]["opens"][0]["id"], two["id"]);
    // A target of a reference cannot be deleted.
    let name = |resource: &Value| resource["name"].as_str().unwrap().to_owned();
    let answer = rig.ask(&format!("DELETE {}", path_of(&two)), None).await;
    let detail = format!(
        "cannot delete Key \"{}\": referenced by Door \"{}\" — remove the reference(s) before deleting",
        name(&two),
        name(&created)
    );
    answer.refuses("409 CNF-003", &detail);
    rig.ask(&format!("DELETE {}", path_of(&one)), None).await.is(202);
    rig.get(&path_of(&one)).await.problem("404 NTF-001");
    // A resource that is being deleted no longer protects its targets.
    rig.ask(&format!("DELETE {}", path_of(&created)), None).await.is(202);
    rig.ask(&format!("DELETE {}", path_of(&two)), None).await.is(202);
}

async fn finding(kind: Kind) {
    let rig = Rig::start(kind, ENTITIES).await;
    let (one, two) = (key(&rig).await, key(&rig).await);
    let (one, two) = (one["id"].as_str().unwrap(), two["id"].as_str().unwrap());
    let body = door(json!({ "opens": [{ "id": one }], "spare": [{ "id": two }] }));
    let created = rig.create("/doors", body).await;
    for (ref_type, target, found) in
        [("opens", one, 1), ("spare", two, 1), ("opens", two, 0), ("nonsense", one, 0), ("opens", "x' or '1'='1", 0)]
    {
        let answer = rig.list("/doors", &[("ref_type", ref_type), ("ref_target_id", target)]).await;
        assert_eq!(answer.is(200).body()["total"], found, "{ref_type} {target}");
    }
    let both = "ref_type and ref_target_id must be provided together";
    for one in [("ref_type", "opens"), ("ref_target_id", "x")] {
        let answer = rig.list("/doors", &[one]).await.refuses("400 VAL-000", "Invalid query parameters");
        assert_eq!(answer.body()["errors"][0]["message"], both);
        let field = answer.body()["errors"][0]["field"].as_str().unwrap().to_owned();
        assert!(["reftype", "reftargetid"].contains(&field.as_str()), "{field}");
    }
    assert_eq!(rig.get(&path_of(&created)).await.is(200).body()["references"], created["references"]);
}

async fn a_cluster_and_its_wif_config(rig: &Rig) {
    let wif = rig.create("/wifconfigs", json!({ "kind": "WifConfig", "name": unique("wif"), "spec": {} })).await;
    let references = json!({ "wif_config": [{ "id": wif["id"], "kind": "WifConfig" }] });
    let cluster = rig.cluster(json!({ "references": references })).await;
    let target = json!({ "id": wif["id"], "kind": "WifConfig", "href": wif["href"] });
    assert_eq!(cluster["references"], json!({ "wif_config": [target] }));
    rig.ask(&format!("DELETE {}", path_of(&wif)), None).await.problem("409 CNF-003");
    // A soft-deleted cluster has no effective references.
    let deleted = rig.ask(&format!("DELETE {}", path_of(&cluster)), None).await.is(202).body();
    assert_eq!(deleted.get("references"), None);
    rig.ask(&format!("DELETE {}", path_of(&wif)), None).await.is(202);
}
