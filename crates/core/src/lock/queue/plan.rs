//! The plan of a barging lock: is one thread faster alone? All of it is advice. One invariant is
//! about it, number 9 of `mutex.rs`.
//!
//! If moving the lock's cache line to another CPU and back takes longer than one thread takes to
//! return for the lock, a second active thread only slows the first down, and burns a CPU. If
//! sections are long, and the holder returns at once, each of its releases wakes a candidate in
//! vain. In *solo mode* one thread is active. An arriving thread queues at once if it finds the
//! lock taken. The candidate naps, and takes the lock only if it finds it idle then.
//!
//! Plans are in a table, by the address of the lock. Two locks may have the same place: then the
//! advice is wrong for one of them.
//!
//! Each thread counts its releases past a waiter, so that the line of the table seldom moves. At
//! one of [`PERIOD`] it looks at the clock. A *round* lasts for [`ROUND_US`] or longer, until such
//! a look. Its length gives the time from one release to the next. From [`SLOW_NS`] on the lock is
//! *slow*. The next round is solo if the lock is not slow, or if [`VAIN`] candidates in a row stood
//! back.
//!
//! Solo mode ends if it is found slower twice, without a better round between; or in its first
//! round at once. It is slower than several threads if
//! - releases come less often than in the round before it. A slow lock is not judged so: its round
//!   has few periods, and its length says little.
//! - the candidate of a slow lock finds the mutex free at the end of a nap, in more than a quarter
//!   of its looks. A holder that returns at once leaves it free for a moment only.
//!
//! The answer is valid for [`VALID`] rounds, and "no" of a slow lock for [`SLOW_VALID`]. Then the
//! plan asks again. 64 rounds are 1/40 s, or 4,096 releases if that is longer. To ask costs a sleep
//! and a wake-up for each CPU.
//!
//! When the active thread stops using the lock, the candidate finds it idle at the end of its nap.
//! Then waiters may each lose a nap: two of a slow lock, else as many as there are until two rounds
//! have ended. A nap is 50 us long at first, and it ends with the bound.
//!
//! # Without this rule
//! Rate by the rate with the rule, in the cost model of sixteen CPUs of a Xeon (`ulocks-cost`),
//! with one and four threads for each of 2, 8 and 16 CPUs. If threads pause for 200 ns and more
//! outside, the rule costs 0.00 to 0.01. In one cell it costs 0.14: (100, 2000) ns, 32 threads on 8
//! CPUs.
//!
//! | inside, outside | `Every`: 2 CPUs | 8 | 16 | `After`: 2 CPUs | 8 | 16 |
//! |---|---|---|---|---|---|---|
//! | 0, 0 | 1.00, 1.06 | 0.72, 0.61 | 0.61, 0.68 | 1.00, 1.00 | 0.68, 0.69 | 0.68, 0.68 |
//! | 20 ns, 20 ns | 0.83, 0.72 | 0.71, 0.71 | 0.70, 0.70 | 1.00, 0.81 | 0.58, 0.59 | 0.58, 0.59 |
//! | 100 ns, 100 ns | 1.00, 0.83 | 0.80, 0.80 | 0.80, 0.80 | 1.00, 0.87 | 0.75, 0.75 | 0.75, 0.75 |
//! | 200 ns, 200 ns | 1.00, 1.00 | 1.00, 1.01 | 1.00, 1.00 | 1.00, 1.00 | 1.00, 1.00 | 1.00, 1.00 |
//! | 3 us, 0 | 1.00, 1.00 | 1.00, 1.00 | 1.00, 1.00 | 0.87, 0.81 | 0.94, 0.94 | 0.95, 0.94 |
//! | 10 us, 0 | 1.00, 1.00 | 1.00, 1.00 | 1.00, 1.00 | 0.90, 0.90 | 0.94, 0.94 | 0.94, 0.94 |
//!
//! In the last two rows `After` sleeps 0.03 to 0.24 times an operation, and without the rule 0.27
//! to 0.71 times. While threads start, an answer may be wrong: at (20, 20) ns, 8 threads on 8 CPUs,
//! the rate was a third until [`VALID`] rounds had passed.
//!
//! Naps: at (0, 10) us 16 threads sleep 0.009 times an operation; without naps, where releases wake
//! the candidate, 0.7 times.
//!
//! # Which thread touches what
//! Releasing threads write, of several locks perhaps, and their stores order nothing. What others
//! read may be old.
//!
//! (call): the candidate reads `mode`, looks at the word, and naps on `mode`. A thread that has
//! released the mutex, and calls the candidate, advances the number in `mode`, and wakes all that
//! nap there. A call is advice, too: if it is lost, the timer ends the nap.

