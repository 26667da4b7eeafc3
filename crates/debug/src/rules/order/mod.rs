//! The order of locks: a graph that may not have a circle.
//!
//! # Vertices
//! A vertex is a class with a subclass, or, if a lock has no class, the lock itself. An edge from A
//! to B says that a thread held A and asked for B in a way that can block. An edge that would close
//! a circle is not entered, and reported: from then on some timing deadlocks.
//!
//! A program may nest locks of one class and subclass, by their addresses, say. Those are ordered
//! one by one, by their numbers. Such an edge leads from lock to lock, and never to a class.
//!
//! Edges come from *all* locks that a thread holds. So what is checked is the set of held locks and
//! the lock that is asked for. A set is the sum of the hashes of its vertices, which an acquisition
//! and a release keep up to date. Keys of sets that break no rule are remembered (`validated.rs`).
//! Two sets have the same 64 bits with a probability of 2^-64; then an inversion may be missed.
//!
//! # Which locks
//! A circle goes through classes, and a report is about locks. So an edge remembers the locks of
//! its first use, and a circle is judged by those. At each vertex one lock was asked for, and one
//! was held:
//!
//! | the two are | judgement |
//! |---|---|
//! | the same, at all vertices | these locks wait for each other: a fault |
//! | different locks of named classes, or of subclasses | a fault, which says so |
//! | different locks, no statics, in two pairs equally far apart | fields of objects: a fault, which says so |
//! | different locks of the class of a line | a warning, which says so; the class is dissolved |
//!
//! The vertex of a class that is dissolved is replaced by those of its locks. Its edges go to the
//! locks that they were first seen with.
//!
//! # Readers
//! An edge also says in what way the one lock was held and the other asked for. A circle counts
//! only if each of its locks is held in a way that keeps the thread waiting that asks for it:
//! [`Access::blocks`]. So a circle of readers that pass waiting writers is no inversion. One of
//! plain readers is, since writers may come between.
//!
//! # Locks that are dropped
//! A lock takes its edges with it, so no later lock inherits them. Those of its class stay.

mod graph;
mod memory;

pub(crate) use crate::seen::known::{is_known, remember};

use crate::rules::accept::is_accepted;
#[cfg(doc)]
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Node, lock_of, own_vertex};
use crate::seen::policy::is_strict;
use crate::seen::report::{Circle, Report, Rule, Severity, Step, ThreadName};
use crate::seen::signal::{Edge, handled};
use crate::seen::stacks::{self, Stack};
use crate::seen::thread::{Held, Record};
use graph::{Graph, Key, LOOKS, Set, Vertex};
use smallvec::SmallVec;
use std::sync::Arc;
use ulocks_core::sync::{AtomicU16, Ordering::Relaxed};
use ulocks_profile::counting::ForkMutex;

type Gates = SmallVec<[u64; 2]>;

/// How a thread used an edge first.
#[derive(Clone)]
struct Seen {
    thread: Arc<ThreadName>,
    held: Held,
    asked: Asked,
    /// The locks that the thread had alone or upgradable each time, by number.
    gates: Gates,
    /// How often it was looked at while keys did not tell its gates from other locks.
    looks: u8,
    signal: Option<u32>,
    stacks: Option<Box<[Option<Stack>; 2]>>,
}

impl Seen {
    fn step(&self) -> Step {
        let [held_stack, asked_stack] = self.stacks.as_deref().cloned().unwrap_or_default();
        Step {
            thread: (*self.thread).clone(),
            held: self.held.name(),
            since: self.held.place,
            held_stack,
            asked: self.asked.name(),
            at: self.asked.at,
            asked_stack,
            signal: self.signal,
        }
    }

    /// The edge: from lock to lock if both are of one vertex.
    fn key(&self) -> Key {
        edge_of(&self.held, &self.asked)
    }

