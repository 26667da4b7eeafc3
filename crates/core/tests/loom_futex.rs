//! The modelled futex itself: what a sleeper and a waker may rely on, and that a mutex with a bug
//! is caught.
//!
//! `RUSTFLAGS="--cfg ulocks_loom" cargo test --profile model --features loom -p ulocks-core --test
//! loom_futex`
#![cfg(world = "loom")]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use loom::thread;
use ulocks_core::futex::{Bits, Futex, Private, RequeueError, Waited};
use ulocks_core::model::{self, Config, Grade};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, interruption_point, spin_until};
use ulocks_core::time::Deadline;

type Word = Futex<Private>;

/// What the executions of one exploration came to, all together. Not part of the model.
#[derive(Clone)]
struct Outcomes<T>(Arc<StdMutex<Vec<T>>>);

impl<T: PartialEq> Outcomes<T> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn add(&self, outcome: T) {
        let mut outcomes = self.0.lock().unwrap();
        if !outcomes.contains(&outcome) {
            outcomes.push(outcome);
        }
    }

    /// Whether all of `expected` came about, and nothing else.
    fn are<const N: usize>(&self, expected: [T; N]) -> bool {
        let outcomes = self.0.lock().unwrap();
        outcomes.len() == N && expected.iter().all(|outcome| outcomes.contains(outcome))
    }
}

/// Moves sleepers from `word` to `to` until `count` have moved. A requeue is the way to see that
/// somebody is asleep.
fn gather(word: &Word, count: u32, to: &Word) {
    let mut moved = 0;
    spin_until(|| {
        moved += word.cmp_requeue(0, 0, u32::MAX, to.key()).expect("nobody changes the word").requeued;
        moved == count
    });
}

/// Threads that fell asleep one after the other and now sleep on `parked`.
struct Sleepers {
    threads: Vec<thread::JoinHandle<Waited>>,
    parked: Arc<Word>,
    /// Who has woken, in this order.
    log: Arc<StdMutex<Vec<usize>>>,
}

impl Sleepers {
    fn in_order(count: usize) -> Self {
        let (word, parked) = (Arc::new(Word::new(0)), Arc::new(Word::new(0)));
        let log = Arc::new(StdMutex::new(Vec::new()));
        let threads = (0..count).map(|nth| {
            let (asleep_on, log) = (Arc::clone(&word), Arc::clone(&log));
            let sleeper = thread::spawn(move || {
                let waited = asleep_on.wait(0, None);
                log.lock().unwrap().push(nth);
                waited
            });
            gather(&word, 1, &parked);
            sleeper
        });
        Self { threads: threads.collect(), parked, log }
    }
}

/// A number behind a word that is meant to keep others out.
struct Guarded {
    word: AtomicU32,
    data: UnsafeCell<u32>,
}

// SAFETY: nothing makes it so; whether two threads meet at `data` is for the model to find out, and
// it reports where.
unsafe impl Sync for Guarded {}
// SAFETY: both parts may be sent.
unsafe impl Send for Guarded {}

/// A bug that only shows if another thread comes between a spinner's fruitless look and what it
/// does afterwards.
#[test]
fn what_follows_a_fruitless_look_is_explored() {
    model::finds_bug_saying("Concurrent write", Config::bounded(3), || {
        let lock = Arc::new(Guarded { word: AtomicU32::new(0), data: UnsafeCell::new(0) });
        let round = |Guarded { word, data }: &Guarded| {
            while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                let mut in_vain = false;
                spin_until(|| {
                    let free = word.load(Relaxed) == 0;
                    in_vain |= !free;
                    free
                });
                if in_vain {
                    word.swap(1, Acquire); // without a look at what it replaces
                    break;
                }
            }
            // SAFETY: an increment of a number; that nobody else is here is what the model refutes.
            data.with_mut(|data| unsafe { *data += 1 });
            word.swap(0, Release);
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || round(&lock))
            })
            .collect();
        round(&lock);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Who was woken runs beside its waker, in every grade.
#[test]
fn the_woken_may_overtake_the_waker() {
    for grade in [Grade::Cheap, Grade::Exact, Grade::Unordered] {
        let outcomes = Outcomes::new();
        let seen = outcomes.clone();
        model::explore(Config { grade, ..Config::default() }, move || {
            let (word, ran) = (Arc::new(Word::new(0)), Arc::new(AtomicU32::new(0)));
            let sleeper = {
                let (word, ran) = (Arc::clone(&word), Arc::clone(&ran));
                thread::spawn(move || {
                    let waited = word.wait(0, None);
                    ran.swap(1, Relaxed);
                    waited
                })
            };
            word.swap(1, Relaxed);
            word.key().wake(1);
            let overtaken = ran.swap(2, Relaxed) == 1;
            seen.add((sleeper.join().unwrap() == Waited::Woken, overtaken));
        });
        assert!(outcomes.are([(true, true), (true, false), (false, true), (false, false)]), "{grade:?}");
    }
}

