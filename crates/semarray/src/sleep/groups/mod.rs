//! Groups: where those sleep whose sets cannot proceed, and how many of them one call wakes.
//!
//! To wake sleepers one by one costs a system call each, and between two calls the first of them
//! may take the waker's CPU: a poster that serves hundreds loses half of its time to that. So
//! sleepers share futexes, each with a bit of its own, and one `FUTEX_WAKE_BITSET` wakes all those
//! of a futex that were told something.
//!
//! Nor does the waker wake them all. To wake a sleeper of another CPU takes that CPU's run queue
//! and the sleeper's cache lines away from there, one sleeper after the other, while that CPU may
//! have nothing to do. So the waker wakes one of them, and leaves the others to it: that is a
//! *relay*.
//!
//! # Properties
//! - Outcome is told: a sleeper whose status was stored before [`Wakes::add`] wakes up, or does not
//!   fall asleep.
//! - A waker makes one call for all that were told of the 32 in a group. A single one costs one
//!   call, as with a futex of its own.
//! - On other CPUs than its own it wakes one of a group, if there are [`CHAINED`] or more to be
//!   woken; that one makes the call for the rest, where they are.
//! - Calls go CPU by CPU, the waker's own last: once that one's sleepers are awake, they may take
//!   it. Groups belong to the CPU on which their sleepers fell asleep.
//! - The memory is static. After a status is stored, which may be the end of the sleeper's node and
//!   of the array, a waker needs nothing but the sleeper's [`Seat`], a number (law 2).
//! - Nothing is allocated, no thread is registered.
//!
//! # State
//! For each of [`CPUS`] CPUs [`PER_CPU`] groups of two words:
//!
//! | word | part | law |
//! |---|---|---|
//! | `seq` | | the futex: wake-ups so far. A waker adds one, after the statuses and before the call |
//! | `seats` | `used` | one bit a seat: set by who claims it, cleared by the same, who is awake then |
//! | | `left` | one bit a seat: those whose wake-up was left to whoever comes by |
//!
//! A seat is a group and a bit of it.
//!
//! | what | by | label |
//! |---|---|---|
//! | a bit of `used` is set | a thread that is about to queue, on the CPU it runs on | (C1) |
//! | it is cleared | the same, when it was told, or has left its queue untold | (C2) |
//! | `seq` + 1 | a waker, after the statuses | (S2) |
//! | bits of `left` are set | a waker that wakes one of them, after (S2) and before the call | (R1) |
//! | all of `left` is cleared, and those who had a bit are woken by a call | with (C2); and by who was woken untold | (R2) |
//!
//! The last group of each CPU is *common*, for when all others are full: a seat there is a bit
//! that others have too. Its `used` counts claims, so as to spread them over the bits, nothing is
//! given back, and nothing is left to others.
//!
//! # Who sleeps where
//! A call is worth as much as it wakes, so those are to be in one group who are told together.
//! While there are few, that is the first group of their CPU. Where there are many, a set that
//! wakes some of them is about neighbouring semaphores: who sleeps for a cell has a seat near
//! those who sleep for its neighbours, if there are any. Berths in the order of arrival alone mix
//! the sleepers within seconds, and a set then finds hardly two in the same group.
//!
//! # Invariants
//! 1. A bit of a group that is not common has one owner from (C1) to (C2). At (C2) the owner is
//!    awake: so of those in the kernel's queue no two have the same bit.
//! 2. *So a call for as many sleepers as it has bits wakes all of them*: no more can match. In a
//!    common group any number can, and the call is for all.
//! 3. *A call after (S2) finds whoever sleeps on.* A sleeper reads `seq` (S1), then its status,
//!    then asks the kernel to sleep while `seq` is what it read. If (S1) shows the waker's count
//!    (S2), the status shows too. If not, the kernel finds `seq` changed, or has the sleeper in its
//!    queue before (S2), and so before any call that comes after it.
//! 4. *Nobody who was told sleeps on.* If the waker calls for all, by 2 and 3. If it calls for one
//!    (R1), some bits of its list are in the queue, or none. If none, there is nobody to wake,
//!    by 3. Else the call wakes the owner of such a bit. This one comes by (R2) before it sleeps
//!    again or returns, since whoever was woken does, told or not. It finds what is left, all the
//!    bits of (R1), and calls after (S2); or somebody has come by since (R1), found them, and
//!    calls: that one is awake.
//! 5. Bits that are left although nobody sleeps with them are found by the next who comes by. Its
//!    call wakes nobody, or the new owner of such a bit.
//! 6. Who was woken or refused and is not told looks at its status once more, and sleeps again.
//!    Nothing else comes of sharing a group or a bit.
//!
//! # Ordering
//! | access | order | pairs with |
//! |---|---|---|
//! | (S1) load of `seq` | Acquire | (S2): who sees the count sees the statuses before it |
//! | (S2) `fetch_add` of `seq` | Release | (S1) |
//! | (C1) `fetch_or` of `seats` | Acquire | (C2): the previous owner is out of the kernel's queue |
//! | (R1) `fetch_or` of `seats` | Release | (R2): (S2) comes before the call |
//! | (C2), (R2) one `fetch_and` of `seats` | Acquire, Release | (R1); (C1) |
//!
//! That (R2) finds what (R1) left needs no order: both are read-modify-writes of one word, and one
//! follows the other in time. What a sleeper may do after it was told it has from its status, which
//! the caller stores and loads, not from here.
//!
//! # What a relay costs
//! A hop: who is left sleeps until the one that was woken has run. On a CPU of their own they would
//! run after it anyway. Threads that have moved away since, and could run at once elsewhere, wait
//! for a thread that may be of a lower priority: of those of a group the kernel wakes a real-time
//! thread first, but knows no order among others.
//!
//! # Wrap-around
//! A sleeper would have to stay preempted between (S1) and the kernel for exactly 2^32 calls, an
//! hour of nothing else.
//!
//! # Forks
//! A child has one thread, and finds the seats of its parent's other threads taken for good:
//! sleepers crowd a little earlier in the common groups. What was left to them is found by whoever
//! comes by, and wakes nobody.
//!
//! # Sources
//! C. Mason, "ipc semaphores: order wakeups based on waiter CPU" (LKML, April 2010) sorts a list of
//! sleepers by their CPU, so that a run queue's lock is taken once; here the place where they sleep
//! does it. D. Hart, `FUTEX_WAIT_BITSET` is T. Gleixner's (2008), made for `pthread_rwlock`:
//! waiters of several kinds on one word. That a woken thread wakes others is in D. Lea's
//! `AbstractQueuedSynchronizer` (2004), whose shared acquisitions pass a wake-up on from one to the
//! next.

