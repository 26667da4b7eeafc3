//! Spin strategies: how long a waiter polls a lock before it sleeps, and how far apart.
//!
//! A waiter that spins saves a sleep and a wake-up, which cost microseconds each. It pays with its
//! CPU, and with the holder's cache line. All polls are loads. Each poll has one of two outcomes:
//!
//! - It *hits*: the line is where the waiter's last poll has brought it, so no thread has written
//!   to the lock since. The poll costs the holder nothing. The critical section is a long one, and
//!   frequent polls see its end early.
//! - It *misses*: the holder has written, and will miss the line at its next write. The line was
//!   away from it for about as long as the poll took.
//!
//! The clock tells the two apart. The rule is the same for all waiters but the next thread
//! of an orderly lock:
//!
//! - The first poll comes after a single pause.
//! - After a hit, the waiter polls again after a single pause.
//! - After a miss, it polls again after a single pause. The miss may be the holder's acquisition,
//!   with a long section behind it. Then the second poll hits.
//! - After a second miss in a row, sections are short. The waiter does not poll for 2.5 us, or for
//!   sixteen times as long as the poll took, if that is longer. So the holder passes through many
//!   sections, which are cheaper by the cost of moving the line. If many waiters poll, each poll
//!   takes longer, so they poll more rarely.
//!
//! A poll that acquires the lock is not timed: a reading of the clock takes as long as a short
//! critical section, and would be part of it.
//!
//! There are three strategies, each with a budget in time:
//!
//! - [`backing_off`] is for an arriving thread. It gives up earlier if it sees that the lock is
//!   saturated.
//! - [`closely`] is for a waiter that was woken and found the lock taken again. There are few of
//!   these, since a releasing thread wakes one at a time, and a wake-up has been paid for. Tasks
//!   spin so, too: each keeps others from its worker meanwhile.
//! - [`head_waiter`] is for the waiter that an orderly lock serves next, or next on its CPU. One
//!   waiter on each CPU spins so. It certainly gets the lock, and all waiters behind it wait for
//!   its wake-up too. It polls after each pause.
//!
//! The pauses are the processor's (`pause`, `isb`). Their length differs by a factor of twenty
//! between CPUs; the first waiter of a process measures it. No strategy yields to the scheduler: a
//! yield while the holder waits for this CPU costs time slices.
//!
//! Where the holder cannot run while the waiter does, spinning is pointless. So no waiter spins on
//! a lock of one process, until waiters of that process have been seen that may run on more than
//! one CPU between them. A lock between processes cannot know where the others run, so its waiters
//! always spin.
//!
//! What the rule has gained is in `BENCHMARKS.md`, section "The waiting rule".

use super::policy::Policy;
use crate::sys::futex::{self, Bits, Futex, Scope};
use crate::sys::sync::spin_until;
use crate::sys::world::{PollCost, pause};

/// For how long a waiter leaves the line alone after two misses in a row, at least. 1.5 us lose a
/// tenth of the throughput of empty critical sections, and 4 us gain nothing.
const LEFT_ALONE_NS: u32 = 2_500;

/// For how many times as long as its last poll took it leaves the line alone, at least.
const LEFT_ALONE: u32 = 16;

/// For how long a waiter that has lost its attempt leaves the line alone, at most: about as long as
/// a sleep and a wake-up take. A look during which it was preempted is no measure.
const LONGEST_ALONE_NS: u32 = 40_000;

/// After so many spins in vain in a row, waiters on a condition variable sleep at once.
pub const TRIES: u32 = 3;

/// How many waits in a row go by, counted from [`TRIES`], until one of them spins again.
pub const PROBE: u32 = 31;