#[test]
fn a_wake_up_before_the_sleep_is_not_kept() {
    model::finds_bug_saying("deadlock", Config::default(), || {
        let word = Arc::new(Word::new(0));
        let waker = {
            let word = Arc::clone(&word);
            // Wakes without having changed the word: the sleeper may come later.
            thread::spawn(move || word.key().wake(1))
        };
        word.wait(0, None);
        waker.join().unwrap();
    });
}

#[test]
fn a_change_of_the_word_before_the_wake_up_is_never_missed() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::explore(Config::unbounded(), move || {
        let word = Arc::new(Word::new(0));
        let waker = {
            let word = Arc::clone(&word);
            thread::spawn(move || {
                word.swap(1, Release);
                word.key().wake(1)
            })
        };
        let waited = word.wait(0, None);
        let woken = waker.join().unwrap();
        assert_eq!(waited == Waited::Woken, woken == 1);
        seen.add(waited);
    });
    assert!(outcomes.are([Waited::Woken, Waited::Mismatch]));
}

#[test]
fn a_wait_compares_with_the_newest_value() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::explore(Config::unbounded(), move || {
        let word = Arc::new(Word::new(0));
        let done = Arc::new(AtomicU32::new(0));
        let writer = {
            let (word, done) = (Arc::clone(&word), Arc::clone(&done));
            thread::spawn(move || {
                word.swap(1, Relaxed);
                done.swap(1, Relaxed);
            })
        };
        // A relaxed load could still read 0 here; the kernel does not.
        if done.load(Relaxed) == 1 {
            seen.add(word.load(Relaxed));
            assert_eq!(word.wait(0, None), Waited::Mismatch);
        }
        writer.join().unwrap();
    });
    assert!(outcomes.are([0, 1]));
}

#[test]
fn sleepers_are_woken_in_the_order_they_came() {
    model::explore(Config::default(), || {
        let Sleepers { threads, parked, log } = Sleepers::in_order(2);
        for (nth, sleeper) in threads.into_iter().enumerate() {
            assert_eq!(parked.key().wake(1), 1);
            sleeper.join().unwrap();
            assert_eq!(log.lock().unwrap().last(), Some(&nth));
        }
        assert_eq!(parked.key().wake(1), 0);
    });
}

#[test]
fn a_wake_up_wakes_as_many_as_it_says() {
    model::explore(Config::default(), || {
        let Sleepers { threads, parked, log } = Sleepers::in_order(3);
        assert_eq!(parked.key().wake(0), 0);
        assert_eq!(parked.key().wake(2), 2);
        let mut sleepers = threads.into_iter();
        for woken in sleepers.by_ref().take(2) {
            woken.join().unwrap();
        }
        assert!(!log.lock().unwrap().contains(&2));
        assert_eq!(parked.key().wake(u32::MAX), 1);
        sleepers.next().unwrap().join().unwrap();
    });
}

#[test]
fn a_wake_up_reaches_those_who_wait_for_one_of_its_bits() {
    model::explore(Config::default(), || {
        let (word, parked) = (Arc::new(Word::new(0)), Word::new(0));
        let sleepers = [0, 1].map(|bit| {
            let asleep_on = Arc::clone(&word);
            let sleeper = thread::spawn(move || asleep_on.wait_bits(0, Bits::one(bit), None));
            gather(&word, 1, &parked);
            sleeper
        });
        assert_eq!(parked.key().wake_bits(u32::MAX, Bits::one(2)), 0);
        assert_eq!(parked.key().wake_bits(u32::MAX, Bits::one(1)), 1);
        let [first, second] = sleepers;
        second.join().unwrap();
        assert_eq!(parked.key().wake_bits(u32::MAX, Bits::one(1)), 0);
        assert_eq!(parked.key().wake_bits(1, Bits::new(0b101).unwrap()), 1);
        first.join().unwrap();
    });
}

#[test]
fn the_cheap_grade_wakes_everybody_and_counts_as_asked() {
    model::explore(Config { grade: Grade::Cheap, ..Config::default() }, || {
        let word = Arc::new(Word::new(0));
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let word = Arc::clone(&word);
                thread::spawn(move || word.wait(0, None))
            })
            .collect();
        word.swap(1, Relaxed);
        assert!(word.key().wake(1) <= 1);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    });
}

