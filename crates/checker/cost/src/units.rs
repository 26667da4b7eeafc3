//! Time in whole picoseconds, so that sums do not depend on their order; and sets of CPUs.

use super::machine::{MOST_CPUS, Machine};
use std::ops::Range;

/// Picoseconds: 2^64 of them are seven months.
pub(super) type Ps = u64;

/// Nanoseconds of a parameter, rounded.
pub(super) fn ps(ns: f64) -> Ps {
    (ns * 1e3).round() as Ps
}

/// For people.
pub(super) fn ns(time: Ps) -> f64 {
    time as f64 / 1e3
}

/// The parameters of a machine in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub(super) hit: Ps,
    pub(super) rmw: Ps,
    pub(super) fence: Ps,
    /// By [`Distance`](super::machine::Distance).
    pub(super) transfer: [Ps; 3],
    pub(super) memory: Ps,
    pub(super) read_occupancy: Ps,
    pub(super) request_share: f64,
    pub(super) migratory: bool,
    pub(super) store_buffer: bool,
    pub(super) pause: Ps,
    pub(super) clock_read: Ps,
    pub(super) futex: Ps,
    pub(super) queue: Ps,
    pub(super) walk: Ps,
    pub(super) block: Ps,
    pub(super) wake: Ps,
    pub(super) interrupt: Ps,
    pub(super) wake_latency: Ps,
    pub(super) timer_slack: Ps,
    pub(super) spawn: Ps,
    pub(super) slice: Ps,
    pub(super) wake_preemption: bool,
    pub(super) context_switch: Ps,
    pub(super) migration: Ps,
}

impl Costs {
    pub(super) fn of(machine: &Machine) -> Self {
        let (m, k, s) = (&machine.memory, &machine.kernel, &machine.scheduler);
        Self {
            hit: ps(m.hit),
            rmw: ps(m.rmw),
            fence: ps(m.fence),
            transfer: [ps(m.same_complex), ps(m.same_socket), ps(m.cross_socket)],
            memory: ps(m.memory),
            read_occupancy: ps(m.read_occupancy),
            request_share: m.request_share,
            migratory: m.migratory,
            store_buffer: m.store_buffer,
            pause: ps(m.pause),
            clock_read: ps(m.clock_read),
            futex: ps(k.futex),
            queue: ps(k.queue),
            walk: ps(k.walk),
            block: ps(k.block),
            wake: ps(k.wake),
            interrupt: ps(k.interrupt),
            wake_latency: ps(k.wake_latency),
            timer_slack: ps(k.timer_slack),
            spawn: ps(k.spawn),
            slice: ps(s.slice),
            wake_preemption: s.wake_preemption,
            context_switch: ps(s.context_switch),
            migration: ps(s.migration),
        }
    }

    /// The part of a transfer in which its request travels.
    pub(super) fn request(&self, transfer: Ps) -> Ps {
        (transfer as f64 * self.request_share).round() as Ps
    }
}

/// A set of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuSet([u64; MOST_CPUS / 64]);

impl CpuSet {
    pub(super) fn insert(&mut self, cpu: usize) {
        self.0[cpu / 64] |= 1 << (cpu % 64);
    }

    pub(super) fn remove(&mut self, cpu: usize) {
        self.0[cpu / 64] &= !(1 << (cpu % 64));
    }

    pub(super) fn contains(&self, cpu: usize) -> bool {
        self.0[cpu / 64] >> (cpu % 64) & 1 == 1
    }

    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The lowest of those in `range`.
    pub(super) fn first_in(&self, range: Range<usize>) -> Option<usize> {
        let mut from = range.start;
        while from < range.end {
            let word = self.0[from / 64] >> (from % 64);
            if word != 0 {
                let cpu = from + word.trailing_zeros() as usize;
                return (cpu < range.end).then_some(cpu);
            }
            from = (from / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_finds_its_first_in_a_range() {
        let mut set = CpuSet::default();
        for cpu in [3, 63, 64, 700] {
            set.insert(cpu);
        }
        assert_eq!(set.len(), 4);
        assert_eq!(set.first_in(0..1024), Some(3));
        assert_eq!(set.first_in(4..64), Some(63));
        assert_eq!(set.first_in(4..63), None);
        assert_eq!(set.first_in(64..65), Some(64));
        assert_eq!(set.first_in(65..700), None);
        assert_eq!(set.first_in(65..1024), Some(700));
        set.remove(64);
        assert!(!set.contains(64) && set.contains(63));
    }
}
