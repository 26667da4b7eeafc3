//! [`Lock`]: a raw lock with a checker around it, for mutexes and for reader-writer locks.
//!
//! | part of `identity` | set by | cleared by | read by |
//! |---|---|---|---|
//! | `alone` | an acquisition that excludes all others, after that of `raw` | its release, before that of `raw` | all |
//! | the class and the number | the first acquisition | nothing | all |
//!
//! `alone` is the record of the thread that has the lock alone: the holder of a mutex, or the
//! writer. Readers are not in the lock, which would be a cache line that all of them write. They
//! are in the lists of their threads, under the number of the lock. A thread compares `alone` with
//! its own record, which no other thread stores. Otherwise `raw` orders it: a holder stores between
//! an acquisition and a release.

use crate::rules::clock::{PROFILE, coarse_now, since, wanted};
use crate::rules::current::{current, ending};
use crate::rules::deliver::{From, deliver};
use crate::rules::faults::{self, Holder, TryLockError};
use crate::rules::handler;
use crate::rules::order::{key, key_of};
use crate::rules::waiting::{waiting, waiting_for_itself};
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Node, Origin, SUBCLASSES};
use crate::seen::identity::Identity;
use crate::seen::report::Place;
use crate::seen::thread::{Held, Record, existing};
use core::convert::Infallible;
use core::fmt;
use core::panic::Location;
use core::ptr;
use ulocks_core::raw::Initial;
use ulocks_core::sync::{Ordering::Acquire, fence};

pub(super) struct Lock<R> {
    pub raw: R,
    identity: Identity,
}

/// The holder of a lock that was acquired by a task, or at the end of a thread.
const UNTRACKED: *const Record = ptr::without_provenance(2);

type Wait<R, K> = fn(&R) -> Result<Option<K>, Infallible>;

/// No wait, of the type that [`Lock::attempt`] asks for.
pub(super) fn no_wait<R, K>() -> Option<Wait<R, K>> {
    None
}

impl<R: Initial> Lock<R> {
    pub const fn with_origin(origin: Origin) -> Self {
        Self { raw: R::INIT, identity: Identity::new(origin) }
    }
}

