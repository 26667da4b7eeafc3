//! Several searches that share one tree.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// How many steps lead to a part. More steps make more parts, so that more workers have work to the
/// end. But all orders of these steps are tried, which repeats executions, and each worker walks
/// past all parts. The figures are of 16 CPUs (a Xeon under KVM), by `examples/speed.rs`, and of a
/// program of 8 threads that share nothing, which has one execution:
///
/// | steps | 2 workers | 4 | 8 | 16 | executions of the 8 threads |
/// |---|---|---|---|---|---|
/// | 3 | 1.7 times as fast as one | 2.7 | 3.1 | 3.6 | 120, 2 ms |
/// | 5 | 1.9 | 3.8 | 6.0 | 7.3 | 792 |
/// | 7 | 1.9 | 3.7 | 6.2 | 9.9 | 3,208, 50 ms |
/// | 9 | 2.1 | 4.0 | 7.1 | 10.8 | 8,528, 200 ms |
/// | 11 | 1.9 | 3.7 | 6.0 | 9.6 | |
pub(crate) const SPLIT: usize = 7;

/// Which parts of the tree have been claimed by one of the searches.
#[derive(Debug)]
pub(crate) struct Claims {
    claimed: Mutex<Vec<bool>>,
    /// The lowest part in which an execution failed.
    failed: AtomicUsize,
    /// How many executions there may still be.
    left: AtomicU64,
    cut: AtomicBool,
}

impl Claims {
    /// Of a tree of which `limit` executions may be run.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            claimed: Mutex::default(),
            failed: AtomicUsize::new(usize::MAX),
            left: AtomicU64::new(limit),
            cut: AtomicBool::new(false),
        }
    }

    /// Whether the caller is the one to run `part`.
    fn claim(&self, part: usize) -> bool {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.len() <= part {
            claimed.resize(part + 1, false);
        }
        part <= self.failed.load(Relaxed) && !core::mem::replace(&mut claimed[part], true)
    }

    /// An execution of `part` has failed.
    pub(crate) fn fails(&self, part: usize) {
        self.failed.fetch_min(part, Relaxed);
    }

    /// One more execution was run, of `part`. Whether it was one of those that may be, and the part
    /// is not behind one that failed.
    pub(crate) fn goes_on(&self, part: usize) -> bool {
        if self.left.fetch_sub(1, Relaxed) == 0 {
            self.cut.store(true, Relaxed);
        }
        !self.is_cut() && part < self.failed.load(Relaxed)
    }

    /// Whether executions are missing that were not to be run.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }
}

/// The place of one search in the tree.
#[derive(Clone, Debug)]
pub(super) struct Share {
    claims: Arc<Claims>,
    /// How many parts were come to.
    parts: usize,
    /// The part of this execution, and whether it is this search's.
    part: Option<(usize, bool)>,
    /// The questions that lead to it.
    nodes: usize,
}

impl Share {
    pub(super) fn new(claims: Arc<Claims>) -> Self {
        Self { claims, parts: 0, part: None, nodes: 0 }
    }

    /// The next execution is the one before in its first `nodes` questions, the last one aside.
    pub(super) fn begin(&mut self, nodes: usize) {
        if nodes <= self.nodes {
            self.part = None;
        }
    }

    pub(super) fn is_before_parts(&self) -> bool {
        self.part.is_none()
    }

    /// A part begins behind the first `nodes` questions. Whether this search runs it.
    pub(super) fn enter(&mut self, nodes: usize) -> bool {
        let part = self.parts;
        let is_mine = self.claims.claim(part);
        (self.parts, self.part, self.nodes) = (part + 1, Some((part, is_mine)), nodes);
        is_mine
    }

    /// The part of the execution, if it is this search's.
    pub(super) fn mine(&self) -> Option<usize> {
        self.part.filter(|(_, is_mine)| *is_mine).map(|(part, _)| part)
    }
}
