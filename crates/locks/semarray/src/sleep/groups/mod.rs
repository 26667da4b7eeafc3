//! Groups: where waiters sleep, and how many of them one call wakes.
//!
//! To wake waiters one by one costs a system call for each. Between two calls the first of them may
//! take the waker's CPU: a post that serves hundreds loses half of its time to that. So waiters
//! share futexes. A *group* is a futex and its 32 *seats*; a seat is a bit by which the kernel
//! tells the sleepers apart. One `FUTEX_WAKE_BITSET` wakes any choice of seats.
//!
//! Nor does the waker wake all of them itself. To wake a thread of another CPU moves that CPU's run
//! queue and the thread's cache lines, one thread after the other, while that CPU may be idle. So
//! the waker wakes one thread of the group, and leaves the *rest* to it. This is *wake-up
//! chaining*.
//!
//! # Properties
//! - A completed waiter wakes up: if its status was stored before [`Wakes::add`], it is woken, or
//!   does not fall asleep.
//! - A waker makes one call for all completed waiters of a group. For a single waiter this costs
//!   one call, as with a futex of its own.
//! - On another CPU the waker wakes one thread of a group, if [`CHAINED`] or more are to be woken.
//!   That thread makes the call for the rest, on its own CPU.
//! - The calls go CPU by CPU, the waker's own last, because its own waiters may take the CPU once
//!   they are awake. A group belongs to the CPU on which its waiters fell asleep.
//! - The memory is static. With its status stored, a waiter's node may be gone, and the array, too.
//!   From then on a waker needs only the waiter's [`Seat`], a number (law 2 of ARCHITECTURE.md).
//! - Nothing is allocated, and no thread is registered.
//!
//! # State
//! For each of [`CPUS`] CPUs [`PER_CPU`] groups of two words:
//!
//! | word | part | law |
//! |---|---|---|
//! | `seq` | | the futex: wake-ups so far. A waker adds one, after the statuses and before the call |
//! | `seats` | `used` | one bit a seat: set by the thread that claims it, cleared by the same thread, awake |
//! | | `rest` | one bit a seat: its owner is still to be woken, by a woken thread of the group |
//!
//! | what | by | label |
//! |---|---|---|
//! | a bit of `used` is set | a thread that is about to queue, on the CPU it runs on | (claim) |
//! | it is cleared | the same thread, when it was completed, or has left its queue | (give back) |
//! | a waiter reads `seq` | before its status and its sleep | (read group seq) |
//! | `seq` + 1 | a waker, after the statuses | (bump group seq) |
//! | bits of `rest` are set | a waker that wakes one of their owners, after (bump group seq) and before the call | (leave the rest) |
//! | all bits of `rest` are cleared, and their owners are woken by a call | a thread at (give back), and one that was woken but not completed | (wake the rest) |
//!
//! The last group of each CPU is *common*, for when all others are full: several threads may have
//! the same seat there. Its `used` counts claims, which spreads them over the seats. Nothing is
//! given back, and no wake-up is chained.
//!
//! # Choice of a seat
//! One wake call should wake many threads, so threads that are completed together should share a
//! group. While few threads sleep, they are in the first group of their CPU. When many sleep, a set
//! that completes some of them is about neighbouring semaphores. So a waiter takes a seat near the
//! waiters of neighbouring cells, if there are any. Without this rule the waiters mix within
//! seconds, and a set finds hardly two in the same group.
//!
//! # Invariants
//! 1. A seat of a group that is not common has one owner from (claim) to (give back). At (give
//!    back) the owner is awake. So no two threads in the kernel's queue have the same seat.
//! 2. *So a call that wakes as many threads as it has bits wakes all of them*: no more can match.
//!    In a common group any number can match, and the call is for all.
//! 3. *A call after (bump group seq) finds every sleeper of its seats.* A waiter reads `seq` (read
//!    group seq), then its status, then sleeps while `seq` is what it read. If (read group seq)
//!    reads what (bump group seq) wrote, the waiter sees its status. If not, the kernel finds `seq`
//!    changed, or has the waiter in its queue before (bump group seq), and so before every call
//!    after (bump group seq).
//! 4. *No completed waiter sleeps on.* If the waker calls for all, by 2 and 3. If it chains (leave
//!    the rest) and no owner of its bits is in the kernel's queue, then by 3 none will be.
//!    Otherwise the call wakes one of them. This thread comes to (wake the rest) before it sleeps
//!    again or returns, whether it was completed or not. There it finds all bits of (leave the
//!    rest), and wakes their owners. If it does not find them, another thread has come to (wake the
//!    rest) since (leave the rest), has found them, and wakes: that thread is awake.
//! 5. Bits of `rest` may be set although no owner sleeps. The next (wake the rest) clears them. Its
//!    call wakes no thread, or a new owner of the seat.
//! 6. A thread that was woken, or refused by the kernel, and was not completed, reads its status
//!    once more and sleeps again. So to share a group or a seat costs only time.
//!
//! # Ordering
//! | access | order | pairs with |
//! |---|---|---|
//! | (read group seq) load of `seq` | Acquire | (bump group seq): a waiter that sees the count sees the statuses stored before it |
//! | (bump group seq) `fetch_add` of `seq` | Release | (read group seq) |
//! | (claim) `fetch_or` of `seats` | Acquire | (give back): the previous owner is out of the kernel's queue |
//! | (leave the rest) `fetch_or` of `seats` | Release | (wake the rest): (bump group seq) comes before the call |
//! | (give back), (wake the rest) one `fetch_and` of `seats` | Acquire, Release | (leave the rest); (claim) |
//!
//! That (wake the rest) finds the bits of (leave the rest) needs no order: both are
//! read-modify-writes of one word, and one follows the other in time. A completed waiter sees what
//! was done before by its status, which the caller stores and loads.
//!
//! # What chaining costs
//! One more switch: the owners of the rest sleep until the woken thread has run. On the same CPU
//! they would run after it anyway. Threads that have moved to other CPUs since could run at once,
//! but wait for a thread that may have a lower priority. Of a group, the kernel wakes real-time
//! threads first, and knows no order among the others.
//!
//! # Wrap-around
//! A waiter would have to stay preempted between (read group seq) and the kernel for exactly 2^32
//! calls, an hour of nothing else.
//!
//! # Forks
//! A child has one thread. The seats of its parent's other threads are taken for good in it, so
//! waiters fill the common groups a little earlier. The next (wake the rest) clears the rest that
//! was left to them, and wakes no thread.
//!
//! # Sources
//! C. Mason, "ipc semaphores: order wakeups based on waiter CPU" (LKML, April 2010) sorts a list of
//! sleepers by their CPU, so that a run queue's lock is taken once. Here the place where they sleep
//! does that. `FUTEX_WAIT_BITSET` is T. Gleixner's (2008), made for `pthread_rwlock`: waiters of
//! several kinds on one word. That a woken thread wakes others is in D. Lea's
//! `AbstractQueuedSynchronizer` (2004): a shared acquisition passes the wake-up on to the next.

