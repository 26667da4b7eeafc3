//! The condition variable: sleepers that a notification moves to the lock, among others that are
//! parked there.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;
use ulocks_calock::{CalockCondvarWith, CalockWith, Every, Interval, State};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Policy, Private, Shared};
use ulocks_testkit::watchdog::watch;

macro_rules! with_each {
    ($check:ident) => {
        $check::<Private, Every>();
        $check::<Private<NoSpin>, Every<100_000>>();
        $check::<Shared<NoSpin>, Every>();
    };
}

/// Waiters see every round, which one thread begins; the mutex is contended by others that know
/// nothing of rounds.
fn everybody_sees_every_round<P: Policy, I: Interval>(waiters: usize, rounds: usize, bargers: usize) {
    struct Rounds {
        now: usize,
        seen: usize,
    }
    let _watchdog = watch("a broadcast under a calock", move || format!("{waiters} waiters"));
    let state = CalockWith::<_, P, I>::new(Rounds { now: 0, seen: waiters });
    let (begun, over) = (CalockCondvarWith::<P, I>::new(), CalockCondvarWith::<P, I>::new());
    thread::scope(|scope| {
        for me in 0..waiters {
            let (state, begun, over) = (&state, &begun, &over);
            scope.spawn(move || {
                let mut state = state.lock();
                for mine in 1..=rounds {
                    while state.now < mine {
                        if me % 4 == 0 {
                            begun.wait_for(&mut state, Duration::from_micros(300));
                        } else {
                            begun.wait(&mut state);
                        }
                    }
                    state.seen += 1;
                    if state.seen == waiters {
                        over.notify_one();
                    }
                }
            });
        }
        for _ in 0..bargers {
            scope.spawn(|| {
                while state.lock().now < rounds {
                    (0..100).for_each(|_| std::hint::spin_loop());
                }
            });
        }
        for now in 1..=rounds {
            let mut state = state.lock();
            while state.seen < waiters {
                over.wait(&mut state);
            }
            (state.now, state.seen) = (now, 0);
            if now % 2 == 0 {
                drop(state);
            }
            begun.notify_all();
        }
    });
    assert_eq!(state.lock().seen, waiters);
    // SAFETY: the raw mutex is only asked for its state.
    assert_eq!(unsafe { state.raw() }.inner().state(), State::UNLOCKED);
}

#[test]
fn a_broadcast_reaches_everybody_again_and_again() {
    fn check<P: Policy, I: Interval>() {
        everybody_sees_every_round::<P, I>(16, 200, 0);
    }
    with_each!(check);
}

#[test]
fn a_broadcast_reaches_everybody_on_a_busy_mutex() {
    fn check<P: Policy, I: Interval>() {
        everybody_sees_every_round::<P, I>(16, 100, 4);
    }
    with_each!(check);
}

#[test]
fn a_broadcast_reaches_hundreds() {
    everybody_sees_every_round::<Private, Every>(400, 5, 2);
    everybody_sees_every_round::<Private<NoSpin>, Every<100_000>>(400, 5, 0);
}

/// A queue of at most four, with two conditions.
struct Queue<P: Policy, I: Interval> {
    items: CalockWith<VecDeque<usize>, P, I>,
    not_empty: CalockCondvarWith<P, I>,
    not_full: CalockCondvarWith<P, I>,
}

impl<P: Policy, I: Interval> Queue<P, I> {
    fn push(&self, item: usize, while_holding: bool) {
        let mut items = self.items.lock();
        while items.len() == 4 {
            self.not_full.wait(&mut items);
        }
        items.push_back(item);
        if while_holding {
            self.not_empty.notify_one();
        } else {
            drop(items);
            self.not_empty.notify_one();
        }
    }

    /// Every third wait has a deadline that passes soon.
    fn pop(&self, nth: usize) -> usize {
        let mut items = self.items.lock();
        let item = loop {
            match items.pop_front() {
                Some(item) => break item,
                None if nth.is_multiple_of(3) => {
                    self.not_empty.wait_for(&mut items, Duration::from_micros(50));
                }
                None => self.not_empty.wait(&mut items),
            }
        };
        drop(items);
        self.not_full.notify_one();
        item
    }
}

#[test]
fn every_notification_arrives() {
    const ITEMS: usize = 1_000;
    fn check<P: Policy, I: Interval>() {
        let _watchdog = watch("a queue under a calock", String::new);
        let queue = Queue::<P, I> {
            items: CalockWith::new(VecDeque::new()),
            not_empty: CalockCondvarWith::new(),
            not_full: CalockCondvarWith::new(),
        };
        let sum: usize = thread::scope(|scope| {
            for producer in 0..6 {
                let queue = &queue;
                scope.spawn(move || (0..ITEMS).for_each(|item| queue.push(item, producer % 2 == 0)));
            }
            let consumers: Vec<_> =
                (0..6).map(|_| scope.spawn(|| (0..ITEMS).map(|nth| queue.pop(nth)).sum::<usize>())).collect();
            consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum()
        });
        assert_eq!(sum, 6 * ITEMS * (ITEMS - 1) / 2);
    }
    with_each!(check);
}
