//! The writers' part of the protocol: to own the lock, and to sift. How it is given back is in
//! [`release`](super::release), what the labels and numbers mean in [`raw`](super::raw).

use crate::pending::GRACE;
use crate::raw::{PolicyOf, RawPsRwLock};
use crate::readers::Readers;
use crate::sifted::Discipline;
use crate::word::{Layout, Lines, NOBODY, OWNER, State, WRITERS};
use core::cell::Cell;
use core::time::Duration;
use ulocks_core::futex::{Bits, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::signal::Mask;
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, sync};

/// How long the owner sleeps, at most, without a look at the readers that it waits for; and in the
/// stage of signal handlers, which do not wake it.
pub(crate) const NAPS: Duration = Duration::from_millis(1);
pub(crate) const SHORT_NAPS: Duration = Duration::from_micros(50);

/// A section is worth a mark when it has gone on for so long, in nanoseconds.
const LASTS_NS: u32 = 500;

/// So many times a writer spins at most, once more for each mark it has set, each time for as long
/// as who sees that nobody else sleeps.
const ROUNDS: u32 = 3;

/// How often an owner tries to shut all classes at once. Flags and marks of waiters make an attempt
/// fail, too.
const ATTEMPTS: u32 = 8;

impl<D: Discipline> RawPsRwLock<D> {
    /// Whether signal handlers may read, so that a writer has to hold those of its own thread off.
    const MASKS: bool = {
        let handlers = Self::LAYOUT.is_handler(Self::CLASSES - 1);
        assert!(
            !handlers || D::Mask::MASKS,
            "a lock that signal handlers read needs a mask that keeps them off: `Soft` or `Hard`"
        );
        handlers
    };

    /// Acquires for writing. False if `deadline` passed first.
    #[inline(always)]
    pub(crate) fn write_at(&self, deadline: Option<Deadline>) -> bool {
        let written = self.write_at_once() || self.write_contended(deadline);
        if written {
            self.meter.count(Event::Acquired);
        }
        written
    }

    /// (F) of a lock that nobody uses and nobody waits for.
    #[inline(always)]
    fn write_at_once(&self) -> bool {
        // Who looks first keeps no handlers off in vain: an attempt may be one of very many.
        if D::Readers::DISTRIBUTED || (Self::MASKS && self.look() != State::UNLOCKED) {
            return false;
        }
        Self::raise();
        let written = self.state.compare_exchange(0, Self::LAYOUT.written().0, Acquire, Relaxed).is_ok();
        if !written {
            Self::lower();
        }
        written
    }

