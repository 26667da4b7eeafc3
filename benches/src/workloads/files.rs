//! The program of 2005: tasks in one directory.

use super::*;

/// The program of 2005: tasks in one directory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// How many tasks.
    pub tasks: u32,
    /// Whether a task creates, unlinks and closes files, instead of adding one to a number.
    pub files: bool,
}

impl Files {
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
