//! The queue of a robust lock: the order of its waiters, grants, and what a death leaves.
//!
//! # Properties
//! - A lock that grants in order grants to the waiters of a rank in the order of their arrival.
//! - If one thread dies at any step, no other thread waits for ever for what it held, or for its
//!   place in the queue. If several die, or if a thread dies while it gives what it did not hold (a
//!   permit, a value, a notification), a waiter may sleep for [`RECHECK`](crate::slots::RECHECK)
//!   before it looks again.
//! - A waiter whose deadline passes delays no other waiter.
//! - Of more than 127 holders the head watches 127: the death of another is found by a next look.
//!
//! # State
//! The *queue lock*, a [`RawMutex`], guards all of it. `tickets` is the ticket of the next waiter;
//! it has `QUEUED` unless no thread waits. There is no list: a waiting thread has a
//! [`Request`] in its own slot, and the queue is the requests that name this lock, in the order of
//! their places. A place is a rank and a ticket. So there are no links that a death can tear.
//!
//! The word of a request names the thread as an owner. A request of a thread that has died is none:
//! its owner is gone.
//!
//! | transition of the word | by, with the queue lock | label |
//! |---|---|---|
//! | any to `WAITING` | a thread that enqueues its request, and again before each sleep | (wait) |
//! | `WAITING` to `GRANTED`; the waiter is woken | a thread that grants | (grant) |
//! | `WAITING` to `WAITING` with `REARM`; the waiter is woken | a thread that changes what it must watch | (rearm) |
//! | `WAITING` to 0 | a waiter whose deadline has passed; the head, which returns as if it were notified | (withdraw) |
//!
//! # A grant
//! The [`Rule`] of a lock makes the waiter a holder, in memory of the lock. Then (grant) tells the
//! waiter, and it is woken. If the granting thread dies before (grant), the next thread with the
//! queue lock grants again: a rule that has made a waiter a holder for a request says so again. If
//! it dies after (grant), that thread wakes all granted waiters.
//!
//! # Which thread watches which
//! A sleeper watches tokens, and the kernel wakes it when one of their threads dies. The *head
//! waiter* watches each holder. In order each other waiter watches the waiter before it. Where
//! waiters overtake, the second one watches the head, if it came as the second or the head is a
//! holder; the others watch no thread. A dead waiter that is no holder holds up no other there.
//!
//! # Invariants
//! 1. Words of requests for this lock, and `tickets`, change under the queue lock only. But a
//!    thread that joins withdraws the request that it finds in its slot (`slots.rs`), and a waiter
//!    withdraws its own if the queue lock is refused to it.
//! 2. After a change under the queue lock, no waiter remains that could be granted (`settle`). So
//!    an arriving thread that changes nothing looks at no other waiter, but for its own turn.
//! 3. In order each waiter but the head watches the waiter before it. A waiter that leaves the
//!    queue gives (rearm) to the one behind it, if that one watches it. So a waiter that dies is
//!    noticed, also while it leaves. Where waiters overtake, the second one watches a head that is
//!    a holder itself: a thread that changes which two these are gives it (rearm) (`settle`). All
//!    other holders are watched by the head, whether they wait or not.
//! 4. The head waiter watches each holder, or is awake. A thread that adds a holder gives it
//!    (rearm), unless the only holder is the one that it watches, as the granted waiter that was
//!    before it. So does a thread that leaves the queue to a head that watched another waiter.
//!    While there is no holder, the head need watch none.
//! 5. A sleeper that finds a death wakes the next thread that sleeps on the same token, which does
//!    the same. Then it takes the queue lock, takes back what dead holders have, and grants
//!    (`settle`).
//! 6. If a thread dies with the queue lock after it has changed the lock, another thread takes the
//!    queue lock, is told of the death, and repairs:
//!    - If the dead thread was a holder, the head watches it; or the waiter behind it, if it was
//!      the head. Of several waiters that it grants, it tells the first one last: that one, or a
//!      head that it did not grant, watches it until all others are told.
//!    - If it has made itself a holder in this section, nobody watches it yet. What it had taken
//!      comes back, and with that no waiter could be granted before (invariant 2).
//!    - If it left the queue, the next waiter watches it, in order. Where waiters overtake it has
//!      left the others as they were, unless it was a holder, or the head.
//!    - If it repaired after another death, a waiter that watched the other one is awake, and takes
//!      the queue lock next.
//!    - If it granted what another thread had released (`CLEAN` of the fair mutex), that thread
//!      takes the queue lock to end its release.
//!    - If it gave what it did not hold, no thread need notice before the next look of a waiter.
//! 7. A thread that was a holder may wake the first waiter that it grants after the queue lock, if
//!    that one watches it: as the head, which watches all holders, or as the one before it. If it
//!    dies in between, the queue lock tells no thread, but that waiter wakes, and finds that it is
//!    granted. All others have been woken under the queue lock.
//! 8. A waiter may die after a thread has found it, and the next thread in its slot may ask for
//!    another lock before the first one makes (grant) or (rearm). So both are exchanges of the word
//!    that was found, which names the waiter. If a (grant) fails, the waiter has died as a holder,
//!    or was refused the queue lock.
//!
//! A sleeper that is stopped when a death wakes it passes that on when it goes on: the others look
//! after [`RECHECK`](crate::slots::RECHECK). A thread that is stopped, and not dead, keeps the
//! queue lock. All others wait for it then, also those that only try, or have a deadline.
//!
//! # Ordering
//! The queue lock orders all accesses but one: a waiter reads its word without it. (grant) releases
//! what the granting thread has acquired, and the waiter acquires it.
//!
//! A thread that scans reads the slots of threads that enqueue elsewhere. (wait) releases the rest
//! of the request and the scan acquires it. So a word with `WAITING` is seen with the lock that it
//! is for. A thread that sees this lock's name sees a request that only changes under the queue
//! lock.
//!
//! # Sources
//! This project's, after the prototypes of tickets in slots. That waiters watch their predecessor
//! is the idea of the queue locks of Mellor-Crummey and Scott (1991), turned to deaths.

