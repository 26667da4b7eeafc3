//! The map: what a thread changes is there whole or not at all, whichever step it dies at.

use crate::place::{at_each_step, join, sampled, slots};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use ulocks_core::Shared;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_core::spin::NoSpin;
use ulocks_shm::slots::Slot;
use ulocks_shm::{HashMap, MapError, Member};
use ulocks_testkit::thread::with;

const CAPACITY: usize = 3;

/// All keys have one hash, so that each is in the way of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u32);

impl Hash for Key {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A number, and what proves that it is whole.
type Value = [u32; 2];

fn value(number: u32) -> Value {
    [number, !number]
}

struct Place {
    slots: [Slot; 8],
    map: HashMap<Key, Value, CAPACITY, Shared<NoSpin>>,
}

impl Place {
    fn new() -> Arc<Self> {
        Arc::new(Self { slots: slots(), map: HashMap::new() })
    }

    fn join(&self) -> Member<'_> {
        join(self, &self.slots)
    }

    fn get(&self, me: &Member<'_>, key: u32) -> Option<u32> {
        self.map.get(me, &Key(key)).unwrap().map(|[number, check]| {
            assert_eq!(check, !number, "a value is torn");
            number
        })
    }

    /// What the map has, as it says in all ways: keys with numbers, in the order of the keys.
    fn contents(&self, me: &Member<'_>) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        self.map.for_each(me, |Key(key), [number, _]| all.push((key, number))).unwrap();
        all.sort_unstable();
        let found: Vec<_> = (0..5).filter_map(|key| Some((key, self.get(me, key)?))).collect();
        assert_eq!(all, found, "what is found is not what is there");
        assert_eq!(all.len(), self.map.len(), "the number of keys is wrong");
        all
    }

    /// The map works, and no room is lost.
    fn works(&self, me: &Member<'_>) {
        let before = self.contents(me);
        let more = (10..).take(CAPACITY - before.len());
        more.clone()
            .for_each(|key| assert_eq!(self.map.insert(me, Key(key), value(key)), Ok(None), "no room"));
        let full = Err(MapError::Full(value(0)));
        assert_eq!(self.map.insert(me, Key(20), value(0)), full, "too much room");
        more.for_each(|key| assert_eq!(self.map.remove(me, &Key(key)), Ok(Some(value(key)))));
        assert_eq!(self.contents(me), before);
        before.iter().for_each(|&(key, number)| {
            assert_eq!(self.map.remove(me, &Key(key)), Ok(Some(value(number))));
        });
        assert_eq!(self.contents(me), []);
    }

    fn resident(
        self: &Arc<Self>,
        role: impl FnOnce(&Self, &Member<'_>) + Send + 'static,
    ) -> thread::JoinHandle<()> {
        with(self, move |place| {
            let me = place.join();
            role(place, &me);
            std::mem::forget(me);
        })
    }
}

/// Thread 1 makes these changes, and may die. What is there is what some number of them have made
/// of the map. So another thread sees it, at any time.
fn changes(which: fn(&Place, &Member<'_>, u32)) -> impl Fn() + Clone + 'static {
    move || {
        const CHANGES: u32 = 3;
        let states: Vec<_> = (0..=CHANGES)
            .map(|number| {
                let place = Place::new();
                let me = place.join();
                begins(&place, &me);
                (0..number).for_each(|nth| which(&place, &me, nth));
                place.contents(&me)
            })
            .collect();
        let place = Place::new();
        let me = place.join();
        begins(&place, &me);
        let dying = place.resident(move |place, me| (0..CHANGES).for_each(|nth| which(place, me, nth)));
        let looking = place.resident(|place, me| {
            for _ in 0..2 {
                (0..5).for_each(|key| _ = place.get(me, key));
            }
        });
        let died = dying.join().is_err();
        looking.join().unwrap();
        let now = place.contents(&me);
        let possible = if died { &states[..] } else { &states[CHANGES as usize..] };
        assert!(possible.contains(&now), "{now:?} is none of {possible:?}");
        place.works(&me);
        std::mem::forget(me);
    }
}

fn begins(place: &Place, me: &Member<'_>) {
    place.map.insert(me, Key(0), value(100)).unwrap();
    place.map.insert(me, Key(1), value(101)).unwrap();
}

/// Puts keys in and takes them out, the first one of a row before the others.
fn inserts_and_removes(place: &Place, me: &Member<'_>, nth: u32) {
    match nth {
        0 => _ = place.map.insert(me, Key(2), value(102)).unwrap(),
        1 => _ = place.map.remove(me, &Key(0)).unwrap(),
        _ => _ = place.map.insert(me, Key(3), value(103)).unwrap(),
    }
}

fn replaces(place: &Place, me: &Member<'_>, nth: u32) {
    let more = |old: Option<Value>| old.map(|[number, _]| value(number + 10));
    place.map.update(me, Key(nth % 2), more).unwrap();
}

fn clears(place: &Place, me: &Member<'_>, nth: u32) {
    match nth {
        1 => place.map.clear(me).unwrap(),
        nth => _ = place.map.insert(me, Key(nth + 2), value(nth)).unwrap(),
    }
}

#[test]
fn a_change_that_a_death_cuts_off_is_there_or_not() {
    for kernel in Kernel::ALL {
        for which in [inserts_and_removes, replaces, clears] {
            at_each_step(1, kernel, false, 12, changes(which));
        }
    }
}

/// A thread that repairs may die, too.
#[test]
fn a_repair_that_a_death_cuts_off_is_made_again() {
    for kernel in Kernel::ALL {
        let config = || Config { deaths: Deaths::Threads(2), timeouts: true, ..sampled(2, kernel) };
        for which in [inserts_and_removes, replaces] {
            explore(config(), two_that_change(which));
        }
    }
}

/// Two threads change a key of their own each, and may die. What is there is what those have made
/// of the map that have come to their end, and perhaps the others.
fn two_that_change(which: fn(&Place, &Member<'_>, u32)) -> impl Fn() + Clone + 'static {
    move || {
        let after = |made: [bool; 2]| {
            let place = Place::new();
            let me = place.join();
            begins(&place, &me);
            (0..2).filter(|&nth| made[nth as usize]).for_each(|nth| which(&place, &me, nth));
            place.contents(&me)
        };
        let place = Place::new();
        let me = place.join();
        begins(&place, &me);
        let threads = [0, 1].map(|nth| place.resident(move |place, me| which(place, me, nth)));
        let ended = threads.map(|thread| thread.join().is_ok());
        let now = place.contents(&me);
        let made = |bits: u32| [0, 1].map(|nth| ended[nth] || bits >> nth & 1 == 1);
        let possible: Vec<_> = (0..4).map(|bits| after(made(bits))).collect();
        assert!(possible.contains(&now), "{now:?} is none of {possible:?}");
        place.works(&me);
        std::mem::forget(me);
    }
}

/// Threads count under one key each, and under one together.
fn counts<const THREADS: u32>() {
    let place = Place::new();
    let add = |old: Option<Value>| Some(value(old.map_or(1, |[number, _]| number + 1)));
    let threads: Vec<_> = (1..=THREADS)
        .map(|own| {
            place.resident(move |place, me| {
                for key in [0, own] {
                    place.map.update(me, Key(key), add).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let me = place.join();
    let own = (1..=THREADS).map(|own| (own, 1));
    assert_eq!(place.contents(&me), [(0, THREADS)].into_iter().chain(own).collect::<Vec<_>>());
    place.works(&me);
    std::mem::forget(me);
}

#[test]
fn no_change_is_lost_to_another() {
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), counts::<2>);
    }
}
