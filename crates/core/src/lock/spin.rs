//! How long a waiter looks at a lock before it sleeps, in nanoseconds.
//!
//! A waiter that spins saves a sleep and a wake-up, microseconds each, and pays with its CPU and
//! with the owner's cache line. All looks are loads, and each takes one of two courses:
//!
//! - it *hits*: the line is where the waiter's last look has brought it, so nobody has written to
//!   the lock since. The look is free, to the owner too. The critical section is a long one, and
//!   who looks again soon sees its end at once;
//! - it *misses*: the owner has written, and finds the line gone when it writes next. So critical
//!   sections are short, and the owner runs one after the other if it is left alone. Its line was
//!   gone for about as long as the look took.
//!
//! The clock tells which it was. After a look that hits a waiter looks again after a single pause,
//! after one that misses not for [`LEFT_ALONE`] times as long as it took: that is what it may take
//! from the owner. If many look, each look takes longer, and they come more rarely. There are three
//! gaits, all with a budget in time:
//!
//! - [`backing_off`], for an arrival. It knows nothing of the owner, and there may be many of it:
//!   it pauses for [`FIRST_PAUSE_NS`] before it looks for the first time. That is what keeps two
//!   threads with empty critical sections from passing the line to and fro: the owner runs some
//!   critical sections meanwhile.
//! - [`closely`], for a waiter that was woken and found the lock taken again. There are few of
//!   these (whoever woke it woke nobody else), and a wake-up has been paid for: it looks for the
//!   first time after a single pause.
//! - [`first_in_line`], for the waiter to which a lock that is handed over in order goes next, or
//!   next on its CPU. One a CPU spins so, they get the lock for certain, and whoever waits behind
//!   waits for their wake-ups too: they look after every pause.
//!
//! The pauses are the processor's (`pause`, `isb`), whose length differs by a factor of twenty
//! between CPUs; the first waiter of a process measures it. No gait ever yields to the scheduler: a
//! yield while the owner waits for this CPU costs time slices.
//!
//! Where the owner cannot run while the waiter does, spinning is pointless, and nobody spins: on a
//! lock of one process, until waiters of that process have been seen that may run on more than one
//! CPU between them. A lock between processes cannot know where the others run, and always spins.
//!
//! Budgets and pauses are the outcome of the measurements in `BENCHMARKS.md`, section "The waiting
//! rule".

use super::policy::Policy;
use crate::sys::futex::{self, Bits, Futex, Scope};
use crate::sys::sync::spin_until;
use crate::sys::world::{Price, pause};
use core::time::Duration;

/// The first pause of an arrival. Shorter ones lose throughput on empty critical sections (30 M/s
/// at 13 ns, 40 to 50 M/s at 140 ns on two CPUs), longer ones on critical sections of less than a
/// microsecond, which they oversleep.
pub const FIRST_PAUSE_NS: u32 = 140;

/// For how many times as long as a look that missed has taken the waiter does not look again. More
/// gains a little on empty critical sections, and oversleeps short ones.
pub const LEFT_ALONE: u32 = 16;

/// How long a waiter leaves a lock that is free to another that spins for it: a line takes less to
/// come and go.
const GIVE_WAY_NS: u32 = 500;

/// How a waiter of a lock spins. Zero-sized; chosen by type.
pub trait Spin: Send + Sync + 'static {
    /// The budget of an arrival, in nanoseconds.
    const ARRIVAL_NS: u32;
    /// The budget of an arrival that sees the lock saturated, in nanoseconds; at most
    /// [`ARRIVAL_NS`](Self::ARRIVAL_NS).
    const SATURATED_NS: u32;
    /// The budget of a waiter that was woken and found the lock taken again, in nanoseconds.
    const WOKEN_NS: u32;
    /// The budget of a waiter that finds nobody but the holder before it, of a lock that is handed
    /// over in order, or was called ahead of its turn and can tell that the holder does not need
    /// its CPU; and of one that finds nobody asleep for the same, of a reader-writer lock. In
    /// nanoseconds.
    const FIRST_NS: u32;
    /// The budget of a waiter on a condition variable, before it sleeps, in nanoseconds.
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
    const SATURATED_NS: u32 = 0;
    const WOKEN_NS: u32 = 0;
    const FIRST_NS: u32 = 0;
    const CONDVAR_NS: u32 = 0;
}

