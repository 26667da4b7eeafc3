//! The order of locks: a graph that may not have a circle.
//!
//! A vertex is a class with a subclass. An edge from A to B says that a thread held A and asked for
//! B in a way that can block. An edge that would close a circle is not entered, and reported: from
//! then on some timing deadlocks. No edge is ever removed, so a dropped lock loses no order.
//!
//! Edges come from *all* locks that a thread holds. So what is checked is the set of held locks and
//! the lock that is asked for. A set is the sum of the hashes of its members, which an acquisition
//! and a release keep up to date. A thread remembers 256 pairs of a set and a lock. If the pair is
//! among them, all edges are in the graph, and nothing else is looked at. Two pairs have the same
//! 64 bits with a probability of 2^-64; then an inversion may be missed.
//!
//! # Locks of one class
//! A program may nest locks of one class and subclass, by their addresses, say. A rule for classes
//! would report it. So those are ordered one by one, by the numbers that locks get at their first
//! acquisition. A class remembers the last 256 nestings of two of its locks. A circle among those
//! is an inversion. A circle with an older nesting is not found.

use crate::class::Node;
use crate::report::{Place, Report, Rule, Severity, Step, ThreadName};
use crate::thread::{Held, Record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use ulocks_unfair::Mutex;

/// How many nestings of two locks of one class are remembered.
const NESTINGS: usize = 256;

struct Edge {
    step: Step,
}

#[derive(Default)]
struct Same {
    nestings: VecDeque<(u64, u64, Step)>,
}

pub(crate) struct Graph {
    /// By the vertices that it leads from, and to.
    edges: BTreeMap<u32, BTreeMap<u32, Edge>>,
    same: BTreeMap<u32, Same>,
    /// Edges that were reported and not entered.
    bad: BTreeSet<(u64, u64)>,
}

pub(crate) static GRAPH: Mutex<Graph> =
    Mutex::new(Graph { edges: BTreeMap::new(), same: BTreeMap::new(), bad: BTreeSet::new() });

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub lock: usize,
    pub class: &'static Node,
    pub subclass: u8,
    pub instance: u64,
    pub at: Place,
}

/// The key of an acquisition by a thread: what it holds, and what it asks for.
#[inline]
pub(crate) fn key(me: &Record, asked: &Asked) -> u64 {
    let vertex = asked.class.hash(asked.subclass);
    let key = crate::class::mix(me.sum() ^ vertex.rotate_left(23));
    if me.may_hold(asked.class) { with_instances(me, asked, key) } else { key }
}

/// If the thread holds locks of the class that it asks for, the locks count and not only the class.
#[cold]
fn with_instances(me: &Record, asked: &Asked, key: u64) -> u64 {
    let is_same = |held: &Held| held.class.vertex(held.subclass) == asked.class.vertex(asked.subclass);
    let mut same = me.held().filter(is_same).peekable();
    if same.peek().is_none() {
        return key;
    }
    let sum = same.fold(0_u64, |sum, held| sum.wrapping_add(crate::class::mix(held.instance)));
    crate::class::mix(key ^ sum.rotate_left(17) ^ crate::class::mix(asked.instance).rotate_left(41))
}

/// Enters the edges of an acquisition. Returns the first inversion among them.
///
/// `again` is whether an inversion that has been reported is to be reported again.
#[cold]
pub(crate) fn check(me: &Record, asked: &Asked, again: bool) -> Result<(), Option<Box<Report>>> {
    let thread = me.name();
    let mut graph = GRAPH.lock();
    let mut outcome = Ok(());
    // The latest first: that is the pair which the report is to name. The clock is coarse. Of two
    // locks of one moment, the later one mostly has the higher slot.
    let mut held: Vec<Held> = me.held().collect();
    held.reverse();
    held.sort_by_key(|held| core::cmp::Reverse(held.since));
    for held in held {
        if held.lock == asked.lock {
            continue;
        }
        let step = step(&thread, &held, asked);
        let circle = if held.class.vertex(held.subclass) == asked.class.vertex(asked.subclass) {
            graph.enter_same(&held, asked, &step)
        } else {
            graph.enter(&held, asked, &step)
        };
        let Some(circle) = circle else { continue };
        let pair = if held.class.vertex(held.subclass) == asked.class.vertex(asked.subclass) {
            (1 << 63 | held.instance, asked.instance)
        } else {
            (held.class.vertex(held.subclass).into(), asked.class.vertex(asked.subclass).into())
        };
        let is_new = graph.bad.insert(pair);
        if outcome.is_err() {
            continue;
        }
        outcome = Err((is_new || again).then(|| Box::new(inversion(&thread, &held, asked, circle))));
    }
    outcome
}

