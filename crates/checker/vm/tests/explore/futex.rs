//! The futex: which thread is woken, by which key, in which order, and that nothing is ordered by
//! it.

use crate::{address, all_outcomes, all_outcomes_of, shared, verdict, with};
use std::sync::Arc;
use ulocks_vm::clock::{Clock, Time, now};
use ulocks_vm::explore::{Config, Verdict};
use ulocks_vm::futex::{Entry, Waited, cmp_requeue, wait, wait_any, wake};
#[cfg(feature = "linux")]
use ulocks_vm::process::{self, Region};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, UnsafeCell};
use ulocks_vm::thread;

const ALL: u32 = u32::MAX;

fn word(value: u32) -> AtomicU32 {
    AtomicU32::new(value)
}

fn soon() -> Option<Time> {
    let since_zero = now(Clock::Monotonic) + std::time::Duration::from_secs(1);
    Some(Time { clock: Clock::Monotonic, since_zero })
}

fn sleep(word: &AtomicU32) -> Waited {
    wait(word, 0, ALL, None, true)
}

/// How many sleep on `word`. None are counted once it does not hold 0.
fn sleepers(word: &AtomicU32) -> u32 {
    cmp_requeue(word, 0, 0, ALL, address(word), true).map_or(0, |(_, moved)| moved)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Woken,
    Mismatch,
    TimedOut,
    Interrupted,
}

fn end(waited: Waited) -> End {
    match waited {
        Waited::Woken => End::Woken,
        Waited::Mismatch => End::Mismatch,
        Waited::TimedOut => End::TimedOut,
        Waited::Interrupted => End::Interrupted,
    }
}

#[test]
fn who_finds_another_value_does_not_sleep() {
    all_outcomes(|| end(wait(&word(1), 0, ALL, None, true)), [End::Mismatch]);
    all_outcomes(|| end(wait(&word(1), 0, ALL, soon(), true)), [End::Mismatch]);
}

#[test]
fn a_store_and_a_wake_up_never_leave_a_sleeper() {
    let model = || {
        let [ended, woken] = shared(word(0)).threads([
            |word| end(sleep(word)) as u32,
            |word| {
                word.store(1, Relaxed);
                wake(address(word), 1, ALL, true)
            },
        ]);
        (ended, woken)
    };
    all_outcomes(model, [(End::Woken as u32, 1), (End::Mismatch as u32, 0)]);
}

#[test]
fn the_kernel_looks_at_the_newest_value_for_the_thread_that_waits() {
    // A thread that does not sleep because the word is 1 reads nothing older after that.
    let model = || {
        let [ended, _] = shared(word(0)).threads([
            |word| {
                let ended = end(wait(word, 0, ALL, soon(), true));
                (ended, word.load(Relaxed))
            },
            |word| {
                word.store(1, Relaxed);
                (End::Woken, 0)
            },
        ]);
        ended
    };
    all_outcomes(model, [(End::Mismatch, 1), (End::TimedOut, 0), (End::TimedOut, 1)]);
}

/// Lets all threads go that sleep on `word` or are about to.
fn release(word: &AtomicU32) {
    word.store(1, Relaxed);
    wake(address(word), ALL, ALL, true);
}

#[test]
fn the_longest_sleeper_is_woken_first() {
    let model = || {
        let word = Arc::new(word(0));
        let [one, two] = [Arc::clone(&word), Arc::clone(&word)];
        let first = thread::spawn(move || sleep(&one));
        let second = thread::spawn(move || sleepers(&two) == 1 && sleep(&two) == Waited::Woken);
        let in_order = sleepers(&word) == 2;
        if in_order {
            assert_eq!(wake(address(&word), 1, ALL, true), 1);
            first.join().unwrap(); // were it the second, this would never end
            release(&word);
            assert!(second.join().unwrap());
        } else {
            release(&word);
            first.join().unwrap();
            second.join().unwrap();
        }
        in_order
    };
    all_outcomes(model, [false, true]);
}

