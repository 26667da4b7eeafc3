//! Wakers of the groups: the list of completed waiters, and the calls that wake them.

use super::{FEW, PER_CPU, Seat, group, own_cpu};
use core::fmt;
use ulocks_core::futex::Bits;
use ulocks_core::sync::Ordering::Release;

/// From this many waiters of a group on another CPU, one of them wakes the rest. To wake one more
/// from here costs about half as much as the call that the woken one makes. The workload `wakes` of
/// the benches counts the calls.
pub const CHAINED: u32 = if FEW { 2 } else { 3 };
/// Groups that a list of wake-ups has room for.
const CAPACITY: usize = if FEW { 2 } else { 16 };

/// The waiters of one group that are to be woken.
#[derive(Clone, Copy, Debug, Default)]
struct Call {
    group: u32,
    bits: u32,
}

/// Completed waiters, by group. They are woken when the list is full, [flushed](Self::flush) or
/// dropped.
///
/// A thread that has such a list must not wait for anything.
pub struct Wakes {
    /// In the order of their groups, hence CPU by CPU.
    calls: [Call; CAPACITY],
    len: usize,
    made: u32,
}

impl Wakes {
    /// An empty list.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self { calls: [Call::default(); CAPACITY], len: 0, made: 0 }
    }

    /// Adds a waiter that sleeps in `seat`, or is about to. Its final status has been stored
    /// (Release). From that store on the waiter may be gone, with its node and the array.
    #[inline]
    pub fn add(&mut self, seat: Seat) {
        let (group, bits) = (seat.group(), 1 << seat.bit());
        let mut at = self.calls[..self.len].partition_point(|call| call.group < group);
        if at < self.len && self.calls[at].group == group {
            self.calls[at].bits |= bits;
            return;
        }
        if self.len == CAPACITY {
            self.flush();
            at = 0;
        }
        self.calls.copy_within(at..self.len, at + 1);
        self.calls[at] = Call { group, bits };
        self.len += 1;
    }

    /// Wakes the waiters in the list, and empties it.
    pub fn flush(&mut self) {
        let calls = &self.calls[..self.len];
        let here = own_cpu() * PER_CPU as u32;
        let own = calls.partition_point(|call| call.group < here);
        let next = calls.partition_point(|call| call.group < here + PER_CPU as u32);
        for &Call { group, bits } in calls[next..].iter().chain(&calls[..own]) {
            Self::call(group, bits, true);
        }
        for &Call { group, bits } in &calls[own..next] {
            Self::call(group, bits, FEW && group == 0);
        }
        self.made += self.len as u32;
        self.len = 0;
    }

    /// Wakes the owners of the seats `bits` of a group: all, or if the group is `far`, one of many.
    fn call(number: u32, bits: u32, far: bool) {
        let (group, common) = group(number);
        group.seq.fetch_add(1, Release); // (bump group seq)
        let chained = far && !common && bits.count_ones() >= CHAINED;
        if chained {
            // Mutant: Release -> Relaxed: the kernel of a model compares with the newest `seq`.
            group.seats.fetch_or(u64::from(bits) << u32::BITS, Release); // (leave the rest)
        }
        let most = match (chained, common) {
            (true, _) => 1,
            (_, true) => u32::MAX,
            _ => bits.count_ones(), // Invariant 2.
        };
        if let Some(bits) = Bits::new(bits) {
            group.seq.key().wake_bits(most, bits);
        }
    }

    /// How many calls it has made. Calls that other threads make for the rest do not count.
    #[must_use]
    pub fn made(&self) -> u32 {
        self.made
    }
}

impl Default for Wakes {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Wakes {
    #[inline]
    fn drop(&mut self) {
        if self.len > 0 {
            self.flush();
        }
    }
}

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sleepers: u32 = self.calls[..self.len].iter().map(|call| call.bits.count_ones()).sum();
        f.debug_struct("Wakes").field("sleepers", &sleepers).field("calls", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(seats: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let mut wakes = Wakes::new();
        for &(group, bit) in seats {
            wakes.add(Seat::new(group, bit));
        }
        let listed = wakes.calls[..wakes.len].iter().map(|call| (call.group, call.bits)).collect();
        wakes.len = 0; // no thread sleeps there
        listed
    }

    #[test]
    fn a_group_is_called_once_and_in_order() {
        assert_eq!(listed(&[]), []);
        assert_eq!(listed(&[(5, 3)]), [(5, 0b1000)]);
        let seats = [(9, 0), (2, 1), (9, 31), (70, 0), (2, 0), (5, 4), (9, 0)];
        assert_eq!(listed(&seats), [(2, 0b11), (5, 1 << 4), (9, 1 << 31 | 1), (70, 1)]);
    }

    #[test]
    fn a_list_has_room_for_the_groups_it_promises() {
        let seats: Vec<_> = (0..CAPACITY as u32).rev().map(|group| (group, group)).collect();
        let sorted: Vec<_> = (0..CAPACITY as u32).map(|group| (group, 1 << group)).collect();
        assert_eq!(listed(&seats), sorted);
    }
}