    #[cold]
    #[inline(never)]
    fn write_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        if !self.own(deadline) {
            return false;
        }
        let written = self.sift(Self::CLASSES, deadline);
        if !written {
            self.give_up();
        }
        written
    }

    /// Acquires for writing if that needs no waiting.
    pub(crate) fn try_write_at(&self) -> bool {
        let written = self.write_at_once() || self.try_write_owned();
        if written {
            self.meter.count(Event::Acquired);
        }
        written
    }

    fn try_write_owned(&self) -> bool {
        // In the state there are readers that are inside for certain only while all is open.
        let was = self.look();
        let in_vain = !Self::LAYOUT.has_no_readers(was) || self.has_readers_at_slots();
        if in_vain || !self.try_own() {
            return false;
        }
        let written = self.try_sift();
        if !written {
            self.give_up();
        }
        written
    }

    /// (O), if there is no owner; or (T), the same if the write side is reserved.
    pub(crate) fn try_own(&self) -> bool {
        if self.look().is_owned() { self.take_reserved() } else { self.take(0) || self.take_reserved() }
    }

    /// (O), which also sets `mark`.
    fn take(&self, mark: u64) -> bool {
        !State(self.state.fetch_or(State::OWNED | mark, Acquire)).is_owned()
    }

    /// (O), waiting for it. False if `deadline` passed first.
    pub(crate) fn own(&self, deadline: Option<Deadline>) -> bool {
        if self.own_spinning() {
            return true;
        }
        if deadline.is_some_and(|deadline| deadline.has_passed()) {
            return false;
        }
        // Invariant 11, here and in `sift`, `close`.
        sync::without_unwinding(|| {
            let counted = self.enter_sleepers();
            let owns = self.own_asleep(deadline);
            if counted {
                self.leave_sleepers();
            }
            owns
        })
    }

    /// (O) by a writer that spins, and says so by (N).
    fn own_spinning(&self) -> bool {
        let (before, same, marks) = (Cell::new(State::UNLOCKED), Cell::new(0), Cell::new(0));
        let look = || {
            let was = self.look();
            same.set(if before.replace(was) == was { same.get() + 1 } else { 0 });
            match was {
                _ if !was.is_owned() && self.take(0) => Look::Acquired,
                _ if was.is_next() && marks.get() > 0 => Look::Taken,
                // A mark costs the owner its line, and a longer way out.
                _ if same.get() >= spin::looks_in(LASTS_NS) && self.mark(was) => {
                    marks.set(marks.get() + 1);
                    Look::Taken
                }
                // Others sleep, and one of them is the next.
                _ if Self::LAYOUT.has_sleeper(was) => Look::Saturated,
                _ => Look::Taken,
            }
        };
        let patience = <PolicyOf<D> as Policy>::Spin::FIRST_NS;
        if look() == Look::Acquired
            || (1..=ROUNDS).any(|round| {
                let goes_on = marks.get() + 1 >= round;
                goes_on && spin::closely_for::<PolicyOf<D>>(patience, look)
            })
            || spin::backing_off::<PolicyOf<D>>(look)
        {
            return true;
        }
        marks.get() > 0 && self.own_or_unmark()
    }

    /// (N).
    fn mark(&self, was: State) -> bool {
        let is_written = was.is_owned() && was.gate() == Self::CLASSES && Self::LAYOUT.has_no_readers(was);
        is_written
            && !was.has(State::IN_LINE | State::DRAINING)
            && !D::Readers::DISTRIBUTED
            && self.state.compare_exchange(was.0, was.with_next().0, Relaxed, Relaxed).is_ok()
    }

    /// Takes (N) back, unless it has been heard: then (O).
    fn own_or_unmark(&self) -> bool {
        let mut was = self.look();
        loop {
            if !was.is_owned() {
                if self.take(0) {
                    return true;
                }
                was = self.look();
                continue;
            }
            if !was.is_next() {
                return false;
            }
            if was.is_leaving() {
                // The owner takes the mark out itself, and relies on it until then.
                let is_over = |was: State| !(was.is_leaving() && was.is_next());
                self.event.naps(NOBODY, None, SHORT_NAPS, || is_over(self.look()));
                was = self.look();
                continue;
            }
            match self.state.compare_exchange(was.0, Self::LAYOUT.without_next(was).0, Relaxed, Relaxed) {
                Ok(_) => return false,
                Err(other) => was = State(other),
            }
        }
    }

    /// (O) by a writer that sleeps until it can; see invariant 7. False if `deadline` passed first.
    fn own_asleep(&self, deadline: Option<Deadline>) -> bool {
        let (mut mark, mut was_woken, mut grace) = (0, false, None::<Deadline>);
        let gives_way =
            |grace: Option<Deadline>| self.is_reserved() && !grace.is_some_and(|grace| grace.has_passed());
        loop {
            let event = self.event.load(Acquire);
            if (!self.look().is_owned() && self.take(mark))
                || (was_woken && !gives_way(grace) && self.take_grant())
            {
                return true;
            }
            let was = State(self.state.fetch_or(State::WRITERS, Relaxed));
            if !was.is_owned() {
                continue;
            }
            if was.is_leaving() {
                // Invariant 10. This nap may use up a wake-up, so it counts as a sleep.
                (mark, was_woken) = (State::WRITERS, true);
                if !self.nap_until_left(WRITERS, 0, deadline) {
                    return self.leave_writers();
                }
                continue;
            }
            if self.is_reserved() {
                // There is no owner. If no write in steps comes, this writer does (T).
                (mark, was_woken) = (State::WRITERS, true);
                self.meter.count(Event::Slept);
                let over = *grace.get_or_insert_with(|| Deadline::after(GRACE));
                let (until, _) = Deadline::earlier(Some(over), deadline);
                self.event.wait_bits(event, WRITERS, until);
                if deadline.is_some_and(|deadline| deadline.has_passed()) {
                    return self.leave_writers();
                }
                continue;
            }
            self.meter.count(Event::Slept);
            match self.event.wait_bits(event, WRITERS, deadline) {
                Waited::TimedOut => return self.leave_writers(),
                // Once and for all: it may have looked too early.
                waited => was_woken |= waited == Waited::Woken,
            }
            // The release that woke this one may have taken the mark out, and others may sleep on:
            // invariant 7.
            mark = State::WRITERS;
        }
    }

    /// Waits while the owner is about to leave and the gate is at `gate` or further, without a
    /// sleep that only a wake-up ends: invariant 10. False if `deadline` passed first.
    pub(crate) fn nap_until_left(&self, bits: Bits, gate: u32, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Slept);
        self.event.naps(bits, deadline, NAPS, || {
            let was = self.look();
            // The next owner, which waits for the line, looks like one that leaves.
            !was.is_leaving() || was.gate() < gate
        })
    }

    /// (W), one more, if there is room for it; whether there was. By one addition: readers change
    /// the word all the time.
    fn enter_sleepers(&self) -> bool {
        let counts = Self::LAYOUT.counts_sleeper(self.look());
        if counts {
            self.state.fetch_add(Layout::ONE_SLEEPER, Relaxed);
        }
        counts
    }

    /// (W), one less, by a writer that was counted.
    fn leave_sleepers(&self) {
        self.state.fetch_sub(Layout::ONE_SLEEPER, Relaxed);
    }

    /// A writer gives up: it leaves the mark to the owner, whose release wakes another in its
    /// place. If there is no owner, it has acquired. A wake-up may have come at the last moment,
    /// and with it the write side of a fair release.
    #[cold]
    fn leave_writers(&self) -> bool {
        if self.take(State::WRITERS) {
            return true;
        }
        let takes = self.claim_newest();
        if takes {
            self.wait_for_grant();
        }
        takes
    }

    /// Takes the write side that a fair release keeps for a writer that has slept, and waits until
    /// the releasing thread has opened the gate and left, which is its last touch.
    pub(crate) fn take_grant(&self) -> bool {
        let takes = self.claim();
        if takes {
            self.wait_for_grant();
        }
        takes
    }

    /// Waits until the thread that has released the write side to this one has left.
    pub(crate) fn wait_for_grant(&self) {
        // Others may sleep on: invariant 7.
        self.state.fetch_or(State::WRITERS, Relaxed);
        self.event.naps(OWNER, None, SHORT_NAPS, || {
            let was = State(self.state.load(Acquire));
            was.gate() == 0 && !was.has(State::DRAINING)
        });
    }

    /// Clears `GRANTED`: for the thread for which it was set, or back. Clears `AWAITED` by the same
    /// step, and tells the writes in steps that have asked.
    pub(crate) fn claim(&self) -> bool {
        Lines(self.lines.load(Relaxed)).is_granted() && self.claim_newest()
    }

    /// The same, by a read-modify-write in any case: an old value might hide what a wake-up has
    /// told.
    pub(crate) fn claim_newest(&self) -> bool {
        let was = Lines(self.lines.fetch_and(!(Lines::GRANTED | Lines::AWAITED), Acquire));
        if was.is_awaited() {
            self.tell_pending();
        }
        was.is_granted()
    }

    /// An upgradable reader acquires. False if `deadline` passed first.
    #[inline]
    pub(crate) fn own_to_read(&self, deadline: Option<Deadline>) -> bool {
        let owns = self.take(0) || {
            self.meter.count(Event::Contended);
            self.own(deadline)
        };
        self.read_if(owns)
    }

    /// An upgradable reader acquires, if that needs no waiting.
    #[inline]
    pub(crate) fn try_own_to_read(&self) -> bool {
        let owns = self.try_own();
        self.read_if(owns)
    }

    /// An upgradable reader that owns the lock lets in those whom (H) has kept out.
    #[inline]
    pub(crate) fn read_if(&self, owns: bool) -> bool {
        if owns {
            self.reopen(0);
            self.meter.count(Event::Acquired);
        }
        owns
    }

    /// An upgradable reader becomes a writer. False if `deadline` passed first; then it is what it
    /// was.
    pub(crate) fn upgrade_until_done(&self, deadline: Option<Deadline>) -> bool {
        let gate = self.gate();
        let done = self.sift(Self::CLASSES, deadline);
        if !done {
            self.reopen(gate);
        }
        done
    }

    /// As [`upgrade_until_done`](Self::upgrade_until_done), if that needs no waiting.
    pub(crate) fn try_upgrade_at(&self) -> bool {
        let gate = self.gate();
        let done = self.try_sift();
        if !done {
            self.reopen(gate);
        }
        done
    }

    /// Shuts classes out, up to `to` of them, from where the gate is. For the owner. False if
    /// `deadline` passed first.
    pub(crate) fn sift(&self, to: u32, deadline: Option<Deadline>) -> bool {
        let gate = self.gate();
        let shortcut = gate < to && to == Self::CLASSES && !D::Readers::DISTRIBUTED;
        if shortcut && self.shut_all(State::IN_LINE) {
            return true;
        }
        sync::without_unwinding(|| {
            // Those that `poll_sift` has shut out may be inside still.
            (gate == 0 || self.drain(gate - 1, deadline))
                && (gate..to).all(|index| self.shut(index, deadline))
        })
    }

    /// (F) by the owner, of a lock without readers, unless one of the flags of `stops` is set.
    fn shut_all(&self, stops: u64) -> bool {
        let mut was = self.look();
        if !Self::LAYOUT.has_no_readers(was) || was.has(stops) {
            return false;
        }
        Self::raise();
        for _ in 0..ATTEMPTS {
            if !Self::LAYOUT.has_no_readers(was) || was.has(stops) {
                break;
            }
            match self.state.compare_exchange(was.0, was.with_gate(Self::CLASSES).0, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(other) => was = State(other),
            }
        }
        Self::lower();
        false
    }

    /// One stage: lets the line in, (C), and waits until the readers of the class have left.
    fn shut(&self, index: u32, deadline: Option<Deadline>) -> bool {
        if !self.let_in(index, deadline) {
            return false;
        }
        self.close(index);
        self.drain(index, deadline)
    }

    /// (C). Signal handlers are held off before their class is shut: one that struck this thread
    /// afterwards would find it shut for ever.
    pub(crate) fn close(&self, index: u32) {
        if Self::LAYOUT.is_handler(index) {
            Self::raise();
        }
        self.state.fetch_add(State::ONE_CLASS, Relaxed);
        sync::interruption_point();
        if D::Readers::DISTRIBUTED && Self::is_bulk(index) {
            sync::without_unwinding(|| self.see_readers());
        }
    }

    /// Whether the readers of a class that is shut have left, as far as they are counted in the
    /// state.
    fn is_drained(&self, index: u32, was: State) -> bool {
        Self::LAYOUT.count(was, index) == 0
    }

    /// The same, for the readers at slots, too, of which those before `next` have been seen to be
    /// empty.
    pub(crate) fn is_drained_with_slots(&self, index: u32, was: State, next: &Cell<usize>) -> bool {
        let at_slots = D::Readers::DISTRIBUTED && Self::is_bulk(index);
        self.is_drained(index, was) && (!at_slots || self.slots_were_empty(next))
    }

    /// Waits until the readers of a class that is shut have left. False if `deadline` passed first.
    fn drain(&self, index: u32, deadline: Option<Deadline>) -> bool {
        let next = Cell::new(0);
        let is_drained = |was| self.is_drained_with_slots(index, was, &next);
        let drained = || is_drained(State(self.state.load(Acquire)));
        // The owner is the one to whom the lock goes next.
        if drained() || spin::first_in_line::<PolicyOf<D>>(false, drained) {
            return true;
        }
        self.meter.count(Event::Slept);
        if Self::LAYOUT.is_handler(index) {
            // The mask is up: short naps only.
            return self.event.naps(OWNER, deadline, SHORT_NAPS, drained);
        }
        let drained = || is_drained(State(self.state.fetch_or(State::DRAINING, Acquire)));
        let done = self.event.naps(OWNER, deadline, NAPS, drained);
        self.state.fetch_and(!State::DRAINING, Relaxed);
        done
    }

    /// Shuts all out, if that needs no waiting. For the owner, which is to open the gate otherwise.
    pub(crate) fn try_sift(&self) -> bool {
        let gate = self.gate();
        // A line whose classes are shut has been passed already; and its flag is needed.
        let lines_are_empty = (gate > 0 || self.line_is_empty(State::LOW))
            && (gate > Self::LAYOUT.top() || self.line_is_empty(State::TOP));
        if !lines_are_empty {
            return false;
        }
        if D::Readers::DISTRIBUTED && Self::is_bulk(0) && gate == 0 {
            self.close(0);
        }
        !self.has_readers_at_slots() && self.shut_all(0)
    }

    /// Shuts out the classes below `to`, which are classes of threads, if that needs no waiting.
    /// For the owner, which finds the gate as it was otherwise.
    pub(crate) fn try_sift_to(&self, to: u32) -> bool {
        let gate = self.gate();
        let is_empty =
            |index| self.is_drained_with_slots(index, State(self.state.load(Acquire)), &Cell::new(0));
        // Looks first: a class that is shut in vain keeps readers out for a moment.
        let may =
            |index| Self::line_before(index).is_none_or(|flag| self.line_is_empty(flag)) && is_empty(index);
        if !(gate..to).all(may) {
            return false;
        }
        let done = (gate..to).all(|index| {
            self.close(index);
            is_empty(index)
        });
        if !done {
            self.reopen(gate);
        }
        done
    }

    #[inline(always)]
    pub(crate) fn raise() {
        if Self::MASKS {
            sync::without_unwinding(D::Mask::raise);
        }
    }

    #[inline(always)]
    pub(crate) fn lower() {
        if Self::MASKS {
            sync::without_unwinding(D::Mask::lower);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{BULK, HANDLER, NESTED, URGENT};
    use crate::sifted::Sifted;
    use core::time::Duration;
    use std::thread;
    use ulocks_core::Private;
    use ulocks_core::spin::NoSpin;

    /// Writers that sleep, some of which give up.
    fn sleepers_are_forgotten<const CLASSES: u8>() {
        let lock = RawPsRwLock::<Sifted<CLASSES, Private<NoSpin>>>::new();
        let in_time = || Some(Deadline::after(Duration::from_micros(150)));
        thread::scope(|scope| {
            for writer in 0..6 {
                let lock = &lock;
                scope.spawn(move || {
                    for round in 0..40 {
                        let deadline = if (writer + round) % 3 == 0 { in_time() } else { None };
                        if lock.write_at(deadline) {
                            thread::sleep(Duration::from_micros(20));
                            lock.unlock_write_at();
                        }
                    }
                });
            }
        });
        // The flag may be stale.
        assert_eq!(lock.look().0 & !State::WRITERS, 0, "{:#x}", lock.look().0);
    }

    #[test]
    fn the_number_of_sleepers_comes_down_to_zero() {
        sleepers_are_forgotten::<BULK>();
        sleepers_are_forgotten::<{ BULK | URGENT }>();
        sleepers_are_forgotten::<{ BULK | URGENT | NESTED }>();
        sleepers_are_forgotten::<{ BULK | URGENT | NESTED | HANDLER }>();
    }
}