#[test]
fn no_more_are_woken_than_asked_for() {
    let model = || {
        let word = Arc::new(word(0));
        let sleepers: Vec<_> = (0..3).map(|_| with(&word, sleep)).collect();
        let two = wake(address(&word), 2, ALL, true);
        word.store(1, Relaxed);
        let rest = wake(address(&word), ALL, ALL, true);
        let slept = sleepers.into_iter().filter(|_| true).map(|sleeper| sleeper.join().unwrap());
        let woken = slept.filter(|&waited| waited == Waited::Woken).count() as u32;
        assert_eq!(woken, two + rest);
        (two, rest)
    };
    all_outcomes(model, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]);
}

#[test]
fn a_wake_up_of_none_wakes_nobody() {
    let model = || {
        shared(word(0)).threads([
            |word| crate::discard(sleep(word)),
            |word| {
                word.store(1, Relaxed);
                assert_eq!(wake(address(word), 0, ALL, true), 0);
            },
        ]);
    };
    assert!(matches!(verdict(model), Verdict::LostWakeUp(_)));
}

#[test]
fn a_wake_up_and_a_sleeper_need_a_bit_in_common() {
    let model = |bits: u32| {
        move || {
            let word = Arc::new(word(0));
            let sleeper = with(&word, |word| wait(word, 0, 0b0110, None, true));
            let woken = wake(address(&word), ALL, bits, true);
            word.store(1, Relaxed);
            wake(address(&word), ALL, 0b0100, true);
            sleeper.join().unwrap();
            woken
        }
    };
    all_outcomes(model(0b1001), [0]);
    all_outcomes(model(0b0011), [0, 1]);
}

#[test]
fn private_and_shared_futexes_never_match() {
    for private in [true, false] {
        let model = move || {
            let word = Arc::new(word(0));
            let sleeper = with(&word, move |word| wait(word, 0, ALL, None, private));
            let other = wake(address(&word), ALL, ALL, !private);
            word.store(1, Relaxed);
            wake(address(&word), ALL, ALL, private);
            sleeper.join().unwrap();
            other
        };
        all_outcomes(model, [0]);
    }
}

#[cfg(feature = "linux")]
#[test]
fn private_futexes_of_two_processes_never_match() {
    let model = |private: bool| {
        move || {
            let word = Arc::new(word(0));
            let shared = Arc::clone(&word);
            let sleeper = process::spawn(move || end(wait(&shared, 0, ALL, soon(), private)));
            let woken = wake(address(&word), ALL, ALL, private);
            (woken, sleeper.join().unwrap())
        }
    };
    all_outcomes(model(true), [(0, End::TimedOut)]);
    all_outcomes(model(false), [(0, End::TimedOut), (1, End::Woken)]);
}

#[cfg(feature = "linux")]
#[test]
fn one_page_at_two_addresses_is_one_shared_futex_and_two_private_ones() {
    let model = |private: bool, same: bool| {
        move || {
            let region = Region::new(4096);
            let (here, there) = (region.map(), region.map());
            assert_ne!(here.base(), there.base());
            let sleeper = thread::spawn(move || {
                let word: &AtomicU32 = unsafe { there.at(8) };
                (end(wait(word, 0, ALL, soon(), private)), there)
            });
            // The value is the same at both addresses.
            let word: &AtomicU32 = unsafe { here.at(if same { 8 } else { 12 }) };
            let woken = wake(address(word), ALL, ALL, private);
            (woken, sleeper.join().unwrap().0)
        }
    };
    all_outcomes(model(true, true), [(0, End::TimedOut)]);
    all_outcomes(model(false, false), [(0, End::TimedOut)]);
    all_outcomes(model(false, true), [(0, End::TimedOut), (1, End::Woken)]);
}

