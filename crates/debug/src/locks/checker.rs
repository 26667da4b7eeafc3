//! [`Checked`]: a raw mutex with a checker around it.
//!
//! | field | set by | cleared by | read by |
//! |---|---|---|---|
//! | `holder` | an acquisition, after that of `raw` | a release, before that of `raw` | all |
//! | `home` | an acquisition: the address of the lock | nothing | the holder, and a drop |
//! | `identity`: the class and the number | the first acquisition | nothing | all |
//!
//! `holder` is the record of the holder's thread. All accesses are Relaxed. A thread compares
//! `holder` with its own record, which no other thread stores. The words are otherwise ordered by
//! `raw`: a holder stores them between an acquisition and a release.

use crate::locks::identity::Identity;
use crate::rules::clock::since;
use crate::rules::current::current;
use crate::rules::deliver::{From, deliver};
use crate::rules::faults::TryLockError;
use crate::rules::faults::{self, Holder};
use crate::rules::handler;
use crate::rules::order::{class_key, key};
use crate::rules::waiting::waiting;
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Node, Origin, SUBCLASSES};
use crate::seen::report::Place;
use crate::seen::thread::{Held, Record, Rewait};
use core::fmt;
use core::panic::Location;
use core::ptr;
use ulocks_core::futex::{FutexKey, Local};
use ulocks_core::raw::{Initial, Metered, RawMutex, RawMutexFair};
use ulocks_core::sync::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use ulocks_core::time::Deadline;

/// A raw mutex of the family that enforces the rules of a mutex; see the [crate](crate).
///
/// [`CheckedMutex`](crate::CheckedMutex) is its typed face, and knows the line of its making. A
/// lock that was made by `INIT`, or is zeroed memory, belongs to the class of the line that
/// acquires it first.
///
/// It is the raw lock and six words. It cannot be shared between processes.
pub struct Checked<R> {
    raw: R,
    holder: AtomicPtr<Record>,
    home: AtomicUsize,
    identity: Identity,
}

/// The holder of a lock that was acquired at the end of a thread.
pub(crate) const UNTRACKED: *mut Record = ptr::without_provenance_mut(1);

impl<R: Initial> Initial for Checked<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_origin(Origin::UNKNOWN);
}

impl<R: Initial> Checked<R> {
    pub(crate) const fn with_origin(origin: Origin) -> Self {
        Self {
            raw: R::INIT,
            holder: AtomicPtr::new(ptr::null_mut()),
            home: AtomicUsize::new(0),
            identity: Identity::new(origin),
        }
    }
}

impl<R> Checked<R> {
    /// The lock that is checked.
    pub const fn inner(&self) -> &R {
        &self.raw
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[inline]
    pub(crate) fn class(&self, at: Place) -> &'static Node {
        self.identity.class::<R>(at)
    }

    #[inline]
    pub(crate) fn asked(&self, subclass: u8, at: Place) -> Asked {
        self.identity.asked::<R>(self.address(), Access::Exclusive, subclass, at)
    }

