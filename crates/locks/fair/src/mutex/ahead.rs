//! Which waiter is woken ahead of its turn: a part of the protocol ([`raw`](super::raw)).
//!
//! A waiter that is woken only when it is granted the mutex holds up all others: to wake a thread
//! on an idle CPU takes tens of microseconds, and costs the releasing thread ten of them, for the
//! interrupt. So with each hand-over the queue-lock holder *wakes* one more waiter *ahead*. That
//! waiter spins until its turn comes or its budget is spent.
//!
//! The choice depends on CPUs. A thread wakes up on the CPU where it went to sleep, its *last CPU*,
//! unless that is busy and another one is idle. The queue-lock holder knows the last CPU of the
//! waiter that it grants. The rules:
//!
//! 1. If a waiter has the last CPU of the granted waiter, it is not woken ahead: its grant wakes
//!    it. It cannot run before the new holder sleeps. Woken early, it takes the CPU from the
//!    holder, or runs before the holder only to find that it has to wait. Otherwise the new holder
//!    goes to sleep, and the CPU passes to the waiter by one context switch.
//! 2. Any other waiter can run beside the holder. The next one is woken ahead, or, if that cannot
//!    run, the one after it: then the hand-over to it costs nothing.
//!
//! So with two CPUs the mutex is passed on as if there were two queues, one for each CPU. With many
//! CPUs it is nearly always the next waiter. Several waiters may be awake ahead, each for its
//! budget, but one of each last CPU: it was the first of its CPU in the queue. So no other waiter
//! of that CPU is granted before it, and what it knows of the holder's CPU stays true where it
//! matters.
//!
//! A waiter that is woken ahead is told the last CPU of the granted waiter. If that is its own CPU,
//! it does not spin, or stops: the holder is likely to wait for the CPU. In return it may spin for
//! the whole of [`FIRST_NS`](ulocks_core::spin::Spin::FIRST_NS), as if it had found the queue
//! empty, provided it knows both CPUs. (Without that knowledge its budget holds up the holder for
//! as long as it is: on two CPUs, 32 threads, hold 1 us, non-hold 9 us, 45 to 49 k/s with budgets
//! from 1 to 10 us, 29 k/s with 30 us, 8 k/s with 100 us.)
//!
//! A last CPU may be out of date or unknown, as in models. Then another waiter is woken ahead, or
//! none, or one spins in vain for its budget. Nothing else depends on it: a sleeping waiter is
//! woken by its grant.

use crate::queue::{Cpu, Kind, Node, Status};
use ulocks_core::cpu;
use ulocks_core::futex::{Futex, FutexKey, Local};
use ulocks_core::sync::Ordering::Relaxed;

/// How many waiters behind the granted one are examined: the next one, and the one after it if the
/// next has the granted waiter's CPU (rule 2). Other numbers were not measured.
const NEAR: usize = 2;

/// The CPU of the calling thread.
pub(super) fn here() -> Cpu {
    Cpu::new(cpu::current())
}

/// Chooses a waiter to be awake while the granted one, whose last CPU is `holder`, has the mutex:
/// of `second`, which is next, and those behind it up to `newest`. Returns by what to wake it if it
/// is asleep.
///
/// # Safety
/// The caller is the queue-lock holder and has completed the links. `second` and `newest` are
/// queued.
pub(super) unsafe fn wake_ahead(
    second: *const Node,
    newest: *const Node,
    holder: Cpu,
) -> Option<FutexKey<Local>> {
    let mut node = second;
    for _ in 0..NEAR {
        // SAFETY: queued nodes are alive.
        let status = unsafe { &(*node).status };
        let seen = Status(status.load(Relaxed));
        if !seen.last_cpu().is(holder) {
            return mark(status, seen, holder);
        }
        if node == newest {
            return None;
        }
        // SAFETY: as above, and the node is not the newest.
        node = unsafe { Node::newer(node) };
    }
    None
}

/// Sets `WokenAhead` in the status, which was `seen`. Returns by what to wake the waiter if it is
/// asleep.
fn mark(status: &Futex<Local>, mut seen: Status, holder: Cpu) -> Option<FutexKey<Local>> {
    while seen.is(Kind::Waiting) || seen.is(Kind::WokenAhead) || seen.is(Kind::Parked) {
        let ahead = seen.woken_ahead(holder);
        if seen == ahead {
            return None;
        }
        match status.compare_exchange(seen.0, ahead.0, Relaxed, Relaxed) {
            Ok(_) => return seen.is(Kind::Parked).then(|| status.key()),
            Err(now) => seen = Status(now),
        }
    }
    None // it leaves
}
