//! Random messages for tests and fuzzing: every field that a version has gets a value that the version can carry.

use alloc::{string::String, vec::Vec};

use bytes::Bytes;

/// A deterministic source of values; the seed decides everything.
#[derive(Clone, Debug)]
pub struct Samples(u64);

impl Samples {
    /// Starts from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number (SplitMix64).
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is not zero.
    pub const fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number of 64 bits: often an edge, else anything. Narrower types cut it.
    pub const fn number(&mut self) -> i64 {
        match self.below(8) {
            0 => 0,
            1 => -1,
            2 => 1,
            3 => i64::MAX,
            4 => i64::MIN,
            _ => self.next() as i64,
        }
    }

    /// A short string, not only of ASCII, sometimes longer than a compact length of one byte can say.
    pub fn text(&mut self) -> String {
        let length = match self.below(10) {
            0 => 0,
            1 => 127 + self.below(100),
            _ => 1 + self.below(12),
        };
        (0..length).map(|_| ['a', 'Z', '-', '.', '7', 'ß', '語'][self.below(7)]).collect()
    }

    /// A few bytes.
    pub fn bytes(&mut self) -> Bytes {
        let length = self.below(200);
        (0..length).map(|_| self.next() as u8).collect::<Vec<_>>().into()
    }
}