    fn holder(&self) -> Option<&'static Record> {
        let holder = self.holder.load(Relaxed);
        if holder == UNTRACKED {
            return None;
        }
        // SAFETY: null, or a record, and those are never freed.
        unsafe { holder.as_ref() }
    }

    fn is_mine(&self, me: &Record) -> bool {
        ptr::eq(self.holder.load(Relaxed), me)
    }

    /// The rule about signal handlers. `waits` is whether the acquisition may wait for ever.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn check_signals(&self, me: &Record, class: &Node, subclass: u8, at: Place, waits: bool) {
        if class.uses().watch() | me.signal() != 0 {
            handler::check(me, &self.asked(subclass, at), waits);
        }
    }

    /// The class alone does not say that the acquisition breaks no rule.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn check_order(&self, me: &Record, subclass: u8, at: Place) {
        let asked = self.asked(subclass, at);
        let key = key(me, &asked);
        // A self-deadlock is reported as such, and not as an inversion.
        if !me.is_validated(key) && !self.is_mine(me) {
            faults::order(me, &asked, key);
        }
    }

    /// Waits for the lock by `wait`, which has a deadline if the wait is `timed`.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn acquire_contended<T>(
        &self,
        me: &'static Record,
        asked: &Asked,
        timed: bool,
        wait: impl FnOnce(&R) -> T,
    ) -> T {
        if self.is_mine(me) {
            // An acquisition with a deadline ends.
            if !timed {
                deliver(&faults::recursion(me, asked, self.home.load(Relaxed)), From::Call);
            }
            return wait(&self.raw);
        }
        waiting(me, asked, timed, || wait(&self.raw))
    }

    /// Enters the release of a wait on a condition variable, before the raw lock makes it. Returns
    /// whether it may, and how the thread held the lock.
    #[track_caller]
    pub(crate) fn leave_to_wait(&self) -> (bool, Option<(&'static Record, Asked)>) {
        let holds = |me: &'static Record| me.held().find(|held| held.lock == self.address());
        let held = current().and_then(|me| Some((me, Asked::again(&holds(me)?))));
        if !self.leave() {
            return (false, None);
        }
        if let Some((me, asked)) = &held
            && me.holds_any()
        {
            faults::wait(me, asked);
        }
        (true, held)
    }

    /// Enters the acquisition that the raw lock has just made.
    #[track_caller]
    pub(crate) fn enter(&self, me: &'static Record, asked: &Asked) {
        self.enter_as(me, asked.class, asked.subclass, asked.at);
    }

    #[inline(always)]
    #[track_caller]
    fn enter_as(&self, me: &'static Record, class: &'static Node, subclass: u8, at: Place) {
        let since = since(me);
        let lock = self.address();
        if !self.holder.load(Relaxed).is_null() {
            faults::two_holders(me, &self.asked(subclass, at), self.holder());
        }
        self.holder.store(ptr::from_ref(me).cast_mut(), Relaxed);
        self.home.store(lock, Relaxed);
        // Not yet on the stack: only a thread with too many locks needs it there.
        let held = || {
            let instance = self.identity.instance();
            Held { lock, class, subclass, access: Access::Exclusive, instance, place: at, since }
        };
        if !me.push(&held()) {
            faults::too_many(me, &held());
        }
    }

    /// Enters an acquisition at the end of a thread, where nothing is checked, and passes on what
    /// it gave.
    #[cold]
    pub(crate) fn enter_untracked<T>(&self, taken: T) -> T {
        self.holder.store(UNTRACKED, Relaxed);
        taken
    }

    /// Enters a release, before the raw lock makes it. Returns whether it may.
    #[inline]
    #[track_caller]
    fn leave(&self) -> bool {
        let address = self.address();
        if let Some(me) = current()
            && self.is_mine(me)
            && self.home.load(Relaxed) == address
        {
            self.holder.store(ptr::null_mut(), Relaxed);
            me.pop(address);
            return true;
        }
        self.leave_wrongly()
    }

    #[cold]
    #[track_caller]
    fn leave_wrongly(&self) -> bool {
        let (holder, address, home) = (self.holder.load(Relaxed), self.address(), self.home.load(Relaxed));
        let Some(me) = current() else {
            // At the end of a thread nothing is checked.
            self.forget_holder(home);
            return true;
        };
        if holder == UNTRACKED {
            self.holder.store(ptr::null_mut(), Relaxed);
            return true;
        }
        let wrong = match self.holder() {
            None => Holder::None,
            Some(record) if ptr::eq(record, me) => Holder::Moved(record, home),
            Some(record) => Holder::Other(record),
        };
        faults::wrong_release(me, (address, Access::Exclusive), self.identity.known_class(), wrong);
        if holder.is_null() {
            return false;
        }
        self.forget_holder(home);
        true
    }

    fn forget_holder(&self, home: usize) {
        if let Some(record) = self.holder() {
            record.forget(home);
        }
        self.holder.store(ptr::null_mut(), Relaxed);
    }
}

