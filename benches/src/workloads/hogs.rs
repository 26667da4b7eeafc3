//! Threads that hold a lock nearly always, and threads that want it now and then.

use super::*;

/// Threads that hold a lock nearly always, and threads that want it now and then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hogs {
    /// Threads that always hold it or want it.
    pub hogs: u32,
    /// Threads that want it now and then.
    pub victims: u32,
    /// How long a hog holds it, in nanoseconds.
    pub hold_ns: u64,
    /// Whether all run on one CPU, instead of being dealt to all in turn, hogs first.
    pub together: bool,
}

impl Hogs {
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