fn step(thread: &ThreadName, held: &Held, asked: &Asked) -> Step {
    Step {
        thread: thread.clone(),
        held: held.class.lock_name(held.lock, held.subclass),
        since: held.place,
        asked: asked.class.lock_name(asked.lock, asked.subclass),
        at: asked.at,
    }
}

fn inversion(thread: &ThreadName, held: &Held, asked: &Asked, steps: Vec<Step>) -> Report {
    Report {
        rule: Rule::Order,
        severity: Severity::Fault,
        lock: asked.class.lock_name(asked.lock, asked.subclass),
        thread: thread.clone(),
        here: Some(asked.at),
        before: Some(held.place),
        holder: Some(thread.clone()),
        steps,
    }
}

impl Graph {
    /// Enters the edge of two classes. Returns the circle that it would close, this edge first.
    fn enter(&mut self, held: &Held, asked: &Asked, step: &Step) -> Option<Vec<Step>> {
        let (from, to) = (held.class.vertex(held.subclass), asked.class.vertex(asked.subclass));
        if self.edges.get(&from).is_some_and(|edges| edges.contains_key(&to)) {
            return None;
        }
        if let Some(path) = self.path(to, from) {
            return Some(core::iter::once(step.clone()).chain(path).collect());
        }
        self.edges.entry(from).or_default().insert(to, Edge { step: step.clone() });
        None
    }

    /// A shortest way from one vertex to another.
    fn path(&self, from: u32, to: u32) -> Option<Vec<Step>> {
        let mut came_from = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(vertex) = queue.pop_front() {
            if vertex == to {
                return Some(self.way_back(&came_from, from, to));
            }
            for &next in self.edges.get(&vertex).into_iter().flat_map(BTreeMap::keys) {
                if next != from && !came_from.contains_key(&next) {
                    came_from.insert(next, vertex);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    fn way_back(&self, came_from: &BTreeMap<u32, u32>, from: u32, to: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut vertex = to;
        while vertex != from {
            let before = came_from[&vertex];
            steps.push(self.edges[&before][&vertex].step.clone());
            vertex = before;
        }
        steps.reverse();
        steps
    }

    /// Enters a nesting of two locks of one class. Returns the circle that it would close.
    fn enter_same(&mut self, held: &Held, asked: &Asked, step: &Step) -> Option<Vec<Step>> {
        let (from, to) = (held.instance, asked.instance);
        let same = self.same.entry(asked.class.vertex(asked.subclass)).or_default();
        if same.nestings.iter().any(|nesting| (nesting.0, nesting.1) == (from, to)) {
            return None;
        }
        if let Some(path) = same.path(to, from, &mut BTreeSet::new()) {
            return Some(core::iter::once(step.clone()).chain(path).collect());
        }
        if same.nestings.len() == NESTINGS {
            same.nestings.pop_front();
        }
        same.nestings.push_back((from, to, step.clone()));
        None
    }
}

impl Same {
    fn path(&self, from: u64, to: u64, seen: &mut BTreeSet<u64>) -> Option<Vec<Step>> {
        if from == to {
            return Some(Vec::new());
        }
        if !seen.insert(from) {
            return None;
        }
        self.nestings.iter().filter(|nesting| nesting.0 == from).find_map(|(_, next, step)| {
            let rest = self.path(*next, to, seen)?;
            Some(core::iter::once(step.clone()).chain(rest).collect())
        })
    }
}
