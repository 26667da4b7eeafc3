//! Every execution, less those that repeat another.
//!
//! Depth-first over the tree of questions, without keeping states: every execution starts from the
//! beginning, gives the answers of the last one up to the deepest question that has an answer left,
//! gives that one, and goes on with the first answer to everything. A tree of threads alone would
//! have `n!` branches where `n` threads touch different words. Two things cut them:
//!
//! - **Sleep sets.** After all executions in which thread `a` goes first were tried, the sibling
//!   branches leave `a` out: it *sleeps* until something runs that does not change places with its
//!   operation ([`footprint`](super::footprint) says what does). A branch in which every enabled
//!   thread sleeps repeats what was tried, and ends as *redundant*.
//! - **Invisible operations.** Where a thread can do something that no other can tell, it does so,
//!   and no other order is tried.
//!
//! Both keep every state in which nothing can run any more, and every operation that fails, from
//! every state it can fail in. Where operations change places in both directions or not at all,
//! there is exactly one execution for each Mazurkiewicz trace; redundant ones come on top and are
//! counted apart.
//!
//! # Preconditions
//! The model is deterministic: the same answers lead to the same questions. Executions that are not
//! redundant come to their end, for what was left out for one that is cut short may not have been
//! seen anywhere: a caller that limits steps must call the exploration failed. Footprints name all
//! that an operation touches.
//!
//! # State
//! `nodes` are the questions of this execution, and `depth` is how many of them were asked. The
//! candidates of a thread node lie in `entries`, in this order:
//!
//! ```text
//! start          first awake        current              end
//!   | asleep on arrival | tried before | running | still to try |
//!   '------- left out, after `current` ran, if covered ---'
//! ```
//!
//! # Invariants
//! 1. `start <= first awake <= current < end`, and the ranges of the nodes lie one behind the
//!    other.
//! 2. What stands before `current` has been tried, here or at an earlier node, with all that
//!    follows.
//! 3. A pick's answers below `answer` have been tried.
//!
//! Source: P. Godefroid, *Partial-Order Methods for the Verification of Concurrent Systems*, LNCS
//! 1032, 1996. There, transitions are deterministic and change places both ways. That one direction
//! is enough, and that an inner choice may need another answer when two operations change places,
//! follows by the same induction: let `e` lead from a state to a final one, and begin with `u`,
//! which is tried here. If what follows `u` is left out, then for a sleeping `t` that could come
//! next; since `u, t` leads to nothing that `t, u` does not lead to, some execution that begins
//! with `t` ends in the same state, and `t` was tried here before, or slept on arrival.

use super::footprint::Relation;
use super::{Candidate, Footprint, Kind, Strategy};

/// A candidate of a thread node, and where it stood among the enabled.
#[derive(Clone, Copy, Debug)]
struct Entry {
    candidate: Candidate,
    index: usize,
}

#[derive(Clone, Copy, Debug)]
enum Node {
    Thread { start: usize, current: usize, end: usize },
    Pick { kind: Kind, n: usize, answer: usize },
}

/// How far an exhaustive exploration came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Executions, redundant ones not counted.
    pub(crate) executions: u64,
    /// Executions that turned out to repeat another.
    pub(crate) redundant: u64,
    /// Whether nothing is left to try. False if the limit cut the exploration, and as long as it
    /// runs.
    pub(crate) is_complete: bool,
}

/// Tries every answer.
#[derive(Clone, Debug)]
pub(crate) struct Exhaustive {
    covered: Relation,
    limit: u64,
    begun: u64,
    redundant: u64,
    is_over: bool,
    is_complete: bool,

    nodes: Vec<Node>,
    entries: Vec<Entry>,
    depth: usize,
    /// The node of the thread that runs.
    running: Option<usize>,
    is_redundant: bool,
}

impl Exhaustive {
    /// At most `limit` executions, redundant ones counted; `covered` says what changes places.
    pub(crate) fn new(limit: u64, covered: Relation) -> Self {
        Self {
            covered,
            limit,
            begun: 0,
            redundant: 0,
            is_over: false,
            is_complete: false,
            nodes: Vec::new(),
            entries: Vec::new(),
            depth: 0,
            running: None,
            is_redundant: false,
        }
    }

    pub(crate) fn coverage(&self) -> Coverage {
        Coverage {
            executions: self.begun - self.redundant,
            redundant: self.redundant,
            is_complete: self.is_complete,
        }
    }

