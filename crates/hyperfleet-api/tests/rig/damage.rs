//! Damages texts at random, always in the same way for the same seed.

/// `SplitMix64`: good enough to make nonsense.
#[derive(Debug)]
pub(crate) struct Random(u64);

/// The number of inputs: what the variable `FUZZ_INPUTS` says, else that of an ordinary run.
#[expect(clippy::disallowed_methods, reason = "the environment names the length of a long run")]
pub(crate) fn inputs(ordinary: u64) -> u64 {
    std::env::var("FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(ordinary)
}

// === impl Random ===

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`, which is not 0.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap() % sides
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.roll(choices.len())]
    }

    /// The bytes with a few removed, replaced, repeated or inserted.
    pub(crate) fn damage(&mut self, text: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
        let mut bytes = text.to_vec();
        for _ in 0..self.roll(6) {
            let (at, length) = (self.roll(bytes.len() + 1), self.roll(12));
            let end = (at + length).min(bytes.len());
            match self.roll(4) {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..end, self.pick(pieces).iter().copied())),
                2 => {
                    let repeated = bytes[at..end].to_vec();
                    bytes.splice(at..at, repeated);
                }
                _ => drop(bytes.splice(at..at, self.pick(pieces).iter().copied())),
            }
        }
        bytes
    }
}
