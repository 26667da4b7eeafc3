//! [`Builder`]: an array with other limits or another order of service than the defaults.

use crate::Error;
use crate::array::SemArrayWith;
use crate::raw::{Fairness, RawSemArray};
use ulocks_core::policy::InOneProcess;

/// Makes arrays with other limits, or another fairness, than the defaults.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_semarray::{Builder, Fairness, SemArray};
///
/// let array: SemArray = Builder::with_values([100_000, 1])
///     .limit(1_000_000)
///     .max_ops(2_000)
///     .fairness(Fairness::Strict { after: Duration::from_millis(1) })
///     .build()?;
/// # assert_eq!(array.values(), [100_000, 1]);
/// # Ok::<_, ulocks_semarray::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes an array only when `build` is called"]
pub struct Builder {
    values: Vec<u32>,
    limit: u32,
    max_ops: usize,
    fairness: Fairness,
}

impl Builder {
    /// The default for the greatest value of a semaphore: 32,767, as in System V.
    pub const LIMIT: u32 = 32_767;
    /// The default for the greatest number of operations in a set: 500, as in System V.
    pub const MAX_OPS: usize = 500;
    /// The greatest limit there is: 134,217,727.
    pub const GREATEST_LIMIT: u32 = crate::raw::GREATEST_LIMIT;

    /// `len` semaphores, all of them zero.
    pub fn new(len: usize) -> Self {
        Self::with_values(vec![0; len])
    }

    /// Semaphores with these values.
    pub fn with_values(values: impl Into<Vec<u32>>) -> Self {
        Self {
            values: values.into(),
            limit: Self::LIMIT,
            max_ops: Self::MAX_OPS,
            fairness: Fairness::Barging,
        }
    }

    /// The greatest value a semaphore can have. The default is [`LIMIT`](Self::LIMIT).
    pub fn limit(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    /// The greatest number of operations in a set, at least one and at most 2^29. The default is
    /// [`MAX_OPS`](Self::MAX_OPS).
    pub fn max_ops(self, max_ops: usize) -> Self {
        Self { max_ops: max_ops.max(1), ..self }
    }

    /// Which sets may pass which. The default is [`Fairness::Barging`].
    pub fn fairness(self, fairness: Fairness) -> Self {
        Self { fairness, ..self }
    }

    /// Makes the array. The type of the result says which policy it has.
    ///
    /// # Errors
    /// [`Error::ValueOutOfRange`] if a value is greater than the limit; [`Error::LimitOutOfRange`]
    /// if the limit is greater than [`GREATEST_LIMIT`](Self::GREATEST_LIMIT).
    pub fn build<P: InOneProcess>(self) -> Result<SemArrayWith<P>, Error> {
        let limit = self.limit;
        if limit > Self::GREATEST_LIMIT {
            return Err(Error::LimitOutOfRange { limit, greatest: Self::GREATEST_LIMIT });
        }
        if let Some(index) = self.values.iter().position(|&value| value > limit) {
            return Err(Error::ValueOutOfRange { index, limit });
        }
        Ok(SemArrayWith(RawSemArray::new(&self.values, limit, self.max_ops, self.fairness)))
    }
}
