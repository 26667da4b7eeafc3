//! The queue: each message is popped once, whole and in order, whatever thread dies at which step.

use crate::place::{at_each_step, dies_at_each_step, join, sampled, slots, soon, under};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use ulocks_core::Shared;
use ulocks_core::model::{Config, Deaths, Kernel, Strategy, explore, thread};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, spin_until, yield_now};
use ulocks_shm::slots::{RECHECK, Slot};
use ulocks_shm::{Member, PopError, PushError, Queue};
use ulocks_testkit::thread::with;

const CAPACITY: usize = 2;
const MOST: usize = 12;

/// A message: its number, and what proves that it is whole.
type Message = [u32; 2];

fn message(number: usize) -> Message {
    [number as u32, !(number as u32)]
}

/// Threads and their messages: those of one thread have numbers that follow one another.
struct Place {
    slots: [Slot; 8],
    looks: bool,
    queue: Queue<Message, CAPACITY, Shared<NoSpin>>,
    /// Whether the push of each message has returned.
    pushed: [AtomicU32; MOST],
    /// How often each message was popped.
    popped: [AtomicU32; MOST],
    /// How many threads have come to their end.
    ended: AtomicU32,
}

impl Place {
    fn new() -> Arc<Self> {
        let zeroes = || [0; MOST].map(AtomicU32::new);
        let (pushed, popped) = (zeroes(), zeroes());
        Arc::new(Self {
            slots: slots(),
            looks: false,
            queue: Queue::new(),
            pushed,
            popped,
            ended: AtomicU32::new(0),
        })
    }

    /// For a model in which a thread may die between a grant and its wake-up: the waiter looks
    /// again after a time then.
    fn looking() -> Arc<Self> {
        let mut place = Self::new();
        Arc::get_mut(&mut place).unwrap().looks = true;
        place
    }

    fn join(&self) -> Member<'_> {
        let me = join(self, &self.slots);
        if self.looks {
            me.set_recheck(RECHECK);
        }
        me
    }

    fn has_pushed(&self, number: usize) {
        self.pushed[number].store(1, Relaxed);
    }

    fn has_popped(&self, message: Message) -> usize {
        let [number, check] = message;
        assert_eq!(check, !number, "a message is torn");
        let before = self.popped[number as usize].fetch_add(1, Relaxed);
        assert_eq!(before, 0, "message {number} was popped twice");
        number as usize
    }

    /// Pushes the messages from `first` on, so many of them.
    fn pushes(&self, me: &Member<'_>, first: usize, number: usize) {
        for number in first..first + number {
            self.queue.push(me, message(number)).expect("an open queue");
            self.has_pushed(number);
        }
    }

    /// Pops so many.
    fn pops(&self, me: &Member<'_>, number: usize) {
        let mut last = [None; MOST];
        for _ in 0..number {
            let number = self.has_popped(self.queue.pop(me).expect("an open queue"));
            // Three messages of each thread.
            let last = &mut last[number / 3];
            assert!(last.is_none_or(|last| last < number), "not in the order of the pushes");
            *last = Some(number);
        }
    }

    /// Pops one or two at once.
    fn pops_two(&self, me: &Member<'_>) {
        let mut taken = [[0; 2]; 2];
        let number = self.queue.pop_slice(me, &mut taken).expect("an open queue");
        taken[..number].iter().for_each(|&message| _ = self.has_popped(message));
    }

    /// A thread that does so, and goes on living: no thread is woken because it leaves.
    fn resident(
        self: &Arc<Self>,
        role: impl FnOnce(&Self, &Member<'_>) + Send + 'static,
    ) -> thread::JoinHandle<()> {
        with(self, move |place| {
            let me = place.join();
            role(place, &me);
            place.ended.fetch_add(1, Relaxed);
            std::mem::forget(me);
        })
    }

    /// What is left is popped. Of the messages whose pushes have returned, no more than `lost` are
    /// gone: a thread died before it could say that it has popped one.
    fn ends(&self, me: &Member<'_>, lost: usize) {
        while let Ok(message) = self.queue.try_pop(me) {
            self.has_popped(message);
        }
        assert_eq!(self.queue.len(), 0);
        let gone = |&(pushed, popped): &(&AtomicU32, &AtomicU32)| pushed.load(Relaxed) > popped.load(Relaxed);
        let gone = self.pushed.iter().zip(&self.popped).filter(gone).count();
        assert!(gone <= lost, "{gone} messages are lost");
        // As a ring, and not as what a death may have made of it.
        for _ in 0..2 {
            assert_eq!(self.queue.try_push(me, message(0)), Ok(()));
            assert_eq!(self.queue.try_push(me, message(1)), Ok(()));
            assert_eq!(self.queue.try_push(me, message(2)), Err(PushError::Full(message(2))));
            assert_eq!(self.queue.try_pop(me), Ok(message(0)));
            assert_eq!(self.queue.try_pop(me), Ok(message(1)));
            assert_eq!(self.queue.try_pop(me), Err(PopError::Empty));
        }
    }
}

