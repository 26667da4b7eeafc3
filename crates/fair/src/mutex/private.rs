//! The protocol of a [`FairMutex`](crate::FairMutex) of one process: a queue of waiters in one
//! word, handed over from one to the next.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Strict first in, first out: who has queued holds the mutex before whoever queues later, and
//!   before whoever comes while it is in line. An arrival takes the mutex only if it is free *and*
//!   nobody is in line.
//! - A waiter whose time is up leaves the line; of its grant and its time-out exactly one wins.
//! - One read-modify-write to acquire and one to release when nobody contends. The word is eight
//!   bytes; who waits does so on a node on its own stack, so nothing is allocated, and a guard that
//!   is forgotten strands no node: nodes live only inside of a call that waits. No node knows the
//!   address of the mutex.
//! - The release never waits, not even for a thread that was preempted while it works on the queue.
//! - What releases, or grants, is the last touch (law 2). The wake-ups that follow use addresses
//!   only.
//!
//! # State
//! The word is a `State`: the newest waiter, `LOCKED`, `TENDED`, `LEAVERS`. Each transition is one
//! compare-exchange:
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | `FREE` | `LOCKED` | an arrival, or `try_lock` | (L1) |
//! | anything else | the same with the arrival as the newest | an arrival | (L2) |
//! | `LOCKED` alone | `FREE` | the holder | (U1) |
//! | `LOCKED`, waiters | `TENDED`, waiters | the holder, which tends the queue | (U2) |
//! | `LOCKED`, `TENDED` | `TENDED` | the holder; the tender does the rest | (U3) |
//! | not `TENDED` | `TENDED` | a waiter that leaves | (T1) |
//! | `TENDED` | `TENDED`, `LEAVERS` | a waiter that leaves | (T2) |
//! | `TENDED`, `LEAVERS` | `TENDED` | the tender, which then lets go who asks | (T3) |
//! | `TENDED`, waiters | the same without the newest | the tender | (T4) |
//! | `TENDED`, not `LEAVERS`, and `LOCKED` or no waiters | without `TENDED` | the tender | (T5) |
//! | `TENDED`, not `LEAVERS`, not `LOCKED` | `LOCKED`, one waiter less | the tender, for the oldest | (T6) |
//!
//! The turn of a waiter is a futex in its node, with the values of `Turn`; the node is described in
//! `queue.rs`.
//!
//! # The hand-over
//! The tender finds the mutex released and somebody in line. It takes the oldest out of line,
//! *calls* one of those behind it, sets `LOCKED` and lets the queue go in one step (T6), grants by
//! one swap of the oldest waiter's turn (G), and wakes the two if they were asleep. So the called
//! one is on its way while the granted one is inside: *wake-ahead*. `ahead.rs` says who is called.
//! Only who found nobody in line spins, and who was called; who has parked again is woken when it
//! is granted. Nobody is woken who has not parked.
//!
//! The one that is to run on the CPU of the tender is woken last: a wake-up may take the CPU away.
//!
//! Both spin for [`FIRST_NS`](ulocks_core::spin::Spin::FIRST_NS): a hold and a wake-up fit into
//! that.
//!
//! # Invariants
//! 1. At most one thread holds the mutex: `LOCKED` is set by (L1), from zero, and by (T6) for one
//!    waiter, and cleared by the holder.
//! 2. While somebody is in line and nobody holds the mutex, `TENDED` is set; and the tender lets go
//!    only by (T5) or (T6). So a release that finds a tender, (U3), leaves it the hand-over: it
//!    cannot be overlooked.
//! 3. While `TENDED` is set and `LOCKED` is not, nobody holds the mutex, so it cannot be taken
//!    away: a tender may touch the word until (T5) or (T6). A tender at (T5) with `LOCKED` set by
//!    another is a waiter that leaves, and is itself a reason not to take the mutex away.
//! 4. A waiter is granted at most once, by the tender that took it out of line. It is granted
//!    unless a tender answered `Left`, and only after `Leaving`: so a waiter whose time is up waits
//!    for one of the two.
//! 5. Who is `Parked` or `Leaving` is woken by whoever changes that.
//! 6. Who is called has no claim: its turn comes by its place in line alone.
//! 7. A waiter does not unwind from (L2) until its turn is `Granted` or `Left`: the queue names its
//!    node. If something panics there, such as a wait that the kernel refuses, the process aborts.
//!    A tender does not unwind either, since a refused wake-up aborts. So each leaver is answered.
//!
//! # Ordering
//! - (U1), (U2), (U3) release and (L1) acquires: the word hands over directly.
//! - (U2), (U3) release, the tender's look at the word acquires; (G) releases, and the waiter's
//!   look at its turn acquires.
//! - (L2) releases the node, the tender's look at the word acquires it. Links go from tender to
//!   tender: (T5) and (T6) release, (U2) and (T1) acquire. All are read-modify-writes of one word,
//!   so each continues the releases before it.
//! - (T2) releases `Leaving`, (T3) acquires it.
//! - (T4), (T5) and (T6) acquire nothing. They succeed on a word that the tender has written, or
//!   has read acquiring when it failed: while there is a tender, other threads only add a newest
//!   waiter, clear `LOCKED`, or set `LEAVERS`, so no value comes back. If (T2) writes the value
//!   that was there, `LEAVERS` is set, and (T3) follows.
//! - (T1), (T3) and (T4) release nothing: links are read by the next tender only, after (T5) or
//!   (T6).
//! - `Left` is released and acquired like `Granted`: the node is its thread's again.
//! - Calling and parking order nothing: nothing is read by them.
//!
//! # Sources
//! H. Franke, "Fast user-level locks" (2002): fair locks by hand-over, and what they cost. The
//! links are those of the Rust standard library's `sys::sync::rwlock::queue` and of J. Fang's
//! `usync`: newest first, completed when needed. Here: the strict order, the release that leaves
//! its work to a tender, leaving, and wake-ahead.