    /// How far the one lock lies from the other.
    fn apart(&self) -> usize {
        self.held.lock.wrapping_sub(self.asked.lock)
    }
}

fn edge_of(held: &Held, asked: &Asked) -> Key {
    let (mut from, mut to) = (held.vertex(), asked.vertex());
    if from == to {
        from = own_vertex(held.subclass, held.instance);
        to = own_vertex(asked.subclass, asked.instance);
    }
    Key::new((from, held.access), (to, asked.access))
}

pub(crate) struct Orders {
    graph: Graph,
    /// Edges that were reported, and are not in the graph.
    bad: Set<Key>,
    /// The thread of the last new edge.
    thread: Option<Arc<ThreadName>>,
}

pub(crate) static GRAPH: ForkMutex<Orders> =
    ForkMutex::new(Orders { graph: Graph::new(), bad: Set::with_hasher(graph::hasher()), thread: None });

/// How many vertices and ends of bad edges there are of locks whose numbers have this remainder.
/// Written under the lock of the graph. It tells a lock that is dropped whether to look there.
static VERTICES: [AtomicU16; 1 << 15] = [const { AtomicU16::new(0) }; 1 << 15];

fn count(number: u64) -> &'static AtomicU16 {
    &VERTICES[number as usize % VERTICES.len()]
}

/// A vertex is made, or is no more.
fn count_vertex(vertex: Vertex, made: bool) {
    let Some(number) = lock_of(vertex) else { return };
    // A count that was full once stays.
    let step = |count: u16| match count {
        u16::MAX => None,
        _ => Some(if made { count + 1 } else { count - 1 }),
    };
    let _ = count(number).fetch_update(Relaxed, Relaxed, step);
}

/// An edge is bad, or is no more. A lock that is dropped has to look for it, also if it has no
/// vertex.
fn count_ends(key: &Key, made: bool) {
    [key.from, key.to].into_iter().for_each(|vertex| count_vertex(vertex, made));
}

/// The lock of this number is dropped.
#[inline]
pub(crate) fn dropped(number: u64) {
    if count(number).load(Relaxed) != 0 {
        forget(number);
    }
}

#[cold]
fn forget(number: u64) {
    // A handler may have interrupted a thread that has the graph.
    if crate::seen::thread::is_in_handler() {
        return;
    }
    let mut orders = GRAPH.lock();
    for subclass in 0..crate::seen::class::SUBCLASSES {
        orders.graph.forget(own_vertex(subclass, number));
    }
    orders.bad.retain(|key| {
        let is_gone = [key.from, key.to].map(lock_of).contains(&Some(number));
        if is_gone {
            count_ends(key, false);
        }
        !is_gone
    });
}

/// The key of an acquisition by a thread that holds something: what it holds, and what it asks for.
#[inline(always)]
pub(crate) fn key(me: &Record, asked: &Asked) -> u64 {
    key_of(me.sum(), asked.hash())
}

/// The key of an acquisition: of the sum of what is held, and the hash of what is asked for.
#[inline(always)]
pub(crate) fn key_of(held: u64, asked: u64) -> u64 {
    // Both are as good as random.
    held ^ asked.rotate_left(23)
}

/// Whether the thread is the first one to nest locks of this class in each other. Its key does not
/// tell them apart then, and must not be remembered; later keys do.
#[cold]
pub(crate) fn nests_first(me: &Record, asked: &Asked) -> bool {
    me.held().any(|held| held.vertex() == asked.vertex() && held.instance != asked.instance)
        && asked.class.nests()
}

/// The locks that a thread has as no other one can, beside this one.
fn others(me: &Record, held: &Held) -> impl Iterator<Item = Held> {
    let instance = held.instance;
    me.held().filter(move |other| other.access.is_gate() && other.instance != instance)
}

fn gates(me: &Record, held: &Held) -> Gates {
    others(me, held).map(|other| other.instance).collect()
}

