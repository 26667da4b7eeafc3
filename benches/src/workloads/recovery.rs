//! A holder that is killed while other processes sleep for its lock.

use super::*;

/// A holder that is killed while other processes sleep for its lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// How many sleep.
    pub sleepers: u32,
}

impl Recovery {
    /// Workers that it starts.
    pub fn workers(self) -> u32 {
        todo!()
    }

    /// How long its window is where that of the plan is `window_ms`.
    pub fn window_ms(self, window_ms: u64) -> u64 {
        window_ms
    }

    /// Carries it out in this process.
    pub fn carry_out(self, _: &str, _: &Conditions) -> Result<Outcome> {
        todo!()
    }
}
