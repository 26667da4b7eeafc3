//! The locks below the names of parking_lot.

pub(crate) use crate::rwlock::RecursiveRwLock as Recursive;
pub(crate) use ulocks_fair::RawFairMutex as Fair;
pub(crate) use ulocks_unfair::RawThroughputMutex as Throughput;

/// Plain locks report no faults.
pub(crate) struct FaultsAbort;

impl FaultsAbort {
    #[inline(always)]
    pub(crate) const fn because(_: &'static str) -> Self {
        Self
    }
}
