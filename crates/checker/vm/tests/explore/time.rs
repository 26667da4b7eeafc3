//! Time: which thread times out when, and that all clocks, sleepers and questions agree on it.

use crate::{address, all_outcomes, all_outcomes_of, shared, verdict, with};
use std::sync::Arc;
use std::time::Duration;
use ulocks_vm::clock::{Clock, Time, has_passed, now};
use ulocks_vm::explore::{Config, Verdict, explore};
use ulocks_vm::futex::{Waited, cmp_requeue, wait, wake};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::Relaxed;
use ulocks_vm::sync::spin_until;
use ulocks_vm::thread;

const ALL: u32 = u32::MAX;

fn after(clock: Clock, seconds: u64) -> Time {
    Time { clock, since_zero: now(clock) + Duration::from_secs(seconds) }
}

fn monotonic(seconds: u64) -> Time {
    after(Clock::Monotonic, seconds)
}

/// Sleeps on `word` while it is 0; whether the deadline passed.
fn times_out(word: &AtomicU32, deadline: Time) -> bool {
    match wait(word, 0, ALL, Some(deadline), true) {
        Waited::TimedOut => true,
        Waited::Woken => false,
        other => panic!("{other:?}"),
    }
}

fn without_timeouts() -> Config {
    Config { timeouts: false, ..Config::exhaustive() }
}

#[test]
fn a_timed_wait_is_woken_or_times_out_and_the_waker_knows_which() {
    for clock in [Clock::Monotonic, Clock::Realtime] {
        let model = move || {
            let word = Arc::new(AtomicU32::new(0));
            let sleeper = with(&word, move |word| times_out(word, after(clock, 1)));
            let woken = wake(address(&word), 1, ALL, true);
            (woken, sleeper.join().unwrap())
        };
        all_outcomes(model, [(0, true), (1, false)]);
    }
}

/// The requeue shows that the thread sleeps. The wake-up after it keeps the deadline from passing,
/// so that no execution shows the two in the other order unless one is made for it.
#[test]
fn a_deadline_passes_before_the_wake_up_that_would_keep_it_from_passing() {
    let model = || {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let sleeper = with(&words, |words| times_out(&words[0], monotonic(1)));
        let moved = cmp_requeue(&words[0], 0, 0, 1, address(&words[1]), true);
        let woken = wake(address(&words[1]), 1, ALL, true);
        (moved, woken, sleeper.join().unwrap())
    };
    all_outcomes(model, [(Some((0, 0)), 0, true), (Some((0, 1)), 0, true), (Some((0, 1)), 1, false)]);
}

#[test]
fn a_deadline_that_has_passed_ends_the_wait_at_once_but_another_value_comes_first() {
    let past = Time { clock: Clock::Monotonic, since_zero: Duration::ZERO };
    for config in [Config::exhaustive(), without_timeouts()] {
        let wait =
            move |value| move || format!("{:?}", wait(&AtomicU32::new(value), 0, ALL, Some(past), true));
        all_outcomes_of(config.clone(), wait(0), ["TimedOut".to_owned()]);
        all_outcomes_of(config, wait(1), ["Mismatch".to_owned()]);
    }
}

#[test]
fn two_sleepers_time_out_in_either_order_but_none_before_its_time() {
    let model = || {
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let start = now(Clock::Monotonic);
        let sleepers = [1, 2].map(|seconds| {
            with(&order, move |order| {
                let since_zero = start + Duration::from_secs(seconds);
                assert!(times_out(&AtomicU32::new(0), Time { clock: Clock::Monotonic, since_zero }));
                order.lock().unwrap().push(seconds);
                assert!(now(Clock::Monotonic) >= since_zero);
            })
        });
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
        let order = order.lock().unwrap().clone();
        (order, now(Clock::Monotonic) >= start + Duration::from_secs(2))
    };
    all_outcomes(model, [(vec![1, 2], true), (vec![2, 1], true)]);
}

/// The clock keeps its turn as a thread does: what it leaves out is a bound.
#[test]
fn under_a_limit_of_preemptions_one_deadline_passes_after_another() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let deadlines = [1, 2].map(monotonic);
        let sleepers = deadlines.map(|deadline| with(&word, move |word| times_out(word, deadline)));
        let woken = wake(address(&word), 1, ALL, true);
        let [first, second] = sleepers.map(|sleeper| sleeper.join().unwrap());
        assert_eq!(woken, u32::from(!first) + u32::from(!second));
    };
    for most in 0..3 {
        let report = explore(Config { preemptions: Some(most), ..Config::exhaustive() }, model);
        assert!(report.finished, "{report}");
        assert_eq!(report.complete, most == 2, "{report}");
        assert_eq!(report.bounds.preemptions.is_some(), most < 2, "{report}");
    }
}

