//! The protocol of [`ThroughputMutex`](crate::ThroughputMutex): Long's throughput-optimised futex,
//! in user space.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Barging: an arriving thread takes a free mutex past waiters, unless it is reserved.
//! - *Bounded waiting.* The kernel wakes sleepers in its order. A woken waiter that finds the mutex
//!   taken joins a queue and keeps its position there. The head waiter reserves the mutex when it
//!   has been the head for the bound. From then on no thread overtakes it.
//! - One read-modify-write to acquire and one to release when no thread waits. No system call
//!   unless a thread sleeps. The release never loops.
//! - The release is the last touch. The value that it replaced says which waiter to wake, and the
//!   wake-up goes by address (law 2 of ARCHITECTURE.md).
//! - All-zero is an unlocked mutex. Nothing is allocated or registered, no address is stored (laws
//!   1, 7, 9).
//!
//! # Where waiters wait
//! ```text
//! arriving threads   outsiders                      the queue                      the holder
//! spin, steal    --> asleep on the first word,  --> outsiders that were woken  -->
//!                    in the kernel's order          and found it taken, by
//!                                                   tickets; only the head
//!                                                   waiter spins, is woken,
//!                                                   and reserves
//! ```
//! A futex alone puts a waiter that sleeps again at the end of its queue, so no bound holds. Here
//! such a waiter gets a ticket, and further wake-ups go to the head waiter. The outsiders keep
//! their positions in the kernel's order meanwhile.
//!
//! While the head waiter is awake, an outsider that falls asleep leaves a mark that wakes another
//! outsider. If that one finds the mutex taken, too, it joins the queue behind the head only when
//! the bound has passed since it was first woken. Until then it sleeps outside again, where a
//! release can wake it soon. A queue of all such waiters would idle the CPUs of a mutex that is
//! merely busy.
//!
//! # State
//! The bits are those of [`ThroughputState`](crate::ThroughputState); *open* means neither `LOCKED`
//! nor `RESERVED`. Each transition is one read-modify-write:
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | 0 | `LOCKED` | an arriving thread | (take) |
//! | open | `LOCKED` and a hint only | an arriving thread that finds more than 0, or spins | (steal) |
//! | open | `LOCKED`, `MARKED` and a hint | an outsider that has slept | (take awake) |
//! | not `LOCKED` | `LOCKED`, a hint, and `MARKED` unless another waiter is queued | the head waiter | (take as head) |
//! | not open | with `MARKED` | an outsider about to sleep that finds no mark, or about to give up; a notification that requeues a waiter here | (mark) |
//! | `LOCKED` | with `ASLEEP` | the head waiter, about to sleep | (sleep as head) |
//! | `LOCKED` | with `RESERVED`, its own CPU as the hint | the head waiter, when the bound has passed | (reserve) |
//! | `LOCKED` | with `MARKED`, without `ASLEEP` and `RESERVED` | the head waiter, giving up | (give up) |
//! | `LOCKED` | without `LOCKED`, all else as it was | the holder, which then wakes as the old value says | (release) |
//! | queue | one more | an outsider that was woken and found the mutex taken | (join) |
//! | queue | one less, at the head | the head waiter, after (take as head) or (give up), which then wakes the next | (leave) |
//!
//! (release) wakes the head waiter if `ASLEEP` was set; otherwise, if `MARKED` was, an outsider.
//!
//! # Invariants
//! 1. At most one thread holds the mutex: only transitions out of a word without `LOCKED` acquire.
//! 2. A waiter sleeps only if the word has the value that the waiter left or read.
//! 3. *In an open word the marks are receipts*: (release) has sent the wake-up or is about to. So
//!    an acquisition clears them. Threads that come and go before the woken waiter runs find a
//!    clean word (Molnar's rule).
//! 4. *No head waiter is forgotten.* While it sleeps, the word is `LOCKED` and `ASLEEP`, or a
//!    wake-up is on its way that only it can take. Only the head waiter sets `ASLEEP`, so the value
//!    that it sleeps on does not come back.
//! 5. *No outsider is forgotten.* A waiter that has slept owes a mark. It sets `MARKED` when it
//!    acquires or gives up, and when it sleeps outside again. While an outsider sleeps, one of
//!    three holds. `MARKED` is set on a mutex that is not open; or a wake-up for an outsider is on
//!    its way; or there is a debtor: an outsider that was woken, or a queued waiter. A debtor is
//!    awake, or itself not forgotten; so in the end it pays.
//! 6. A queued waiter that is not the head sleeps in a *place*, and (leave) wakes it. It has no
//!    deadline, so it stays in the queue until it is the head. So a head waiter with another behind
//!    it need not pay at (take as head). The places are in static memory ([`Place`](super::queue)):
//!    (leave) wakes the next waiter and no other of this mutex, however long the queue is.
//! 7. `RESERVED` implies a head waiter that set it. It is set and cleared on a locked mutex only.
//!    So a free reserved mutex has a head waiter that is awake, or asleep with the wake-up of
//!    (release) on its way, and that acquires.
//! 8. A waiter that may have to sleep does not unwind: its ticket would stay in the queue, or its
//!    debt unpaid. If the kernel refuses the wait, the process aborts.
//! 9. An outsider that reads a word with `MARKED` that is not open may sleep on it without (mark).
//!    The load may be out of date, but the kernel compares it with the word. If they are equal,
//!    the word is marked and not open when the outsider falls asleep, as (mark) would leave it. So
//!    invariant 5 holds. An outsider that gives up has no such comparison, and does (mark).
//!
//! # The bound
//! Let `h` be the longest hold and `w` the time until a woken thread runs. The head waiter acquires
//! with the first release after it has reserved, within `bound + h + w`. From (reserve) to (take as
//! head) no other thread acquires. An outsider is woken after those asleep before it. Others may
//! overtake it until it is overdue, `bound` after it was first woken; then it keeps its position.
//! So with `k` other waiters it waits `bound + (k + 1) * (bound + 2h + 2w)` at most; the first term
//! only if several were woken at once. Reservations are `bound` apart. Each idles the mutex for
//! `w`, so they cost `w / bound` of the throughput.
//!
//! Two kinds of waiters are exempt. A waiter with a deadline that finds the queue not empty sleeps
//! outside again, because it could not leave from behind the head. And the kernel forgets the
//! position of a waiter whose sleep a signal ends.
//!
//! With [`HandOff`](crate::HandOff) the bound is zero: every woken waiter that finds the mutex
//! taken reserves.
//!
//! # The waiting rule
//! Spinning is as in [`BargingMutex`](crate::BargingMutex), with one difference: an arriving thread
//! uses all of its patience even if the release has to wake a waiter. If it slept sooner it would
//! end up in the queue, and reserve. The head waiter that has just reserved polls closely for 40
//! us, about as long as a sleep and a wake-up take, because the mutex idles while it sleeps.
//!
//! A free reserved mutex idles until the head waiter runs. An arriving thread that finds it so
//! polls for 40 us too: if it slept, the head waiter would have to wake it right away. With a
//! holder of 100 us and 31 others that hold for 1 us, it saves the holder a fifth of its rate.
//!
//! *Waiters that cannot sleep.* An outsider does not sleep if the word changes between its look and
//! the kernel's. On many CPUs it nearly always does, and all of them would write to the word. Two
//! rules keep the line for the holder (BENCHMARKS.md, *The family on many CPUs*). An outsider that
//! finds a mark does not write (invariant 9). And an outsider that could not sleep twice in a row
//! leaves the line alone before it looks again, for twice as long each time, up to 80 us.
//!
//! All of them stop at once when the hint names their own CPU. Then the thread that they wait for
//! is not running: the holder, or the head waiter that has reserved. Only (reserve) and an
//! acquisition that had to wait leave a hint, in the same CAS. A hint at each acquisition would
//! cost 2 ns of 12 in a word of its own, since the release waits for the store, and 4 ns in this
//! one.
//!
//! # One process
//! A waiter that is killed leaves its ticket in the queue or its debt unpaid, and strands the
//! others (invariants 4 to 7). So the policy is one of a single process, whose threads are killed
//! together.
//!
//! # Ordering
//! Each acquisition is Acquire and pairs with (release), which is Release. All transitions of the
//! first word are read-modify-writes, so the others continue the release sequence and are Relaxed.
//! The second word orders the places, and carries no other data: see `queue.rs`. A futex call
//! carries no ordering, and its result decides only which waiter joins the queue.
//!
//! # Sources
//! W. Long, "futex: Throughput-optimized (TO) futexes" (LKML, 2016): steal, one top waiter that
//! spins on the owner, hand-off to it. Linux `kernel/locking/mutex.c`: the first waiter asks for
//! the hand-off. I. Molnar, "Generic Mutex Subsystem" (2005). Here: a reservation of the free mutex
//! in place of the hand-off, so that no ownership is in flight; a bound in time; the queue.

