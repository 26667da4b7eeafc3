//! The futex: what a sleeper and a waker may rely on.

use super::{LOST, RACE, some, timed, unordered, whole};
use crate::outcomes::Outcomes;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};
use ulocks_core::futex::{Bits, Futex, Local, RequeueError, Waited};
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, spin_until};
use ulocks_core::time::Deadline;
use ulocks_testkit::thread::{JoinHandle, spawn, with};

type Word = Futex<Local>;

/// No sleep ends by itself.
fn exact() -> Config {
    Config { spurious: 0, ..some(2) }
}

/// Moves sleepers from `word` to `to` until `count` have moved. A requeue is the way to see that
/// a thread is asleep.
fn gather(word: &Word, count: u32, to: &Word) {
    let mut moved = 0;
    spin_until(|| {
        moved += word.cmp_requeue(0, 0, u32::MAX, to.key()).expect("nobody changes the word").requeued;
        moved == count
    });
}

/// Threads that fell asleep one after the other and now sleep on `parked`.
struct Sleepers {
    threads: Vec<JoinHandle<Waited>>,
    /// Where they fell asleep. It goes when the threads have ended.
    word: Arc<Word>,
    parked: Arc<Word>,
    /// Which have woken, in this order.
    log: Arc<StdMutex<Vec<usize>>>,
}

impl Sleepers {
    fn in_order(count: usize) -> Self {
        let (word, parked) = (Arc::new(Word::new(0)), Arc::new(Word::new(0)));
        let log = Arc::new(StdMutex::new(Vec::new()));
        let threads = (0..count).map(|nth| {
            let (asleep_on, log) = (Arc::clone(&word), Arc::clone(&log));
            let sleeper = spawn(move || {
                let waited = asleep_on.wait(0, None);
                log.lock().unwrap().push(nth);
                waited
            });
            gather(&word, 1, &parked);
            sleeper
        });
        Self { threads: threads.collect(), word, parked, log }
    }
}

#[test]
fn a_change_of_the_word_before_the_wake_up_is_never_missed() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    explore(whole(), move || {
        let word = Arc::new(Word::new(0));
        let waker = with(&word, |word| {
            word.swap(1, Release);
            word.key().wake(1)
        });
        let waited = word.wait(0, None);
        let woken = waker.join().unwrap();
        assert_eq!(waited == Waited::Woken, woken == 1);
        seen.add(waited);
    });
    outcomes.are([Waited::Woken, Waited::Mismatch]);
}

#[test]
fn a_wake_up_before_the_sleep_is_not_kept() {
    finds_bug_saying(LOST, whole(), || {
        let word = Arc::new(Word::new(0));
        let waker = {
            let word = Arc::clone(&word);
            // Wakes without having changed the word: the sleeper may come later.
            spawn(move || word.key().wake(1))
        };
        word.wait(0, None);
        waker.join().unwrap();
    });
}

#[test]
fn sleepers_are_woken_in_the_order_they_came() {
    explore(exact(), || {
        let Sleepers { threads, word: _word, parked, log } = Sleepers::in_order(2);
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
    explore(exact(), || {
        let Sleepers { threads, word: _word, parked, log } = Sleepers::in_order(3);
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
    explore(exact(), || {
        let (word, parked) = (Arc::new(Word::new(0)), Word::new(0));
        let sleepers = [0, 1].map(|bit| {
            let sleeper = with(&word, move |word| word.wait_bits(0, Bits::one(bit), None));
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
fn a_requeue_wakes_some_and_moves_some_behind_those_who_sleep_there() {
    explore(exact(), || {
        let Sleepers { threads, word: _word, parked: from, log } = Sleepers::in_order(3);
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
    explore(whole(), || {
        let word = Arc::new(Word::new(0));
        let key = word.key();
        let last = {
            let word = Arc::clone(&word);
            spawn(move || drop(word))
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
// SAFETY: both parts may be sent.
unsafe impl Send for Parcel {}

fn hand_over_by_wake_up() {
    let parcel = Arc::new(Parcel { word: Word::new(0), content: UnsafeCell::new(0) });
    let receiver = with(&parcel, |parcel| {
        if parcel.word.wait(0, None) == Waited::Woken {
            // SAFETY: as above.
            assert_eq!(parcel.content.with(|content| unsafe { *content }), 7);
        }
    });
    // SAFETY: as above.
    parcel.content.with_mut(|content| unsafe { *content = 7 });
    parcel.word.swap(1, Relaxed);
    parcel.word.key().wake(1);
    receiver.join().unwrap();
}

#[test]
fn a_wake_up_orders_nothing() {
    finds_bug_saying(RACE, unordered(whole()), hand_over_by_wake_up);
}

#[test]
fn a_timed_wait_ends_in_three_ways() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    explore(timed(1, whole()), move || {
        let word = Arc::new(Word::new(0));
        let waker = with(&word, |word| {
            word.swap(1, Relaxed);
            word.key().wake(1)
        });
        let deadline = Deadline::after(Duration::from_secs(1));
        let waited = word.wait(0, Some(deadline));
        assert!(deadline.has_passed() || waited != Waited::TimedOut);
        // A waiter that has timed out takes no wake-up away.
        assert_eq!(waker.join().unwrap() == 1, waited == Waited::Woken);
        seen.add(waited);
    });
    outcomes.are([Waited::Woken, Waited::Mismatch, Waited::TimedOut]);
}

#[test]
fn a_deadline_that_has_passed_stays_passed() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    explore(timed(3, whole()), move || {
        let deadline = Deadline::at(Instant::now() + Duration::from_millis(1));
        let passed = [(); 3].map(|()| deadline.has_passed());
        if passed[2] {
            assert_eq!(deadline.remaining(), Duration::ZERO);
            assert_eq!(Word::new(0).wait(0, Some(deadline)), Waited::TimedOut);
        }
        assert!(!Deadline::NEVER.has_passed());
        seen.add(passed);
    });
    let [f, t] = [false, true];
    outcomes.are([[f, f, f], [f, f, t], [f, t, t], [t, t, t]]);
}

#[test]
fn a_wait_may_end_spuriously_if_asked() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    explore(Config { spurious: 1, ..whole() }, move || {
        let word = Arc::new(Word::new(0));
        let waker = with(&word, |word| {
            word.swap(1, Relaxed);
            word.key().wake(1);
        });
        let waited = word.wait(0, None);
        seen.add((waited, word.load(Relaxed)));
        waker.join().unwrap();
    });
    // A thread may read a change of the word late, unless the kernel has told it of the change.
    outcomes.are([(Waited::Woken, 0), (Waited::Woken, 1), (Waited::Mismatch, 1)]);
}

ulocks_core::sync_static! {
    /// Lives for one execution.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    pub(crate) static OTHER: AtomicU32 = AtomicU32::new(7);
}

#[test]
fn a_static_is_new_in_every_execution() {
    explore(whole(), || {
        assert_eq!(COUNT.load(Relaxed), 0);
        let other = spawn(|| COUNT.fetch_add(OTHER.load(Relaxed), Relaxed));
        COUNT.fetch_add(1, Relaxed);
        other.join().unwrap();
        assert_eq!(COUNT.load(Acquire), 8);
    });
}
