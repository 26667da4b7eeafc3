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
//! # Readers
//! An edge also says in what way the one lock was held and the other asked for. A circle counts
//! only if each of its locks is held in a way that keeps the thread waiting that asks for it:
//! [`Access::blocks`]. So a circle of readers that pass waiting writers is no inversion. One of
//! plain readers is, since writers may come between.
//!
//! # Locks of one class
//! A program may nest locks of one class and subclass, by their addresses, say. A rule for classes
//! would report it. So those are ordered one by one, by the numbers that locks get at their first
//! acquisition. A class remembers the last 256 nestings of two of its locks. A circle among those
//! is an inversion. A circle with an older nesting is not found.

use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Node, mix};
use crate::seen::report::{Report, Rule, Severity, Step, ThreadName};
use crate::seen::signal::Edge;
use crate::seen::stacks;
use crate::seen::thread::{Held, Record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use ulocks_unfair::BargingMutex;

/// How many nestings of two locks of one class are remembered.
const NESTINGS: usize = 256;

/// An edge without the vertex that it leads from: the vertex that it leads to, in what way the one
/// lock was held, and in what way the other was asked for.
type EdgeTo = (u32, Access, Access);
/// Nestings of two locks of one class: the held one, in what way, the asked one, in what way.
type Nesting = (u64, Access, u64, Access);

#[derive(Default)]
struct Same {
    nestings: VecDeque<(Nesting, Step)>,
}

pub(crate) struct Graph {
    /// By the vertices that they lead from.
    edges: BTreeMap<u32, BTreeMap<EdgeTo, Step>>,
    same: BTreeMap<u32, Same>,
    /// Edges that were reported and not entered.
    bad: BTreeSet<Nesting>,
}

pub(crate) static GRAPH: BargingMutex<Graph> =
    BargingMutex::new(Graph { edges: BTreeMap::new(), same: BTreeMap::new(), bad: BTreeSet::new() });

/// The key of an acquisition by a thread that holds something: what it holds, and what it asks for.
///
/// It is not the key if the thread holds locks of the class and subclass that it asks for. Such a
/// key is never validated, since [`key`] is another one then.
#[inline(always)]
pub(crate) fn class_key(me: &Record, class: &Node, subclass: u8, access: Access) -> u64 {
    // Both are as good as random.
    me.sum() ^ class.hash(subclass, access).rotate_left(23)
}

/// The key of an acquisition by a thread that holds something. If it holds locks of the class that
/// it asks for, the locks count and not only the class.
#[cold]
pub(crate) fn key(me: &Record, asked: &Asked) -> u64 {
    let key = class_key(me, asked.class, asked.subclass, asked.access);
    let is_same = |held: &Held| held.class.vertex(held.subclass) == asked.class.vertex(asked.subclass);
    let mut same = me.held().filter(is_same).peekable();
    if same.peek().is_none() {
        return key;
    }
    let one = |held: Held| mix(held.instance | u64::from(held.access.code()) << 56);
    let sum = same.fold(0_u64, |sum, held| sum.wrapping_add(one(held)));
    mix(key ^ sum.rotate_left(17) ^ mix(asked.instance).rotate_left(41))
}

/// Enters the edges of an acquisition. Returns the first inversion among them.
///
/// `again` is whether an inversion that has been reported is to be reported again.
#[cold]
pub(crate) fn check(me: &Record, asked: &Asked, again: bool) -> Result<(), Option<Box<Report>>> {
    let mut graph = GRAPH.lock();
    if me.held().all(|held| held.lock == asked.lock || graph.knows(&held, asked)) {
        // Nothing is new, so nothing is allocated.
        return Ok(());
    }
    let (thread, here) = (me.name(), stacks::here(Some(asked.at)));
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
        let mut step = step(&thread, &held, asked);
        (step.held_stack, step.asked_stack) = (stacks::of(me, held.since), here.clone());
        let circle = if held.class.vertex(held.subclass) == asked.class.vertex(asked.subclass) {
            graph.enter_same(&held, asked, &step)
        } else {
            graph.enter(&held, asked, &step)
        };
        let Some(circle) = circle else { continue };
        let is_new = graph.is_new(&held, asked);
        if outcome.is_err() {
            continue;
        }
        outcome = Err((is_new || again).then(|| Box::new(inversion(&step, &held, asked, circle))));
    }
    outcome
}

/// Enters the edges that signal handlers have left. Returns the first inversion among them that was
/// not found before.
#[cold]
pub(crate) fn enter_from_handlers(edges: Vec<Edge>) -> Option<Report> {
    let mut graph = GRAPH.lock();
    edges.into_iter().find_map(|Edge { held, asked, thread, signal }| {
        if graph.knows(&held, &asked) {
            return None;
        }
        let step = Step { signal: Some(signal), ..step(&thread.name(), &held, &asked) };
        let circle = graph.enter(&held, &asked, &step)?;
        graph.is_new(&held, &asked).then(|| inversion(&step, &held, &asked, circle))
    })
}