impl<R: RawMutex<Scope = Local>> Checked<R> {
    /// Acquires the lock in a subclass of its class.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_in(&self, subclass: u8) -> R::Token {
        assert!(subclass < SUBCLASSES, "a class has the subclasses 0 to 7");
        self.lock_at(subclass, Location::caller())
    }

    #[inline]
    #[track_caller]
    pub(crate) fn lock_at(&self, subclass: u8, at: Place) -> R::Token {
        let Some(me) = current() else { return self.acquire_untracked() };
        let (mut subclass, mut at) = (subclass, at);
        let class = self.class(at);
        if let Some(rewait) = me.take_rewait(self.address()) {
            // It was checked before the wait on the condition variable.
            (subclass, at) = (rewait.subclass, rewait.place);
        } else {
            self.check_signals(me, class, subclass, at, true);
            if me.holds_any() && !me.is_validated_at_once(class_key(me, class, subclass, Access::Exclusive)) {
                self.check_order(me, subclass, at);
            }
        }
        let token = match self.raw.try_lock() {
            Some(token) => token,
            None => {
                let asked = self.asked(subclass, at);
                self.acquire_contended(me, &asked, false, R::lock)
            }
        };
        self.enter_as(me, class, subclass, at);
        token
    }

    #[cold]
    fn acquire_untracked(&self) -> R::Token {
        self.enter_untracked(self.raw.lock())
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_lock_at(&self, at: Place) -> Option<R::Token> {
        let Some(me) = current() else { return Some(self.enter_untracked(self.raw.try_lock()?)) };
        let class = self.class(at);
        self.check_signals(me, class, 0, at, false);
        let token = self.raw.try_lock()?;
        self.enter_as(me, class, 0, at);
        Some(token)
    }

    #[track_caller]
    pub(crate) fn lock_until_at(&self, deadline: Deadline, at: Place) -> Option<R::Token> {
        let Some(me) = current() else {
            return Some(self.enter_untracked(self.raw.lock_until(deadline)?));
        };
        let asked = self.asked(0, at);
        self.check_signals(me, asked.class, 0, at, false);
        let token = match self.raw.try_lock() {
            Some(token) => token,
            None => self.acquire_contended(me, &asked, true, |raw| raw.lock_until(deadline))?,
        };
        self.enter(me, &asked);
        Some(token)
    }

    /// As [`CheckedMutex::try_lock_checked`](crate::CheckedMutex::try_lock_checked).
    #[track_caller]
    pub(crate) fn try_checked(&self) -> Result<R::Token, TryLockError> {
        let Some(me) = current() else { return self.raw.try_lock().ok_or(TryLockError::WouldBlock) };
        let asked = self.asked(0, Location::caller());
        if self.is_mine(me) {
            return Err(TryLockError::Fault(Box::new(faults::recursion(
                me,
                &asked,
                self.home.load(Relaxed),
            ))));
        }
        faults::attempt(me, &asked, true)?;
        let token = self.raw.try_lock().ok_or(TryLockError::WouldBlock)?;
        self.enter(me, &asked);
        Ok(token)
    }
}

// SAFETY: every token is one of `raw`, from an acquisition of `raw` that has just returned, and is
// given back to `raw` once at most. So exclusion and order are those of `raw`. A panic happens
// before the acquisition or the release, or, of two holders, in a lock that is broken.
unsafe impl<R: RawMutex<Scope = Local>> RawMutex for Checked<R> {
    type Scope = Local;
    type Token = R::Token;

    const CONDVAR_NS: u32 = R::CONDVAR_NS;

    #[inline]
    #[track_caller]
    fn lock(&self) -> R::Token {
        self.lock_at(0, Location::caller())
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<R::Token> {
        self.try_lock_at(Location::caller())
    }

    #[track_caller]
    fn lock_until(&self, deadline: Deadline) -> Option<R::Token> {
        self.lock_until_at(deadline, Location::caller())
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock(&self, token: R::Token) {
        if self.leave() {
            // SAFETY: the caller's promise.
            unsafe { self.raw.unlock(token) };
        }
    }

    #[track_caller]
    unsafe fn unlock_to_wait(&self, token: R::Token) {
        let (may, held) = self.leave_to_wait();
        if !may {
            return;
        }
        if let Some((me, Asked { lock, subclass, at, .. })) = held {
            me.set_rewait(Some(Rewait { lock, subclass, place: at }));
        }
        // SAFETY: the caller's promise.
        unsafe { self.raw.unlock_to_wait(token) };
    }

    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    fn requeue_key(&self) -> Option<FutexKey<Local>> {
        self.raw.requeue_key()
    }

    fn mark_for_requeued(&self) -> bool {
        self.raw.mark_for_requeued()
    }

    #[track_caller]
    fn lock_requeued(&self) -> R::Token {
        let token = self.raw.lock_requeued();
        match current() {
            Some(me) => {
                let mut asked = self.asked(0, Location::caller());
                if let Some(rewait) = me.take_rewait(asked.lock) {
                    (asked.subclass, asked.at) = (rewait.subclass, rewait.place);
                }
                self.enter(me, &asked);
            }
            None => self.holder.store(UNTRACKED, Relaxed),
        }
        token
    }
}

// SAFETY: as `RawMutex`; the fair release is that of `raw`.
unsafe impl<R: RawMutexFair<Scope = Local>> RawMutexFair for Checked<R> {
    #[inline]
    #[track_caller]
    unsafe fn unlock_fair(&self, token: R::Token) {
        if self.leave() {
            // SAFETY: the caller's promise.
            unsafe { self.raw.unlock_fair(token) };
        }
    }
}

impl<R: Metered> Metered for Checked<R> {
    type Meter = R::Meter;

    fn meter(&self) -> &R::Meter {
        self.raw.meter()
    }
}

impl<R> Drop for Checked<R> {
    #[track_caller]
    fn drop(&mut self) {
        if !self.holder.get_mut().is_null() && *self.holder.get_mut() != UNTRACKED {
            faults::dropped(self.address(), *self.home.get_mut(), self.identity.known_class(), self.holder());
        }
    }
}

impl<R: fmt::Debug> fmt::Debug for Checked<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked")
            .field("raw", &self.raw)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
