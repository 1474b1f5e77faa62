//! Damages JSON documents at random.

use serde_json::{Map, Value, json};

use crate::damage::Random;

impl Random {
    /// The document with one of its values replaced, removed or wrapped, somewhere.
    pub(crate) fn damage_value(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) if !members.is_empty() && self.roll(4) > 0 => self.damage_member(members),
            Value::Array(items) if !items.is_empty() && self.roll(4) > 0 => {
                let at = self.roll(items.len());
                match self.roll(4) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    _ => self.damage_value(&mut items[at]),
                }
            }
            other => *other = self.nonsense(other),
        }
    }

    fn damage_member(&mut self, members: &mut Map<String, Value>) {
        let names: Vec<String> = members.keys().cloned().collect();
        let name = &names[self.roll(names.len())];
        match self.roll(6) {
            0 => drop(members.remove(name)),
            1 => {
                let moved = members.remove(name).unwrap_or_default();
                let name = self.text(name);
                members.insert(name, moved);
            }
            _ => self.damage_value(members.get_mut(name).unwrap()),
        }
    }

    fn nonsense(&mut self, before: &Value) -> Value {
        match self.roll(14) {
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
            11 => json!("x".repeat(1 << self.roll(12))),
            12 => (0..self.roll(200)).fold(before.clone(), |inner, _| json!([inner])),
            _ => json!(self.text(before.as_str().unwrap_or("text"))),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let pieces: [&[u8]; 8] = [b"\0", "é".as_bytes(), b"'", b"\\", b"..", b" ", b"A", "\u{202e}".as_bytes()];
        String::from_utf8_lossy(&self.damage(text.as_bytes(), &pieces)).into_owned()
    }
}