use super::mutex::QueueMutex;
use super::rule::Rule;
use super::word::State;
use crate::lock::policy::InOneProcess;
use crate::sys::futex::{Futex, Local, Waited};
use crate::sys::membarrier;
use crate::sys::sync::Ordering::Relaxed;
use crate::sys::sync::{AtomicU32, place_of, places};
use crate::sys::time::Deadline;
use crate::sys::world;
use core::time::Duration;
use core::{fmt, ptr};

/// How many releases past a waiter are a period. A look at the clock takes tens of nanoseconds.
const PERIOD: u8 = 64;
/// How long a round lasts at least, in microseconds: some hundred operations of a busy lock, and
/// less than a time slice.
const ROUND_US: u32 = 400;
/// A lock with so many nanoseconds between two releases is slow. A line goes to another CPU and
/// back in 200 to 400 ns where that was measured.
const SLOW_NS: u32 = 400;
/// After so many candidates in a row that stood back the plan asks. On one CPU a woken waiter
/// mostly runs at once, and finds the mutex free. (Two threads on one CPU of a Xeon, `cargo bench
/// -- promises --only "one CPU"`: a median wait of 125 us if the plan asks after the first one,
/// else of 14.)
const VAIN: u32 = 8;
/// For how many rounds the answer is valid.
const VALID: u32 = 64;
/// For how many rounds a slow lock is not asked again, if one thread alone was slower: 0.1 s at
/// least. (The cost model, 16 CPUs, (3, 7) us: each time costs 0.3 ms.)
const SLOW_VALID: u32 = 250;

/// What holders have found, on a cache line of its own. All-zero at first; any value is sound.
#[repr(align(64))]
pub(super) struct Plan {
    mode: Futex<Local>,
    /// When this round began, in microseconds modulo 2^32.
    began: AtomicU32,
    /// How many periods have ended in this round.
    periods: AtomicU32,
    /// How many candidates in a row have stood back before the bound had passed.
    vain: AtomicU32,
}

/// How many plans there are.
const PLANS: usize = places(64);

crate::sync_static! {
    /// The plans of all locks, by address.
    static TABLE: [Plan; PLANS] = crate::each!(Plan::new(); PLANS);

    /// The plan of no lock, on a line that changes once. Its `periods` are not zero if any thread
    /// was active alone. That spares threads a look at their own memory, which takes a call in a
    /// shared library.
    static ALONE: Plan = Plan::new();
}

/// A value of `mode`.
///
/// | part | bits | meaning |
/// |---|---|---|
/// | `before` | 0 to 8 | nanoseconds between releases of several threads, [`SLOW_NS`] at most |
/// | `valid` | 9 to 16 | for how many more rounds the answer is valid |
/// | `SOLO` | 17 | one thread is to be active alone |
/// | `DOUBTED` | 18 | solo mode ends if it is found slower once more |
/// | the rest | 19 to 31 | how often the candidate was called |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode(u32);

const BEFORE: u32 = (1 << 9) - 1;
const VALID_SHIFT: u32 = 9;
const VALID_MASK: u32 = (1 << 8) - 1;
const SOLO: u32 = 1 << 17;
const DOUBTED: u32 = 1 << 18;
const ONE_CALL: u32 = 1 << 19;
const _: () = assert!(SLOW_NS <= BEFORE && VALID <= VALID_MASK && SLOW_VALID <= VALID_MASK);

impl Mode {
    fn is_solo(self) -> bool {
        self.0 & SOLO != 0
    }

    fn called(self) -> Self {
        Self(self.0.wrapping_add(ONE_CALL))
    }

    fn with(self, solo: bool, doubted: bool, valid: u32, before: u32) -> Self {
        let flags = if solo { SOLO } else { 0 } | if doubted { DOUBTED } else { 0 };
        Self(self.0 & !(ONE_CALL - 1) | flags | valid << VALID_SHIFT | before)
    }

    fn before(self) -> u32 {
        self.0 & BEFORE
    }

    fn valid(self) -> u32 {
        self.0 >> VALID_SHIFT & VALID_MASK
    }