mod grant;
mod notify;
mod patience;
mod place;
mod watch;

pub(crate) use notify::Granted;
pub(crate) use patience::Patience;

use crate::robust::RawRobust;
use crate::robust::mutex::raw::RawMutex;
use crate::robust::mutex::{Acquired, Refused};
use crate::slots::{Member, Owner, Request, Slot};
use core::fmt;
use place::Place;
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::{Policy, futex};
use watch::Watched;

pub(crate) const WAITING: u32 = 1 << 31;
const GRANTED: u32 = 1 << 30;
const REARM: u32 = 1 << 28;
/// In `tickets`: a thread may wait.
const QUEUED: u64 = 1 << 63;

/// What a lock says about its holders. Each call is made under the queue lock.
///
/// A thread may die within each call, and another one calls again: `grant`, `reap` and `repair` do
/// their work in steps that can be repeated.
pub(crate) trait Rule {
    /// Whether a request may be granted before one that has an earlier place and cannot be granted.
    /// Then what it wants are bits, and it can only be granted after a change of one of them.
    const OVERTAKES: bool = false;

    /// Where waiters overtake: whether [`grant`](Self::grant) would return true now.
    fn would_grant(&self, owner: Owner) -> bool {
        let _ = owner;
        true
    }

    /// The rank of a request: a lower one has the earlier place.
    fn rank(&self, want: u32) -> u8 {
        let _ = want;
        0
    }

    /// Makes `owner` a holder for its request, if that is possible now, or if it is one already.
    fn grant(&self, owner: Owner, want: u32) -> bool;

    /// Calls `each` with every holder.
    fn holders(&self, each: &mut dyn FnMut(Owner));

    /// Whether `owner`, which was granted just now, is a holder; where waiters overtake, also of
    /// one that waits.
    fn is_holder(&self, owner: Owner) -> bool {
        let _ = owner;
        true
    }

    /// Whether there is no holder, if the lock knows.
    fn has_no_holder(&self) -> bool {
        false
    }

    /// Whether `owner` is the only holder.
    fn is_held_only_by(&self, owner: Owner) -> bool;

    /// Takes back what a dead holder has.
    fn reap(&self, gone: Owner);

    /// The word that says that the lock is held, if it names no holder: it was overwritten.
    fn corrupt(&self) -> Option<u32> {
        None
    }

    /// Completes what a thread had begun that died with the queue lock.
    fn repair(&self) {}
}

