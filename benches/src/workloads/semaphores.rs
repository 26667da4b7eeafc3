//! Stub.

use super::*;

/// Stub.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Stub.
    pub stub: u32,
}

impl Run {
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
