//! Chance that can be repeated: a failing history is its seed.

/// Random numbers that a seed decides.
pub struct Dice(u64);

impl Dice {
    /// The dice of a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number from 0 to below the bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    /// True once in so many times.
    pub fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }
}