#[test]
fn the_exact_grade_leaves_the_second_sleeper_asleep() {
    model::finds_bug_saying("deadlock", Config::default(), || {
        let word = Arc::new(Word::new(0));
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let word = Arc::clone(&word);
                thread::spawn(move || word.wait(0, None))
            })
            .collect();
        word.swap(1, Relaxed);
        word.key().wake(1);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    });
}

#[test]
fn a_requeue_wakes_some_and_moves_some_behind_those_who_sleep_there() {
    model::explore(Config::default(), || {
        let Sleepers { threads, parked: from, log } = Sleepers::in_order(3);
        let to = Word::new(0);
        assert_eq!(from.cmp_requeue(1, 1, 1, to.key()), Err(RequeueError::Mismatch));
        // The third goes first to the other word; the second then comes behind it.
        let behind = Word::new(0);
        let first = from.cmp_requeue(0, 1, 1, to.key()).unwrap();
        assert_eq!((first.woken, first.requeued), (1, 1));
        let rest = from.cmp_requeue(0, 0, u32::MAX, behind.key()).unwrap();
        assert_eq!((rest.woken, rest.requeued), (0, 1));
        let last = to.cmp_requeue(0, 0, u32::MAX, behind.key()).unwrap();
        assert_eq!((last.woken, last.requeued), (0, 1));

        let mut sleepers = threads.into_iter();
        sleepers.next().unwrap().join().unwrap();
        let (second, third) = (sleepers.next().unwrap(), sleepers.next().unwrap());
        assert_eq!(behind.key().wake(1), 1);
        third.join().unwrap();
        assert_eq!(*log.lock().unwrap(), [0, 2]);
        assert_eq!(behind.key().wake(1), 1);
        second.join().unwrap();
    });
}

#[test]
fn a_wake_up_of_memory_that_is_gone_is_legal() {
    model::explore(Config::default(), || {
        let word = Arc::new(Word::new(0));
        let key = word.key();
        let last = {
            let word = Arc::clone(&word);
            thread::spawn(move || drop(word))
        };
        drop(word);
        last.join().unwrap();
        assert_eq!(key.wake(1), 0);
    });
}

/// A value that is passed on by a wake-up alone.
struct Parcel {
    word: Word,
    content: UnsafeCell<u32>,
}

// SAFETY: the content is written before the wake-up and read after it; that this is not enough is
// for the model to say.
unsafe impl Sync for Parcel {}

fn hand_over_by_wake_up() {
    let parcel = Arc::new(Parcel { word: Word::new(0), content: UnsafeCell::new(0) });
    let receiver = {
        let parcel = Arc::clone(&parcel);
        thread::spawn(move || {
            if parcel.word.wait(0, None) == Waited::Woken {
                // SAFETY: as above.
                assert_eq!(parcel.content.with(|content| unsafe { *content }), 7);
            }
        })
    };
    // SAFETY: as above.
    parcel.content.with_mut(|content| unsafe { *content = 7 });
    parcel.word.swap(1, Relaxed);
    parcel.word.key().wake(1);
    receiver.join().unwrap();
}

#[test]
fn a_wake_up_orders_nothing_in_the_grade_without_edges() {
    model::explore(Config::unbounded(), hand_over_by_wake_up);
    let unordered = Config { grade: Grade::Unordered, ..Config::unbounded() };
    model::finds_bug_saying("Concurrent", unordered, hand_over_by_wake_up);
}

#[test]
fn a_timed_wait_ends_both_ways() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    let report = model::explore(Config { timeouts: 1, ..Config::unbounded() }, move || {
        let word = Arc::new(Word::new(0));
        let waker = {
            let word = Arc::clone(&word);
            thread::spawn(move || {
                word.swap(1, Relaxed);
                word.key().wake(1)
            })
        };
        let deadline = Deadline::after(Duration::from_secs(1));
        let waited = word.wait(0, Some(deadline));
        assert!(deadline.has_passed() || waited != Waited::TimedOut);
        // Who has timed out takes no wake-up away.
        assert_eq!(waker.join().unwrap() == 1, waited == Waited::Woken);
        seen.add(waited);
    });
    assert_eq!(report.masks, 2);
    assert!(outcomes.are([Waited::Woken, Waited::Mismatch, Waited::TimedOut]));
}

#[test]
fn a_deadline_that_has_passed_stays_passed() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::explore(Config { timeouts: 3, ..Config::default() }, move || {
        let word = Word::new(0);
        let deadline = Deadline::at(std::time::Instant::now() + Duration::from_millis(1));
        let passed = [(); 3].map(|()| deadline.has_passed());
        assert!(passed.is_sorted());
        if passed[2] {
            assert_eq!(word.wait(0, Some(deadline)), Waited::TimedOut);
        }
        assert!(!Deadline::NEVER.has_passed());
        seen.add(passed);
    });
    let [f, t] = [false, true];
    assert!(outcomes.are([[f, f, f], [f, f, t], [f, t, t], [t, t, t]]));
}

