//! Processes and deaths: which threads die together, at which steps, and what is left of the dead.

use crate::{all_outcomes, all_outcomes_of, failure, with};
use std::sync::Arc;
use std::time::Duration;
use ulocks_vm::clock::{Clock, Time, now};
use ulocks_vm::explore::{Config, Deaths, Survivors, Verdict, explore};
use ulocks_vm::process::{self, Region};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::{futex, pi, thread};

fn mortal(deaths: Deaths) -> Config {
    Config { deaths, ..Config::exhaustive() }
}

#[test]
fn as_many_threads_die_as_the_configuration_allows_and_never_the_first() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let started = [1, 2].map(|bit| with(&word, move |word| crate::discard(word.fetch_or(bit, Relaxed))));
        let dead = started.map(|thread| thread.join().is_err());
        // A thread that dies does so in place of its only step.
        assert_eq!(word.load(Relaxed), u32::from(!dead[0]) | u32::from(!dead[1]) << 1);
        dead
    };
    let (lives, dies) = (false, true);
    all_outcomes(model, [[lives, lives]]);
    all_outcomes_of(mortal(Deaths::Threads(1)), model, [[lives, lives], [dies, lives], [lives, dies]]);
    all_outcomes_of(
        mortal(Deaths::Threads(2)),
        model,
        [[lives, lives], [dies, lives], [lives, dies], [dies, dies]],
    );
}

#[test]
fn a_thread_dies_in_place_of_any_of_its_steps() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let dying = with(&word, |word| (1..=3).for_each(|value| word.store(value, Relaxed)));
        (dying.join().is_err(), word.load(Relaxed))
    };
    all_outcomes_of(mortal(Deaths::Threads(1)), model, [(true, 0), (true, 1), (true, 2), (false, 3)]);
    for step in 0..3 {
        all_outcomes_of(mortal(Deaths::At { thread: 1, step }), model, [(true, step)]);
    }
    all_outcomes_of(mortal(Deaths::At { thread: 1, step: 3 }), model, [(false, 3)]);
}

#[test]
fn the_threads_of_a_process_die_together_at_any_moment() {
    // The two threads of the process have nothing in common but their death.
    let model = || {
        let words: &[AtomicU32; 2] = Box::leak(Box::new([AtomicU32::new(0), AtomicU32::new(0)]));
        let second = Arc::new(std::sync::Mutex::new(None));
        let place = Arc::clone(&second);
        let first = process::spawn(move || {
            let second = thread::spawn(move || words[1].store(1, Relaxed));
            *place.lock().unwrap() = Some(second);
            words[0].store(1, Relaxed);
        });
        let first = first.join().is_err();
        let second = second.lock().unwrap().take();
        (first, second.map(|second| second.join().is_err()))
    };
    let (lives, dies) = (false, true);
    all_outcomes_of(
        mortal(Deaths::Processes(1)),
        model,
        [(lives, Some(lives)), (lives, Some(dies)), (dies, Some(lives)), (dies, Some(dies)), (dies, None)],
    );
}

#[test]
fn a_process_takes_all_its_threads_and_no_others_with_it() {
    let model = || {
        let ended = Arc::new([const { std::sync::Mutex::new(false) }; 3]);
        let step = |ended: &Arc<[std::sync::Mutex<bool>; 3]>, which: usize| {
            let ended = Arc::clone(ended);
            move || {
                ulocks_vm::sync::interruption_point();
                *ended[which].lock().unwrap() = true;
            }
        };
        let (first, second, third) = (step(&ended, 0), step(&ended, 1), step(&ended, 2));
        let one = process::spawn(move || {
            let inner = thread::spawn(first);
            drop(inner.join());
            second();
        });
        let two = process::spawn(third);
        drop((one.join(), two.join()));
        [0, 1, 2].map(|which: usize| *ended[which].lock().unwrap())
    };
    let (f, t) = (false, true);
    all_outcomes_of(mortal(Deaths::Processes(1)), model, [[f, f, t], [t, f, t], [t, t, f], [t, t, t]]);
}

#[test]
fn survivors_may_wait_for_the_dead_if_that_is_allowed() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let dying = with(&word, |word| {
            word.store(1, Relaxed);
            futex::wake(std::ptr::from_ref(word).addr(), 1, u32::MAX, true);
        });
        futex::wait(&word, 0, u32::MAX, None, true);
        drop(dying.join());
    };
    let config = mortal(Deaths::Threads(1));
    assert!(matches!(failure(&config, model).verdict, Verdict::Deadlock(_)));
    let report = explore(Config { survivors: Survivors::MayBlock, ..config }, model);
    assert!(report.finished && 0 < report.blocked && report.blocked < report.deaths, "{report}");
    // A thread that waits for the living is still stuck.
    let nobody = || crate::discard(futex::wait(&AtomicU32::new(0), 0, u32::MAX, None, true));
    let config = Config { survivors: Survivors::MayBlock, ..mortal(Deaths::Threads(1)) };
    assert!(matches!(failure(&config, nobody).verdict, Verdict::Deadlock(_)));
}

