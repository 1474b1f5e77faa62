//! Inputs that are damaged at random, always the same for a seed.

use crate::environment::variable;

/// Inputs of an ordinary run; the variable `FUZZ_INPUTS` has the number of a long one.
const INPUTS: u64 = 3_000;

/// Pieces that parsers stumble over.
const PIECES: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"=",
    b"*",
    b"&a",
    b"*a",
    b"!!",
    b"- ",
    b"\n",
    b"\t",
    b"  ",
    b"%",
    b"../",
    b"\xe2\x80\xae",
    b"99999999999999999999",
    b"application/json",
    b"1.0",
];

/// A generator of numbers (xorshift64*).
pub struct Random(u64);

/// The number of inputs.
pub fn inputs() -> u64 {
    variable("FUZZ_INPUTS").and_then(|text| text.parse().ok()).unwrap_or(INPUTS)
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below the bound; 0 if that is 0.
    pub fn roll(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let thrown = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(thrown).unwrap() % bound.max(1)
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    /// The bytes with a few removed, replaced, repeated or inserted.
    pub fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..self.roll(5) {
            let (at, length) = (self.roll(bytes.len() + 1), self.roll(12));
            let end = (at + length).min(bytes.len());
            match self.roll(4) {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..end, self.pick(PIECES).iter().copied())),
                2 => {
                    let repeated = bytes[at..end].to_vec();
                    bytes.splice(at..at, repeated);
                }
                _ => drop(bytes.splice(at..at, self.pick(PIECES).iter().copied())),
            }
        }
        bytes
    }

    /// The text, damaged likewise.
    pub fn damaged_text(&mut self, text: &str) -> String {
        String::from_utf8_lossy(&self.damaged(text.as_bytes())).into_owned()
    }
}
