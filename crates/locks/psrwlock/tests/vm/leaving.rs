//! Releases that do not wait for a moment without readers: an owner says that it leaves, and
//! leaves. No thread falls asleep on such an owner, and it does not touch the lock afterwards.

use crate::place::{Client, Held, Place, behind, together_with};
use crate::{FOUR, Lock, Sleeps, THREE, TWO, sampled};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::{RawRwLock, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair};
use ulocks_core::signal::Soft;
use ulocks_psrwlock::{
    BULK, Bulk, Central, Configuration, Eager, Nested, PhaseFair, Sifted, Unchecked, Urgent,
};
use ulocks_testkit::thread::together;

type Plain<const SET: u8, P = Sleeps, R = Central> = Sifted<SET, P, PhaseFair, R, Soft, Unchecked>;
type At<D> = Place<D>;

/// Enough to meet the few steps between which a waiter may come.
fn many(executions: u64) -> Config {
    Config { spurious: 2, ..Config::sampled(executions) }
}

/// Readers that make the attempts of a release fail, and waiters that set their flags between.
#[test]
fn nobody_sleeps_on_an_owner_that_leaves() {
    fn check<D: Configuration>() {
        let reads: Client<D> = At::reads_twice::<Bulk>;
        for held in [Held::Upgradable, Held::Written, Held::UpgradableFairly, Held::WrittenFairly] {
            explore(many(2_500), move || behind(held, [reads, At::writes]));
            explore(many(2_500), move || behind(held, [reads, reads, At::writes]));
            explore(sampled(5, 1), move || behind(held, [reads, reads, At::writes, At::writes_in_time]));
            explore(sampled(6, 2), move || {
                behind(held, [reads, At::reads_upgradably, reads, At::writes, At::writes])
            });
        }
    }
    check::<Plain<BULK>>();
    check::<Plain<TWO>>();
    check::<Plain<TWO, Private>>();
    check::<Plain<TWO, Sleeps, Eager>>();
}

#[test]
fn owners_come_and_go_beside_readers() {
    fn check<D: Configuration>(seed: u64) {
        explore(sampled(8, seed), || {
            together_with([
                At::<D>::reads_upgradably,
                At::<D>::reads_upgradably_and_fairly,
                At::<D>::reads_twice::<Bulk>,
                At::<D>::reads_twice::<Urgent>,
                At::<D>::reads_twice::<Nested>,
                At::<D>::writes_fairly,
                At::<D>::writes,
                At::<D>::goes_up_and_down,
            ])
        });
    }
    for seed in 1..=4 {
        check::<Plain<THREE>>(seed);
        check::<Plain<THREE, Private>>(seed);
        check::<Plain<FOUR>>(seed);
    }
}

/// How an owner holds the lock, and lets go.
#[derive(Clone, Copy)]
enum Owner {
    Upgradable,
    UpgradableFair,
    Write,
    WriteFair,
}

/// A lock, and how many have held it.
struct Doomed<L> {
    lock: L,
    done: AtomicUsize,
}

struct Shared<L>(*mut Doomed<L>);

impl<L> Clone for Shared<L> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

// SAFETY: what it points to is a lock and an atomic, and lives until the last user frees it.
unsafe impl<L: Send + Sync> Send for Shared<L> {}
// SAFETY: as above.
unsafe impl<L: Send + Sync> Sync for Shared<L> {}

impl<L> Shared<L> {
    fn get(&self) -> *mut Doomed<L> {
        self.0
    }
}

/// Owners one after the other, of which the last frees the lock: none of the others may touch it
/// after its release.
fn the_last_owner_frees<L>(owners: &'static [Owner])
where
    L: RawRwLock<WriteToken = ()>
        + RawRwLockUpgrade<UpgradableToken = ()>
        + RawRwLockFair
        + RawRwLockUpgradeFair,
    L: Send + Sync + 'static,
{
    let doomed = Shared(Box::into_raw(Box::new(Doomed { lock: L::init(), done: AtomicUsize::new(0) })));
    let freed = together(owners.len(), move |me| {
        let doomed = doomed.clone();
        // SAFETY: this user is not done yet, so the memory is alive.
        let Doomed { lock, done } = unsafe { &*doomed.get() };
        let is_last = || done.fetch_add(1, Relaxed) + 1 == owners.len();
        let last;
        // SAFETY: each releases what it has acquired.
        unsafe {
            match owners[me] {
                Owner::Upgradable => {
                    lock.upgradable();
                    last = is_last();
                    lock.unlock_upgradable(());
                }
                Owner::UpgradableFair => {
                    lock.upgradable();
                    last = is_last();
                    lock.unlock_upgradable_fair(());
                }
                Owner::Write => {
                    lock.write();
                    last = is_last();
                    lock.unlock_write(());
                }
                Owner::WriteFair => {
                    lock.write();
                    last = is_last();
                    lock.unlock_write_fair(());
                }
            }
        }
        if last {
            // SAFETY: all users are done, and have released or are this one.
            drop(unsafe { Box::from_raw(doomed.get()) });
        }
        usize::from(last)
    });
    assert_eq!(freed.into_iter().sum::<usize>(), 1);
}

#[test]
fn an_owner_does_not_touch_what_it_has_left() {
    use Owner::{Upgradable, UpgradableFair, Write, WriteFair};
    for owners in [
        &[Upgradable, Upgradable, Upgradable][..],
        &[UpgradableFair, Upgradable],
        &[UpgradableFair, Upgradable, UpgradableFair],
        &[UpgradableFair, Write, Upgradable],
        &[WriteFair, UpgradableFair, Upgradable, Write],
    ] {
        explore(many(5_000), || the_last_owner_frees::<Lock<TWO>>(owners));
        explore(many(5_000), || the_last_owner_frees::<Lock<THREE, Private>>(owners));
    }
}
