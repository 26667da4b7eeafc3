//! Readers of all classes, and all others, beside one another; what classes are for.

use crate::place::Role::{
    Downgrade, FairUpgradable, FairWrite, Nest, Read, TimedRead, TimedUpgrade, TimedWrite, TryRead,
    TryUpgrade, TryWrite, UpAndDown, Upgrade, Write,
};
use crate::place::{Of, Place, Role, play, soon};
use crate::{FOUR, Sleeps, SleepsShared, THREE, sampled, tame};
use core::time::Duration;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::{RawRwLock, RawRwLockFair, RawRwLockUpgrade};
use ulocks_core::signal::Soft;
use ulocks_core::sync::spin_until;
use ulocks_psrwlock::{
    Bulk, ByClass, Central, Configuration, Eager, Partial, PhaseFair, PsRwLockUpgradableReadGuard as Guard,
    PsRwLockWith, Sifted, State, Unchecked, Urgent,
};
use ulocks_testkit::thread::{Arc, spawn, with};

type All<const SET: u8, P = Sleeps, F = PhaseFair, R = Central> = Sifted<SET, P, F, R, Soft, Unchecked>;

const MILLISECOND: Duration = Duration::from_millis(1);

const BULK: Of = Of::Bulk;
const URGENT: Of = Of::Urgent;
const NESTED: Of = Of::Nested;
const CLASSES: [Of; 3] = [BULK, URGENT, NESTED];

/// Runs `check` on the disciplines there are, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<All<THREE>>(1);
        $check::<All<FOUR>>(2);
        $check::<All<FOUR, Private>>(3);
        $check::<All<THREE, SleepsShared>>(4);
        $check::<All<FOUR, Sleeps, PhaseFair, Eager>>(6);
        $check::<All<THREE, SleepsShared, PhaseFair, Eager>>(7);
    };
}

const CROWDS: [&[Role]; 6] = [
    &[Read(BULK), Read(URGENT), Read(NESTED), Write],
    &[Nest, Write, Nest, UpAndDown],
    &[Upgrade, Read(BULK), TimedWrite, Nest],
    &[FairWrite, TimedWrite, FairWrite, Read(URGENT), TimedWrite, Write],
    &[
        TimedUpgrade,
        FairUpgradable,
        TimedRead(BULK),
        Downgrade,
        Nest,
        TryUpgrade,
        TryWrite,
        TimedRead(NESTED),
    ],
    &[
        Write,
        Nest,
        TimedWrite,
        Read(BULK),
        FairWrite,
        Read(URGENT),
        TimedUpgrade,
        TimedRead(URGENT),
        Downgrade,
        TryRead(BULK),
        Upgrade,
        Read(NESTED),
        TryWrite,
        FairUpgradable,
        TryUpgrade,
        TimedRead(BULK),
    ],
];

#[test]
fn all_do_what_they_may_beside_all_others() {
    fn check<D: Configuration>(seed: u64) {
        for roles in CROWDS {
            explore(sampled(roles.len(), seed), move || play::<D>(roles, 2));
        }
    }
    on_each!(check);
}

/// A thread that holds a lower class gets a higher one whatever writers wait: if it had to wait,
/// no thread could go on.
#[test]
fn nesting_upward_cannot_deadlock() {
    fn check<D: Configuration>(seed: u64) {
        for roles in [&[Nest, Write][..], &[Nest, Write, Nest, TimedWrite, Nest, Upgrade, Nest, FairWrite]] {
            explore(sampled(roles.len(), seed), move || play::<D>(roles, 1));
        }
    }
    on_each!(check);
}

/// No writer naps here: the only one waits for the reader, which waits for no thread.
#[test]
fn a_reader_nests_beside_a_writer_that_waits_for_it() {
    explore(sampled(2, 1), nest_beside_a_writer);
}

fn nest_beside_a_writer() {
    let place = Place::<All<THREE>>::new();
    let outer = place.read_of(BULK);
    let writer = with(&place, |place| place.play(Write));
    spin_until(|| place.lock.state().level() > 0);
    // What would wait for a shut class would wait for the writer, which waits for `outer`.
    let inner = place.try_read_of(URGENT).expect("nobody can go on: the class above is shut");
    place.leave(inner);
    place.leave(outer);
    place.check_at_rest(writer.join().expect("the writer panicked"));
}