use super::ahead;
use super::queue::Waiter;
use super::turn::{Kind, Turn};
use super::word::State;
use core::fmt;
use core::ptr;
use ulocks_core::futex::{self, FutexKey, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{self, AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicPtr, without_unwinding};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, raw};

type Key = FutexKey<futex::Private>;

/// The raw mutex of one process.
#[repr(C)]
pub struct Protocol<P: Policy> {
    word: AtomicPtr<Waiter>,
    meter: P::Meter,
}

// SAFETY: the pointer is an atomic, and what it points to is accessed by the rules of `queue.rs`.
unsafe impl<P: Policy> Send for Protocol<P> {}
// SAFETY: as above.
unsafe impl<P: Policy> Sync for Protocol<P> {}

impl<P: Policy> Protocol<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { word: AtomicPtr::new(ptr::null_mut()), meter: P::Meter::INIT }
        }
    }

    /// Changes the word from `now` to `next`; the word as it is if that is not `now`.
    #[inline(always)]
    fn change(&self, now: State, next: State, order: Ordering) -> Result<(), State> {
        self.word.compare_exchange(now.0, next.0, order, Acquire).map(drop).map_err(State)
    }

    /// (L1): takes the mutex if it is free and nobody is in line; the word as it is otherwise.
    #[inline(always)]
    fn take(&self) -> Result<(), State> {
        self.word.compare_exchange(State::FREE.0, State::HELD.0, Acquire, Relaxed).map(drop).map_err(State)
    }

    /// An arrival that did not find the mutex free: queues, and waits. False if `deadline` passed
    /// first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        // Invariant 7.
        without_unwinding(|| {
            let waiter = Waiter::new(ahead::here());
            self.lock_with(&waiter, deadline)
        })
    }

    /// Queues, and waits, with the node `waiter`, of which nobody knows yet.
    fn lock_with(&self, waiter: &Waiter, deadline: Option<Deadline>) -> bool {
        let node = ptr::from_ref(waiter);
        let mut word = State(self.word.load(Relaxed));
        let alone = loop {
            if word == State::FREE {
                match self.meter.arrive(|| self.take()) {
                    Ok(()) => return true,
                    Err(now) => word = now,
                }
            } else {
                let older = word.newest();
                // SAFETY: the node is in nobody's hands yet.
                unsafe { Waiter::links(node, |links| links.older = older) };
                let next = word.with_newest(node);
                match self.meter.arrive(|| self.change(word, next, Release)) {
                    Ok(()) => break older.is_null(), // (L2)
                    Err(now) => word = now,
                }
            }
        };
        let granted = self.await_turn(waiter, alone, deadline);
        // The node is this thread's again, and says so to a model that watches its links.
        // SAFETY: nobody touches the node after `Granted` or `Left`.
        unsafe { Waiter::links(node, |links| links.linked = false) };
        granted
    }

    /// Waits in line; `alone` if nobody was in line before. False if `deadline` passed and the
    /// waiter has left.
    fn await_turn(&self, waiter: &Waiter, alone: bool, deadline: Option<Deadline>) -> bool {
        let mut slept = false;
        loop {
            // Acquire, here and in the spin: pairs with (G).
            let look = || Turn(waiter.turn.load(Acquire));
            let (here, mut seen) = (ahead::here(), look());
            if (alone || seen.is(Kind::Called)) && !seen.holder().is(here) {
                let knows = seen.holder().is_known() && here.is_known();
                spin::head_waiter::<P>(slept && !knows, || {
                    seen = look();
                    seen.is(Kind::Granted) || seen.holder().is(here)
                });
            }
            if seen.is(Kind::Granted) {
                if !slept {
                    self.meter.count(Event::Spun);
                }
                return true;
            }
            let parked = Turn::parked(ahead::here());
            if waiter.turn.compare_exchange(seen.0, parked.0, Relaxed, Relaxed).is_err() {
                continue;
            }
            slept = true;
            if !self.sleep(waiter, parked, deadline) {
                return self.leave(waiter);
            }
        }
    }

    /// Sleeps until the turn is not `parked` any more; false if `deadline` passed first.
    fn sleep(&self, waiter: &Waiter, parked: Turn, deadline: Option<Deadline>) -> bool {
        loop {
            self.meter.count(Event::Slept);
            let waited = waiter.turn.wait(parked.0, deadline);
            if waiter.turn.load(Relaxed) != parked.0 {
                // Counted here, because who woke this waiter may have had no lock left to count in.
                self.meter.count(Event::Woke);
                return true;
            }
            if waited == Waited::TimedOut {
                return false;
            }
        }
    }

    /// A waiter whose time is up leaves the line, unless it is granted first: then true.
    #[cold]
    fn leave(&self, waiter: &Waiter) -> bool {
        let node = &raw const *waiter;
        // Acquire, here and below: pairs with (G), or with `Left`.
        let look = || Turn(waiter.turn.load(Acquire));
        let mut seen = look();
        let leaving = loop {
            if seen.is(Kind::Granted) {
                return true;
            }
            let leaving = seen.with(Kind::Leaving);
            match waiter.turn.compare_exchange(seen.0, leaving.0, Relaxed, Acquire) {
                Ok(_) => break leaving,
                Err(now) => seen = Turn(now),
            }
        };
        let mut word = State(self.word.load(Relaxed));
        while look() == leaving {
            if word.is_tended() {
                match self.change(word, word.asked_by_leavers(), Release) {
                    Ok(()) => break, // (T2)
                    Err(now) => word = now,
                }
            } else {
                match self.change(word, word.tended(), Acquire) {
                    Err(now) => word = now,
                    // (T1)
                    Ok(()) => {
                        // SAFETY: this thread is the tender, and the node is its own.
                        let linked = unsafe { Waiter::links(node, |links| links.linked) };
                        word = word.tended();
                        if linked {
                            // SAFETY: this thread is the tender, and the node is in line.
                            word = unsafe { self.take_out(node, word) };
                        }
                        self.tend(word);
                        if linked {
                            return false;
                        }
                        break; // somebody took it out, and is about to say why
                    }
                }
            }
        }
        loop {
            match look() {
                turn if turn.is(Kind::Granted) => return true,
                turn if turn.is(Kind::Left) => return false,
                _ => waiter.turn.wait(leaving.0, None),
            };
        }
    }

    /// Takes `node` out of line; returns the word as it is then.
    ///
    /// # Safety
    /// The caller is the tender, has read `word` acquiring, and `node` is in line.
    unsafe fn take_out(&self, node: *const Waiter, mut word: State) -> State {
        loop {
            let newest = word.newest();
            // SAFETY: by the caller's contract; the word was read acquiring, here too.
            let next = unsafe {
                let oldest = Waiter::oldest(newest);
                Waiter::take(node, newest, oldest)
            };
            let Some(next) = next else { return word };
            match self.change(word, word.with_newest(next), Relaxed) {
                // (T4)
                Ok(()) => {
                    // SAFETY: the links of a node that was in line are the tender's.
                    unsafe { Waiter::links(node, |links| links.linked = false) };
                    return word.with_newest(next);
                }
                Err(now) => word = now,
            }
        }
    }

    /// Takes everybody out of line who asks for it, and puts them on the list that begins with
    /// `left`.
    ///
    /// # Safety
    /// As [`take_out`](Self::take_out).
    unsafe fn let_go(&self, mut word: State, left: &mut *const Waiter) -> State {
        let mut node = word.newest();
        while !node.is_null() {
            // SAFETY: nodes in line are alive and their links are the tender's. Invariant 2 of the
            // queue ends the walk.
            unsafe {
                let older = Waiter::links(node, |links| links.older);
                if Turn((*node).turn.load(Relaxed)).is(Kind::Leaving) {
                    word = self.take_out(node, word);
                    Waiter::push_left(node, left);
                }
                node = older;
            }
        }
        word
    }

    /// Works on the queue and lets it go; what is to be done then is done then. The caller has set
    /// `TENDED` and seen `word`, acquiring.
    fn tend(&self, mut word: State) {
        let (mut called, mut grants_here) = (None, false);
        let mut left: *const Waiter = ptr::null();
        // Out of line already, because it was not alone in it.
        let mut chosen: *const Waiter = ptr::null();
        let granted = loop {
            if word.has_leavers() {
                match self.change(word, word.without_leavers(), Acquire) {
                    // (T3)
                    // SAFETY: this thread is the tender and has read the word acquiring.
                    Ok(()) => word = unsafe { self.let_go(word.without_leavers(), &mut left) },
                    Err(now) => word = now,
                }
                continue;
            }
            let newest = word.newest();
            let mut next = word.untended().without_leavers();
            let mut granted = chosen;
            if !chosen.is_null() {
                next = next.locked();
            } else if !newest.is_null() && !word.is_locked() {
                // SAFETY: this thread is the tender and has read the word acquiring.
                unsafe {
                    let oldest = Waiter::oldest(newest);
                    next = next.locked();
                    granted = oldest;
                    if oldest == newest {
                        next = State::HELD;
                        Waiter::links(oldest, |links| links.linked = false);
                    } else {
                        let second = Waiter::take_oldest(newest, oldest);
                        let home = Turn((*oldest).turn.load(Relaxed)).home();
                        let here = ahead::here();
                        called = ahead::call_ahead(second, newest, home, here);
                        grants_here = home.is(here);
                        chosen = oldest;
                    }
                }
            }
            // (T5), (T6); from (T6) on, the mutex may be gone.
            match self.change(word, next, Release) {
                Ok(()) => break granted,
                Err(now) => word = now,
            }
            if granted != chosen {
                // It was alone in line and is not any more.
                // SAFETY: this thread is the tender still.
                unsafe { Waiter::links(granted, |links| links.linked = true) };
            }
        };
        let granted = if granted.is_null() { None } else { Self::grant(granted) };
        // Who is to run on this CPU, as a rule, cannot run before this thread is done, and may take
        // the CPU when it is woken.
        let wakes = if grants_here { [called, granted] } else { [granted, called] };
        // A refused wake-up aborts, so the leavers are answered in any case.
        wakes.into_iter().flatten().for_each(|key| _ = key.wake(1));
        Self::dismiss(left);
    }

    /// (G): hands the mutex to `waiter`, which the caller took out of line. Returns by what to wake
    /// it if it is asleep.
    fn grant(waiter: *const Waiter) -> Option<Key> {
        // SAFETY: a node out of line is alive until its turn is `Granted`.
        let turn = unsafe { &(*waiter).turn };
        let key = turn.key();
        let seen = Turn(turn.swap(Kind::Granted as u32, Release));
        let asleep = seen.is(Kind::Parked) || seen.is(Kind::Leaving);
        asleep.then_some(key)
    }

    /// Tells those on the list that begins with `left` that they are out of line.
    fn dismiss(mut left: *const Waiter) {
        while !left.is_null() {
            // SAFETY: this thread took them out of line, and they are alive until their turn says
            // so.
            unsafe {
                let next = Waiter::next_left(left);
                let key = (*left).turn.key();
                (*left).turn.swap(Kind::Left as u32, Release);
                key.wake(1);
                left = next;
            }
        }
    }

    /// (U2), (U3): releases the mutex with somebody in line, or while somebody is leaving.
    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, mut word: State) {
        loop {
            let tends = !word.is_tended() && !word.newest().is_null();
            let next = if tends { word.unlocked().tended() } else { word.unlocked() };
            match self.change(word, next, AcqRel) {
                // Otherwise the mutex may be gone.
                Ok(()) if tends => return self.tend(next),
                Ok(()) => return,
                Err(now) => word = now,
            }
        }
    }
}

