//! How the owner leaves, or opens classes again: (unlock), (step down), (announce), (leave) and
//! (reopen) of [`raw`](super::raw).
//!
//! | thread | afterwards | by | sleepers are told |
//! |---|---|---|---|
//! | a writer for which no thread waits | has left | one CAS | no thread sleeps |
//! | a writer, an upgradable reader | has left | [`release`](RawPsRwLock::release) | before the last touch |
//! | the same, by a fair release | has left; a writer that has slept is the owner | [`hand_over`](RawPsRwLock::hand_over) | after it |
//! | an owner that downgrades | is a reader | `open` | after it |
//! | an owner that gives up, or admits readers again | is in its call; is an upgradable reader | `open` | after it |
//!
//! Signal handlers of this thread may run as soon as their class is open: by that very step, and
//! before the system calls that wake others. Those calls may take long, all the more if the woken
//! thread takes this CPU. A handler that runs then delays the wake-ups, as it would if it had
//! interrupted the thread a moment later.

use crate::configuration::Configuration;
use crate::raw::{PolicyOf, RawPsRwLock};
use crate::word::{LEVEL, Queues, State, WRITERS, readers};
use core::ptr;
use ulocks_core::futex::{Bits, FutexKey};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::queue::Wakers;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::{Policy, sleep, sync};

/// How many attempts a release makes before it leaves by (announce). An attempt clears flags and
/// counts an event, or is a CAS: three are both, and one more for a thread that comes between.
///
/// (announce) and (leave) are two changes of the word where a CAS is one. With three attempts the
/// longest release takes the time of at most eight changes, on 2 to 64 CPUs of the cost model: the
/// test `releases` prints that table.
pub(crate) const RELEASES: u32 = 3;

type KeyOf<D> = FutexKey<<PolicyOf<D> as Policy>::Scope>;

impl<D: Configuration> RawPsRwLock<D> {
    /// (unlock) of a lock that is being written.
    #[inline(always)]
    pub(crate) fn unlock_write_at(&self) {
        let written = Self::LAYOUT.written().0;
        if self.state.compare_exchange(written, 0, Release, Relaxed).is_err() {
            return self.release(Self::CLASSES);
        }
        Self::lower();
    }

    /// (unlock) by an upgradable reader.
    #[inline]
    pub(crate) fn unlock_upgradable_at(&self) {
        let was = self.look();
        let level = Self::LAYOUT.level(was);
        let alone = !was.has(State::WRITERS) && level == 0;
        let free = was.0 & !State::OWNED;
        if !alone || self.state.compare_exchange(was.0, free, Release, Relaxed).is_err() {
            self.release(level);
        }
    }

    /// (unlock) from `level`, while other threads use the lock.
    ///
    /// The CAS is the last touch of the lock, so sleepers are told before it. The owner clears
    /// their flags, and *then* counts an event. A waiter that sets a flag after that may sleep on
    /// the new count, and so the CAS fails. It fails, too, if a reader has changed a count
    /// meanwhile. After some attempts the owner [leaves](Self::leave) in a way that cannot fail.
    #[cold]
    #[inline(never)]
    pub(crate) fn release(&self, level: u32) {
        let key = self.event.key();
        let (level, mut to_wake) = self.open_in_part(level);
        let concerned = Self::concerned(level, 0, true);
        let mut was = self.look();
        for _ in 0..RELEASES {
            if was.has(concerned) {
                // Mutant: Acquire -> Relaxed: load buffering, by litmus/psrwlock-event.litmus.
                to_wake |= self.state.fetch_and(!concerned, Acquire) & concerned;
                self.count_event();
                was = self.look();
                continue;
            }
            let open = State(was.0 - State::OWNED).with_level(0).0 | (to_wake & State::QUEUED);
            match self.state.compare_exchange(was.0, open, Release, Relaxed) {
                Ok(_) => {
                    let mut wakers = Wakers::new();
                    Self::after_release(key, level, to_wake, &mut wakers);
                    return wakers.wake();
                }
                Err(now) => was = State(now),
            }
        }
        self.leave(key, level, State::OWNED, to_wake, Wakers::new());
    }

    /// (announce) and (leave) from `level`, which is zero or the number of classes. `owned` is
    /// `OWNED`, or zero if another thread is the owner already. `to_wake` are the flags that were
    /// cleared before. No reader can make it fail or repeat a step.
    ///
    /// The wakers of tasks that were woken already are called at the end.
    fn leave(&self, key: KeyOf<D>, level: u32, owned: u64, to_wake: u64, mut wakers: Wakers) {
        let concerned = Self::concerned(level, 0, owned != 0);
        let shut = if level == Self::CLASSES { LEVEL } else { 0 };
        // Queued readers stay queued until they are inside: the next owner must see their flags.
        // Mutant: Acquire -> Relaxed: load buffering, by litmus/psrwlock-event.litmus.
        let was = self.state.fetch_or(State::DRAINING | shut | to_wake & State::QUEUED, Acquire);
        if was & concerned != 0 {
            self.count_event();
        }
        let (writers, address) = (concerned & State::WRITERS, ptr::from_ref(self).addr());
        let last = self.state.fetch_and(!(LEVEL | State::DRAINING | owned | writers), Release);
        // Waiters that have come since (announce) sleep at the exit. Where there is none they sleep
        // with a timer, and a wake-up ends that sleep sooner.
        Self::after_release(key, level, to_wake | (was | last) & concerned, &mut wakers);
        Self::tell_after_leaving(address, last, &mut wakers);
        wakers.wake();
    }

    /// The steps after a release. The lock may be gone, so this has no reference to it.
    fn after_release(key: KeyOf<D>, level: u32, to_wake: u64, wakers: &mut Wakers) {
        sync::interruption_point();
        if level == Self::CLASSES {
            Self::lower();
        }
        Self::wake(key, to_wake, wakers);
    }

