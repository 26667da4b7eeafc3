//! The robust mutexes, the barging and the fair one. No waiter looks again after a time, but in the
//! model of several deaths.

use crate::place::{
    self, Fair, Mutex, Place, Spinning, at_each_step, beside_a_bystander, clients, dies_at_each_step,
    held_first, leaves_with_it, sampled, under,
};
use std::sync::Arc;
use ulocks_core::model::crash::sweep;
use ulocks_core::model::{Config, Deaths, Kernel, Strategy, explore, resume, stop, thread};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, spin_until, yield_now};
use ulocks_shm::Refused;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::slots::Slot;
use ulocks_testkit::thread::with;

fn one_is_inside<L: RawRobust>(kernel: Kernel) {
    explore(sampled(2, kernel), clients::<L, 2>(2, 0, false));
    explore(sampled(3, kernel), clients::<L, 3>(2, 0, false));
    explore(sampled(4, kernel), clients::<L, 4>(1, 0, false));
    explore(sampled(8, kernel), clients::<L, 8>(1, 0, false));
}

#[test]
fn at_most_one_is_inside_and_nobody_sleeps_for_ever() {
    explore(Config { timeouts: false, ..Config::exhaustive() }, clients::<Mutex, 2>(1, 0, false));
    for kernel in Kernel::ALL {
        one_is_inside::<Mutex>(kernel);
        one_is_inside::<Fair>(kernel);
        explore(sampled(3, kernel), clients::<Spinning, 3>(2, 0, false));
    }
}

fn a_timeout<L: RawRobust>(kernel: Kernel) {
    let config = |threads| Config { timeouts: true, ..sampled(threads, kernel) };
    explore(config(3), clients::<L, 3>(2, 1, false));
    explore(config(4), clients::<L, 4>(1, 2, false));
    explore(config(3), held_first::<L, 3>(true, 2));
}

#[test]
fn a_timeout_strands_nobody() {
    for kernel in Kernel::ALL {
        a_timeout::<Mutex>(kernel);
        a_timeout::<Fair>(kernel);
        explore(Config { timeouts: true, ..sampled(8, kernel) }, clients::<Mutex, 8>(2, 7, false));
        let config = Config { timeouts: true, spurious: 0, ..sampled(2, kernel) };
        explore(config, a_holder_passes);
    }
}

/// Thread 1 with a deadline and thread 2 without one sleep. Thread 3 comes as they are woken, and
/// passes them.
fn a_late_thread_passes() {
    let place = Place::<Mutex, 3>::new();
    let me = place.join();
    // SAFETY: all members are of the place's slots.
    let how = unsafe { place.mutex.lock(&me) }.unwrap();
    let mut threads = vec![place.resident(1, 1, true), place.resident(2, 1, false)];
    (0..80).for_each(|_| yield_now());
    threads.push(place.resident(3, 1, false));
    (0..10).for_each(|_| yield_now());
    place.critical(&me, 100, how);
    std::mem::forget(me);
    place.ends(threads, 4);
}

/// The same two sleep. The holder passes them, and stays until thread 1 has looked and left.
fn a_holder_passes() {
    let place = Place::<Mutex, 3>::new();
    let me = place.join();
    // SAFETY: all members are of the place's slots.
    let how = unsafe { place.mutex.lock(&me) }.unwrap();
    let sleeper = |name, timed| {
        let sleeper = place.resident(name, 1, timed);
        (0..4).for_each(|_| yield_now());
        sleeper
    };
    let threads = vec![sleeper(1, true), sleeper(2, false)];
    place.critical(&me, 100, how);
    // SAFETY: as above.
    if let Ok(how) = unsafe { place.mutex.try_lock(&me) } {
        (0..8).for_each(|_| yield_now());
        place.critical(&me, 100, how);
    }
    std::mem::forget(me);
    place.ends(threads, 3);
}