/// The waiters of a robust lock: 16 bytes; all zero is an empty queue.
#[repr(C)]
pub(crate) struct Queue<P: Policy<Scope = futex::Global>> {
    lock: RawMutex<P>,
    tickets: AtomicU64,
}

impl<P: Policy<Scope = futex::Global>> Queue<P> {
    ulocks_core::const_fn! {
        /// An empty queue.
        #[allow(clippy::new_without_default)]
        pub(crate) fn new() -> Self {
            Self { lock: RawMutex::new(), tickets: AtomicU64::new(0) }
        }
    }

    /// Empties it, if no thread uses it.
    pub(crate) fn reset(&self) {
        self.lock.reset();
        self.tickets.store(0, Relaxed);
    }

    #[inline]
    pub(crate) fn may_have_waiters(&self) -> bool {
        self.tickets.load(Relaxed) & QUEUED != 0
    }

    /// For a thread with the queue lock that has found no waiter.
    fn has_no_waiters(&self) {
        let tickets = self.tickets.load(Relaxed);
        if tickets & QUEUED != 0 {
            self.tickets.store(tickets & !QUEUED, Relaxed);
        }
    }

    /// How many threads wait, at the moment of the look.
    pub(crate) fn waiters(&self, me: &Member<'_>) -> usize {
        let name = me.offset_of(self);
        let is_waiting = |slot: &&Slot| {
            // Mutant: Acquire -> Relaxed: the count is for information.
            let word = slot.request.word.load(Acquire);
            let is_here = word & WAITING != 0 && slot.request.lock.load(Relaxed) == name;
            is_here && Owner::of(word).is_some_and(|owner| me.is_alive(owner))
        };
        me.slots().iter().filter(is_waiting).count()
    }

    /// Takes the queue lock. If its last holder died, repairs what that one had begun.
    pub(crate) fn enter<'q, 's, R: Rule>(
        &'q self,
        me: &'q Member<'s>,
        rule: &'q R,
    ) -> Result<Section<'q, 's, P, R>, Refused> {
        Ok(self.section(me, rule, self.take(me)?))
    }

    /// Takes the queue lock, for [`section`](Self::section).
    #[inline]
    pub(crate) fn take(&self, me: &Member<'_>) -> Result<Acquired, Refused> {
        // SAFETY: the members of one lock are of one table: the caller of the lock promises it.
        unsafe { self.lock.lock(me) }
    }

    /// The section of a thread that has taken the queue lock in that way. Apart from
    /// [`take`](Self::take) it is made where it stays, and not moved out of a `Result`. (Two CPUs
    /// of a Xeon, `cargo bench -- shared`, a writer's pair: 65 ns with that move, 44 without.)
    #[inline]
    pub(crate) fn section<'q, 's, R: Rule>(
        &'q self,
        me: &'q Member<'s>,
        rule: &'q R,
        how: Acquired,
    ) -> Section<'q, 's, P, R> {
        let mut section =
            Section { queue: self, me, rule, added: false, changed: u32::MAX, head: None, late: None };
        if how == Acquired::OwnerDied {
            section.repair();
        }
        section
    }

    /// Acquires what `want` says, as soon as the rule grants it.
    #[inline]
    pub(crate) fn acquire<R: Rule>(
        &self,
        me: &Member<'_>,
        want: u32,
        rule: &R,
        patience: Patience,
    ) -> Result<(), Refused> {
        let how = self.take(me)?;
        let mut section = self.section(me, rule, how);
        if section.try_now(want) { Ok(()) } else { self.acquire_in(section, want, patience) }
    }

