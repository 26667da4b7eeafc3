//! Sequential consistency: the axiom that RC11's partial order `psc` has no cycle, kept while an
//! execution grows.
//!
//! # The axiom
//!
//! With `sb` for program order, `hb` for happens-before, `mo` for modification order, `rb` for
//! "reads before" (from a read to every later message than the one it read), `eco` for the
//! transitive closure of `rf`, `mo` and `rb`, and `E`, `F` for the SC accesses and the SC fences
//! (Lahav et al.):
//!
//! ```text
//! scb      = sb ∪ sb≠loc;hb;sb≠loc ∪ hb|loc ∪ mo ∪ rb
//! psc_base = ([E] ∪ [F];hb?) ; scb ; ([E] ∪ hb?;[F])
//! psc_F    = [F] ; (hb ∪ hb;eco;hb) ; [F]
//! psc_base ∪ psc_F is acyclic
//! ```
//!
//! One view that all fences join is stronger than this: it orders fences by execution. With
//! `x = 1; F; y = 1` beside `r = y; z = 1` beside `s = z; F; t = x`, all relaxed, `r = s = 1` and
//! `t = 0` is allowed, since nothing in the middle connects the two fences.
//!
//! # The steps
//!
//! An execution grows along `sb ∪ rf`, so a new event is the last in happens-before, and it adds to
//! `psc` only edges that begin or end at itself, or that use it as the first event of an `eco` or
//! `scb` step:
//!
//! 1. into the new event, if that is SC. These alone close no cycle: a new event has no successors
//!    by them.
//! 2. from the new event, if it is an SC access, to what is after it in `mo` or `rb`.
//! 3. from each SC fence `f` that happens before the new event, to each node that has seen more of
//!    its word than it does: SC fences whose view holds a newer message, and SC writes of newer
//!    messages.
//!
//! So the cycles that a candidate message would close are those of 2 and 3. For 3 this is a floor:
//! let the *claim* of a fence be its view, and that of an SC write its message. A thread must not
//! go behind the claims of whatever comes before, in `psc`, the fences that happen before it. The
//! closure of the claims is kept with every node (`before`), and their join with every thread
//! (`floor`): an ordinary access pays one comparison. For 2 the edges of every candidate are worked
//! out (`admits`); SC accesses are rare in lock code.
//!
//! # How the relations are known
//!
//! - `eco` between accesses of one word compares codes: `2p` for a write of label `p`, `2p + 1` for
//!   a read of it. The view of a fence holds the greatest code on every word that happens before it
//!   (if it holds a label that no read of which happens before it, the message itself does, and the
//!   edge in question exists by `hb`). The least code after a fence is kept with it, by word
//!   (`first`): for each thread that is the code of its first access.
//! - `hb` is the clocks. The subtle parts of `scb` are about edges into or out of an SC access that
//!   consist of synchronisation alone: release writes, or acquire reads, of the same word, and
//!   nothing else between. For `sb≠loc` an SC access knows the first event after it on another word
//!   (`escape`), and a thread the clock it had at the beginning of its present run of accesses to
//!   one word (`run_clock`). For `hb|loc` the accesses of each word are logged by thread.
//!
//! Nodes that happen before all living threads and have no predecessor left can get none, and are
//! dropped.

use super::bits::Bits;
use super::graph::{Event, Graph, Node};
use super::history::History;
use super::view::{View, join};

/// What a thread's next event has of SC events before it.
#[derive(Debug, Default)]
struct Past {
    nodes: Bits,
    /// By thread: how many of its SC events are among the nodes.
    known: Vec<usize>,
    /// The join of what is before the fences among the nodes.
    floor: Vec<u64>,
    /// How many times a fence was added; and by word, at which count the fences learnt of an access
    /// to it.
    version: u32,
    noted: Vec<u32>,
    /// The word of the latest events, the clock before them, and the SC accesses among them.
    run: Option<usize>,
    run_clock: Vec<u32>,
    run_nodes: Vec<usize>,
    ended: bool,
}