mod wakes;

pub use wakes::{CHAINED, Wakes};

use core::{fmt, iter};
use crossbeam_utils::CachePadded;
use ulocks_core::futex::{Bits, Futex, Local, Waited};
use ulocks_core::membarrier::SLOTS;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed};
use ulocks_core::time::Deadline;
use ulocks_core::{const_fn, cpu, each, sync_table};

/// Whether this is a model world: tables are small there, and soon full.
pub(crate) const FEW: bool = SLOTS == 1;

/// CPUs that have groups of their own. CPUs with greater numbers share them.
pub const CPUS: usize = if FEW { 1 } else { 64 };
/// Groups of a CPU, the common one included: seats for 2,016 waiters, 4 KiB.
pub const PER_CPU: usize = if FEW { 3 } else { 64 };
/// Seats of a group.
pub const SEATS: u32 = if FEW { 2 } else { 32 };

/// Cells are neighbours if their addresses differ in this many low bits only. That is 64 cells, two
/// groups full, because seldom all their waiters sleep on one CPU.
const NEIGHBOURHOOD: u32 = 13;

/// All seats of a group.
const FULL: u32 = u32::MAX >> (32 - SEATS);

/// One group, on a cache line of its own: wakers write it from other CPUs, while waiters write the
/// groups beside it.
#[repr(align(64))]
struct Group {
    seq: Futex<Local>,
    /// `used` in the lower half, `left` in the upper one.
    seats: AtomicU64,
}