fn is_gate(me: &Record, held: &Held, gate: u64) -> bool {
    others(me, held).any(|other| other.instance == gate)
}

/// An inversion.
pub(crate) struct Found {
    pub report: Report,
    /// The edge that would close the circle.
    edge: Key,
}

/// What the check of an acquisition has found.
pub(crate) struct Checked {
    /// The inversions: first what the program accepts, then warnings, then faults, which may panic.
    pub found: Vec<Found>,
    /// Whether each acquisition with this key has the same gates.
    pub is_settled: bool,
}

/// Enters the edges of an acquisition that close no circle. Returns the inversions of the others.
#[cold]
pub(crate) fn check(me: &Record, asked: &Asked) -> Checked {
    let mut orders = GRAPH.lock();
    let found = orders.find_all(me, asked, Use::Enter);
    let is_settled = orders.settle(me, asked);
    drop(orders);
    Checked { found: by_weight(found), is_settled }
}

/// The inversions of an acquisition that is perhaps not made, as [`check`] returns them.
#[cold]
pub(crate) fn look(me: &Record, asked: &Asked) -> Vec<Found> {
    let found = GRAPH.lock().find_all(me, asked, Use::Look);
    by_weight(found)
}

fn by_weight(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|Found { report, .. }| (!is_accepted(report), report.severity == Severity::Fault));
    found
}

/// Whether an inversion was not reported before. It is from now on.
#[cold]
pub(crate) fn is_first(found: &Found) -> bool {
    GRAPH.lock().is_first(found)
}

/// Why an edge is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A thread uses it. It is entered if it closes no circle.
    Enter,
    /// A thread uses it perhaps.
    Look,
}

/// Enters the edges that signal handlers have left. Returns the first inversion among them that was
/// not found before.
#[cold]
pub(crate) fn enter_from_handlers(edges: Vec<Edge>) -> Option<Report> {
    let mut orders = GRAPH.lock();
    handled().for_each(|held| orders.put_behind(held.vertex()));
    edges.into_iter().find_map(|Edge { held, asked, thread, signal }| {
        if orders.graph.knows(&edge_of(&held, &asked), |_| false) {
            return None;
        }
        let (thread, signal) = (Arc::new(thread.name()), Some(signal));
        let seen = Seen { thread, held, asked, gates: Gates::new(), looks: 0, signal, stacks: None };
        let found = orders.find(&seen, Use::Enter)?;
        orders.is_first(&found).then_some(found.report)
    })
}

impl Orders {
    fn thread(&mut self, me: &Record) -> Arc<ThreadName> {
        let name = me.name();
        match &self.thread {
            Some(thread) if **thread == name => thread.clone(),
            _ => self.thread.insert(Arc::new(name)).clone(),
        }
    }

    /// Whether the gates of an acquisition's edges are those of each acquisition with its key. If
    /// an edge was looked at often enough, its gates will be.
    fn settle(&mut self, me: &Record, asked: &Asked) -> bool {
        let mut is_settled = true;
        for held in me.held().filter(|held| held.lock != asked.lock) {
            let Some(seen) = self.graph.gated(&edge_of(&held, asked)) else { continue };
            let of_class = |gate: &Held| gate.class.is_by_class() && seen.gates.contains(&gate.instance);
            if !others(me, &held).any(|gate| of_class(&gate)) {
                continue;
            }
            is_settled = false;
            if seen.looks >= LOOKS {
                others(me, &held).filter(of_class).for_each(|gate| _ = gate.class.nests());
            }
            seen.looks = seen.looks.saturating_add(1);
        }
        is_settled
    }