#[test]
fn a_sleeper_that_dies_is_not_woken_in_anothers_place() {
    // Two sleepers, one wake-up, one death: if it was the first sleeper that died before the
    // wake-up, the second is woken.
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let sleepers = [1, 2].map(|_| with(&word, |word| futex::wait(word, 0, u32::MAX, None, true)));
        word.store(1, Relaxed);
        let woken = futex::wake(std::ptr::from_ref(&*word).addr(), 2, u32::MAX, true);
        let ended = sleepers.map(|sleeper| sleeper.join().is_ok());
        (woken, ended.into_iter().filter(|&ended| ended).count())
    };
    // All threads end: those that slept when the word changed were woken, dead or alive.
    let report = explore(mortal(Deaths::Threads(2)), move || crate::discard(model()));
    assert!(report.finished && report.deaths > 0);
}

#[test]
fn the_dead_are_out_of_the_queue_once_the_kernel_has_cleaned_up() {
    let model = || {
        let word: &AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let sleeper = process::spawn(move || {
            // It dies here, and takes the sleeper with it.
            thread::spawn(ulocks_vm::sync::interruption_point);
            futex::wait(word, 0, u32::MAX, None, false);
        });
        assert!(sleeper.join().is_err());
        let soon =
            Time { clock: Clock::Monotonic, since_zero: now(Clock::Monotonic) + Duration::from_secs(1) };
        let behind = thread::spawn(move || futex::wait(word, 0, u32::MAX, Some(soon), false));
        let woken = futex::wake(std::ptr::from_ref(word).addr(), 1, u32::MAX, false);
        (woken, format!("{:?}", behind.join().unwrap()))
    };
    let config = mortal(Deaths::At { thread: 2, step: 0 });
    all_outcomes_of(config, model, [(0, "TimedOut".to_owned()), (1, "Woken".to_owned())]);
}

#[test]
fn a_region_is_the_same_memory_at_all_its_addresses() {
    let model = || {
        let region = Region::new(5000);
        let (here, there) = (region.map(), region.map());
        assert!(here.bytes() == 8192 && here.base() != there.base());
        let other = process::spawn(move || {
            let word: &AtomicU32 = unsafe { there.at(4096) };
            assert_eq!(process::current(), 1);
            word.fetch_add(5, Release);
        });
        let word: &AtomicU32 = unsafe { here.at(4096) };
        let before = word.fetch_add(2, Acquire);
        other.join().unwrap();
        (before, word.load(Relaxed))
    };
    all_outcomes(model, [(0, 7), (5, 7)]);
}

/// A thread of which only the kernel has written the id ends between any two looks at its lock.
#[test]
fn the_owner_of_a_lock_of_the_kernel_ends_at_any_moment() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let owner = with(&word, |word| pi::try_lock(word, true));
        let looks = [(); 2].map(|()| pi::try_lock(&word, true));
        drop(owner.join());
        looks.map(|look| format!("{look:?}"))
    };
    let outcomes = [
        ["Ok(true)", "Err(Deadlock)"],
        ["Ok(false)", "Ok(false)"],
        ["Ok(false)", "Err(OwnerGone)"],
        ["Err(OwnerGone)", "Err(OwnerGone)"],
    ];
    all_outcomes(model, outcomes.map(|looks| looks.map(String::from)));
}

#[test]
fn what_the_dead_had_mapped_is_given_back() {
    // More executions than a process may have files open.
    let model = || {
        let dying = process::spawn(|| {
            let here = Region::new(4096).map();
            let word: &AtomicU32 = unsafe { here.at(0) };
            word.store(1, Relaxed);
            word.load(Relaxed)
        });
        drop(dying.join());
    };
    let config = Config { deaths: Deaths::At { thread: 1, step: 1 }, ..Config::sampled(3_000) };
    assert_eq!(explore(config, model).deaths, Config::sampled(3_000).executions);
}

#[test]
fn a_region_that_is_too_small_or_badly_aligned_is_refused() {
    for (offset, says) in
        [(4096, "outside of the region"), (2, "not aligned"), (usize::MAX - 3, "outside of the region")]
    {
        let failure = failure(&Config::exhaustive(), move || {
            let mapping = Region::new(1).map();
            let word: &AtomicU32 = unsafe { mapping.at(offset) };
            word.load(Relaxed);
        });
        assert!(failure.verdict.to_string().contains(says), "{failure}");
    }
}
