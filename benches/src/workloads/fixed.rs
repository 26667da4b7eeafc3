//! The program of 2016: each thread does a number of operations.

use super::*;

/// The program of 2016: each thread does a number of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fixed {
    /// How many threads.
    pub threads: u32,
    /// Operations of each.
    pub operations: u64,
    /// What is done inside: nothing but a loop of so many pauses, or a sleep of so many nanoseconds.
    pub inside: Inside,
}

impl Fixed {
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

/// What is done inside the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inside {
    /// A short section: so many pauses.
    Pauses(u32),
    /// A sleep of so many nanoseconds.
    Sleep(u64),
}