    /// The same, by a thread that has the queue lock, and was not granted what it wants.
    #[cold]
    #[inline(never)]
    pub(crate) fn acquire_in<'q, R: Rule>(
        &'q self,
        mut section: Section<'q, '_, P, R>,
        want: u32,
        patience: Patience,
    ) -> Result<(), Refused> {
        let (me, rule) = (section.me, section.rule);
        if section.reap_dead() {
            section.settle(Reap::Nothing);
            if section.try_now(want) {
                return Ok(());
            }
        }
        if patience.is_over() {
            return Err(Refused::TimedOut);
        }
        section.enqueue(want);
        let mut deaths = 0;
        loop {
            // A thread has died since the last look, if it was to be watched, or if this one is the
            // head now: its death may let a grant happen.
            let armed = section.arm()?;
            let armed = armed.filter(|watched| !watched.is_head || section.head == Some(me.owner()));
            let Some(watched) = armed else {
                section.settle(Reap::Dead);
                if me.request().is_granted() {
                    return Ok(());
                }
                deaths += 1;
                if deaths > me.slots().len() {
                    // No slot is claimed anew so fast: what the dead have cannot be taken back.
                    section.leave();
                    return Err(Refused::Corrupt(me.owner().bits()));
                }
                continue;
            };
            deaths = 0;
            drop(section);
            // Behind the head a grant is not near.
            if watched.may_poll(me) && spin::closely::<P>(|| me.request().look()) {
                return Ok(());
            }
            let has_died = watched.sleep(me, patience.deadline());
            if me.request().is_granted() && !has_died {
                return Ok(());
            }
            section = match self.enter(me, rule) {
                Ok(section) => section,
                Err(error) => {
                    me.request().word.store(0, Relaxed);
                    return Err(error);
                }
            };
            section.settle(Reap::Dead);
            if me.request().is_granted() {
                return Ok(());
            }
            if patience.is_over() {
                section.leave();
                return Err(Refused::TimedOut);
            }
        }
    }
}

impl<P: Policy<Scope = futex::Global>> fmt::Debug for Queue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({}waiters)", if self.may_have_waiters() { "" } else { "no " })
    }
}

/// Whether `settle` looks for holders that have died.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reap {
    Dead,
    Nothing,
}

/// A thread that has the queue lock of a lock, until this is dropped.
pub(crate) struct Section<'q, 's, P: Policy<Scope = futex::Global>, R: Rule> {
    queue: &'q Queue<P>,
    me: &'q Member<'s>,
    rule: &'q R,
    /// Whether a thread has become a holder since the head waiter was last given (rearm).
    added: bool,
    /// Where waiters overtake: of what the thread has changed. A waiter that wants none of these
    /// bits cannot be granted (invariant 2).
    pub(crate) changed: u32,
    /// The head that could not be granted at the last look.
    head: Option<Owner>,
    /// The granted waiter that is woken after the queue lock: otherwise it could take this thread's
    /// CPU, and find the queue lock held.
    late: Option<&'s Request>,
}

/// A request that waits.
#[derive(Clone, Copy)]
struct Waiting<'s> {
    request: &'s Request,
    owner: Owner,
    /// The word of the request, what it wants, and its place.
    word: u32,
    want: u32,
    place: Place,
}

impl<'q, 's, P: Policy<Scope = futex::Global>, R: Rule> Section<'q, 's, P, R> {
    /// The last holder of the queue lock has died.
    #[cold]
    fn repair(&mut self) {
        self.rule.repair();
        self.added = true;
        self.wake_granted();
        self.settle(Reap::Dead);
    }

    /// The name of the lock in requests.
    fn name(&self) -> u64 {
        self.me.offset_of(self.queue)
    }

