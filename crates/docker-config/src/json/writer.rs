//! Writes compact JSON, identical for identical values, into memory that is allocated once at its full size.

use zeroize::Zeroizing;

use super::{Content, Value};

/// Receives the pieces of a text in order.
pub(crate) trait Sink {
    /// Receives the next piece.
    fn take(&mut self, piece: &[u8]);
}

/// A text that can be written piece by piece, repeatedly.
pub(crate) trait Piece {
    /// Writes all of it.
    fn write(&self, sink: &mut dyn Sink);

    /// Returns the whole text. A buffer that grows would leave copies behind, so it is measured first.
    fn bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut length = Length(0);
        self.write(&mut length);
        let mut buffer = Buffer(Zeroizing::new(Vec::with_capacity(length.0)));
        self.write(&mut buffer);
        buffer.0
    }
}

struct Length(usize);

struct Buffer(Zeroizing<Vec<u8>>);

impl Sink for Length {
    fn take(&mut self, piece: &[u8]) {
        self.0 = self.0.saturating_add(piece.len());
    }
}

impl Sink for Buffer {
    fn take(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }
}

impl Piece for Value {
    fn write(&self, sink: &mut dyn Sink) {
        write_value(self, sink);
    }
}

/// Writes a value without blanks, members in their order.
pub(crate) fn write_value(value: &Value, sink: &mut dyn Sink) {
    match &value.content {
        Content::Null => sink.take(b"null"),
        Content::Boolean(false) => sink.take(b"false"),
        Content::Boolean(true) => sink.take(b"true"),
        Content::Number(number) => sink.take(number.as_bytes()),
        Content::Text(text) => write_text(text, sink),
        Content::Array(values) => {
            sink.take(b"[");
            for (index, item) in values.iter().enumerate() {
                sink.take(if index == 0 { b"" } else { b"," });
                write_value(item, sink);
            }
            sink.take(b"]");
        }
        Content::Object(members) => {
            sink.take(b"{");
            for (index, member) in members.iter().enumerate() {
                sink.take(if index == 0 { b"" } else { b"," });
                write_text(&member.name, sink);
                sink.take(b":");
                write_value(&member.value, sink);
            }
            sink.take(b"}");
        }
    }
}

/// Writes a string in quotes; only what RFC 8259 §7 demands is escaped.
pub(crate) fn write_text(text: &str, sink: &mut dyn Sink) {
    sink.take(b"\"");
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        let (plain, special) = rest.split_at(at);
        sink.take(plain.as_bytes());
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => sink.take(b"\\\""),
            Some('\\') => sink.take(b"\\\\"),
            Some('\n') => sink.take(b"\\n"),
            Some('\r') => sink.take(b"\\r"),
            Some('\t') => sink.take(b"\\t"),
            Some(control) => {
                let code = u32::from(control);
                sink.take(b"\\u00");
                sink.take(&[hex(code >> 4), hex(code)]);
            }
            None => {}
        }
        rest = characters.as_str();
    }
    sink.take(rest.as_bytes());
    sink.take(b"\"");
}

fn hex(digit: u32) -> u8 {
    match u8::try_from(digit & 0xF) {
        Ok(digit @ 0..=9) => b'0' + digit,
        Ok(digit) => b'a' + (digit - 10),
        Err(_impossible) => b'0',
    }
}
