//! The robust semaphore array. No waiter looks again after a time.

use crate::place::{Scene, at_each_step, behind, join, play, sampled, slots, soon, under};
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::Shared;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, spin_until};
use ulocks_core::time::Deadline;
use ulocks_semarray::{Op, Set};
use ulocks_shm::slots::Slot;
use ulocks_shm::{Member, Refused, SemArray, SemError};
use ulocks_testkit::thread::with;

/// The slots of a model's table.
const SLOTS: usize = 6;
type Array = SemArray<2, SLOTS, 2, Shared<NoSpin>>;

/// An array, and its table.
struct Place {
    slots: [Slot; SLOTS],
    array: Array,
    /// The thread that has semaphore 0, and the one that has semaphore 1.
    inside: [AtomicU32; 2],
}

/// What a thread takes: each of these semaphores.
#[derive(Clone, Copy)]
enum Takes {
    First,
    Second,
    Both,
    /// Both, until a deadline.
    BothSoon,
}
use Takes::{Both, BothSoon, First, Second};

impl Takes {
    fn indices(self) -> &'static [usize] {
        match self {
            First => &[0],
            Second => &[1],
            Both | BothSoon => &[0, 1],
        }
    }

    fn set(self) -> Set {
        self.indices().iter().fold(Set::new(), |set, &index| set.sub(index, 1))
    }
}

impl Scene for Place {
    type Role = Takes;

    fn new() -> Arc<Self> {
        Arc::new(Self {
            slots: slots(),
            array: Array::new([1, 1]),
            inside: [AtomicU32::new(0), AtomicU32::new(0)],
        })
    }

    fn join(&self) -> Member<'_> {
        join(self, &self.slots)
    }

    fn plays(&self, me: &Member<'_>, what: Takes, name: u32) {
        let deadline = if let BothSoon = what { soon() } else { Deadline::after(Duration::MAX) };
        let permit = match self.array.acquire_until(me, what.set(), deadline) {
            Ok(permit) => permit,
            Err(error) => return assert_eq!(error, SemError::Refused(Refused::TimedOut)),
        };
        for &index in what.indices() {
            self.inside[index].store(name, Relaxed);
        }
        for &index in what.indices() {
            assert_eq!(self.inside[index].load(Relaxed), name, "another thread has semaphore {index}");
        }
        drop(permit);
    }

    fn holds(&self, me: &Member<'_>, what: Takes, held: impl FnOnce()) {
        let _permit = self.array.acquire(me, what.set()).unwrap();
        held();
    }

    /// Then each permit is there, once.
    fn ends(&self, threads: Vec<thread::JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| _ = thread.join());
        let me = self.join();
        self.plays(&me, First, 9);
        self.plays(&me, Both, 9);
        assert_eq!(self.array.values(), [1, 1], "a permit is lost, or came back twice");
    }
}

#[test]
fn sets_are_taken_whole_and_no_thread_sleeps_for_ever() {
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), play::<Place, _>([Both, Both]));
        explore(sampled(3, kernel), play::<Place, _>([First, Second, Both]));
        explore(sampled(4, kernel), behind::<Place, _>(Both, [First, Both, Second, Both]));
        explore(sampled(4, kernel), behind::<Place, _>(First, [Both, First, Second]));
    }
}

#[test]
fn a_deadline_of_a_set_strands_no_thread() {
    for kernel in Kernel::ALL {
        let config = Config { timeouts: true, ..sampled(3, kernel) };
        explore(config.clone(), behind::<Place, _>(Both, [BothSoon, First, Both]));
        explore(config, behind::<Place, _>(First, [Both, BothSoon, First]));
    }
}

#[test]
fn permits_come_back_from_a_death_at_any_step() {
    for kernel in Kernel::ALL {
        for takes in [[Both, First, Both], [First, Both, Second], [Second, First, Both]] {
            at_each_step(1, kernel, false, 8, play::<Place, _>(takes));
            at_each_step(1, kernel, false, 8, behind::<Place, _>(Both, takes));
        }
        let config = |threads| Config { deaths: Deaths::Threads(1), ..sampled(threads, kernel) };
        explore(config(4), behind::<Place, _>(First, [Both, First, Second, Both]));
        explore(config(4), play::<Place, _>([Both, First, Second, Both]));
        let timed = Config { timeouts: true, ..config(3) };
        explore(timed, behind::<Place, _>(Both, [BothSoon, First, Both]));
    }
}

