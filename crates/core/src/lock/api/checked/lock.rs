//! A raw lock together with the watch over what it protects.

use super::{Raw, Token};
use crate::lock::traits::{RawMutex, RawMutexFair};
use crate::sys::time::Deadline;
use crate::sys::world::Watch;
use std::thread::panicking;

/// What a mutex is beside its data; the guards of every kind release through it.
pub(super) struct Lock<L> {
    raw: Raw<L>,
    watch: Watch,
}

impl<L> Lock<L> {
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
}

impl<L: RawMutex> Lock<L> {
    #[track_caller]
    pub(super) fn acquire(&self) -> Token<L::Token> {
        let token = self.raw.inner().lock();
        self.watch.open_write();
        Token::new(token)
    }

    #[track_caller]
    pub(super) fn try_acquire(&self) -> Option<Token<L::Token>> {
        let token = self.raw.inner().try_lock()?;
        self.watch.open_write();
        Some(Token::new(token))
    }

    #[track_caller]
    pub(super) fn acquire_until(&self, deadline: impl FnOnce() -> Deadline) -> Option<Token<L::Token>> {
        let lock = self.raw.inner();
        let token = lock.try_lock().or_else(|| lock.lock_until(deadline()))?;
        self.watch.open_write();
        Some(Token::new(token))
    }

    #[track_caller]
    pub(super) fn acquire_with<E>(
        &self,
        acquire: impl FnOnce(&L) -> Result<L::Token, E>,
    ) -> Result<Token<L::Token>, E> {
        let token = acquire(self.raw.inner())?;
        self.watch.open_write();
        Ok(Token::new(token))
    }

    /// The access of a guard ends, though its lock is not released yet.
    pub(super) fn close(&self) {
        self.watch.close_write();
    }

    /// Releases the lock, unless the thread panics: then the model is over, and another operation
    /// of it would panic again.
    ///
    /// # Safety
    /// The token comes from an acquisition of this lock, and no reference to the data is used after
    /// the call.
    #[track_caller]
    pub(super) unsafe fn release(&self, token: Token<L::Token>) {
        if panicking() {
            return;
        }
        self.watch.close_write();
        // SAFETY: the caller's promise.
        unsafe { self.raw.inner().unlock(token.into_inner()) };
    }

    /// As [`Lock::release`], to the longest waiter.
    ///
    /// # Safety
    /// As [`Lock::release`].
    #[track_caller]
    pub(super) unsafe fn release_fair(&self, token: Token<L::Token>)
    where
        L: RawMutexFair,
    {
        if panicking() {
            return;
        }
        self.watch.close_write();
        // SAFETY: the caller's promise.
        unsafe { self.raw.inner().unlock_fair(token.into_inner()) };
    }

    /// Runs `wait`, which releases the lock by the token it gets and returns with another.
    #[track_caller]
    pub(super) fn without<R>(
        &self,
        token: Token<L::Token>,
        wait: impl FnOnce(&L, L::Token) -> (L::Token, R),
    ) -> (Token<L::Token>, R) {
        self.watch.close_write();
        let (token, result) = wait(self.raw.inner(), token.into_inner());
        self.watch.open_write();
        (Token::new(token), result)
    }

    pub(super) fn is_locked(&self) -> bool {
        self.raw.inner().is_locked()
    }
}
