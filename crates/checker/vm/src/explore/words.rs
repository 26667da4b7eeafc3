//! The words of an execution: the numbers in their bytes, and the operations on their histories.

use super::bounds::Bound;
use super::coverage::{Event, Operation};
use super::machine::{Machine, Status};
use super::narrow::Class;
use super::run::Choices;
use super::story::Said;
use crate::choice::{Footprint, Kind, Strategy as _};
use crate::engine::{At, Update, Width, Word};
use crate::memory::{Fault, Loc, MsgId, Read, Updated, What, Why};
use core::sync::atomic::Ordering;

/// A value read, for reports.
pub(super) struct Seen {
    pub(super) value: u64,
    pub(super) message: MsgId,
    pub(super) newer: usize,
    pub(super) writer: Option<usize>,
    pub(super) written_at: Option<At>,
    pub(super) why: Why,
}

impl Seen {
    fn of(read: &Read) -> Self {
        Self {
            value: read.value,
            message: read.message,
            newer: read.newer,
            writer: read.writer,
            written_at: read.written_at,
            why: read.why,
        }
    }
}

impl Machine<'_, '_> {
    pub(super) fn create(&mut self, value: u64, width: Width, at: At) -> u64 {
        self.moves_on();
        let loc = match self.before_all {
            true => self.memory.create_known(value, at),
            false => self.memory.create(self.current, value, at),
        };
        if let Some(story) = &mut self.story {
            story.made(self.steps, self.current, loc, at);
        }
        self.number(loc, width, Some((self.current, value)))
    }

    /// Gives `loc` the number that goes into the bytes of its word.
    fn number(&mut self, loc: Loc, width: Width, class: Class) -> u64 {
        match width {
            Width::W8 => return self.bytes.number(loc, class, self.run),
            Width::W16 => return self.halves.number(loc, class, self.run),
            Width::W32 | Width::W64 => {}
        }
        self.words.push(loc);
        let number = self.first_number + self.words.len() as u64 - 1;
        assert!(u32::try_from(number).is_ok(), "too many atomics in one execution");
        number
    }

    /// The history of `word`; `None` if its bytes name none of this run.
    pub(super) fn loc_of(&mut self, word: Word) -> Option<Loc> {
        let bits = word.bits();
        if bits == 0 {
            let loc = self.memory.create_zeroed();
            let number = self.number(loc, word.width(), None);
            word.set_bits(number);
            self.known(word);
            return Some(loc);
        }
        self.known(word)
    }

    fn known(&mut self, word: Word) -> Option<Loc> {
        let address = self.canonical_address(word.address());
        match word.width() {
            Width::W8 => self.bytes.find(word.bits(), address, self.run),
            Width::W16 => self.halves.find(word.bits(), address, self.run),
            Width::W32 | Width::W64 => {
                let index = word.bits().checked_sub(self.first_number)?;
                self.words.get(usize::try_from(index).ok()?).copied()
            }
        }
    }

    pub(super) fn peek(&mut self, word: Word) -> u64 {
        self.known(word).map_or(0, |loc| self.memory.newest(loc))
    }

    /// The newest value is another one, though no thread has written it.
    pub(super) fn poke(&mut self, word: Word, value: u64) {
        if let Some(loc) = self.loc_of(word) {
            self.memory.poke(loc, value);
        }
    }

    pub(super) fn retire(&mut self, word: Word, at: At) -> Result<(), Fault> {
        self.moves_on();
        let Some(loc) = self.known(word) else { return Ok(()) };
        match word.width() {
            Width::W8 => self.bytes.end(loc),
            Width::W16 => self.halves.end(loc),
            Width::W32 | Width::W64 => {}
        }
        self.tell(at, || Said::Dropped { loc });
        self.memory.retire(self.current, loc, self.config.ordered_drops, at)
    }

    /// The model calls the word `label`.
    pub(super) fn name(&mut self, word: Word, label: &str) {
        if self.story.is_some()
            && let Some(loc) = self.loc_of(word)
            && let Some(story) = &mut self.story
        {
            story.label(loc, label);
        }
    }