    /// The inversions of an acquisition.
    fn find_all(&mut self, me: &Record, asked: &Asked, how: Use) -> Vec<Found> {
        let knows = |held: Held| {
            let is_gate = |gate| is_gate(me, &held, gate);
            held.lock == asked.lock || self.graph.knows(&edge_of(&held, asked), is_gate)
        };
        if me.held().all(knows) {
            return Vec::new();
        }
        let (thread, here) = (self.thread(me), stacks::here(Some(asked.at)));
        // The latest first: that is the pair which the report is to name. The clock is coarse. Of
        // two locks of one moment, the later one mostly has the higher slot.
        let mut held: Vec<Held> = me.held().filter(|held| held.lock != asked.lock).collect();
        held.reverse();
        held.sort_by_key(|held| core::cmp::Reverse(held.since));
        let find = |held: Held| {
            let stacks = [stacks::of(me, held.since), here.clone()];
            let stacks = stacks.iter().any(Option::is_some).then(|| Box::new(stacks));
            let (thread, gates) = (thread.clone(), gates(me, &held));
            self.find(&Seen { thread, held, asked: *asked, gates, looks: 0, signal: None, stacks }, how)
        };
        held.into_iter().filter_map(find).collect()
    }

    /// A thread uses an edge, or is about to. Returns the inversion.
    fn find(&mut self, seen: &Seen, how: Use) -> Option<Found> {
        let edge = seen.key();
        let back = match how {
            Use::Enter => self.graph.enter(edge, seen.clone()),
            Use::Look => self.graph.look(edge, &seen.gates),
        };
        let Some(back) = back else {
            if how == Use::Enter && seen.held.class.uses().is_ahead() && seen.asked.class.uses().put_behind()
            {
                self.put_behind(edge.to);
            }
            return None;
        };
        let rest = back.iter().map(|key| self.graph.seen(key).clone());
        let circle: Vec<Seen> = core::iter::once(seen.clone()).chain(rest).collect();
        let differing = differing(&circle);
        let verdict = judge(&circle, &differing);
        if verdict == Circle::Guessed {
            let dissolved = differing.iter().filter(|(_, class)| self.dissolve(class)).count();
            // These locks may be in a circle all the same, which goes on inside of the class.
            if dissolved > 0
                && let Some(found) = self.find(seen, how)
            {
                return Some(found);
            }
        } else if how == Use::Enter {
            // It is there if it has lost a gate just now. The next use is to find the circle again.
            self.graph.remove(edge);
        }
        Some(Found { report: inversion(&circle, &differing, verdict), edge })
    }

    fn is_first(&mut self, Found { report, edge }: &Found) -> bool {
        // A guess dissolves its classes, and is not made again.
        if report.circle == Circle::Guessed {
            return true;
        }
        let is_first = self.bad.insert(*edge);
        if is_first {
            count_ends(edge, true);
        }
        is_first
    }

    /// What a vertex leads to is behind a lock of a handler (`signal/uses.rs`).
    fn put_behind(&self, vertex: Vertex) {
        let mut rest = vec![vertex];
        while let Some(vertex) = rest.pop() {
            for key in self.graph.edges_of(vertex).into_iter().filter(|key| key.from == vertex) {
                if self.graph.seen(&key).asked.class.uses().put_behind() {
                    rest.push(key.to);
                }
            }
        }
    }

    /// The locks of a class have an order each from now on. `false` if they keep that of the class.
    fn dissolve(&mut self, class: &'static Node) -> bool {
        if !class.is_one() || class.is_named() {
            return false;
        }
        let vertices = (0..crate::seen::class::SUBCLASSES).map(|subclass| class.vertex(subclass, 0));
        let keys: Vec<Key> = vertices.flat_map(|vertex| self.graph.edges_of(vertex)).collect();
        let edges: Vec<Seen> = keys.into_iter().filter_map(|key| self.graph.remove(key)).collect();
        class.dissolve();
        for seen in edges {
            // A part of an order without circles has none.
            self.graph.enter(seen.key(), seen);
        }
        true
    }
}