impl<const NS: u32> Spin for Patience<NS> {
    const ARRIVAL_NS: u32 = NS;
    const SATURATED_NS: u32 = NS;
    const WOKEN_NS: u32 = NS;
    const FIRST_NS: u32 = NS;
    const CONDVAR_NS: u32 = NS;
}

impl Spin for Adaptive {
    const ARRIVAL_NS: u32 = 6_000;
    const SATURATED_NS: u32 = 3_000;
    const WOKEN_NS: u32 = 2_000;
    const FIRST_NS: u32 = 30_000;
    const CONDVAR_NS: u32 = 12_000;
}

/// What a spinning waiter sees when it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The lock was free, and is the waiter's now.
    Acquired,
    /// The lock is taken.
    Taken,
    /// The lock is taken, by an owner who had to be woken itself or has sleepers to wake: on a busy
    /// lock now and then, on a saturated one always.
    Saturated,
    /// The lock is taken, and to look again is in vain: its owner cannot run while the waiter does,
    /// or will hand it to a sleeper.
    Hopeless,
}

/// An arrival of policy `P`: looks after a long pause, and then as the looks themselves advise.
/// True if it acquired, false when its budget is spent, at once if it has none.
#[cfg_attr(world = "vm", track_caller)]
pub fn backing_off<P: Policy>(look: impl FnMut() -> Look) -> bool {
    backing_off_for::<P>(P::Spin::ARRIVAL_NS, P::Spin::SATURATED_NS, look)
}

/// As [`backing_off`], with a budget of `ns` nanoseconds, and of `if_saturated` nanoseconds on a
/// lock that is saturated.
#[cfg_attr(world = "vm", track_caller)]
pub fn backing_off_for<P: Policy>(ns: u32, if_saturated: u32, mut look: impl FnMut() -> Look) -> bool {
    let budget = pause::budget(P::Scope::PRIVATE, ns);
    let (first, if_saturated) = (pause::count(FIRST_PAUSE_NS), pause::count(if_saturated));
    until_spent(budget, first, if_saturated, || pause::timed(&mut look))
}

/// A woken waiter of policy `P`: looks after a single pause, and then as the looks themselves
/// advise. True if it acquired; false when its budget is spent, at once if it has none, or when it
/// sees that another waiter is owed the next wake-up.
#[cfg_attr(world = "vm", track_caller)]
pub fn closely<P: Policy>(look: impl FnMut() -> Look) -> bool {
    closely_for::<P>(P::Spin::WOKEN_NS, look)
}

/// As [`closely`], with a budget of `ns` nanoseconds.
#[cfg_attr(world = "vm", track_caller)]
pub fn closely_for<P: Policy>(ns: u32, mut look: impl FnMut() -> Look) -> bool {
    until_spent(pause::budget(P::Scope::PRIVATE, ns), 1, 0, || pause::timed(&mut look))
}

/// Looks until `budget` is spent, for the first time after `first`, or until the lock is seen
/// saturated after `if_saturated`; all of them are counted in pauses.
#[cfg_attr(world = "vm", track_caller)]
fn until_spent(budget: u32, first: u32, if_saturated: u32, mut look: impl FnMut() -> (Look, Price)) -> bool {
    let (mut next, mut spent) = (first, 0);
    while spent < budget {
        let now = next.min(budget - spent);
        pause::times(now);
        let (seen, price) = look();
        spent = spent.saturating_add(now).saturating_add(price.took);
        match seen {
            Look::Acquired => return true,
            Look::Saturated if spent >= if_saturated => return false,
            Look::Hopeless => return false,
            _ => next = price.missed.saturating_mul(LEFT_ALONE).max(1),
        }
    }
    false
}

/// The first in line of a lock of policy `P` that is handed over in order: looks after each single
/// pause. True if `look` was; false when its budget is spent, at once if it has none. The budget is
/// that of a saturated lock if the caller was woken to be first: then whoever is before it may have
/// been woken too, and need this CPU. Who can tell that it does not says that it was not woken.
#[cfg_attr(world = "vm", track_caller)]
pub fn first_in_line<P: Policy>(was_woken: bool, mut look: impl FnMut() -> bool) -> bool {
    let budget = if was_woken { P::Spin::SATURATED_NS } else { P::Spin::FIRST_NS };
    (0..pause::budget(P::Scope::PRIVATE, budget)).any(|_| {
        pause::times(1);
        look()
    })
}

