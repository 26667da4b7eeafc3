//! The lock as the typed faces know it: which part of the protocol each of their operations is.

use crate::class::{Bulk, Class, Handler, ThreadClass};
use crate::configuration::Configuration;
use crate::nesting::{self, Access, Nesting};
use crate::raw::{PolicyOf, RawPsRwLock, ReadToken};
use core::fmt;
use core::panic::Location;
use ulocks_core::meter::Meter;
use ulocks_core::signal::Context;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, raw};

type At = &'static Location<'static>;

/// How often the handler of an asynchronous signal polls a closed lock at most: for some
/// microseconds.
const HANDLER_LOOKS: u32 = 64;

impl<D: Configuration> RawPsRwLock<D> {
    /// What a reader of the class gets, if it is not at a slot.
    #[doc(hidden)]
    pub const fn token<C: Class>() -> ReadToken {
        ReadToken { index: Self::index::<C>() as u8, slot: None }
    }

    /// In the index of a token: no thread has it in its table of [`nesting`], as what a task has
    /// acquired. Without tables it is nothing.
    pub(crate) const NOT_IN_TABLE: u8 = if D::Nesting::CHECKED { 1 << 7 } else { 0 };

    pub(crate) const fn not_in_table(token: ReadToken) -> ReadToken {
        ReadToken { index: token.index | Self::NOT_IN_TABLE, ..token }
    }

    /// A reader of [`Bulk`] at a slot, where the lock has slots and the class is open.
    #[inline(always)]
    pub(crate) fn at_slot<C: Class>(&self) -> Option<ReadToken> {
        if C::RANK != Bulk::RANK || !Self::rows_are_lent() {
            return None;
        }
        self.read_at_row().map(|slot| ReadToken { slot: Some(slot), ..Self::token::<C>() })
    }

    /// Acquires for reading in a class of threads, waiting as long as it takes; `at` is the
    /// caller's.
    ///
    /// # Panics
    /// If this thread holds the lock in a way for which it may wait, and the configuration
    /// [checks](crate::Nesting) that; if there are too many readers.
    #[inline]
    pub fn read_in<C: ThreadClass>(&self, at: At) -> ReadToken {
        let mut token = const { Self::token::<C>() };
        self.check(Access::Read(token.index), at);
        self.begin(Access::Read(token.index));
        match self.at_slot::<C>() {
            Some(at_slot) => token = at_slot,
            None => self.read_for_ever(token.index.into()),
        }
        self.enter_table(Access::Read(token.index), at);
        token
    }

    /// Acquires in the class of `was`, the token of a thread or of a task. That of a task is not in
    /// the table, and stays so.
    fn read_again(&self, was: ReadToken, at: At) -> ReadToken {
        let index = was.index & !Self::NOT_IN_TABLE;
        let is_in_table = index == was.index;
        if is_in_table {
            self.check(Access::Read(index), at);
        }
        self.begin(Access::Read(index));
        let has_slots = Self::is_bulk(index.into()) && Self::rows_are_lent();
        let slot = if has_slots { self.read_at_row() } else { None };
        if slot.is_none() {
            self.read_for_ever(index.into());
        }
        if is_in_table {
            self.enter_table(Access::Read(index), at);
        }
        ReadToken { index: was.index, slot }
    }

    /// As [`read_in`](Self::read_in), if that needs no waiting.
    #[inline]
    pub fn try_read_in<C: ThreadClass>(&self, at: At) -> Option<ReadToken> {
        let token = const { Self::token::<C>() };
        self.begin(Access::Read(token.index));
        let token = match self.at_slot::<C>() {
            Some(at_slot) => at_slot,
            None => self.try_read_at(token.index.into()).then_some(token)?,
        };
        self.enter_table(Access::Read(token.index), at);
        Some(token)
    }

    /// As [`read_in`](Self::read_in), giving up once `deadline` has passed.
    #[inline]
    pub fn read_in_until<C: ThreadClass>(&self, deadline: Deadline, at: At) -> Option<ReadToken> {
        let token = const { Self::token::<C>() };
        self.begin(Access::Read(token.index));
        let token = match self.at_slot::<C>() {
            Some(at_slot) => at_slot,
            None => self.read_at(token.index.into(), Some(deadline)).then_some(token)?,
        };
        self.enter_table(Access::Read(token.index), at);
        Some(token)
    }

