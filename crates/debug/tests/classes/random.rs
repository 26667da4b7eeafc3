//! Random programs, and an exhaustive search for what the graph of the order finds at once.
//!
//! A program nests its locks again and again. The search keeps each order, with the locks that its
//! thread had alone each time, and tries all ways back. The first inversion is reported at the
//! acquisition at which the search finds it, and nothing is reported before.

use super::{REPORTS, reports};
use std::collections::{BTreeMap, BTreeSet};
use ulocks_debug::Access::{self, Exclusive, Read, Upgradable, Write};
use ulocks_debug::{Class, Mutex, RwLock};

/// A lock by its number, and a way to acquire it.
type Use = (usize, Access);

enum Lock {
    Plain(Box<Mutex<u32>>),
    Shared(Box<RwLock<u32>>),
}

/// Whether the one keeps the other waiting.
fn keeps(held: Access, asked: Access) -> bool {
    (held, asked) != (Upgradable, Read(0))
}

/// The orders so far, each with the locks that its thread had alone each time.
struct Search {
    /// The class of each lock. Without, each has an order of its own.
    classes: Option<Vec<usize>>,
    orders: BTreeMap<(Use, Use), BTreeSet<usize>>,
}

impl Search {
    /// Whether orders lead from `at` to `goal`, of which no two have a gate in common.
    fn leads(&self, at: Use, goal: Use, gates: &BTreeSet<usize>, seen: &mut Vec<Use>) -> bool {
        if at.0 == goal.0 && keeps(goal.1, at.1) {
            return true;
        }
        seen.push(at);
        let found = self.orders.iter().any(|(&(held, asked), of_order)| {
            let is_open = held.0 == at.0 && keeps(held.1, at.1) && gates.is_disjoint(of_order);
            is_open && !seen.contains(&asked) && self.leads(asked, goal, &(gates | of_order), seen)
        });
        seen.pop();
        found
    }

    /// A thread that holds these locks asks for one. Whether that is an inversion.
    fn asks(&mut self, all_held: &[Use], (lock, access): Use) -> bool {
        let mut found = false;
        for &(held, held_as) in all_held {
            let is_gate = |other: &&Use| other.0 != held && matches!(other.1, Exclusive | Write | Upgradable);
            let gates: BTreeSet<usize> = all_held.iter().filter(is_gate).map(|other| other.0).collect();
            // An order within a class is one of its locks.
            let (from, to) = match &self.classes {
                Some(classes) if classes[held] != classes[lock] => (!classes[held], !classes[lock]),
                _ => (held, lock),
            };
            let (from, to) = ((from, held_as), (to, access));
            if let Some(before) = self.orders.get_mut(&(from, to)) {
                if before.is_subset(&gates) {
                    continue;
                }
                *before = &*before & &gates;
            }
            let is_wrong = self.leads(to, from, &gates, &mut Vec::new());
            if !is_wrong {
                self.orders.entry((from, to)).or_insert(gates);
            }
            found |= is_wrong;
        }
        found
    }

    /// Nests locks as planned. Whether that ended with an inversion.
    fn nest(&mut self, locks: &[Lock], held: &mut Vec<Use>, plan: &[Use]) -> bool {
        let Some((&asked, rest)) = plan.split_first() else { return false };
        let expected = self.asks(held, asked);
        let mut goes_on = || {
            let reported = REPORTS.lock().unwrap().len();
            assert_eq!(reported > 0, expected, "{held:?}, and then {asked:?}");
            held.push(asked);
            let ended = expected || self.nest(locks, held, rest);
            held.pop();
            ended
        };
        match (&locks[asked.0], asked.1) {
            (Lock::Plain(lock), _) => (lock.lock(), goes_on()).1,
            (Lock::Shared(lock), Write) => (lock.write(), goes_on()).1,
            (Lock::Shared(lock), Upgradable) => (lock.upgradable_read(), goes_on()).1,
            (Lock::Shared(lock), _) => (lock.read(), goes_on()).1,
        }
    }
}

/// A program by its number. Whether it has an inversion.
fn has_inversion(program: u64) -> bool {
    let mut seed = program.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    let count = 3 + below(4);
    let is_plain: Vec<bool> = (0..count).map(|lock| lock < 2 || below(2) == 0).collect();
    let classes: Option<Vec<usize>> =
        (program.is_multiple_of(2)).then(|| (0..count).map(|_| below(3)).collect());
    // A class is known by its name.
    let named = [0, 1, 2].map(|class| &*Box::leak(format!("class {class} of {program}").into_boxed_str()));
    let named = named.map(|name| &*Box::leak(Box::new(Class::new(name))));
    // Boxes that the standard library makes have no class.
    let make = |lock: usize| match (&classes, is_plain[lock]) {
        (Some(classes), true) => Lock::Plain(Box::new(Mutex::new_in(named[classes[lock]], 0))),
        (Some(classes), false) => Lock::Shared(Box::new(RwLock::new_in(named[classes[lock]], 0))),
        (None, true) => Lock::Plain(Box::default()),
        (None, false) => Lock::Shared(Box::default()),
    };
    let locks: Vec<Lock> = (0..count).map(make).collect();
    let mut search = Search { classes, orders: BTreeMap::new() };
    (0..40).any(|_| {
        // Mostly in order, and under one of two gates.
        let mut order: Vec<usize> = (0..count).collect();
        let mixed = if below(4) == 0 { count } else { count / 2 };
        (1..mixed).for_each(|last| order.swap(last, below(last + 1)));
        let gate = order.iter().position(|&lock| lock == below(2)).unwrap_or(0);
        order[..=gate].rotate_right(1);
        order.truncate(1 + below(count));
        let uses = order.iter().map(|&lock| match is_plain[lock] {
            true => (lock, Exclusive),
            false => (lock, [Write, Read(0), Read(0), Upgradable][below(4)]),
        });
        let plan: Vec<Use> = uses.collect();
        search.nest(&locks, &mut Vec::new(), &plan)
    })
}

#[test]
fn the_first_inversion_is_that_of_an_exhaustive_search() {
    let inversions = (0..400).filter(|&program| {
        let is_found = |found: Vec<_>| !found.is_empty();
        is_found(reports(move || _ = has_inversion(program)))
    });
    assert!(inversions.count() > 200, "most programs have one");
}
