//! How the write side is given back, and the gate opened: (U), (H), (L) and (G) of
//! [`raw`](super::raw).
//!
//! | who | what it is after it | by | those who sleep are told |
//! |---|---|---|---|
//! | a writer for which nobody waits | gone | one exchange | nobody sleeps |
//! | a writer, an upgradable reader | gone | [`release`](RawPsRwLock::release) | before it, since it is the last touch |
//! | one that finds a write in steps that asks | gone; the write side is reserved: (K) in [`pending`](super::pending) | `leave` | after it |
//! | one that releases fairly | gone; a writer that has slept is the owner | [`hand_over`](RawPsRwLock::hand_over) | likewise |
//! | one that downgrades | a reader | `open` | after it |
//! | one that gives up, or admits readers again | in its call; an upgradable reader | `open` | after it |
//!
//! Signal handlers of this thread may run as soon as their class is open, by that very step, and
//! before the system calls that wake others: those may take long, all the more if the one that is
//! woken takes this CPU. A handler that runs then delays the wake-ups, as it would if it had struck
//! a moment later.

use crate::raw::{PolicyOf, RawPsRwLock};
use crate::sifted::Discipline;
use crate::word::{GATE, Lines, PENDING, State, WRITERS, readers};
use ulocks_core::futex::{Bits, FutexKey};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::{Policy, sync};

/// How many attempts a release makes, each a telling of sleepers or an exchange, before it leaves
/// without one.
pub(crate) const ATTEMPTS: u32 = 3;

type KeyOf<D> = FutexKey<<PolicyOf<D> as Policy>::Scope>;

impl<D: Discipline> RawPsRwLock<D> {
    /// (U) of a lock that is being written.
    #[inline(always)]
    pub(crate) fn unlock_write_at(&self) {
        let written = Self::LAYOUT.written().0;
        if self.state.compare_exchange(written, 0, Release, Relaxed).is_err() {
            return self.release(Self::CLASSES);
        }
        Self::lower();
    }

    /// (U) by an upgradable reader.
    #[inline]
    pub(crate) fn unlock_upgradable_at(&self) {
        let was = self.look();
        let gate = Self::LAYOUT.gate(was);
        let alone = !was.has(State::WRITERS) && gate == 0;
        let free = was.0 & !State::OWNED;
        if !alone || self.state.compare_exchange(was.0, free, Release, Relaxed).is_err() {
            self.release(gate);
        }
    }

    /// (U), or (H), with the gate at `gate`, and others about.
    ///
    /// An exchange is the last touch of the lock, so those who sleep are told before it: their
    /// flags are taken out, and *then* an event is counted. A waiter that sets a flag after that
    /// may sleep on the new count, and so the exchange fails. It fails, too, if a reader has come
    /// in vain meanwhile, or, where a class is open, has come or gone. After some attempts the
    /// owner [leaves](Self::leave) in a way that cannot fail.
    #[cold]
    #[inline(never)]
    pub(crate) fn release(&self, gate: u32) {
        let key = self.event.key();
        let (gate, mut told) = self.open_in_part(gate);
        let concerned = Self::concerned(gate, 0, true);
        let mut was = self.look();
        for _ in 0..ATTEMPTS {
            if was.has(concerned) {
                // Acquire: if a poll has set `WRITERS`, this thread sees its `AWAITED`.
                told |= self.state.fetch_and(!concerned, Acquire) & concerned;
                self.count_event();
                if told & State::WRITERS != 0 && self.is_awaited() {
                    return self.give_away(key, gate, told);
                }
                was = self.look();
                continue;
            }
            let keeps = told & State::IN_LINE != 0;
            // (H), if a writer spins.
            let to = u32::from(was.is_next() && !keeps);
            let open = State(was.0 - State::OWNED).with_gate(to).0 | (told & State::IN_LINE);
            match self.state.compare_exchange(was.0, open, Release, Relaxed) {
                Ok(_) => return Self::after_release(key, gate, told, false),
                Err(now) => was = State(now),
            }
        }
        self.leave(key, gate, State::OWNED, told, false);
    }

    /// (L) and (U) with the gate at `gate`, which is open or shut to all; `owned` is `OWNED`, or
    /// nothing if that is another's already; `told` are the flags that were taken out before;
    /// `awaited` says whether writes in steps are to be woken in any case. No reader can make it
    /// fail or repeat a step.
    fn leave(&self, key: KeyOf<D>, gate: u32, owned: u64, told: u64, awaited: bool) {
        let concerned = Self::concerned(gate, 0, owned != 0);
        let shut = if gate == Self::CLASSES { GATE } else { 0 };
        // Those in line are in line until they are inside: the next owner has to see their flags.
        let was = self.state.fetch_or(State::DRAINING | shut | told & State::IN_LINE, Acquire);
        if was & concerned != 0 {
            self.count_event();
        }
        // A poll that asks after (L) sees it, and relies on no wake-up.
        let awaited = awaited || was & concerned & State::WRITERS != 0 && self.is_awaited();
        let writers = concerned & State::WRITERS;
        let last = self.state.fetch_and(!(GATE | State::DRAINING | owned | writers), Release);
        // Those that have come since (L) nap; being told they wake up sooner.
        Self::after_release(key, gate, told | (was | last) & concerned, awaited);
    }

    /// What follows a release. The lock may be gone, so this has no reference to it.
    fn after_release(key: KeyOf<D>, gate: u32, told: u64, awaited: bool) {
        sync::interruption_point();
        if gate == Self::CLASSES {
            Self::lower();
        }
        if awaited {
            key.wake_bits(u32::MAX, PENDING);
        }
        Self::wake(key, told);
    }

