//! The plan of a culled lock: is one thread faster alone? All of it is advice.
//!
//! If moving the lock's cache line to another CPU and back takes longer than one thread takes to
//! return for the lock, a second active thread only slows the first down, and burns a CPU. In *solo
//! mode* one thread is active. An arriving thread that finds the lock taken queues at once, and the
//! candidate takes the lock only if it was idle during a nap.
//!
//! The holder counts the releases past a waiter. In one of [`PERIOD`] it looks at the clock. A
//! *round* lasts for [`ROUND_US`] or longer, until such a look. Its length gives the time from one
//! release to the next. If that is less than [`SLOW_NS`], the next round is solo. Solo mode ends if
//! releases come less often than before in two rounds in a row; or in its first round at once. The
//! answer is valid for [`VALID`] rounds, that is, 1/40 s. Then the plan asks again. So a wrong
//! answer costs little. To ask costs a sleep and a wake-up for each CPU.
//!
//! When the active thread stops using the lock, the candidate finds it idle at the end of its nap.
//!
//! # Without this rule
//! Rate by the rate with the rule, in the cost model of sixteen CPUs of a Xeon (`ulocks-cost`),
//! with one and four threads for each of 2, 8 and 16 CPUs. From (500, 500) ns on both are the same.
//!
//! | inside, outside | 2 CPUs | 8 | 16 |
//! |---|---|---|---|
//! | 0, 0 | 1.00, 0.66 | 0.65, 0.65 | 0.65, 0.65 |
//! | 20 ns, 20 ns | 0.83, 0.60 | 0.62, 0.63 | 0.62, 0.62 |
//! | 100 ns, 100 ns | 1.00, 0.79 | 0.76, 0.76 | 0.77, 0.77 |
//! | 200 ns, 200 ns | 1.00, 1.01 | 0.99, 1.00 | 1.00, 1.00 |
//!
//! Naps: at (0, 10) us 16 threads sleep 0.009 times an operation; without naps, where releases wake
//! the candidate, 0.7 times.
//!
//! # Which thread touches what
//! The holder alone writes, and its stores order nothing. It alone reads `own`, which passes on
//! with the mutex. Others read `mode` and `releases`, and what they read may be old.
//!
//! (call): the candidate naps on `mode`. A holder that calls it advances the number in `mode`,
//! frees the mutex, and then wakes the candidate by address. A call is advice, too. It may come
//! after the candidate has read the number and before it sleeps; then the timer ends the nap.

use crate::sys::futex::{Futex, FutexKey, Local, Waited};
use crate::sys::membarrier;
use crate::sys::sync::Ordering::Relaxed;
use crate::sys::sync::{AtomicU8, UnsafeCell};
use crate::sys::time::Deadline;
use core::fmt;
use core::time::Duration;

/// How many releases past a waiter are a period. A look at the clock takes tens of nanoseconds.
const PERIOD: u8 = 64;
/// How long a round lasts at least, in microseconds: some hundred operations of a busy lock, and
/// less than a time slice.
const ROUND_US: u16 = 400;
/// From so many nanoseconds between two releases on the plan does not ask. A line goes to another
/// CPU and back in 200 to 400 ns where that was measured.
const SLOW_NS: u32 = 400;
/// For how many rounds the answer is valid.
const VALID: u32 = 64;

/// What the holder knows, in eight bytes. All-zero at first; any value is sound.
pub struct Plan {
    mode: Futex<Local>,
    /// How many releases past a waiter there were, modulo 256.
    releases: AtomicU8,
    own: UnsafeCell<Own>,
}

// SAFETY: only the holder accesses `own`, and a release happens before the next acquisition
// returns.
unsafe impl Sync for Plan {}

/// What the holder alone reads and writes.
#[derive(Clone, Copy)]
struct Own {
    /// When this round began, in microseconds modulo 2^16. Bytes, so that they need no alignment.
    began: [u8; 2],
    /// How many periods ended in this round, up to [`MOST`](Self::MOST), and
    /// [`SOLO`](Self::SOLO) if the mode is solo.
    periods: u8,
}