/// Thread 1 is about to end its release when thread 0 takes the mutex, and thread 3 comes, which
/// watches thread 0. Then thread 0 releases, too. So thread 1 grants what thread 0 has released, to
/// a waiter that does not watch thread 1, and may die then. Only the two releases are varied.
fn a_late_release() {
    let place = Place::<Fair, 2>::new();
    let me = place.join();
    // 1: thread 1 has the mutex; 2: it is to release it; 3: it has ended, or died.
    let stage = Arc::new(AtomicU32::new(0));
    let late = thread::spawn({
        let (place, stage) = (Arc::clone(&place), Arc::clone(&stage));
        move || {
            let me = place.join();
            // SAFETY: all members are of the place's slots.
            let how = unsafe { place.mutex.lock(&me) }.unwrap();
            stage.store(1, Relaxed);
            spin_until(|| stage.load(Relaxed) == 2);
            place.critical(&me, 1, how);
            std::mem::forget(me);
        }
    });
    let end = thread::spawn({
        let (stage, late) = (Arc::clone(&stage), late.thread());
        move || {
            thread::wait_for(late);
            stage.store(3, Relaxed);
        }
    });
    stop();
    spin_until(|| stage.load(Relaxed) > 0);
    // Refused, it leaves `WAITERS`: thread 1 releases under the queue lock.
    // SAFETY: as above.
    let how = unsafe { place.mutex.try_lock(&me) }.or_else(|_| {
        _ = stage.compare_exchange(1, 2, Relaxed, Relaxed);
        resume();
        spin_until(|| !place.mutex.is_locked() || stage.load(Relaxed) == 3);
        stop();
        // SAFETY: as above.
        unsafe { place.mutex.lock(&me) }
    });
    let waiter = place.resident(3, 1, false);
    spin_until(|| place.mutex.waiters(&me) > 0);
    resume();
    place.critical(&me, 100, how.unwrap());
    std::mem::forget(me);
    end.join().unwrap();
    place.ends(vec![late, waiter], 3);
}

#[test]
fn a_death_after_a_release_for_another_strands_nobody() {
    for kernel in Kernel::ALL {
        // Thread 1 is interrupted after (leave), and thread 0 after its own.
        let few = Config { preemptions: Some(2), stale: 0, timeouts: false, kernel, ..Config::exhaustive() };
        dies_at_each_step(1, &few, a_late_release);
    }
}

/// `executions` of a death at each step.
fn one_death<L: RawRobust>(kernel: Kernel, executions: u64) {
    let three = Arc::new(clients::<L, 3>(1, 0, false));
    at_each_step(1, kernel, false, executions, move || three());
    for passes in [false, true] {
        let held = Arc::new(held_first::<L, 3>(passes, 0));
        at_each_step(1, kernel, false, executions, move || held());
    }
    let config = |threads| Config { deaths: Deaths::Threads(1), ..sampled(threads, kernel) };
    explore(config(1), held_first::<L, 2>(true, 0));
    explore(config(2), clients::<L, 4>(2, 0, false));
    explore(config(4), held_first::<L, 5>(false, 0));
}

#[test]
fn one_death_at_any_step_strands_nobody() {
    for kernel in Kernel::ALL {
        one_death::<Mutex>(kernel, 160);
        one_death::<Fair>(kernel, 60);
        let config = Config { deaths: Deaths::Threads(1), ..sampled(2, kernel) };
        explore(config, clients::<Spinning, 3>(2, 0, false));
    }
}

#[test]
fn one_death_beside_timeouts_strands_nobody() {
    for kernel in Kernel::ALL {
        let config =
            |threads| Config { deaths: Deaths::Threads(1), timeouts: true, ..sampled(threads, kernel) };
        explore(config(2), clients::<Mutex, 3>(2, 1, false));
        explore(config(3), clients::<Mutex, 5>(1, 3, false));
        explore(config(2), clients::<Fair, 3>(2, 1, false));
        explore(config(3), held_first::<Fair, 4>(false, 2));
        at_each_step(3, kernel, true, 400, a_late_thread_passes);
    }
}

#[test]
fn one_death_beside_a_thread_that_claims_its_slot_strands_nobody() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 400, beside_a_bystander::<Mutex>);
        at_each_step(1, kernel, false, 100, beside_a_bystander::<Fair>);
    }
}

#[test]
fn a_member_that_leaves_with_the_mutex_is_told_like_one_that_died() {
    for kernel in Kernel::ALL {
        explore(sampled(1, kernel), leaves_with_it::<Mutex>);
        explore(sampled(1, kernel), leaves_with_it::<Fair>);
    }
}

fn no_step<L: RawRobust>(kernel: Kernel, executions: u64) {
    let sweep = sweep(&under(kernel, executions), 1, held_first::<L, 3>(true, 0))
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(sweep.fatal().count(), 0, "{sweep}");
    assert!(sweep.points.len() > 20, "{sweep}");
}

/// No step of a thread is one that must not be its last.
#[test]
fn no_step_is_fatal() {
    for kernel in Kernel::ALL {
        no_step::<Mutex>(kernel, 160);
        no_step::<Fair>(kernel, 60);
    }
}

/// Of one barging mutex, however many die.
#[test]
fn several_deaths_strand_nobody() {
    for kernel in Kernel::ALL {
        let config = |threads| Config { deaths: Deaths::Threads(3), ..sampled(threads, kernel) };
        explore(config(3), clients::<Mutex, 6>(2, 0, false));
        // Of threads that stay, nobody is woken because one leaves.
        explore(config(1), held_first::<Mutex, 3>(true, 0));
        explore(config(2), held_first::<Mutex, 5>(true, 0));
        let config = |threads| Config { timeouts: true, ..config(threads) };
        explore(config(3), held_first::<Mutex, 5>(true, 2));
    }
}