use super::bound::{After, Bound};
use super::word::{HEAD, OUTSIDE, Queue, ThroughputState as State, Ticket};
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use ulocks_core::futex::{Futex, FutexKey, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, without_unwinding};
use ulocks_core::time::Deadline;
use ulocks_core::{Private, cpu, raw};

const LOCKED: u32 = State::LOCKED;
pub(super) const MARKED: u32 = State::MARKED;
pub(super) const ASLEEP: u32 = State::ASLEEP;
pub(super) const RESERVED: u32 = State::RESERVED;

/// The raw mutex, without data: two words, and the counters if the policy has any.
#[repr(C)]
pub struct RawThroughputMutex<P: InOneProcess = Private, B: Bound = After> {
    pub(super) futex: Futex<P::Scope>,
    pub(super) queue: AtomicU32,
    pub(super) meter: P::Meter,
    bound: PhantomData<fn() -> B>,
}

impl<P: InOneProcess, B: Bound> RawThroughputMutex<P, B> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        pub fn new() -> Self {
            Self {
                futex: Futex::new(State::UNLOCKED.0),
                queue: AtomicU32::new(0),
                meter: P::Meter::INIT,
                bound: PhantomData,
            }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// The first word at this moment.
    #[doc(hidden)]
    pub fn state(&self) -> State {
        State(self.futex.load(Relaxed))
    }

