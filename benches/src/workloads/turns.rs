//! The loop of 2002: outside, lock, inside, unlock; both times uniform in [0.5x, 1.5x].

use super::*;

/// The loop of 2002: outside, lock, inside, unlock; both times uniform in [0.5x, 1.5x].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    /// Times inside and outside.
    pub times: Times,
    /// The contenders.
    pub workers: Workers,
    /// Percentage of acquisitions that are shared.
    pub read_share: u8,
    /// Lock instances; worker i uses lock i % locks.
    pub locks: u32,
    /// Whether each acquisition is timed: then the outcome has waits.
    pub timed: bool,
    /// The window lasts so long at least.
    pub least_ms: u64,
    /// Whether the subject counts its own events, as its twin with counters inside; then the outcome has contention and sleeps.
    pub counted: bool,
    /// How long the subject spins, instead of its own patience; subjects with a fixed patience only.
    pub patience_ns: Option<u32>,
}

impl Turns {
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
