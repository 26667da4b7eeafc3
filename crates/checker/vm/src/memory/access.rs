//! Loads, stores and read-modify-writes.

use super::history::{History, Message};
use super::sc::Candidate;
use super::view::{Archive, ViewId};
use super::{Access, Choose, Fault, Loc, Memory, MsgId, Thread, What, acquires, choose_one, releases};
use crate::choice::Kind;
use crate::engine::{At, Update};
use core::fmt;
use core::sync::atomic::Ordering;

/// What was read, and for reports, where it came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) value: u64,
    pub(crate) message: MsgId,
    /// How many messages are newer.
    pub(crate) newer: usize,
    /// The thread that wrote it, and where; `None` for zeroed memory.
    pub(crate) writer: Option<usize>,
    pub(crate) written_at: Option<At>,
    pub(crate) why: Why,
}

/// Why the reader could read this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is none newer.
    Newest,
    /// A newer one, of which this is the oldest, does not happen before the read, nor does any read
    /// of it.
    Unordered { writer: usize, written_at: At },
}

/// What was written, where in modification order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) message: MsgId,
    /// How many messages it was placed before.
    pub(crate) newer: usize,
}

/// What a read-modify-write did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Updated {
    pub(crate) read: Read,
    pub(crate) written: Option<Written>,
    /// It failed although the value was the expected one.
    pub(crate) spurious: bool,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest => f.write_str("the newest value"),
            Self::Unordered { writer, written_at } => {
                write!(f, "nothing orders this after the next value, by thread {writer} at {written_at}")
            }
        }
    }
}

/// An access that is being made.
#[derive(Clone, Copy)]
struct Step {
    thread: usize,
    /// Which of the thread's events it is.
    epoch: u32,
    slot: usize,
    at: At,
}

impl Memory {
    pub(crate) fn load(
        &mut self,
        thread: usize,
        loc: Loc,
        order: Ordering,
        at: At,
        choose: Choose<'_>,
    ) -> Result<Read, Fault> {
        let is_sc = order == Ordering::SeqCst;
        let step = self.begin_step(thread, loc, is_sc, at)?;
        let newest = self.words[step.slot].messages.len() - 1;
        let lowest = self.words[step.slot].position(self.reading_floor(step));
        let position = if is_sc {
            self.offered.clear();
            for position in (lowest..=newest).rev() {
                if self.psc.admits(self.candidate(step, position, true, false)) {
                    self.offered.push(position);
                }
            }
            self.offered[choose_one(choose, Kind::Message, self.offered.len())]
        } else {
            newest - choose_one(choose, Kind::Message, newest - lowest + 1)
        };
        let read = self.describe(step, position);
        self.keep_order(step, position, true, None, order);
        self.observe(step, position, order);
        Ok(read)
    }

    pub(crate) fn store(
        &mut self,
        thread: usize,
        loc: Loc,
        value: u64,
        order: Ordering,
        at: At,
        choose: Choose<'_>,
    ) -> Result<Written, Fault> {
        let is_sc = order == Ordering::SeqCst;
        let step = self.begin_step(thread, loc, is_sc, at)?;
        self.words[step.slot].may_write(thread, &self.threads[thread].now, at)?;
        let lowest = self.words[step.slot].position(self.floor(step));
        self.offered.clear();
        for position in (lowest..self.words[step.slot].messages.len()).rev() {
            let taken = self.words[step.slot].messages[position].taken;
            if !taken && (!is_sc || self.psc.admits(self.candidate(step, position, false, true))) {
                self.offered.push(position);
            }
        }
        let position = self.offered[choose_one(choose, Kind::Place, self.offered.len())];
        let label = self.room(step, position);
        self.keep_order(step, position, false, Some(label), order);
        let view = self.released_by(step, label, order, ViewId::NOTHING);
        Ok(self.insert(step, position, label, value, view))
    }

    pub(crate) fn update(
        &mut self,
        thread: usize,
        loc: Loc,
        update: &Update<'_>,
        at: At,
        choose: Choose<'_>,
    ) -> Result<Updated, Fault> {
        let is_sc = [update.success, update.failure].contains(&Ordering::SeqCst);
        let step = self.begin_step(thread, loc, is_sc, at)?;
        let lowest = self.words[step.slot].position(self.reading_floor(step));
        self.offered.clear();
        for position in (lowest..self.words[step.slot].messages.len()).rev() {
            let (succeeds, fails) = self.prospects(step, position, update);
            if succeeds || fails {
                self.offered.push(position);
            }
        }
        let position = self.offered[choose_one(&mut *choose, Kind::Message, self.offered.len())];
        let read = self.describe(step, position);
        let fails = match self.prospects(step, position, update) {
            (true, true) => choose_one(choose, Kind::WeakFailure, 2) == 1,
            (succeeds, _) => !succeeds,
        };
        let new = (update.change)(read.value);
        match new.filter(|_| !fails) {
            None => {
                self.keep_order(step, position, true, None, update.failure);
                self.observe(step, position, update.failure);
                Ok(Updated { read, written: None, spurious: new.is_some() })
            }
            Some(new) => {
                let label = self.room(step, position);
                self.keep_order(step, position, true, Some(label), update.success);
                self.observe(step, position, update.success);
                self.words[step.slot].may_write(thread, &self.threads[thread].now, at)?;
                let message = &mut self.words[step.slot].messages[position];
                message.taken = true;
                let continued = message.view;
                let view = self.released_by(step, label, update.success, continued);
                let written = self.insert(step, position, label, new, view);
                Ok(Updated { read, written: Some(written), spurious: false })
            }
        }
    }