/// The spin budgets of a lock's waiters. Zero-sized; chosen by type.
pub trait Spin: Send + Sync + 'static {
    /// Spin budget in nanoseconds of an arriving thread.
    const ARRIVAL_NS: u32;
    /// Spin budget in nanoseconds of an arriving thread of a barging lock whose waiters queue: the
    /// default mutex, and the calock. It is the last thread that is awake for the lock, perhaps: a
    /// release wakes one of those that sleep, and no other one until that runs.
    ///
    /// Sixteen CPUs of a Xeon under KVM, 500 ns inside and 10 us outside, in M/s and with the CPU
    /// time of an operation in microseconds: 6 us give 1.08 and 13.5 with 16 threads, 0.74 and 11.4
    /// with 64; 12 us 1.16 and 13.5, 0.94 and 12.0; 20 us 1.19 and 13.5, 1.01 and 11.4. With 16
    /// threads, 3 us inside and 7 outside: 0.268 and 15.6, 0.274 and 18.3, 0.284 and 21.7.
    ///
    /// With fewer than four CPUs it is [`ARRIVAL_NS`](Self::ARRIVAL_NS): with nothing inside or
    /// outside two threads on two CPUs never sleep then, so that it is not tried whether one is
    /// faster alone. (An EPYC, 12 us by 6: 0.54 of the rate, 1.9 times the CPU time.)
    const QUEUE_NS: u32;
    /// Spin budget in nanoseconds of an arriving thread that sees the lock saturated; at most
    /// [`ARRIVAL_NS`](Self::ARRIVAL_NS).
    const SATURATED_NS: u32;
    /// Spin budget in nanoseconds of a waiter that was woken and found the lock taken again, and of
    /// a poll of a task.
    const WOKEN_NS: u32;
    /// Spin budget in nanoseconds of a thread that is next. First-in-first-out lock: a waiter that
    /// is to be awake when its turn comes. Barging mutex: the waiter that the mutex is owed to.
    /// Reader-writer lock: a waiter that sees no sleeper of its own kind.
    const FIRST_NS: u32;
    /// Spin budget in nanoseconds of a waiter on a condition variable. If it ends before a thread
    /// that was woken can answer, all threads of a buffer sleep, and one is awake at a time. (Two
    /// CPUs of an EPYC, KVM, `cargo bench -- condvar`, room for two items, notified after the lock:
    /// with 12 us `ThroughputMutex` moves 0.03 to 0.17 M items a second with 2 + 2, 4 + 4 and 1 + 8
    /// threads, and with 30 us 0.8 to 4.1 M. Two threads on one CPU move 0.23 M with both.)
    const CONDVAR_NS: u32;
}

/// Never spins: a waiter sleeps at once.
#[derive(Debug)]
pub enum NoSpin {}

/// Spins for `NS` nanoseconds before each sleep, whatever the lock looks like: Franke's patience.
#[derive(Debug)]
pub enum Patience<const NS: u32> {}

/// Spins long enough to cover critical sections of a few microseconds, and less on a saturated
/// lock. The default.
#[derive(Debug)]
pub enum Adaptive {}

impl Spin for NoSpin {
    const ARRIVAL_NS: u32 = 0;
    const QUEUE_NS: u32 = 0;
    const SATURATED_NS: u32 = 0;
    const WOKEN_NS: u32 = 0;
    const FIRST_NS: u32 = 0;
    const CONDVAR_NS: u32 = 0;
}

impl<const NS: u32> Spin for Patience<NS> {
    const ARRIVAL_NS: u32 = NS;
    const QUEUE_NS: u32 = NS;
    const SATURATED_NS: u32 = NS;
    const WOKEN_NS: u32 = NS;
    const FIRST_NS: u32 = NS;
    const CONDVAR_NS: u32 = NS;
}

impl Spin for Adaptive {
    const ARRIVAL_NS: u32 = 6_000;
    const QUEUE_NS: u32 = 12_000;
    const SATURATED_NS: u32 = 3_000;
    const WOKEN_NS: u32 = 2_000;
    const FIRST_NS: u32 = 30_000;
    const CONDVAR_NS: u32 = 30_000;
}

