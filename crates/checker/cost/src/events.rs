//! What will happen, in the order of time. What is to happen at the same time happens in the order
//! it was decided.

use super::units::Ps;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to a thread or a CPU. The numbers say to which of its doings; if it has
/// gone on to another meanwhile, nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The thread goes on.
    Go { thread: usize, step: u64 },
    /// The time slice on the CPU is over.
    Slice { cpu: usize, slice: u64 },
    /// The thread's sleep has lasted long enough.
    Timeout { thread: usize, sleep: u64 },
    /// The warm-up is over.
    Measure,
}

/// The events to come.
#[derive(Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(Ps, u64, Event)>>,
    decided: u64,
}

impl Events {
    pub(super) fn push(&mut self, time: Ps, event: Event) {
        self.heap.push(Reverse((time, self.decided, event)));
        self.decided += 1;
    }

    pub(super) fn pop(&mut self) -> Option<(Ps, Event)> {
        self.heap.pop().map(|Reverse((time, _, event))| (time, event))
    }

    /// Whether nothing happens before `time` or at it.
    pub(super) fn none_until(&self, time: Ps) -> bool {
        self.heap.peek().is_none_or(|Reverse(next)| time < next.0)
    }
}