    /// An update of the newest value.
    pub(super) fn settle(
        &mut self,
        loc: Loc,
        update: &Update<'_>,
        at: At,
    ) -> Result<Result<u64, u64>, Fault> {
        let updated = self.memory.update(self.current, loc, update, at, &mut |_, _| 0)?;
        let before = updated.read.value;
        let after = updated.written.is_some().then(|| (update.change)(before)).flatten();
        let message = updated.written.as_ref().map_or(updated.read.message, |written| written.message);
        self.looked(loc, updated.read.message, before, false);
        self.looked(loc, message, after.unwrap_or(before), after.is_some());
        if after.is_some_and(|after| after != before) {
            self.changes_something();
        }
        let name = update.name;
        self.tell(at, || Said::Update {
            loc,
            name,
            order: if after.is_some() { update.success } else { update.failure },
            seen: Seen::of(&updated.read),
            after: after.map(|after| (message, after)),
            would_have: false,
        });
        Ok(if after.is_some() { Ok(before) } else { Err(before) })
    }

    /// A read as plain data, or the read before a write.
    pub(super) fn alone(&mut self, loc: Loc, writes: bool, at: At) -> Result<u64, Fault> {
        let value = self.memory.alone(self.current, loc, writes, at)?;
        let verb = if writes { "changes" } else { "reads" };
        self.tell(at, || Said::Text(format!("{verb} {value:#x} as plain data")));
        Ok(value)
    }

    pub(super) fn load(&mut self, loc: Loc, order: Ordering, at: At) -> Result<u64, Fault> {
        let fresh = self.must_read_the_newest(loc) || self.may_not_surprise();
        self.load_from(loc, order, fresh, at)
    }

    /// The thread that runs has returned: a store that belongs to its last step.
    pub(super) fn say_returned(&mut self, loc: Loc, at: At) -> Result<(), Fault> {
        self.changes_something();
        let written = self.memory.store(self.current, loc, 1, Ordering::Relaxed, at, &mut |_, _| 0)?;
        if self.story.is_some() {
            self.untold.push((loc, written.message, self.current, at));
        }
        Ok(())
    }

    /// Reads a word that stands for more, such as whether a thread has returned. There is no step
    /// between its last one and its end. An old answer stands for what is asked in between, so
    /// there is one also where loads read no old values.
    pub(super) fn ask(&mut self, loc: Loc, may_be_old: bool, at: At) -> Result<u64, Fault> {
        self.asked.push(loc);
        if let Some(story) = &mut self.story
            && let Some(nth) = self.untold.iter().position(|&(of, ..)| of == loc)
        {
            let (loc, message, thread, at) = self.untold.swap_remove(nth);
            let said = Said::Store { loc, order: Ordering::Relaxed, value: 1, newer: 0, message };
            story.tell(self.steps, thread, at, said);
        }
        let fresh = self.has_read_often(loc, self.config.stale.max(1)) || self.may_not_surprise();
        self.load_from(loc, Ordering::Relaxed, fresh || self.steering.is_tame() || !may_be_old, at)
    }

    fn load_from(&mut self, loc: Loc, order: Ordering, fresh: bool, at: At) -> Result<u64, Fault> {
        let mut left_out = false;
        let read = self.memory.load(
            self.current,
            loc,
            order,
            at,
            &mut chooser(self.choices, !fresh, &mut left_out),
        )?;
        self.hit_if(left_out, self.bound(Bound::Stale), at);
        self.count_surprise(read.newer > 0);
        self.has_read(loc, &read);
        self.looked(loc, read.message, read.value, false);
        self.cover(at, Operation::Load, if read.newer > 0 { &[Event::ReadOld] } else { &[] });
        self.tell(at, || Said::Load { loc, order, seen: Seen::of(&read) });
        Ok(read.value)
    }

    /// Whether the current thread has read one message of `loc` as often as it may while there are
    /// newer ones. On a real machine every store becomes visible at some time; without this rule no
    /// loop around a load would have to end.
    fn must_read_the_newest(&self, loc: Loc) -> bool {
        self.config.stale == 0 || self.steering.is_tame() || self.is_at_the_limit(loc)
    }

