//! Signals: where a handler can run, what keeps it from running, and what it does to the thread it
//! interrupts.

use crate::{all_outcomes, outcomes, verdict, with};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use ulocks_vm::clock::{Clock, Time, now};
use ulocks_vm::explore::{Config, Verdict};
use ulocks_vm::futex::wait;
use ulocks_vm::process;
use ulocks_vm::signal::{self, Signal};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, fence, interruption_point, spin_until};
use ulocks_vm::thread;

const ALL: u32 = u32::MAX;
const USR1: Signal = Signal::new(10);
const USR2: Signal = Signal::new(12);

/// What handlers saw, in the order in which they ran.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<u32>>>);

impl Seen {
    fn push(&self, value: u32) {
        self.0.borrow_mut().push(value);
    }

    fn all(&self) -> Vec<u32> {
        self.0.borrow().clone()
    }
}

/// How far a thread has come; outside of the machine.
#[derive(Clone, Default)]
struct Place(Rc<Cell<u32>>);

// All threads of the machine are one thread of the system.
unsafe impl Send for Place {}
unsafe impl Sync for Place {}

#[test]
fn a_handler_runs_before_any_step_or_not_at_all() {
    let model = || {
        let (word, seen) = (Arc::new(AtomicU32::new(0)), Seen::default());
        let (shared, into) = (Arc::clone(&word), seen.clone());
        signal::install(USR1, 0, move || into.push(shared.load(Relaxed)));
        signal::arm(USR1, 1);
        word.store(1, Relaxed);
        word.store(2, Relaxed);
        interruption_point();
        seen.all()
    };
    all_outcomes(model, [vec![], vec![0], vec![1], vec![2]]);
}

#[test]
fn an_interrupted_thread_goes_on_where_it_was() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let shared = Arc::clone(&word);
        signal::install(USR1, 0, move || crate::discard(shared.fetch_add(10, Relaxed)));
        signal::arm(USR1, 2);
        let [first, second] = [word.fetch_add(1, Relaxed), word.fetch_add(1, Relaxed)];
        (first, second)
    };
    all_outcomes(model, [(0, 1), (0, 11), (10, 11), (10, 21), (0, 21), (20, 21)]);
}

#[test]
fn a_masked_signal_waits() {
    let model = || {
        let (word, seen) = (Arc::new(AtomicU32::new(0)), Seen::default());
        let (shared, into) = (Arc::clone(&word), seen.clone());
        signal::install(USR1, 0, move || into.push(shared.load(Relaxed)));
        signal::arm(USR1, 1);
        assert_eq!(signal::mask(USR1.bit()), 0);
        word.store(1, Relaxed);
        word.store(2, Relaxed);
        assert_eq!(signal::mask(0), USR1.bit());
        word.store(3, Relaxed);
        seen.all()
    };
    all_outcomes(model, [vec![], vec![0], vec![2]]);
}

/// Runs a model whose handlers nest, and returns the order in which they began (their number) and
/// ended (ten times it).
fn nested(mask: u32, times: u8, signals: &'static [Signal]) -> BTreeSet<Vec<u32>> {
    outcomes(Config::exhaustive(), move || {
        let seen = Seen::default();
        for (number, &signal) in (1..).zip(signals) {
            let into = seen.clone();
            signal::install(signal, mask, move || {
                into.push(number);
                interruption_point();
                into.push(10 * number);
            });
        }
        signals.iter().for_each(|&signal| signal::arm(signal, times));
        interruption_point();
        seen.all()
    })
}

#[test]
fn a_handler_is_not_interrupted_by_its_own_signal() {
    let expected = BTreeSet::from([vec![], vec![1, 10], vec![1, 10, 1, 10]]);
    assert_eq!(nested(0, 2, &[USR1]), expected);
}

#[test]
fn handlers_nest_unless_they_mask_each_other() {
    let one_after_the_other = [vec![], vec![1, 10], vec![2, 20], vec![1, 10, 2, 20], vec![2, 20, 1, 10]];
    let mut expected = BTreeSet::from(one_after_the_other);
    assert_eq!(nested(USR1.bit() | USR2.bit(), 1, &[USR1, USR2]), expected);
    expected.extend([vec![1, 2, 20, 10], vec![2, 1, 10, 20]]);
    assert_eq!(nested(0, 1, &[USR1, USR2]), expected);
}