    /// The mode after solo mode, with answers valid for `valid` more rounds, was found slower.
    fn slower(self, valid: u32) -> Self {
        let (before, ends) = (self.before(), self.0 & DOUBTED != 0);
        match (ends, before == SLOW_NS) {
            (false, _) => self.with(valid > 0, true, valid, before),
            (true, false) => self.with(false, false, VALID, before),
            (true, true) => self.with(false, false, SLOW_VALID, before),
        }
    }

    /// Whether one thread of a slow lock is active alone. The candidate judges that.
    pub(super) fn is_slow_solo(self) -> bool {
        self.is_solo() && self.before() == SLOW_NS
    }

    /// The mode after the candidate has found the mutex free at the end of a nap.
    fn after_idle(self) -> Self {
        if self.is_slow_solo() { self.slower(self.valid()) } else { self }
    }

    /// The mode after a round with `ns` nanoseconds from release to release, at most [`SLOW_NS`].
    /// `vain`: all candidates of late have stood back.
    fn after_round(self, ns: u32, vain: bool) -> Self {
        let valid = self.valid().saturating_sub(1);
        if !self.is_solo() {
            // The answer of a slow lock is none of a fast one.
            let valid = if ns < SLOW_NS && valid > VALID { 0 } else { valid };
            let asks = valid == 0 && (vain || ns < SLOW_NS);
            self.with(asks, asks, if asks { VALID } else { valid }, ns)
        } else if ns > self.before() {
            self.slower(valid)
        } else {
            self.with(valid > 0, false, valid, self.before())
        }
    }
}

impl Plan {
    crate::const_fn! {
        fn new() -> Self {
            Self {
                mode: Futex::new(0),
                began: AtomicU32::new(0),
                periods: AtomicU32::new(0),
                vain: AtomicU32::new(0),
            }
        }
    }

    /// The plan of the lock at `address`; others may share it. `None` in a model that has no time.
    #[inline]
    pub(super) fn of(address: usize) -> Option<&'static Self> {
        world::has_rates().then(|| {
            let table: &'static [Self; PLANS] = &TABLE;
            &table[place_of(address, PLANS)]
        })
    }

    /// What the candidate naps on.
    pub(super) fn mode(&self) -> Mode {
        Mode(self.mode.load(Relaxed))
    }

    fn set_mode(&self, mode: Mode) {
        // A plain store. The model of the kernel compares by a read-modify-write, which this must
        // not overwrite.
        membarrier::store(&self.mode, mode.0, Relaxed);
    }

    /// Whether one thread is to be active alone.
    #[inline]
    pub(super) fn is_solo(&self) -> bool {
        self.mode().is_solo()
    }

    /// A candidate stands back before the bound has passed.
    pub(super) fn note_vain(&self) {
        self.vain.fetch_add(1, Relaxed);
    }

    /// A candidate has acquired the mutex, which was not kept for it.
    pub(super) fn note_won(&self) {
        if self.vain.load(Relaxed) != 0 {
            self.vain.store(0, Relaxed);
        }
    }

    /// The candidate of a slow lock has found the mutex free at the end of a nap.
    pub(super) fn note_idle(&self) {
        self.set_mode(self.mode().after_idle());
    }

    /// The candidate naps.
    pub(super) fn nap(&self, mode: Mode, until: Option<Deadline>) -> Waited {
        self.mode.wait(mode.0, until)
    }

    /// Notes a release past a waiter of the lock at `address`, after which its word was `word`.
    /// Calls the candidate if `calls`, or if solo mode ends.
    #[inline]
    fn note_release(&self, address: usize, word: State, calls: bool) {
        let ends_period = world::with_releases(|releases| releases.is_nth(PERIOD));
        let ends_solo = ends_period && self.end_period(address, word);
        if calls || ends_solo {
            self.call();
        }
    }

    /// Remembers the word of a free lock, for [`QueueMutex::guess`].
    fn remember(address: usize, word: State) {
        let is_guess = word.is_awake() && !word.is_locked() && !word.is_due();
        let bits = if is_guess { word.bits() } else { 0 };
        world::with_releases(|releases| releases.set_left(address, bits));
    }

    /// (call).
    #[cold]
    fn call(&self) {
        self.set_mode(self.mode().called());
        self.mode.key().wake(u32::MAX);
    }

    /// Judges the round if it is over, and remembers `word` if the thread is alone. Whether that
    /// ends solo mode.
    #[cold]
    #[inline(never)]
    fn end_period(&self, address: usize, word: State) -> bool {
        let was = self.mode();
        if was.is_solo() && ALONE.periods.load(Relaxed) == 0 {
            ALONE.periods.store(1, Relaxed);
        }
        Self::remember(address, if was.is_solo() { word } else { State::FREE });
        let now = Deadline::after(Duration::ZERO).since_zero().as_micros() as u32;
        let lasted = now.wrapping_sub(self.began.load(Relaxed));
        let periods = self.periods.load(Relaxed).saturating_add(1);
        if lasted < ROUND_US {
            self.periods.store(periods, Relaxed);
            return false;
        }
        let releases = periods.saturating_mul(PERIOD.into());
        let ns = (u64::from(lasted) * 1_000 / u64::from(releases)).min(SLOW_NS.into());
        let mode = was.after_round(ns as u32, self.vain.load(Relaxed) >= VAIN);
        self.began.store(now, Relaxed);
        self.periods.store(0, Relaxed);
        self.set_mode(mode);
        was.is_solo() && !mode.is_solo()
    }
}

