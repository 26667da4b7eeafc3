//! Waiters that are tasks, beside threads and alone. What a drop leaves behind is what the roles
//! with a deadline show: their futures are dropped when it passes.

use crate::place::{Held, Place, behind, soon};
use crate::{Lock, Sleeps, THREE, TWO, sampled};
use core::pin::Pin;
use core::ptr;
use core::task::{Context, RawWaker, RawWakerVTable, Waker};
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::policy::InOneProcess;
use ulocks_core::raw::{RawRwLock, RawRwLockAsync, RawRwLockFair};
use ulocks_core::signal::Soft;
use ulocks_core::sync::UnsafeCell;
use ulocks_psrwlock::{
    BULK, Bulk, Central, Configuration, Eager, Nested, OwnAsync, PhaseFair, RawPsRwLock, ReadersFirst,
    Sifted, ThreadClass, Unchecked, Urgent,
};
use ulocks_testkit::model::rw::Role::{Read, TimedRead, TimedWrite, Write};
use ulocks_testkit::model::rw::{
    Role, exclusion, give_up_while_held, last_unlocker_frees, no_lost_wake, readers_meet, timeout_vs_unlock,
    try_coherence,
};
use ulocks_testkit::model::upgrade::{How, downgrades, round_trips, upgradable_beside_readers, upgrades};
use ulocks_testkit::tasks::{Mixed, Restless, Tasks, block_on, block_on_until};
use ulocks_testkit::thread::spawn;

type Plain = Lock<TWO>;
type All = Tasks<Plain>;
type Some = Mixed<Plain>;
type Polled = Restless<Plain>;
type Slots = Tasks<Lock<TWO, Sleeps, PhaseFair, Eager>>;
type SomeSlots = Mixed<Lock<TWO, Sleeps, PhaseFair, Eager>>;
type First = Mixed<Lock<BULK, Sleeps, ReadersFirst>>;
/// A task spins as it arrives.
type Spinning = Tasks<Lock<TWO, Private>>;

fn many(seed: u64) -> Config {
    Config { seed, ..Config::sampled(5_000) }
}

fn some(seed: u64) -> Config {
    Config { seed, ..Config::sampled(1_500) }
}

/// Two waiters, whatever they are: to the end within three preemptions.
#[test]
fn two_are_explored() {
    let all = || Config { preemptions: Some(3), ..Config::exhaustive() };
    explore(all(), || exclusion::<All>(&[Read, Write]));
    explore(all(), || no_lost_wake::<All>(&[Read, Write], 1));
    explore(all(), || no_lost_wake::<Some>(&[Write, Read], 1));
    explore(all(), || exclusion::<Polled>(&[Write, Write]));
    explore(all(), || last_unlocker_frees::<All>(1, 1));
    let few = || Config { preemptions: Some(2), ..Config::exhaustive() };
    explore(few(), || timeout_vs_unlock::<All>(Write, &[TimedRead]));
    explore(few(), || timeout_vs_unlock::<All>(Read, &[TimedWrite]));
    explore(few(), || upgrades::<All>(How::Wait, 1, 1, 0));
}

#[test]
fn a_writer_is_alone_among_few() {
    explore(many(1), || exclusion::<All>(&[Read, Read, Write]));
    explore(many(2), || exclusion::<Some>(&[Read, Write, Write]));
    explore(many(3), || exclusion::<Polled>(&[Read, Read, Write]));
    explore(many(4), || exclusion::<Slots>(&[Read, Read, Write]));
    explore(many(5), || exclusion::<First>(&[Read, Read, Write]));
    explore(many(6), || exclusion::<Spinning>(&[Read, Write, Write]));
}

#[test]
fn nobody_sleeps_for_ever_among_few() {
    explore(many(6), || no_lost_wake::<Spinning>(&[Read, Write, Write], 1));
    explore(many(1), || no_lost_wake::<All>(&[Read, Write, Write], 1));
    explore(many(2), || no_lost_wake::<Some>(&[Read, Write, Write], 1));
    explore(many(3), || no_lost_wake::<Polled>(&[Write, Write], 2));
    explore(many(4), || no_lost_wake::<Slots>(&[Read, Read, Write], 1));
    explore(many(5), || no_lost_wake::<SomeSlots>(&[Read, Read, Write], 1));
    explore(many(6), || no_lost_wake::<First>(&[Read, Read, Write], 1));
}

