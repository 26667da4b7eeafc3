//! The part of the protocol ([`raw`](super::raw)) that releasing threads follow: which waiter a
//! release wakes, and how.

use crate::advice::Advice;
use crate::interval::Interval;
use crate::plan::{PERIOD, Plan};
use crate::raw::RawCalock;
use crate::word::State;
use crate::word::flags::*;
use crate::word::sleepers;
use ulocks_core::futex::FutexKey;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::{cpu, membarrier};

/// One release in so many, of those past a parked waiter, tells the plan its CPU. Other numbers
/// were not measured.
const SAMPLE: u32 = 4;
/// One release in so many looks at the clock: a multiple of `SAMPLE`. A look takes tens of
/// nanoseconds. Other values were not measured.
const CLOCK: u32 = 16;

impl<P: InOneProcess, I: Interval> RawCalock<P, I> {
    /// (unlock) of a word that has more than `LOCKED`: most likely `was`.
    #[cold]
    #[inline(never)]
    pub(crate) fn unlock_past(&self, was: State) {
        if was.parked() > 0 {
            let releases = self.releases.load(Relaxed).wrapping_add(1);
            self.releases.store(releases, Relaxed);
            // Solo mode: the shortest release. It clears `LOCKED` and wakes no waiter.
            if was.flags() == LOCKED | STANDBY | SOLO && self.is_solo() && !releases.is_multiple_of(PERIOD) {
                let free = was.without(LOCKED).0;
                self.plan(|plan| plan.left = free);
                if let Err(now) = self.release(was.0, free) {
                    self.unlock_contended(now, false);
                }
                return;
            }
            self.note_release(releases);
        }
        self.unlock_contended(was, false);
    }

    /// (unlock), with the wake-ups that it owes. `departs`: the holder goes to wait on a condition
    /// variable.
    #[inline(never)]
    pub(crate) fn unlock_contended(&self, mut was: State, departs: bool) {
        let key = self.seq.key();
        let (mut wasted, mut advanced) = (false, None);
        loop {
            if was.has(WASTED) && !wasted {
                wasted = true;
                self.plan(Plan::wake_was_wasted);
            }
            if advanced.is_none()
                && let Some(whom) = self.whom(was, departs)
            {
                match self.advance(was, whom) {
                    Ok(awake) => (was, advanced) = (awake, Some(whom)),
                    Err(now) => was = now,
                }
                continue;
            }
            let hands_over = was.has(PROMOTED);
            let free = if hands_over { was.with(GRANTED) } else { was.without(LOCKED) }
                .without(WASTED | REQUEUED | SOLO);
            let free = if was.parked() > 0 && self.is_solo() { free.with(SOLO) } else { free };
            self.plan(|plan| plan.left = if hands_over { 0 } else { free.0 });
            match self.release(was.0, free.0) {
                Err(now) => {
                    was = now;
                    // Without `AWAKE` a waiter is awake already in place of the chosen one, and
                    // others may have fallen asleep since: invariant 3.
                    advanced = advanced.filter(|_| was.has(AWAKE));
                }
                Ok(()) => return Self::wake(key, was.has(REQUEUED), advanced),
            }
        }
    }

    /// Notes a release past a parked waiter in the plan, and for a sample of them the CPU.
    fn note_release(&self, releases: u32) {
        if self.is_solo() && !releases.is_multiple_of(PERIOD) && !I::Advice::NOTES_EACH {
            return;
        }
        let samples = releases.is_multiple_of(SAMPLE) || I::Advice::NOTES_EACH;
        if samples && let Some(cpu) = if I::Advice::NOTES_EACH { Some(0) } else { cpu::current() } {
            self.plan(|plan| plan.saw(cpu));
            if releases.is_multiple_of(CLOCK) {
                self.plan(|plan| plan.tick(releases.is_multiple_of(PERIOD)));
            }
        }
    }

    /// Whether one thread is to be active alone.
    fn is_solo(&self) -> bool {
        I::Advice::SOLO || self.plan(|plan| plan.is_solo())
    }

    /// (announce), and then the next sequence number. A waiter that is parked at (announce) has
    /// read the old number. If it parks again with the new one, it clears `AWAKE`.
    fn advance(&self, was: State, whom: Whom) -> Result<State, State> {
        let awake =
            was.without(TO_STAND_BY).with(AWAKE | if whom == Whom::Standby { TO_STAND_BY } else { 0 });
        self.change(was, awake)?;
        self.meter.count(Event::Woke);
        if whom == Whom::Contender {
            self.plan(|plan| plan.wakes(was.has(AWAKE)));
        }
        // A plain store. The model of the kernel compares by a read-modify-write, which this must
        // not overwrite.
        membarrier::store(&self.seq, self.seq.load(Relaxed).wrapping_add(1), Relaxed);
        Ok(awake)
    }

    /// Which waiter the release of `was` wakes.
    fn whom(&self, was: State, departs: bool) -> Option<Whom> {
        let awake = was.has(AWAKE);
        if was.has(PROMOTED) {
            (!awake).then_some(Whom::Promoted)
        } else if was.parked() == 0 {
            None
        } else if (departs && !awake) || self.wants_wake(awake) {
            Some(Whom::Contender)
        } else {
            (!awake && !was.has(STANDBY)).then_some(Whom::Standby)
        }
    }

    fn wants_wake(&self, again: bool) -> bool {
        match I::Advice::wants_wake(again) {
            Some(wants) => wants,
            None => self.plan(|plan| plan.wants_wake(again)),
        }
    }

    /// The wake-ups that a release owes. By address: the lock may be gone.
    fn wake(key: FutexKey<P::Scope>, requeued: bool, whom: Option<Whom>) {
        if requeued {
            key.wake_bits(1, sleepers::REQUEUED);
        }
        match whom {
            Some(Whom::Promoted) => _ = key.wake_bits(1, sleepers::PROMOTED),
            Some(_) => _ = key.wake_bits(1, sleepers::PARKED),
            None => {}
        }
    }
}

/// Which waiter a release wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// The promoted waiter, to which it hands the lock over.
    Promoted,
    /// A parked waiter, to contend.
    Contender,
    /// A parked waiter, to stand by.
    Standby,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Mine;
    use ulocks_core::Private;

    /// Otherwise two threads that notify each other would wait for the standby's timer.
    #[test]
    fn a_holder_that_goes_to_wait_wakes_a_waiter_whatever_the_plan_says() {
        let lock = RawCalock::<Private>::new();
        lock.plan(|plan| *plan = Plan::BUSY);
        let parked = State(LOCKED).with_waiter(Mine { parked: true, flags: STANDBY });
        assert_eq!(lock.whom(parked, false), None, "the plan asks for no waiter");
        assert_eq!(lock.whom(parked, true), Some(Whom::Contender));
        assert_eq!(lock.whom(parked.with(AWAKE), true), None, "one is awake");
        assert_eq!(lock.whom(parked.with(PROMOTED), true), Some(Whom::Promoted));
        assert_eq!(lock.whom(State(LOCKED), true), None, "no waiter is parked");
    }
}
