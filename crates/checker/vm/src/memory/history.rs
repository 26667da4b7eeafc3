//! The history of one word: its messages, in modification order.
//!
//! A message is named inside its word by a *label*. Labels grow along the modification order, and a
//! message that is placed between two others gets one between theirs, so that labels never change
//! and a view is a plain array of numbers. Where there is no room left, the word is relabelled,
//! with everything that names its messages.

use super::fault::{Access, Fault, What};
use super::view::{View, ViewId};
use super::{Loc, MsgId};
use crate::engine::At;

/// From one message to the next at the end of a history: room for 32 that are placed between, one
/// after the other.
pub(super) const GAP: u64 = 1 << 32;

#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) label: u64,
    pub(super) value: u64,
    pub(super) id: MsgId,
    /// What an acquiring reader learns.
    pub(super) view: ViewId,
    /// A read-modify-write has read it, and stands right after it: nothing else may.
    pub(super) taken: bool,
    /// The thread that wrote it, and by which of its events.
    pub(super) writer: Option<usize>,
    pub(super) epoch: u32,
    pub(super) at: Option<At>,
}

#[derive(Debug, Default)]
pub(super) struct History {
    /// Never empty. In modification order.
    pub(super) messages: Vec<Message>,
    pub(super) generation: u32,
    /// The thread that created it, and by which of its events; `None` for zeroed memory.
    created: Option<(Access, u32)>,
    ended: Option<Access>,
    /// By thread: the last access, and which of its events that was. 0: none.
    last: Vec<(u32, Option<At>)>,
    /// The reads of it as plain data, by thread and its event.
    alone: Vec<(usize, u32, At)>,
}

impl History {
    /// Begins anew, with one message; its label is larger than any before.
    pub(super) fn begin(&mut self, first: Message, created: Option<(Access, u32)>) {
        self.messages.clear();
        self.messages.push(first);
        self.created = created;
        self.ended = None;
        self.last.clear();
        self.alone.clear();
    }

    pub(super) fn newest(&self) -> &Message {
        self.messages.last().expect("a word has a value from the start")
    }

    /// The first message that is not before `floor`.
    pub(super) fn position(&self, floor: u64) -> usize {
        let newest = self.messages.len() - 1;
        if self.messages[newest].label <= floor {
            return newest;
        }
        self.messages.partition_point(|message| message.label < floor)
    }

    /// The position of a message, looked for from the newest.
    pub(super) fn find(&self, id: MsgId) -> Option<usize> {
        self.messages.iter().rposition(|message| message.id == id)
    }

    /// The newest message whose write happened before a thread that has `clock`; 0 if that is none.
    pub(super) fn newest_before(&self, clock: &[u32]) -> u64 {
        let happened = |message: &&Message| {
            let epoch = |writer: usize| clock.get(writer).copied().unwrap_or(0);
            message.writer.is_none_or(|writer| message.epoch <= epoch(writer))
        };
        self.messages.iter().rev().find(happened).map_or(0, |message| message.label)
    }

    /// A label right after the message at `position`, if there is room.
    pub(super) fn label_after(&self, position: usize, gap: u64) -> Option<u64> {
        let before = self.messages[position].label;
        match self.messages.get(position + 1) {
            None => Some(before + gap),
            Some(next) => Some(before + (next.label - before) / 2).filter(|&label| label > before),
        }
    }

    /// That `thread`, which knows `view`, may access the word with its event `epoch`; it has done
    /// so then.
    pub(super) fn access(
        &mut self,
        loc: Loc,
        thread: usize,
        epoch: u32,
        view: &View,
        at: At,
    ) -> Result<(), Fault> {
        let access = || Access { thread, what: What::Atomic, at };
        if loc.generation != self.generation || self.ended.is_some() {
            let ended = self.ended.filter(|_| loc.generation == self.generation);
            return Err(Fault::Dead { access: access(), ended });
        }
        if let Some((created, by)) = self.created
            && view.epoch(created.thread) < by
        {
            return Err(Fault::Unpublished { access: access(), created });
        }
        if thread >= self.last.len() {
            self.last.resize(thread + 1, (0, None));
        }
        self.last[thread] = (epoch, Some(at));
        Ok(())
    }

    /// That `second`, by a thread that has accessed the word just now and knows `view`, comes after
    /// all others.
    pub(super) fn comes_last(&self, second: Access, view: &View) -> Result<(), Fault> {
        for (other, &(epoch, place)) in self.last.iter().enumerate() {
            if let Some(place) = place
                && view.epoch(other) < epoch
            {
                let first = Access { thread: other, what: What::Atomic, at: place };
                return Err(Fault::Race { first, second });
            }
        }
        Ok(())
    }

    /// That `thread`, which has accessed the word just now, comes after all others, and may end it.
    /// Without a view it may.
    pub(super) fn end(&mut self, thread: usize, view: Option<&View>, at: At) -> Result<(), Fault> {
        let access = Access { thread, what: What::Retire, at };
        view.map_or(Ok(()), |view| self.comes_last(access, view))?;
        self.ended = Some(access);
        Ok(())
    }

    /// That `thread` comes after all writes, and may read the word as plain data with its event
    /// `epoch`; it has done so then. The value.
    pub(super) fn read_alone(
        &mut self,
        thread: usize,
        epoch: u32,
        view: &View,
        at: At,
    ) -> Result<u64, Fault> {
        let second = Access { thread, what: What::PlainRead, at };
        for message in &self.messages {
            if let Message { writer: Some(writer), epoch, at: Some(at), .. } = *message
                && view.epoch(writer) < epoch
            {
                let first = Access { thread: writer, what: What::Atomic, at };
                return Err(Fault::Race { first, second });
            }
        }
        self.alone.push((thread, epoch, at));
        Ok(self.newest().value)
    }

    /// That `thread` comes after all reads of the word as plain data, and may write it.
    pub(super) fn may_write(&self, thread: usize, view: &View, at: At) -> Result<(), Fault> {
        for &(reader, epoch, place) in &self.alone {
            if view.epoch(reader) < epoch {
                let first = Access { thread: reader, what: What::PlainRead, at: place };
                let second = Access { thread, what: What::Atomic, at };
                return Err(Fault::Race { first, second });
            }
        }
        Ok(())
    }

    /// Spreads the labels, from the first, which stays; the old ones.
    pub(super) fn relabel(&mut self, gap: u64) -> Vec<u64> {
        let old = self.messages.iter().map(|message| message.label).collect();
        let mut label = self.messages[0].label;
        for message in &mut self.messages {
            message.label = label;
            label += gap;
        }
        old
    }
}