/// Thread 1 has slept for the mutex, and asks for it once more while it holds it.
fn a_holder_asks_again() {
    let place = Place::<Mutex, 3>::new();
    let me = place.join();
    // SAFETY: all members are of the place's slots.
    let how = unsafe { place.mutex.lock(&me) }.unwrap();
    let asks = with(&place, |place| {
        let me = place.join();
        // SAFETY: as above.
        let how = unsafe { place.mutex.lock(&me) }.unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { place.mutex.lock(&me) }, Err(Refused::Deadlock));
        place.critical(&me, 1, how);
        std::mem::forget(me);
    });
    let threads = vec![asks, place.resident(2, 1, false)];
    (0..60).for_each(|_| yield_now());
    place.critical(&me, 100, how);
    std::mem::forget(me);
    place.ends(threads, 3);
}

#[test]
fn a_death_of_a_holder_that_asked_again_strands_nobody() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 100, a_holder_asks_again);
    }
}

/// Two mutexes of one table, the second one acquired inside of the first.
struct Nested {
    slots: [Slot; 8],
    outer: Mutex,
    inner: Mutex,
}

impl Nested {
    fn locks(&self, mutex: &Mutex) {
        let me = place::join(self, &self.slots);
        // SAFETY: all members are of one table; the mutex is acquired before it is released.
        unsafe {
            assert!(mutex.lock(&me).is_ok());
            mutex.unlock(&me);
        }
        std::mem::forget(me);
    }

    /// Thread 1 stays with both until the others sleep, mostly.
    fn locks_both(&self, looks: u32) {
        let me = place::join(self, &self.slots);
        // SAFETY: all members are of one table; each mutex is acquired before it is released.
        unsafe {
            assert!(self.outer.lock(&me).is_ok());
            assert!(self.inner.lock(&me).is_ok());
            (0..looks).for_each(|_| yield_now());
            self.inner.unlock(&me);
            self.outer.unlock(&me);
        }
        std::mem::forget(me);
    }
}

/// Thread 1 holds both, and for each of them a thread waits.
fn a_holder_of_two() {
    let nested = Arc::new(Nested { slots: place::slots(), outer: Mutex::new(), inner: Mutex::new() });
    let spawn = |body: fn(&Nested)| with(&nested, body);
    let threads = [
        spawn(|nested| nested.locks_both(60)),
        spawn(|nested| nested.locks(&nested.outer)),
        spawn(|nested| nested.locks(&nested.inner)),
    ];
    threads.into_iter().for_each(|thread| _ = thread.join());
    nested.locks_both(0);
}

#[test]
fn a_death_of_a_holder_of_two_mutexes_strands_nobody() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 200, a_holder_of_two);
    }
}

/// Thread 1 has slept for the outer mutex, and sleeps for the inner one: the outer one's baton is
/// not pending any more.
fn a_holder_waits_for_another() {
    let nested = Arc::new(Nested { slots: place::slots(), outer: Mutex::new(), inner: Mutex::new() });
    let me = place::join(&*nested, &nested.slots);
    // SAFETY: all members are of one table; each mutex is acquired before it is released.
    unsafe {
        assert!(nested.inner.lock(&me).is_ok());
        assert!(nested.outer.lock(&me).is_ok());
    }
    let spawn = |_| with(&nested, |nested| nested.locks_both(0));
    let threads: Vec<_> = (1..=3).map(spawn).collect();
    (0..100).for_each(|_| yield_now());
    // SAFETY: acquired above.
    unsafe { nested.outer.unlock(&me) };
    (0..60).for_each(|_| yield_now());
    // SAFETY: as above.
    unsafe { nested.inner.unlock(&me) };
    std::mem::forget(me);
    threads.into_iter().for_each(|thread| _ = thread.join());
    nested.locks_both(0);
}

#[test]
fn a_death_of_a_holder_that_waits_for_another_mutex_strands_nobody() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 60, a_holder_waits_for_another);
    }
}

/// Of that a waiter of a queue may learn by its next look only.
#[test]
fn several_deaths_delay_nobody_for_more_than_a_look() {
    for kernel in Kernel::ALL {
        // By chance alone: a thread of high priority that only looks, and sleeps again, would leave
        // the others no step.
        let config = |threads| Config {
            strategy: Strategy::Random,
            deaths: Deaths::Threads(2),
            timeouts: true,
            ..sampled(threads, kernel)
        };
        explore(config(4), clients::<Fair, 3>(1, 0, true));
    }
}