/// While thread 2 waits for both, thread 1 takes the second one past it, and may die with it. This
/// thread has the first one, so that thread 2 watches it; or no thread is a holder before thread 1.
fn past_the_head(holds: bool) {
    let place = Place::new();
    let me = place.join();
    let permit = holds.then(|| place.array.acquire(&me, First.set()).unwrap());
    if !holds {
        place.array.apply(&me, &[Op::sub(0, 1)]).unwrap();
    }
    let passing = with(&place, |place| {
        let me = place.join();
        spin_until(|| place.array.waiters(&me) == 1);
        place.plays(&me, Second, 1);
        std::mem::forget(me);
    });
    let head = place.resident(Both, 2);
    let _ = passing.join();
    drop(permit);
    if !holds {
        place.array.apply(&me, &[Op::add(0, 1)]).unwrap();
    }
    std::mem::forget(me);
    place.ends(vec![head]);
}

#[test]
fn a_death_past_the_head_strands_no_thread() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 20, || past_the_head(true));
        at_each_step(1, kernel, false, 20, || past_the_head(false));
    }
}

/// Thread 1 has the second one. While thread 2 waits for both, thread 3 waits for the second one,
/// and gets it past thread 2 when thread 1 gives it back, which may die then.
fn overtaken() {
    let place = Place::new();
    let me = place.join();
    let first = place.array.acquire(&me, First.set()).unwrap();
    // 1: the others may come; 2: thread 1 is gone.
    let stage = Arc::new(AtomicU32::new(0));
    let (shared, begins) = (Arc::clone(&place), Arc::clone(&stage));
    let giver = thread::spawn(move || {
        let me = shared.join();
        let second = shared.array.acquire(&me, Second.set()).unwrap();
        begins.store(1, Relaxed);
        spin_until(|| shared.array.waiters(&me) == 2);
        drop(second);
        std::mem::forget(me);
    });
    let waits = |what, name, before| {
        let (place, stage) = (Arc::clone(&place), Arc::clone(&stage));
        thread::spawn(move || {
            spin_until(|| stage.load(Relaxed) > 0);
            let me = place.join();
            spin_until(|| stage.load(Relaxed) == 2 || place.array.waiters(&me) == before);
            place.plays(&me, what, name);
            std::mem::forget(me);
        })
    };
    let others = vec![waits(Both, 2, 0), waits(Second, 3, 1)];
    let _ = giver.join();
    stage.store(2, Relaxed);
    drop(first);
    std::mem::forget(me);
    place.ends(others);
}

#[test]
fn a_death_after_a_grant_past_the_head_strands_no_thread() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 60, overtaken);
    }
}

/// Of two permits this thread has one, and thread 1 the other. Thread 2 gets the permit of this
/// thread, and keeps it until thread 3 has that of thread 1, which gives it back or dies.
fn two_holders() {
    let place = Place::new();
    let me = place.join();
    place.array.set(&me, 0, 2).unwrap();
    let permit = place.array.acquire(&me, First.set()).unwrap();
    // 1: the waiters may come; 2: thread 1 is gone; 3: this thread has given its permit back.
    let [stage, inside] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let (shared, begins) = (Arc::clone(&place), Arc::clone(&stage));
    let other = thread::spawn(move || {
        let me = shared.join();
        let permit = shared.array.acquire(&me, First.set()).unwrap();
        begins.store(1, Relaxed);
        spin_until(|| begins.load(Relaxed) == 3);
        drop(permit);
        std::mem::forget(me);
    });
    let waits = || {
        let (place, stage, inside) = (Arc::clone(&place), Arc::clone(&stage), Arc::clone(&inside));
        thread::spawn(move || {
            spin_until(|| stage.load(Relaxed) > 0);
            let me = place.join();
            let permit = place.array.acquire(&me, First.set()).unwrap();
            inside.fetch_add(1, Relaxed);
            spin_until(|| inside.load(Relaxed) == 2);
            drop(permit);
            std::mem::forget(me);
        })
    };
    let waiters = [waits(), waits()];
    let joins = with(&stage, move |stage| {
        let _ = other.join();
        stage.store(2, Relaxed);
    });
    spin_until(|| stage.load(Relaxed) == 2 || place.array.waiters(&me) == 2);
    drop(permit);
    stage.store(3, Relaxed);
    std::mem::forget(me);
    joins.join().unwrap();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
}

#[test]
fn a_death_of_one_of_two_holders_strands_no_thread() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 60, two_holders);
    }
}