impl Group {
    const_fn! {
        fn new() -> Self {
            Self { seq: Futex::new(0), seats: AtomicU64::new(0) }
        }
    }

    /// The seats that are claimed.
    #[inline]
    fn used(&self) -> u32 {
        self.seats.load(Relaxed) as u32
    }

    /// (claim): claims a free seat of this group, if there is one.
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

    /// (give back): gives the seats `bits` back. (wake the rest): wakes the rest.
    #[inline]
    fn pass_on(&self, bits: u32) {
        // Mutant: AcqRel -> Acquire, Release, Relaxed: as (claim) and (leave the rest).
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
type CpuGroups = CachePadded<[Group; PER_CPU]>;

sync_table! {
    // SAFETY: no reference to it is in a value: each is of one call of a lock.
    unsafe static GROUPS: [CpuGroups; CPUS] = each!(CachePadded::new(each!(Group::new(); PER_CPU)); CPUS);
}

/// The CPU on which the calling thread runs, and whose groups it uses.
#[inline]
fn own_cpu() -> u32 {
    cpu::current().unwrap_or(0) % CPUS as u32
}

/// The group of this number, and whether it is common.
#[inline]
fn group(number: u32) -> (&'static Group, bool) {
    let (cpu, nth) = (number as usize / PER_CPU, number as usize % PER_CPU);
    (&GROUPS[cpu][nth], nth == PER_CPU - 1)
}

/// How many seats are claimed at this moment, common groups aside. It is zero while no waiter
/// sleeps.
#[must_use]
pub fn claimed() -> u32 {
    let own = |cpu: &CpuGroups| cpu[..PER_CPU - 1].iter().map(|group| group.used().count_ones()).sum::<u32>();
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

/// Where a waiter sleeps: a group, and a bit of it. It is a number, so that a waker can keep it
/// when the waiter's node is gone.
///
/// The thread that claimed it gives it back once: by [`sleep`](Self::sleep), if that returns
/// [`Completed`](Slept::Completed), or else by [`give_back`](Self::give_back).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seat(u32);

impl Seat {
    /// A seat for the calling thread, which waits for no cell in particular.
    #[must_use]
    pub fn claim() -> Self {
        Self::claim_near(0)
    }

    /// A seat for the calling thread, on the CPU it runs on. The thread is about to wait for the
    /// cell at `address`.
    ///
    /// The seat is near the waiters of the same cell and of its neighbours, if there are any.
    /// Otherwise it is in the first group, if that has room: few waiters are together there,
    /// whatever they wait for. Otherwise it is near the cell, or anywhere.
    #[must_use]
    pub fn claim_near(address: usize) -> Self {
        let cpu = own_cpu() as usize;
        let first = cpu * PER_CPU;
        let (common, own) = GROUPS[cpu].split_last().expect("a CPU has groups");
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

    /// Sleeps until `until` holds, or until `deadline`. If `interruptible`, a signal handler ends
    /// the sleep, too. It calls the kernel each time that `until` does not hold, and asks `until`
    /// once more before it returns a failure. If it returns `Completed`, it has given the seat
    /// back.
    ///
    /// It orders nothing but what `until` orders.
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
            let seq = group.seq.load(Acquire); // (read group seq)
            if until() {
                self.give_back();
                return Slept::Completed;
            }
            if woken && !common {
                group.pass_on(0); // (wake the rest)
            }
            // A handler ends a wait with a deadline.
            let end = if interruptible { deadline.or(Some(Deadline::NEVER)) } else { deadline };
            let failed = match group.seq.wait_bits(seq, bits, end) {
                Waited::TimedOut => Slept::TimedOut,
                Waited::Interrupted if interruptible => Slept::Interrupted,
                waited => {
                    woken = waited == Waited::Woken;
                    continue;
                }
            };
            if until() {
                self.give_back();
                return Slept::Completed;
            }
            return failed;
        }
    }

    /// Gives back the seat of a waiter that has left its queue, or that was completed while it was
    /// awake: (give back) and (wake the rest).
    #[inline]
    pub fn give_back(self) {
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