    /// The living waiters whose place `is_in`.
    fn waiting(&self, is_in: impl Fn(Place) -> bool) -> impl Iterator<Item = Waiting<'s>> {
        let name = self.name();
        let waiting = move |slot: &'s Slot| {
            let request = &slot.request;
            let word = request.word.load(Acquire);
            if word & WAITING == 0 || request.lock.load(Relaxed) != name {
                return None;
            }
            let (want, place) = (request.want.load(Relaxed), Place(request.place.load(Relaxed)));
            Owner::of(word).map(|owner| Waiting { request, owner, word, want, place })
        };
        let slots = if self.queue.may_have_waiters() { self.me.slots() } else { &[] };
        let me = self.me;
        let found = slots.iter().filter_map(waiting);
        found.filter(move |waiter| is_in(waiter.place) && me.is_alive(waiter.owner))
    }

    /// The waiter with the least place for which `is_in` holds.
    fn least(&self, is_in: impl Fn(Place) -> bool) -> Option<Waiting<'s>> {
        self.waiting(is_in).min_by_key(|waiter| waiter.place.order())
    }

    fn head(&self) -> Option<Waiting<'s>> {
        let head = self.least(|_| true);
        if head.is_none() {
            self.queue.has_no_waiters();
        }
        head
    }

    /// Grants to the calling thread, if no waiter of its rank or a lower one has come before it.
    fn try_now(&mut self, want: u32) -> bool {
        let rank = self.rule.rank(want);
        let is_first = R::OVERTAKES || {
            let head = self.head();
            self.head = head.map(|head| head.owner);
            head.is_none_or(|head| rank < head.place.rank())
        };
        let granted = is_first && self.rule.grant(self.me.owner(), want);
        if granted {
            self.settle_own();
        }
        granted
    }

    /// The calling thread's request was granted without a wait.
    pub(crate) fn settle_own(&mut self) {
        // A thread that is a holder now may have been none before: then nobody watches it yet
        // (invariant 7).
        if self.rule.is_holder(self.me.owner()) {
            self.added = true;
            self.settle(Reap::Nothing);
        } else {
            self.pass_on();
        }
    }

    /// Enqueues the calling thread's request, (wait). Call [`arm`](Self::arm) before the sleep.
    pub(crate) fn enqueue(&mut self, want: u32) {
        let ticket = self.queue.tickets.load(Relaxed) & !QUEUED;
        self.queue.tickets.store(ticket.wrapping_add(1) | QUEUED, Relaxed);
        let request = self.me.request();
        request.lock.store(self.name(), Relaxed);
        request.want.store(want, Relaxed);
        request.place.store(Place::new(self.rule.rank(want), ticket, self.me.slot()).0, Relaxed);
        request.word.store(self.me.owner().bits() | WAITING, Release);
        // Before, this thread could not be granted either.
        self.head = self.head.or(Some(self.me.owner()));
    }

    /// Chooses what the calling thread watches, (wait). `None` if one of these has died.
    fn arm(&mut self) -> Result<Option<Watched<'s>>, Refused> {
        let request = self.me.request();
        let place = Place(request.place.load(Relaxed));
        let before = self.last_before(place);
        let is_head = before.is_none();
        let mut watched = Watched::new(request, self.me.owner().bits() | WAITING, is_head);
        let slot = match before {
            Some(Some(waiter)) => {
                watched.add(self.me, waiter.owner);
                waiter.owner.slot()
            }
            Some(None) => Place::NOBODY,
            None => {
                self.rule.holders(&mut |owner| watched.add(self.me, owner));
                self.me.slot()
            }
        };
        request.place.store(place.watching(slot).0, Relaxed);
        request.word.store(self.me.owner().bits() | WAITING, Release);
        let no_holder = if is_head { self.rule.corrupt() } else { None };
        if let Some(corrupt) = watched.corrupt().map(Owner::bits).or(no_holder) {
            self.leave();
            return Err(Refused::Corrupt(corrupt));
        }
        Ok((!watched.has_died()).then_some(watched))
    }

    /// The waiter to watch from `place` (invariant 3), if any is to be; `None` for the head.
    fn last_before(&self, place: Place) -> Option<Option<Waiting<'s>>> {
        let mut before = self.waiting(|other| other.order() < place.order());
        if R::OVERTAKES {
            let head = before.next()?;
            return Some(before.next().is_none().then_some(head));
        }
        before.max_by_key(|waiter| waiter.place.order()).map(Some)
    }

    /// Whether no thread waits before the calling one.
    fn is_head(&self) -> bool {
        let place = Place(self.me.request().place.load(Relaxed));
        self.last_before(place).is_none()
    }

    /// (withdraw): withdraws the calling thread's request.
    fn withdraw(&mut self) {
        self.me.request().word.store(0, Relaxed);
        self.settle(Reap::Nothing);
    }

    /// The same, from any place.
    pub(crate) fn leave(&mut self) {
        let place = Place(self.me.request().place.load(Relaxed));
        self.withdraw();
        if !R::OVERTAKES {
            self.rearm_behind(place, self.me.slot());
        }
    }
}

impl<P: Policy<Scope = futex::Global>, R: Rule> Drop for Section<'_, '_, P, R> {
    fn drop(&mut self) {
        // SAFETY: the section's thread has the queue lock.
        unsafe { self.queue.lock.unlock(self.me) };
        if let Some(late) = self.late {
            late.word.key().wake(1);
        }
    }
}

impl Request {
    /// Whether the request was granted: what the granting thread had acquired is acquired.
    fn is_granted(&self) -> bool {
        self.word.load(Acquire) & GRANTED != 0
    }

    fn look(&self) -> Look {
        if self.is_granted() { Look::Acquired } else { Look::Taken }
    }
}
