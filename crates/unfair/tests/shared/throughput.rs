//! The throughput mutex.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::Shared;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::stress::Load;
use ulocks_testkit::watchdog::watch;
use ulocks_testkit::{Child, new_lock, task};
use ulocks_unfair::{After, Bound, HandOff, RawThroughputMutex, ThroughputState};

ulocks_testkit::shared_tests! {
    Load::default();
    RawThroughputMutex<Shared>, RawThroughputMutex<Shared<NoSpin>, HandOff>,
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

/// A child that locks, unlocks and ends.
fn user<B: Bound>(lock: &Lock<B>) -> Child {
    Child::runs(|| {
        lock.lock();
        unlock(lock);
    })
}

/// A wait that comes to its end without the mutex.
fn times_out<B: Bound>(lock: &Lock<B>, clock: Clock) {
    assert!(lock.lock_until(Deadline::after_on(clock, Duration::from_millis(200))).is_none());
}

fn head_is_asleep<B: Bound>(lock: &Lock<B>) -> bool {
    lock.state().0 & ThroughputState::ASLEEP != 0
}

/// Wakes waiters as a release does whose mutex is taken again at once. None can steal it: the
/// caller holds it.
fn wake_all_in_vain<B: Bound>(lock: &Lock<B>) {
    lock.requeue_key().expect("it has one").wake(u32::MAX);
}

/// Returns when `waiter`, which waits alone, has been woken in vain and sleeps as the head.
fn first_in_line<B: Bound>(waiter: Child, lock: &Lock<B>) -> Child {
    while !head_is_asleep(lock) && !waiter.has_ended() {
        wake_all_in_vain(lock);
        std::thread::sleep(Duration::from_micros(100));
    }
    waiter
}

#[test]
fn a_head_times_out_on_either_clock() {
    fn check<B: Bound>() {
        for clock in [Clock::Monotonic, Clock::Realtime] {
            with_a_locked_mutex::<B>("a head with a deadline", |lock| {
                first_in_line(Child::runs(|| times_out(lock, clock)), lock).ends();
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
            let head = first_in_line(user(lock), lock);
            Child::runs(|| times_out(lock, clock)).ends();
            unlock(lock);
            head.ends();
        });
    }
}

fn is_marked<B: Bound>(lock: &Lock<B>) -> bool {
    lock.state().0 & ThroughputState::MARKED != 0
}

/// Long enough for the head to be killed before it reserves.
type Patient = After<200_000_000>;

/// How many waiters are in line: the second word is the ticket of the head and the next one.
fn in_line<B: Bound>(lock: &Lock<B>) -> u16 {
    // SAFETY: the mutex is `repr(C)` and consists of two words of four bytes, which are only
    // accessed atomically.
    let line = unsafe { &*std::ptr::from_ref(lock).cast::<AtomicU32>().add(1) }.load(Relaxed);
    ((line >> 16) as u16).wrapping_sub(line as u16)
}

/// A mutex with a head that was killed before it reserved, and two waiters in line behind it;
/// `hold` is called by the holder until they are gone, which its second argument says.
fn with_a_dead_head(name: &str, hold: impl Fn(&Lock<Patient>, &dyn Fn() -> bool)) {
    with_a_locked_mutex::<Patient>(name, |lock| {
        first_in_line(user(lock), lock).killed();
        assert!(!lock.state().is_reserved(), "it was not killed in time");
        let others = [user(lock), user(lock)].map(|other| other.sleeps(|| true));
        // They get in line when they have lost for as long as the bound. The first of them may have
        // reserved by then.
        while in_line(lock) < 3 && !lock.state().is_reserved() {
            wake_all_in_vain(lock);
            std::thread::sleep(Duration::from_millis(10));
        }
        let are_gone = || others.iter().all(Child::has_ended);
        while !are_gone() {
            hold(lock, &are_gone);
            unlock(lock);
            lock.lock();
        }
        others.into_iter().for_each(Child::ends);
    });
}

/// Released only for a waiter that has reserved.
#[test]
fn a_head_that_dies_does_not_keep_the_others_from_reserving() {
    with_a_dead_head("head killed, mutex held", |lock, are_gone| {
        while !lock.state().is_reserved() && !are_gone() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

#[test]
fn a_head_that_dies_strands_nobody_on_a_busy_mutex() {
    with_a_dead_head("head killed, mutex busy", |_, _| std::thread::sleep(Duration::from_micros(300)));
}

#[test]
fn a_reservation_of_the_dead_is_taken_back() {
    with_a_locked_mutex::<HandOff>("reserver killed", |lock| {
        first_in_line(user(lock), lock).sleeps(|| lock.state().is_reserved()).killed();
        let other = user(lock);
        unlock(lock);
        other.ends();
        assert!(lock.try_lock().is_some());
        unlock(lock);
    });
}

/// Has `child` run on the CPU of the calling thread, and only when that sleeps.
fn runs_behind_me(child: &Child) {
    // SAFETY: the arguments are places and values of the types that the calls take; zeroes are an
    // empty set.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(usize::try_from(libc::sched_getcpu()).expect("a CPU"), &mut cpus);
        for process in [0, child.id()] {
            assert_eq!(libc::sched_setaffinity(process, size_of_val(&cpus), &raw const cpus), 0);
        }
    }
    task::schedule(child.id(), libc::SCHED_IDLE, 0).expect("it is always allowed");
}

/// The wake-up of a release goes to a process that is killed before it runs, in most of the rounds.
/// No other thread comes.
#[test]
fn a_wake_up_that_dies_with_a_waiter_is_not_the_last() {
    with_a_locked_mutex::<After>("woken waiter killed", |lock| {
        for _ in 0..4 {
            let woken = user(lock).sleeps(|| is_marked(lock));
            let other = user(lock).sleeps(|| true);
            runs_behind_me(&woken);
            unlock(lock);
            // Past the one that was woken, so that nothing in the word says that the other sleeps.
            lock.lock();
            unlock(lock);
            woken.signal(libc::SIGKILL);
            other.ends();
            lock.lock();
        }
    });
}
