//! Relations on the events of a graph.

/// A set of events, by number.
type Events = u128;

/// A relation on at most 128 events: the set of successors of each.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Relation(pub(super) Vec<Events>);

impl Relation {
    pub(super) fn empty(n: usize) -> Self {
        Self(vec![0; n])
    }

    /// The identity on the events for which `keep` holds.
    pub(super) fn on(n: usize, keep: impl Fn(usize) -> bool) -> Self {
        Self((0..n).map(|e| Events::from(keep(e)) << e).collect())
    }

    pub(super) fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] & (1 << b) != 0
    }

    pub(super) fn add(&mut self, a: usize, b: usize) {
        self.0[a] |= 1 << b;
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    /// First `self`, then `other`.
    pub(super) fn then(&self, other: &Self) -> Self {
        let compose = |&row: &Events| {
            let (mut row, mut result) = (row, 0);
            while row != 0 {
                result |= other.0[row.trailing_zeros() as usize];
                row &= row - 1;
            }
            result
        };
        Self(self.0.iter().map(compose).collect())
    }

    pub(super) fn maybe(&self) -> Self {
        Self(self.0.iter().enumerate().map(|(e, row)| row | 1 << e).collect())
    }

    pub(super) fn closure(&self) -> Self {
        let mut result = self.clone();
        for through in 0..result.0.len() {
            let row = result.0[through];
            for from in 0..result.0.len() {
                if result.has(from, through) {
                    result.0[from] |= row;
                }
            }
        }
        result
    }

    pub(super) fn inverse(&self) -> Self {
        let mut result = Self::empty(self.0.len());
        for a in 0..self.0.len() {
            for b in 0..self.0.len() {
                if self.has(a, b) {
                    result.add(b, a);
                }
            }
        }
        result
    }

    pub(super) fn filter(&self, keep: impl Fn(usize, usize) -> bool) -> Self {
        let n = self.0.len();
        let row = |a| (0..n).filter(|&b| self.has(a, b) && keep(a, b)).fold(0, |row, b| row | 1 << b);
        Self((0..n).map(row).collect())
    }

    pub(super) fn is_irreflexive(&self) -> bool {
        (0..self.0.len()).all(|e| !self.has(e, e))
    }

    pub(super) fn is_acyclic(&self) -> bool {
        self.closure().is_irreflexive()
    }
}