impl<P: InOneProcess, R: Rule> QueueMutex<P, R> {
    /// The plan, if the rule has one.
    #[inline]
    pub(super) fn plan(&self) -> Option<&'static Plan> {
        if R::PLANNED { Plan::of(ptr::from_ref(self).addr()) } else { None }
    }

    /// Whether one thread is to be active alone.
    #[inline]
    pub(super) fn is_solo(&self) -> bool {
        R::ALWAYS_SOLO || self.plan().is_some_and(Plan::is_solo)
    }

    /// The word as the calling thread expects it while the mutex is free: what it left there, if it
    /// was active alone when it noted a period last. It is open. If it is not `FREE`, a candidate
    /// is awake. So (take) and (free) may go from one to the other.
    ///
    /// Without it the active thread sets a bit to acquire, and looks at the word to release. (Two
    /// CPUs of an EPYC, two runs of `cargo bench -- scaling --hold 0 --think 0` with eight threads:
    /// `ThroughputMutex` had 0.51 of parking_lot's rate and 16.9 ns of CPU time an operation, and
    /// has 1.03 and 7.6 ns. Sixteen CPUs in the cost model: 1.44 of the rate, with `Calock` 1.04;
    /// with 20 ns inside and outside 1.15 and 1.02.)
    #[inline(always)]
    pub(super) fn guess(&self) -> State {
        let has_rates = R::PLANNED && world::has_rates() && ALONE.periods.load(Relaxed) != 0;
        if !has_rates && !R::ALWAYS_SOLO {
            return State::FREE;
        }
        core::hint::cold_path();
        State::guessed(world::with_releases(|releases| releases.left(ptr::from_ref(self).addr())))
    }

    /// Notes that the mutex at `address` was released past a waiter, and that its word was `word`
    /// then. The mutex may be gone. `departs`: that thread goes to wait on a condition variable,
    /// and a candidate is awake.
    #[inline(never)]
    pub(super) fn note_release(address: usize, word: State, departs: bool) {
        if R::ALWAYS_SOLO || R::PLANNED && word == State::FREE {
            Plan::remember(address, word); // or forgets: nobody waits
        }
        if R::PLANNED
            && let Some(plan) = Plan::of(address)
        {
            plan.note_release(address, word, departs && (R::CULLED || plan.is_solo()));
        }
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", if self.is_solo() { "solo" } else { "crowd" })?;
        write!(f, " before={} valid={}", self.before(), self.valid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::meter::Counted;
    use crate::lock::policy::Private;
    use crate::lock::queue::rule::Every;
    use crate::lock::queue::word::DUE;
    use crate::lock::spin::NoSpin;
    use crate::lock::traits::RawMutex;

    /// The modes after rounds of so many nanoseconds a release, as solo or not.
    fn solo(rounds: &[u32]) -> Vec<bool> {
        let mut mode = Mode(0);
        let after = |&ns: &u32| {
            mode = mode.after_round(ns, false);
            mode.is_solo()
        };
        rounds.iter().map(after).collect()
    }

    #[test]
    fn one_thread_is_tried_alone_where_releases_come_often() {
        assert_eq!(solo(&[SLOW_NS - 1, 100, 100]), [true, true, true]);
        assert_eq!(solo(&[SLOW_NS; 3]), [false, false, false]);
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
    fn a_slow_lock_is_tried_alone_if_a_candidate_stood_back_until_it_is_found_idle() {
        let solo = Mode(0).after_round(SLOW_NS, true);
        assert!(solo.is_solo());
        let no = solo.after_idle();
        assert!(!no.is_solo(), "at once in the first round");
        let rounds = |mode: Mode, n| (0..n).fold(mode, |mode, _| mode.after_round(SLOW_NS, true));
        assert!(!rounds(no, SLOW_VALID - 1).is_solo() && rounds(no, SLOW_VALID).is_solo());
        let settled = rounds(solo, 1);
        let doubted = settled.after_idle();
        assert!(doubted.is_solo() && !doubted.after_idle().is_solo());
        assert!(rounds(doubted, 1).after_idle().is_solo(), "a round between");
        let fast = Mode(0).after_round(SLOW_NS - 1, true);
        assert!(fast.after_idle() == fast, "it is judged by its releases");
    }

    /// The first round has begun long ago, so the lock is slow.
    #[test]
    fn a_plan_asks_after_candidates_that_stood_back_in_a_row_and_hears_of_a_free_mutex() {
        let after_a_round = |vain: u32, won: bool| {
            let plan = Plan::new();
            (0..vain).for_each(|_| plan.note_vain());
            if won {
                plan.note_won();
            }
            (0..PERIOD).for_each(|_| plan.note_release(1, State::FREE, false));
            plan
        };
        assert!(!after_a_round(VAIN - 1, false).is_solo());
        assert!(!after_a_round(VAIN, true).is_solo(), "one has acquired the mutex");
        let plan = after_a_round(VAIN, false);
        assert!(plan.mode().is_slow_solo());
        plan.note_idle();
        assert!(!plan.is_solo());
    }

    #[test]
    fn a_call_changes_the_number_alone() {
        let mode = Mode(0).after_round(300, false);
        assert_eq!(
            format!("{mode:?} {:?}", mode.called()),
            "solo before=300 valid=64 solo before=300 valid=64"
        );
        assert!(mode.called() != mode && Mode(u32::MAX).called().is_solo());
        assert_eq!(mode.called().after_round(301, false).0 >> 19, 1);
    }

    #[test]
    fn what_is_remembered_is_free_and_not_due_and_has_a_candidate() {
        let after = |word| {
            Plan::remember(7, word);
            State::guessed(world::with_releases(|releases| releases.left(7)))
        };
        let awake = State::FREE.awake();
        assert_eq!(after(awake), awake);
        let due = State(awake.0.map_addr(|bits| bits | DUE));
        for word in [State::HELD, awake.locked(), due, State::FREE.queue_locked()] {
            assert_eq!(after(word), State::FREE, "{word:?}");
        }
        Plan::remember(8, awake);
        assert_eq!(world::with_releases(|releases| releases.left(7)), 0, "it is another lock's");
    }

    #[test]
    fn a_call_ends_a_nap_and_one_release_of_a_period_looks_at_the_clock() {
        let plan = Plan::new();
        plan.periods.store(7, Relaxed);
        (0..2 * PERIOD).for_each(|_| plan.note_release(1, State::FREE, false));
        // The first round has begun long ago, and the second not: two looks at the clock.
        assert_eq!(plan.periods.load(Relaxed), 1);
        assert!(!plan.mode().is_solo());
        let before = plan.mode();
        plan.note_release(1, State::FREE, true);
        assert_eq!(plan.nap(before, Some(Deadline::after(Duration::ZERO))), Waited::Mismatch);
    }

    /// Each nap is twice as long as the one before, and no number is that large.
    #[test]
    fn a_candidate_may_be_called_hundreds_of_times() {
        const HOURS: u64 = 10_000_000_000_000;
        static MUTEX: QueueMutex<Private<NoSpin, Counted>, Every<HOURS>> = QueueMutex::new();
        let plan = MUTEX.plan().expect("the rule has one");
        MUTEX.lock();
        let candidate = std::thread::spawn(|| {
            MUTEX.lock();
            // SAFETY: locked above; the token is nothing.
            unsafe { MUTEX.unlock(()) };
        });
        while MUTEX.meter().snapshot().slept < 300 {
            plan.call();
        }
        // SAFETY: locked above; the token is nothing.
        unsafe { MUTEX.unlock(()) };
        while !candidate.is_finished() {
            plan.call();
        }
        candidate.join().unwrap();
    }
}
