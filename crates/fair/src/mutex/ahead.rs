//! Who is woken ahead of its turn: part of the protocol of one process.
//!
//! A sleeper that is woken when it is granted the mutex keeps everybody waiting: a wake-up of a
//! thread on an idle CPU takes tens of microseconds, and the releaser pays ten of them, for the
//! interrupt. So the tender *calls* one waiter more with each hand-over, which wakes it if it is
//! asleep. A called waiter spins until its turn comes or its budget is spent.
//!
//! Whom to call is a matter of CPUs. A thread is woken where it slept unless that CPU is busy and
//! another one idle; so where it slept, its *home*, is where it will run. The tender knows the home
//! of whom it grants the mutex:
//!
//! - A waiter with the home of the new holder cannot run before the holder sleeps. Awake early it
//!   takes the CPU away from the holder, or is run before a holder that has not been run yet, to
//!   find out that it has to wait. It is not called: its grant wakes it. The releaser next door
//!   sleeps then, and the CPU changes hands at the price of a switch.
//! - Anybody else can run beside the holder. The next in line is called, or the one after that, if
//!   the next one cannot run: the hand-over to it costs nothing.
//! - Further behind, and in a long line, one that is at home on the very CPU of the tender is
//!   called: the tender is about to leave that CPU, most likely, to wait in line. To wake somebody
//!   who is to run here takes no interrupt; and the CPU does not fall idle, so whoever is woken on
//!   it later does not have to wait until it is up again.
//!
//! So with two CPUs the line is passed on as if it were two lines, one a CPU, and with many CPUs
//! nearly always the next one is called. There may be more than one called waiter awake, each for
//! its budget, but one of each home: each was the first of its home in line when it was called. So
//! nobody of the same home is granted before it, and what it is told of the holder is not out of
//! date in what matters.
//!
//! Whoever is called far from its turn may keep from the CPU, for its budget, a thread that has
//! just released and is about to come into line again. In a short line that thread misses its turn
//! by it: eight threads that hold for 1 us and come again at once did four times as much as without
//! such calls, but some of them 0.88 and others 1.13 of the mean. So a line is *long* if it takes a
//! budget to get through it: sixteen hand-overs of 2 us, which is what a switch takes.
//!
//! A called waiter is told the home of the holder of that moment, and does not spin, or stops, if
//! that is its own CPU: the holder is likely to wait for it. That allows it the whole of
//! [`FIRST_NS`](ulocks_core::spin::Spin::FIRST_NS), as if it had found nobody in line, provided it
//! knows both CPUs. (A budget without that knowledge holds up the holder for as long as it is: on
//! two CPUs, 32 threads, hold 1 us, non-hold 9 us, 45 to 49 k/s with budgets from 1 to 10 us, 29
//! k/s with 30 us, 8 k/s with 100 us.)
//!
//! What a home says may be out of date or unknown, as in models. Then the wrong one is called, or
//! none, or it spins in vain for its budget. Nothing else hangs on it: who sleeps is woken by its
//! grant.

use super::queue::Waiter;
use super::turn::{Cpu, Kind, Turn};
use ulocks_core::cpu;
use ulocks_core::futex::{Futex, FutexKey, Private};
use ulocks_core::sync::Ordering::Relaxed;

/// How many of those behind the new holder are near: to be called even if that takes an interrupt.
const NEAR: usize = 2;
/// A line of more than so many behind the new holder is long; nobody further behind is looked at.
const LONG: usize = 16;

/// The CPU of the calling thread.
pub(super) fn here() -> Cpu {
    Cpu::new(cpu::current())
}

/// Calls who is to be awake ahead of its turn while somebody at home on `holder` holds the mutex:
/// of `second`, the first in line by then, and those behind it up to `newest`. Returns by what to
/// wake it if it is asleep.
///
/// # Safety
/// The caller is the tender, `second` and `newest` are in line, and the links between them are
/// complete.
pub(super) unsafe fn call_ahead(
    second: *const Waiter,
    newest: *const Waiter,
    holder: Cpu,
    here: Cpu,
) -> Option<FutexKey<Private>> {
    let (mut node, mut far) = (second, None);
    for place in 0..LONG {
        // SAFETY: nodes in line are alive.
        let turn = unsafe { &(*node).turn };
        let seen = Turn(turn.load(Relaxed));
        let runs_beside = !seen.home().is(holder);
        if runs_beside && place < NEAR {
            return call(turn, seen, holder);
        }
        if runs_beside && far.is_none() && seen.home().is(here) {
            far = Some((turn, seen));
        }
        if node == newest {
            return None;
        }
        // SAFETY: the links are the tender's.
        node = unsafe { Waiter::links(node, |links| links.newer) };
    }
    let (turn, seen) = far?;
    call(turn, seen, holder)
}

/// Calls the waiter whose turn was `seen`; returns by what to wake it if it is asleep.
fn call(turn: &Futex<Private>, mut seen: Turn, holder: Cpu) -> Option<FutexKey<Private>> {
    while seen.is(Kind::Waiting) || seen.is(Kind::Called) || seen.is(Kind::Parked) {
        let called = seen.called(holder);
        if seen == called {
            return None;
        }
        match turn.compare_exchange(seen.0, called.0, Relaxed, Relaxed) {
            Ok(_) => return seen.is(Kind::Parked).then(|| turn.key()),
            Err(now) => seen = Turn(now),
        }
    }
    None // it is about to leave
}