impl Past {
    /// That of a new thread, which knows what `parent` knows, if it has one.
    fn begin(&mut self, parent: Option<&Self>) {
        let nothing = Self::default();
        let Self { nodes, known, floor, version, .. } = parent.unwrap_or(&nothing);
        self.nodes.copy_from(nodes);
        self.known.clone_from(known);
        self.floor.clone_from(floor);
        self.version = *version;
        self.noted.clear();
        self.run = None;
        self.run_clock.clear();
        self.run_nodes.clear();
        self.ended = false;
    }
}

/// An access to be: it reads the message `label`, or writes right after it, or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) thread: usize,
    pub(super) slot: usize,
    pub(super) label: u64,
    pub(super) writes: bool,
    /// The thread's view without what the access acquires.
    pub(super) now: &'a View,
    /// What it acquires.
    pub(super) acquired: Option<&'a View>,
    pub(super) word: &'a History,
}

impl Candidate<'_> {
    fn epoch(&self, thread: usize) -> u32 {
        self.now.epoch(thread).max(self.acquired.map_or(0, |view| view.epoch(thread)))
    }
}

/// The SC events of a thread, in order, and their nodes, unless they were dropped.
type Events = Vec<(u32, Option<usize>)>;

#[derive(Debug, Default)]
pub(super) struct Psc {
    active: bool,
    graph: Graph,
    sweep_at: usize,
    /// By thread.
    of_thread: Vec<Events>,
    threads: Vec<Past>,
    /// What threads of earlier executions have allocated.
    spare: Vec<(Events, Past)>,
    /// By slot and thread: which events of the thread were accesses to the word.
    logs: Vec<Vec<Vec<u32>>>,
    /// By slot: the newest label that any node claims.
    claimed: Vec<u64>,
    /// Fewer nodes than this are not worth a sweep.
    sweep_from: usize,
    /// Whether a node was dropped: a thread that knows nothing may not come after that.
    dropped: bool,
}

const SWEEP_FROM: usize = 16;

fn at<T: Copy>(values: &[T], index: usize, default: T) -> T {
    values.get(index).copied().unwrap_or(default)
}

fn slot_of<T: Clone>(values: &mut Vec<T>, index: usize, default: T) -> &mut T {
    if index >= values.len() {
        values.resize(index + 1, default);
    }
    &mut values[index]
}

impl Psc {
    /// Whether there was an SC event. If not, nothing here need be told of anything.
    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// An SC event comes, in an execution of `threads` threads.
    pub(super) fn activate(&mut self, threads: usize) {
        if !self.active {
            self.active = true;
            (0..threads).for_each(|_| self.begin_thread(None));
        }
    }

    /// The execution is over, in which slots below `used` had words. What was allocated serves the
    /// next one.
    pub(super) fn clear(&mut self, used: usize) {
        if !self.active {
            return;
        }
        self.active = false;
        self.graph.clear();
        self.sweep_at = 0;
        self.spare.extend(self.of_thread.drain(..).zip(self.threads.drain(..)));
        self.logs.iter_mut().take(used).flatten().for_each(Vec::clear);
        self.claimed.clear();
        self.dropped = false;
    }

    /// Whether it holds nothing of an execution.
    #[cfg(test)]
    pub(super) fn is_blank(&self) -> bool {
        let logs_nothing = self.logs.iter().flatten().all(Vec::is_empty);
        let has_none = self.threads.is_empty() && self.of_thread.is_empty() && self.graph.len() == 0;
        has_none && logs_nothing && self.claimed.is_empty() && !self.active && !self.dropped
    }

    fn begin_thread(&mut self, parent: Option<usize>) {
        let (mut events, mut past) = self.spare.pop().unwrap_or_default();
        events.clear();
        past.begin(parent.map(|parent| &self.threads[parent]));
        self.threads.push(past);
        self.of_thread.push(events);
    }

