//! [`Op`], one operation on one semaphore, and [`Set`], several that are performed together.

use core::ops::Deref;
use smallvec::SmallVec;

/// What an operation does to its semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Adds the amount; never waits.
    Add,
    /// Subtracts the amount; waits until the value is at least as great.
    Sub,
    /// Changes nothing; waits until the value is zero.
    WaitZero,
}

/// One operation of a set: its semaphore, what it does there, and whether the set may wait for it.
///
/// Operations can be constants, so a program can name its sets.
///
/// # Examples
/// ```
/// use ulocks_semarray::{Op, SemArray};
///
/// const CONVERT: [Op; 2] = [Op::sub(0, 1), Op::add(1, 2)];
///
/// let array = SemArray::with_values([1, 0]);
/// array.apply(&CONVERT)?;
/// assert_eq!(array.values(), [0, 2]);
/// # Ok::<_, ulocks_semarray::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    pub(crate) index: u32,
    pub(crate) amount: u32,
    pub(crate) action: Action,
    pub(crate) no_wait: bool,
}

impl Op {
    const fn new(index: usize, amount: u32, action: Action) -> Self {
        // No array has so many semaphores: an index that does not fit stays out of range.
        let index = if index > u32::MAX as usize { u32::MAX } else { index as u32 };
        Self { index, amount, action, no_wait: false }
    }

    /// Adds `amount` to semaphore `index`. It never waits: if the value would exceed the limit, the
    /// set fails. To add 0 is always possible, and changes nothing.
    #[must_use]
    #[inline]
    pub const fn add(index: usize, amount: u32) -> Self {
        Self::new(index, amount, Action::Add)
    }

    /// Subtracts `amount` from semaphore `index`, and waits until its value is at least as great.
    /// To subtract 0 is always possible, and changes nothing.
    #[must_use]
    #[inline]
    pub const fn sub(index: usize, amount: u32) -> Self {
        Self::new(index, amount, Action::Sub)
    }

    /// Waits until the value of semaphore `index` is zero, and changes nothing.
    #[must_use]
    #[inline]
    pub const fn wait_zero(index: usize) -> Self {
        Self::new(index, 0, Action::WaitZero)
    }

    /// The same operation without waiting, System V's `IPC_NOWAIT`. If the set stops at this
    /// operation, it fails with [`Error::WouldBlock`](crate::Error::WouldBlock). That may also
    /// happen later, when the set waits for another operation and is evaluated again.
    #[must_use]
    #[inline]
    pub const fn no_wait(self) -> Self {
        Self { no_wait: true, ..self }
    }

    /// The index of its semaphore.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// What it adds to its semaphore: negative if it subtracts, 0 if it waits for zero.
    #[must_use]
    pub const fn change(&self) -> i64 {
        match self.action {
            Action::Add => self.amount as i64,
            Action::Sub => -(self.amount as i64),
            Action::WaitZero => 0,
        }
    }

    /// Whether it waits for zero.
    #[must_use]
    pub const fn is_wait_zero(&self) -> bool {
        matches!(self.action, Action::WaitZero)
    }

    /// Whether the set does not wait for it.
    #[must_use]
    pub const fn is_no_wait(&self) -> bool {
        self.no_wait
    }
}

/// Operations that are performed together, in their order. Up to eight of them need no allocation.
///
/// It is built operation by operation, or from an array or a slice of operations. The methods that
/// perform a set take its slice (`array.apply(&set)`), and the methods that return a permit take
/// the set.
///
/// # Examples
/// The reader's side of a lock made of two semaphores, 0 for writers and 1 for readers:
/// ```
/// use ulocks_semarray::{SemArray, Set};
///
/// let array = SemArray::new(2);
/// let reading = array.acquire(Set::new().wait_zero(0).add(1, 1))?;
/// assert_eq!(array.values(), [0, 1]);
/// drop(reading); // gives back what the set took
/// assert_eq!(array.values(), [0, 0]);
/// # Ok::<_, ulocks_semarray::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Set(SmallVec<[Op; 8]>);

impl Set {
    /// No operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds this operation at the end.
    #[must_use]
    #[inline]
    pub fn op(mut self, op: Op) -> Self {
        self.0.push(op);
        self
    }

    /// Adds [`Op::add`] at the end.
    #[must_use]
    #[inline]
    pub fn add(self, index: usize, amount: u32) -> Self {
        self.op(Op::add(index, amount))
    }

    /// Adds [`Op::sub`] at the end.
    #[must_use]
    #[inline]
    pub fn sub(self, index: usize, amount: u32) -> Self {
        self.op(Op::sub(index, amount))
    }

    /// Adds [`Op::wait_zero`] at the end.
    #[must_use]
    #[inline]
    pub fn wait_zero(self, index: usize) -> Self {
        self.op(Op::wait_zero(index))
    }

    /// Makes the last operation one without waiting: [`Op::no_wait`].
    #[must_use]
    #[inline]
    pub fn no_wait(mut self) -> Self {
        if let Some(last) = self.0.last_mut() {
            *last = last.no_wait();
        }
        self
    }
}

impl Deref for Set {
    type Target = [Op];
    fn deref(&self) -> &[Op] {
        &self.0
    }
}

impl From<Op> for Set {
    fn from(op: Op) -> Self {
        Self::new().op(op)
    }
}

impl From<&[Op]> for Set {
    fn from(ops: &[Op]) -> Self {
        Self(SmallVec::from_slice(ops))
    }
}

impl<const N: usize> From<[Op; N]> for Set {
    fn from(ops: [Op; N]) -> Self {
        Self::from(&ops[..])
    }
}

impl<const N: usize> From<&[Op; N]> for Set {
    fn from(ops: &[Op; N]) -> Self {
        Self::from(&ops[..])
    }
}

impl FromIterator<Op> for Set {
    fn from_iter<I: IntoIterator<Item = Op>>(ops: I) -> Self {
        Self(ops.into_iter().collect())
    }
}

impl Extend<Op> for Set {
    fn extend<I: IntoIterator<Item = Op>>(&mut self, ops: I) {
        self.0.extend(ops);
    }
}