/// What a spinning waiter sees when it polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The lock was free, and is the waiter's now.
    Acquired,
    /// The lock is taken.
    Taken,
    /// The lock was free, and another thread was faster.
    Beaten,
    /// The lock is taken by a holder that had to be woken itself, or that has sleepers to wake. A
    /// busy lock shows this now and then, a saturated one always.
    Saturated,
    /// The lock is taken, and further polls are useless: the holder cannot run while the waiter
    /// does, or it will hand the lock to a sleeper.
    Hopeless,
}

/// An arriving thread of policy `P` polls at intervals that follow the cost of its polls. Returns
/// whether it acquired the lock within its budget. Without a budget it does not poll.
#[cfg_attr(world = "vm", track_caller)]
pub fn backing_off<P: Policy>(look: impl FnMut() -> Look) -> bool {
    backing_off_for::<P>(P::Spin::ARRIVAL_NS, P::Spin::SATURATED_NS, look)
}

/// As [`backing_off`], with a budget of `ns` nanoseconds, or of `if_saturated` nanoseconds if the
/// lock is saturated.
#[cfg_attr(world = "vm", track_caller)]
pub fn backing_off_for<P: Policy>(ns: u32, if_saturated: u32, mut look: impl FnMut() -> Look) -> bool {
    let budget = pause::budget(P::Scope::PRIVATE, ns);
    let timed = || pause::timed(&mut look, |seen| *seen == Look::Acquired);
    until_spent(budget, pause::count(if_saturated), timed)
}

/// A woken waiter of policy `P`, or a task, polls at intervals that follow the cost of its polls.
/// Returns whether it acquired the lock within its budget. It gives up at once if it has no budget,
/// or if it sees that another waiter is owed the next wake-up.
#[cfg_attr(world = "vm", track_caller)]
pub fn closely<P: Policy>(look: impl FnMut() -> Look) -> bool {
    closely_for::<P>(P::Spin::WOKEN_NS, look)
}

/// As [`closely`], with a budget of `ns` nanoseconds: [`backing_off_for`] that gives up at once if
/// the lock is saturated.
#[cfg_attr(world = "vm", track_caller)]
pub fn closely_for<P: Policy>(ns: u32, look: impl FnMut() -> Look) -> bool {
    backing_off_for::<P>(ns, 0, look)
}

/// Polls until `budget` is spent, or until `if_saturated` is spent and the lock is seen saturated.
/// Both are in pauses.
#[cfg_attr(world = "vm", track_caller)]
fn until_spent(budget: u32, if_saturated: u32, mut look: impl FnMut() -> (Look, PollCost)) -> bool {
    let (mut next, mut spent, mut missed) = (1, 0, false);
    while spent < budget {
        let now = next.min(budget - spent);
        pause::times(now);
        let (seen, cost) = look();
        spent = spent.saturating_add(now).saturating_add(cost.total);
        match seen {
            Look::Acquired => return true,
            Look::Saturated if spent >= if_saturated => return false,
            Look::Hopeless => return false,
            _ => {}
        }
        let misses = cost.miss > 0 && seen != Look::Beaten;
        next = if misses && missed {
            pause::count(LEFT_ALONE_NS).max(cost.miss.saturating_mul(LEFT_ALONE))
        } else {
            1
        };
        missed = misses && !missed;
    }
    false
}

/// The head waiter of an orderly lock of policy `P` polls after each pause. Returns whether `look`
/// became true within the budget.
///
/// Pass `was_woken = true` if the caller was just woken. The thread ahead of it may need this CPU
/// then, so the shorter `SATURATED_NS` applies. If the caller knows that the thread ahead runs
/// elsewhere, it passes `false`.
#[cfg_attr(world = "vm", track_caller)]
pub fn head_waiter<P: Policy>(was_woken: bool, mut look: impl FnMut() -> bool) -> bool {
    let budget = if was_woken { P::Spin::SATURATED_NS } else { P::Spin::FIRST_NS };
    (0..pause::budget(P::Scope::PRIVATE, budget)).any(|_| {
        pause::times(1);
        look()
    })
}

