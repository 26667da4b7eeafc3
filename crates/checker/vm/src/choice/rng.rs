//! Chance from a seed: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). One addition and two
//! multiplications a number.

#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of the execution with this number: each has its own, so that one can be
    /// repeated without the others.
    pub(crate) fn of_execution(seed: u64, number: u64) -> Self {
        Self(mix(seed ^ mix(number)))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `n`, which is not 0. Off uniform by less than n / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut rng = Rng::new(1_234_567);
        let numbers: Vec<u64> = (0..3).map(|_| rng.next()).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn each_number_below_n_comes_about_equally_often() {
        let mut rng = Rng::new(1);
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[rng.below(7)] += 1;
        }
        // Ten standard deviations of a binomial with mean 10,000.
        assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
    }

    #[test]
    fn executions_have_generators_of_their_own() {
        let firsts: std::collections::BTreeSet<u64> =
            (0..30).flat_map(|seed| (0..30).map(move |n| Rng::of_execution(seed, n).next())).collect();
        assert_eq!(firsts.len(), 900);
    }
}
