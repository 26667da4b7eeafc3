//! Random numbers for benchmarks: of lengths of work, and of the order of trials.

/// Marsaglia's xorshift, 64 bits: a few cycles, good enough to vary a hold time.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator; any seed will do, and neighbouring seeds give unrelated sequences.
    pub fn new(seed: u64) -> Self {
        // splitmix64's finaliser: xorshift must not start from zero, nor from similar values.
        let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((x ^ (x >> 31)) | 1)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`, which must not be zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Puts these into an order in which any of them may follow any other.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_shuffle_has_every_order() {
        let (mut rng, mut all) = (Rng::new(1), [0, 1, 2, 3]);
        let mut shuffled = || {
            rng.shuffle(&mut all);
            all
        };
        let orders: HashSet<_> = (0..500).map(|_| shuffled()).collect();
        assert_eq!(orders.len(), 24);
    }
}
