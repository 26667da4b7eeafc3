//! The protocol of [`RawCondvar`](super::RawCondvar). `PROTOCOL.md` beside this file has pictures.
//!
//! - 16 bytes, all-zero without waiters, no allocation, nothing to initialise.
//! - Timed by absolute deadlines. A notification without waiters makes no system call.
//! - A notification of a waiter that still spins makes no system call either.
//! - No lost wake-ups, with or without the mutex held by the notifier, for any number of mutexes.
//! - If the mutex is held, a notification moves sleepers to it instead of waking them: a woken
//!   thread would only take the CPU from the holder. Each release of the mutex wakes the next of
//!   them. If the mutex is free, `notify_all` wakes one sleeper and moves the others. This needs a
//!   mutex of one process that offers its futex ([`RawMutex::requeue_key`]).
//!
//! # State
//! | word | what | changed by |
//! |---|---|---|
//! | `seq: u32` | the sequence: the futex that waiters sleep on. Its only meaning is whether it has changed | each loud notification, once; a waiter that brings a second mutex |
//! | `target: u32` | where a notification may move sleepers: `FRESH`, the distance to the one mutex in use, `PLAIN`, `MIXED`, `TASKS` | waiters, before they register |
//! | `counts: u64` | the waiters, the spinners among them, and the notifications; see [`Counts`] | waiters and notifiers, by CAS |
//!
//! # Protocol
//! A **wait**, holding the mutex:
//! 1. checks the target: the first waiter sets it, one with a second mutex sets `MIXED` and changes
//!    `seq`;
//! 2. reads `seq`;
//! 3. registers, `waiting + 1`, and `spinning + 1` if it is going to spin; it remembers the epoch;
//! 4. releases the mutex;
//! 5. spins, if it registered for that: it polls `counts`. Once the epoch has changed, it leaves.
//!    When its budget is spent, it clears its share of `spinning` by a CAS that also shows that the
//!    epoch has not changed;
//! 6. sleeps on `seq` while that has the value read;
//! 7. leaves;
//! 8. locks the mutex;
//! 9. if `REQUEUING` was set as it left, waits until that is cleared.
//!
//! A waiter is *eligible* if the epoch has changed since it registered. A **leave** is
//! one CAS: `waiting - 1`, and `granted - 1` if the waiter is eligible and `granted` is not zero. A
//! spinner that leaves clears its share of `spinning` in the same CAS.
//!
//! A waiter that finds `seq` changed but is not eligible does not leave. The change was for older
//! waiters, so it sleeps again on the newer value. If the kernel woke a waiter that is not
//! eligible, the wake-up may have been meant for another: an older waiter behind it in the kernel's
//! queue, or one of lower priority. While a grant is left, it passes the wake-up on, and leaves. If
//! no grant is left, it just leaves: passing on would let two waiters wake one another for ever.
//!
//! A *task* waits as a thread that does not spin, and sleeps on `seq` by a [`TaskSleep`] of core
//! (`task.rs`). No notification moves it. It sets `TASKS` before it registers, so a notification
//! whose grant finds it registered looks for tasks, by (register) and (grant). Where no task ever
//! waited, none is looked for: then a signal handler may notify. If its future is dropped, it
//! leaves as a waiter whose time is up. If it has taken a grant, it notifies all others in its
//! place: they may be older than a spinner that would take it.
//!
//! [`TaskSleep`]: crate::lock::sleep::TaskSleep
//!
//! A **notification**:
//! 1. grants, `granted + 1` (`granted = waiting` for all) and `epoch + 1`, or returns if there is
//!    no waiter;
//! 2. returns if it is *silent*: if after the grant `granted` is at most `spinning`;
//! 3. changes `seq`;
//! 4. wakes as many as it may, unless it has set `REQUEUING` in step 1;
//! 5. otherwise looks whether the mutex is held;
//! 6. sets `REQUEUED`, and requeues: all if the mutex is held, else all but one, which it wakes. A
//!    single sleeper of a free mutex is simply woken;
//! 7. marks the mutex if it woke none and moved some ([`RawMutex::mark_for_requeued`]). If the
//!    mutex is free by now, wakes one of those moved;
//! 8. clears `REQUEUING`.
//!
//! A notification that is not silent is *loud*. It sets `REQUEUING` if the target is a mutex and no
//! other notification has set it.
//!
//! # Invariants
//! 1. A waiter that a loud grant makes eligible finds `seq` different from what it read in step 2,
//!    at the latest when its notifier is past step 3. The waiter read before it registered, and the
//!    notifier changed `seq` after it saw the registration. So the waiter either does not fall
//!    asleep, or it is asleep before the notifier's step 4.
//! 2. An eligible waiter never goes back to sleep, and an eligible spinner never falls asleep. If
//!    it did, the wake-up it got might be the last one for it, or there might be none.
//! 3. `granted` is at most the number of eligible waiters. A grant makes all waiters eligible and
//!    does not exceed `waiting`. An eligible waiter takes a grant when it leaves, if there is any.
//!    A waiter that is not eligible takes none.
//! 4. `granted` is at most the number of eligible spinners, plus the wake-ups to come, plus the
//!    eligible waiters that are awake and about to leave.
//!    - A loud grant adds as many wake-ups as grants.
//!    - A silent grant makes all spinners eligible, and leaves `granted` at most their number.
//!    - A spinner that gives up is not eligible, so it did not count here.
//!    - A wake-up that meets an uncovered waiter is passed on while `granted` is not zero.
//!
//!    Hence, if `granted == waiting`, every waiter is eligible and leaves or will be woken, and a
//!    notification may return at once. In shared memory it does not, because a notifier may have
//!    been killed between its steps. Where tasks have waited it does not either, because one of
//!    them may have left its grant behind: see below.
//! 5. A thread sleeps on the mutex only if it waits with that mutex and `REQUEUED` is set. Then the
//!    holder's release wakes one of the threads that sleep there, or one of them was woken. All
//!    sleepers lock by `lock_requeued`, so each release wakes the next until none sleeps there.
//!    Between steps 6 and 7 the notifier is about to mark or to wake. The threads that are moved
//!    need not be those that were notified: all of these may have left, and others be asleep, when
//!    the requeue comes. This is why `REQUEUED` stays while `REQUEUING` is set.
//! 6. `target` goes `FRESH -> PLAIN` or `FRESH -> distance -> MIXED`, and from each of these to
//!    `TASKS`, never back. A waiter whose mutex is not the target sets `MIXED` *and then* changes
//!    `seq`. A notifier reads `target` after it changed `seq`, and requeues only if `seq` still has
//!    that value. So every thread that the requeue finds asleep waits with the target mutex.
//! 7. A fork copies `counts` but not the threads. In one process a registration writes the process
//!    beside the counts, if that is known, and if it finds another one there, it begins anew. A
//!    thread that finds another one takes the waiters for sleepers, of which it wakes as many as it
//!    may, and sets no `REQUEUING`. A waiter in a copy of its process, whose handler has forked,
//!    may sleep there. What begins anew counts it no more, and wakes it. Once it is awake, it
//!    leaves without a change, and passes on what woke it.
//! 8. *The mutex lives while a notification looks at it.* The change that sets `REQUEUING` finds a
//!    waiter of its process that is registered. If the target, read after that, is a mutex, then
//!    every registered waiter waits with that mutex: a waiter with another one sets `MIXED` before
//!    it registers. Each of them leaves after the change. It finds `REQUEUING` as it leaves, and
//!    does not return until that is cleared. So the mutex is not freed meanwhile.
//!
//! # The spin
//! A sleep and a wake-up cost microseconds on both sides, and a thread that sleeps makes its
//! partner sleep too. So a waiter spins first, for as long as its mutex says
//! ([`RawMutex::CONDVAR_NS`]). `counts` holds how many spins in a row have failed (`failed`). After
//! [`TRIES`](spin::TRIES) of them waiters sleep at once, and one wait in [`PROBE`](spin::PROBE) -
//! [`TRIES`](spin::TRIES) spins again. At most three waiters spin at a time: `spins.rs` says why.
//!
//! # Memory ordering
//! What a waiter sees of the notifier's work is the mutex's business. The orderings here keep the
//! words in step:
//! - (register) a registration releases, (grant) a grant acquires: what the waiter read of `seq` is
//!   older than the notifier's change. This is load buffering, which no model world has:
//!   `xtask/litmus/condvar-registration.litmus`;
//! - (advance) a notifier's change of `seq` releases, (look) the poll of `seq` after a sleep
//!   acquires: a waiter that sees the change sees the grant;
//! - (mix) the change by a waiter that has set `MIXED` releases, the change by a notifier acquires:
//!   if the notifier's change is later, it sees `MIXED`. If its grant finds that waiter registered,
//!   it sees `MIXED` by (register) and (grant), too. The accesses to `target` are relaxed: a waiter
//!   that finds `MIXED` sets it again and changes `seq` again, so it relies on no other waiter's
//!   change;
//! - (end requeuing) clearing `REQUEUING` releases, a leave and the look for its end acquire: the
//!   notifier's accesses to the mutex are over when a waiter returns.
//!
//! A spinner needs none of these. It leaves, or gives up, by a CAS of `counts`, and that is the
//! word that the grant has changed.
//!
//! # Wrap-around
//! `seq` has 32 bits. A waiter sleeps through its notification if between its step 2 and the
//! kernel's comparison in step 6 a multiple of exactly 2^32 changes happen. At a million
//! notifications a second the thread must stay preempted there for 71 minutes and be resumed on the
//! microsecond. `epoch` has 21 bits: a waiter takes itself for not eligible if exactly a multiple
//! of 2^21 grants happen while it waits, two seconds at the same rate. The kernel wakes the oldest
//! sleeper first, so the waiter must be preempted on its way to sleep all this time and be resumed
//! on the microsecond. A task that was woken may be polled, or dropped, as late as its executor
//! likes. If it takes itself for not eligible, it leaves its grant behind. Then there are more
//! grants than eligible waiters. The next notifications find fewer waiters without a grant, or
//! none, and each wakes a sleeper all the same. `process` has two bits: it fails in the fourth
//! generation of children, if none of the three before has waited on the condition variable.
//!
//! # Sources
//! Birrell, "Implementing Condition Variables with Semaphores" (2003), for what goes wrong with
//! counts alone; Drepper, "Futexes Are Tricky" (2004), for requeueing; glibc bug 13165 for the
//! waiter that steals an older waiter's wake-up. From the sequence futex of the Rust standard
//! library it departs by `counts`, and by the spin.

