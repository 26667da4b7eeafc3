//! The clock: what the naps of an owner are for, and what must not need their end.

use crate::place::{Of, Place};
use crate::{FOUR, Sleeps, SleepsShared, THREE, sampled, tame};
use core::time::Duration;
use ulocks_core::futex::{Futex, Local};
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_core::raw::{RawRwLock, RawRwLockUpgrade};
use ulocks_core::signal::{Soft, dispatch};
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{Central, Configuration, Eager, PhaseFair, Sifted, Unchecked};
use ulocks_testkit::thread::{Arc, with};

type All<const SET: u8 = THREE, R = Central> = Sifted<SET, Sleeps, PhaseFair, R, Soft, Unchecked>;

const NAP: Duration = Duration::from_micros(50);

/// What the machine's clock shows.
fn now() -> Duration {
    Deadline::after(Duration::ZERO).since_zero()
}

/// Sleeps for so long, which is until all others do too.
fn sleep(time: Duration) {
    Futex::<Local>::new(0).wait(0, Some(Deadline::after(time)));
}

/// In the execution without surprises an owner naps when a reader leaves, less than a nap after it
/// came. When it is a writer, counted from its first look.
fn owner_waits<D: Configuration>(class: Of, upgrades: bool) -> impl Fn() {
    move || {
        let place = Place::<D>::new();
        let token = place.read_of(class);
        let writer = with(&place, move |place| {
            if upgrades {
                place.lock.upgradable();
                // SAFETY: acquired the line before.
                unsafe { place.lock.upgrade(()) };
            } else {
                place.lock.write();
            }
            let written = now();
            place.count_and_leave();
            written
        });
        sleep(NAP / 5);
        let left = now();
        place.leave(token);
        let written = writer.join().expect("the writer panicked");
        assert!(written < left + NAP / 2, "the owner overslept the last reader: it had to wake by itself");
        place.check_at_rest(1);
    }
}

#[test]
fn the_last_reader_cuts_the_nap_short() {
    for class in [Of::Bulk, Of::Urgent, Of::Nested] {
        for upgrades in [false, true] {
            explore(tame(), owner_waits::<All>(class, upgrades));
            explore(tame(), owner_waits::<All<FOUR>>(class, upgrades));
            explore(tame(), owner_waits::<All<THREE, Eager>>(class, upgrades));
        }
    }
}

/// The last reader leaves beside an owner that falls asleep. Without time an execution in which the
/// wake-up is lost does not end.
fn one_write_one_read<D: Configuration>() {
    let place = Place::<D>::new();
    place.leave(place.read_of(Of::Bulk)); // gets the row, if the lock can have one
    let token = place.read_of(Of::Bulk);
    let writer = with(&place, |place| place.writes());
    place.leave(token);
    writer.join().expect("the writer panicked");
    place.check_at_rest(1);
}

#[test]
fn the_last_reader_is_not_missed() {
    let timeless = Config { timeouts: false, ..Config::exhaustive() };
    explore(timeless.clone(), one_write_one_read::<All>);
    explore(timeless, one_write_one_read::<All<THREE, Eager>>);
    explore(Config::exhaustive(), one_write_one_read::<All>);
}

/// Between processes a wake-up that comes between the owner's last look and its sleep is lost, and
/// the nap ends by itself.
#[test]
fn a_nap_is_what_a_lost_wake_up_costs_between_processes() {
    type Shared = Sifted<THREE, SleepsShared, PhaseFair, Central, Soft, Unchecked>;
    explore(sampled(2, 1), one_write_one_read::<Shared>);
    let timeless = Config { timeouts: false, ..Config::sampled(100_000) };
    finds_bug_saying("nobody can go on", timeless, one_write_one_read::<Shared>);
}

/// A handler wakes no thread. The owner looks by itself, after short naps only, since its mask is
/// up meanwhile.
#[test]
fn the_owner_polls_the_stage_of_handlers() {
    use ulocks_core::model::signal::{self, Signal};
    const USR1: Signal = Signal::new(10);
    const LONG: Duration = Duration::from_millis(20);
    explore(tame(), || {
        let place = Place::<All<FOUR>>::new();
        let left = Arc::new(std::sync::Mutex::new(Duration::ZERO));
        let (handled, leaving) = (Arc::clone(&place), Arc::clone(&left));
        signal::install(USR1, u32::MAX, move || {
            let (place, leaving) = (Arc::clone(&handled), Arc::clone(&leaving));
            dispatch(10, move |context| {
                let token = place.lock.read_in_handler(context).expect("nobody writes yet");
                sleep(LONG);
                *leaving.lock().unwrap() = now();
                place.leave(token);
            });
        });
        let writer = with(&place, |place| {
            sleep(LONG / 20);
            place.lock.write();
            let written = now();
            place.count_and_leave();
            written
        });
        signal::send(0, USR1);
        let (written, left) = (writer.join().expect("the writer panicked"), *left.lock().unwrap());
        assert!(
            left < written && written <= left + NAP + NAP / 10,
            "left at {left:?}, written at {written:?}"
        );
        place.check_at_rest(1);
    });
}
