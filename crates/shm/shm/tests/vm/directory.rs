//! The directory: threads that create, find and list, and that die at each step.

use crate::place::{at_each_step, sampled};
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::Member;
use ulocks_shm::directory::Fresh;
use ulocks_shm::directory::table::{Table, Wanted};
use ulocks_shm::slots::Slot;
use ulocks_testkit::thread::with;

const NAMES: [&str; 2] = ["a", "b"];
/// Room for two values of eight bytes.
const ROOM: u64 = 16;
/// What a prepared value has in both of its words.
const WHOLE: u32 = 7;
/// What it has after a reset of the region, until a thread asks for it.
const LEFT: u32 = 3;

struct Place<const THREADS: usize> {
    slots: [[Slot; 2]; THREADS],
    table: Table<2>,
    /// The arena.
    values: [AtomicU32; 4],
    /// How often each value was prepared in this epoch, to the end.
    prepared: [AtomicU32; 2],
}

impl<const THREADS: usize> Place<THREADS> {
    fn new() -> Arc<Self> {
        let word = |_| AtomicU32::new(0);
        Arc::new(Self {
            slots: [(); THREADS].map(|()| [Slot::new(), Slot::new()]),
            table: Table::new(),
            values: [0; 4].map(word),
            prepared: [0; 2].map(word),
        })
    }

    /// As after a reset of a region that has both values.
    fn stale() -> Arc<Self> {
        let place = Self::new();
        let me = place.join();
        NAMES.iter().for_each(|name| place.gets(&me, name));
        drop(me);
        place.table.reset();
        place.values.iter().for_each(|word| word.store(LEFT, Relaxed));
        place.prepared.iter().for_each(|times| times.store(0, Relaxed));
        place
    }

    fn join(&self) -> Member<'_> {
        // SAFETY: the place outlives the member: its thread has a share of it.
        let me = unsafe { Member::join(self.slots.as_flattened(), 0..0) }.unwrap();
        me.set_recheck(Duration::MAX);
        me
    }

    /// Finds or creates `name`. Its value is prepared, and stays so.
    fn gets(&self, me: &Member<'_>, name: &str) {
        let prepare = |offset, _: Fresh| {
            let [first, second] = self.value(offset);
            first.store(0, Relaxed);
            second.store(0, Relaxed);
            first.store(WHOLE, Relaxed);
            second.store(WHOLE, Relaxed);
            self.prepared[offset as usize / 8].fetch_add(1, Relaxed);
        };
        // SAFETY: all members are of the place's slots.
        let offset = unsafe { self.table.locate(me, &Wanted::word(name), ROOM, true, prepare) };
        let words = self.value(offset.expect("there is room"));
        for _ in 0..2 {
            assert_eq!(words.map(|word| word.load(Relaxed)), [WHOLE; 2], "{name} is not prepared");
        }
    }

    fn value(&self, offset: u64) -> [&AtomicU32; 2] {
        let first = offset as usize / 4;
        [&self.values[first], &self.values[first + 1]]
    }

    /// Entries that are whole, of different names, one behind the other.
    fn lists(&self) -> usize {
        let listed: Vec<_> = self.table.list(ROOM).map(|entry| entry.expect("no damage")).collect();
        let mut names: Vec<_> = listed.iter().map(|entry| entry.name.read()).collect();
        names.dedup();
        assert_eq!(names.len(), listed.len(), "a name has two values");
        listed.len()
    }

    /// A thread that asks for both names; the odd ones in the other order.
    fn client(self: &Arc<Self>, nth: usize) -> thread::JoinHandle<()> {
        with(self, move |place| {
            let me = place.join();
            for turn in 0..2 {
                place.gets(&me, NAMES[(nth + turn) % 2]);
            }
        })
    }

    /// All threads come to their end or have died. Then each name has one value.
    fn ends(&self, threads: Vec<thread::JoinHandle<()>>) {
        let died = threads.into_iter().filter_map(|thread| thread.join().err()).count() as u32;
        let me = self.join();
        NAMES.iter().for_each(|name| self.gets(&me, name));
        assert_eq!(self.lists(), 2);
        for times in &self.prepared {
            let times = times.load(Relaxed);
            assert!((1..=1 + died).contains(&times), "prepared {times} times, after {died} deaths");
        }
    }
}

fn creators<const THREADS: usize>() {
    let place = Place::<THREADS>::new();
    let threads = (0..THREADS).map(|nth| place.client(nth)).collect();
    place.ends(threads);
}

fn finders_of_stale_values<const THREADS: usize>() {
    let place = Place::<THREADS>::stale();
    let threads = (0..THREADS).map(|nth| place.client(nth)).collect();
    place.ends(threads);
}

/// A thread lists without the directory lock.
fn creators_and_a_reader() {
    let place = Place::<3>::new();
    let mut threads: Vec<_> = (0..2).map(|nth| place.client(nth)).collect();
    let reader = Arc::clone(&place);
    threads.push(thread::spawn(move || {
        (0..3).fold(0, |before, _| {
            let now = reader.lists();
            assert!(now >= before, "an entry has gone");
            now
        });
    }));
    place.ends(threads);
}

#[test]
fn a_name_has_one_value() {
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), creators::<2>);
        explore(sampled(4, kernel), creators::<4>);
        explore(sampled(3, kernel), creators_and_a_reader);
    }
}

#[test]
fn a_stale_value_is_prepared_once() {
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), finders_of_stale_values::<2>);
        explore(sampled(4, kernel), finders_of_stale_values::<4>);
    }
}

#[test]
fn a_death_at_any_step_leaves_entries_or_free_places() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 60, creators::<2>);
        at_each_step(1, kernel, false, 40, creators_and_a_reader);
        let config = |threads| Config { deaths: Deaths::Threads(1), ..sampled(threads, kernel) };
        explore(config(4), creators::<4>);
    }
}

#[test]
fn a_death_at_any_step_of_a_reset_leaves_values_that_are_reset_again() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 60, finders_of_stale_values::<2>);
        let config = |threads| Config { deaths: Deaths::Threads(1), ..sampled(threads, kernel) };
        explore(config(4), finders_of_stale_values::<4>);
    }
}
