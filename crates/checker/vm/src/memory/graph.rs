//! The SC events of an execution, and the partial order `psc` on them, transitively closed.

use super::bits::Bits;
use super::view::join;
use core::ops::{Index, IndexMut};

/// An SC event.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// In the order of execution.
    number: usize,
    pub(super) thread: usize,
    pub(super) epoch: u32,
    pub(super) event: Event,
    /// The claims of itself and of all nodes before it.
    pub(super) before: Vec<u64>,
    /// By thread: its first event that this happens before.
    pub(super) after: Vec<u32>,
    /// The nodes after it.
    pub(super) reach: Bits,
    /// The clock and the labels that the thread had at a fence.
    pub(super) clock: Vec<u32>,
    pub(super) view: Vec<u64>,
    /// By word: the least code of the accesses that a fence happens before.
    pub(super) first: Vec<u64>,
}

#[derive(Debug, Default)]
pub(super) enum Event {
    #[default]
    Fence,
    Access {
        /// `None` once the word has ended and its slot is used by another.
        slot: Option<usize>,
        /// Of the message that it wrote, or else read.
        label: u64,
        writes: bool,
        /// The first event after it, of its thread, that is on another word, or on none.
        escape: u32,
    },
}

/// All SC events that may still matter. They are named by small numbers, which are used again, with
/// what their nodes have allocated.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    living: Bits,
    pub(super) fences: Bits,
    added: usize,
}

impl Index<usize> for Graph {
    type Output = Node;

    fn index(&self, index: usize) -> &Node {
        debug_assert!(self.living.has(index), "a node that was dropped");
        &self.nodes[index]
    }
}

impl IndexMut<usize> for Graph {
    fn index_mut(&mut self, index: usize) -> &mut Node {
        debug_assert!(self.living.has(index), "a node that was dropped");
        &mut self.nodes[index]
    }
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.living.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.living.iter().map(|index| (index, &self.nodes[index]))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        let Self { nodes, living, .. } = self;
        nodes.iter_mut().enumerate().filter(|(index, _)| living.has(*index)).map(|(_, node)| node)
    }

    /// The nodes for which `keep` holds.
    pub(super) fn all(&self, keep: impl Fn(usize, &Node) -> bool) -> Bits {
        let mut all = Bits::default();
        self.iter().filter(|&(index, node)| keep(index, node)).for_each(|(index, _)| all.insert(index));
        all
    }

    /// The execution is over.
    pub(super) fn clear(&mut self) {
        self.living.clear();
        self.fences.clear();
        self.added = 0;
    }

    /// A new node, without neighbours and claims.
    pub(super) fn add(&mut self, thread: usize, epoch: u32, event: Event) -> usize {
        let index = (0..).find(|&index| !self.living.has(index)).expect("one more than there are");
        if index == self.nodes.len() {
            self.nodes.push(Node::default());
        }
        self.living.insert(index);
        if let Event::Fence = event {
            self.fences.insert(index);
        }
        self.added += 1;
        let node = &mut self.nodes[index];
        (node.number, node.thread, node.epoch, node.event) = (self.added, thread, epoch, event);
        node.before.clear();
        node.after.clear();
        node.after.resize(thread + 1, u32::MAX);
        node.after[thread] = epoch + 1;
        node.reach.clear();
        node.clock.clear();
        node.view.clear();
        node.first.clear();
        index
    }

    /// Drops a node to which no edge leads.
    pub(super) fn drop(&mut self, index: usize) {
        self.living.remove(index);
        self.fences.remove(index);
    }

    /// Whether an edge leads to the node.
    pub(super) fn has_predecessor(&self, index: usize) -> bool {
        self.iter().any(|(_, node)| node.reach.has(index))
    }

    /// The nodes of a set, the latest first.
    pub(super) fn latest_first(&self, nodes: &Bits) -> Vec<usize> {
        let mut nodes: Vec<usize> = nodes.iter().collect();
        nodes.sort_unstable_by_key(|&index| core::cmp::Reverse(self[index].number));
        nodes
    }

    /// An edge, with all that follows from it: the nodes that have more before them now, or none if
    /// that is old.
    pub(super) fn order(&mut self, from: usize, to: usize) -> Option<Bits> {
        debug_assert!(from != to, "an SC event before itself");
        if self[from].reach.has(to) {
            return None;
        }
        let claims = self[from].before.clone();
        let mut row = self[to].reach.clone();
        row.insert(to);
        debug_assert!(!row.has(from), "a cycle of SC events");
        for index in self.living.iter() {
            let node = &mut self.nodes[index];
            if index == from || node.reach.has(from) {
                node.reach.add_all(&row);
            }
            if row.has(index) {
                join(&mut node.before, &claims);
            }
        }
        Some(row)
    }
}