mod wakes;

pub use wakes::{CHAINED, Wakes};

use core::{fmt, iter};
use ulocks_core::futex::{Bits, Futex, Private, Waited};
use ulocks_core::membarrier::PLACES;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed};
use ulocks_core::time::Deadline;
use ulocks_core::{const_fn, cpu, each, sync_static};

/// In the model worlds: tables are small there, and soon full.
pub(crate) const FEW: bool = PLACES == 1;

/// CPUs that have groups of their own; those with greater numbers share them.
pub const CPUS: usize = if FEW { 1 } else { 64 };
/// Groups of a CPU, the common one included: seats for 2,016 sleepers, 4 KiB.
pub const PER_CPU: usize = if FEW { 3 } else { 64 };
/// Berths of a group.
pub const SEATS: u32 = if FEW { 2 } else { 32 };

/// Cells are neighbours that lie within so many bits of an address: 64 of them, two groups full,
/// for on one CPU seldom all of them sleep.
const NEIGHBOURHOOD: u32 = 13;

/// All seats of a group.
const FULL: u32 = u32::MAX >> (32 - SEATS);

/// One group, on a cache line of its own: wakers write it from other CPUs, while sleepers write
/// those beside it.
#[repr(align(64))]
struct Group {
    seq: Futex<Private>,
    /// `used` in the lower half, `left` in the upper one.
    seats: AtomicU64,
}

impl Group {
    const_fn! {
        fn new() -> Self {
            Self { seq: Futex::new(0), seats: AtomicU64::new(0) }
        }
    }

    /// The bits that are claimed.
    #[inline]
    fn used(&self) -> u32 {
        self.seats.load(Relaxed) as u32
    }

    /// (C1): a free bit of this group, if there is one.
    #[inline]
    fn claim(&self) -> Option<u32> {
        let mut used = self.used();
        while used != FULL {
            let bit = (!used).trailing_zeros();
            // Mutant: Acquire -> Relaxed: it orders the kernel's queue; a model's is up to date.
            used = self.seats.fetch_or(1 << bit, Acquire) as u32;
            if used & 1 << bit == 0 {
                return Some(bit);
            }
        }
        None
    }

    /// (C2): gives `bits` back. (R2): wakes those who were left.
    #[inline]
    fn pass_on(&self, bits: u32) {
        // Mutant: AcqRel -> Acquire, Release, Relaxed: as (C1) and (R1).
        let rest = (self.seats.fetch_and(u64::from(!bits), AcqRel) >> u32::BITS) as u32;
        if let Some(rest) = Bits::new(rest) {
            self.wake_rest(rest);
        }
    }

    #[cold]
    fn wake_rest(&self, rest: Bits) {
        self.seq.key().wake_bits(rest.get().count_ones(), rest); // Invariant 2.
    }
}

/// The groups of one CPU, on cache lines of their own.
#[repr(align(128))]
struct CpuGroups {
    groups: [Group; PER_CPU],
}

impl CpuGroups {
    const_fn! {
        fn new() -> Self {
            Self { groups: each!(Group::new(); PER_CPU) }
        }
    }
}

sync_static! {
    static GROUPS: [CpuGroups; CPUS] = each!(CpuGroups::new(); CPUS);
}

/// The CPU whose groups are those of the calling thread now.
#[inline]
fn own_cpu() -> u32 {
    cpu::current().unwrap_or(0) % CPUS as u32
}

