//! The kernel's table of sleepers: a queue for each futex, first come, first served.
//!
//! A thread that is put into the table is found by wake-ups from then on, also while its CPU is
//! still busy putting it to sleep. A sleeper of `futex_waitv` stands in several queues; the call
//! that takes it from one removes it from the others.

use super::units::Ps;
use std::collections::{HashMap, VecDeque};
use ulocks_vm::engine::Key;

/// A thread in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sleeper {
    pub(super) thread: usize,
    /// The number of its sleep.
    pub(super) sleep: u64,
    /// The mask that a wake-up has to have a bit in common with.
    pub(super) bits: u32,
    /// Which entry of its wait this is.
    pub(super) entry: usize,
}

#[derive(Debug, Default)]
struct Queue {
    /// Until when a call has the queue to itself.
    busy: Ps,
    sleepers: VecDeque<Sleeper>,
}

/// All queues. Never iterated: addresses differ between runs.
#[derive(Debug, Default)]
pub(super) struct Futexes {
    queues: HashMap<Key, Queue>,
}

impl Futexes {
    /// A call that reaches the queue at `now` keeps it for `hold`. When it is done.
    pub(super) fn occupy(&mut self, key: Key, now: Ps, hold: Ps) -> Ps {
        let queue = self.queues.entry(key).or_default();
        queue.busy = queue.busy.max(now) + hold;
        queue.busy
    }

    pub(super) fn enqueue(&mut self, key: Key, sleeper: Sleeper) {
        self.queues.entry(key).or_default().sleepers.push_back(sleeper);
    }

    pub(super) fn remove(&mut self, key: Key, thread: usize) {
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.sleepers.retain(|sleeper| sleeper.thread != thread);
        }
    }

    /// Takes up to `count` sleepers that have a bit in common with `bits`, and says how many were
    /// looked at.
    pub(super) fn take(&mut self, key: Key, count: u32, bits: u32) -> (Vec<Sleeper>, usize) {
        let Some(queue) = self.queues.get_mut(&key) else { return (Vec::new(), 0) };
        let (mut taken, mut looked, mut place) = (Vec::<Sleeper>::new(), 0, 0);
        while taken.len() < count as usize
            && let Some(&sleeper) = queue.sleepers.get(place)
        {
            looked += 1;
            // A thread that waits for one futex twice is woken once; its caller removes the rest of
            // it.
            if sleeper.bits & bits != 0 && taken.iter().all(|other| other.thread != sleeper.thread) {
                queue.sleepers.remove(place);
                taken.push(sleeper);
            } else {
                place += 1;
            }
        }
        (taken, looked)
    }

    /// Moves up to `count` sleepers to the end of another queue, in order. Returns the moved ones.
    pub(super) fn requeue(&mut self, from: Key, count: u32, to: Key) -> Vec<Sleeper> {
        let Some(queue) = self.queues.get_mut(&from) else { return Vec::new() };
        let count = queue.sleepers.len().min(count as usize);
        let moved: Vec<_> = queue.sleepers.drain(..count).collect();
        self.queues.entry(to).or_default().sleepers.extend(&moved);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Key = Key { address: 64, private: true };
    const OTHER: Key = Key { address: 128, private: true };

    fn table(bits: &[u32]) -> Futexes {
        let mut table = Futexes::default();
        for (thread, &bits) in bits.iter().enumerate() {
            table.enqueue(ONE, Sleeper { thread, sleep: 0, bits, entry: 0 });
        }
        table
    }

    fn threads(sleepers: &[Sleeper]) -> Vec<usize> {
        sleepers.iter().map(|sleeper| sleeper.thread).collect()
    }

    #[test]
    fn the_longest_sleeper_with_a_bit_in_common_is_taken() {
        let mut table = table(&[1, 2, 3, 2]);
        let (taken, looked) = table.take(ONE, 2, 2);
        assert_eq!((threads(&taken), looked), (vec![1, 2], 3));
        let (taken, looked) = table.take(ONE, 9, 4);
        assert_eq!((threads(&taken), looked), (vec![], 2));
        assert_eq!(threads(&table.take(ONE, 9, !0).0), [0, 3]);
        assert_eq!(table.take(OTHER, 1, !0), (vec![], 0));
    }

    #[test]
    fn private_and_shared_are_two_futexes() {
        let mut table = table(&[1]);
        assert_eq!(table.take(Key { private: false, ..ONE }, 1, !0).0, []);
        assert_eq!(table.take(ONE, 1, !0).0.len(), 1);
    }

    #[test]
    fn the_moved_stand_behind_those_who_were_there() {
        let mut table = table(&[1, 1, 1]);
        table.enqueue(OTHER, Sleeper { thread: 7, sleep: 0, bits: 1, entry: 0 });
        assert_eq!(threads(&table.requeue(ONE, 2, OTHER)), [0, 1]);
        assert_eq!(threads(&table.take(OTHER, 9, 1).0), [7, 0, 1]);
        assert_eq!(threads(&table.take(ONE, 9, 1).0), [2]);
    }

    #[test]
    fn a_queue_serves_one_call_after_the_other() {
        let mut table = Futexes::default();
        assert_eq!(table.occupy(ONE, 100, 50), 150);
        assert_eq!(table.occupy(ONE, 120, 50), 200);
        assert_eq!(table.occupy(OTHER, 120, 50), 170);
    }
}