    /// The word is read as plain data, or written so.
    pub(crate) fn alone(&mut self, thread: usize, loc: Loc, writes: bool, at: At) -> Result<u64, Fault> {
        let step = self.begin_step(thread, loc, false, at)?;
        let (word, view) = (&mut self.words[step.slot], &self.threads[thread].now);
        if writes {
            word.comes_last(Access { thread, what: What::PlainWrite, at }, view)?;
        }
        word.read_alone(thread, step.epoch, view, at)
    }

    fn begin_step(&mut self, thread: usize, loc: Loc, is_sc: bool, at: At) -> Result<Step, Fault> {
        let epoch = self.enter(thread, loc, is_sc, at)?;
        Ok(Step { thread, epoch, slot: loc.index(), at })
    }

    /// Whether the update may read the message at `position` and write, and whether it may read it
    /// and fail.
    fn prospects(&self, step: Step, position: usize, update: &Update<'_>) -> (bool, bool) {
        let message = &self.words[step.slot].messages[position];
        let writes = (update.change)(message.value).is_some();
        let admitted = |order, writes| {
            order != Ordering::SeqCst || self.psc.admits(self.candidate(step, position, true, writes))
        };
        (
            writes && !message.taken && admitted(update.success, true),
            (!writes || update.weak) && admitted(update.failure, false),
        )
    }

    /// The access, if it reads the message at `position`, or writes after it, or both.
    fn candidate(&self, step: Step, position: usize, reads: bool, writes: bool) -> Candidate<'_> {
        let Self { threads, archive, words, .. } = self;
        candidate(threads, archive, words, step, position, reads, writes)
    }

    /// The oldest message that may still be written after.
    fn floor(&self, step: Step) -> u64 {
        self.threads[step.thread].now.label(step.slot).max(self.psc.floor(step.thread, step.slot))
    }

    /// The oldest message that may still be read.
    fn reading_floor(&self, step: Step) -> u64 {
        let floor = self.floor(step);
        match self.threads[step.thread].raised {
            Some((raised, label)) if raised == step.slot => floor.max(label),
            _ => floor,
        }
    }

    fn describe(&self, step: Step, position: usize) -> Read {
        let messages = &self.words[step.slot].messages;
        let message = &messages[position];
        let why = match messages.get(position + 1) {
            Some(&Message { writer: Some(writer), at: Some(written_at), .. }) => {
                Why::Unordered { writer, written_at }
            }
            _ => Why::Newest,
        };
        Read {
            value: message.value,
            message: message.id,
            newer: messages.len() - 1 - position,
            writer: message.writer,
            written_at: message.at,
            why,
        }
    }

    /// Gives the access its place among the SC events. If it writes, its message will have the
    /// label `new`.
    fn keep_order(&mut self, step: Step, position: usize, reads: bool, new: Option<u64>, order: Ordering) {
        let Self { threads, archive, words, psc, .. } = self;
        if psc.is_active() {
            let candidate = candidate(threads, archive, words, step, position, reads, new.is_some());
            psc.access(candidate, step.epoch, new, order == Ordering::SeqCst);
        }
    }

    /// The message at `position` is read.
    fn observe(&mut self, step: Step, position: usize, order: Ordering) {
        let Self { threads, archive, words, psc, .. } = self;
        let message = &words[step.slot].messages[position];
        let Thread { now, pending, raised, .. } = &mut threads[step.thread];
        now.raise(step.slot, message.label);
        if let Some(view) = archive.get(message.view) {
            if acquires(order) {
                now.join(view);
                if psc.is_active() {
                    psc.learn(step.thread, step.epoch, now.clock());
                }
            } else {
                pending.join(view);
            }
        }
        if raised.is_some_and(|(raised, _)| raised == step.slot) {
            *raised = None;
        }
    }

    /// A label for a message right after the one at `position`.
    fn room(&mut self, step: Step, position: usize) -> u64 {
        self.words[step.slot].label_after(position, self.gap).unwrap_or_else(|| {
            self.relabel(step.slot);
            self.words[step.slot].label_after(position, self.gap).expect("there is room now")
        })
    }

    /// What a message with the label `label` is going to carry, which continues a release sequence
    /// that carries `continued`. The writer knows of the message.
    fn released_by(&mut self, step: Step, label: u64, order: Ordering, continued: ViewId) -> ViewId {
        let Thread { now, released, .. } = &mut self.threads[step.thread];
        now.raise(step.slot, label);
        match (releases(order), acquires(order)) {
            // What an acquiring update has read is part of what it knows.
            (true, true) => self.archive.keep(now),
            (true, false) => {
                let own = self.archive.keep(now);
                self.archive.union(own, continued)
            }
            (false, _) => self.archive.union(*released, continued),
        }
    }

    /// A message is written right after the one at `position`.
    fn insert(&mut self, step: Step, position: usize, label: u64, value: u64, view: ViewId) -> Written {
        let id = self.next_message();
        let Step { thread, epoch, slot, at } = step;
        let message =
            Message { label, value, id, view, taken: false, writer: Some(thread), epoch, at: Some(at) };
        let messages = &mut self.words[slot].messages;
        messages.insert(position + 1, message);
        Written { message: id, newer: messages.len() - position - 2 }
    }
}

fn candidate<'a>(
    threads: &'a [Thread],
    archive: &'a Archive,
    words: &'a [History],
    step: Step,
    position: usize,
    reads: bool,
    writes: bool,
) -> Candidate<'a> {
    let Step { thread, slot, .. } = step;
    let message = &words[slot].messages[position];
    Candidate {
        thread,
        slot,
        label: message.label,
        writes,
        now: &threads[thread].now,
        acquired: archive.get(message.view).filter(|_| reads),
        word: &words[slot],
    }
}