    fn is_at_the_limit(&self, loc: Loc) -> bool {
        self.has_read_often(loc, self.config.stale)
    }

    /// Whether the current thread has read one message of `loc` so often in a row.
    fn has_read_often(&self, loc: Loc, limit: u32) -> bool {
        let reads = &self.threads[self.current].reads;
        reads.iter().any(|(of, _, count)| *of == loc && *count >= limit)
    }

    /// What the current thread's next read of `loc` touches. Where it has to read the newest
    /// message it makes a difference whether another has stored one before, and a read or an update
    /// does not say so: an old message would do.
    pub(super) fn reading(&self, loc: Loc, otherwise: Footprint) -> Footprint {
        if self.is_systematic && self.config.stale > 0 && self.is_at_the_limit(loc) {
            Footprint::Newest(number(loc))
        } else {
            otherwise
        }
    }

    /// Counts reads of one message in a row. In a systematic exploration also those of the newest:
    /// whether a message is the newest depends on what other threads have done by now, and how
    /// often it may be read must not, or else steps that are taken to change places do not.
    fn has_read(&mut self, loc: Loc, read: &Read) {
        let counts = self.is_systematic || read.newer > 0;
        let reads = &mut self.threads[self.current].reads;
        match reads.iter_mut().find(|(of, _, _)| *of == loc) {
            Some((_, message, count)) if counts && *message == read.message => *count += 1,
            Some(known) => *known = (loc, read.message, u32::from(counts)),
            None => reads.push((loc, read.message, u32::from(counts))),
        }
    }

    pub(super) fn store(&mut self, loc: Loc, value: u64, order: Ordering, at: At) -> Result<(), Fault> {
        let stale = self.config.stale > 0 && !self.steering.is_tame() && !self.may_not_surprise();
        let mut left_out = false;
        let written = self.memory.store(
            self.current,
            loc,
            value,
            order,
            at,
            &mut chooser(self.choices, stale, &mut left_out),
        )?;
        self.hit_if(left_out, self.bound(Bound::Stale), at);
        self.count_surprise(written.newer > 0);
        self.looked(loc, written.message, value, true);
        self.cover(at, Operation::Store, if written.newer > 0 { &[Event::PlacedBehind] } else { &[] });
        self.moves_on();
        self.tell(at, || Said::Store { loc, order, value, newer: written.newer, message: written.message });
        Ok(())
    }

    pub(super) fn update(
        &mut self,
        loc: Loc,
        update: &Update<'_>,
        at: At,
    ) -> Result<Result<u64, u64>, Fault> {
        let me = self.current;
        let fresh = self.may_not_surprise() || self.must_read_the_newest(loc);
        // An exchange that fails for no reason, is tried again at the same place, and fails again
        // shows nothing new, unless the program counts.
        let may_fail = !self.steering.is_tame()
            && !self.may_not_surprise()
            && (!self.is_systematic || self.threads[me].failed_weakly != Some((loc, at)));
        let (mut stale, mut weak) = (false, false);
        let updated = {
            let mut choose = chooser(self.choices, !fresh, &mut stale);
            let mut choose = |kind, count| match kind {
                Kind::WeakFailure if !may_fail => {
                    weak |= count > 1;
                    0
                }
                _ => choose(kind, count),
            };
            self.memory.update(me, loc, update, at, &mut choose)?
        };
        self.hit_if(stale, self.bound(Bound::Stale), at);
        self.hit_if(weak, self.bound(Bound::WeakFailures), at);
        self.count_surprise(updated.spurious || updated.read.newer > 0);
        self.has_read(loc, &updated.read);
        let failed = &mut self.threads[me].failed_weakly;
        if updated.spurious || *failed == Some((loc, at)) {
            *failed = updated.spurious.then_some((loc, at));
        }
        let before = updated.read.value;
        let after = updated.written.as_ref().map(|written| (written.message, (update.change)(before)));
        match after {
            Some((message, value)) => {
                self.looked(loc, updated.read.message, before, false);
                self.looked(loc, message, value.unwrap_or(before), true);
                if value.is_some_and(|value| value != before) {
                    self.threads[me].yields.is_busy();
                    self.threads[me].round.changes_something();
                }
            }
            None => self.looked(loc, updated.read.message, before, false),
        }
        // One that read an older value fails because that has been replaced; the next round has to
        // see by what.
        let read = &updated.read;
        if updated.spurious && (read.newer == 0 || !self.memory.has_other(loc, read.message, before)) {
            self.begins_again();
        }
        let (name, success, failure) = (update.name, update.success, update.failure);
        let operation = Operation::of(update);
        self.cover(
            at,
            operation,
            match updated {
                Updated { written: None, spurious: true, .. } => &[Event::FailedForNoReason],
                Updated { written: None, .. } => &[Event::Failed],
                _ => &[Event::Exchanged],
            },
        );
        if updated.read.newer > 0 {
            self.cover_end(at, operation, Event::ReadOld);
        }
        self.tell(at, || Said::Update {
            loc,
            name,
            order: if after.is_some() { success } else { failure },
            seen: Seen::of(&updated.read),
            after: after.map(|(message, value)| (message, value.unwrap_or(before))),
            would_have: updated.spurious,
        });
        Ok(if after.is_some() { Ok(before) } else { Err(before) })
    }