impl Own {
    const SOLO: u8 = 128;
    const MOST: u8 = 127;
}

/// A value of `mode`.
///
/// | part | bits | meaning |
/// |---|---|---|
/// | `before` | 0 to 8 | the time from release to release when several threads were active, in nanoseconds |
/// | `valid` | 9 to 15 | for how many more rounds the answer is valid |
/// | `SOLO` | 16 | one thread is to be active alone |
/// | `DOUBTED` | 17 | the next slower round ends solo mode |
/// | the rest | 18 to 31 | how often the candidate was called |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode(u32);

const BEFORE: u32 = (1 << 9) - 1;
const VALID_SHIFT: u32 = 9;
const VALID_MASK: u32 = (1 << 7) - 1;
const SOLO: u32 = 1 << 16;
const DOUBTED: u32 = 1 << 17;
const ONE_CALL: u32 = 1 << 18;
const _: () = assert!(SLOW_NS <= BEFORE && VALID <= VALID_MASK);

impl Mode {
    fn is_solo(self) -> bool {
        self.0 & SOLO != 0
    }

    fn called(self) -> Self {
        Self(self.0.wrapping_add(ONE_CALL))
    }

    /// The mode after a round with `ns` nanoseconds from release to release.
    fn after_round(self, ns: u32) -> Self {
        let ns = ns.min(SLOW_NS);
        let before = self.0 & BEFORE;
        let valid = (self.0 >> VALID_SHIFT & VALID_MASK).saturating_sub(1);
        let with = |solo: bool, doubted: bool, valid: u32, before: u32| {
            let flags = if solo { SOLO } else { 0 } | if doubted { DOUBTED } else { 0 };
            Self(self.0 & !(ONE_CALL - 1) | flags | valid << VALID_SHIFT | before)
        };
        if self.is_solo() {
            let slower = ns > before;
            if slower && self.0 & DOUBTED != 0 {
                return with(false, false, VALID, before);
            }
            with(valid > 0, slower, valid, before)
        } else if valid == 0 && ns < SLOW_NS {
            with(true, true, VALID, ns)
        } else {
            with(false, false, valid, ns)
        }
    }
}

