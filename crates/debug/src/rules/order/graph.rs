//! A graph that knows at once whether an edge agrees with all that it has.
//!
//! # Rank
//! Each vertex has a rank, and an edge leads from a lower rank to a higher one. So a new edge that
//! leads upwards closes no circle, and nothing is searched. One that leads downwards is searched
//! for: from where it leads to, up to the rank of where it comes from. If that finds no way back,
//! the vertices that were found change ranks among themselves (Pearce and Kelly, 2006).
//!
//! # Loose edges
//! A way back need not be a circle of waits: a reader in it may pass, or a gate may keep two of its
//! steps apart. Then the edge is entered as a *loose* one, which the ranks do not know. While there
//! are loose edges, each new edge is searched for.
//!
//! # Gates
//! An edge has the locks that its thread had alone or upgradable, each time when it used the edge.
//! Two edges with such a lock in common are never used at once, so no circle goes through both. If
//! an edge is seen without a gate that it had, a circle may have been opened: it is searched for
//! again.
//!
//! A search that finds a way back through two such edges goes on: first without the gate's other
//! edges but the first of the two, then without that one. Each circle that is possible keeps to one
//! of these. After [`SEARCHES`] searches, a circle may be missed.
//!
//! A gate is one lock. The keys of acquisitions that are known to be right mostly tell of classes,
//! so the same key may stand for another lock of the gate's class. The key of an edge with such a
//! gate is not remembered at first. Mostly the edge is soon used under another gate, and has none
//! then. After [`LOOKS`] looks under the same one, keys tell the locks of its class apart.
//!
//! # Invariants
//! 1. An edge that is not loose leads from a lower rank to a higher one.
//! 2. `out` and `into` have each edge once, under its two vertices. `edges` has what is known of
//!    it.
//! 3. No more than [`MOST`] edges are kept. The oldest one is forgotten for a new one.

use super::Seen;
use crate::seen::access::Access;
use crate::seen::class::fold;
use core::hash::{BuildHasherDefault, Hash, Hasher};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// How many edges there are at most. A program whose locks of one class are all nested in each
/// other, pair by pair, takes this much memory for them (x86-64):
///
/// | locks | edges | MB | bytes an edge |
/// |---|---|---|---|
/// | 64 | 2,016 | 1.4 | 713 |
/// | 128 | 8,128 | 2.8 | 347 |
/// | 256 | 32,640 | 11 | 341 |
/// | 512 | 130,816 | 40 | 308 |
///
/// What lies further apart than that is not found: `tests/classes/traffic.rs` has 2,000 transfers.
const MOST: usize = 1 << 17;

/// How often an acquisition looks at an edge under the same gate. A class whose locks are told
/// apart needs a key for each of them, and a look takes the lock of the graph.
pub(super) const LOOKS: u8 = 3;

/// How often a way back is searched for, if gates keep apart the ways that were found.
const SEARCHES: usize = 64;

pub(super) type Vertex = u64;

/// A thread held `from` in one way and asked for `to` in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub from: Vertex,
    pub to: Vertex,
    how: u8,
}

impl Key {
    pub fn new((from, held): (Vertex, Access), (to, asked): (Vertex, Access)) -> Self {
        Self { from, to, how: (held.code() * 16 + asked.code()) as u8 }
    }

    pub fn held(&self) -> Access {
        Access::from_code(u32::from(self.how / 16))
    }

    pub fn asked(&self) -> Access {
        Access::from_code(u32::from(self.how % 16))
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.from);
        state.write_u64(self.to.rotate_left(32) ^ u64::from(self.how));
    }
}

/// The hash of a few words.
#[derive(Default)]
pub(super) struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = fold(self.0.rotate_left(5) ^ word);
    }
}

pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Folded>>;
pub(super) type Set<K> = HashSet<K, BuildHasherDefault<Folded>>;

pub(super) const fn hasher() -> BuildHasherDefault<Folded> {
    BuildHasherDefault::new()
}

#[derive(Default)]
struct Node {
    rank: i64,
    out: BTreeSet<(Vertex, u8)>,
    into: BTreeSet<(Vertex, u8)>,
}

pub(super) struct Graph {
    nodes: Map<Vertex, Node>,
    edges: Map<Key, Seen>,
    /// The keys of `edges` from the oldest, and some that are gone.
    line: VecDeque<Key>,
    loose: Set<Key>,
    /// All ranks are between these two.
    lowest: i64,
    highest: i64,
}

impl Graph {
    pub const fn new() -> Self {
        Self {
            nodes: Map::with_hasher(hasher()),
            edges: Map::with_hasher(hasher()),
            line: VecDeque::new(),
            loose: Set::with_hasher(hasher()),
            lowest: 0,
            highest: 0,
        }
    }

    /// Whether a thread uses this edge for nothing new, that has the locks alone which are `gates`.
    pub fn knows(&self, key: &Key, gates: impl Fn(u64) -> bool) -> bool {
        self.edges.get(key).is_some_and(|seen| seen.gates.iter().all(|gate| gates(*gate)))
    }