#[test]
fn deadlines_expire_one_by_one() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::explore(Config { timeouts: 2, ..Config::default() }, move || {
        let [first, second] = [(); 2].map(|()| Deadline::after(Duration::from_secs(1)));
        assert!(first.passes_before(second));
        seen.add((first.has_passed(), second.has_passed()));
    });
    assert!(outcomes.are([(false, false), (true, false), (false, true), (true, true)]));
}

#[test]
fn a_timed_wait_sleeps_or_expires_as_configured_when_nobody_wakes() {
    let nobody_wakes = || {
        let word = Word::new(0);
        let waited = word.wait(0, Some(Deadline::after(Duration::from_secs(1))));
        assert_eq!(waited, Waited::TimedOut);
    };
    model::finds_bug_saying("deadlock", Config::default(), nobody_wakes);
    model::explore(Config { rest_expire: true, ..Config::default() }, nobody_wakes);
}

#[test]
fn a_wait_may_end_spuriously() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::explore(Config { spurious: 1, ..Config::unbounded() }, move || {
        let word = Arc::new(Word::new(0));
        let waker = {
            let word = Arc::clone(&word);
            thread::spawn(move || {
                word.swap(1, Relaxed);
                word.key().wake(1);
            })
        };
        word.wait(0, None);
        seen.add(word.load(Relaxed));
        waker.join().unwrap();
    });
    assert!(outcomes.are([0, 1]), "a wait returns although the word has not changed");
}

#[test]
fn a_wait_does_not_end_spuriously_unless_asked() {
    model::finds_bug_saying("deadlock", Config::default(), || {
        Word::new(0).wait(0, None);
    });
}

#[test]
fn masks_that_make_no_difference_are_left_out() {
    let config = Config { timeouts: 4, spurious: 4, ..Config::default() };
    let report = model::explore(config, || {
        let word = Word::new(0);
        let deadline = Deadline::after(Duration::from_secs(1));
        if !deadline.has_passed() {
            let _ = deadline.has_passed();
        }
        assert_eq!(word.wait(1, None), Waited::Mismatch);
    });
    // Passed at the first look, at the second, or at none.
    assert_eq!(report.masks, 3);
}

#[test]
#[should_panic = "the exploration was cut short: more than the 1 executions allowed"]
fn a_cut_exploration_has_failed() {
    model::explore(Config { max_executions: Some(1), ..Config::unbounded() }, || {
        let word = Arc::new(Word::new(0));
        let other = {
            let word = Arc::clone(&word);
            thread::spawn(move || word.swap(1, Relaxed))
        };
        word.swap(2, Relaxed);
        other.join().unwrap();
    });
}

#[test]
#[should_panic = "the model found no bug: 1 executions, 1 masks"]
fn a_bug_that_is_not_there_is_not_found() {
    model::finds_bug(Config::default(), || {});
}

#[test]
fn a_handler_runs_at_the_point_it_is_due() {
    for points in 0..3 {
        model::explore(Config::default(), move || {
            let (steps, struck_at) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
            let (so_far, strike) = (Rc::clone(&steps), Rc::clone(&struck_at));
            model::interrupt_at(points, move || strike.set(Some(so_far.get())));
            for step in 0..3 {
                steps.set(step);
                interruption_point();
            }
            assert_eq!(struck_at.get(), Some(points));
        });
    }
}

#[test]
fn a_signal_ends_a_timed_wait_and_restarts_another() {
    model::explore(Config::default(), || {
        let word = Rc::new(Word::new(0));
        let handled_by = Rc::clone(&word);
        model::interrupt_at(0, move || handled_by.store(1, Relaxed));
        assert_eq!(word.wait(0, Some(Deadline::NEVER)), Waited::Interrupted);

        let handled_by = Rc::clone(&word);
        model::interrupt_at(0, move || handled_by.store(2, Relaxed));
        assert_eq!(word.wait(1, None), Waited::Mismatch);
    });
}

ulocks_core::sync_static! {
    /// Lives for one execution.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    pub(crate) static OTHER: AtomicU32 = AtomicU32::new(7);
}

#[test]
fn a_static_is_new_in_every_execution() {
    model::explore(Config::unbounded(), || {
        assert_eq!(COUNT.load(Relaxed), 0);
        let other = thread::spawn(|| COUNT.fetch_add(OTHER.load(Relaxed), Relaxed));
        COUNT.fetch_add(1, Relaxed);
        other.join().unwrap();
        assert_eq!(COUNT.load(Acquire), 8);
    });
}