use super::steps::{Entry, Left, Place};
use super::task::wake;
use super::word::Counts;
use super::{Waits, Wakeup};
use crate::const_fn;
use crate::lock::traits::RawMutex;
use crate::lock::{sleep, spin};
use crate::sys::futex::{Bits, Futex, Scope, Waited};
use crate::sys::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sys::sync::{AtomicU32, AtomicU64, without_unwinding};
use crate::sys::time::Deadline;
use core::fmt;
use core::marker::PhantomData;

/// The protocol for every mutex, in one process or between several: waiters sleep on a sequence.
#[repr(C)]
pub struct Sequence<L: RawMutex> {
    pub(super) seq: Futex<L::Scope>,
    target: AtomicU32,
    pub(super) counts: AtomicU64,
    mutex: PhantomData<fn(&L)>,
}

#[cfg(not(world = "loom"))]
const _: () = assert!(size_of::<AtomicU32>() * 2 + size_of::<AtomicU64>() == 16);

/// `target`: no waiter yet.
const FRESH: u32 = 0;
/// `target`: the first waiter's mutex has no key or is out of range, so none ever is a target.
const PLAIN: u32 = 1;
/// `target`: several mutexes are in use.
const MIXED: u32 = 2;
/// `target`: a task has waited. Tasks are not moved, and notifications look for them.
const TASKS: u32 = 3;
// Any other value is the distance from `seq` to the mutex in units of four bytes, in two's
// complement. The distances that the names above take are those of the condition variable's own
// words.