    /// The edge, if it is entered and has gates.
    pub fn gated(&mut self, key: &Key) -> Option<&mut Seen> {
        self.edges.get_mut(key).filter(|seen| !seen.gates.is_empty())
    }

    pub fn seen(&self, key: &Key) -> &Seen {
        &self.edges[key]
    }

    /// The gates of an edge that is entered.
    pub fn gates(&self, key: &Key) -> &[u64] {
        &self.seen(key).gates
    }

    /// A thread uses an edge. Returns the way back of the circle that is possible by it. An edge
    /// that is new is not entered then.
    pub fn enter(&mut self, key: Key, seen: Seen) -> Option<Vec<Key>> {
        if let Some(known) = self.edges.get_mut(&key) {
            let before = known.gates.len();
            known.gates.retain(|gate| seen.gates.contains(gate));
            return if known.gates.len() < before { self.way_back(key, &seen.gates) } else { None };
        }
        self.make_vertices(key.from, key.to);
        let is_upwards = self.arrange(key.from, key.to);
        if !is_upwards || !self.loose.is_empty() {
            let back = self.way_back(key, &seen.gates);
            if back.is_some() {
                self.prune(key.from);
                self.prune(key.to);
                return back;
            }
        }
        if !is_upwards {
            self.loose.insert(key);
        }
        self.insert(key, seen);
        None
    }

    /// The way back of the circle that would be possible if a thread used this edge.
    pub fn look(&self, key: Key, gates: &[u64]) -> Option<Vec<Key>> {
        let rank = |vertex| self.nodes.get(&vertex).map(|node| node.rank);
        // A vertex that is not there has no way.
        let is_upwards = rank(key.from).zip(rank(key.to)).is_none_or(|(from, to)| from < to);
        let is_right = is_upwards && self.loose.is_empty() || self.knows(&key, |gate| gates.contains(&gate));
        if is_right { None } else { self.way_back(key, gates) }
    }

    fn insert(&mut self, key: Key, seen: Seen) {
        if self.line.len() > 2 * self.edges.len() + 1024 {
            self.line.retain(|key| self.edges.contains_key(key));
        }
        self.line.push_back(key);
        self.edges.insert(key, seen);
        self.node(key.from).out.insert((key.to, key.how));
        self.node(key.to).into.insert((key.from, key.how));
        // Now that they have an edge, its vertices stay if they lose their others.
        while self.edges.len() > MOST {
            let Some(oldest) = self.line.pop_front() else { break };
            self.remove(oldest);
        }
    }

    fn node(&mut self, vertex: Vertex) -> &mut Node {
        self.nodes.get_mut(&vertex).expect("the vertex is there")
    }

    /// Takes an edge out, if it is there.
    pub fn remove(&mut self, key: Key) -> Option<Seen> {
        let seen = self.edges.remove(&key)?;
        self.loose.remove(&key);
        for (vertex, entry, is_out) in
            [(key.from, (key.to, key.how), true), (key.to, (key.from, key.how), false)]
        {
            let node = self.node(vertex);
            if is_out {
                node.out.remove(&entry)
            } else {
                node.into.remove(&entry)
            };
            self.prune(vertex);
        }
        Some(seen)
    }

    /// A vertex without edges is none.
    fn prune(&mut self, vertex: Vertex) {
        if self.nodes.get(&vertex).is_some_and(|node| node.out.is_empty() && node.into.is_empty()) {
            self.nodes.remove(&vertex);
            super::count_vertex(vertex, false);
        }
    }

    /// All edges of a vertex.
    pub fn edges_of(&self, vertex: Vertex) -> Vec<Key> {
        let Some(node) = self.nodes.get(&vertex) else { return Vec::new() };
        let out = node.out.iter().map(|&(to, how)| Key { from: vertex, to, how });
        let into = node.into.iter().map(|&(from, how)| Key { from, to: vertex, how });
        out.chain(into).collect()
    }

    /// Nothing is known of a vertex any more.
    pub fn forget(&mut self, vertex: Vertex) {
        for key in self.edges_of(vertex) {
            self.remove(key);
        }
    }

    /// Gives a rank to vertices that are new: below all others if edges will lead out of it, above
    /// them if edges will lead to it.
    fn make_vertices(&mut self, from: Vertex, to: Vertex) {
        if !self.nodes.contains_key(&to) {
            self.highest += 1;
            self.nodes.insert(to, Node { rank: self.highest, ..Node::default() });
            super::count_vertex(to, true);
        }
        if !self.nodes.contains_key(&from) {
            self.lowest -= 1;
            self.nodes.insert(from, Node { rank: self.lowest, ..Node::default() });
            super::count_vertex(from, true);
        }
    }

