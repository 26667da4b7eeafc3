//! An acquisition and its release, uncontended.

use super::*;

/// An acquisition and its release, uncontended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pairs {
    /// Whether they are shared acquisitions.
    pub reads: bool,
    /// Whether the locks are those between processes.
    pub processes: bool,
}

impl Pairs {
    /// Workers that it starts.
    pub fn workers(self) -> u32 {
        todo!()
    }

    /// How long its window is where that of the plan is `window_ms`.
    pub fn window_ms(self, window_ms: u64) -> u64 {
        window_ms
    }

    /// Carries it out in this process.
    pub fn carry_out(self, _: &[String], _: &Conditions) -> Result<Vec<Outcome>> {
        todo!()
    }
}
