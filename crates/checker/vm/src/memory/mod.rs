//! Memory as the C++20 model has it, as a machine that takes steps: words with histories, threads
//! with views.
//!
//! This is RC11 (Lahav, Vafeiadis, Kang, Hur, Dreyer, "Repairing Sequential Consistency in
//! C/C++11", PLDI 2017), made operational as in Kang, Hur, Lahav, Vafeiadis, Dreyer, "A Promising
//! Semantics for Relaxed-Memory Concurrency", POPL 2017, without promises. It is exact: every
//! execution that the axioms admit can be reached by some choices, and no other can.
//!
//! Where it stands beside the standard:
//!
//! - *Load buffering is left out.* RC11's NO-THIN-AIR says that program order and reads-from
//!   together have no cycle, so a load never reads a store that comes later, in either. C++20
//!   allows such executions, and Arm and Power show some. What needs them to fail is not found
//!   here.
//! - *Release sequences* are those of C++20 (P0982): a store heads one and read-modify-writes
//!   continue it; plain stores of the same thread no longer do.
//! - *Sequential consistency* is RC11's `psc`, which C++20 took over (P0668): see the module `sc`.
//! - *Consume* does not exist, as in Rust.
//! - *Threads*: all of the parent's past happens before the child's first event, and the child's
//!   last event before the return of the join. *Atomics*: the first value is plain data of the
//!   thread that creates it, and the end is a plain write. A thread that accesses an atomic must
//!   come after its creation, and before its end, in happens-before, or there is a fault. *Plain
//!   data* is checked for races and holds no values here.
//!
//! # State
//!
//! | of | what | rules |
//! |---|---|---|
//! | a word | messages, in modification order | `history` |
//! | a message | value; the view that an acquiring reader learns; *taken*, if a read-modify-write has read it | |
//! | a thread | `now`, the view of what happened before its next event, with what it has read | `view` |
//! | | `pending`: the views of messages that it read without acquiring | |
//! | | `released`: `now` at the last release fence | |
//! | plain memory | the last accesses, by thread | `plain` |
//! | SC events | their partial order, and each thread's floors by it | `sc`, `graph` |
//!
//! # Steps
//!
//! A step takes choices, and every choice that is offered is allowed.
//!
//! | step | chooses | does |
//! |---|---|---|
//! | load | a message that is not before the floor | raises the floor to it; its view joins `now` if it acquires, else `pending` |
//! | store | a place after the floor, not right after a taken message | a message there, with the view `now` if it releases, else `released` |
//! | update | a message as a load does, not taken if it is going to write | as a load; then a message right after it, as a store, whose view has also that of the message read; that one is taken now |
//! | failing update | a message; a weak one may also choose to fail | as a load with the failure ordering |
//! | acquire fence | | `pending` joins `now` |
//! | release fence | | `released` becomes `now` |
//! | SC fence | | both, and its place in `psc` |
//!
//! The floor of a thread on a word is the newest message that `now` holds, or that `psc` demands.
//! SC accesses leave out the choices that would close a cycle in `psc`.
//!
//! # Invariants
//!
//! 1. A message is in a thread's `now` iff a write or read of it happens before the thread's next
//!    event, or a newer one is. With the floors this is COHERENCE (`hb;eco?` is irreflexive).
//! 2. A read-modify-write stands right after what it read, from its first moment on, and nothing is
//!    placed between. This is ATOMICITY.
//! 3. The view of a message holds exactly the views of the release events that a reader would
//!    synchronise with: its own, if there is one, and, for a read-modify-write, those of what it
//!    read.
//! 4. Steps of different threads can be exchanged unless the later one reads what the earlier one
//!    wrote: the graph of the execution is the same. Explorers may leave out one of the two; the
//!    tests do, and miss nothing.
//!
//! That the steps are the axioms is tested, not proven: see `tests`.

mod access;
mod bits;
mod fault;
mod graph;
mod history;
mod plain;
mod sc;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use access::{Read, Updated, Why};
pub(crate) use fault::{Access, Fault, What};

use crate::choice::Kind;
use crate::engine::At;
use core::cell::Cell;
use core::sync::atomic::Ordering;
use history::{GAP, History, Message};
use plain::Plain;
use sc::Psc;
use std::collections::VecDeque;
use view::{Archive, View, ViewId};

/// An atomic. It stays the name of the one it named when that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Loc {
    slot: u32,
    generation: u32,
}