impl Plan {
    crate::const_fn! {
        /// A plan that knows nothing.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            let own = Own { began: [0; 2], periods: 0 };
            Self { mode: Futex::new(0), releases: AtomicU8::new(0), own: UnsafeCell::new(own) }
        }
    }

    fn mode(&self) -> Mode {
        Mode(self.mode.load(Relaxed))
    }

    fn set_mode(&self, mode: Mode) {
        // A plain store. The model of the kernel compares by a read-modify-write, which this must
        // not overwrite.
        membarrier::store(&self.mode, mode.0, Relaxed);
    }

    fn own<R>(&self, with: impl FnOnce(&mut Own) -> R) -> R {
        // SAFETY: called by the holder only, and no caller keeps the reference.
        self.own.with_mut(|own| with(unsafe { &mut *own }))
    }

    /// Whether one thread is to be active alone.
    #[inline]
    pub(super) fn is_solo(&self) -> bool {
        self.mode().is_solo()
    }

    /// The same, from what the holder alone writes. Called by the holder.
    #[inline]
    pub(super) fn holder_is_solo(&self) -> bool {
        self.own(|own| own.periods & Own::SOLO != 0)
    }

    /// The number of releases past a waiter, and what the candidate naps on.
    pub(super) fn look(&self) -> (u8, Mode) {
        (self.releases.load(Relaxed), self.mode())
    }

    /// The candidate naps.
    pub(super) fn nap(&self, mode: Mode, until: Option<Deadline>) -> Waited {
        self.mode.wait(mode.0, until)
    }

    /// Notes a release past a waiter. Called by the holder. Returns how to wake the candidate if it
    /// is called: if `calls`, or if solo mode ends.
    #[inline]
    pub(super) fn note_release(&self, calls: bool) -> Option<FutexKey<Local>> {
        let releases = self.releases.load(Relaxed).wrapping_add(1);
        self.releases.store(releases, Relaxed);
        let ends_solo = releases.is_multiple_of(PERIOD) && self.end_period();
        (calls || ends_solo).then(|| {
            self.set_mode(self.mode().called()); // (call)
            self.mode.key()
        })
    }

    /// Judges the round if it is over. Whether that ends solo mode.
    #[cold]
    #[inline(never)]
    fn end_period(&self) -> bool {
        let now = Deadline::after(Duration::ZERO).since_zero().as_micros() as u16;
        let was = self.mode();
        self.own(|own| {
            let lasted = now.wrapping_sub(u16::from_ne_bytes(own.began));
            let periods = ((own.periods & Own::MOST) + 1).min(Own::MOST);
            if lasted < ROUND_US {
                own.periods = own.periods & Own::SOLO | periods;
                return false;
            }
            let ns = u32::from(lasted) * 1_000 / (u32::from(periods) * u32::from(PERIOD));
            let mode = was.after_round(ns);
            *own = Own { began: now.to_ne_bytes(), periods: if mode.is_solo() { Own::SOLO } else { 0 } };
            self.set_mode(mode);
            was.is_solo() && !mode.is_solo()
        })
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", if self.is_solo() { "solo" } else { "crowd" })?;
        write!(f, " before={} valid={}", self.0 & BEFORE, self.0 >> VALID_SHIFT & VALID_MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modes after rounds of so many nanoseconds a release, as solo or not.
    fn solo(rounds: &[u32]) -> Vec<bool> {
        let mut mode = Mode(0);
        let after = |&ns: &u32| {
            mode = mode.after_round(ns);
            mode.is_solo()
        };
        rounds.iter().map(after).collect()
    }

    #[test]
    fn one_thread_is_tried_alone_where_releases_come_often() {
        assert_eq!(solo(&[SLOW_NS - 1, 100, 100]), [true, true, true]);
        assert_eq!(solo(&[SLOW_NS, SLOW_NS, 10_000]), [false, false, false]);
    }

    #[test]
    fn what_is_slower_alone_ends() {
        assert_eq!(solo(&[200, 201, 200]), [true, false, false]);
        assert_eq!(solo(&[200, 199, 201, 199, 201, 201]), [true, true, true, true, true, false]);
    }

    #[test]
    fn an_answer_is_valid_for_a_while() {
        let last = |rounds| *solo(&vec![200; rounds as usize]).last().unwrap();
        assert!(last(VALID) && !last(VALID + 1) && last(VALID + 2));
        let rounds: Vec<u32> = [200, 201].into_iter().chain((0..VALID).map(|_| 200)).collect();
        let alone = solo(&rounds);
        assert_eq!(alone.iter().filter(|&&solo| solo).count(), 2);
        assert!(alone[alone.len() - 1], "it asks again");
    }

    #[test]
    fn a_call_changes_the_number_alone() {
        let mode = Mode(0).after_round(300);
        assert_eq!(
            format!("{mode:?} {:?}", mode.called()),
            "solo before=300 valid=64 solo before=300 valid=64"
        );
        assert!(mode.called() != mode && Mode(u32::MAX).called().is_solo());
        assert_eq!(mode.called().after_round(301).0 >> 18, 1);
    }

    #[test]
    fn sixty_four_releases_are_looked_at_once() {
        let plan = Plan::new();
        assert!(plan.note_release(false).is_none() && plan.note_release(true).is_some());
        plan.own(|own| own.periods = Own::SOLO | Own::MOST);
        for _ in 0..PERIOD {
            plan.note_release(false);
        }
        assert_eq!(plan.look().0, PERIOD + 2);
        assert_eq!(size_of::<Plan>(), 8);
    }
}
