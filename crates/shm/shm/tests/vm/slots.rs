//! The table of slots alone: threads that claim and leave the same few slots, and die at each step.

use crate::place::under;
use std::sync::Arc;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_shm::slots::Slot;
use ulocks_shm::{JoinError, Member};
use ulocks_testkit::thread::with;

/// So many slots.
struct Table<const SLOTS: usize>([Slot; SLOTS]);

impl<const SLOTS: usize> Table<SLOTS> {
    fn new() -> Arc<Self> {
        Arc::new(Self([(); SLOTS].map(|()| Slot::new())))
    }

    fn join(&self) -> Result<Member<'_>, JoinError> {
        // SAFETY: the table outlives the member: its thread has a share of it.
        unsafe { Member::join(&self.0, 0..0) }
    }

    /// A thread that joins so often, if there is a slot, and leaves.
    fn comes_and_goes(self: &Arc<Self>, rounds: u32) -> thread::JoinHandle<()> {
        with(self, move |table| (0..rounds).for_each(|_| drop(table.join())))
    }

    /// All threads have come to their end, or have died: each slot can be claimed.
    fn ends(&self, threads: Vec<thread::JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| _ = thread.join());
        let lost = self.0.iter().filter(|slot| slot.is_taken()).count();
        assert_eq!(lost, 0, "a slot is lost");
        drop(self.join().expect("a slot is lost"));
    }
}

#[test]
fn a_death_in_a_claim_or_a_leave_loses_no_slot() {
    for kernel in Kernel::ALL {
        let all = Config { deaths: Deaths::Threads(1), kernel, timeouts: false, ..Config::exhaustive() };
        explore(all, || {
            let table = Table::<1>::new();
            table.ends(vec![table.comes_and_goes(1), table.comes_and_goes(1)]);
        });
        let some = Config { deaths: Deaths::Threads(2), ..under(kernel, 4_000) };
        explore(some.clone(), || {
            let table = Table::<1>::new();
            table.ends((0..3).map(|_| table.comes_and_goes(2)).collect());
        });
        explore(some, || {
            let table = Table::<2>::new();
            table.ends((0..4).map(|_| table.comes_and_goes(2)).collect());
        });
    }
}

/// Two threads never have one slot, also while the one before them dies.
#[test]
fn a_slot_has_one_thread() {
    for kernel in Kernel::ALL {
        let config = Config { deaths: Deaths::Threads(1), ..under(kernel, 4_000) };
        explore(config, || {
            let table = Table::<1>::new();
            let dying = table.comes_and_goes(2);
            let resident =
                with(&table, |table| table.join().map(|me| (me.slot(), std::mem::forget(me))).is_ok());
            let here = table.join().map(|me| (me.slot(), std::mem::forget(me))).is_ok();
            let there = resident.join();
            assert!(!(here && matches!(there, Ok(true))), "two threads have one slot");
            let _ = dying.join();
        });
    }
}