fn soon() -> Time {
    Time { clock: Clock::Monotonic, since_zero: now(Clock::Monotonic) + Duration::from_secs(1) }
}

#[test]
fn a_timed_wait_is_interrupted() {
    let model = || {
        let seen = Seen::default();
        let into = seen.clone();
        signal::install(USR1, 0, move || into.push(1));
        let deadline = soon();
        signal::arm(USR1, 1);
        let waited = wait(&AtomicU32::new(0), 0, ALL, Some(deadline), true);
        (format!("{waited:?}"), seen.all().len())
    };
    let ends = [("TimedOut", 0), ("TimedOut", 1), ("Interrupted", 1)];
    all_outcomes(model, ends.map(|(end, handled)| (end.to_owned(), handled)));
}

#[test]
fn an_untimed_wait_begins_again_after_the_handler() {
    // The handler changes the word, so a thread that begins again does not sleep; none is told that
    // it was interrupted.
    let untimed = || {
        let word = Arc::new(AtomicU32::new(0));
        let shared = Arc::clone(&word);
        signal::install(USR1, 0, move || shared.store(1, Relaxed));
        let me = thread::current();
        let sender = thread::spawn(move || signal::send(me, USR1));
        let waited = wait(&word, 0, ALL, None, true);
        sender.join().unwrap();
        format!("{waited:?}")
    };
    all_outcomes(untimed, ["Mismatch".to_owned()]);
}

#[test]
fn a_sent_signal_is_handled_by_the_thread_it_was_sent_to() {
    let model = || {
        let seen = Seen::default();
        let into = seen.clone();
        signal::install(USR1, 0, move || into.push(thread::current() as u32));
        let receiver = thread::spawn(interruption_point);
        signal::send(receiver.thread(), USR1);
        receiver.join().unwrap();
        seen.all()
    };
    all_outcomes(model, [vec![], vec![1]]);
}

#[test]
fn a_signal_to_oneself_is_handled_before_anything_else() {
    let model = || {
        let seen = Seen::default();
        let into = seen.clone();
        signal::install(USR1, 0, move || into.push(1));
        signal::send(thread::current(), USR1);
        assert_eq!(seen.all(), [1]);
        signal::mask(USR1.bit());
        signal::send(thread::current(), USR1);
        signal::send(thread::current(), USR1);
        interruption_point();
        assert_eq!(seen.all(), [1], "masked");
        signal::mask(0);
        assert_eq!(seen.all(), [1, 1], "pending once");
    };
    all_outcomes(model, [()]);
}

#[test]
fn a_signal_can_strike_right_before_a_fence_or_a_point() {
    // The sender has seen the store, so the handler runs after it; wherever the thread is by
    // then.
    let model = || {
        let (word, place, seen) = (Arc::new(AtomicU32::new(0)), Place::default(), Seen::default());
        let (at, into) = (place.clone(), seen.clone());
        signal::install(USR1, 0, move || into.push(at.0.get()));
        let receiver = with(&word, |word| {
            let place = place;
            place.0.set(1);
            word.store(1, Relaxed);
            place.0.set(2);
            fence(Release);
            place.0.set(3);
            interruption_point();
            place.0.set(4);
            word.store(2, Relaxed);
        });
        if word.load(Relaxed) == 1 {
            signal::send(receiver.thread(), USR1);
        }
        receiver.join().unwrap();
        seen.all()
    };
    all_outcomes(model, [vec![], vec![2], vec![3], vec![4]]);
}

#[test]
fn a_signal_can_strike_while_a_thread_waits_for_another_to_end() {
    let model = || {
        let (word, seen) = (Arc::new(AtomicU32::new(0)), Seen::default());
        let (shared, into) = (Arc::clone(&word), seen.clone());
        signal::install(USR1, 0, move || into.push(shared.load(Acquire)));
        let child = with(&word, |word| {
            word.store(1, Release);
            word.store(2, Release);
        });
        signal::arm(USR1, 1);
        child.join().unwrap();
        seen.all()
    };
    all_outcomes(model, [vec![], vec![0], vec![1], vec![2]]);
}