fn step(thread: &ThreadName, held: &Held, asked: &Asked) -> Step {
    Step {
        thread: thread.clone(),
        held: held.name(),
        since: held.place,
        held_stack: None,
        asked: asked.name(),
        at: asked.at,
        asked_stack: None,
        signal: None,
    }
}

fn inversion(step: &Step, held: &Held, asked: &Asked, steps: Vec<Step>) -> Report {
    Report {
        rule: Rule::Order,
        severity: Severity::Fault,
        lock: asked.name(),
        thread: step.thread.clone(),
        here: Some(asked.at),
        before: Some(held.place),
        held: Some(held.access),
        holder: Some(step.thread.clone()),
        signal: steps.iter().find_map(|step| step.signal),
        steps,
        stack: step.asked_stack.clone(),
        stack_before: step.held_stack.clone(),
    }
}

/// A lock or a class, and in what way it is asked for, or, at the goal, held.
type Request<V> = (V, Access);

/// Follows edges from what was asked for until a lock is asked for that the thread holds. Each
/// lock on the way must be held in a way that keeps waiting what asks for it. `next`
/// gives the edges out of a vertex.
fn way<'a, V: Copy + Ord>(
    from: Request<V>,
    goal: Request<V>,
    next: impl Fn(V) -> Vec<(Access, Request<V>, &'a Step)>,
) -> Option<Vec<Step>> {
    let mut came_from: BTreeMap<Request<V>, (Request<V>, &Step)> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(state @ (vertex, asked)) = queue.pop_front() {
        if vertex == goal.0 && goal.1.blocks(asked) {
            let mut steps = Vec::new();
            let mut state = state;
            while state != from {
                let (before, step) = came_from[&state];
                steps.push(step.clone());
                state = before;
            }
            steps.reverse();
            return Some(steps);
        }
        for (held, to, step) in next(vertex) {
            if held.blocks(asked) && to != from && !came_from.contains_key(&to) {
                came_from.insert(to, (state, step));
                queue.push_back(to);
            }
        }
    }
    None
}

impl Graph {
    /// Whether the edge or the nesting is entered already.
    fn knows(&self, held: &Held, asked: &Asked) -> bool {
        let (from, to) = (held.class.vertex(held.subclass), asked.class.vertex(asked.subclass));
        if from == to {
            let nesting = (held.instance, held.access, asked.instance, asked.access);
            return self.same.get(&to).is_some_and(|same| same.knows(nesting));
        }
        let edge = (to, held.access, asked.access);
        self.edges.get(&from).is_some_and(|edges| edges.contains_key(&edge))
    }

    /// Whether an edge that closes a circle was not found before. It is from now on.
    fn is_new(&mut self, held: &Held, asked: &Asked) -> bool {
        let (from, to) = (held.class.vertex(held.subclass), asked.class.vertex(asked.subclass));
        let (from, to) = match from == to {
            true => (1 << 63 | held.instance, asked.instance),
            false => (from.into(), to.into()),
        };
        self.bad.insert((from, held.access, to, asked.access))
    }

    /// Enters the edge of two classes. Returns the circle that it would close, this edge first.
    fn enter(&mut self, held: &Held, asked: &Asked, step: &Step) -> Option<Vec<Step>> {
        let (from, to) = (held.class.vertex(held.subclass), asked.class.vertex(asked.subclass));
        let edge = (to, held.access, asked.access);
        if self.knows(held, asked) {
            return None;
        }
        let out = |vertex| {
            let edges = self.edges.get(&vertex).into_iter().flatten();
            edges.map(|(&(to, held, asked), step)| (held, (to, asked), step)).collect()
        };
        if let Some(path) = way((to, asked.access), (from, held.access), out) {
            return Some(core::iter::once(step.clone()).chain(path).collect());
        }
        self.edges.entry(from).or_default().insert(edge, step.clone());
        None
    }

    /// Enters a nesting of two locks of one class. Returns the circle that it would close.
    fn enter_same(&mut self, held: &Held, asked: &Asked, step: &Step) -> Option<Vec<Step>> {
        let nesting = (held.instance, held.access, asked.instance, asked.access);
        let same = self.same.entry(asked.class.vertex(asked.subclass)).or_default();
        if same.knows(nesting) {
            return None;
        }
        let out = |lock| {
            let nestings = same.nestings.iter().filter(|(nesting, _)| nesting.0 == lock);
            nestings.map(|((_, held, to, asked), step)| (*held, (*to, *asked), step)).collect()
        };
        if let Some(path) = way((asked.instance, asked.access), (held.instance, held.access), out) {
            return Some(core::iter::once(step.clone()).chain(path).collect());
        }
        if same.nestings.len() == NESTINGS {
            same.nestings.pop_front();
        }
        same.nestings.push_back((nesting, step.clone()));
        None
    }
}

impl Same {
    fn knows(&self, nesting: Nesting) -> bool {
        self.nestings.iter().any(|(known, _)| *known == nesting)
    }
}