/// How many pauses a waiter has that may spin for `ns` nanoseconds. Zero if the thread it waits for
/// cannot run meanwhile.
pub fn budget<S: Scope>(ns: u32) -> u32 {
    pause::budget(S::PRIVATE, ns)
}

/// The longest pause between two polls of [`until`], in nanoseconds. Shorter ones take the
/// notifier's cache line away more often, longer ones are late: both cost up to a third of the
/// items a second of a bounded buffer.
const LONGEST_PAUSE_NS: u32 = 400;

/// A waiter on a condition variable: polls `is_done` after pauses that double up to 400 ns, until
/// it holds or `budget` pauses are spent.
#[cfg_attr(world = "vm", track_caller)]
pub fn until(budget: u32, mut is_done: impl FnMut() -> bool) {
    let longest = pause::count(LONGEST_PAUSE_NS);
    let (mut next, mut spent) = (1, 0);
    while spent < budget && !is_done() {
        pause::times(next);
        spent += next;
        next = (2 * next).min(longest);
    }
}

/// A number of the calling process that its parent and its children do not share, modulo four.
/// `None` if the kernel cannot tell: then nobody may rely on a thread that only spins, since a fork
/// may have left it behind.
pub(crate) fn process() -> Option<u32> {
    crate::sys::world::process_generation()
}

/// So many looks in a row that hit take `ns`, or somewhat longer; one at least.
#[inline]
pub fn looks_in(ns: u32) -> u32 {
    pause::count(ns)
}

/// Leaves a lock that is free to another that spins for it.
#[cfg_attr(world = "vm", track_caller)]
pub fn give_way() {
    pause::times(pause::count(GIVE_WAY_NS));
}

/// For how long [`outlast`] spins before it sleeps.
const BRIEFLY_NS: u32 = 2_000;
/// The longest sleep of [`outlast`].
const SHORT_NAP: Duration = Duration::from_micros(50);

/// Waits for another thread that finishes in less than [`BRIEFLY_NS`] if it runs. If it was
/// preempted, the caller leaves it a CPU, whatever the priorities of the two.
#[cfg_attr(world = "vm", track_caller)]
pub(crate) fn outlast(mut is_over: impl FnMut() -> bool) {
    if cfg!(not(world = "machine")) {
        return spin_until(is_over); // No time passes in models.
    }
    until(budget::<futex::Private>(BRIEFLY_NS), &mut is_over);
    // No thread wakes it.
    let word = Futex::<futex::Private>::new(0);
    word.naps(Bits::one(0), None, SHORT_NAP, is_over);
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

    /// How often a waiter looks that always sees `what`.
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

    /// How often a waiter with a thousand pauses looks at a lock that is taken, if each look costs
    /// `price`.
    fn looks_at(price: Price, first: u32) -> u32 {
        let mut looks = 0;
        assert!(!until_spent(1_000, first, 0, || {
            looks += 1;
            (Look::Taken, price)
        }));
        looks
    }

    #[test]
    fn the_price_of_a_look_decides_when_the_next_comes() {
        let (hit, miss) = (Price { took: 2, missed: 0 }, Price { took: 12, missed: 10 });
        // One pause and two; then the long first pause takes the place of 13 of them.
        assert_eq!(looks_at(hit, 1), 334);
        assert_eq!(looks_at(hit, 40), 321);
        // 1 + 12, then 160 + 12 each, and what is left.
        assert_eq!(looks_at(miss, 1), 7);
        // One that was preempted is the last.
        assert_eq!(looks_at(Price { took: u32::MAX, missed: u32::MAX }, 1), 1);
    }

    #[test]
    fn a_lock_that_is_promised_to_another_ends_the_spin_at_once() {
        assert_eq!(looks(|look| closely::<Shared>(look), Look::Hopeless), 1);
        assert_eq!(looks(|look| backing_off::<Shared>(look), Look::Hopeless), 1);
    }

    #[test]
    fn a_saturated_lock_ends_the_spin_earlier() {
        assert_eq!(looks(|look| closely::<Shared>(look), Look::Saturated), 1);
        let (busy, saturated) = (
            looks(|look| backing_off::<Shared>(look), Look::Taken),
            looks(|look| backing_off::<Shared>(look), Look::Saturated),
        );
        assert!(
            1 < saturated && saturated < busy,
            "{saturated} looks, {busy} on a lock that is merely taken"
        );
    }
}
