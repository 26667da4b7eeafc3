//! The figures that are read off trials.

use serde::{Deserialize, Serialize};

/// What is read off a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Operations, or hand-overs, a second.
    PerSecond,
    /// Standard deviation over mean of the threads' operations.
    Cov,
    /// Holds of all hogs a second.
    HogsPerSecond,
    /// A victim's longest wait, nanoseconds.
    WorstWait,
    /// 99th percentile of the victims' waits, nanoseconds.
    WaitP99,
    /// Median of the victims' waits, nanoseconds.
    WaitP50,
    /// From a holder's death to the next acquisition, the median, nanoseconds.
    Recovery,
    /// The longest of these times, of all rounds.
    SlowestRecovery,
    /// A lock and unlock, or a set and its opposite, nanoseconds.
    PairNs,
    /// CPU time of all workers per operation, the work inside and outside included, nanoseconds.
    CpuPerOp,
    /// System calls of the poster per post. None at all count as one, in the whole window.
    CallsPerOp,
    /// Turns of the thread beside the others, by the mean of the others. None at all count as one.
    Share,
    /// Context switches of the whole process per operation. None at all count as one, in the whole
    /// window.
    SwitchesPerOp,
    /// Calls to sleep and to wake per operation. None at all count as one, in the whole window:
    /// less cannot be seen.
    FutexesPerOp,
    /// 99.9th percentile of what readers of the class that is looked at wait, nanoseconds.
    TopP999,
    /// 99th percentile of that.
    TopP99,
    /// Writes of all that do not only try, a second.
    WritesPerSecond,
    /// The longest that signals were kept off a writer, nanoseconds.
    MaskedMax,
}

impl Figure {
    /// Whether it is a rate, which may have two modes. Waits differ by more than that in every
    /// lock.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::PerSecond | Self::HogsPerSecond | Self::WritesPerSecond)
    }
}