/// The bit with which waiters sleep, here and on the mutex they are moved to; see
/// [`RawMutex::requeue_key`].
pub(super) const MOVABLE: Bits = Bits::one(0);

impl<L: RawMutex> Sequence<L> {
    const PRIVATE: bool = <L::Scope as Scope>::PRIVATE;

    const_fn! {
        /// Without waiters: sixteen zero bytes.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { seq: Futex::new(0), target: AtomicU32::new(FRESH), counts: AtomicU64::new(0), mutex: PhantomData }
        }
    }

    /// Steps 1 to 4. `None` if `counts` has no room for the caller.
    ///
    /// # Safety
    /// As [`Waits::wait`].
    pub(super) unsafe fn begin(&self, mutex: &L, token: L::Token) -> Option<Entry> {
        self.check_target(mutex);
        let read = self.seq.load(Relaxed);
        let budget = if Self::PRIVATE { spin::budget::<L::Scope>(L::CONDVAR_NS) } else { 0 };
        let registered = self.register(budget);
        // SAFETY: the caller's promise.
        unsafe { mutex.unlock_to_wait(token) };
        let (place, spins) = registered?;
        Some(Entry { read, place, budget: if spins { budget } else { 0 } })
    }

    /// Step 5. `None` if the caller has to sleep.
    pub(super) fn spin_first(&self, entry: &Entry) -> Option<Left> {
        if entry.budget > 0 { self.spin(entry.place, entry.budget) } else { None }
    }

    /// Makes sure that no notification moves this waiter to another mutex than its own (Invariant
    /// 6).
    fn check_target(&self, mutex: &L) {
        if !Self::PRIVATE {
            return;
        }
        let mine = mutex.requeue_key().and_then(|_| self.distance_to(mutex)).unwrap_or(PLAIN);
        let mut target = self.target.load(Relaxed);
        if target == FRESH {
            target = match self.target.compare_exchange(FRESH, mine, Relaxed, Relaxed) {
                Ok(_) => mine,
                Err(other) => other,
            };
        }
        if target == mine || target == PLAIN {
            return;
        }
        // `MIXED` is not enough of a reason to skip this: the waiter that set it may not have
        // changed `seq` yet. Nor is `TASKS`, which stays.
        loop {
            let next = if target == TASKS { TASKS } else { MIXED };
            match self.target.compare_exchange(target, next, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => target = now,
            }
        }
        self.seq.fetch_add(1, Release); // (mix)
    }

    /// Makes sure that notifications look for tasks from here on. For a task, which no notification
    /// moves.
    pub(super) fn expect_tasks(&self) {
        if !self.has_tasks() {
            self.target.swap(TASKS, Relaxed);
        }
    }

    /// Whether a task may wait.
    fn has_tasks(&self) -> bool {
        self.target.load(Relaxed) == TASKS
    }

    fn distance_to(&self, mutex: &L) -> Option<u32> {
        let address = core::ptr::from_ref(mutex).expose_provenance();
        let bytes = address.wrapping_sub(self.seq.key().address()).cast_signed();
        if bytes % 4 != 0 {
            return None;
        }
        i32::try_from(bytes / 4).ok().map(i32::cast_unsigned).filter(|&distance| distance > TASKS)
    }

    /// The mutex to which sleepers may be moved.
    pub(super) fn target_mutex(&self) -> Option<*const L> {
        let target = self.target.load(Relaxed);
        // Miri does not know the system call.
        (Self::PRIVATE && target > TASKS && !cfg!(miri)).then(|| {
            let bytes = (target.cast_signed() as isize) * 4;
            core::ptr::with_exposed_provenance(self.seq.key().address().wrapping_add_signed(bytes))
        })
    }

    /// Step 3: the caller's place, and whether it counts in `spinning`. It would spin for `budget`
    /// pauses. `None` if `counts` has no room for it.
    pub(super) fn register(&self, budget: u32) -> Option<(Place, bool)> {
        let process = if Self::PRIVATE { spin::process() } else { None };
        let mut counts = Counts(self.counts.load(Relaxed));
        loop {
            let own = process.map_or(counts, |process| counts.seen_in(process));
            if own.waiting() == Counts::MAX {
                return None;
            }
            let (next, spins) = match process {
                Some(process) if budget > 0 => own.with_spinner(process),
                _ => (own.with_waiter(), false),
            };
            // Release (register): pairs with (grant) in `grant`.
            // Mutant: Release -> Relaxed: load buffering, by litmus/condvar-registration.litmus.
            match self.counts.compare_exchange(counts.0, next.0, Release, Relaxed) {
                Ok(_) => {
                    if counts.waiting() > own.waiting() {
                        self.wake_copies();
                    }
                    return Some((Place { epoch: counts.epoch(), process }, spins));
                }
                Err(now) => counts = Counts(now),
            }
        }
    }

    /// Waiters that were counted are no more: those that are here all the same wake up, or do not
    /// fall asleep (Invariant 7).
    #[cold]
    fn wake_copies(&self) {
        self.advance();
        wake(self.seq.key(), u32::MAX, self.has_tasks());
    }

    /// Step 5. `None` if the caller has to sleep.
    #[cfg_attr(world = "vm", track_caller)]
    fn spin(&self, place: Place, budget: u32) -> Option<Left> {
        let epoch = place.epoch;
        let mut counts = Counts(self.counts.load(Relaxed));
        spin::until(budget, || {
            counts = Counts(self.counts.load(Relaxed));
            counts.epoch() != epoch
        });
        if place.is_copy() {
            return Some(Left::COPY);
        }
        loop {
            let eligible = counts.epoch() != epoch;
            let next = counts.without_spinner(eligible);
            let next = if eligible { next.without_waiter(counts.granted() > 0) } else { next };
            // Acquire (end requeuing): pairs with `end_requeuing`.
            // Mutant: Acquire -> Relaxed: a sleeper of the grant acquires, too, or is a fork's.
            match self.counts.compare_exchange(counts.0, next.0, Acquire, Relaxed) {
                Err(now) => counts = Counts(now),
                Ok(_) if !eligible => return None,
                Ok(_) => {
                    return Some(Left {
                        wakeup: Wakeup::Notified,
                        takes_grant: counts.granted() > 0,
                        passes_on: false,
                        // It has not slept.
                        requeued: false,
                        requeuing: counts.is_requeuing(),
                    });
                }
            }
        }
    }

    /// Sleeps and counts the caller out.
    fn sleep(&self, mut read: u32, place: Place, deadline: Option<Deadline>) -> Left {
        loop {
            let waited = self.seq.wait_bits(read, MOVABLE, deadline);
            if let Some(left) = self.slept(&mut read, place, waited) {
                return left;
            }
        }
    }

    /// Counts the caller out after a sleep, unless it has to sleep again, until `seq` is not `read`
    /// any more.
    pub(super) fn slept(&self, read: &mut u32, place: Place, waited: Waited) -> Option<Left> {
        if waited == Waited::Interrupted && !place.is_copy() {
            return None;
        }
        // Acquire (look): pairs with (advance) in `advance`. A read-modify-write, because the
        // waiter may sleep again on what it finds here, and only that is sure to find what the
        // kernel has just seen.
        *read = self.seq.fetch_add(0, Acquire);
        let (key, has_tasks) = (self.seq.key(), self.has_tasks());
        let left = self.leave(place, waited)?;
        if left.passes_on {
            wake(key, 1, has_tasks);
        }
        Some(left)
    }

    /// Counts the caller out, unless `seq` changed for others only and it has to sleep again.
    pub(super) fn leave(&self, place: Place, waited: Waited) -> Option<Left> {
        if place.is_copy() {
            return Some(Left { passes_on: waited == Waited::Woken, ..Left::COPY });
        }
        let mut counts = Counts(self.counts.load(Relaxed));
        loop {
            let eligible = counts.epoch() != place.epoch;
            let takes_grant = eligible && counts.granted() > 0;
            if waited == Waited::Mismatch && !eligible {
                return None;
            }
            let next = counts.without_waiter(takes_grant);
            // Acquire (end requeuing): pairs with `end_requeuing`.
            match self.counts.compare_exchange(counts.0, next.0, Acquire, Relaxed) {
                Err(now) => counts = Counts(now),
                Ok(_) => {
                    let timed_out = waited == Waited::TimedOut && !takes_grant;
                    return Some(Left {
                        wakeup: if timed_out { Wakeup::TimedOut } else { Wakeup::Notified },
                        takes_grant,
                        passes_on: waited == Waited::Woken && !eligible && counts.granted() > 0,
                        requeued: counts.is_requeued(),
                        requeuing: counts.is_requeuing(),
                    });
                }
            }
        }
    }

    /// Waits until no notification looks at the mutex any more (Invariant 8).
    #[cold]
    #[cfg_attr(world = "vm", track_caller)]
    pub(super) fn outlast_requeuing(&self) {
        // Acquire (end requeuing): pairs with `end_requeuing`.
        spin::outlast(|| {
            let counts = Counts(self.counts.load(Acquire));
            !counts.is_requeuing() || !Self::is_own(counts) // A fork leaves the bit behind.
        });
    }

    /// Notifies at most so many waiters.
    pub(super) fn notify(&self, most: u32) -> u32 {
        let Some(grant) = self.grant(most, self.target_mutex().is_some()) else { return 0 };
        if grant.is_loud {
            let key = self.seq.key();
            let seq = self.advance();
            if grant.requeues {
                self.requeue(seq, most);
            } else {
                wake(key, most, self.has_tasks());
            }
        }
        grant.count
    }

    /// Moves up to `most` sleepers to the mutex if that is held. Otherwise it wakes one, and moves
    /// the others.
    fn requeue(&self, seq: u32, most: u32) {
        // The target is read anew: after the change of `seq`, as Invariant 6 demands.
        // SAFETY: not null and aligned, because it is the address of a mutex that a waiter has
        // named. That mutex lives while `REQUEUING` is set (Invariant 8).
        let mutex = self.target_mutex().map(|mutex| unsafe { &*mutex });
        let Some((mutex, to)) = mutex.and_then(|mutex| Some((mutex, mutex.requeue_key()?))) else {
            self.end_requeuing();
            wake(self.seq.key(), most, self.has_tasks());
            return;
        };
        let is_held = mutex.is_locked();
        let wakes = u32::from(!is_held);
        if wakes == most {
            self.end_requeuing();
            wake(self.seq.key(), most, self.has_tasks());
            return;
        }
        self.counts.fetch_or(Counts::REQUEUED, Relaxed);
        match self.seq.cmp_requeue(seq, wakes, most - wakes, to) {
            // The holder may have released the mutex before they came there.
            Ok(done) if is_held && done.requeued > 0 => {
                if !mutex.mark_for_requeued() {
                    to.wake_bits(1, MOVABLE);
                }
            }
            Ok(_) => {}
            // Another notification or another mutex came between. It is rare enough that waking
            // all, which is right whatever came, is better than a second attempt with an argument
            // of its own.
            Err(_) => wake(self.seq.key(), most, self.has_tasks()),
        }
        self.end_requeuing();
    }

    pub(super) fn end_requeuing(&self) {
        let mut counts = Counts(self.counts.load(Relaxed));
        // Release (end requeuing): a waiter that finds `REQUEUING` cleared may free the mutex.
        while let Err(now) =
            self.counts.compare_exchange(counts.0, counts.without_requeuing().0, Release, Relaxed)
        {
            counts = Counts(now);
        }
    }

    /// Grants up to `most` notifications and makes all waiters eligible. `None` if there is no
    /// waiter to notify.
    ///
    /// It sets `REQUEUING` if `requeue` asks for that, a sleeper is to be woken, and no other
    /// notification has set it.
    fn grant(&self, most: u32, requeue: bool) -> Option<Grant> {
        let mut counts = Counts(self.counts.load(Relaxed));
        loop {
            let open = counts.waiting().saturating_sub(counts.granted());
            if counts.waiting() == 0 {
                return None;
            }
            let is_own = Self::is_own(counts);
            // Invariant 4, and why it does not help in shared memory, nor in a child, nor beside
            // tasks.
            if open == 0 && is_own && !self.has_tasks() {
                return None;
            }
            let count = open.min(most);
            let spinning = if is_own { counts.spinning() } else { 0 };
            let is_loud = counts.granted() + count > spinning || open == 0 || !Self::PRIVATE;
            let granted = counts.with_grants(count);
            let requeues = requeue && is_loud && is_own && !counts.is_requeuing();
            let next = if requeues { granted.with_requeuing() } else { granted };
            // Acquire (grant): pairs with (register) in `register`.
            match self.counts.compare_exchange(counts.0, next.0, Acquire, Relaxed) {
                Ok(_) => return Some(Grant { count, is_loud, requeues }),
                Err(now) => counts = Counts(now),
            }
        }
    }

    /// Whether it counts threads of this process (Invariant 7).
    pub(super) fn is_own(counts: Counts) -> bool {
        Self::PRIVATE && spin::process().is_some_and(|process| counts.is_of(process))
    }

    /// Changes `seq` and returns its new value.
    fn advance(&self) -> u32 {
        // Release (advance): pairs with (look) in `sleep`. Acquire (mix): `check_target`.
        self.seq.fetch_add(1, AcqRel).wrapping_add(1)
    }
}