#[test]
fn requeued_sleepers_keep_their_order_behind_those_who_sleep_there() {
    // Threads 1 and 2 sleep on `a`, in this order; thread 3 sleeps on `b`. One of `a` is woken, the
    // other moved.
    let model = || {
        let words = Arc::new((word(0), word(0)));
        let [one, two, three] = [Arc::clone(&words), Arc::clone(&words), Arc::clone(&words)];
        let first = thread::spawn(move || sleep(&one.0));
        let second = thread::spawn(move || sleepers(&two.0) == 1 && sleep(&two.0) == Waited::Woken);
        let third = thread::spawn(move || sleep(&three.1));
        let (a, b) = (&words.0, &words.1);
        let in_order = sleepers(a) == 2 && sleepers(b) == 1;
        if in_order {
            assert_eq!(cmp_requeue(a, 0, 1, 1, address(b), true), Some((1, 1)));
            first.join().unwrap();
            assert_eq!((sleepers(a), sleepers(b)), (0, 2));
            assert_eq!(wake(address(b), 1, ALL, true), 1);
            third.join().unwrap();
            assert_eq!(wake(address(b), 1, ALL, true), 1);
            assert!(second.join().unwrap());
        } else {
            release(a);
            release(b);
            first.join().unwrap();
            second.join().unwrap();
            third.join().unwrap();
        }
        in_order
    };
    all_outcomes(model, [false, true]);
}

#[test]
fn a_requeue_compares_first_and_counts_both() {
    let model = |value: u32, wake_count: u32, move_count: u32| {
        move || {
            let words = Arc::new((word(0), word(0)));
            let sleeping: Vec<_> = (0..2).map(|_| with(&words, |words| sleep(&words.0))).collect();
            let (a, b) = (&words.0, &words.1);
            if value != 0 {
                a.store(value, Relaxed);
            }
            let done = cmp_requeue(a, 0, wake_count, move_count, address(b), true);
            let there = sleepers(b);
            release(a);
            release(b);
            sleeping.into_iter().for_each(|sleeper| crate::discard(sleeper.join().unwrap()));
            (done, there)
        }
    };
    all_outcomes(model(5, 1, 1), [(None, 0)]);
    all_outcomes(model(0, 1, 1), [(Some((0, 0)), 0), (Some((1, 0)), 0), (Some((1, 1)), 1)]);
    all_outcomes(model(0, 0, 1), [(Some((0, 0)), 0), (Some((0, 1)), 1)]);
    all_outcomes(model(0, 0, ALL), [(Some((0, 0)), 0), (Some((0, 1)), 1), (Some((0, 2)), 2)]);
    all_outcomes(model(0, ALL, 1), [(Some((0, 0)), 0), (Some((1, 0)), 0), (Some((2, 0)), 0)]);
}

#[test]
fn who_was_moved_is_not_found_where_it_came_from() {
    let model = || {
        let words = Arc::new((word(0), word(0)));
        let sleeper = with(&words, |words| sleep(&words.0));
        let (a, b) = (&words.0, &words.1);
        let (_, moved) = cmp_requeue(a, 0, 0, 1, address(b), true).expect("the word holds 0");
        a.store(1, Relaxed);
        let (left, right) = (wake(address(a), ALL, ALL, true), wake(address(b), ALL, ALL, true));
        sleeper.join().unwrap();
        (moved, left, right)
    };
    all_outcomes(model, [(0, 0, 0), (0, 1, 0), (1, 0, 1)]);
}

#[test]
fn a_wait_for_any_says_which() {
    let model = |wakes: bool| {
        move || {
            let words = Arc::new((word(0), word(0)));
            let sleeper = with(&words, |words| {
                let entries = [&words.0, &words.1].map(|word| Entry { word, expected: 0, private: true });
                let (waited, which) = wait_any(&entries, soon());
                (end(waited), which)
            });
            if wakes {
                wake(address(&words.1), ALL, ALL, true);
            } else {
                words.1.store(1, Relaxed);
            }
            sleeper.join().unwrap()
        }
    };
    all_outcomes(model(true), [(End::Woken, Some(1)), (End::TimedOut, None)]);
    all_outcomes(model(false), [(End::Mismatch, None), (End::TimedOut, None)]);
}