    /// Acquires for reading in a signal handler. It polls for a few microseconds at most, and does
    /// not wait in the handler of a synchronous signal. Neither this nor the release makes a system
    /// call.
    #[inline]
    pub fn read_in_handler(&self, context: &Context<'_>) -> Option<ReadToken> {
        self.read_in_handler_looking(if context.is_synchronous() { 1 } else { HANDLER_LOOKS })
    }

    /// The same with at most `looks` polls, for the models: each poll is one of their steps.
    #[doc(hidden)]
    #[inline]
    pub fn read_in_handler_looking(&self, looks: u32) -> Option<ReadToken> {
        let token = const { Self::token::<Handler>() };
        self.read_handler(token.index.into(), looks).then_some(token)
    }

    /// The owner closes the class and all below it, and waits until their readers have left.
    pub(crate) fn exclude<C: ThreadClass>(&self, at: At) {
        let index = const { Self::index::<C>() };
        self.check(Access::Exclude(index as u8), at);
        self.sift(index + 1, None);
    }

    /// As [`exclude`](Self::exclude), if that needs no waiting. Otherwise no further class is
    /// closed.
    pub(crate) fn try_exclude<C: ThreadClass>(&self) -> bool {
        let index = const { Self::index::<C>() };
        self.try_sift_to(index + 1)
    }

    /// As [`exclude`](Self::exclude), giving up once `deadline` has passed. Then no further class
    /// is closed.
    pub(crate) fn exclude_until<C: ThreadClass>(&self, deadline: Deadline) -> bool {
        let (index, level) = (const { Self::index::<C>() }, self.level());
        let done = self.sift(index + 1, Some(deadline));
        if !done {
            self.reopen(level);
        }
        done
    }

    /// Called before each acquisition that may wait for its own thread.
    #[inline(always)]
    fn check(&self, asked: Access, at: At) {
        if D::Nesting::CHECKED {
            let is_held = |held| match (held, asked) {
                // Classes that it has closed itself.
                (Access::Upgradable, Access::Read(index)) => self.state().level() > index.into(),
                // It joins itself.
                (Access::Read(_), Access::Read(_)) if Self::READERS_FIRST => false,
                _ => self.has_holder(held),
            };
            nesting::check(core::ptr::from_ref(self).addr(), asked, Self::LAYOUT, is_held, at);
        }
    }

    /// Called before each acquisition, checked or not: see `nesting`.
    #[inline(always)]
    pub(crate) fn begin(&self, access: Access) {
        if D::Nesting::CHECKED && !self.has_holder(access) {
            nesting::begin(core::ptr::from_ref(self).addr(), access);
        }
    }

    /// Whether a thread holds the lock in that way, or has come in vain just now.
    fn has_holder(&self, access: Access) -> bool {
        match access {
            Access::Read(index) => {
                (Self::is_bulk(index.into()) && !self.row_is_empty())
                    || Self::LAYOUT.count(self.state(), index.into()) > 0
            }
            Access::Upgradable | Access::Write | Access::Exclude(_) => self.state().is_owned(),
        }
    }

    #[inline(always)]
    fn enter_table(&self, access: Access, at: At) {
        if D::Nesting::CHECKED {
            nesting::enter(core::ptr::from_ref(self).addr(), access, at);
        }
    }

    /// Called before a release: after it the place may be another lock's. Whether the table had it:
    /// not if a task has acquired.
    #[inline(always)]
    pub(crate) fn leave_table(&self, access: Access) -> bool {
        D::Nesting::CHECKED && nesting::leave(core::ptr::from_ref(self).addr(), access)
    }

    /// Whether the table had it.
    #[inline(always)]
    fn change_table(&self, from: Access, to: Access, at: At) -> bool {
        let is_in_table = self.leave_table(from);
        self.begin(to);
        if is_in_table {
            self.enter_table(to, at);
        }
        is_in_table
    }
}

ulocks_core::initial!([D: Configuration] RawPsRwLock<D> = Self::new());