    /// Gives `from` a lower rank than `to`, unless there is a way back.
    fn arrange(&mut self, from: Vertex, to: Vertex) -> bool {
        let (high, low) = (self.nodes[&from].rank, self.nodes[&to].rank);
        if high < low {
            return true;
        }
        let after = self.reach(to, |node| &node.out, true, |rank| rank <= high);
        if after.contains(&from) {
            return false;
        }
        let before = self.reach(from, |node| &node.into, false, |rank| rank >= low);
        let rank = |vertex: &Vertex| self.nodes[vertex].rank;
        let sorted = |set: Set<Vertex>| {
            let mut all: Vec<Vertex> = set.into_iter().collect();
            all.sort_by_key(rank);
            all
        };
        let all = [sorted(before), sorted(after)].concat();
        let mut ranks: Vec<i64> = all.iter().map(rank).collect();
        ranks.sort_unstable();
        for (vertex, rank) in all.iter().zip(ranks) {
            self.node(*vertex).rank = rank;
        }
        true
    }

    /// What edges that are not loose lead to, among ranks that are `near`.
    fn reach(
        &self,
        start: Vertex,
        next: impl Fn(&Node) -> &BTreeSet<(Vertex, u8)>,
        forwards: bool,
        near: impl Fn(i64) -> bool,
    ) -> Set<Vertex> {
        let mut reached = Set::from_iter([start]);
        let mut rest = vec![start];
        while let Some(vertex) = rest.pop() {
            for &(other, how) in next(&self.nodes[&vertex]) {
                let (from, to) = if forwards { (vertex, other) } else { (other, vertex) };
                let is_loose = !self.loose.is_empty() && self.loose.contains(&Key { from, to, how });
                if !is_loose && near(self.nodes[&other].rank) && reached.insert(other) {
                    rest.push(other);
                }
            }
        }
        reached
    }

    /// The edges from where `key` leads to back to where it comes from, if threads that use all of
    /// them and `key` may wait for each other.
    fn way_back(&self, key: Key, gates: &[u64]) -> Option<Vec<Key>> {
        let mut rest = vec![Shut::default()];
        for _ in 0..SEARCHES {
            let shut = rest.pop()?;
            let is_open = |edge: &Key| {
                let has = |gate: &u64| self.gates(edge).contains(gate);
                !gates.iter().any(has) && !shut.is_shut(edge, has)
            };
            let path = self.way((key.to, key.asked()), (key.from, key.held()), is_open);
            let Some(path) = path else { continue };
            let Some((gate, first)) = self.apart(&path) else { return Some(path) };
            rest.push(Shut { edges: [&shut.edges[..], &[first]].concat(), ..shut.clone() });
            rest.push(Shut { gates: [&shut.gates[..], &[(gate, first)]].concat(), ..shut });
        }
        None
    }

    /// A gate that two edges of a way have in common, and the first of the two.
    fn apart(&self, path: &[Key]) -> Option<(u64, Key)> {
        path.iter().enumerate().find_map(|(index, first)| {
            let is_common =
                |gate: &&u64| path[index + 1..].iter().any(|other| self.gates(other).contains(gate));
            let gate = self.gates(first).iter().find(is_common)?;
            Some((*gate, *first))
        })
    }

    /// Follows edges from what was asked for until a lock is asked for that the thread holds. Each
    /// lock on the way must be held in a way that keeps waiting what asks for it.
    fn way(
        &self,
        from: (Vertex, Access),
        goal: (Vertex, Access),
        is_open: impl Fn(&Key) -> bool,
    ) -> Option<Vec<Key>> {
        type State = (Vertex, u32);
        let state = |(vertex, access): (Vertex, Access)| -> State { (vertex, access.code()) };
        let mut came_from: Map<State, (State, Key)> = Map::default();
        let mut queue = VecDeque::from([from]);
        while let Some(at @ (vertex, asked)) = queue.pop_front() {
            if vertex == goal.0 && goal.1.blocks(asked) {
                let (mut path, mut at) = (Vec::new(), state(at));
                while at != state(from) {
                    let (before, key) = came_from[&at];
                    path.push(key);
                    at = before;
                }
                path.reverse();
                return Some(path);
            }
            for &(to, how) in self.nodes.get(&vertex).into_iter().flat_map(|node| &node.out) {
                let key = Key { from: vertex, to, how };
                let next = (to, key.asked());
                if key.held().blocks(asked)
                    && next != from
                    && !came_from.contains_key(&state(next))
                    && is_open(&key)
                {
                    came_from.insert(state(next), (state(at), key));
                    queue.push_back(next);
                }
            }
        }
        None
    }
}

/// What a search leaves out.
#[derive(Clone, Default)]
struct Shut {
    edges: Vec<Key>,
    /// All edges of a gate but one.
    gates: Vec<(u64, Key)>,
}

impl Shut {
    /// Whether the search leaves out an edge, which `has` some gates.
    fn is_shut(&self, edge: &Key, has: impl Fn(&u64) -> bool) -> bool {
        self.edges.contains(edge) || self.gates.iter().any(|(gate, but)| edge != but && has(gate))
    }
}
