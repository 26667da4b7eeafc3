//! Upgradable readers that close some classes, in all ways, and then write, or step down, or leave.

use crate::{FOUR, Sleeps, SleepsShared, THREE, TWO};
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::signal::Soft;
use ulocks_core::sync::UnsafeCell;
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Central, Configuration, Eager, Nested, Partial, PhaseFair,
    PsRwLockUpgradableReadGuard as Upgradable, PsRwLockWith, PsRwLockWriteGuard as Writer, ReadersFirst,
    Sifted, State, ThreadClass, Unchecked, Urgent,
};
use ulocks_testkit::thread::{Arc, with};

type D<const SET: u8, P = Sleeps, F = PhaseFair, R = Central> = Sifted<SET, P, F, R, Soft, Unchecked>;

/// Data that the checker watches.
#[derive(Default)]
struct Data(UnsafeCell<usize>);

// SAFETY: it is accessed as the lock around it allows; the checker looks whether that is enough.
unsafe impl Sync for Data {}

impl Data {
    fn look(&self) {
        // SAFETY: the caller reads.
        self.0.with(|data| unsafe { *data });
    }

    fn count(&self) {
        // SAFETY: the caller writes.
        self.0.with_mut(|data| unsafe { *data += 1 });
    }
}

type Lock<D> = PsRwLockWith<Data, D>;

const SOON: Duration = Duration::from_millis(1);

/// How a class is closed.
#[derive(Clone, Copy)]
enum Close {
    Wait,
    Try,
    InTime,
    Not,
}
const CLOSES: [Close; 4] = [Close::Wait, Close::Try, Close::InTime, Close::Not];

fn close<C: ThreadClass, D: Configuration>(guard: &mut Upgradable<'_, Data, D>, how: Close) {
    match how {
        Close::Wait => Partial::exclude::<C>(guard),
        Close::Try => _ = Partial::try_exclude::<C>(guard),
        Close::InTime => _ = Partial::try_exclude_for::<C>(guard, SOON),
        Close::Not => {}
    }
}

/// What an upgradable reader does then: so many ways.
const ENDS: u32 = 6;

fn end<D: Configuration>(guard: Upgradable<'_, Data, D>, how: u32) {
    match how {
        0 => Upgradable::upgrade(guard).count(),
        1 => match Upgradable::try_upgrade_for(guard, SOON) {
            Ok(guard) => guard.count(),
            Err(guard) => Upgradable::unlock_fair(guard),
        },
        2 => match Upgradable::try_upgrade(guard) {
            Ok(guard) => {
                guard.count();
                let guard = Writer::downgrade_to_upgradable(guard);
                guard.look();
                Upgradable::unlock_fair(guard);
            }
            Err(guard) => Upgradable::downgrade(guard).look(),
        },
        3 => Upgradable::downgrade(guard).look(),
        4 => Upgradable::unlock_fair(guard),
        _ => drop(guard),
    }
}

/// Closes `A`, and then `B` above it, and ends.
fn partly<A: ThreadClass, B: ThreadClass, D: Configuration>(lock: &Lock<D>, [a, b]: [Close; 2], ends: u32) {
    let mut guard = lock.upgradable_read();
    guard.look();
    close::<A, D>(&mut guard, a);
    close::<B, D>(&mut guard, b);
    end(guard, ends);
}

/// Beside it readers of both classes; in a crowd writers of all kinds, too.
fn beside<A: ThreadClass, B: ThreadClass, D: Configuration>(closes: [Close; 2], ends: u32, crowd: bool) {
    let lock = Arc::new(Lock::<D>::new(Data::default()));
    let plays = |role: fn(&Lock<D>)| with(&lock, role);
    let mut threads =
        vec![plays(|lock| lock.read_in::<A>().look()), plays(|lock| lock.read_in::<B>().look())];
    if crowd {
        threads.push(plays(|lock| drop(lock.try_read_in_for::<B>(SOON).inspect(|guard| guard.look()))));
        threads.push(plays(|lock| drop(lock.try_write_for(SOON).inspect(|guard| guard.count()))));
        threads.push(plays(|lock| {
            let guard = lock.write();
            guard.count();
            Writer::unlock_fair(guard);
        }));
    }
    partly::<A, B, D>(&lock, closes, ends);
    for thread in threads {
        thread.join().expect("a client panicked");
    }
    drop(lock.try_write().expect("a lock that nobody uses is locked"));
    assert_eq!(lock.state(), State::UNLOCKED, "something is left of a lock that nobody uses");
}

fn all_ways<A: ThreadClass, B: ThreadClass, D: Configuration>(seed: u64) {
    for a in CLOSES {
        for b in CLOSES {
            for ends in 0..ENDS {
                let some = |executions| Config { seed, spurious: 1, ..Config::sampled(executions) };
                explore(some(120), move || beside::<A, B, D>([a, b], ends, false));
                explore(some(60), move || beside::<A, B, D>([a, b], ends, true));
            }
        }
    }
}

#[test]
fn who_closes_a_part_and_then_the_rest_is_alone() {
    all_ways::<Bulk, Nested, D<THREE>>(1);
    all_ways::<Bulk, Urgent, D<THREE, Private>>(2);
    all_ways::<Bulk, Nested, D<THREE, Sleeps, PhaseFair, Eager>>(3);
    all_ways::<Bulk, Urgent, D<TWO, SleepsShared>>(4);
    all_ways::<Bulk, Bulk, D<BULK>>(5);
    all_ways::<Bulk, Bulk, D<BULK, Sleeps, PhaseFair, Eager>>(6);
    all_ways::<Bulk, Bulk, D<BULK, Sleeps, ReadersFirst>>(7);
    all_ways::<Urgent, Nested, D<FOUR>>(8);
}

/// What readers did that an attempt finds gone happens before it.
#[test]
fn an_attempt_to_close_all_comes_after_the_readers() {
    let many = || Config::sampled(2_000);
    let closes = [Close::Try, Close::Not];
    explore(many(), move || beside::<Bulk, Bulk, D<BULK>>(closes, 0, false));
    explore(many(), move || beside::<Nested, Nested, D<THREE>>(closes, 0, false));
    explore(many(), move || beside::<Nested, Nested, D<THREE, Sleeps, PhaseFair, Eager>>(closes, 0, false));
}
