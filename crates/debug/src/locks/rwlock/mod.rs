//! [`CheckedRw`]: a raw reader-writer lock with a checker around it.
//!
//! | field | set by | cleared by | read by |
//! |---|---|---|---|
//! | `writer` | an acquisition by a writer, after that of `raw` | its release, before that of `raw` | all |
//! | `identity`: the class and the number | the first acquisition | nothing | all |
//!
//! `writer` is the record of the writer's thread. Readers are not in the lock, which would be a
//! cache line that all of them write. They are in the lists of their threads, under the number of
//! the lock. All accesses are Relaxed. A thread compares `writer` with its own record, which no
//! other thread stores. Otherwise `raw` orders it: a writer stores between an acquisition and a
//! release.

mod classes;
mod traits;
mod typed;

pub use typed::CheckedRwLock;

use crate::locks::checker::UNTRACKED;
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
use crate::seen::thread::{Held, Record, records};
use core::fmt;
use core::panic::Location;
use core::ptr;
use ulocks_core::futex::Local;
use ulocks_core::raw::{Initial, RawRwLock};
use ulocks_core::sync::{AtomicPtr, Ordering::Relaxed};

/// A raw reader-writer lock of the family that enforces its rules; see the [crate](crate).
///
/// [`CheckedRwLock`] is its typed face, and knows the line of its making. A lock that was made by
/// `INIT`, or is zeroed memory, belongs to the class of the line that acquires it first.
///
/// It is the raw lock and five words. It cannot be shared between processes.
pub struct CheckedRw<R: RawRwLock<Scope = Local>> {
    raw: R,
    writer: AtomicPtr<Record>,
    identity: Identity,
}

/// What a reader of a [`CheckedRw`] hands to its release.
#[derive(Clone, Copy, Debug)]
pub struct CheckedReadToken<K> {
    token: K,
    /// In what way the lock was acquired, if that is known.
    access: Option<Access>,
}

impl<K> CheckedReadToken<K> {
    /// A token of the raw lock, for a release that does not know the class of the reader.
    pub const fn new(token: K) -> Self {
        Self { token, access: None }
    }
}

impl<R: RawRwLock<Scope = Local>> Initial for CheckedRw<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_origin(Origin::UNKNOWN);
}

impl<R: RawRwLock<Scope = Local>> CheckedRw<R> {
    pub(crate) const fn with_origin(origin: Origin) -> Self {
        Self { raw: R::INIT, writer: AtomicPtr::new(ptr::null_mut()), identity: Identity::new(origin) }
    }

    /// The lock that is checked.
    pub const fn inner(&self) -> &R {
        &self.raw
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    pub(crate) fn class(&self, at: Place) -> &'static Node {
        self.identity.class::<R>(at)
    }

    #[inline]
    fn asked(&self, access: Access, subclass: u8, at: Place) -> Asked {
        self.identity.asked::<R>(self.address(), access, subclass, at)
    }