/// As a nested acquisition, a bump of the inner guard waits for no writer.
#[test]
fn a_nested_reader_is_bumped_beside_a_writer_that_waits_for_it() {
    explore(sampled(2, 1), || {
        let place = Place::<All<THREE>>::new();
        let (outer, inner) = (place.read_of(BULK), place.read_of(NESTED));
        let writer = with(&place, |place| place.play(Write));
        spin_until(|| place.lock.state().level() > 0);
        // SAFETY: the token is of the acquisition above. No writer gets in beside `outer`.
        let inner = unsafe { place.lock.bump_read(inner) };
        place.leave(inner);
        place.leave(outer);
        place.check_at_rest(writer.join().expect("the writer panicked"));
    });
}

/// The promise that no other lock makes: while a writer waits for readers of a class, readers of
/// all classes above go in and out without waiting; and it goes on to the next class as soon as
/// these have left, whatever is in above.
fn sifts<D: Configuration>(stage: usize) {
    let place = Place::<D>::new();
    let lower = place.read_of(CLASSES[stage]);
    let above: Vec<_> = CLASSES[stage + 1..].iter().map(|&class| place.read_of(class)).collect();
    let writer = with(&place, |place| place.play(Write));
    spin_until(|| place.lock.state().level() as usize == stage + 1);
    for &class in &CLASSES[..=stage] {
        assert!(place.try_read_of(class).is_none(), "a class that is shut lets readers in");
    }
    for &class in &CLASSES[stage + 1..] {
        let token =
            place.try_read_of(class).expect("a reader is held up by a writer that waits for a lower class");
        place.leave(token);
    }
    place.leave(lower);
    if !above.is_empty() {
        spin_until(|| place.lock.state().level() as usize > stage + 1);
    }
    above.into_iter().for_each(|token| _ = place.leave(token));
    place.check_at_rest(writer.join().expect("the writer panicked"));
}

#[test]
fn a_reader_does_not_wait_for_those_of_lower_classes() {
    fn check<D: Configuration>(seed: u64) {
        for stage in 0..3 {
            explore(sampled(4, seed), move || sifts::<D>(stage));
        }
    }
    on_each!(check);
}

/// A write, or an upgrade, gives up while a reader of that class stays: then no thread is shut out,
/// a thread that waited in line is in, and the next writer gets by.
fn gives_up<D: Configuration>(stage: usize, upgrade: bool) {
    let place = Place::<D>::new();
    let held = place.read_of(CLASSES[stage]);
    let owner = with(&place, move |place| {
        if upgrade {
            place.lock.upgradable();
            // SAFETY: acquired the line before.
            let upgraded = unsafe { place.lock.upgrade_until((), soon()) };
            assert!(upgraded.is_err(), "a writer beside a reader");
            assert!(place.lock.try_upgradable().is_none(), "who gave up an upgrade lost the rest");
            // SAFETY: as above.
            unsafe { place.lock.unlock_upgradable(()) };
        } else {
            assert!(place.lock.write_until(soon()).is_none(), "a writer beside a reader");
        }
    });
    let others: Vec<_> = [Read(BULK), Read(URGENT), Read(CLASSES[stage])]
        .into_iter()
        .map(|role| with(&place, move |place| place.play(role)))
        .collect();
    owner.join().expect("the owner panicked");
    others.into_iter().for_each(|other| assert_eq!(other.join().expect("a reader panicked"), 0));
    assert_eq!(place.lock.state().level(), 0, "somebody is shut out for good");
    place.leave(held);
    let next = place.play(Write);
    place.check_at_rest(next);
}

#[test]
fn a_write_that_gives_up_leaves_nothing_behind_at_any_stage() {
    fn check<D: Configuration>(seed: u64) {
        for stage in 0..3 {
            for upgrade in [false, true] {
                explore(sampled(5, seed), move || gives_up::<D>(stage, upgrade));
            }
        }
    }
    on_each!(check);
}