/// A thread that one word has woken is in the queue of the other until it runs: it takes that
/// wake-up, too, and says the last word.
#[test]
fn a_wait_for_any_takes_a_wake_up_of_each_word() {
    let model = || {
        let words = Arc::new((word(0), word(0)));
        let sleeper = with(&words, |words| {
            let entries = [&words.0, &words.1].map(|word| Entry { word, expected: 0, private: true });
            wait_any(&entries, soon()).1
        });
        let woken = (wake(address(&words.0), 1, ALL, true), wake(address(&words.1), 1, ALL, true));
        (woken, sleeper.join().unwrap())
    };
    let all = [((0, 0), None), ((1, 0), Some(0)), ((0, 1), Some(1)), ((1, 1), Some(1))];
    all_outcomes(model, all);
}

/// The word says "go on", and the bell, always 0, is what is rung.
fn rings(bell_first: bool) {
    let words = Arc::new((word(0), word(0)));
    let sleeper = with(&words, move |words| {
        let mut entries = [&words.0, &words.1].map(|word| Entry { word, expected: 0, private: true });
        if bell_first {
            entries.reverse();
        }
        wait_any(&entries, None);
    });
    words.0.store(1, Relaxed);
    wake(address(&words.1), 1, ALL, true);
    sleeper.join().unwrap();
}

#[test]
fn a_wait_for_any_looks_at_one_word_after_the_other() {
    all_outcomes(|| rings(true), [()]);
    assert!(matches!(verdict(|| rings(false)), Verdict::LostWakeUp(_)));
}

#[test]
fn as_many_waits_return_for_no_reason_as_the_configuration_allows() {
    let model = || {
        let word = word(0);
        [end(wait(&word, 0, ALL, soon(), true)), end(wait(&word, 0, ALL, soon(), true))]
    };
    use End::{TimedOut, Woken};
    let config = |spurious| Config { spurious, ..Config::exhaustive() };
    all_outcomes_of(config(0), model, [[TimedOut, TimedOut]]);
    all_outcomes_of(config(1), model, [[TimedOut, TimedOut], [TimedOut, Woken], [Woken, TimedOut]]);
    all_outcomes_of(
        config(2),
        model,
        [[TimedOut, TimedOut], [TimedOut, Woken], [Woken, TimedOut], [Woken, Woken]],
    );
}

#[test]
fn a_wake_up_makes_nothing_visible() {
    let model = || {
        let [seen, _] = shared((word(0), word(0))).threads([
            |(word, data)| {
                let woken = wait(word, 0, ALL, soon(), true) == Waited::Woken;
                (woken, data.load(Relaxed))
            },
            |(word, data)| {
                data.store(1, Relaxed);
                wake(address(word), 1, ALL, true);
                (false, 0)
            },
        ]);
        seen
    };
    all_outcomes(model, [(false, 0), (false, 1), (true, 0), (true, 1)]);
}

struct Mailbox {
    word: AtomicU32,
    data: UnsafeCell<u32>,
}
unsafe impl Sync for Mailbox {}

#[test]
fn data_that_only_a_wake_up_hands_over_is_a_race() {
    let model = |reads: bool| {
        move || {
            let mailbox = Mailbox { word: word(0), data: UnsafeCell::new(0) };
            shared((mailbox, reads)).threads([
                |(mailbox, reads)| {
                    let woken = wait(&mailbox.word, 0, ALL, None, true) == Waited::Woken;
                    // With the value that was stored before the wake-up it is none.
                    if woken && (*reads || mailbox.word.load(Acquire) == 1) {
                        mailbox.data.with(|data| unsafe { assert_eq!(*data, 1) });
                    }
                },
                |(mailbox, _)| {
                    mailbox.data.with_mut(|data| unsafe { *data = 1 });
                    mailbox.word.store(1, Release);
                    wake(address(&mailbox.word), 1, ALL, true);
                },
            ]);
        }
    };
    assert!(matches!(verdict(model(true)), Verdict::Race(_)));
    all_outcomes(model(false), [()]);
}

#[test]
fn the_key_of_a_word_that_is_no_more_is_harmless() {
    let model = || {
        let gone = Box::new(word(0));
        let key = address(&gone);
        drop(gone);
        let other = word(0);
        wake(key, 1, ALL, true) + cmp_requeue(&other, 0, 1, 1, key, true).map_or(0, |(_, moved)| moved)
    };
    all_outcomes(model, [0]);
}