    /// Opens a gate that is shut to some classes only, before a release; where the gate is after
    /// that, and the flags of those who are still to be woken. The owner stays the owner.
    fn open_in_part(&self, gate: u32) -> (u32, u64) {
        if gate == 0 || gate == Self::CLASSES {
            return (gate, 0);
        }
        let told = self.reopen_to(gate, 0).0 & Self::concerned(gate, 0, false);
        if told != 0 {
            self.count_event();
        }
        (0, told)
    }

    /// A fair release, with the gate at `gate`: the write side goes to a writer that has slept, if
    /// there is one.
    ///
    /// It is told by `GRANTED`, and then waits for the releasing thread to leave, which is the last
    /// touch here. If nobody was asleep to hear of it, the write side is taken back, unless
    /// somebody has taken it who was about to fall asleep. If a write in steps asks, this is (K).
    #[cold]
    pub(crate) fn hand_over(&self, gate: u32) {
        if !self.look().has(State::WRITERS) {
            return self.release(gate);
        }
        let key = self.event.key();
        let (gate, told) = self.open_in_part(gate);
        self.state.fetch_and(!State::WRITERS, Relaxed);
        self.give_away(key, gate, told);
    }

    /// (K), or the same without `AWAITED` for a writer that has slept; `WRITERS` has been cleared.
    fn give_away(&self, key: KeyOf<D>, gate: u32, told: u64) {
        if gate == 0 {
            // For as long as this takes, so that there is something to wait for: (L).
            self.state.fetch_or(State::DRAINING, Relaxed);
        }
        // Another thread may have cleared `AWAITED` meanwhile.
        let awaited = Lines(self.lines.fetch_or(Lines::GRANTED, Release)).is_awaited();
        self.count_event();
        if awaited {
            return self.leave(key, gate, 0, told | State::WRITERS, true);
        }
        let taken = self.event.key().wake_bits(1, WRITERS) > 0 || !self.claim();
        self.leave(key, gate, if taken { 0 } else { State::OWNED }, told, false);
    }

    /// In as a reader of that index, behind the gate, and then (U): the lock stays, so that all can
    /// be done after it.
    pub(crate) fn become_reader(&self, gate: u32, index: u32) {
        self.open(gate, 0, Self::LAYOUT.one(index), State::OWNED);
    }

    /// (G) with the write side: the caller is about to report that it has failed.
    pub(crate) fn give_up(&self) {
        self.open(self.gate(), 0, 0, State::OWNED);
    }

    /// (G) back to `to`; the write side stays.
    pub(crate) fn reopen(&self, to: u32) {
        let gate = self.gate();
        if gate > to {
            self.open(gate, to, 0, 0);
        }
    }

    /// Opens the gate from `gate` to `to`, for a caller that is inside after it, by what is to be
    /// added, or has not returned; then handlers may run again, and those who sleep are woken. With
    /// an open gate none of it is ever repeated, however many readers come and go.
    fn open(&self, gate: u32, to: u32, plus: u64, minus: u64) {
        if plus != 0 {
            // Behind a gate that is shut still. Nobody can come between this and the next step.
            self.state.fetch_add(plus, Relaxed);
        }
        let was = if to == 0 {
            State(self.state.fetch_and(!(GATE | minus), Release))
        } else {
            self.reopen_to(gate, to)
        };
        sync::interruption_point();
        if gate == Self::CLASSES {
            Self::lower();
        }
        let told = was.0 & Self::concerned(gate, to, minus & State::OWNED != 0);
        if told != 0 {
            self.state.fetch_and(!(told & State::WRITERS), Acquire);
            self.count_event();
            if told & State::WRITERS != 0 && self.is_awaited() {
                self.event.key().wake_bits(u32::MAX, PENDING);
            }
            Self::wake(self.event.key(), told);
        }
    }

    /// The gate at `to` in place of `gate`, which is further; the state before that. At `N` a
    /// writer that spins may set its mark or take it back at any moment, but not between (L) and
    /// its end.
    pub(crate) fn reopen_to(&self, gate: u32, to: u32) -> State {
        let mut less = u64::from(gate - to);
        if gate == Self::CLASSES {
            self.state.fetch_or(GATE | State::DRAINING, Relaxed);
            less = (GATE | State::DRAINING) - u64::from(to);
        }
        State(self.state.fetch_sub(less, Release))
    }

    /// The flags of those for whom there is news when the gate opens from `gate` to `to`, and the
    /// write side is released.
    const fn concerned(gate: u32, to: u32, released: bool) -> u64 {
        let top = Self::LAYOUT.top();
        let low = gate > to && (to < top || top == 0);
        let high = top > 0 && gate > top && to <= top;
        (if low { State::LOW } else { 0 })
            | (if high { State::TOP } else { 0 })
            | (if released { State::WRITERS } else { 0 })
    }

    fn count_event(&self) {
        self.meter.count(Event::Woke);
        self.event.fetch_add(1, Release);
    }

    /// Wakes those whose flags were set. By address: the lock may be gone.
    fn wake(key: KeyOf<D>, told: u64) {
        let (told, top) = (State(told), Self::LAYOUT.top());
        if told.has(State::TOP) {
            key.wake_bits(u32::MAX, readers(top));
        }
        if told.has(State::LOW)
            && let Some(low) = Bits::new((1 << top.max(1)) - 1)
        {
            key.wake_bits(u32::MAX, low);
        }
        if told.has(State::WRITERS) {
            key.wake_bits(1, WRITERS);
        }
    }
}
