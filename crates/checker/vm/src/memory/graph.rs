//! The SC events of an execution, and the partial order `psc` on them, transitively closed.

use super::bits::Bits;
use super::view::join;
use core::ops::{Index, IndexMut};

/// An SC event.
#[derive(Debug)]
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
}

#[derive(Debug)]
pub(super) enum Event {
    Fence {
        clock: Vec<u32>,
        view: Vec<u64>,
        /// By word: the least code of the accesses that this happens before.
        first: Vec<u64>,
    },
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

/// All SC events that may still matter. They are named by small numbers, which are used again.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Option<Node>>,
    pub(super) fences: Bits,
    added: usize,
    living: usize,
}

impl Index<usize> for Graph {
    type Output = Node;

    fn index(&self, index: usize) -> &Node {
        self.nodes[index].as_ref().expect("a node that was not dropped")
    }
}

impl IndexMut<usize> for Graph {
    fn index_mut(&mut self, index: usize) -> &mut Node {
        self.nodes[index].as_mut().expect("a node that was not dropped")
    }
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.living
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter_map(|(index, node)| Some((index, node.as_ref()?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut().flatten()
    }

    /// The nodes for which `keep` holds.
    pub(super) fn all(&self, keep: impl Fn(usize, &Node) -> bool) -> Bits {
        let mut all = Bits::default();
        self.iter().filter(|&(index, node)| keep(index, node)).for_each(|(index, _)| all.insert(index));
        all
    }

    /// A new node, without neighbours.
    pub(super) fn add(&mut self, thread: usize, epoch: u32, event: Event, claim: Vec<u64>) -> usize {
        let index = self.nodes.iter().position(Option::is_none).unwrap_or_else(|| {
            self.nodes.push(None);
            self.nodes.len() - 1
        });
        if let Event::Fence { .. } = event {
            self.fences.insert(index);
        }
        let mut after = vec![u32::MAX; thread + 1];
        after[thread] = epoch + 1;
        self.added += 1;
        self.living += 1;
        let (number, reach) = (self.added, Bits::default());
        self.nodes[index] = Some(Node { number, thread, epoch, event, before: claim, after, reach });
        index
    }

    /// Drops a node to which no edge leads.
    pub(super) fn drop(&mut self, index: usize) {
        self.nodes[index] = None;
        self.fences.remove(index);
        self.living -= 1;
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
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let Some(node) = node else { continue };
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