/// How many pauses a spin of `ns` nanoseconds has. Zero if the thread that the caller waits for
/// cannot run meanwhile.
pub fn budget<S: Scope>(ns: u32) -> u32 {
    pause::budget(S::PRIVATE, ns)
}

/// The longest pause between two polls of [`until`], in nanoseconds. Shorter pauses take the
/// notifier's cache line away more often, longer ones are late. Both cost up to a third of the
/// items per second of a bounded buffer.
const LONGEST_PAUSE_NS: u32 = 400;

/// A waiter on a condition variable polls `is_done` after pauses that double up to 400 ns, until it
/// is true or `budget` pauses are spent.
#[cfg_attr(world = "vm", track_caller)]
pub fn until(budget: u32, mut is_done: impl FnMut() -> bool) {
    let longest = pause::count(LONGEST_PAUSE_NS);
    let (mut next, mut spent) = (1, 0);
    while spent < budget && !is_done() {
        pause::times(next);
        spent = spent.saturating_add(next);
        next = (2 * next).min(longest);
    }
}

/// A number of the calling process, which its parent and its children do not share.
/// `None` if the kernel cannot tell. Then no thread may rely on another one that only spins, since
/// a fork may have left it behind.
pub(crate) fn process() -> Option<u32> {
    crate::sys::world::process_generation()
}

/// How many consecutive polls that hit take about `ns` nanoseconds; at least 1.
#[inline]
pub fn looks_in(ns: u32) -> u32 {
    pause::count(ns)
}

/// Whether a waiter that enqueues has lost its attempt to another thread.
///
/// Each attempt moves the line, also one that is lost, and the holder's release stands in line with
/// all of them. So after a second loss the waiter leaves the line alone, for as long as a waiter
/// does whose polls miss. (The cost model, 128 CPUs, 1 us inside and 9 outside, the first 400 us:
/// `FairMutex` 0.62 M/s, and 0.01 without this rule. After a first loss already: the same.)
#[derive(Debug, Default)]
pub struct Lost(bool);

impl Lost {
    /// The waiter has lost once more. Returns what it sees when it may try again.
    #[cfg_attr(world = "vm", track_caller)]
    pub fn again<R>(&mut self, look: impl Fn() -> R) -> R {
        if core::mem::replace(&mut self.0, true) {
            let (_, cost) = pause::timed(&look, |_| false);
            let most = pause::count(LONGEST_ALONE_NS);
            pause::times(cost.miss.saturating_mul(LEFT_ALONE).min(most));
        }
        look()
    }
}

/// For how long [`outlast`] spins before it sleeps.
const BRIEFLY_NS: u32 = 2_000;

/// Waits until another thread is through, which takes less than two microseconds if it runs. If it
/// was preempted, the caller leaves it a CPU, whatever the priorities of the two threads.
#[cfg_attr(world = "vm", track_caller)]
pub fn outlast(mut is_over: impl FnMut() -> bool) {
    if cfg!(not(world = "machine")) {
        return spin_until(is_over); // No time passes in models.
    }
    until(budget::<futex::Local>(BRIEFLY_NS), &mut is_over);
    // No thread wakes it.
    let word = Futex::<futex::Local>::new(0);
    word.poll_until(Bits::one(0), None, futex::SHORT_SLEEP, is_over);
}

#[cfg(all(test, world = "machine"))]
mod tests {
    use super::*;
    use crate::{Private, Shared};

    #[test]
    fn no_patience_never_looks() {
        assert!(!backing_off::<Shared<NoSpin>>(|| Look::Acquired));
        assert!(!closely::<Private<NoSpin>>(|| Look::Acquired));
    }

