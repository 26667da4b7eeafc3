//! How many waiters of a condition variable spin, and whether it was of use lately.

use crate::lock::spin::{PROBE, TRIES};

/// Nine bits of a word of a condition variable.
///
/// | part | bits | law |
/// |---|---|---|
/// | `spinning` | 2 | waiters that spin: counted by a waiter before it spins, and by the same waiter when it ends |
/// | `process` | 2 | the process to which `spinning` belongs, see [`spin::process`](crate::spin::process) |
/// | `failed` | 5 | below `TRIES`: failed spins in a row. From `TRIES` on: waits since then that did not spin |
///
/// `failed` is a hint: no wake-up relies on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spins(pub u32);

impl Spins {
    pub const BITS: u32 = 9;
    /// The most waiters that spin at a time. On two CPUs one of them served 4 producers and 4
    /// consumers half as fast as three did.
    pub const MOST: u32 = 3;

    const PROCESS_SHIFT: u32 = 2;
    const FAILED_SHIFT: u32 = 4;

    fn field(self, shift: u32, most: u32) -> u32 {
        self.0 >> shift & most
    }

    fn with_field(self, shift: u32, most: u32, value: u32) -> Self {
        Self(self.0 & !(most << shift) | (value & most) << shift)
    }

    pub fn is_of(self, process: u32) -> bool {
        self.field(Self::PROCESS_SHIFT, 3) == process & 3
    }

    /// As `process` finds it, which has none of the spinners of its parent.
    pub fn seen_in(self, process: u32) -> Self {
        if self.is_of(process) {
            return self;
        }
        self.with_field(0, 3, 0).with_field(Self::PROCESS_SHIFT, 3, process)
    }

    /// How many spin, in whichever process.
    pub fn spinning(self) -> u32 {
        self.field(0, 3)
    }

    /// How many spin in `process`.
    pub fn spinners(self, process: u32) -> u32 {
        if self.is_of(process) { self.spinning() } else { 0 }
    }

    pub fn failed(self) -> u32 {
        self.field(Self::FAILED_SHIFT, PROBE)
    }

    fn with_failed(self, failed: u32) -> Self {
        self.with_field(Self::FAILED_SHIFT, PROBE, failed)
    }

    /// With a waiter that would spin in `process`, and whether it does.
    pub fn with_spinner(self, process: u32) -> (Self, bool) {
        if (TRIES..PROBE).contains(&self.failed()) {
            return (self.with_failed(self.failed() + 1), false);
        }
        let others = self.spinners(process);
        if others == Self::MOST {
            return (self, false);
        }
        (self.seen_in(process).with_field(0, 3, others + 1), true)
    }

    /// Without a spinner, which was notified or whose spin failed.
    pub fn without_spinner(self, notified: bool) -> Self {
        let failed = match self.failed() {
            _ if notified => 0,
            failed if failed >= TRIES => TRIES,
            failed => failed + 1,
        };
        // Zero only in a child whose one thread forked, in a signal handler, from inside of the
        // spin.
        self.with_field(0, 3, self.spinning().saturating_sub(1)).with_failed(failed)
    }
}