impl<D: Configuration> raw::RawInterruptible for RawPsRwLock<D> {}

// SAFETY:
// * A write token, and a thread that has one is alone: invariant 3.
// * A writer's release happens before every later acquisition, a reader's before every later
//   writer's: "Ordering".
// * No address is kept, so a token may be forgotten, and the lock moved or dropped.
unsafe impl<D: Configuration> raw::RawRwLock for RawPsRwLock<D> {
    type Scope = <PolicyOf<D> as Policy>::Scope;
    type ReadToken = ReadToken;
    type WriteToken = ();

    #[inline]
    #[track_caller]
    fn read(&self) -> ReadToken {
        self.read_in::<Bulk>(Location::caller())
    }

    #[inline]
    #[track_caller]
    fn try_read(&self) -> Option<ReadToken> {
        self.try_read_in::<Bulk>(Location::caller())
    }

    #[inline]
    #[track_caller]
    fn read_until(&self, deadline: Deadline) -> Option<ReadToken> {
        self.read_in_until::<Bulk>(deadline, Location::caller())
    }

    #[inline]
    unsafe fn unlock_read(&self, token: ReadToken) {
        let index = token.index & !Self::NOT_IN_TABLE;
        if !Self::LAYOUT.is_handler(index.into()) {
            self.meter.released();
            if token.index == index {
                self.leave_table(Access::Read(index));
            }
        }
        match token.slot {
            Some(slot) if Self::HAS_ROWS => Self::depart_row(slot),
            _ => self.depart(index.into()),
        }
    }

    #[inline]
    #[track_caller]
    fn write(&self) {
        self.check(Access::Write, Location::caller());
        self.begin(Access::Write);
        self.write_for_ever();
        self.enter_table(Access::Write, Location::caller());
    }

    #[inline]
    #[track_caller]
    fn try_write(&self) -> Option<()> {
        self.begin(Access::Write);
        let written = self.try_write_at();
        if written {
            self.enter_table(Access::Write, Location::caller());
        }
        written.then_some(())
    }

    #[inline]
    #[track_caller]
    fn write_until(&self, deadline: Deadline) -> Option<()> {
        self.begin(Access::Write);
        let written = self.write_at(Some(deadline));
        if written {
            self.enter_table(Access::Write, Location::caller());
        }
        written.then_some(())
    }

    #[inline]
    unsafe fn unlock_write(&self, (): ()) {
        self.meter.released();
        self.leave_table(Access::Write);
        self.unlock_write_at();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let state = self.state();
        !self.row_is_empty() || state.is_owned() || !state.has_no_readers()
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        let state = self.state();
        state.is_owned() && state.level() == Self::CLASSES
    }
}

// SAFETY: the owner becomes a reader by one step, `become_reader`.
unsafe impl<D: Configuration> raw::RawRwLockDowngrade for RawPsRwLock<D> {
    #[inline]
    #[track_caller]
    unsafe fn downgrade(&self, (): ()) -> ReadToken {
        let token = const { Self::token::<Bulk>() };
        let is_in_table = self.change_table(Access::Write, Access::Read(token.index), Location::caller());
        self.become_reader(Self::CLASSES, token.index.into());
        if is_in_table { token } else { Self::not_in_table(token) }
    }
}

// SAFETY: an upgradable reader is the owner, invariant 1, and no reader is shut out until it sifts.
// What it read happens before the next owner: it gives the write side back by (unlock), Release.
// Upgrades keep the write side all the time.
unsafe impl<D: Configuration> raw::RawRwLockUpgrade for RawPsRwLock<D> {
    type UpgradableToken = ();

    #[inline]
    #[track_caller]
    fn upgradable(&self) {
        self.check(Access::Upgradable, Location::caller());
        self.begin(Access::Upgradable);
        self.own_to_read(None);
        self.enter_table(Access::Upgradable, Location::caller());
    }

    #[inline]
    #[track_caller]
    fn try_upgradable(&self) -> Option<()> {
        self.begin(Access::Upgradable);
        let owns = self.try_own_to_read();
        if owns {
            self.enter_table(Access::Upgradable, Location::caller());
        }
        owns.then_some(())
    }