/// The steps that ask for another lock of a class than the next step holds.
fn differing(circle: &[Seen]) -> Vec<(usize, &'static Node)> {
    let next = circle.iter().cycle().skip(1);
    let steps = circle.iter().zip(next).enumerate();
    let differing = steps.filter(|(_, (step, next))| step.asked.instance != next.held.instance);
    differing.map(|(index, (step, _))| (index, step.asked.class)).collect()
}

/// What a circle is, with the vertices at which its locks differ.
fn judge(circle: &[Seen], differing: &[(usize, &'static Node)]) -> Circle {
    let is_of_levels = |class: &&'static Node| {
        let mut subclasses = circle.iter().filter(|step| core::ptr::eq(step.asked.class, *class));
        let first = subclasses.next().map(|step| step.asked.subclass);
        subclasses.any(|step| Some(step.asked.subclass) != first)
    };
    let are_objects = || {
        let [one, other] = circle else { return false };
        // The second step holds what the first one asks for.
        differing.len() == 2
            && one.apart() == other.apart().wrapping_neg()
            && [one.held.lock, one.asked.lock].into_iter().all(memory::is_made)
    };
    match differing {
        [] => Circle::OfLocks,
        _ if differing.iter().all(|(_, class)| class.is_named() || is_of_levels(class)) => Circle::OfClasses,
        _ if are_objects() || is_strict() => Circle::OfClasses,
        _ => Circle::Guessed,
    }
}

fn inversion(circle: &[Seen], differing: &[(usize, &'static Node)], verdict: Circle) -> Report {
    let Seen { held, asked, .. } = &circle[0];
    let steps: Vec<Step> = circle.iter().map(Seen::step).collect();
    let mut notes = Vec::new();
    for (index, class) in differing {
        let next = (index + 1) % circle.len();
        let (asked, held) = (circle[*index].asked.instance, circle[next].held.instance);
        notes.push(format!(
            "#{asked} of step {} and #{held} of step {} are different locks of the class `{}`",
            index + 1,
            next + 1,
            class.name()
        ));
    }
    let is_read = |index: usize| {
        let held = circle[(index + 1) % circle.len()].held.access;
        circle[index].asked.access.is_shared() && held.is_shared()
    };
    let readers: Vec<String> =
        (0..circle.len()).filter(|&index| is_read(index)).map(|index| (index + 1).to_string()).collect();
    if !readers.is_empty() {
        notes.push(format!(
            "step {} asks to read what is held to read: it waits if a writer comes between",
            readers.join(" and ")
        ));
    }
    Report {
        rule: Rule::Order,
        severity: if verdict == Circle::Guessed { Severity::Warning } else { Severity::Fault },
        circle: verdict,
        lock: asked.name(),
        thread: steps[0].thread.clone(),
        here: Some(asked.at),
        before: Some(held.place),
        held: Some(held.access),
        held_lock: None,
        holder: Some(steps[0].thread.clone()),
        signal: steps.iter().find_map(|step| step.signal),
        notes,
        stack: steps[0].asked_stack.clone(),
        stack_before: steps[0].held_stack.clone(),
        steps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Mutex};

    /// An acquisition under a gate is looked at a few times, and not any more.
    #[test]
    fn a_gate_is_told_apart_after_a_few_looks() {
        static GATES: Class = Class::new("gates of a test");
        let gate = Mutex::new_in(&GATES, 0);
        let [one, other] = [(); 2].map(|()| Box::<Mutex<u32>>::default());
        // Both edges are looked at, one with the first two locks and one with all three.
        for _ in 0..=LOOKS + 2 {
            drop((gate.lock(), one.lock(), other.lock()));
        }
        let _held = (gate.lock(), one.lock());
        let me = crate::seen::thread::existing().expect("it holds locks");
        let in_other = other.lock();
        let asked = me.held().last().map(|held| Asked::again(&held)).expect("it holds three");
        drop(in_other);
        assert!(me.is_validated(key(me, &asked)), "it looks at the graph each time");
    }
}
