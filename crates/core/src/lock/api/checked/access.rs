//! A raw lock together with the watch over what it protects, and the kinds of access to that.
//!
//! | access | in the watch |
//! |---|---|
//! | [`Shared`], [`Upgradable`] | a shared one is open |
//! | [`Held`], [`Exclusive`] | an exclusive one is open |
//!
//! An access is open from the return of the acquisition to just before the release. Where one kind
//! turns into another the watch has a shared access open *while* the raw lock works, so that a
//! writer that slips in between is seen.

use super::{Raw, Token};
use crate::lock::traits::{
    RawMutex, RawMutexFair, RawRwLock, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use crate::sys::time::Deadline;
use crate::sys::world::Watch;
use std::thread::panicking;

/// That of the holder of a mutex.
#[derive(Debug)]
pub enum Held {}
/// Beside other readers.
#[derive(Debug)]
pub enum Shared {}
/// Alone.
#[derive(Debug)]
pub enum Exclusive {}
/// Beside readers, and may become exclusive.
#[derive(Debug)]
pub enum Upgradable {}

/// A kind of access: how the raw lock gives and takes it, and what it is to the watch.
pub trait Access<L> {
    /// The raw lock's token.
    type Token;
    #[track_caller]
    fn acquire(lock: &L) -> Self::Token;
    #[track_caller]
    fn try_acquire(lock: &L) -> Option<Self::Token>;
    #[track_caller]
    fn acquire_until(lock: &L, deadline: Deadline) -> Option<Self::Token>;
    /// # Safety
    /// The token comes from an acquisition of `lock` for this kind of access.
    #[track_caller]
    unsafe fn release(lock: &L, token: Self::Token);
    /// Whether it excludes all others.
    const EXCLUSIVE: bool = false;
}

/// A kind of access whose release can hand over the lock.
pub trait FairAccess<L>: Access<L> {
    /// # Safety
    /// As [`Access::release`].
    #[track_caller]
    unsafe fn release_fair(lock: &L, token: Self::Token);
    /// Releases fairly and acquires again.
    ///
    /// # Safety
    /// As [`Access::release`].
    #[track_caller]
    unsafe fn bump(lock: &L, token: Self::Token) -> Self::Token {
        // SAFETY: the caller's promise.
        unsafe { Self::release_fair(lock, token) };
        Self::acquire(lock)
    }
}

/// A kind of access that excludes all others.
pub trait SoleAccess<L>: Access<L> {}
impl<L: RawMutex> SoleAccess<L> for Held {}
impl<L: RawRwLock> SoleAccess<L> for Exclusive {}

macro_rules! access {
    ($kind:ident, $raw:ident, $fair:ident, $token:ident, $exclusive:literal,
     $acquire:ident, $try_acquire:ident, $acquire_until:ident, $release:ident, $release_fair:ident
     $(, $bump:ident)?) => {
        impl<L: $raw> Access<L> for $kind {
            type Token = L::$token;
            const EXCLUSIVE: bool = $exclusive;
            #[track_caller]
            fn acquire(lock: &L) -> L::$token {
                lock.$acquire()
            }
            #[track_caller]
            fn try_acquire(lock: &L) -> Option<L::$token> {
                lock.$try_acquire()
            }
            #[track_caller]
            fn acquire_until(lock: &L, deadline: Deadline) -> Option<L::$token> {
                lock.$acquire_until(deadline)
            }
            #[track_caller]
            unsafe fn release(lock: &L, token: L::$token) {
                // SAFETY: the caller's promise.
                unsafe { lock.$release(token) };
            }
        }
        impl<L: $fair> FairAccess<L> for $kind {
            #[track_caller]
            unsafe fn release_fair(lock: &L, token: L::$token) {
                // SAFETY: the caller's promise.
                unsafe { lock.$release_fair(token) };
            }
            $(
                #[track_caller]
                unsafe fn bump(lock: &L, token: L::$token) -> L::$token {
                    // SAFETY: the caller's promise.
                    unsafe { lock.$bump(token) }
                }
            )?
        }
    };
}

access!(Held, RawMutex, RawMutexFair, Token, true, lock, try_lock, lock_until, unlock, unlock_fair);
access!(
    Shared,
    RawRwLock,
    RawRwLockFair,
    ReadToken,
    false,
    read,
    try_read,
    read_until,
    unlock_read,
    unlock_read_fair,
    bump_read
);
access!(
    Exclusive,
    RawRwLock,
    RawRwLockFair,
    WriteToken,
    true,
    write,
    try_write,
    write_until,
    unlock_write,
    unlock_write_fair
);
access!(
    Upgradable,
    RawRwLockUpgrade,
    RawRwLockUpgradeFair,
    UpgradableToken,
    false,
    upgradable,
    try_upgradable,
    upgradable_until,
    unlock_upgradable,
    unlock_upgradable_fair
);

/// What a lock is beside its data; the guards of every kind release through it.
pub struct Watched<L> {
    raw: Raw<L>,
    watch: Watch,
}

impl<L> Watched<L> {
    #[track_caller]
    pub(super) fn new(raw: Raw<L>) -> Self {
        Self { raw, watch: Watch::new() }
    }

    pub(super) fn raw(&self) -> &Raw<L> {
        &self.raw
    }

    pub(super) fn into_raw(self) -> Raw<L> {
        self.raw
    }

    #[track_caller]
    pub(super) fn open<A: Access<L>>(&self, token: A::Token) -> Token<A::Token> {
        if A::EXCLUSIVE {
            self.watch.open_write()
        } else {
            self.watch.open_read()
        }
        Token::new(token)
    }

    /// The access of a guard ends, though its lock is not released yet.
    #[track_caller]
    pub(super) fn close<A: Access<L>>(&self) {
        if A::EXCLUSIVE { self.watch.close_write() } else { self.watch.close_read() }
    }

    #[track_caller]
    pub(super) fn acquire<A: Access<L>>(&self) -> Token<A::Token> {
        self.open::<A>(A::acquire(self.raw.inner()))
    }

    #[track_caller]
    pub(super) fn try_acquire<A: Access<L>>(&self) -> Option<Token<A::Token>> {
        let token = A::try_acquire(self.raw.inner())?;
        Some(self.open::<A>(token))
    }

    #[track_caller]
    pub(super) fn acquire_until<A: Access<L>>(
        &self,
        deadline: impl FnOnce() -> Deadline,
    ) -> Option<Token<A::Token>> {
        let token = match A::try_acquire(self.raw.inner()) {
            None => A::acquire_until(self.raw.inner(), deadline())?,
            Some(token) => token,
        };
        Some(self.open::<A>(token))
    }

    #[track_caller]
    pub(super) fn acquire_with<A: Access<L>, E>(
        &self,
        acquire: impl FnOnce(&L) -> Result<A::Token, E>,
    ) -> Result<Token<A::Token>, E> {
        let token = acquire(self.raw.inner())?;
        Ok(self.open::<A>(token))
    }

    /// Releases the lock, unless the thread panics: then the model is over, and another operation
    /// of it would panic again.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock for `A`, and no reference to the data by
    /// that access is used after the call.
    #[track_caller]
    pub(super) unsafe fn release<A: Access<L>>(&self, token: Token<A::Token>) {
        if panicking() {
            return;
        }
        self.close::<A>();
        // SAFETY: the caller's promise.
        unsafe { A::release(self.raw.inner(), token.into_inner()) };
    }

    /// As [`Watched::release`], to the longest waiter.
    ///
    /// # Safety
    /// As [`Watched::release`].
    #[track_caller]
    pub(super) unsafe fn release_fair<A: FairAccess<L>>(&self, token: Token<A::Token>) {
        if panicking() {
            return;
        }
        self.close::<A>();
        // SAFETY: the caller's promise.
        unsafe { A::release_fair(self.raw.inner(), token.into_inner()) };
    }

    /// Releases the lock to the longest waiter, and acquires it again.
    ///
    /// # Safety
    /// As [`Watched::release`].
    #[track_caller]
    pub(super) unsafe fn bump<A: FairAccess<L>>(&self, token: Token<A::Token>) -> Token<A::Token> {
        if panicking() {
            return token;
        }
        self.close::<A>();
        // SAFETY: the caller's promise.
        self.open::<A>(unsafe { A::bump(self.raw.inner(), token.into_inner()) })
    }

    /// Runs `wait`, which releases the lock by the token it gets and returns with another.
    #[track_caller]
    pub(super) fn without<R>(
        &self,
        token: Token<L::Token>,
        wait: impl FnOnce(&L, L::Token) -> (L::Token, R),
    ) -> (Token<L::Token>, R)
    where
        L: RawMutex,
    {
        self.close::<Held>();
        let (token, result) = wait(self.raw.inner(), token.into_inner());
        (self.open::<Held>(token), result)
    }

    /// Turns one access into a weaker or equal one, by `turn` of the raw lock. What it was ends
    /// before; others are let in by `turn`, and find it shared.
    #[track_caller]
    pub(super) fn weaken<A: Access<L>, B: Access<L>>(
        &self,
        token: Token<A::Token>,
        turn: impl FnOnce(&L, A::Token) -> B::Token,
    ) -> Token<B::Token> {
        self.close::<A>();
        self.watch.open_read();
        Token::new(turn(self.raw.inner(), token.into_inner()))
    }

    /// Turns upgradable access into exclusive access by `turn` of the raw lock, during which it is
    /// shared still.
    #[track_caller]
    pub(super) fn upgrade<E>(
        &self,
        token: Token<L::UpgradableToken>,
        turn: impl FnOnce(&L, L::UpgradableToken) -> Result<L::WriteToken, E>,
    ) -> Result<Token<L::WriteToken>, E>
    where
        L: RawRwLockUpgrade,
    {
        let token = turn(self.raw.inner(), token.into_inner())?;
        self.close::<Upgradable>();
        Ok(self.open::<Exclusive>(token))
    }
}
