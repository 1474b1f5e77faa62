//! Damages JSON documents at random.

use damage::Random;
use serde_json::{Map, Value, json};

/// The document with one of its values replaced, removed or wrapped, somewhere.
pub(crate) fn damage(random: &mut Random, value: &mut Value) {
    match value {
        Value::Object(members) if !members.is_empty() && random.roll(4) > 0 => damage_member(random, members),
        Value::Array(items) if !items.is_empty() && random.roll(4) > 0 => {
            let at = random.roll(items.len());
            match random.roll(4) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => damage(random, &mut items[at]),
            }
        }
        other => *other = nonsense(random, other),
    }
}

fn damage_member(random: &mut Random, members: &mut Map<String, Value>) {
    let names: Vec<String> = members.keys().cloned().collect();
    let name = &names[random.roll(names.len())];
    match random.roll(6) {
        0 => drop(members.remove(name)),
        1 => {
            let moved = members.remove(name).unwrap_or_default();
            let name = changed(random, name);
            members.insert(name, moved);
        }
        _ => damage(random, members.get_mut(name).unwrap()),
    }
}

fn nonsense(random: &mut Random, before: &Value) -> Value {
    match random.roll(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(i64::MAX),
        5 => json!(u64::MAX),
        6 => json!(1.5e300),
        7 => json!([before]),
        8 => json!({ "a": before }),
        9 => json!({}),
        10 => json!("9999-12-31T23:59:59Z"),
        11 => json!("x".repeat(1 << random.roll(12))),
        12 => (0..random.roll(200)).fold(before.clone(), |inner, _| json!([inner])),
        _ => json!(changed(random, before.as_str().unwrap_or("text"))),
    }
}

fn changed(random: &mut Random, text: &str) -> String {
    let pieces: [&[u8]; 8] = [b"\0", "é".as_bytes(), b"'", b"\\", b"..", b" ", b"A", "\u{202e}".as_bytes()];
    String::from_utf8_lossy(&random.damaged(text.as_bytes(), &pieces)).into_owned()
}