    pub(super) fn new() -> Self {
        Self { sweep_from: SWEEP_FROM, ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn set_strange(&mut self, sweep_from: usize) {
        self.sweep_from = sweep_from;
    }

    /// A new thread, the last, with the view of `parent`.
    pub(super) fn spawn(&mut self, parent: Option<usize>) {
        assert!(parent.is_some() || !self.dropped, "a thread without a parent comes too late");
        let child = self.threads.len();
        self.begin_thread(parent);
        for node in self.threads[child].nodes.iter() {
            *slot_of(&mut self.graph[node].after, child, u32::MAX) = 1;
        }
    }

    /// A thread that will do nothing more.
    pub(super) fn end(&mut self, thread: usize) {
        self.threads[thread].ended = true;
    }

    /// An event of `thread` begins: its number, the word it is on, and the thread's clock.
    pub(super) fn turn(&mut self, thread: usize, epoch: u32, place: Option<usize>, clock: &[u32]) {
        let past = &mut self.threads[thread];
        if place.is_none() || past.run != place {
            past.run = place;
            past.run_clock.clear();
            past.run_clock.extend_from_slice(clock);
            for node in past.run_nodes.drain(..) {
                if let Event::Access { escape, .. } = &mut self.graph[node].event {
                    *escape = epoch;
                }
            }
        }
    }

    /// `thread`, with its event `epoch`, has come to know all of `clock`.
    pub(super) fn learn(&mut self, thread: usize, epoch: u32, clock: &[u32]) {
        let past = &mut self.threads[thread];
        for (other, events) in self.of_thread.iter().enumerate() {
            let known = slot_of(&mut past.known, other, 0);
            while let Some(&(event, index)) = events.get(*known)
                && event <= at(clock, other, 0)
            {
                *known += 1;
                // A thread that ends before it knows of a node learns of it, if ever, when it was
                // dropped.
                let Some(index) = index else { continue };
                *slot_of(&mut self.graph[index].after, thread, u32::MAX) = epoch;
                past.nodes.insert(index);
                if self.graph.fences.has(index) {
                    past.version += 1;
                    join(&mut past.floor, &self.graph[index].before);
                }
            }
        }
    }

    /// Messages of `slot` before this one are not for `thread`, to read or to write after.
    pub(super) fn floor(&self, thread: usize, slot: usize) -> u64 {
        self.threads.get(thread).map_or(0, |past| at(&past.floor, slot, 0))
    }

    /// An SC fence of `thread`, whose view it has.
    pub(super) fn fence(&mut self, thread: usize, epoch: u32, view: &View, words: &[History]) {
        self.sweep();
        let sources = self.graph.all(|_, node| match &node.event {
            Event::Fence => {
                view.epoch(node.thread) >= node.epoch
                    || node.first.iter().zip(view.labels()).any(|(&code, &label)| code <= 2 * label)
            }
            &Event::Access { slot, label, .. } => {
                view.epoch(node.thread) > node.epoch
                    || slot.is_some_and(|slot| {
                        view.epoch(node.thread) == node.epoch
                            && self.accesses_after(node, slot, |thread| view.epoch(thread))
                            || words[slot].newest_before(view.clock()) > label
                    })
            }
        });
        for (slot, &label) in view.labels().iter().enumerate() {
            let claimed = slot_of(&mut self.claimed, slot, 0);
            *claimed = label.max(*claimed);
        }
        let index = self.add(thread, epoch, Event::Fence);
        let node = &mut self.graph[index];
        node.clock.extend_from_slice(view.clock());
        node.view.extend_from_slice(view.labels());
        node.before.extend_from_slice(view.labels());
        self.order_all(&sources, index);
        let past = &mut self.threads[thread];
        past.version += 1;
        join(&mut past.floor, &self.graph[index].before);
    }

    /// Whether an SC access closes no cycle by the edges that begin or end at itself. That it
    /// respects the floor is known already.
    pub(super) fn admits(&self, candidate: Candidate<'_>) -> bool {
        let later = self.later(candidate);
        if later.iter().next().is_none() {
            return true;
        }
        let earlier = self.earlier(candidate);
        !later.iter().any(|later| earlier.has(later) || self.graph[later].reach.meets(&earlier))
    }

    /// The access is made, with the event `epoch`. If it writes, its message has the label `new`.
    pub(super) fn access(&mut self, candidate: Candidate<'_>, epoch: u32, new: Option<u64>, is_sc: bool) {
        let Candidate { thread, slot, label, .. } = candidate;
        if is_sc {
            self.sweep();
            let (earlier, later) = (self.earlier(candidate), self.later(candidate));
            if let Some(new) = new {
                let claimed = slot_of(&mut self.claimed, slot, 0);
                *claimed = new.max(*claimed);
            }
            let event = Event::Access {
                slot: Some(slot),
                label: new.unwrap_or(label),
                writes: new.is_some(),
                escape: u32::MAX,
            };
            let index = self.add(thread, epoch, event);
            if let Some(new) = new {
                *slot_of(&mut self.graph[index].before, slot, 0) = new;
            }
            self.threads[thread].run_nodes.push(index);
            self.order_all(&earlier, index);
            for later in later.iter() {
                self.order(index, later);
            }
        }
        self.order_fences(thread, slot, new.unwrap_or(label));
        self.note(thread, slot, new.map_or(2 * label + 1, |new| 2 * new));
        slot_of(slot_of(&mut self.logs, slot, Vec::new()), thread, Vec::new()).push(epoch);
    }

    /// `slot` gets another word; its labels go on where they were.
    pub(super) fn reuse(&mut self, slot: usize) {
        if let Some(logs) = self.logs.get_mut(slot) {
            logs.iter_mut().for_each(Vec::clear);
        }
        for node in self.graph.iter_mut() {
            match &mut node.event {
                Event::Fence if slot < node.first.len() => node.first[slot] = u64::MAX,
                Event::Access { slot: mine, .. } if *mine == Some(slot) => *mine = None,
                _ => {}
            }
        }
        for past in &mut self.threads {
            if slot < past.noted.len() {
                past.noted[slot] = 0;
            }
            if past.run == Some(slot) {
                past.run = None;
            }
        }
    }

    /// The labels of `slot` have changed.
    pub(super) fn relabel(&mut self, slot: usize, rename: impl Fn(&mut u64)) {
        let each = |labels: &mut Vec<u64>| {
            if let Some(label) = labels.get_mut(slot) {
                rename(label);
            }
        };
        for node in self.graph.iter_mut() {
            each(&mut node.before);
            match &mut node.event {
                Event::Fence => {
                    each(&mut node.view);
                    if let Some(code) = node.first.get_mut(slot).filter(|code| **code != u64::MAX) {
                        let mut label = *code / 2;
                        rename(&mut label);
                        *code = 2 * label + *code % 2;
                    }
                }
                Event::Access { slot: mine, label, .. } if *mine == Some(slot) => rename(label),
                Event::Access { .. } => {}
            }
        }
        for past in &mut self.threads {
            each(&mut past.floor);
        }
        each(&mut self.claimed);
    }

    /// The nodes before an SC access.
    fn earlier(&self, candidate: Candidate<'_>) -> Bits {
        let Candidate { thread, slot, label, writes, .. } = candidate;
        let past = &self.threads[thread];
        self.graph.all(|index, node| {
            let happens = candidate.epoch(node.thread) >= node.epoch;
            match &node.event {
                &Event::Access { slot: mine, label: read_or_wrote, escape, .. } => {
                    node.thread == thread
                        || at(&past.run_clock, node.thread, 0) >= escape
                        || mine == Some(slot) && (happens || writes && read_or_wrote <= label)
                }
                Event::Fence => {
                    past.nodes.has(index)
                        || writes && at(&node.first, slot, u64::MAX) <= 2 * label + 1
                        || happens && self.accesses_after(node, slot, |thread| candidate.epoch(thread))
                }
            }
        })
    }

    /// The nodes after an SC access: what is newer than what it reads, or what it writes after.
    fn later(&self, candidate: Candidate<'_>) -> Bits {
        if at(&self.claimed, candidate.slot, 0) <= candidate.label {
            return Bits::default();
        }
        self.graph.all(|_, node| match &node.event {
            &Event::Access { slot, label, writes, .. } => {
                slot == Some(candidate.slot) && writes && label > candidate.label
            }
            Event::Fence => candidate.word.newest_before(&node.clock) > candidate.label,
        })
    }

    /// The fences that happen before the latest event of `thread` come before each node that has
    /// seen more of its word.
    fn order_fences(&mut self, thread: usize, slot: usize, label: u64) {
        if at(&self.claimed, slot, 0) <= label {
            return;
        }
        let later = self.graph.all(|_, node| match &node.event {
            &Event::Access { slot: mine, label: wrote, writes, .. } => {
                mine == Some(slot) && writes && wrote > label
            }
            Event::Fence => at(&node.view, slot, 0) > label,
        });
        let past = &self.threads[thread].nodes;
        let fences = self.graph.all(|index, _| past.has(index) && self.graph.fences.has(index));
        for later in later.iter() {
            self.order_all(&fences, later);
        }
    }

    /// Tells the fences before it of the first access of `thread` to `slot`.
    fn note(&mut self, thread: usize, slot: usize, code: u64) {
        let past = &mut self.threads[thread];
        let noted = slot_of(&mut past.noted, slot, 0);
        if *noted == past.version {
            return;
        }
        *noted = past.version;
        for node in past.nodes.iter() {
            let node = &mut self.graph[node];
            if let Event::Fence = node.event {
                let least = slot_of(&mut node.first, slot, u64::MAX);
                *least = code.min(*least);
            }
        }
    }

    /// Whether `node` happens before an access to `slot` that is no later than `epoch` says, by
    /// thread.
    fn accesses_after(&self, node: &Node, slot: usize, epoch: impl Fn(usize) -> u32) -> bool {
        let Some(logs) = self.logs.get(slot) else { return false };
        logs.iter().enumerate().any(|(thread, log)| {
            let from = at(&node.after, thread, u32::MAX);
            let next = log.partition_point(|&event| event < from);
            log.get(next).is_some_and(|&event| event <= epoch(thread))
        })
    }

    /// A new node, which `thread` knows.
    fn add(&mut self, thread: usize, epoch: u32, event: Event) -> usize {
        let index = self.graph.add(thread, epoch, event);
        self.of_thread[thread].push((epoch, Some(index)));
        let past = &mut self.threads[thread];
        past.nodes.insert(index);
        *slot_of(&mut past.known, thread, 0) = self.of_thread[thread].len();
        index
    }

    /// Edges from all of `sources`. The latest come first: what comes before them needs no edge of
    /// its own then.
    fn order_all(&mut self, sources: &Bits, to: usize) {
        for source in self.graph.latest_first(sources) {
            self.order(source, to);
        }
    }

    fn order(&mut self, from: usize, to: usize) {
        let Some(changed) = self.graph.order(from, to) else { return };
        let fences = self.graph.all(|index, _| changed.has(index) && self.graph.fences.has(index));
        for past in &mut self.threads {
            if past.nodes.meets(&fences) {
                join(&mut past.floor, &self.graph[from].before);
            }
        }
    }

    /// Drops what can be on no cycle any more: nodes that each thread which is still to act knows,
    /// so that no edge to them will be added, and that no edge leads to.
    fn sweep(&mut self) {
        if self.graph.len() < self.sweep_at.max(self.sweep_from) {
            return;
        }
        let everybody_knows =
            |psc: &Self, index| psc.threads.iter().all(|past| past.ended || past.nodes.has(index));
        let next = |psc: &Self| {
            let mut nodes = psc.graph.iter().map(|(index, _)| index);
            nodes.find(|&index| everybody_knows(psc, index) && !psc.graph.has_predecessor(index))
        };
        while let Some(index) = next(self) {
            self.dropped = true;
            self.graph.drop(index);
            for past in &mut self.threads {
                past.nodes.remove(index);
                past.run_nodes.retain(|&node| node != index);
            }
            for events in &mut self.of_thread {
                events.iter_mut().filter(|event| event.1 == Some(index)).for_each(|event| event.1 = None);
            }
        }
        self.sweep_at = 2 * self.graph.len();
    }
}