/// So many that all others are asleep, mostly.
fn many_steps(threads: usize) {
    (0..40 * threads).for_each(|_| yield_now());
}

/// `PAIRS` threads push three messages each, and as many pop three each.
fn pairs<const PAIRS: usize>() {
    let place = Place::new();
    let mut threads: Vec<_> =
        (0..PAIRS).map(|nth| place.resident(move |place, me| place.pushes(me, 3 * nth, 3))).collect();
    threads.extend((0..PAIRS).map(|_| place.resident(|place, me| place.pops(me, 3))));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    place.ends(&place.join(), 0);
}

#[test]
fn each_message_is_popped_once_and_no_thread_sleeps_for_ever() {
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), pairs::<1>);
        explore(sampled(4, kernel), pairs::<2>);
    }
}

/// Two threads pop a message each. The messages come when they sleep: one after the other, or both
/// at once. Thread 1 may die.
fn sleepers_that_pop(at_once: bool) -> impl Fn() + Clone + 'static {
    move || {
        let place = Place::new();
        let me = place.join();
        let threads = [(); 2].map(|()| place.resident(|place, me| place.pops(me, 1)));
        many_steps(2);
        if at_once {
            assert_eq!(place.queue.push_slice(&me, &[0, 1].map(message)), Ok(2));
        } else {
            place.pushes(&me, 0, 2);
        }
        let died = threads.into_iter().filter_map(|thread| thread.join().err()).count();
        place.ends(&me, died);
        std::mem::forget(me);
    }
}

/// Two threads push a message each into a full queue. The places come when they sleep.
fn sleepers_that_push(at_once: bool) -> impl Fn() + Clone + 'static {
    move || {
        let place = Place::new();
        let me = place.join();
        place.pushes(&me, 0, CAPACITY);
        let threads = [3, 6].map(|first| place.resident(move |place, me| place.pushes(me, first, 1)));
        many_steps(2);
        if at_once {
            place.pops_two(&me);
        } else {
            place.pops(&me, 2);
        }
        threads.into_iter().for_each(|thread| _ = thread.join());
        place.ends(&me, 0);
        std::mem::forget(me);
    }
}

/// Three threads wait for messages, and two messages come. Thread 1 would take both, and may die:
/// then both of the others get one. The one that was woken has to wake the other one.
fn one_that_pops_passes_on() {
    let place = Place::new();
    let me = place.join();
    let mut threads = vec![place.resident(|place, me| place.pops_two(me))];
    threads.extend([(); 2].map(|()| place.resident(|place, me| place.pops(me, 1))));
    many_steps(3);
    assert_eq!(place.queue.push_slice(&me, &[0, 1].map(message)), Ok(2));
    spin_until(|| place.queue.is_empty());
    place.pushes(&me, 2, 2);
    let died = threads.into_iter().filter_map(|thread| thread.join().err()).count();
    place.ends(&me, 2 * died);
    std::mem::forget(me);
}

/// The same of three threads that wait for places.
fn one_that_pushes_passes_on() {
    let place = Place::new();
    let me = place.join();
    place.pushes(&me, 0, CAPACITY);
    let mut threads = vec![place.resident(|place, me| {
        place.queue.push_slice(me, &[3, 4].map(message)).unwrap();
    })];
    threads.extend([6, 9].map(|first| place.resident(move |place, me| place.pushes(me, first, 1))));
    many_steps(3);
    place.pops_two(&me);
    spin_until(|| place.queue.is_full());
    place.pops(&me, 2);
    threads.into_iter().for_each(|thread| _ = thread.join());
    place.ends(&me, 0);
    std::mem::forget(me);
}

