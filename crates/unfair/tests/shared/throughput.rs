//! The throughput mutex.

use std::time::Duration;
use ulocks_core::Shared;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit::shared::{self, Mapping};
use ulocks_testkit::stress::Load;
use ulocks_testkit::watchdog::watch;
use ulocks_testkit::{Child, new_lock};
use ulocks_unfair::{After, Bound, HandOff, RawThroughputMutex, ThroughputState};

type Strict = RawThroughputMutex<Shared<NoSpin>, HandOff>;

#[test]
fn processes_exclude_one_another() {
    let load = Load::default();
    shared::exclusion::<RawThroughputMutex<Shared>>(load).check(load);
    shared::exclusion::<Strict>(load).check(load);
}

#[test]
fn a_process_that_gives_up_strands_nobody() {
    let load = Load::default();
    shared::timed::<RawThroughputMutex<Shared>>(load).check(load);
    shared::timed::<Strict>(load).check(load);
}

#[test]
fn a_zeroed_page_is_an_unlocked_mutex() {
    assert!(shared::zeroed_is_unlocked::<RawThroughputMutex<Shared>>());
}

type Lock<B> = RawThroughputMutex<Shared<NoSpin>, B>;

/// A locked mutex in a page that children share, and a watchdog.
fn with_a_locked_mutex<B: Bound>(name: &str, test: impl FnOnce(&Lock<B>)) {
    let mapping = Mapping::shared();
    let _ = new_lock::<Lock<B>>();
    let place = mapping.place::<Lock<B>>();
    // SAFETY: a fresh page that is large enough, zeroed, which is an unlocked mutex.
    let lock = unsafe { &*place };
    let address = place.expose_provenance();
    let _watchdog = watch(name, move || {
        // SAFETY: the mapping outlives the watchdog.
        format!("{:?}", unsafe { &*std::ptr::with_exposed_provenance::<Lock<B>>(address) }.state())
    });
    lock.lock();
    test(lock);
}

fn unlock<B: Bound>(lock: &Lock<B>) {
    // SAFETY: the caller holds the mutex.
    unsafe { lock.unlock(()) };
}

/// Acquires the mutex time and again until a wait has come to its end without it.
fn until_it_times_out<B: Bound>(lock: &Lock<B>, clock: Clock) {
    while lock.lock_until(Deadline::after_on(clock, Duration::from_millis(50))).is_some() {
        unlock(lock);
    }
}

fn head_is_asleep<B: Bound>(lock: &Lock<B>) -> bool {
    lock.state().0 & ThroughputState::ASLEEP != 0
}

/// Releases and acquires a mutex that the caller holds, until a waiter has been woken in vain and sleeps as the head.
fn wake_in_vain<B: Bound>(lock: &Lock<B>) {
    while !head_is_asleep(lock) {
        unlock(lock);
        lock.lock();
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn a_head_times_out_on_either_clock() {
    fn check<B: Bound>() {
        for clock in [Clock::Monotonic, Clock::Realtime] {
            with_a_locked_mutex::<B>("a head with a deadline", |lock| {
                let head = Child::runs(|| until_it_times_out(lock, clock));
                wake_in_vain(lock);
                head.ends();
            });
        }
    }
    check::<After>();
    check::<HandOff>();
}

#[test]
fn a_waiter_behind_a_head_times_out_on_either_clock() {
    for clock in [Clock::Monotonic, Clock::Realtime] {
        with_a_locked_mutex::<After>("a deadline behind a head", |lock| {
            let head = Child::runs(|| {
                lock.lock();
                unlock(lock);
            });
            let until_asleep = |child: Child| child.sleeps(|| lock.state().0 & ThroughputState::MARKED != 0);
            let head = until_asleep(head);
            wake_in_vain(lock);
            Child::runs(|| until_it_times_out(lock, clock)).ends();
            unlock(lock);
            head.ends();
        });
    }
}