#[test]
fn an_armed_signal_that_need_not_come_frees_nobody() {
    // Each of its arrivals lets the sleeper go. There is an execution in which it does not arrive.
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let shared = Arc::clone(&word);
        signal::install(USR1, 0, move || shared.store(1, Relaxed));
        signal::arm(USR1, 1);
        wait(&word, 0, ALL, None, true);
    };
    assert!(matches!(verdict(model), Verdict::Deadlock(_)));
}

#[test]
fn processes_have_handlers_of_their_own() {
    let model = || {
        let seen = Seen::default();
        let into = seen.clone();
        signal::install(USR1, 0, move || into.push(process::current() as u32));
        let other = process::spawn(|| {
            signal::send(thread::current(), USR1); // no handler here
            interruption_point();
        });
        other.join().unwrap();
        signal::send(thread::current(), USR1);
        seen.all()
    };
    all_outcomes(model, [vec![0]]);
}

#[test]
fn a_new_thread_masks_what_its_maker_masks_and_a_process_nothing() {
    let model = || {
        signal::mask(USR1.bit());
        let masked = || signal::mask(USR2.bit());
        let by_thread = thread::spawn(move || (masked(), thread::spawn(masked).join().unwrap()));
        let by_process = process::spawn(masked);
        (by_thread.join().unwrap(), by_process.join().unwrap(), signal::mask(0))
    };
    all_outcomes(model, [((USR1.bit(), USR2.bit()), 0, USR1.bit())]);
}

/// A handler takes the lock that the thread it interrupts may hold.
fn lock_in_handler(masks: bool) -> impl Fn() + 'static {
    move || {
        let lock = Arc::new(AtomicU32::new(0));
        let enter = |lock: &AtomicU32| {
            spin_until(|| lock.compare_exchange(0, 1, Acquire, Relaxed).is_ok());
            lock.store(0, Release);
        };
        let shared = Arc::clone(&lock);
        signal::install(USR1, 0, move || enter(&shared));
        signal::arm(USR1, 1);
        let before = if masks { signal::mask(USR1.bit()) } else { 0 };
        enter(&lock);
        signal::mask(before);
    }
}

#[test]
fn a_handler_that_waits_for_the_thread_it_interrupts_is_a_deadlock() {
    match verdict(lock_in_handler(false)) {
        Verdict::Deadlock(stuck) => assert!(stuck.to_string().contains("spins at"), "{stuck}"),
        other => panic!("{other}"),
    }
    all_outcomes(lock_in_handler(true), [()]);
}

#[test]
fn a_busy_wait_goes_on_after_a_handler_that_spins_too() {
    let model = || {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let (shared, other) = (Arc::clone(&words), Arc::clone(&words));
        let setter = thread::spawn(move || {
            other[1].store(1, Release);
            other[0].store(1, Release);
        });
        signal::install(USR1, 0, move || spin_until(|| shared[1].load(Acquire) == 1));
        signal::arm(USR1, 1);
        spin_until(|| words[0].load(Acquire) == 1);
        setter.join().unwrap();
    };
    all_outcomes(model, [()]);
}

#[test]
fn a_handler_can_mask_signals_in_what_it_interrupted() {
    let model = || {
        let seen = Seen::default();
        let into = seen.clone();
        signal::install(USR1, 0, move || {
            into.push(signal::mask_on_return(USR1.bit() | USR2.bit()));
        });
        let into = seen.clone();
        signal::install(USR2, 0, move || into.push(2));
        signal::send(thread::current(), USR1);
        signal::send(thread::current(), USR2);
        assert_eq!(signal::mask(0), USR1.bit() | USR2.bit());
        seen.all()
    };
    all_outcomes(model, [vec![0, 2]]);
}

#[test]
fn what_a_nested_handler_masks_on_return_ends_with_the_handler_it_interrupted() {
    let model = || {
        signal::install(USR1, 0, || {
            signal::send(thread::current(), USR2);
            assert_eq!(signal::mask(USR1.bit()), ALL, "masked by the handler that has returned");
        });
        signal::install(USR2, 0, || assert_eq!(signal::mask_on_return(ALL), USR1.bit()));
        signal::send(thread::current(), USR1);
        signal::mask(0)
    };
    all_outcomes(model, [0]);
}