/// A fair release goes to one of the writers that wait, also where those may give up, and strands
/// none.
#[test]
fn a_fair_release_strands_nobody() {
    const ROLES: [&[Role]; 3] = [
        &[FairWrite, TimedWrite, FairWrite],
        &[FairWrite, TimedWrite, Write, TimedWrite, FairUpgradable],
        &[FairWrite, TimedWrite, FairWrite, TimedWrite, FairUpgradable, TimedUpgrade, Read(BULK), FairWrite],
    ];
    fn check<D: Configuration>(seed: u64) {
        for roles in ROLES {
            explore(sampled(roles.len(), seed), move || play::<D>(roles, 3));
        }
    }
    on_each!(check);
}

/// A writer that sleeps is next after a fair release: no thread writes in between that was not
/// waiting. In the one execution in which it sleeps for certain, that without surprises.
#[test]
fn a_fair_release_is_not_overtaken() {
    use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    explore(tame(), || {
        let place = Place::<All<THREE>>::new();
        // Of real atomics: nothing that is explored.
        let written = Arc::new(AtomicUsize::new(0));
        place.lock.write();
        let waiter = {
            let (place, written) = (Arc::clone(&place), Arc::clone(&written));
            spawn(move || {
                place.lock.write();
                written.store(1, SeqCst);
                place.count_and_leave();
            })
        };
        spin_until(|| place.lock.state().0 & State::WRITERS != 0);
        place.count();
        // SAFETY: acquired above.
        unsafe { place.lock.unlock_write_fair(()) };
        let again = place.lock.try_write().is_some();
        assert!(!again || written.load(SeqCst) == 1, "a writer that waited was overtaken by an attempt");
        if again {
            place.count_and_leave();
        }
        waiter.join().expect("the writer panicked");
        place.check_at_rest(2 + usize::from(again));
    });
}

#[test]
fn three_writers_get_in() {
    explore(Config::sampled(2_000), || play::<All<THREE>>(&[Write, Write, Write], 2));
}

/// What becomes of an upgradable reader that has shut [`Bulk`] out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Upgrades,
    TriesToUpgrade,
    UpgradesInTime,
    Admits,
    Releases,
}

/// An upgradable reader shuts [`Bulk`] out, beside readers of that class, one of which may give up,
/// and readers of a higher class.
fn two_phases<D: Configuration>(then: Then, readers: usize) {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let reader = |body: fn(&PsRwLockWith<usize, D>)| with(&lock, body);
    let mut others = Vec::new();
    for _ in 0..readers {
        others.push(reader(|lock| _ = lock.try_read_in_for::<Bulk>(MILLISECOND).map(|guard| *guard)));
        others.push(reader(|lock| assert!(*lock.read() <= 1)));
        others.push(reader(|lock| assert!(*lock.read_in::<Urgent>() <= 1)));
    }
    let mut guard = lock.upgradable_read();
    Partial::exclude::<Bulk>(&mut guard);
    assert!(lock.try_read().is_none(), "Bulk is shut out");
    match then {
        Then::Upgrades => *Guard::upgrade(guard) += 1,
        Then::TriesToUpgrade => _ = Guard::try_upgrade(guard).map(|mut guard| *guard += 1),
        Then::UpgradesInTime => {
            _ = Guard::try_upgrade_for(guard, MILLISECOND).map(|mut guard| *guard += 1);
        }
        Then::Admits => {
            Partial::admit(&mut guard);
            drop(guard);
        }
        Then::Releases => drop(guard),
    }
    others.into_iter().for_each(|other| other.join().expect("a client panicked"));
    drop(lock.try_write().expect("try_write failed on a lock that nobody holds"));
}

#[test]
fn a_write_in_two_phases_is_alone() {
    fn check<D: Configuration>(seed: u64) {
        for then in [Then::Upgrades, Then::TriesToUpgrade, Then::UpgradesInTime, Then::Admits, Then::Releases]
        {
            explore(sampled(8, seed), move || two_phases::<D>(then, 1));
            explore(sampled(12, seed), move || two_phases::<D>(then, 2));
        }
    }
    on_each!(check);
}
