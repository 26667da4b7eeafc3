//! Sets of small numbers.

/// The numbers below 64 need no allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    first: u64,
    /// From 64 on.
    more: Vec<u64>,
}

impl Bits {
    pub(super) fn has(&self, n: usize) -> bool {
        self.word(n / 64) & (1 << (n % 64)) != 0
    }

    fn word(&self, index: usize) -> u64 {
        if index == 0 { self.first } else { self.more.get(index - 1).copied().unwrap_or(0) }
    }

    pub(super) fn insert(&mut self, n: usize) {
        let bit = 1 << (n % 64);
        match (n / 64).checked_sub(1) {
            None => self.first |= bit,
            Some(index) => {
                if index >= self.more.len() {
                    self.more.resize(index + 1, 0);
                }
                self.more[index] |= bit;
            }
        }
    }

    pub(super) fn remove(&mut self, n: usize) {
        let bit = 1 << (n % 64);
        match (n / 64).checked_sub(1) {
            None => self.first &= !bit,
            Some(index) => {
                if let Some(word) = self.more.get_mut(index) {
                    *word &= !bit;
                }
            }
        }
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.first |= other.first;
        if self.more.len() < other.more.len() {
            self.more.resize(other.more.len(), 0);
        }
        for (mine, theirs) in self.more.iter_mut().zip(&other.more) {
            *mine |= theirs;
        }
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.first & other.first != 0
            || self.more.iter().zip(&other.more).any(|(mine, theirs)| mine & theirs != 0)
    }

    pub(super) fn len(&self) -> usize {
        (0..=self.more.len()).map(|index| self.word(index).count_ones() as usize).sum()
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.first = other.first;
        self.more.clone_from(&other.more);
    }

    pub(super) fn clear(&mut self) {
        self.first = 0;
        self.more.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..=self.more.len()).flat_map(|index| {
            let mut rest = self.word(index);
            core::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    index * 64 + bit
                })
            })
        })
    }
}
