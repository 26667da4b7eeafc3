//! The condition variable.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};
use ulocks_core::condvar::Wakeup;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Policy, Private, Shared};
use ulocks_pi::{PiCondvarWith, PiMutexWith};
use ulocks_testkit::watchdog::watch;

/// A queue of at most four, with two conditions.
struct Queue<P: Policy> {
    items: PiMutexWith<VecDeque<usize>, P>,
    not_empty: PiCondvarWith<P>,
    not_full: PiCondvarWith<P>,
}

impl<P: Policy> Queue<P> {
    fn push(&self, item: usize, while_holding: bool) {
        let items = self.items.lock().unwrap();
        let mut items = self.not_full.wait_while(items, |items| items.len() == 4).unwrap();
        items.push_back(item);
        if while_holding {
            self.not_empty.notify_one(&self.items).unwrap();
        } else {
            drop(items);
            self.not_empty.notify_one(&self.items).unwrap();
        }
    }

    /// Every third wait has a deadline that passes soon.
    fn pop(&self, nth: usize) -> usize {
        let mut items = self.items.lock().unwrap();
        let item = loop {
            match items.pop_front() {
                Some(item) => break item,
                None if nth.is_multiple_of(3) => {
                    items = self.not_empty.wait_for(items, Duration::from_micros(50)).unwrap().0;
                }
                None => items = self.not_empty.wait(items).unwrap(),
            }
        };
        drop(items);
        self.not_full.notify_one(&self.items).unwrap();
        item
    }
}

fn everything_arrives<P: Policy>() {
    const ITEMS: usize = 2_000;
    let _watchdog = watch("a queue on PiCondvar", String::new);
    let queue = Queue::<P> {
        items: PiMutexWith::new(VecDeque::new()),
        not_empty: PiCondvarWith::new(),
        not_full: PiCondvarWith::new(),
    };
    let sum: usize = thread::scope(|scope| {
        for producer in 0..3 {
            let queue = &queue;
            scope.spawn(move || (0..ITEMS).for_each(|item| queue.push(item, producer == 0)));
        }
        let consumers: Vec<_> =
            (0..3).map(|_| scope.spawn(|| (0..ITEMS).map(|nth| queue.pop(nth)).sum::<usize>())).collect();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum()
    });
    assert_eq!(sum, 3 * ITEMS * (ITEMS - 1) / 2);
}

#[test]
fn every_notification_arrives() {
    everything_arrives::<Private>();
    everything_arrives::<Private<NoSpin>>();
    everything_arrives::<Shared>();
}

#[test]
fn a_broadcast_reaches_everybody_again_and_again() {
    let _watchdog = watch("a broadcast on PiCondvar", String::new);
    let (round, changed) =
        (PiMutexWith::<(usize, usize), Private>::new((0, 0)), PiCondvarWith::<Private>::new());
    let come = PiCondvarWith::<Private>::new();
    const THREADS: usize = 6;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for mine in 1..=200 {
                    let mut state =
                        changed.wait_while(round.lock().unwrap(), |state| state.0 < mine).unwrap();
                    state.1 += 1;
                    if state.1 == THREADS {
                        come.notify_one(&round).unwrap();
                    }
                }
            });
        }
        for now in 1..=200 {
            *round.lock().unwrap() = (now, 0);
            changed.notify_all(&round).unwrap();
            drop(come.wait_while(round.lock().unwrap(), |state| state.1 < THREADS).unwrap());
        }
    });
}

#[test]
fn a_wait_ends_with_its_deadline_and_not_before() {
    let (mutex, condvar) = (PiMutexWith::<(), Private>::new(()), PiCondvarWith::<Private>::new());
    let deadline = Instant::now() + Duration::from_millis(3);
    let (guard, wakeup) = condvar.wait_until(mutex.lock().unwrap(), deadline).unwrap();
    assert_eq!(wakeup, Wakeup::TimedOut);
    assert!(Instant::now() >= deadline && mutex.is_locked());
    drop(guard);
    assert!(!mutex.is_locked());
    assert_eq!((condvar.notify_one(&mutex), condvar.notify_all(&mutex)), (Ok(0), Ok(0)));
}