    pub(super) fn queue(&self) -> Queue {
        Queue(self.queue.load(Relaxed))
    }

    /// (take)
    #[inline(always)]
    fn take_at_once(&self) -> bool {
        self.futex.compare_exchange(State::UNLOCKED.0, LOCKED, Acquire, Relaxed).is_ok()
    }

    /// A transition of the first word.
    pub(super) fn change(&self, was: State, now: State, learns: bool) -> Result<(), State> {
        let order = if learns { Acquire } else { Relaxed };
        self.futex.compare_exchange(was.0, now.0, order, Relaxed).map_err(State)?;
        if now.owes_wake() && !was.owes_wake() {
            // Counted here: the release must not touch the mutex after (release).
            self.meter.count(Event::Woke);
        }
        Ok(())
    }

    /// (steal): an arriving thread acquires an open mutex.
    fn steal(&self, was: State, cpu: Option<u32>) -> Result<(), State> {
        self.change(was, State::held_on(cpu), true)?;
        self.meter.count(if was.has(MARKED | ASLEEP) { Event::Stolen } else { Event::Spun });
        Ok(())
    }

    /// (take awake): an outsider that has slept acquires an open mutex, and pays what it owes.
    fn take_awake(&self, was: State) -> Result<(), State> {
        self.change(was, State::held_on(cpu::current()).with(MARKED), true)?;
        self.meter.count(Event::Woken);
        Ok(())
    }

    /// A poll by a waiter without a ticket; `take` takes an open mutex.
    #[inline]
    fn look(&self, take: impl FnOnce(State) -> Result<(), State>) -> Look {
        let was = self.state();
        if was.is_open() {
            if take(was).is_ok() { Look::Acquired } else { Look::Taken }
        } else if Self::is_here(was) {
            Look::Hopeless
        } else if was.owes_wake() {
            Look::Saturated
        } else {
            Look::Taken
        }
    }

    /// A poll by an arriving thread. It goes on even if the release has to wake a waiter.
    #[inline]
    fn look_in_passing(&self) -> Look {
        match self.look(|was| self.steal(was, cpu::current())) {
            Look::Saturated => Look::Taken,
            seen => seen,
        }
    }

    /// A free mutex idles until the head waiter that has reserved it runs, and that one may hold it
    /// for a moment only. A sleep and a wake-up of the caller would come on top of it.
    fn wait_for_reserver(&self) -> bool {
        let was = self.state();
        let idles = was.is_reserved() && !was.is_locked() && P::Spin::WOKEN_NS > 0;
        idles && spin::closely_for::<P>(spin::WAITED_FOR_NS, || self.look_in_passing())
    }

    /// Whether the thread that is waited for cannot be running, because the caller runs on its CPU:
    /// the head waiter if the mutex is reserved, or else the holder.
    pub(super) fn is_here(was: State) -> bool {
        !was.is_open() && was.hint().is_some() && was.hint() == cpu::current()
    }

    /// Takes a mutex that is open but not zero.
    fn take_if_open(&self) -> bool {
        let mut was = self.state();
        while was.is_open() {
            match self.steal(was, None) {
                Ok(()) => return true,
                Err(now) => was = now,
            }
        }
        false
    }

