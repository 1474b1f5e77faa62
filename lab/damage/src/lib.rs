//! Inputs damaged at random, always the same for a seed, so that a failure can be repeated.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

/// A generator of numbers (`SplitMix64`).
#[derive(Debug)]
pub struct Random(u64);

/// Pieces that most parsers stumble over.
const PIECES: [&[u8]; 19] = [
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
];

/// The number of inputs: the variable `FUZZ_INPUTS` in a long run, `ordinary` else.
#[expect(clippy::disallowed_methods, reason = "crates that may not depend on the settings use this")]
pub fn inputs(ordinary: u64) -> u64 {
    std::env::var("FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(ordinary)
}

impl Random {
    /// A generator that yields the same numbers for a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below the bound; 0 if that is 0.
    pub fn roll(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap_or_default() % bound.max(1)
    }

    /// One of the choices, of which there is one at least.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.roll(choices.len())]
    }

    /// The bytes with a few removed, repeated, changed, or replaced by pieces that parsers stumble over, `words` among them.
    pub fn damaged(&mut self, bytes: &[u8], words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..self.roll(6) {
            let (at, length) = (self.roll(bytes.len() + 1), self.roll(12));
            let end = (at + length).min(bytes.len());
            match self.roll(5) {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..end, self.piece(words).iter().copied())),
                2 => {
                    let repeated = bytes[at..end].to_vec();
                    bytes.splice(at..at, repeated);
                }
                3 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << self.roll(8)),
                _ => drop(bytes.splice(at..at, self.piece(words).iter().copied())),
            }
        }
        bytes
    }

    fn piece<'a>(&mut self, words: &[&'a [u8]]) -> &'a [u8] {
        let at = self.roll(PIECES.len() + words.len());
        PIECES.get(at).copied().unwrap_or_else(|| words[at - PIECES.len()])
    }
}
