//! The arrays of this crate.

#[path = "convert.rs"]
mod convert;

pub use convert::{outcome, set};

use crate::crew::{Patience, Subject};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Builder, Fairness, RawSemArray, Wait};
use ulocks_testkit::sets::{self, Outcome, Waiters};

/// Sleepers sleep at once.
pub type Sleeps = Private<NoSpin>;

/// An array of these values.
pub fn array(values: &[u32], limit: u32, fairness: Fairness) -> RawSemArray<Sleeps> {
    RawSemArray::new(values, limit, Builder::MAX_OPS, fairness)
}

impl Subject for RawSemArray<Sleeps> {
    fn apply(&self, ops: &[sets::Op], patience: Patience) -> Outcome {
        let wait = match patience {
            Patience::None => Wait::No,
            Patience::Short => Wait::Until(Some(Deadline::after(Duration::from_micros(50)))),
            Patience::Endless => Wait::Interruptible(None),
        };
        outcome(self.apply(&set(ops), wait))
    }

    fn set(&self, index: usize, value: u32) -> Outcome {
        outcome(self.set(index, value))
    }

    fn set_all(&self, values: &[u32]) -> Outcome {
        outcome(self.set_all(values))
    }

    fn give_back(&self, ops: &[sets::Op]) {
        // An array that was closed takes nothing back.
        _ = self.give_back(&set(ops));
    }

    fn close(&self) {
        self.close();
    }

    fn values(&self) -> Vec<u32> {
        self.values()
    }

    fn waiters(&self) -> Vec<Waiters> {
        let at = |index| {
            let ulocks_semarray::Waiters { increase, zero } = self.waiters(index).expect("an index in range");
            Waiters { increase, zero }
        };
        (0..self.len()).map(at).collect()
    }
}