    /// An exploration of all executions has left some out.
    #[inline]
    pub(super) fn hit_if(&mut self, left_out: bool, bound: Bound, at: At) {
        if left_out && self.is_systematic {
            self.bounds.hit(bound, at);
        }
    }

    pub(super) fn fence(&mut self, order: Ordering, at: At) {
        self.memory.fence(self.current, order);
        self.tell(at, || Said::Fence { order });
    }

    /// A fence on every thread of the process, wherever it is, between two of the caller. More than
    /// fences: the kernel interrupts the CPU of each thread and waits for it, so what the caller
    /// did before is known to what the thread does afterwards, and the other way round. A thread
    /// that does not run is as well ordered by its next switch.
    pub(super) fn membarrier(&mut self, at: At) {
        let (current, process) = (self.current, self.process_of(self.current));
        self.memory.fence(current, Ordering::SeqCst);
        for thread in 0..self.threads.len() {
            if thread == current || self.process_of(thread) != process {
                continue;
            }
            if self.threads[thread].status != Status::Done {
                self.memory.hear(thread, current);
                self.memory.fence(thread, Ordering::SeqCst);
            }
            self.memory.hear(current, thread);
        }
        self.memory.fence(current, Ordering::SeqCst);
        self.tell(at, || Said::Membarrier);
    }

    pub(super) fn read_plain(&mut self, address: usize, size: usize, at: At) -> Result<(), Fault> {
        self.demand_memory(address, What::PlainRead, at)?;
        self.tell(at, || Said::Plain { address, size, write: false });
        self.memory.plain_read(self.current, address, size, at)
    }

    pub(super) fn write_plain(&mut self, address: usize, size: usize, at: At) -> Result<(), Fault> {
        self.demand_memory(address, What::PlainWrite, at)?;
        self.changes_something();
        self.tell(at, || Said::Plain { address, size, write: true });
        self.memory.plain_write(self.current, address, size, at)
    }

    pub(super) fn forget_plain(&mut self, address: usize, size: usize, at: At) -> Result<(), Fault> {
        if self.config.ordered_drops {
            self.memory.plain_write(self.current, address, size, at)?;
        }
        self.memory.plain_forget(address, size);
        Ok(())
    }
}

/// The source of answers to the questions of the memory. Without `stale`, the tame answer does;
/// `left_out` tells whether there was another one.
pub(super) fn chooser<'c>(
    choices: &'c mut Choices<'_>,
    stale: bool,
    left_out: &'c mut bool,
) -> impl FnMut(Kind, usize) -> usize + 'c {
    move |kind, count| match kind {
        Kind::Message | Kind::Place if !stale => {
            *left_out |= count > 1;
            0
        }
        _ => choices.pick(kind, count),
    }
}

/// The number of a word for people and for footprints.
pub(super) fn number(loc: Loc) -> u32 {
    loc.index() as u32
}