/// Thread 1 takes the last one for good, and may die; thread 2 waits for that zero, and no other
/// thread comes.
fn a_zero_that_is_taken() {
    let place = Place::new();
    let taker = with(&place, |place| {
        let me = place.join();
        spin_until(|| place.array.waiters(&me) == 1);
        std::mem::forget(place.array.acquire(&me, First.set()).unwrap());
        std::mem::forget(me);
    });
    let waiter = with(&place, |place| {
        let me = place.join();
        place.array.apply(&me, &[Op::wait_zero(0)]).unwrap();
        std::mem::forget(me);
    });
    let died = taker.join().is_err();
    let me = place.join();
    // What it took comes back, and nobody makes the zero.
    place.array.reclaim(&me).unwrap();
    if died && place.array.value(0) == Some(1) {
        place.array.set(&me, 0, 0).unwrap();
    }
    waiter.join().unwrap();
    std::mem::forget(me);
}

/// Thread 1 has the first one and waits for more than there is of the second; thread 2 waits for a
/// third thing; thread 3 waits for the first one. Thread 2 gets what it waits for, past thread 1,
/// which may die then.
fn the_head_dies_behind_another() {
    let place = Place::new();
    let me = place.join();
    place.array.set(&me, 1, 0).unwrap();
    // 1: thread 2 may come; 2: thread 1 is gone, or not to be waited for.
    let stage = Arc::new(AtomicU32::new(0));
    let (shared, begins) = (Arc::clone(&place), Arc::clone(&stage));
    let head = thread::spawn(move || {
        let me = shared.join();
        let first = shared.array.acquire(&me, First.set()).unwrap();
        begins.store(1, Relaxed);
        _ = shared.array.acquire_until(&me, [Op::sub(1, 2)], soon()).map(std::mem::forget);
        drop(first);
        std::mem::forget(me);
    });
    let waits = |before, op: Op| {
        let (place, stage) = (Arc::clone(&place), Arc::clone(&stage));
        thread::spawn(move || {
            spin_until(|| stage.load(Relaxed) > 0);
            let me = place.join();
            spin_until(|| stage.load(Relaxed) == 2 || place.array.waiters(&me) == before);
            place.array.apply(&me, &[op]).unwrap();
            std::mem::forget(me);
        })
    };
    let others = [waits(1, Op::sub(1, 1)), waits(2, Op::sub(0, 1))];
    let joins = with(&stage, move |stage| {
        let _ = head.join();
        stage.store(2, Relaxed);
    });
    spin_until(|| stage.load(Relaxed) == 2 || place.array.waiters(&me) == 3);
    place.array.apply(&me, &[Op::add(1, 1)]).unwrap();
    std::mem::forget(me);
    joins.join().unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn a_death_beside_a_grant_past_it_strands_no_thread() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 60, a_zero_that_is_taken);
        at_each_step(1, kernel, true, 60, the_head_dies_behind_another);
    }
}

/// A thread that waits for a zero is served by the set that makes it, also if the next one ends it
/// before the thread runs.
fn between_two_sets() {
    let place = Place::new();
    let waiter = with(&place, |place| {
        let me = place.join();
        place.array.apply(&me, &[Op::wait_zero(0)]).unwrap();
        std::mem::forget(me);
    });
    let me = place.join();
    spin_until(|| place.array.waiters(&me) == 1);
    place.array.apply(&me, &[Op::sub(0, 1)]).unwrap();
    place.array.apply(&me, &[Op::add(0, 1)]).unwrap();
    std::mem::forget(me);
    waiter.join().unwrap();
}

#[test]
fn a_zero_between_two_sets_is_not_missed() {
    for kernel in Kernel::ALL {
        explore(sampled(4, kernel), between_two_sets);
    }
}

/// A thread takes semaphore 0 for good while another one sets it to 3. Either may die at any step.
fn set_beside_a_holder() {
    let place = Place::new();
    let holder = with(&place, |place| {
        let me = place.join();
        std::mem::forget(place.array.acquire(&me, First.set()).unwrap());
        std::mem::forget(me);
    });
    let setter = with(&place, |place| {
        let me = place.join();
        place.array.set(&me, 0, 3).unwrap();
        std::mem::forget(me);
    });
    let died = holder.join().is_err();
    let _ = setter.join();
    let me = place.join();
    place.array.reclaim(&me).unwrap();
    let value = place.array.value(0).unwrap();
    // What it took came back if it died, and if it was not set since.
    let possible: &[u32] = if died { &[1, 3] } else { &[0, 2, 3] };
    assert!(possible.contains(&value), "the value is {value}, and the holder died: {died}");
}

#[test]
fn a_set_that_is_cut_off_keeps_what_others_are_owed() {
    for kernel in Kernel::ALL {
        let config = Config { deaths: Deaths::Threads(2), ..under(kernel, 12_000) };
        explore(config, set_beside_a_holder);
    }
}
