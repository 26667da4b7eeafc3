//! Sets of operations that no other thread stands in the way of, taken and given back.

use super::*;

/// Sets of operations that no other thread stands in the way of, taken and given back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sets {
    /// Operations of a set, or semaphores.
    pub ops: u32,
    /// Whether they are single operations on so many semaphores, one after the other.
    pub one_by_one: bool,
}

impl Sets {
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