impl<R> Lock<R> {
    pub fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[inline]
    pub fn class(&self, at: Place) -> &'static Node {
        self.identity.find::<R>(at).0
    }

    #[inline]
    pub fn asked(&self, access: Access, subclass: u8, at: Place) -> Asked {
        self.identity.asked::<R>(self.address(), access, subclass, at)
    }

    fn alone(&self) -> Option<&'static Record> {
        let alone = self.identity.alone();
        if alone == UNTRACKED {
            return None;
        }
        // The record may be one that this thread has not met. It sees it as it was made.
        fence(Acquire); // (know) of `identity.rs`
        // SAFETY: null, or a record, and those are never freed.
        unsafe { alone.as_ref() }
    }

    pub fn is_mine(&self, me: &Record) -> bool {
        self.identity.is_alone(me)
    }

    /// The threads that hold the lock, at whatever address.
    fn holders(&self) -> impl Iterator<Item = (&'static Record, Held)> {
        let instance = self.identity.instance();
        let each = move |record: &'static Record| {
            let mine = record.held().filter(move |held| held.instance == instance);
            mine.map(move |held| (record, held))
        };
        crate::seen::thread::records().flat_map(each)
    }

    /// Of the entries of this lock in the list of this thread, one that keeps it waiting, or any.
    #[cold]
    fn own(&self, me: &Record, asked: &Asked) -> Option<(bool, Held)> {
        let keeps = |held: &Held| held.access.blocks(asked.access) || held.lock != asked.lock;
        let own = me.held().filter(|held| held.instance == asked.instance);
        own.map(|held| (keeps(&held), held)).min_by_key(|own| !own.0)
    }

    /// The rule about signal handlers. `waits` is whether the acquisition may wait for ever.
    #[inline(always)]
    #[track_caller]
    fn look(me: &Record, asked: Asked, waits: bool) {
        if asked.class.uses().watch() | me.signal() != 0 {
            // A copy, so that no other acquisition needs it on the stack.
            let copy = asked;
            handler::check(me, &copy, waits);
        }
    }

    /// The rules of an acquisition without a deadline, before it is made.
    #[inline(always)]
    #[track_caller]
    pub fn check(&self, me: &'static Record, asked: Asked) {
        Self::look(me, asked, true);
        // A mutex that its holder asks for is found when that waits.
        let may_have_it = || asked.access != Access::Exclusive && me.holds_one_of(asked.class);
        let key = || key(me, &asked);
        if me.holds_any() && (may_have_it() || !me.is_validated_at_once(key())) {
            let copy = asked;
            self.check_order(me, &copy);
        }
    }

    /// The class alone does not say that the acquisition breaks no rule.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn check_order(&self, me: &Record, asked: &Asked) {
        if asked.access != Access::Exclusive {
            match self.own(me, asked) {
                // It is reported as such, and not as an inversion.
                Some((true, held)) => return deliver(&faults::again(me, asked, Some(held)), From::Call),
                // The access that it has keeps the lock open for it: it does not wait.
                Some((false, _)) if asked.access.is_shared() => return,
                _ => {}
            }
        }
        let key = key(me, asked);
        if !me.is_validated(key) && !self.is_mine(me) {
            faults::order(me, asked, key);
        }
    }

    /// Acquires a mutex if all is as it mostly is: the lock is free, and the acquisition is known
    /// to break no rule. Otherwise nothing has happened.
    ///
    /// The clock is read first, and what else is called is called last. So no value has to be kept
    /// over a call.
    #[inline(always)]
    #[track_caller]
    pub fn acquire_at_once<K>(&self, at: Place, attempt: impl FnOnce(&R) -> Option<K>) -> Option<K> {
        let since = coarse_now();
        let (me, lock) = (existing()?, self.address());
        let (class, instance) = self.identity.known()?;
        let asked = Asked { lock, class, access: Access::Exclusive, subclass: 0, instance, at };
        let wanted = wanted();
        if class.uses().watch() | me.signal() | (wanted & !PROFILE) != 0 || me.has_rewait(lock) {
            return None;
        }
        let (slot, used) = me.place_at_once()?;
        let mut sum = 0;
        if used != 0 {
            let (held, hash) = (me.sum_at_once(used)?, asked.hash());
            if !me.is_validated_at_once(key_of(held, hash)) {
                return None;
            }
            sum = held.wrapping_add(hash);
        }
        let taken = attempt(&self.raw)?;
        if self.identity.may_be_alone() || wanted != 0 {
            let copy = asked;
            self.enter_noted(me, &copy, since | u64::from(wanted));
        } else {
            self.identity.set_alone(me);
            me.push_at_once((slot, used), &asked.held(since), sum);
        }
        Some(taken)
    }

    /// Enters an acquisition of which the profile wants to know, or the first one of the lock.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn enter_noted(&self, me: &'static Record, asked: &Asked, since: u64) {
        self.enter_since(me, *asked, since);
    }

    /// Enters the release of a mutex, if it is the last lock that this thread has acquired.
    #[inline(always)]
    pub fn leave_at_once(&self) -> bool {
        let is_mine = existing().is_some_and(|me| self.is_mine(me) && me.pop_at_once(self.address()));
        if is_mine {
            self.identity.set_alone(ptr::null());
        }
        is_mine
    }

    /// Acquires without a deadline: `attempt` does not wait, and `wait` does.
    #[inline(always)]
    #[track_caller]
    pub fn acquire<K, E>(
        &self,
        (access, subclass): (Access, u8),
        at: Place,
        attempt: impl FnOnce(&R) -> Result<Option<K>, E>,
        wait: impl FnOnce(&R) -> Result<K, E>,
    ) -> Result<K, E> {
        assert!(subclass < SUBCLASSES, "a class has the subclasses 0 to 7");
        let Some(me) = current() else { return wait(&self.raw).map(|taken| self.untracked(access, taken)) };
        let asked = self.asked(access, subclass, at);
        self.check(me, asked);
        self.take(me, asked, attempt, wait)
    }

    /// The acquisition itself, after its rules.
    #[inline(always)]
    #[track_caller]
    pub fn take<K, E>(
        &self,
        me: &'static Record,
        asked: Asked,
        attempt: impl FnOnce(&R) -> Result<Option<K>, E>,
        wait: impl FnOnce(&R) -> Result<K, E>,
    ) -> Result<K, E> {
        let taken = match attempt(&self.raw)? {
            Some(taken) => taken,
            None => {
                let copy = asked;
                self.contended(me, &copy, false, wait)?
            }
        };
        self.enter_inline(me, asked);
        Ok(taken)
    }

    /// Acquires with a deadline, or without waiting at all. No order is asked for.
    #[inline]
    #[track_caller]
    pub fn attempt<K, E>(
        &self,
        access: Access,
        at: Place,
        attempt: impl FnOnce(&R) -> Result<Option<K>, E>,
        wait: Option<impl FnOnce(&R) -> Result<Option<K>, E>>,
    ) -> Result<Option<K>, E> {
        let Some(me) = current() else {
            let taken = match (attempt(&self.raw)?, wait) {
                (None, Some(wait)) => wait(&self.raw)?,
                (taken, _) => taken,
            };
            return Ok(taken.map(|taken| self.untracked(access, taken)));
        };
        let asked = self.asked(access, 0, at);
        Self::look(me, asked, false);
        let taken = match (attempt(&self.raw)?, wait) {
            (None, Some(wait)) => {
                let copy = asked;
                self.contended(me, &copy, true, wait)?
            }
            (taken, _) => taken,
        };
        if taken.is_some() {
            self.enter(me, asked);
        }
        Ok(taken)
    }

    /// Waits by `wait`, which has a deadline if the wait is `timed`.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn contended<T>(&self, me: &'static Record, asked: &Asked, timed: bool, wait: impl FnOnce(&R) -> T) -> T {
        if asked.access == Access::Exclusive && self.is_mine(me) {
            // An acquisition with a deadline ends.
            if !timed {
                let held = self.own(me, asked).map(|own| own.1);
                deliver(&faults::again(me, asked, held), From::Call);
            }
            return waiting_for_itself(me, asked, timed, || wait(&self.raw));
        }
        waiting(me, asked, timed, || wait(&self.raw))
    }

    /// Acquires if that needs no waiting and breaks no rule.
    #[track_caller]
    pub fn try_checked<K>(
        &self,
        access: Access,
        attempt: impl FnOnce(&R) -> Option<K>,
    ) -> Result<K, TryLockError> {
        let Some(me) = current() else {
            let taken = attempt(&self.raw).ok_or(TryLockError::WouldBlock)?;
            return Ok(self.untracked(access, taken));
        };
        let asked = self.asked(access, 0, Location::caller());
        let fault = |held| Err(TryLockError::Fault(Box::new(faults::again(me, &asked, held))));
        let has_order = match self.own(me, &asked) {
            Some((true, held)) => return fault(Some(held)),
            Some((false, _)) => !access.is_shared(),
            None if self.is_mine(me) => return fault(None),
            None => true,
        };
        let is_new = faults::attempt(me, &asked, has_order)?;
        let taken = attempt(&self.raw).ok_or(TryLockError::WouldBlock)?;
        if is_new {
            faults::attempted(me, &asked);
        }
        self.enter(me, asked);
        Ok(taken)
    }

    /// Enters the acquisition that the raw lock has just made.
    #[inline(never)]
    #[track_caller]
    pub fn enter(&self, me: &'static Record, asked: Asked) {
        self.enter_inline(me, asked);
    }

    #[inline(always)]
    #[track_caller]
    fn enter_inline(&self, me: &'static Record, asked: Asked) {
        self.enter_since(me, asked, since(me));
    }

    #[inline(always)]
    #[track_caller]
    fn enter_since(&self, me: &'static Record, asked: Asked, since: u64) {
        if !self.identity.alone().is_null() {
            let copy = asked;
            faults::two_holders(me, &copy, self.alone());
        }
        if asked.access.is_alone() {
            self.identity.set_alone(me);
        }
        if !me.push(&asked.held(since)) {
            faults::too_many(me, &asked.held(since));
        }
    }

    /// Enters an acquisition at the end of a thread, where nothing is checked, and passes on what
    /// it gave.
    #[cold]
    #[track_caller]
    pub fn untracked<T>(&self, access: Access, taken: T) -> T {
        self.untracked_at(Location::caller(), access, taken)
    }

    /// The same of a task, which asked for the lock at `at`.
    pub fn untracked_at<T>(&self, at: Place, access: Access, taken: T) -> T {
        if access.is_alone() {
            // The word may have the type of the data, which belongs to the class.
            if self.identity.may_be_alone() {
                self.identity.find::<R>(at);
            }
            self.identity.set_alone(UNTRACKED);
        }
        taken
    }

    /// Enters a release, before the raw lock makes it. Returns whether it may. `access` is what is
    /// released, and `exact` whether a reader has exactly that one.
    #[inline(always)]
    #[track_caller]
    pub fn leave(&self, access: Access, exact: bool, is_locked: impl FnOnce(&R) -> bool) -> bool {
        if let Some(me) = current() {
            let is_mine = !access.is_alone() || self.is_mine(me);
            let fits = |held: Access| held == access || (!exact && held.is_shared() && access.is_shared());
            if is_mine && me.pop_as(self.address(), fits) {
                if access.is_alone() {
                    self.identity.set_alone(ptr::null());
                }
                return true;
            }
        }
        self.leave_wrongly(access, is_locked(&self.raw))
    }

    /// A release of what the list of this thread does not have.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn leave_wrongly(&self, access: Access, is_locked: bool) -> bool {
        let (is_alone, alone) = (access.is_alone(), self.alone());
        let was_untracked = self.identity.alone() == UNTRACKED;
        let forget_alone = || {
            if is_alone {
                self.identity.set_alone(ptr::null());
            }
        };
        let same = |held: Access| held == access || (held.is_shared() && access.is_shared());
        let Some(me) = current() else {
            // At the end of a thread nothing is checked.
            match (is_alone, alone) {
                (true, Some(alone)) => alone.forget(self.address()),
                (true, None) => {}
                (false, _) => _ = ending().is_some_and(|me| me.pop_as(self.address(), same)),
            }
            forget_alone();
            return true;
        };
        let instance = self.identity.instance();
        let mine = me.held().find(|held| held.instance == instance && same(held.access));
        let listed =
            mine.map(|held| (me, held)).or_else(|| self.holders().find(|(_, held)| same(held.access)));
        let is_mine = is_alone && self.is_mine(me);
        let is_moved = mine.is_some_and(|held| held.lock != self.address());
        // One that has it alone needs no entry: the fault of a lock that lay here may have cleared
        // it.
        let is_right = !is_moved && (is_mine || (!is_alone && is_locked)) && (me.pop_over() || is_mine);
        if (is_alone && was_untracked) || is_right {
            forget_alone();
            return true;
        }
        let wrong = match (listed, alone) {
            (Some((record, held)), _) if held.lock != self.address() => Holder::Moved(record, held.lock),
            (Some((record, _)), _) => Holder::Other(record),
            (None, Some(record)) if is_alone => Holder::Other(record),
            (None, _) => Holder::None,
        };
        let may = !matches!(wrong, Holder::None);
        faults::wrong_release(me, (self.address(), access), self.identity.known_class(), wrong);
        if let Some((record, held)) = listed {
            record.forget(held.lock);
        }
        forget_alone();
        may
    }

    /// What was held in one way is held in another from now on. Returns whether it is in no list,
    /// as what a task holds.
    #[inline]
    #[track_caller]
    pub fn turn(&self, me: Option<&'static Record>, from: Access, to: Access, at: Place) -> bool {
        let was_untracked = from.is_alone() && self.identity.alone() == UNTRACKED;
        self.leave(from, true, |_| true);
        let Some(me) = me.filter(|_| !was_untracked) else {
            self.untracked(to, ());
            return true;
        };
        self.enter(me, self.asked(to, 0, at));
        false
    }

    /// The lock is dropped. Holders at the end of a thread are not listed, and let be. `or_alone`
    /// is whether one that is not listed counts if it has the lock alone.
    #[inline]
    #[track_caller]
    pub fn dropped(&self, is_locked: impl FnOnce(&R) -> bool, or_alone: bool) {
        if self.identity.known_class().is_some() && is_locked(&self.raw) {
            self.dropped_while_held(or_alone);
        }
    }

    #[cold]
    #[track_caller]
    fn dropped_while_held(&self, or_alone: bool) {
        let first = self.holders().min_by_key(|(_, held)| held.since);
        let alone = || self.alone().filter(|_| or_alone);
        let Some(holder) = first.map(|first| first.0).or_else(alone) else { return };
        let home = first.map_or(self.address(), |(_, held)| held.lock);
        // Not by the address alone: another lock may lie where this one was.
        for (other, held) in self.holders().filter(|(other, _)| !ptr::eq(*other, holder)) {
            other.forget(held.lock);
        }
        faults::dropped(self.address(), home, self.identity.known_class(), Some(holder));
    }

    /// Whether a thread has the lock alone.
    #[inline]
    pub fn has_holder(&self) -> bool {
        !self.identity.alone().is_null()
    }
}

impl<R: fmt::Debug> fmt::Debug for Lock<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked")
            .field("raw", &self.raw)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