    #[inline]
    #[track_caller]
    fn upgradable_until(&self, deadline: Deadline) -> Option<()> {
        self.begin(Access::Upgradable);
        let owns = self.own_to_read(Some(deadline));
        if owns {
            self.enter_table(Access::Upgradable, Location::caller());
        }
        owns.then_some(())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, (): ()) {
        self.meter.released();
        self.leave_table(Access::Upgradable);
        self.unlock_upgradable_at();
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self, (): ()) {
        self.leave_table(Access::Upgradable);
        // What consumes an acquisition and panics has released it.
        let released_by_panic = OnPanic(|| {
            self.meter.released();
            self.unlock_upgradable_at();
        });
        self.check(Access::Write, Location::caller());
        core::mem::forget(released_by_panic);
        self.upgrade_until_done(None);
        self.enter_table(Access::Write, Location::caller());
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        if !self.try_upgrade_at() {
            return Err(());
        }
        self.change_table(Access::Upgradable, Access::Write, Location::caller());
        Ok(())
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade_until(&self, (): (), deadline: Deadline) -> Result<(), ()> {
        if !self.upgrade_until_done(Some(deadline)) {
            return Err(());
        }
        self.change_table(Access::Upgradable, Access::Write, Location::caller());
        Ok(())
    }

    #[inline]
    #[track_caller]
    unsafe fn downgrade_upgradable(&self, (): ()) -> ReadToken {
        let token = const { Self::token::<Bulk>() };
        if self.look().has(Self::LAYOUT.full(token.index.into())) {
            // SAFETY: the caller's promise.
            unsafe { self.unlock_upgradable(()) };
            Self::too_many(token.index.into());
        }
        let is_in_table =
            self.change_table(Access::Upgradable, Access::Read(token.index), Location::caller());
        self.become_reader(self.state().level(), token.index.into());
        if is_in_table { token } else { Self::not_in_table(token) }
    }

    #[inline]
    #[track_caller]
    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        self.change_table(Access::Write, Access::Upgradable, Location::caller());
        self.reopen(0);
    }
}

// SAFETY: as without; a fair release is a release.
unsafe impl<D: Configuration> raw::RawRwLockFair for RawPsRwLock<D> {
    /// As without: a writer that waits for this reader has shut out all that could come before it.
    #[inline]
    unsafe fn unlock_read_fair(&self, token: ReadToken) {
        // SAFETY: the caller's token.
        unsafe { raw::RawRwLock::unlock_read(self, token) };
    }

    /// In the class of the token: in another one it might wait for what this thread holds beside
    /// it. A signal handler keeps what it has, since it must not wait.
    #[inline]
    #[track_caller]
    unsafe fn bump_read(&self, token: ReadToken) -> ReadToken {
        let index = token.index & !Self::NOT_IN_TABLE;
        if Self::LAYOUT.is_handler(index.into()) {
            return token;
        }
        let was = ReadToken { index: token.index, slot: None };
        // SAFETY: the caller's token.
        unsafe { raw::RawRwLock::unlock_read(self, token) };
        self.read_again(was, Location::caller())
    }

    #[inline]
    unsafe fn unlock_write_fair(&self, (): ()) {
        self.meter.released();
        self.leave_table(Access::Write);
        self.hand_over(Self::CLASSES);
    }
}

// SAFETY: as without; a fair release is a release.
unsafe impl<D: Configuration> raw::RawRwLockUpgradeFair for RawPsRwLock<D> {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self, (): ()) {
        self.meter.released();
        self.leave_table(Access::Upgradable);
        self.hand_over(self.state().level());
    }
}

impl<D: Configuration> raw::Metered for RawPsRwLock<D> {
    type Meter = <PolicyOf<D> as Policy>::Meter;

    fn meter(&self) -> &Self::Meter {
        &self.meter
    }
}

impl<D: Configuration> Default for RawPsRwLock<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Configuration<Policy: Policy<Meter: fmt::Debug>>> fmt::Debug for RawPsRwLock<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawPsRwLock").field("state", &self.state()).field("meter", &self.meter).finish()
    }
}

/// Runs when it is dropped: if what stands between panics.
struct OnPanic<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