/// Futures that were forgotten take no notification of another condition variable at this place.
impl<L: RawMutex> Drop for Sequence<L> {
    #[inline]
    fn drop(&mut self) {
        // A model may drop it when its execution has ended.
        if cfg!(world = "machine") && self.has_tasks() {
            sleep::forget(self.seq.key());
        }
    }
}

// SAFETY: `wait` returns the token of an acquisition.
unsafe impl<L: RawMutex> Waits<L> for Sequence<L> {
    unsafe fn wait(&self, mutex: &L, token: L::Token, deadline: Option<Deadline>) -> (L::Token, Wakeup) {
        // SAFETY: the caller's promise.
        let Some(entry) = (unsafe { self.begin(mutex, token) }) else {
            let Left { wakeup, .. } = Left::uncounted(deadline);
            return (mutex.lock(), wakeup);
        };
        // A waiter that unwound would leave its count behind, and the wake-up that was meant for
        // it.
        let left = without_unwinding(|| {
            self.spin_first(&entry).unwrap_or_else(|| self.sleep(entry.read, entry.place, deadline))
        });
        let token = if left.requeued { mutex.lock_requeued() } else { mutex.lock() };
        if left.requeuing {
            self.outlast_requeuing();
        }
        (token, left.wakeup)
    }

    fn notify_one(&self) -> bool {
        self.notify(1) > 0
    }

    fn notify_all(&self) -> usize {
        self.notify(Counts::MAX) as usize
    }
}

crate::initial!([L: RawMutex] Sequence<L> = Self::new());

/// What a notification grants.
struct Grant {
    count: u32,
    /// Whether waiters that do not spin are to be woken.
    is_loud: bool,
    /// Whether it has set `REQUEUING`.
    requeues: bool,
}

impl<L: RawMutex> fmt::Debug for Sequence<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Counts(self.counts.load(Relaxed)).fmt(f)
    }
}

#[cfg(all(test, world = "machine"))]
mod tests;
