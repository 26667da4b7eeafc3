//! Every execution, less those that repeat another.
//!
//! Depth-first over the tree of questions, without keeping states: every execution starts from the
//! beginning, gives the answers of the last one up to the deepest question that has an answer left,
//! gives that one, and goes on with the first answer to everything. A tree of threads alone would
//! have `n!` branches where `n` threads touch different words. Two things cut them:
//!
//! - **Races.** At each question one thread is tried, and another one only if some execution shows
//!   the need: two of its operations race, and in the other order they may lead elsewhere.
//!   [`races`](super::races) says which thread has to go first then.
//! - **Sleep sets.** After all executions in which thread `a` goes first were tried, the sibling
//!   branches leave `a` out: it *sleeps* until something runs after which it is not covered
//!   ([`footprint`](super::footprint) says what does). A branch in which every enabled thread
//!   sleeps repeats what was tried, and ends as *redundant*.
//!
//! Both keep every state in which nothing can run any more. If any operation fails, one that is
//! tried fails. Where operations change places in both directions or not at all, there is exactly
//! one execution for each Mazurkiewicz trace; redundant ones come on top and are counted apart.
//!
//! # Preconditions
//! 1. The model is deterministic: the same answers lead to the same questions.
//! 2. Executions that are not redundant come to their end, for what was left out for one that is
//!    cut short may not have been seen anywhere: a caller that limits steps must call the
//!    exploration failed.
//! 3. Footprints name all that an operation touches. What makes a thread able to run is touched by
//!    its operation, or announced by [`follows`](Strategy::follows).
//! 4. If an operation keeps a thread from going that could go, neither is covered after the other,
//!    and the thread does the same if it goes at any earlier state from which only what covers it
//!    has run. Where that is not so, the caller demands [`all_orders`](Strategy::all_orders).
//! 5. If a thread comes to an operation that what ran before keeps from running, the caller says so
//!    before its next question: [`kept`](Strategy::kept).
//!
//! # Why equal threads are explored in each order
//! Threads that run one closure are not equal to the machine. Each has an id, a stack at an address
//! of its own, and its own place in the order of joins. A lock writes the id or the address of a
//! node into its words, and a model may compare either. An exchange of two threads would have to
//! exchange these in all words, and what a word means is the model's. So the reduction needs a
//! promise that no model can be held to, and is left out: three threads at a ticket lock have their
//! `3!` executions.
//!
//! # State
//! `nodes` are the questions of this execution, and `depth` is how many of them were asked. The
//! candidates of a thread node lie in `entries`, in this order:
//!
//! ```text
//! start              awake          current         planned         end
//!   | asleep on arrival | tried before | running | to be tried | open |
//!   '--- left out, after `current` ran, if covered ---'
//! ```
//!
//! # Invariants
//! 1. `start <= awake <= current < planned <= end`, and the ranges of the nodes lie one behind the
//!    other.
//! 2. What stands before `current` has been tried, here or at an earlier node, with all that
//!    follows.
//! 3. A pick's answers below `answer` have been tried.
//! 4. For each race of the execution that is not reversed elsewhere, an initial of its reversal
//!    stands before `planned`.
//!
//! # Why nothing is lost
//! Let `s` be a state at which the search has returned from all it tried, and `w` a sequence of
//! operations from there. A thread *begins* `w` if it could run at `s`, and its first operation of
//! `w` is covered after all before it. The claim: if no thread that slept at `s` begins `w`, some
//! execution was run from `s` that `w`, with something more behind it, turns into by moves. It
//! holds for all later states by induction.
//!
//! - If a tried thread begins `w`, take the first of them, `p`, and move it to the front. None that
//!   sleeps behind it begins the rest, or it would begin `w`. So the claim for the state behind `p`
//!   gives the execution.
//! - Else, if some tried `p` is covered after all of `w` and not in it, put it behind `w`, move it
//!   to the front, and go on likewise.
//! - Else each tried `p` is covered after a prefix of `w` only, and not after the next operation,
//!   `f`. Of the tried, take the one with the longest prefix. Behind `p`, the claim holds for that
//!   prefix and `f`: none that sleeps begins them. So an execution was run with `p` and `f` in a
//!   race, and a thread is planned here that begins `w`, or is covered after a longer prefix. Both
//!   contradict the choice.
//!
//! The claim is for prefixes, so a redundant execution shows races as any other. In the last case
//! `p` may keep `f` from running at all, as the owner of a lock does. There are two cases:
//! - `f` is the first of its thread in `w`. Then that thread could run at `s`, by the fourth
//!   precondition, and begins `w`; whatever is kept from running is therefore planned.
//! - Its thread comes to `f` by another operation of `w`. Take the arrival at `f` for an operation
//!   that does nothing, and keeps its order with all that touches the word of `f`. The claim holds
//!   for a `w` that ends with an arrival. So an execution was run in which the thread arrives while
//!   `p` keeps it from running. There the arrival is held against what ran before as if it were
//!   `f`, and the race with `p` is found.
//!
//! With the whole execution as `w`, the states at its end are reached. `within.rs` has what holds
//! under a limit of preemptions. Sources: P. Godefroid,
//! *Partial-Order Methods for the Verification of Concurrent Systems*, LNCS 1032, 1996, for sleep
//! sets; P. Abdulla and others, *Optimal Dynamic Partial Order Reduction*, POPL 2014, for source
//! sets, and for the choice of the longest prefix. In both, operations change places both ways.