#[test]
fn the_first_may_have_timed_out_while_the_second_can_still_be_woken() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let sleepers = [1, 2].map(|seconds| with(&word, move |word| times_out(word, monotonic(seconds))));
        let woken = wake(address(&word), 1, ALL, true);
        let [first, second] = sleepers.map(|sleeper| sleeper.join().unwrap());
        (woken, first, second)
    };
    all_outcomes(model, [(0, true, true), (1, true, false), (1, false, true)]);
}

#[test]
fn who_is_woken_after_its_deadline_has_been_woken() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let shared = Arc::clone(&word);
        let deadline = monotonic(1);
        let sleeper = thread::spawn(move || times_out(&shared, deadline));
        let passed = has_passed(deadline);
        let woken = wake(address(&word), 1, ALL, true);
        (passed, woken, sleeper.join().unwrap())
    };
    all_outcomes(model, [(false, 0, true), (false, 1, false), (true, 0, true), (true, 1, false)]);
}

#[test]
fn without_time_outs_a_lost_wake_up_that_they_hide_is_found() {
    let model = || {
        shared(AtomicU32::new(0)).threads([
            |word| {
                wait(word, 0, ALL, Some(monotonic(1)), true);
            },
            |word| word.store(1, Relaxed), // and no wake-up
        ]);
    };
    all_outcomes(model, [()]);
    match crate::failure(&without_timeouts(), model).verdict {
        Verdict::LostWakeUp(stuck) => {
            assert!(stuck.to_string().contains("expecting 0x0, which holds 0x1 now"))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn what_lies_far_enough_ahead_never_comes() {
    for since_zero in [Duration::MAX, Duration::from_secs(u64::MAX / 2)] {
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let never = Time { clock, since_zero };
            assert!(matches!(
                verdict(move || crate::discard(times_out(&AtomicU32::new(0), never))),
                Verdict::Deadlock(_)
            ));
            all_outcomes(move || has_passed(never), [false]);
        }
    }
}

#[test]
fn a_deadline_that_has_passed_stays_so_on_every_clock() {
    let model = || {
        let (soon, later) = (monotonic(1), after(Clock::Realtime, 2));
        let asked = [has_passed(soon), has_passed(soon), has_passed(later), has_passed(soon)];
        assert!(!asked[0] || now(Clock::Monotonic) >= soon.since_zero);
        asked
    };
    let (f, t) = (false, true);
    all_outcomes(
        model,
        [[f, f, f, f], [f, f, f, t], [f, f, t, t], [f, t, f, t], [f, t, t, t], [t, t, f, t], [t, t, t, t]],
    );
    all_outcomes_of(without_timeouts(), model, [[f, f, f, f]]);
}

#[test]
fn a_sleeper_that_timed_out_proves_that_its_deadline_has_passed() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let [early, late] = [monotonic(1), monotonic(2)];
        let sleeper = thread::spawn(move || times_out(&word, early));
        assert!(sleeper.join().unwrap());
        (has_passed(early), has_passed(late))
    };
    all_outcomes(model, [(true, false), (true, true)]);
}

#[test]
fn readings_of_a_clock_never_fall_and_can_come_in_either_order() {
    let model = || {
        let [one, two] = shared(()).threads([|()| now(Clock::Monotonic), |()| now(Clock::Monotonic)]);
        let last = now(Clock::Monotonic);
        assert!(last >= one && last >= two);
        one < two
    };
    all_outcomes(model, [false, true]);
}

#[test]
fn a_clock_is_read_before_or_after_a_deadline_of_another_thread() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let deadline = monotonic(1);
        let sleeper = thread::spawn(move || times_out(&word, deadline));
        let before = now(Clock::Monotonic) < deadline.since_zero;
        let still = now(Clock::Monotonic) < deadline.since_zero;
        assert!(sleeper.join().unwrap());
        (before, still)
    };
    all_outcomes(model, [(true, true), (true, false), (false, false)]);
}

#[test]
fn a_busy_wait_that_asks_for_a_deadline_ends_by_it() {
    let model = || {
        let [seen, _] = shared((AtomicU32::new(0), monotonic(1))).threads([
            |(word, deadline)| {
                let mut seen = false;
                spin_until(|| {
                    seen = word.load(Relaxed) == 1;
                    seen || has_passed(*deadline)
                });
                seen
            },
            |(word, _)| {
                word.store(1, Relaxed);
                false
            },
        ]);
        seen
    };
    all_outcomes(model, [false, true]);
    all_outcomes_of(without_timeouts(), model, [true]);
    let alone = || {
        let deadline = monotonic(1);
        spin_until(|| has_passed(deadline));
    };
    all_outcomes(alone, [()]);
}

#[test]
fn a_busy_wait_until_a_deadline_that_never_passes_is_a_deadlock() {
    let model = || {
        let (word, deadline) = (AtomicU32::new(0), monotonic(1));
        spin_until(|| word.load(Relaxed) == 1 || has_passed(deadline));
    };
    all_outcomes(model, [()]);
    assert!(matches!(crate::failure(&without_timeouts(), model).verdict, Verdict::Deadlock(_)));
}
