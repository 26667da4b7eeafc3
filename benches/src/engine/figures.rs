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

macro_rules! figures {
    ($($id:ident $name:literal $title:literal $unit:ident $better:ident $about:literal;)*) => {
        $(#[doc = $about] pub const $id: Figure = Figure {
            name: $name,
            title: $title,
            unit: Unit::$unit,
            more_is_better: figures!(@ $better),
            about: $about,
        };)*

        /// Every kind of figure.
        pub const ALL: &[Figure] = &[$($id),*];
    };
    (@ more) => { true };
    (@ less) => { false };
}

figures! {
    RATE "rate" "rate" PerSecond more "Operations a second of all workers together.";
    HOG_RATE "hog-rate" "hogs' rate" PerSecond more "Holds of all hogs a second.";
    CPU "cpu" "CPU/op" Nanoseconds less "User and system time of all workers for an operation, work included.";
    SYSTEM "system" "system/op" Nanoseconds less "Time in the kernel for an operation.";
    COV "cov" "COV" Number less "Standard deviation by mean of the workers' operations; 0 is fair.";
    LEAST "least" "least" Share more "Operations of the least served worker by the mean of all.";
    MOST "most" "most" Share less "Operations of the best served worker by the mean of all.";
    STARVED "starved" "hardly ran" Share less "Workers with less than a tenth of the mean.";
    WAIT_MIN "wait-min" "min wait" Nanoseconds less "The shortest wait of an acquisition.";
    WAIT_MEAN "wait-mean" "mean wait" Nanoseconds less "Mean wait of an acquisition.";
    WAIT_P50 "wait-p50" "p50" Nanoseconds less "Median wait of an acquisition.";
    WAIT_P99 "wait-p99" "p99" Nanoseconds less "99th percentile of the waits of acquisitions.";
    WAIT_P999 "wait-p99.9" "p99.9" Nanoseconds less "99.9th percentile of the waits of acquisitions.";
    WAIT_MAX "wait-max" "longest wait" Nanoseconds less "The longest wait, also one that the end of the window cut off.";
    WAIT_NOW "wait-now" "wait of a moment" Nanoseconds less "The wait that a thread which waits at a random moment is in: the mean weighted by length.";
    LOCK "lock" "lock" Nanoseconds less "An acquisition, uncontended, in the best of many batches.";
    UNLOCK "unlock" "unlock" Nanoseconds less "A release, uncontended, in the best of many batches.";
    UNLOCK_MIN "unlock-min" "min unlock" Nanoseconds less "The shortest release.";
    UNLOCK_MEAN "unlock-mean" "mean unlock" Nanoseconds less "Mean time of a release.";
    UNLOCK_MAX "unlock-max" "longest unlock" Nanoseconds less "The longest release.";
    ITERATIONS "iterations" "iterations" Number more "Acquisitions in the window.";
    ATTEMPTS "attempts" "attempts" Number less "Attempts in the window; more than acquisitions where threads only try.";
    FAILURES "failures" "gave up" Number less "How often a thread that tries gave up in the window.";
    CLOCK_MIN "clock-min" "min clock" Nanoseconds less "The shortest of two clock reads with nothing between.";
    CLOCK_MEAN "clock-mean" "clock" Nanoseconds less "The median of two clock reads with nothing between, which is subtracted from each delay.";
    CLOCK_MAX "clock-max" "longest clock" Nanoseconds less "The longest of two clock reads with nothing between.";
    PAIR "pair" "pair" Nanoseconds less "An acquisition and its release, uncontended.";
    RECOVERY "recovery" "recovery" Nanoseconds less "From a holder's death to the next acquisition, the median.";
    RECOVERY_MAX "recovery-max" "longest recovery" Nanoseconds less "The longest time from a holder's death to the next acquisition.";
    CONTENDED "contended" "contended" Share less "Exclusive acquisitions that found the lock taken.";
    READ_CONTENDED "read-contended" "reads contended" Share less "Shared acquisitions that found the lock taken.";
    SPUN "spun" "spun" Share more "Contended acquisitions that ended without a sleep.";
    REENTRIES "reentries" "sleeps" Number less "Entries into the kernel to sleep for a contended acquisition.";
    FUTEXES "futexes" "futex calls/op" Number less "Calls to sleep and to wake for an operation.";
    SLEEP_CALLS "sleep-calls" "sleep calls" Number less "Calls to sleep for an operation.";
    WAKE_CALLS "wake-calls" "wake calls" Number less "Calls to wake for an operation.";
    REFUSED "refused" "refused" Share less "Calls to sleep that the kernel refused because the word had changed.";
    SWITCHES "switches" "switches/op" Number less "Context switches for an operation.";
    CALLS "calls" "calls/op" Number less "System calls of the poster for a post.";
    SHARE "share" "share" Number more "Turns of the thread beside the others by the mean of the others.";
    MASKED_TIMES "masked-times" "times masked" Number less "How often signals were kept off, the warm-up included.";
    MASKED_MIN "masked-min" "min masked" Nanoseconds less "The shortest that signals were kept off a thread.";
    MASKED_MEAN "masked-mean" "mean masked" Nanoseconds less "How long signals were kept off a thread, on average.";
    MASKED_MAX "masked-max" "longest masked" Nanoseconds less "The longest that signals were kept off a thread.";
    HELD_OFF_MIN "held-off-min" "min held off" Nanoseconds less "The shortest of that, without the time for which the thread was ready and had no CPU.";
    HELD_OFF_MEAN "held-off-mean" "mean held off" Nanoseconds less "The mean of that, without the time for which the thread was ready and had no CPU.";
    HELD_OFF_MAX "held-off-max" "longest held off" Nanoseconds less "The longest of that, without the time for which the thread was ready and had no CPU.";
    DELIVERY_MIN "delivery-min" "min delivery" Nanoseconds less "The shortest from the expiry of a timer to the entry of its handler.";
    DELIVERY_MEAN "delivery-mean" "mean delivery" Nanoseconds less "From the expiry of a timer to the entry of its handler, on average.";
    DELIVERY_MAX "delivery-max" "longest delivery" Nanoseconds less "The longest from the expiry of a timer to the entry of its handler.";
    FIRST "first" "first done" Nanoseconds less "When the first worker had done its operations.";
    LAST "last" "last done" Nanoseconds less "When the last worker had done its operations.";
    MEAN_DONE "mean-done" "mean done" Nanoseconds less "When workers had done their operations, on average.";
    BUSY "busy" "CPUs used" Share less "CPU time by the time that the CPUs had.";
    OP_COST "op-cost" "cost/op" Nanoseconds less "Mean time of an operation as its task sees it.";
    OP_DEVIANCE "op-deviance" "deviance/op" Nanoseconds less "Mean difference between the time of an operation and of the one before.";
}

impl Figure {
    /// The kind of the figure called `name` in a record.
    pub fn find(name: &str) -> Option<Self> {
        let kind = name.rsplit('/').next()?;
        ALL.iter().copied().find(|figure| figure.name == kind)
    }
}