    fn writer(&self) -> Option<&'static Record> {
        let writer = self.writer.load(Relaxed);
        if writer == UNTRACKED {
            return None;
        }
        // SAFETY: null, or a record, and those are never freed.
        unsafe { writer.as_ref() }
    }

    /// The threads that hold the lock, at whatever address.
    fn holders(&self) -> impl Iterator<Item = (&'static Record, Held)> {
        let instance = self.identity.instance();
        let each = move |record: &'static Record| {
            let mine = record.held().filter(move |held| held.instance == instance);
            mine.map(move |held| (record, held))
        };
        records().flat_map(each)
    }

    /// Of the entries of this lock in the list of this thread, one that keeps it waiting, or any.
    #[cold]
    fn own(&self, me: &Record, asked: &Asked) -> Option<(bool, Held)> {
        let keeps = |held: &Held| held.access.blocks(asked.access) || held.lock != asked.lock;
        let own = me.held().filter(|held| held.instance == asked.instance);
        own.map(|held| (keeps(&held), held)).min_by_key(|own| !own.0)
    }

    /// The rules of an acquisition without a deadline, before it is made.
    #[inline]
    #[track_caller]
    fn check(&self, me: &'static Record, asked: &Asked) {
        handler::look(me, asked, true);
        if !me.holds_any() {
            return;
        }
        if me.holds_one_of(asked.class) {
            match self.own(me, asked) {
                // It is reported as such, and not as an inversion.
                Some((true, held)) => return deliver(&faults::again(me, asked, &held), From::Call),
                // The access that it has keeps the lock open for it: it does not wait.
                Some((false, _)) if asked.access.is_shared() => return,
                _ => {}
            }
        }
        if !me.is_validated_at_once(class_key(me, asked.class, asked.subclass, asked.access)) {
            self.check_order(me, asked);
        }
    }

    /// The class alone does not say that the acquisition breaks no rule.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn check_order(&self, me: &Record, asked: &Asked) {
        let key = key(me, asked);
        if !me.is_validated(key) {
            faults::order(me, asked, key);
        }
    }

    /// Enters the acquisition that the raw lock has just made.
    #[inline]
    #[track_caller]
    fn enter(&self, me: &'static Record, asked: &Asked) {
        if !self.writer.load(Relaxed).is_null() {
            faults::two_holders(me, asked, self.writer());
        }
        if asked.access == Access::Write {
            self.writer.store(ptr::from_ref(me).cast_mut(), Relaxed);
        }
        let held = asked.held(since(me));
        if !me.push(&held) {
            faults::too_many(me, &held);
        }
    }

    #[cold]
    fn enter_untracked(&self, access: Access) {
        if access == Access::Write {
            self.writer.store(UNTRACKED, Relaxed);
        }
    }

    /// Acquires in a way that the traits may not know: `attempt` does not wait, and `wait` does.
    #[inline]
    #[track_caller]
    fn acquire<K>(
        &self,
        (access, subclass): (Access, u8),
        attempt: impl FnOnce(&R) -> Option<K>,
        wait: impl FnOnce(&R) -> K,
    ) -> K {
        assert!(subclass < SUBCLASSES, "a class has the subclasses 0 to 7");
        let Some(me) = current() else {
            let token = wait(&self.raw);
            self.enter_untracked(access);
            return token;
        };
        let asked = self.asked(access, subclass, Location::caller());
        self.check(me, &asked);
        let token = match attempt(&self.raw) {
            Some(token) => token,
            None => waiting(me, &asked, false, || wait(&self.raw)),
        };
        self.enter(me, &asked);
        token
    }

    /// The same with a deadline, or without waiting at all. No order is asked for.
    #[inline]
    #[track_caller]
    fn attempt<K>(
        &self,
        access: Access,
        attempt: impl FnOnce(&R) -> Option<K>,
        wait: Option<impl FnOnce(&R) -> Option<K>>,
    ) -> Option<K> {
        let Some(me) = current() else {
            let token = attempt(&self.raw).or_else(|| wait?(&self.raw))?;
            self.enter_untracked(access);
            return Some(token);
        };
        let asked = self.asked(access, 0, Location::caller());
        handler::look(me, &asked, false);
        let token = match (attempt(&self.raw), wait) {
            (None, Some(wait)) => waiting(me, &asked, true, || wait(&self.raw))?,
            (token, _) => token?,
        };
        self.enter(me, &asked);
        Some(token)
    }

    /// Acquires if that needs no waiting and breaks no rule.
    #[track_caller]
    fn try_checked<K>(
        &self,
        access: Access,
        attempt: impl FnOnce(&R) -> Option<K>,
    ) -> Result<K, TryLockError> {
        let Some(me) = current() else {
            let token = attempt(&self.raw).ok_or(TryLockError::WouldBlock)?;
            self.enter_untracked(access);
            return Ok(token);
        };
        let asked = self.asked(access, 0, Location::caller());
        let has_order = match self.own(me, &asked) {
            Some((true, held)) => {
                return Err(TryLockError::Fault(Box::new(faults::again(me, &asked, &held))));
            }
            Some((false, _)) => !access.is_shared(),
            None => true,
        };
        faults::attempt(me, &asked, has_order)?;
        let token = attempt(&self.raw).ok_or(TryLockError::WouldBlock)?;
        self.enter(me, &asked);
        Ok(token)
    }

    /// As [`read`](RawRwLock::read), in a way that the trait does not know. `access` is one of
    /// [`Access::Read`] and [`Access::Recursive`]. `attempt` does not wait, and `wait` does.
    ///
    /// # Safety
    /// Both return tokens of an acquisition of the lock that they get.
    #[inline]
    #[track_caller]
    pub unsafe fn read_as(
        &self,
        access: Access,
        attempt: impl FnOnce(&R) -> Option<R::ReadToken>,
        wait: impl FnOnce(&R) -> R::ReadToken,
    ) -> CheckedReadToken<R::ReadToken> {
        let token = self.acquire((access, 0), attempt, wait);
        CheckedReadToken { token, access: Some(access) }
    }

    /// As [`read_as`](Self::read_as), without waiting, or with a deadline: then `wait` gives up by
    /// itself.
    ///
    /// # Safety
    /// As [`read_as`](Self::read_as).
    #[inline]
    #[track_caller]
    pub unsafe fn try_read_as(
        &self,
        access: Access,
        attempt: impl FnOnce(&R) -> Option<R::ReadToken>,
        wait: Option<impl FnOnce(&R) -> Option<R::ReadToken>>,
    ) -> Option<CheckedReadToken<R::ReadToken>> {
        let token = self.attempt(access, attempt, wait)?;
        Some(CheckedReadToken { token, access: Some(access) })
    }

    /// Enters a release, before the raw lock makes it. Returns whether it may. `access` is what is
    /// released, and `exact` whether a reader has exactly that one.
    #[inline]
    #[track_caller]
    fn leave(&self, access: Access, exact: bool) -> bool {
        let is_writer = access == Access::Write;
        if let Some(me) = current() {
            let is_mine = !is_writer || ptr::eq(self.writer.load(Relaxed), me);
            let fits = |held: Access| held == access || (!exact && held.is_shared() && access.is_shared());
            if is_mine && me.pop_as(self.address(), fits) {
                if is_writer {
                    self.writer.store(ptr::null_mut(), Relaxed);
                }
                return true;
            }
        }
        self.leave_wrongly(access)
    }

    /// A release of what the list of this thread does not have.
    #[cold]
    #[track_caller]
    fn leave_wrongly(&self, access: Access) -> bool {
        let is_writer = access == Access::Write;
        let was_writer = self.writer.load(Relaxed);
        let forget_writer = || {
            if is_writer {
                self.writer.store(ptr::null_mut(), Relaxed);
            }
        };
        let same = |held: Access| held == access || (held.is_shared() && access.is_shared());
        let Some(me) = current() else {
            // At the end of a thread nothing is checked.
            if let (true, Some(writer)) = (is_writer, self.writer()) {
                writer.forget(self.address());
            }
            forget_writer();
            return true;
        };
        let instance = self.identity.instance();
        let mine = me.held().find(|held| held.instance == instance && same(held.access));
        let holder =
            mine.map(|held| (me, held)).or_else(|| self.holders().find(|(_, held)| same(held.access)));
        let is_unlisted = if is_writer { ptr::eq(was_writer, me) } else { self.raw.is_locked() };
        let is_moved = mine.is_some_and(|held| held.lock != self.address());
        let is_untracked = is_writer && was_writer == UNTRACKED;
        if is_untracked || (!is_moved && is_unlisted && me.pop_over()) {
            forget_writer();
            return true;
        }
        let wrong = match holder {
            Some((record, held)) if held.lock != self.address() => Holder::Moved(record, held.lock),
            Some((record, _)) => Holder::Other(record),
            None => Holder::None,
        };
        let class = self.identity.known_class();
        faults::wrong_release(me, (self.address(), access), class, wrong);
        if let Some((record, held)) = holder {
            record.forget(held.lock);
        }
        forget_writer();
        holder.is_some()
    }

    /// What was held in one way is held in another from now on.
    #[inline]
    #[track_caller]
    fn turn(&self, me: Option<&'static Record>, from: Access, to: Access, at: Place) {
        self.leave(from, true);
        match me {
            Some(me) => self.enter(me, &self.asked(to, 0, at)),
            None => self.enter_untracked(to),
        }
    }
}

impl<R: RawRwLock<Scope = Local>> Drop for CheckedRw<R> {
    #[track_caller]
    fn drop(&mut self) {
        // Holders at the end of a thread are not listed, and let be.
        if self.identity.known_class().is_some()
            && self.raw.is_locked()
            && let Some((record, held)) = self.holders().min_by_key(|(_, held)| held.since)
        {
            for other in records().filter(|other| !ptr::eq(*other, record)) {
                other.forget(held.lock);
            }
            let (lock, class) = (self.address(), self.identity.known_class());
            faults::dropped(lock, held.lock, class, Some(record));
        }
    }
}

impl<R: RawRwLock<Scope = Local> + fmt::Debug> fmt::Debug for CheckedRw<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedRw")
            .field("raw", &self.raw)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