/// A future that is dropped leaves nothing behind, and keeps no wake-up.
#[test]
fn a_drop_strands_nobody() {
    const ROLES: &[&[Role]] = &[
        &[TimedWrite, Read, Write],
        &[TimedRead, Write, Read],
        &[TimedWrite, Write],
        &[TimedRead, TimedWrite, Write],
    ];
    for (seed, &roles) in ROLES.iter().enumerate() {
        let seed = seed as u64;
        explore(many(seed), move || timeout_vs_unlock::<All>(Write, roles));
        explore(many(seed), move || timeout_vs_unlock::<Some>(Write, roles));
        explore(many(seed), move || timeout_vs_unlock::<Some>(Read, roles));
    }
    explore(many(9), || timeout_vs_unlock::<Slots>(Read, &[TimedWrite, Read]));
    explore(many(9), || give_up_while_held::<All>(Write, 2));
}

#[test]
fn upgrades_and_downgrades_hold() {
    explore(many(1), || upgrades::<All>(How::Wait, 1, 1, 0));
    explore(many(2), || upgrades::<Some>(How::Wait, 2, 1, 1));
    explore(many(3), || downgrades::<All>(1, 1));
    explore(many(4), || round_trips::<Some>(How::Wait, 2, 1));
    explore(many(5), || upgradable_beside_readers::<All>(2));
}

#[test]
fn attempts_tell_the_truth() {
    explore(many(1), || try_coherence::<All>(1, 1));
    explore(many(2), || readers_meet::<All>(2));
}

#[test]
fn the_release_is_the_last_access() {
    explore(many(1), || last_unlocker_frees::<All>(1, 2));
    explore(many(2), || last_unlocker_frees::<Some>(2, 1));
}

/// Up to sixteen.
#[test]
fn crowds() {
    const WAITS: [Role; 16] = {
        let (mut roles, mut nth) = ([Read; 16], 0);
        while nth < 16 {
            roles[nth] = [Read, Write, Read][nth % 3];
            nth += 1;
        }
        roles
    };
    const TIMED: [Role; 16] = {
        let (mut roles, mut nth) = ([Read; 16], 0);
        while nth < 16 {
            roles[nth] = [Read, Write, TimedRead, TimedWrite, Read][nth % 5];
            nth += 1;
        }
        roles
    };
    for threads in [4, 8, 16] {
        let config = || sampled(threads, threads as u64);
        explore(config(), move || exclusion::<Mixed<Lock<THREE>>>(&TIMED[..threads]));
        explore(config(), move || timeout_vs_unlock::<Mixed<Lock<THREE>>>(Write, &TIMED[..threads]));
        explore(config(), move || no_lost_wake::<Tasks<Lock<THREE>>>(&WAITS[..threads], 1));
    }
}

type Unnested<const SET: u8, R = Central> = Sifted<SET, Sleeps, PhaseFair, R, Soft, Unchecked>;

/// Roles of tasks, beside those of threads in [`Place`].
fn reads<D: Configuration<Policy: InOneProcess>>(place: &Place<D>) -> usize {
    let token = block_on(place.lock.read_async());
    place.leave(token);
    0
}

fn writes<D: Configuration<Policy: InOneProcess>>(place: &Place<D>) -> usize {
    block_on(place.lock.write_async());
    place.count_and_leave()
}

fn writes_in_time<D: Configuration<Policy: InOneProcess>>(place: &Place<D>) -> usize {
    block_on_until(place.lock.write_async(), Some(soon()), 1).map_or(0, |()| place.count_and_leave())
}

/// Releases to a writer that waits.
fn writes_fairly<D: Configuration<Policy: InOneProcess>>(place: &Place<D>) -> usize {
    block_on(place.lock.write_async());
    place.count();
    // SAFETY: acquired above.
    unsafe { place.lock.unlock_write_fair(()) };
    1
}