#[test]
fn a_death_of_one_that_waits_strands_no_other() {
    for kernel in Kernel::ALL {
        for at_once in [false, true] {
            at_each_step(1, kernel, false, 12, sleepers_that_pop(at_once));
            at_each_step(1, kernel, false, 12, sleepers_that_push(at_once));
        }
        at_each_step(1, kernel, false, 12, one_that_pops_passes_on);
        at_each_step(1, kernel, false, 12, one_that_pushes_passes_on);
    }
}

/// Thread 1 pushes two messages, at once or one after the other, and may die. Thread 2 pops one,
/// and if that is not pushed, another one comes for it.
fn a_pusher_that_may_die(at_once: bool) -> impl Fn() + Clone + 'static {
    move || {
        let place = Place::looking();
        let me = place.join();
        let pusher = place.resident(move |place, me| {
            if at_once {
                assert_eq!(place.queue.push_slice(me, &[0, 1].map(message)), Ok(2));
                place.has_pushed(0);
                place.has_pushed(1);
            } else {
                place.pushes(me, 0, 2);
            }
        });
        let popper = place.resident(|place, me| {
            place.pops(me, 1);
        });
        _ = pusher.join();
        let is_taken = |number: usize| place.popped[number].load(Relaxed) > 0;
        // The popper needs no other thread for a message that is there.
        let there = place.queue.len() + usize::from(is_taken(0));
        if there == 0 && place.ended.load(Relaxed) == 0 {
            place.pushes(&me, 3, 1);
        }
        popper.join().unwrap();
        // All of a slice, or none of it.
        if at_once {
            let left = place.queue.len();
            assert_eq!(is_taken(0), left != 0 && !is_taken(3), "half of a slice is there");
        }
        place.ends(&me, 0);
        assert!(!is_taken(1) || is_taken(0), "a message is there without the one before it");
        std::mem::forget(me);
    }
}

#[test]
fn a_push_that_a_death_cuts_off_is_there_or_not() {
    for kernel in Kernel::ALL {
        for at_once in [false, true] {
            at_each_step(1, kernel, true, 20, a_pusher_that_may_die(at_once));
        }
    }
}

/// A thread that looks, beside one that pushes and pops a message three times.
#[test]
fn a_length_is_of_one_moment() {
    for kernel in Kernel::ALL {
        explore(under(kernel, 4_000), || {
            let place = Place::new();
            let works = place.resident(|place, me| {
                for number in 0..3 {
                    place.pushes(me, number, 1);
                    place.pops(me, 1);
                }
            });
            let looks = place.resident(|place, _| {
                (0..4).for_each(|_| assert!(place.queue.len() <= 1, "more than there ever were"));
            });
            works.join().unwrap();
            looks.join().unwrap();
            place.ends(&place.join(), 0);
        });
    }
}

/// Thread 1 waits for a message. Thread 2 pushes one, and may die when it has granted the waiter,
/// before its wake-up. Then another thread acquires, pops what is there, and pushes one. `left` is
/// told whether a message was there.
fn a_granter_that_may_die(place: Arc<Place>, left: &AtomicBool) {
    let me = place.join();
    let popper = place.resident(|place, me| place.pops(me, 1));
    many_steps(1);
    let pusher = place.resident(|place, me| place.pushes(me, 0, 1));
    if pusher.join().is_err() {
        if let Ok(message) = place.queue.try_pop(&me) {
            left.store(true, Relaxed);
            place.has_popped(message);
        }
        if place.ended.load(Relaxed) == 0 {
            place.pushes(&me, 3, 1);
        }
    }
    popper.join().unwrap();
    place.ends(&me, 0);
    std::mem::forget(me);
}

/// Without a look of its own.
#[test]
fn a_thread_that_is_told_of_a_death_wakes_those_that_were_granted() {
    for kernel in Kernel::ALL {
        let config = |step, timeouts| {
            let deaths = Deaths::At { thread: 2, step };
            Config { deaths, kernel, timeouts, spurious: 0, ..Config::sampled(12) }
        };
        let left = Arc::new(AtomicBool::new(false));
        // After (push), a death may be one that no thread is told of.
        let end = (0..).find(|&step| {
            let left_there = Arc::clone(&left);
            explore(config(step, true), move || a_granter_that_may_die(Place::looking(), &left_there));
            left.load(Relaxed)
        });
        for step in 0..end.expect("a step that pushes") {
            explore(config(step, false), || a_granter_that_may_die(Place::new(), &AtomicBool::new(false)));
        }
    }
}