    /// Goes to the next answer that was not tried, from the deepest question upwards. False if
    /// there is none.
    fn advance(&mut self) -> bool {
        assert_eq!(self.depth, self.nodes.len(), "{NOT_DETERMINISTIC}it asked less than before");
        while let Some(node) = self.nodes.last_mut() {
            match node {
                Node::Thread { current, end, .. } if *current + 1 < *end => {
                    *current += 1;
                    return true;
                }
                Node::Pick { n, answer, .. } if *answer + 1 < *n => {
                    *answer += 1;
                    return true;
                }
                Node::Thread { start, .. } => self.entries.truncate(*start),
                Node::Pick { .. } => {}
            }
            self.nodes.pop();
        }
        false
    }

    /// Whether all executions have been tried in which `candidate` runs now.
    fn is_asleep(&self, candidate: &Candidate) -> bool {
        let Some(Node::Thread { start, current, .. }) = self.running.map(|node| self.nodes[node]) else {
            return false;
        };
        let ran = self.entries[current].candidate.footprint;
        let left_out = &self.entries[start..current];
        left_out.iter().any(|entry| entry.candidate == *candidate && (self.covered)(candidate.footprint, ran))
    }

    /// Whether it changes places with whatever others may do.
    fn is_invisible(&self, footprint: Footprint) -> bool {
        (self.covered)(Footprint::Everything, footprint)
    }

    /// A question that was not asked before. False if all that is enabled sleeps.
    fn add_thread_node(&mut self, enabled: &[Candidate]) -> bool {
        let start = self.entries.len();
        for (index, &candidate) in enabled.iter().enumerate() {
            if self.is_asleep(&candidate) {
                self.entries.push(Entry { candidate, index });
            }
        }
        let current = self.entries.len();
        for (index, &candidate) in enabled.iter().enumerate() {
            if !self.entries[start..current].iter().any(|asleep| asleep.index == index) {
                self.entries.push(Entry { candidate, index });
            }
        }
        self.entries[current..].sort_by_key(|entry| turn(entry.candidate.footprint));
        if self.entries.get(current).is_some_and(|entry| self.is_invisible(entry.candidate.footprint)) {
            self.entries.truncate(current + 1);
        }
        let end = self.entries.len();
        if current == end {
            self.entries.truncate(start);
            return false;
        }
        self.nodes.push(Node::Thread { start, current, end });
        true
    }

    /// Demands that the same question was asked here before.
    fn check_thread_node(&self, enabled: &[Candidate]) {
        let Node::Thread { start, end, .. } = self.nodes[self.depth] else {
            panic!("{NOT_DETERMINISTIC}it asked for a thread, where before it asked something else");
        };
        let is_same = |entry: &Entry| enabled.get(entry.index) == Some(&entry.candidate);
        assert!(
            self.entries[start..end].iter().all(is_same),
            "{NOT_DETERMINISTIC}other threads were enabled, or were about to do something else"
        );
    }
}

const NOT_DETERMINISTIC: &str = "the model is not deterministic: with the same answers ";

/// What is tried first: the invisible, then what leaves most to be left out after it.
fn turn(footprint: Footprint) -> u8 {
    match footprint {
        Footprint::Local | Footprint::Fence => 0,
        Footprint::Write(_) => 1,
        Footprint::Update(_) => 2,
        Footprint::Futex { .. } | Footprint::Clock | Footprint::Everything => 3,
        Footprint::Read(_) => 4,
    }
}

impl Strategy for Exhaustive {
    fn begin(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        if self.begun > 0 && !self.advance() {
            self.is_over = true;
            self.is_complete = true;
            return false;
        }
        if self.begun == self.limit {
            self.is_over = true;
            return false;
        }
        self.begun += 1;
        self.depth = 0;
        self.running = None;
        self.is_redundant = false;
        true
    }

    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        if self.is_redundant {
            return 0;
        }
        if self.depth < self.nodes.len() {
            self.check_thread_node(enabled);
        } else if !self.add_thread_node(enabled) {
            self.is_redundant = true;
            self.redundant += 1;
            return 0;
        }
        self.running = Some(self.depth);
        let Node::Thread { current, .. } = self.nodes[self.depth] else { unreachable!("checked or added") };
        self.depth += 1;
        self.entries[current].index
    }

    fn pick(&mut self, kind: Kind, n: usize) -> usize {
        if self.is_redundant {
            return 0;
        }
        let Some(&node) = self.nodes.get(self.depth) else {
            self.nodes.push(Node::Pick { kind, n, answer: 0 });
            self.depth += 1;
            return 0;
        };
        match node {
            Node::Pick { kind: before, n: of, answer } if (before, of) == (kind, n) => {
                self.depth += 1;
                answer
            }
            _ => panic!(
                "{NOT_DETERMINISTIC}it asked for one of {n} ({kind:?}), where before it asked something else"
            ),
        }
    }

    fn is_redundant(&self) -> bool {
        self.is_redundant
    }
}

#[cfg(test)]
mod tests;