    /// Before a release: opens the classes if only some are closed. Returns the level after that,
    /// and the flags of the waiters still to be woken. The owner stays the owner.
    fn open_in_part(&self, level: u32) -> (u32, u64) {
        if level == 0 || level == Self::CLASSES {
            return (level, 0);
        }
        let to_wake = self.reopen_to(level, 0).0 & Self::concerned(level, 0, false);
        if to_wake != 0 {
            self.count_event();
        }
        (0, to_wake)
    }

    /// A fair release from `level`: the write side goes to a writer that has slept, if there is
    /// one.
    ///
    /// `GRANTED` says so. The writer then waits for the releasing thread to leave, which is the
    /// last touch here. If no writer was asleep, the releasing thread takes the write side back,
    /// unless a writer that was about to sleep has taken it.
    #[cold]
    pub(crate) fn hand_over(&self, level: u32) {
        if !self.look().has(State::WRITERS) {
            return self.release(level);
        }
        let key = self.event.key();
        let (level, to_wake) = self.open_in_part(level);
        self.state.fetch_and(!State::WRITERS, Relaxed);
        if level == 0 {
            // The granted writer waits until (leave) clears this.
            self.state.fetch_or(State::DRAINING, Relaxed);
        }
        self.queues.fetch_or(Queues::GRANTED, Release);
        self.count_event();
        let mut wakers = Wakers::new();
        let taken = sleep::wake(key, 1, WRITERS, &mut wakers) > 0 || !self.claim();
        self.leave(key, level, if taken { 0 } else { State::OWNED }, to_wake, wakers);
    }

    /// (count itself), and then (step down): the thread is a reader, so it may touch the lock
    /// afterwards.
    pub(crate) fn become_reader(&self, level: u32, index: u32) {
        self.open(level, 0, Self::LAYOUT.one(index), State::OWNED);
    }

    /// (reopen) with the write side: the acquisition has failed.
    pub(crate) fn give_up(&self) {
        self.open(self.level(), 0, 0, State::OWNED);
    }

    /// (reopen) down to `to`; the write side stays. Ends a wait for a queue, as `open` does.
    pub(crate) fn reopen(&self, to: u32) {
        let level = self.level();
        if level > to {
            self.open(level, to, 0, 0);
        } else if self.look().has(State::DRAINING) {
            let mut wakers = Wakers::new();
            self.end_wait_for_queue(&mut wakers);
            wakers.wake();
        }
    }

    /// Lowers the level from `level` to `to`. Ends a wait for a queue that was given up. The caller
    /// may touch the lock afterwards: it is inside by the count `plus`, or has not returned. Then
    /// handlers may run again, and sleepers are woken. No step is ever repeated, however many
    /// readers come and go.
    fn open(&self, level: u32, to: u32, plus: u64, minus: u64) {
        let mut wakers = Wakers::new();
        if self.look().has(State::DRAINING) {
            self.end_wait_for_queue(&mut wakers);
        }
        if plus != 0 {
            // `OWNED` is set still, so no writer can come before the next step.
            self.state.fetch_add(plus, Relaxed);
        }
        let was = if to == 0 {
            State(self.state.fetch_and(!(LEVEL | minus), Release))
        } else {
            self.reopen_to(level, to)
        };
        sync::interruption_point();
        if level == Self::CLASSES {
            Self::lower();
        }
        let to_wake = was.0 & Self::concerned(level, to, minus & State::OWNED != 0);
        if to_wake != 0 {
            // Mutant: Acquire -> Relaxed: load buffering, by litmus/psrwlock-event.litmus.
            let now = self.state.fetch_and(!(to_wake & State::WRITERS), Acquire);
            self.count_event();
            // The next owner may be leaving by now, and finds the flag no more.
            Self::tell_after_leaving(ptr::from_ref(self).addr(), now, &mut wakers);
            Self::wake(self.event.key(), to_wake, &mut wakers);
        }
        wakers.wake();
    }

    /// Lowers the level from `level` to `to`; returns the state before that.
    fn reopen_to(&self, level: u32, to: u32) -> State {
        // Mutant: AcqRel -> Release: load buffering, by litmus/psrwlock-event.litmus.
        // Release: see `rows`, "The row is taken away".
        State(self.state.fetch_sub(u64::from(level - to), AcqRel))
    }

    /// The flags of the waiters to be told when the level falls from `level` to `to`, and, if
    /// `released`, the write side is free.
    const fn concerned(level: u32, to: u32, released: bool) -> u64 {
        let top = Self::LAYOUT.top();
        let low = level > to && (to < top || top == 0);
        let high = top > 0 && level > top && to <= top;
        (if low { State::LOW } else { 0 })
            | (if high { State::TOP } else { 0 })
            | (if released { State::WRITERS } else { 0 })
    }

    fn count_event(&self) {
        self.meter.count(Event::Woke);
        self.event.fetch_add(1, Release);
    }

    /// Wakes the waiters whose flags were set. By address: the lock may be gone.
    fn wake(key: KeyOf<D>, to_wake: u64, wakers: &mut Wakers) {
        let (to_wake, top) = (State(to_wake), Self::LAYOUT.top());
        if to_wake.has(State::TOP) {
            sleep::wake(key, u32::MAX, readers(top), wakers);
        }
        if to_wake.has(State::LOW)
            && let Some(low) = Bits::new((1 << top.max(1)) - 1)
        {
            sleep::wake(key, u32::MAX, low, wakers);
        }
        if to_wake.has(State::WRITERS) {
            sleep::wake(key, 1, WRITERS, wakers);
        }
    }
}