use super::footprint::Relation;
use super::races::{Standing, Trace};
use super::share::{Claims, SPLIT, Share};
use super::{Candidate, Footprint, Kind, NotDeterministic, Strategy};
use std::sync::Arc;
use within::Sleepers;
pub(crate) use within::Turn;

mod within;

/// A candidate of a thread node.
#[derive(Clone, Debug)]
struct Entry {
    candidate: Candidate,
    /// Where it stood among the enabled.
    index: usize,
    /// The threads that reverse a race if they run after it, where they can.
    then: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Node {
    Thread { start: usize, awake: usize, current: usize, planned: usize, end: usize },
    Pick { kind: Kind, n: usize, answer: usize },
    Fact(Option<u32>),
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
    trace: Trace,
    /// The node whose running entry says what is to run now, and how much of it has run.
    leading: Option<(usize, usize)>,
    /// Whether all candidates of the next question are to be tried.
    all_orders: bool,
    /// Under a limit of preemptions: whose turn it is next, and which threads sleep.
    turn: Option<Turn>,
    sleepers: Sleepers,
    /// Of a search that shares the tree with others: which part it is in.
    share: Option<Share>,
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
            trace: Trace::default(),
            leading: None,
            all_orders: false,
            turn: None,
            sleepers: Sleepers::default(),
            share: None,
        }
    }

    /// One of several searches that run all executions together, each the parts that it claims. An
    /// execution of another search's part is redundant.
    pub(crate) fn sharing(covered: Relation, claims: Arc<Claims>) -> Self {
        Self { share: Some(Share::new(claims)), ..Self::new(u64::MAX, covered) }
    }

    /// The part that the execution which has just ended belongs to; `None` if it is not this
    /// search's.
    pub(crate) fn part(&mut self) -> Option<usize> {
        let share = self.share.as_mut()?;
        if share.is_before_parts() {
            // It ended on the way: a part of one execution.
            share.enter(usize::MAX);
        }
        share.mine()
    }

    pub(crate) fn coverage(&self) -> Coverage {
        Coverage {
            executions: self.begun - self.redundant,
            redundant: self.redundant,
            is_complete: self.is_complete,
        }
    }

    /// Which part of the tree of answers lies behind, as if each answer had as much behind it.
    pub(crate) fn share(&self) -> f64 {
        let mut width = 1.0;
        let mut share = 0.0;
        for node in &self.nodes {
            let (tried, all) = match *node {
                Node::Thread { awake, current, planned, .. } => (current - awake, planned - awake),
                Node::Pick { n, answer, .. } => (answer, n),
                Node::Fact(_) => continue,
            };
            width /= all as f64;
            share += width * tried as f64;
        }
        share
    }

    /// Goes to the next answer that was not tried, from the deepest question upwards. False if
    /// there is none.
    fn advance(&mut self) -> bool {
        if self.depth < self.nodes.len() {
            self.differs("it came to its end");
        }
        if !self.is_redundant {
            self.plan_what_was_kept_from_running(&[]);
        }
        let is_left = loop {
            let Some(node) = self.nodes.last_mut() else { break false };
            match node {
                Node::Thread { current, planned, .. } if *current + 1 < *planned => {
                    *current += 1;
                    break true;
                }
                Node::Pick { n, answer, .. } if *answer + 1 < *n => {
                    *answer += 1;
                    break true;
                }
                Node::Thread { start, .. } => self.entries.truncate(*start),
                Node::Pick { .. } | Node::Fact(_) => {}
            }
            self.nodes.pop();
        };
        let is_thread = matches!(self.nodes.last(), Some(Node::Thread { .. }));
        self.trace.truncate(self.nodes.len() - usize::from(is_thread));
        is_left
    }

    /// Whether all executions have been tried in which `candidate` runs now.
    fn is_asleep(&self, candidate: &Candidate) -> bool {
        if self.turn.is_some() {
            return self.sleepers.contains(candidate);
        }
        let Some(Node::Thread { start, current, .. }) = self.running.map(|node| self.nodes[node]) else {
            return false;
        };
        let ran = self.entries[current].candidate.footprint;
        let left_out = &self.entries[start..current];
        left_out.iter().any(|entry| entry.candidate == *candidate && (self.covered)(candidate.footprint, ran))
    }

    /// Has the open entry `open` of `node` tried, and `then` after it.
    fn plan(&mut self, node: usize, open: usize, then: Vec<usize>) {
        let Node::Thread { planned, .. } = &mut self.nodes[node] else { unreachable!("a thread's node") };
        self.entries[open].then = then;
        self.entries.swap(open, *planned);
        *planned += 1;
    }

    /// What could go before the last operation, and cannot go now that `enabled` can.
    fn plan_what_was_kept_from_running(&mut self, enabled: &[Candidate]) {
        let Some(node) = self.running else { return };
        let Node::Thread { planned, end, .. } = self.nodes[node] else { unreachable!("a thread's node") };
        for open in planned..end {
            let thread = self.entries[open].candidate.thread;
            if enabled.iter().all(|candidate| candidate.thread != thread) {
                if self.turn.is_some() {
                    return self.plan_all(node);
                }
                self.plan(node, open, Vec::new());
            }
        }
    }

    /// Has the races of the last operation of the trace reversed, which is new or held.
    fn reverse_races(&mut self) {
        for race in 0..self.trace.races.len() {
            let first = self.trace.races[race];
            let node = self.trace.event(first).node;
            if self.turn.is_some() {
                self.plan_all(node);
                continue;
            }
            let Node::Thread { start, awake, planned, end, .. } = self.nodes[node] else {
                unreachable!("a thread's node")
            };
            let entries = &self.entries;
            let place = |thread| (start..end).find(|&entry| entries[entry].candidate.thread == thread);
            let reversal = self.trace.reversal(first, self.covered, |thread| match place(thread) {
                None => Standing::Blocked,
                Some(entry) if entry < awake => Standing::Asleep,
                Some(entry) if entry < planned => Standing::Tried,
                Some(_) => Standing::Open,
            });
            if let Some(reversal) = reversal {
                let open = place(reversal.thread).expect("it could run");
                self.plan(node, open, reversal.then);
            }
        }
    }

    /// The thread that the reversal of a race has run now.
    fn led(&self) -> Option<usize> {
        let (node, passed) = self.leading?;
        let Node::Thread { current, .. } = self.nodes[node] else { unreachable!("a thread's node") };
        self.entries[current].then.get(passed).copied()
    }

    /// A thread's node was passed.
    fn lead(&mut self, node: usize) {
        let Node::Thread { current, .. } = self.nodes[node] else { unreachable!("a thread's node") };
        if self.entries[current].then.is_empty() {
            if let Some((_, passed)) = &mut self.leading {
                *passed += 1;
            }
        } else {
            self.leading = Some((node, 0));
        }
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
                self.entries.push(Entry { candidate, index, then: Vec::new() });
            }
        }
        let awake = self.entries.len();
        for (index, &candidate) in enabled.iter().enumerate() {
            if !self.entries[start..awake].iter().any(|asleep| asleep.index == index) {
                self.entries.push(Entry { candidate, index, then: Vec::new() });
            }
        }
        let end = self.entries.len();
        if awake == end {
            self.entries.truncate(start);
            return false;
        }
        let first = self.turn.map_or_else(|| self.led(), |turn| turn.owner);
        self.entries[awake..]
            .sort_by_key(|entry| (first != Some(entry.candidate.thread), entry.candidate.footprint.turn()));
        let all = match self.turn {
            Some(turn) => self.all_orders || turn.owner.is_none(),
            // What no other can tell is never the first of a race.
            None => self.all_orders && !self.is_invisible(self.entries[awake].candidate.footprint),
        };
        let planned = if all { end } else { awake + 1 };
        self.nodes.push(Node::Thread { start, awake, current: awake, planned, end });
        true
    }

    /// Demands that the same question was asked here before.
    fn check_thread_node(&self, enabled: &[Candidate]) {
        let is_same = |entry: &Entry| enabled.get(entry.index) == Some(&entry.candidate);
        match self.nodes[self.depth] {
            Node::Thread { start, end, .. }
                if enabled.len() == end - start && self.entries[start..end].iter().all(is_same) => {}
            _ => self.differs(&next_of(enabled.iter().copied())),
        }
    }

    /// The question at hand is `now`, and was another one before.
    fn differs(&self, now: &str) -> ! {
        let before = match self.nodes[self.depth] {
            Node::Thread { start, end, .. } => {
                let mut asked: Vec<_> = self.entries[start..end].iter().collect();
                asked.sort_by_key(|entry| entry.index);
                next_of(asked.into_iter().map(|entry| entry.candidate))
            }
            Node::Pick { kind, n, .. } => one_of(kind, n),
            Node::Fact(_) => A_FACT.into(),
        };
        std::panic::panic_any(NotDeterministic { before, now: now.into() })
    }
}