    /// For an arriving thread that found more than zero. False if `deadline` passed first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        self.take_if_open()
            || spin::backing_off::<P>(|| self.look_in_passing())
            || self.wait_for_reserver()
            || without_unwinding(|| self.lock_outside(deadline, false)) // invariant 8
    }

    /// A waiter without a ticket. `owes`: it has slept on this futex (invariant 5). False if
    /// `deadline` passed first.
    fn lock_outside(&self, deadline: Option<Deadline>, mut owes: bool) -> bool {
        let mut woken = owes;
        let mut gives_up = false;
        let mut overdue = None;
        let mut refused = 0;
        loop {
            spin::leave_alone(refused);
            if owes && !gives_up && spin::closely::<P>(|| self.look(|was| self.take_awake(was))) {
                return true;
            }
            if woken && let Some(ticket) = self.join_queue(deadline, &mut overdue) {
                return self.lock_queued(ticket, deadline);
            }
            let Some(marked) = self.mark(owes, !gives_up) else { return true };
            if gives_up {
                return false;
            }
            self.meter.count(Event::Slept);
            let waited = self.futex.wait_bits(marked.0, OUTSIDE, deadline);
            owes = true;
            woken = waited == Waited::Woken;
            refused = if waited == Waited::Mismatch { refused + 1 } else { 0 };
            gives_up = waited == Waited::TimedOut;
        }
    }

    /// (mark): leaves `MARKED` in a word that is not open, and returns that word; `None` if it
    /// acquired instead. If the caller `sleeps` on that word, a mark that it has read is as good as
    /// its own (invariant 9).
    fn mark(&self, owes: bool, sleeps: bool) -> Option<State> {
        let mut was = self.state();
        loop {
            let done = if was.is_open() {
                if owes { self.take_awake(was) } else { self.steal(was, cpu::current()) }.map(|()| None)
            } else if sleeps && was.has(MARKED) {
                Ok(Some(was))
            } else {
                // Even if it is marked already: a load may be out of date.
                let marked = was.with(MARKED);
                self.change(was, marked, false).map(|()| Some(marked))
            };
            match done {
                Ok(done) => return done,
                Err(now) => was = now,
            }
        }
    }

    /// (join): the ticket of an outsider that was woken and found the mutex taken. `None` if the
    /// queue is full. Behind others it joins only without a deadline (invariant 6), and only if it
    /// is `overdue`: the bound has passed since it was first woken.
    fn join_queue(&self, deadline: Option<Deadline>, overdue: &mut Option<Deadline>) -> Option<Ticket> {
        let mut queue = self.queue();
        loop {
            if queue.length() > 0 && (deadline.is_some() || !Self::is_overdue(overdue)) {
                return None;
            }
            let (longer, ticket) = queue.with_one_more()?;
            match self.queue.compare_exchange(queue.0, longer.0, Relaxed, Relaxed) {
                Ok(_) => return Some(ticket),
                Err(now) => queue = Queue(now),
            }
        }
    }

    /// Whether the bound has passed since the first call.
    fn is_overdue(overdue: &mut Option<Deadline>) -> bool {
        B::NS == 0
            || overdue
                .replace(overdue.unwrap_or_else(|| Deadline::after(Duration::from_nanos(B::NS))))
                .is_some_and(|overdue| overdue.has_passed())
    }

    /// The wake-up that a release owes. By address: the mutex may be gone.
    #[cold]
    #[inline(never)]
    fn wake(key: FutexKey<P::Scope>, was: State) {
        if !was.has(ASLEEP) {
            key.wake_bits(1, OUTSIDE);
        } else {
            key.wake_bits(1, HEAD);
        }
    }
}

impl<P: InOneProcess, B: Bound> raw::Metered for RawThroughputMutex<P, B> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: InOneProcess, B: Bound> Default for RawThroughputMutex<P, B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: InOneProcess<Meter: fmt::Debug>, B: Bound> fmt::Debug for RawThroughputMutex<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawThroughputMutex")
            .field("state", &self.state())
            .field("meter", &self.meter)
            .finish()
    }
}

ulocks_core::initial!([P: InOneProcess, B: Bound] RawThroughputMutex<P, B> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten and the mutex moved or
//   dropped.
unsafe impl<P: InOneProcess, B: Bound> raw::RawMutex for RawThroughputMutex<P, B> {
    type Scope = P::Scope;
    type Token = ();
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        if !self.take_at_once() {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let taken = self.take_at_once() || self.take_if_open();
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken = self.take_at_once()
            || self.take_if_open()
            || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        self.meter.ended(taken);
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.meter.released();
        let key = self.futex.key();
        // (release); from here on the mutex may be gone.
        let was = State(self.futex.fetch_sub(LOCKED, Release));
        if was.has(MARKED | ASLEEP) {
            Self::wake(key, was);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.state().is_locked()
    }

    #[inline]
    fn requeue_key(&self) -> Option<FutexKey<P::Scope>> {
        Some(self.futex.key())
    }

    fn mark_for_requeued(&self) -> bool {
        let mut was = self.state();
        while !was.is_open() {
            // (mark)
            match self.change(was, was.with(MARKED), false) {
                Ok(()) => return true,
                Err(now) => was = now,
            }
        }
        false
    }

    fn lock_requeued(&self) {
        self.meter.count(Event::Contended);
        without_unwinding(|| self.lock_outside(None, true)); // invariant 8
        self.meter.count(Event::Acquired);
    }
}