/// The group of this number, and whether it is a common one.
#[inline]
fn group(number: u32) -> (&'static Group, bool) {
    let (cpu, nth) = (number as usize / PER_CPU, number as usize % PER_CPU);
    (&GROUPS[cpu].groups[nth], nth == PER_CPU - 1)
}

/// How many seats are claimed at this moment, those of common groups not counted: none while
/// nobody sleeps.
#[must_use]
pub fn claimed() -> u32 {
    let own = |cpu: &CpuGroups| {
        cpu.groups[..PER_CPU - 1].iter().map(|group| group.used().count_ones()).sum::<u32>()
    };
    GROUPS.iter().map(own).sum()
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// `until` held.
    Completed,
    /// The deadline passed, and `until` did not hold even then.
    TimedOut,
    /// A signal handler ran, and `until` did not hold even then.
    Interrupted,
}

/// A place to sleep: a group and a bit. A number, so that a waker can keep it when the sleeper's
/// node is gone.
///
/// It is given back once, by whoever claimed it: by [`sleep`](Self::sleep) that was
/// [completed](Slept::Completed), or else by [`give_up`](Self::give_up).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seat(u32);

impl Seat {
    /// A seat for the calling thread, which sleeps for nothing in particular.
    #[must_use]
    pub fn claim() -> Self {
        Self::claim_near(0)
    }

    /// A seat for the calling thread on the CPU it runs on, which is going to sleep for the cell
    /// at `address`.
    ///
    /// Near those that sleep for the same cell and its neighbours, if there are any; else in the
    /// first group if there is room, where few sleepers are together whatever they sleep for; else
    /// near the cell, or anywhere.
    #[must_use]
    pub fn claim_near(address: usize) -> Self {
        let cpu = own_cpu() as usize;
        let first = cpu * PER_CPU;
        let (common, own) = GROUPS[cpu].groups.split_last().expect("a CPU has groups");
        let near = 1 + (address >> NEIGHBOURHOOD) % (own.len() - 1);
        let neighbours = (own[near].used() != 0).then_some(near);
        for nth in neighbours.into_iter().chain(iter::once(0)).chain(near..own.len()).chain(1..near) {
            if let Some(bit) = own[nth].claim() {
                return Self::new((first + nth) as u32, bit);
            }
        }
        Self::new((first + PER_CPU - 1) as u32, common.seats.fetch_add(1, Relaxed) as u32 % SEATS)
    }

    const fn new(group: u32, bit: u32) -> Self {
        Self(group * SEATS + bit)
    }

    const fn group(self) -> u32 {
        self.0 / SEATS
    }

    const fn bit(self) -> u32 {
        self.0 % SEATS
    }

    /// Sleeps until `until` holds, or until `deadline`; if `interruptible`, a signal handler ends
    /// the sleep too. Does not enter the kernel if `until` holds; each time it does not hold, but
    /// the last one of a sleep that fails, is an entry. If it was told, it has given the seat
    /// back.
    ///
    /// Nothing is ordered by it but what `until` orders.
    pub fn sleep(
        self,
        mut until: impl FnMut() -> bool,
        deadline: Option<Deadline>,
        interruptible: bool,
    ) -> Slept {
        let (group, common) = group(self.group());
        let bits = Bits::one(self.bit());
        let mut woken = false;
        loop {
            let seq = group.seq.load(Acquire); // (S1)
            if until() {
                self.give_up();
                return Slept::Completed;
            }
            if woken && !common {
                group.pass_on(0); // (R2)
            }
            let waited = if interruptible {
                group.seq.wait_interruptible(seq, bits, deadline)
            } else {
                group.seq.wait_bits(seq, bits, deadline)
            };
            let failed = match waited {
                Waited::TimedOut => Slept::TimedOut,
                Waited::Interrupted if interruptible => Slept::Interrupted,
                waited => {
                    woken = waited == Waited::Woken;
                    continue;
                }
            };
            if until() {
                self.give_up();
                return Slept::Completed;
            }
            return failed;
        }
    }

    /// Gives the seat back without having slept until told: of a sleeper that has left its queue
    /// before anybody told it, or was told while it was awake. (C2) and (R2).
    #[inline]
    pub fn give_up(self) {
        let (group, common) = group(self.group());
        if !common {
            group.pass_on(1 << self.bit());
        }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, bit) = (self.group() as usize, self.bit());
        write!(f, "Seat(CPU {}, group {}, bit {bit})", group / PER_CPU, group % PER_CPU)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_each_bit_once() {
        let group = Group::new();
        for bit in 0..SEATS {
            assert_eq!(group.claim(), Some(bit));
        }
        assert_eq!(group.claim(), None);
        group.pass_on(1 << 17 | 1 << 4);
        assert_eq!((group.claim(), group.claim(), group.claim()), (Some(4), Some(17), None));
    }

    #[test]
    fn a_number_is_a_cpu_a_group_and_a_bit() {
        let last = Seat::new((CPUS * PER_CPU - 1) as u32, SEATS - 1);
        assert_eq!(format!("{last:?}"), "Seat(CPU 63, group 63, bit 31)");
        assert!(group(last.group()).1, "the last group of a CPU is common");
        assert!(!group(Seat::new(0, 0).group()).1);
    }
}