/// An upgrade that is dropped releases the lock.
fn upgrades_in_time<D: Configuration<Policy: InOneProcess>>(place: &Place<D>) -> usize {
    block_on(place.lock.upgradable_async());
    let seen = place.look();
    // SAFETY: acquired above.
    let upgrade = unsafe { place.lock.upgrade_async(()) };
    block_on_until(upgrade, Some(soon()), 1).map_or(0, |()| {
        assert_eq!(place.count(), seen + 1, "somebody wrote before an upgrade");
        place.unlock_write();
        1
    })
}

fn each_is_served<D: Configuration<Policy: InOneProcess>>() {
    for held in [Held::Written, Held::WrittenFairly, Held::Upgradable, Held::UpgradableFairly] {
        explore(some(1), move || behind::<D, 2>(held, [writes, writes_in_time]));
        explore(some(2), move || behind::<D, 3>(held, [writes, Place::writes, reads]));
        explore(some(3), move || behind::<D, 3>(held, [writes_in_time, Place::writes_fairly, writes]));
        explore(some(4), move || behind::<D, 3>(held, [writes_fairly, Place::writes, upgrades_in_time]));
        explore(some(5), move || behind::<D, 3>(held, [reads, upgrades_in_time, Place::reads_twice::<Bulk>]));
    }
}

/// Readers of a higher class come and go beside a task that sifts.
#[test]
fn classes_of_tasks() {
    fn reads_in<C: ThreadClass, D: Configuration<Policy: InOneProcess>>(place: &Place<D>) -> usize {
        let token = block_on(place.lock.read_class_async::<C>());
        place.leave(token);
        0
    }
    type D = Unnested<THREE>;
    for held in [Held::Written, Held::Upgradable] {
        explore(many(1), move || behind::<D, 3>(held, [reads_in::<Urgent, D>, writes, reads]));
        explore(some(2), move || {
            behind::<D, 4>(
                held,
                [reads_in::<Nested, D>, writes_in_time, reads_in::<Bulk, D>, Place::reads_twice::<Urgent>],
            )
        });
    }
}

/// By releases that are fair, and that are not.
#[test]
fn each_task_behind_a_holder_is_served() {
    each_is_served::<Unnested<BULK>>();
    each_is_served::<Unnested<TWO, Eager>>();
}

/// The executor of a waker that polls: a future, and what it has become.
struct Inline<D: Configuration<Policy: InOneProcess>> {
    future: UnsafeCell<Pin<Box<OwnAsync<'static, D>>>>,
    lock: &'static RawPsRwLock<D>,
}

impl<D: Configuration<Policy: InOneProcess>> Inline<D> {
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |this| RawWaker::new(this, &Self::TABLE),
        |this| {
            // SAFETY: the client keeps it until all of its threads have ended.
            unsafe { &*this.cast::<Self>() }.poll();
        },
        |_| unreachable!("nobody wakes by reference"),
        |_| {},
    );

    /// Polls; a writer releases at once.
    fn poll(&self) {
        let this = ptr::from_ref(self).cast();
        // SAFETY: the functions of the table keep the contract of `RawWaker`, as long as `self`
        // lives. One thread polls at a time: the first poll comes before its waker is called.
        let is_ready = unsafe {
            let waker = Waker::from_raw(RawWaker::new(this, &Self::TABLE));
            self.future
                .with_mut(|future| (*future).as_mut().poll(&mut Context::from_waker(&waker)).is_ready())
        };
        if is_ready {
            // SAFETY: the future has acquired.
            unsafe { self.lock.unlock_write(()) };
        }
    }
}

/// A waker polls at once, in the release that has called it: nothing is left to do for the release.
#[test]
fn a_waker_may_poll() {
    for fair in [false, true] {
        explore(many(1), move || {
            type Kind = Unnested<TWO>;
            let lock: &'static RawPsRwLock<Kind> = Box::leak(Box::new(RawPsRwLock::new()));
            lock.write();
            let inline = Inline { future: UnsafeCell::new(Box::pin(lock.write_async())), lock };
            inline.poll();
            let reader = spawn(move || {
                let token = lock.read();
                // SAFETY: acquired above.
                unsafe { lock.unlock_read(token) };
            });
            // SAFETY: acquired above.
            unsafe { if fair { lock.unlock_write_fair(()) } else { lock.unlock_write(()) } };
            reader.join().expect("the reader panicked");
            assert!(!lock.is_locked(), "a task was not served");
        });
    }
}
