//! The hash of a key: the same in all processes.

use core::hash::{Hash, Hasher};

/// FNV-1a of 64 bits (G. Fowler, L. C. Noll, K.-P. Vo; draft-eastlake-fnv), without a seed: a
/// process that comes later finds what another one has put in.
struct Fnv(u64);

impl Hasher for Fnv {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// FNV mixes the last bytes into the lower bits only. So the end of MurmurHash3 (A. Appleby)
    /// follows.
    #[inline]
    fn finish(&self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ hash >> 33
    }
}

/// 32 bits of the hash of `key`.
#[inline]
pub(super) fn hash_of<K: Hash>(key: &K) -> u32 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    key.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was written before is read after a change of this code, or the number of the
    /// layout is another one.
    #[test]
    fn a_hash_is_the_same_for_ever() {
        let mut fnv = Fnv(0xcbf2_9ce4_8422_2325);
        fnv.write(b"foobar");
        assert_eq!(fnv.0, 0x8594_4171_f739_67e8, "the published value");
        assert_eq!(hash_of(&0_u64), HASH_OF_ZERO);
    }

    const HASH_OF_ZERO: u32 = 2_077_430_863;

    #[test]
    fn keys_that_follow_one_another_are_spread() {
        let mut buckets = [0_u32; 64];
        for key in 0..6400_u64 {
            buckets[(hash_of(&key) >> 26) as usize] += 1;
        }
        assert!(buckets.iter().all(|keys| (50..200).contains(keys)), "{buckets:?}");
    }
}