impl<P: Policy> raw::Metered for Protocol<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy> fmt::Debug for Protocol<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        State(self.word.load(Relaxed)).fmt(f)
    }
}

ulocks_core::initial!([P: Policy<Scope = futex::Private>] Protocol<P> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing, and no address of the mutex is kept, so it may be forgotten and the mutex
//   moved or dropped: a node is in line only while its thread is inside of `lock` or `lock_until`.
//   These borrow the mutex, and do not unwind meanwhile (invariant 7).
unsafe impl<P: Policy<Scope = futex::Private>> raw::RawMutex for Protocol<P> {
    type Scope = futex::Private;
    type Token = ();

    #[inline]
    fn lock(&self) {
        if self.meter.arrive(|| self.take()).is_err() {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let taken = self.meter.arrive(|| self.take()).is_ok();
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken = self.meter.arrive(|| self.take()).is_ok()
            || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // (U1); from here on the mutex may be gone, if it succeeds.
        let released = self.word.compare_exchange(State::HELD.0, State::FREE.0, Release, Relaxed);
        if let Err(word) = released {
            self.unlock_contended(State(word));
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let word = State(self.word.load(Relaxed));
        word.is_locked() || !word.newest().is_null()
    }
}

// SAFETY: as `RawMutex`.
unsafe impl<P: Policy<Scope = futex::Private>> raw::RawMutexFair for Protocol<P> {
    #[inline]
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: the caller's contract is the callee's.
        unsafe { raw::RawMutex::unlock(self, ()) };
    }
}
