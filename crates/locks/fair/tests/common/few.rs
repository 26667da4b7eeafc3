//! A mutex of a process that may use so many CPUs: how many waiters are awake depends on it.

use ulocks_core::model::pretend_cpus;
use ulocks_core::raw::RawMutex;
use ulocks_testkit::new_lock;
use ulocks_testkit::prepared::{Preparation, Prepared};

/// The mutex `L` on so many CPUs.
pub type OnCpus<L, const CPUS: u32> = Prepared<L, Cpus<CPUS>>;

pub struct Cpus<const CPUS: u32>;

impl<const CPUS: u32> Preparation for Cpus<CPUS> {
    fn lock<L: RawMutex>() -> L {
        pretend_cpus(CPUS);
        new_lock()
    }
}
