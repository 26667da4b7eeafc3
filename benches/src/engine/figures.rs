//! The figures that trials give: their names in records, their units, and what is better.

/// What a figure is counted in, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events a second; the geometric mean is over rounds, and two modes are shown as two.
    PerSecond,
    /// Nanoseconds; the median is over rounds.
    Nanoseconds,
    /// A number without a unit; the median is over rounds.
    Number,
    /// A part of a whole, shown in per cent; the median is over rounds.
    Share,
}

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in records. `urgent/wait-p99.9` is the figure `wait-p99.9` of the urgent readers.
    pub name: &'static str,
    /// The head of its column.
    pub title: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// What it means, in one sentence; legends are made of these.
    pub about: &'static str,
}

// Which is better.
const MORE: bool = true;
const LESS: bool = false;

macro_rules! figures {
    ($($name:literal $title:literal $unit:ident $better:ident $about:literal;)*) => {
        /// Every kind of figure.
        pub const ALL: &[Figure] = &[$(Figure {
            name: $name,
            title: $title,
            unit: Unit::$unit,
            more_is_better: $better,
            about: $about,
        }),*];
    };
}

figures! {
    "rate" "rate" PerSecond MORE "Operations a second of all workers together.";
    "hog-rate" "hogs' rate" PerSecond MORE "Holds of all hogs a second.";
    "cpu" "CPU/op" Nanoseconds LESS "User and system time of all workers for an operation, work included.";
    "system" "system/op" Nanoseconds LESS "Time in the kernel for an operation.";
    "cov" "COV" Number LESS "Standard deviation by mean of the workers' operations; 0 is fair.";
    "least" "least" Share MORE "Operations of the least served worker by the mean of all.";
    "most" "most" Share LESS "Operations of the best served worker by the mean of all.";
    "starved" "hardly ran" Share LESS "Workers with less than a tenth of the mean.";
    "wait-min" "min wait" Nanoseconds LESS "The shortest wait of an acquisition.";
    "wait-mean" "mean wait" Nanoseconds LESS "Mean wait of an acquisition.";
    "wait-p50" "p50" Nanoseconds LESS "Median wait of an acquisition.";
    "wait-p99" "p99" Nanoseconds LESS "99th percentile of the waits of acquisitions.";
    "wait-p99.9" "p99.9" Nanoseconds LESS "99.9th percentile of the waits of acquisitions.";
    "wait-max" "longest wait" Nanoseconds LESS "The longest wait, also one that the end of the window cut off.";
    "wait-now" "wait of a moment" Nanoseconds LESS "The wait that a thread which waits at a random moment is in: the mean weighted by length.";
    "unlock-min" "min unlock" Nanoseconds LESS "The shortest release.";
    "unlock-mean" "mean unlock" Nanoseconds LESS "Mean time of a release.";
    "unlock-max" "longest unlock" Nanoseconds LESS "The longest release.";
    "iterations" "iterations" Number MORE "Acquisitions in the window.";
    "clock-min" "min clock" Nanoseconds LESS "The shortest of two clock reads with nothing between.";
    "clock-mean" "clock" Nanoseconds LESS "The median of two clock reads with nothing between, which is subtracted from each delay.";
    "clock-max" "longest clock" Nanoseconds LESS "The longest of two clock reads with nothing between.";
    "pair" "pair" Nanoseconds LESS "An acquisition and its release, uncontended: the median of blocks; in the row psrw the best batch.";
    "recovery" "recovery" Nanoseconds LESS "From a holder's death to the next acquisition, the median.";
    "recovery-max" "longest recovery" Nanoseconds LESS "The longest time from a holder's death to the next acquisition.";
    "contended" "contended" Share LESS "Exclusive acquisitions that found the lock taken.";
    "spun" "spun" Share MORE "Contended acquisitions that ended without a sleep.";
    "reentries" "sleeps" Number LESS "Entries into the kernel to sleep for a contended acquisition.";
    "futexes" "futex calls/op" Number LESS "Calls to sleep and to wake for an operation.";
    "sleep-calls" "sleep calls" Number LESS "Calls to sleep for an operation.";
    "wake-calls" "wake calls" Number LESS "Calls to wake for an operation.";
    "refused" "refused" Share LESS "Calls to sleep that the kernel refused because the word had changed.";
    "switches" "switches/op" Number LESS "Context switches for an operation.";
    "calls" "calls/op" Number LESS "System calls of the poster for a post.";
    "share" "share" Number MORE "Turns of the thread beside the others by the mean of the others.";
    "masked-times" "times masked" Number LESS "How often signals were kept off, the warm-up included.";
    "masked-min" "min masked" Nanoseconds LESS "The shortest that signals were kept off a thread.";
    "masked-mean" "mean masked" Nanoseconds LESS "How long signals were kept off a thread, on average.";
    "masked-max" "longest masked" Nanoseconds LESS "The longest that signals were kept off a thread.";
    "held-off-min" "min held off" Nanoseconds LESS "The shortest of that, without the time for which the thread was ready and had no CPU.";
    "held-off-mean" "mean held off" Nanoseconds LESS "The mean of that, without the time for which the thread was ready and had no CPU.";
    "held-off-max" "longest held off" Nanoseconds LESS "The longest of that, without the time for which the thread was ready and had no CPU.";
    "first" "first done" Nanoseconds LESS "When the first worker had done its operations.";
    "last" "last done" Nanoseconds LESS "When the last worker had done its operations.";
    "mean-done" "mean done" Nanoseconds LESS "When workers had done their operations, on average.";
    "busy" "CPUs used" Share LESS "CPU time by the time that the CPUs had.";
    "op-cost" "cost/op" Nanoseconds LESS "Mean time of an operation as its task sees it.";
    "op-deviance" "deviance/op" Nanoseconds LESS "Mean difference between the time of an operation and of the one before.";
}

impl Figure {
    /// The kind of the figure called `name` in a record.
    pub fn find(name: &str) -> Option<Self> {
        let kind = name.rsplit('/').next()?;
        ALL.iter().copied().find(|figure| figure.name == kind)
    }
}