    #[test]
    fn what_is_acquired_ends_the_spin() {
        let mut looks = 0;
        assert!(backing_off::<Shared<Patience<1_000_000>>>(|| {
            looks += 1;
            if looks == 3 { Look::Acquired } else { Look::Taken }
        }));
        assert_eq!(looks, 3);
        assert!(closely::<Shared<Patience<1_000_000>>>(|| Look::Acquired));
    }

    /// How often a waiter polls that always sees `what`.
    fn looks(spin: impl Fn(&mut dyn FnMut() -> Look) -> bool, what: Look) -> u32 {
        let mut looks = 0;
        assert!(!spin(&mut || {
            looks += 1;
            what
        }));
        looks
    }

    #[test]
    fn a_spent_budget_ends_the_spin() {
        type Patient = Shared<Patience<20_000>>;
        let most = pause::count(20_000);
        assert!((1..=most).contains(&looks(|look| closely::<Patient>(look), Look::Taken)));
        assert!((1..=most).contains(&looks(|look| backing_off::<Patient>(look), Look::Taken)));
    }

    const HIT: PollCost = PollCost { total: 2, miss: 0 };
    const MISS: PollCost = PollCost { total: 12, miss: 10 };

    /// How many polls a waiter with so many pauses makes of a lock that always looks the same. The
    /// polls cost what the list says, and the last of it from then on.
    fn polls(budget: u32, if_saturated: u32, seen: Look, costs: &[PollCost]) -> usize {
        let mut polls = 0;
        assert!(!until_spent(budget, if_saturated, || {
            polls += 1;
            (seen, costs[polls.min(costs.len()) - 1])
        }));
        polls
    }

    #[test]
    fn the_cost_of_a_poll_decides_when_the_next_comes() {
        // A pause, and a poll of two.
        assert_eq!(polls(300, 0, Look::Taken, &[HIT]), 100);
        // Two misses take 26 pauses. Then the line is left alone for longer than the budget has.
        let alone = pause::count(LEFT_ALONE_NS).max(10 * LEFT_ALONE);
        assert_eq!(polls(26 + alone, 0, Look::Taken, &[MISS]), 3);
        // After it, one miss is no reason again.
        assert_eq!(polls(26 + alone + 12 + 1, 0, Look::Taken, &[MISS]), 4);
        // A miss before a long section.
        assert_eq!(polls(13 + 30, 0, Look::Taken, &[MISS, HIT]), 11);
        // A poll during which the waiter was preempted is the last.
        assert_eq!(polls(1_000, 0, Look::Taken, &[PollCost { total: u32::MAX, miss: u32::MAX }]), 1);
    }

    #[test]
    fn a_poll_that_costs_much_leaves_the_line_alone_for_longer() {
        const DEAR: PollCost = PollCost { total: 100_002, miss: 100_000 };
        let twice = 2 * (1 + 100_002);
        assert_eq!(polls(twice + LEFT_ALONE * 100_000, 0, Look::Taken, &[DEAR]), 3);
        assert_eq!(polls(twice + LEFT_ALONE * 100_000 + 100_003, 0, Look::Taken, &[DEAR]), 4);
    }

    #[test]
    fn a_lock_that_is_promised_to_another_ends_the_spin_at_once() {
        assert_eq!(looks(|look| closely::<Shared>(look), Look::Hopeless), 1);
        assert_eq!(looks(|look| backing_off::<Shared>(look), Look::Hopeless), 1);
    }

    /// In pauses and not by the clock: a poll may take as long as a whole budget.
    #[test]
    fn a_saturated_lock_ends_the_spin_earlier() {
        assert_eq!(polls(900, 300, Look::Saturated, &[HIT]), 100);
        assert_eq!(polls(900, 300, Look::Taken, &[HIT]), 300);
        assert_eq!(looks(|look| closely::<Shared>(look), Look::Saturated), 1);
    }
}