/// Thread 1 pops two messages of a full queue, at once or one after the other, and may die. Thread
/// 2 pushes one.
fn a_popper_that_may_die(at_once: bool) -> impl Fn() + Clone + 'static {
    move || {
        let place = Place::looking();
        let me = place.join();
        place.pushes(&me, 0, CAPACITY);
        let popper = place.resident(move |place, me| {
            if at_once {
                place.pops_two(me);
            } else {
                place.pops(me, 2);
            }
        });
        let pusher = place.resident(|place, me| {
            place.pushes(me, 3, 1);
        });
        let died = popper.join().is_err();
        // The pusher needs no other thread for a place that is free.
        if place.queue.is_full() && place.ended.load(Relaxed) == 0 && place.pushed[3].load(Relaxed) == 0 {
            _ = place.queue.try_pop(&me).map(|message| place.has_popped(message));
        }
        pusher.join().unwrap();
        let lost = if at_once { CAPACITY } else { 1 };
        place.ends(&me, if died { lost } else { 0 });
        std::mem::forget(me);
    }
}

#[test]
fn a_pop_that_a_death_cuts_off_has_taken_all_or_nothing() {
    for kernel in Kernel::ALL {
        for at_once in [false, true] {
            at_each_step(1, kernel, true, 20, a_popper_that_may_die(at_once));
        }
    }
}

/// Threads with deadlines beside threads without.
fn timed() {
    let place = Place::new();
    let brief = [
        place.resident(|place, me| match place.queue.push_until(me, message(0), soon()) {
            Ok(()) => place.has_pushed(0),
            Err(error) => assert_eq!(error, PushError::Full(message(0))),
        }),
        place.resident(|place, me| match place.queue.pop_until(me, soon()) {
            Ok(message) => _ = place.has_popped(message),
            Err(error) => assert_eq!(error, PopError::Empty),
        }),
    ];
    let others =
        [place.resident(|place, me| place.pushes(me, 3, 3)), place.resident(|place, me| place.pops(me, 3))];
    brief.into_iter().for_each(|thread| thread.join().unwrap());
    // One that was popped in time is missing to the popper.
    let me = place.join();
    place.pushes(&me, 6, 1);
    others.into_iter().for_each(|thread| thread.join().unwrap());
    place.ends(&me, 0);
    std::mem::forget(me);
}

/// Thread 1 closes the queue, and may die. All others come to their end then.
fn closing() {
    let place = Place::looking();
    let closer = place.resident(|place, me| {
        place.queue.close(me).unwrap();
    });
    let popper = |place: &Place, me: &Member<'_>| {
        loop {
            match place.queue.pop(me) {
                Ok(message) => _ = place.has_popped(message),
                Err(error) => break assert_eq!(error, PopError::Closed),
            }
        }
    };
    let others = [place.resident(popper), place.resident(popper)];
    let me = place.join();
    // No waiter depends on another thread if the queue is closed.
    if closer.join().is_err() && !place.queue.is_closed() {
        place.queue.close(&me).unwrap();
    }
    others.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(place.queue.try_push(&me, message(0)), Err(PushError::Closed(message(0))));
    place.queue.reopen(&me).unwrap();
    place.ends(&me, 0);
    std::mem::forget(me);
}

#[test]
fn a_deadline_strands_no_other() {
    for kernel in Kernel::ALL {
        explore(Config { timeouts: true, ..sampled(5, kernel) }, timed);
    }
}

#[test]
fn a_closed_queue_lets_all_waiters_go() {
    for kernel in Kernel::ALL {
        explore(sampled(3, kernel), closing);
        // By chance alone: a waiter of high priority that only looks, and sleeps again, would leave
        // the others no step.
        let strategy = Strategy::Random;
        let config = Config { strategy, timeouts: true, spurious: 0, ..under(kernel, 20) };
        dies_at_each_step(1, &config, closing);
    }
}