const A_FACT: &str = "whether a round of a loop is one that was done before";

/// The question which of `threads` goes next, in words.
fn next_of(threads: impl Iterator<Item = Candidate>) -> String {
    let name = |candidate: Candidate| match candidate.thread {
        usize::MAX => format!("the clock ({:?})", candidate.footprint),
        thread => format!("thread {thread} ({:?})", candidate.footprint),
    };
    format!("which goes next of {}", threads.map(name).collect::<Vec<_>>().join(", "))
}

/// Another question, in words.
fn one_of(kind: Kind, n: usize) -> String {
    format!("one of {n} ({kind:?})")
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
        if let Some(share) = &mut self.share {
            share.begin(self.nodes.len());
        }
        if self.begun == self.limit {
            self.is_over = true;
            return false;
        }
        self.begun += 1;
        self.depth = 0;
        self.running = None;
        self.is_redundant = false;
        self.trace.begin();
        self.leading = None;
        self.all_orders = false;
        self.turn = None;
        self.sleepers.clear();
        true
    }

    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        if self.is_redundant {
            return 0;
        }
        if let Some(share) = self.share.as_mut().filter(|share| share.is_before_parts()) {
            if self.trace.passed() < SPLIT {
                self.all_orders = true;
            } else if !share.enter(self.nodes.len()) {
                self.is_redundant = true;
                return 0;
            }
        }
        if self.depth < self.nodes.len() {
            self.check_thread_node(enabled);
        } else {
            if self.turn.is_none() {
                self.plan_what_was_kept_from_running(enabled);
            }
            if !self.add_thread_node(enabled) {
                self.is_redundant = true;
                self.redundant += 1;
                return 0;
            }
        }
        self.all_orders = false;
        self.running = Some(self.depth);
        let Node::Thread { current, .. } = self.nodes[self.depth] else { unreachable!("checked or added") };
        let Entry { candidate, index, .. } = self.entries[current];
        if self.trace.is_new() {
            self.trace.add(self.depth, candidate.thread, candidate.footprint, self.covered);
            self.reverse_races();
        } else {
            self.trace.pass();
        }
        self.lead(self.depth);
        self.pass_turn(candidate, enabled);
        self.depth += 1;
        index
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
            _ => self.differs(&one_of(kind, n)),
        }
    }

    fn follows(&mut self, thread: usize, other: usize) {
        self.trace.follows(thread, other);
    }

    fn kept(&mut self, thread: usize, footprint: Footprint) {
        if !self.is_redundant && self.trace.is_new() {
            self.trace.hold(usize::MAX, thread, footprint, self.covered);
            self.reverse_races();
            self.trace.let_go();
        }
    }

    fn all_orders(&mut self) {
        self.all_orders = true;
    }

    fn within(&mut self, turn: Turn, enabled: &[Candidate]) {
        self.take_turns(turn, enabled);
    }

    fn fact(&mut self, found: Option<u32>) -> Option<u32> {
        if self.is_redundant {
            return found;
        }
        match self.nodes.get(self.depth) {
            Some(&Node::Fact(before)) => {
                self.depth += 1;
                before
            }
            Some(_) => self.differs(A_FACT),
            None => {
                // What searches share must not depend on what one of them has found.
                let is_shared = self.share.as_ref().is_some_and(Share::is_before_parts);
                let found = found.filter(|_| !is_shared);
                self.nodes.push(Node::Fact(found));
                self.depth += 1;
                found
            }
        }
    }

    fn repeats(&mut self) {
        if !self.is_redundant {
            self.plan_what_was_kept_from_running(&[]);
            self.is_redundant = true;
            self.redundant += 1;
        }
    }

    fn is_redundant(&self) -> bool {
        self.is_redundant
    }
}

#[cfg(test)]
mod tests;
