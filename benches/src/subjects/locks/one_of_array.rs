//! An array of one semaphore as a mutex: an operation to take it, another to give it back.

use super::{Held, Lock, Scope};
use anyhow::Result;
use ulocks_semarray::{Error, Op, SemArray};

/// A [`SemArray`] of one semaphore, which is one when no thread holds it.
#[derive(Debug)]
pub struct OneOfArray(SemArray);

const TAKE: Op = Op::sub(0, 1);
const GIVE: Op = Op::add(0, 1);

impl Lock for OneOfArray {
    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self(SemArray::with_values([1])))
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        self.0.apply(&[TAKE]).unwrap_or_else(|error| panic!("semarray: {error}"));
        Held(self)
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        match self.0.try_apply(&[TAKE]) {
            Ok(()) => Some(Held(self)),
            Err(Error::WouldBlock) => None,
            Err(error) => panic!("semarray: {error}"),
        }
    }

    #[inline]
    fn release(&self) {
        self.0.apply(&[GIVE]).unwrap_or_else(|error| panic!("semarray: {error}"));
    }
}