impl Loc {
    /// A small number that no other living atomic has.
    pub(crate) fn index(self) -> usize {
        self.slot as usize
    }
}

/// A message: one value that was written to one atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MsgId(u32);

/// The chooser: given what is to be chosen and how many there are, at least two, the index of one.
/// 0 is always the tame answer.
pub(crate) type Choose<'a> = &'a mut dyn FnMut(Kind, usize) -> usize;

fn choose_one(choose: Choose<'_>, kind: Kind, n: usize) -> usize {
    debug_assert!(n > 0);
    if n == 1 {
        return 0;
    }
    let index = choose(kind, n);
    assert!(index < n, "the choice {index} of {n}");
    index
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

#[derive(Debug)]
struct Thread {
    /// What happened before the thread's next event, with what it has read.
    now: View,
    /// What an acquire fence would add: the views of messages that were read without acquiring.
    pending: View,
    /// `now` at the last release fence: what stores that do not release themselves carry.
    released: ViewId,
    /// The next read of this slot returns this message or a later one.
    raised: Option<(usize, u64)>,
}

/// The memory of one execution.
#[derive(Debug)]
pub(crate) struct Memory {
    threads: Vec<Thread>,
    /// What threads of earlier executions have allocated.
    spare: Vec<Thread>,
    /// By slot. The first `used` have been used.
    words: Vec<History>,
    used: usize,
    /// Slots whose atomic has ended, oldest first.
    free: VecDeque<u32>,
    archive: Archive,
    plain: Plain,
    messages: u32,
    gap: u64,
    /// Positions that are offered to a choice; kept for its memory.
    offered: Vec<usize>,
    psc: Psc,
}

/// So many slots rest before one is used again: an access after the end is then reported with the
/// place of the end.
const RESTING: usize = 64;

thread_local! {
    /// What the last execution left behind.
    static SPARE: Cell<Option<Memory>> = const { Cell::new(None) };
}

impl Memory {
    /// An empty memory.
    pub(crate) fn new() -> Self {
        SPARE.take().unwrap_or_else(Self::fresh)
    }

    fn fresh() -> Self {
        Self {
            threads: Vec::new(),
            spare: Vec::new(),
            words: Vec::new(),
            used: 0,
            free: VecDeque::new(),
            archive: Archive::default(),
            plain: Plain::default(),
            messages: 0,
            gap: GAP,
            offered: Vec::new(),
            psc: Psc::new(),
        }
    }

    /// The execution is over. What the memory has allocated serves the next one: executions are
    /// short, and would spend more on allocation than on everything else.
    pub(crate) fn recycle(mut self) {
        self.spare.append(&mut self.threads);
        self.words[..self.used].iter_mut().for_each(|word| word.messages.clear());
        self.psc.clear(self.used);
        self.used = 0;
        self.free.clear();
        self.archive.clear();
        self.plain.clear();
        self.messages = 0;
        debug_assert!(self.gap == GAP, "a strange memory is not for others");
        SPARE.set(Some(self));
    }

    /// A memory with less room and patience than others: `gap` from label to label, and SC events
    /// are dropped once there are `sweep`.
    #[cfg(test)]
    fn strange(gap: u64, sweep: usize) -> Self {
        let mut memory = Self { gap, ..Self::fresh() };
        memory.psc.set_strange(sweep);
        memory
    }

    #[cfg(test)]
    fn is_strange(&self) -> bool {
        self.gap != GAP
    }

    /// Whether it holds nothing of an execution.
    #[cfg(test)]
    fn is_blank(&self) -> bool {
        self.threads.is_empty() && self.used == 0 && self.psc.is_blank()
    }

    /// A new thread, which knows what `parent` knows. Threads without a parent come before all
    /// steps.
    pub(crate) fn spawn(&mut self, parent: Option<usize>) -> usize {
        let thread = self.threads.len();
        let (mut now, mut pending) =
            self.spare.pop().map(|thread| (thread.now, thread.pending)).unwrap_or_default();
        now.clear();
        pending.clear();
        if let Some(parent) = parent {
            self.event(parent, None);
            now.copy_from(&self.threads[parent].now);
        }
        now.advance(thread);
        if self.psc.is_active() {
            self.psc.spawn(parent);
        }
        self.threads.push(Thread { now, pending, released: ViewId::NOTHING, raised: None });
        thread
    }

    /// `child` has ended, and `thread` knows that.
    pub(crate) fn join(&mut self, thread: usize, child: usize) {
        self.end(child);
        let epoch = self.event(thread, None);
        let [parent, ended] = self.threads.get_disjoint_mut([thread, child]).expect("two threads");
        parent.now.join(&ended.now);
        if self.psc.is_active() {
            self.psc.learn(thread, epoch, parent.now.clock());
        }
    }

    /// `thread` learns of all that `other` has done so far, by something that is not memory.
    pub(crate) fn hear(&mut self, thread: usize, other: usize) {
        let epoch = self.event(thread, None);
        let [hearer, heard] = self.threads.get_disjoint_mut([thread, other]).expect("two threads");
        hearer.now.join(&heard.now);
        if self.psc.is_active() {
            self.psc.learn(thread, epoch, hearer.now.clock());
        }
    }

    /// `thread` does nothing more. To be told so saves work; that a thread is joined says it too.
    pub(crate) fn end(&mut self, thread: usize) {
        if self.psc.is_active() {
            self.psc.end(thread);
        }
    }

    /// A new atomic whose first value is plain data of `thread`: a thread that uses it must have
    /// learnt of it in order.
    pub(crate) fn create(&mut self, thread: usize, value: u64, at: At) -> Loc {
        let epoch = self.event(thread, None);
        let created = Access { thread, what: What::Create, at };
        let loc = self.begin(value, Some((created, epoch)), Some(at));
        let label = self.words[loc.index()].newest().label;
        self.threads[thread].now.raise(loc.index(), label);
        loc
    }

    /// A new atomic in memory that is zero and known to all.
    pub(crate) fn create_zeroed(&mut self) -> Loc {
        self.begin(0, None, None)
    }

    /// A new atomic whose first value is known to all, as a static's is.
    pub(crate) fn create_known(&mut self, value: u64, at: At) -> Loc {
        self.begin(value, None, Some(at))
    }

    fn begin(&mut self, value: u64, created: Option<(Access, u32)>, at: Option<At>) -> Loc {
        let slot = if self.free.len() > RESTING {
            let slot = self.free.pop_front().expect("more than none") as usize;
            self.psc.reuse(slot);
            slot
        } else {
            if self.used == self.words.len() {
                self.words.push(History::default());
            }
            self.used += 1;
            self.used - 1
        };
        let id = self.next_message();
        let word = &mut self.words[slot];
        let label = word.messages.last().map_or(0, |last| last.label + self.gap);
        word.generation += 1;
        let writer = created.map(|(access, _)| access.thread);
        let epoch = created.map_or(0, |(_, epoch)| epoch);
        let first = Message { label, value, id, view: ViewId::NOTHING, taken: false, writer, epoch, at };
        word.begin(first, created);
        Loc { slot: u32::try_from(slot).expect("fewer than 2^32 atomics"), generation: word.generation }
    }

    /// The atomic ends, which is a write to all of it: a thread that used it must have done so
    /// before. Unless it is not `ordered`: then it ends, and no use of it may follow.
    pub(crate) fn retire(&mut self, thread: usize, loc: Loc, ordered: bool, at: At) -> Result<(), Fault> {
        if ordered {
            self.enter(thread, loc, false, at)?;
        }
        let word = &mut self.words[loc.index()];
        word.end(thread, Some(&self.threads[thread].now).filter(|_| ordered), at)?;
        self.free.push_back(loc.slot);
        Ok(())
    }

    pub(crate) fn fence(&mut self, thread: usize, order: Ordering) {
        if order == Ordering::SeqCst {
            self.psc.activate(self.threads.len());
        }
        let epoch = self.event(thread, None);
        let Self { threads, words, archive, psc, .. } = self;
        let Thread { now, pending, released, .. } = &mut threads[thread];
        if acquires(order) {
            now.join(pending);
            pending.clear();
            if psc.is_active() {
                psc.learn(thread, epoch, now.clock());
            }
        }
        if order == Ordering::SeqCst {
            psc.fence(thread, epoch, now, words);
        }
        if releases(order) {
            *released = archive.keep(now);
        }
    }

    /// The newest value: for the owner of the word, and for the kernel.
    pub(crate) fn newest(&self, loc: Loc) -> u64 {
        self.words[loc.index()].newest().value
    }

    /// The newest value becomes another one, by no event.
    pub(crate) fn poke(&mut self, loc: Loc, value: u64) {
        self.words[loc.index()].messages.last_mut().expect("never empty").value = value;
    }

    /// The newest message of a word, and the thread that wrote it; `None` for the word's first.
    pub(crate) fn newest_message(&self, loc: Loc) -> (MsgId, Option<usize>) {
        let word = &self.words[loc.index()];
        let newest = word.newest();
        (newest.id, newest.writer.filter(|_| word.messages.len() > 1))
    }

    /// The message that was written last, to whatever word.
    pub(crate) fn last_message(&self) -> MsgId {
        MsgId(self.messages)
    }

    /// `size` bytes of plain data at `address` are read.
    pub(crate) fn plain_read(
        &mut self,
        thread: usize,
        address: usize,
        size: usize,
        at: At,
    ) -> Result<(), Fault> {
        self.event(thread, None);
        self.plain.read(thread, &self.threads[thread].now, address, size, at)
    }

    /// `size` bytes of plain data at `address` are written.
    pub(crate) fn plain_write(
        &mut self,
        thread: usize,
        address: usize,
        size: usize,
        at: At,
    ) -> Result<(), Fault> {
        self.event(thread, None);
        self.plain.write(thread, &self.threads[thread].now, address, size, at)
    }

    /// `size` bytes of plain data at `address` have ended, or moved.
    pub(crate) fn plain_forget(&mut self, address: usize, size: usize) {
        self.plain.forget(address, size);
    }

    /// Whether a thread that has read `value` from the message `seen` can read another value later,
    /// without a thread writing one.
    pub(crate) fn has_other(&self, loc: Loc, seen: MsgId, value: u64) -> bool {
        let word = &self.words[loc.index()];
        word.messages.iter().rev().take_while(|message| message.id != seen).any(|other| other.value != value)
    }

    /// Sees to it that `thread`, which has read `value` from the message `seen` and waits for
    /// something else, reads a message with another value, or a later one, when it reads the word
    /// next. There is such ([`Self::has_other`]).
    pub(crate) fn raise(&mut self, thread: usize, loc: Loc, seen: MsgId, value: u64, choose: Choose<'_>) {
        let word = &self.words[loc.index()];
        let after = word.find(seen).map_or(0, |position| position + 1);
        self.offered.clear();
        self.offered.extend((after..word.messages.len()).rev().filter(|&p| word.messages[p].value != value));
        if !self.offered.is_empty() {
            let chosen = self.offered[choose_one(choose, Kind::Message, self.offered.len())];
            self.threads[thread].raised = Some((loc.index(), word.messages[chosen].label));
        }
    }

    /// One more event of `thread`, on a word or on none; its number.
    fn event(&mut self, thread: usize, slot: Option<usize>) -> u32 {
        let now = &mut self.threads[thread].now;
        let epoch = now.advance(thread);
        if self.psc.is_active() {
            self.psc.turn(thread, epoch, slot, now.clock());
        }
        epoch
    }

    /// An event of `thread` on `loc`, which may be an SC access.
    fn enter(&mut self, thread: usize, loc: Loc, is_sc: bool, at: At) -> Result<u32, Fault> {
        if is_sc {
            self.psc.activate(self.threads.len());
        }
        let epoch = self.event(thread, Some(loc.index()));
        self.words[loc.index()].access(loc, thread, epoch, &self.threads[thread].now, at)?;
        Ok(epoch)
    }

    fn next_message(&mut self) -> MsgId {
        self.messages += 1;
        MsgId(self.messages)
    }

    /// Makes room between the messages of a word.
    fn relabel(&mut self, slot: usize) {
        let old = self.words[slot].relabel(self.gap);
        let first = old[0];
        let gap = self.gap;
        let rename = |label: &mut u64| {
            // Labels from before the first name messages of atomics that had this slot earlier.
            if *label > first {
                let position = old.binary_search(label).expect("a label names a message");
                *label = first + position as u64 * gap;
            }
        };
        for thread in &mut self.threads {
            thread.now.label_mut(slot).map(rename);
            thread.pending.label_mut(slot).map(rename);
            if let Some((raised, label)) = &mut thread.raised
                && *raised == slot
            {
                rename(label);
            }
        }
        for view in self.archive.iter_mut() {
            view.label_mut(slot).map(rename);
        }
        self.psc.relabel(slot, rename);
    }
}
