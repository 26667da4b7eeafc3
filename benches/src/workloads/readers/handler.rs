//! What a thread's signal handler works with: memory that is there before the first signal, and
//! nothing else.
//!
//! The handler finds its context by a thread-local pointer that is constant-initialised and has no
//! destructor, so that to read the pointer is one load. The context is written by handlers of its
//! thread, which do not interrupt each other. It is read when the thread has ended. Everything in
//! it is atomic and relaxed.

use super::HandlerOutcome;
use super::shared_data::SharedData;
use crate::run::clock;
use crate::statistics::delays::Delays;
use crate::subjects::rwlocks::{OnSignal, RwLock};
use crate::workloads::window::MEASURE;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What the handlers of one thread share.
#[derive(Debug)]
pub(super) struct HandlerContext<'a, L> {
    lock: &'a L,
    data: &'a SharedData,
    phase: &'a AtomicU64,
    tries: bool,
    period_ns: u64,
    /// When the timer expires first.
    first_ns: AtomicU64,
    /// Which expiry the next handler belongs to.
    expiry: AtomicU64,
    timer: AtomicUsize,
    samples: Box<[[AtomicU64; 3]]>,
    taken: AtomicUsize,
    refused: AtomicU64,
    overrun: AtomicU64,
    lost: AtomicU64,
    torn: AtomicU64,
}

thread_local! {
    /// The context of this thread, while it has a timer.
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

impl<'a, L: RwLock> HandlerContext<'a, L> {
    /// Room for as many delays as can come in `window_ms`, within reason.
    pub(super) fn new(
        lock: &'a L,
        data: &'a SharedData,
        phase: &'a AtomicU64,
        tries: bool,
        period_ns: u64,
        window_ms: u64,
    ) -> Self {
        let expected = (window_ms * 1_000_000 / period_ns.max(1)) as usize;
        let room = (expected + expected / 8 + 64).min(1 << 18);
        Self {
            lock,
            data,
            phase,
            tries,
            period_ns,
            first_ns: AtomicU64::new(0),
            expiry: AtomicU64::new(0),
            timer: AtomicUsize::new(0),
            samples: (0..room).map(|_| [const { AtomicU64::new(0) }; 3]).collect(),
            taken: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            overrun: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            torn: AtomicU64::new(0),
        }
    }

    /// How often the timer expires.
    pub(super) fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// The timer, which will expire at `first_ns` and then every period.
    pub(super) fn arm(&self, timer: libc::timer_t, first_ns: u64) {
        self.timer.store(timer.expose_provenance(), Relaxed);
        self.first_ns.store(first_ns, Relaxed);
    }

    /// From here on, handlers on the calling thread have this context, or none. The caller blocks
    /// the signal.
    pub(super) fn set_current(context: Option<&Self>) {
        CURRENT.set(context.map_or(ptr::null(), |context| ptr::from_ref(context).cast()));
    }

    /// The handler.
    fn handle(&self, context: &L::Context<'_>) {
        let entered_ns = clock::monotonic_ns();
        let asked = clock::now();
        // A reader asks until it has the lock, as the seed's interrupt did. A try asks once.
        let held = match self.tries {
            true => self.lock.try_read_handler(context),
            false => Some(self.patiently(context)),
        };
        let had = clock::now();
        let had_it = held.is_some();
        let equal = held.is_none() || self.data.are_equal();
        let done = clock::now();
        drop(held);
        let free = clock::now();
        if !equal {
            self.torn.fetch_add(1, Relaxed);
        }

        let timer = ptr::with_exposed_provenance_mut(self.timer.load(Relaxed));
        // SAFETY: the timer is deleted only when its thread has blocked the signal. The call is
        // async-signal-safe.
        let missed = u64::try_from(unsafe { libc::timer_getoverrun(timer) }).unwrap_or(0);
        let expiry = self.expiry.load(Relaxed);
        self.expiry.store(expiry + 1 + missed, Relaxed);
        if self.phase.load(Relaxed) != MEASURE {
            return;
        }
        self.overrun.fetch_add(missed, Relaxed);
        if !had_it {
            self.refused.fetch_add(1, Relaxed);
            return;
        }
        let due_ns = self.first_ns.load(Relaxed) + expiry * self.period_ns;
        let index = self.taken.load(Relaxed);
        let Some(sample) = self.samples.get(index) else {
            self.lost.fetch_add(1, Relaxed);
            return;
        };
        let delays = [entered_ns.saturating_sub(due_ns), had - asked, free - done];
        sample.iter().zip(delays).for_each(|(place, delay)| place.store(delay, Relaxed));
        self.taken.store(index + 1, Relaxed);
    }

    /// The lock, after as many attempts as it takes. Its holder is another thread and gets on.
    fn patiently<'s>(&'s self, context: &'s L::Context<'_>) -> L::Handler<'s> {
        loop {
            if let Some(held) = self.lock.read_handler(context) {
                return held;
            }
        }
    }

    /// How often a handler saw a state that no writer leaves.
    pub(super) fn torn(&self) -> u64 {
        self.torn.load(Relaxed)
    }

    /// Adds what the handlers did. The thread has ended.
    pub(super) fn gather(&self, sum: &mut Handled, per_ns: f64, overhead: u64) {
        for sample in &self.samples[..self.taken.load(Relaxed)] {
            let [delivery_ns, lock, unlock] = [0, 1, 2].map(|index: usize| sample[index].load(Relaxed));
            sum.delivery.record((delivery_ns as f64 * per_ns) as u64);
            sum.lock.record(lock.saturating_sub(overhead));
            sum.unlock.record(unlock.saturating_sub(overhead));
        }
        sum.refused += self.refused.load(Relaxed);
        sum.overrun += self.overrun.load(Relaxed);
        sum.lost += self.lost.load(Relaxed);
    }
}

/// What the handlers of several threads did.
#[derive(Default)]
pub(super) struct Handled {
    delivery: Delays,
    lock: Delays,
    unlock: Delays,
    refused: u64,
    overrun: u64,
    lost: u64,
}

impl Handled {
    pub(super) fn outcome(&self) -> HandlerOutcome {
        HandlerOutcome {
            delivery: self.delivery.delay(),
            lock: self.lock.delay(),
            unlock: self.unlock.delay(),
            refused: self.refused,
            overrun: self.overrun,
            lost: self.lost,
        }
    }
}

/// Reads the lock, in the context of the thread that the timer interrupted.
pub(super) enum ReadOnTimer {}

impl<L: RwLock> OnSignal<L> for ReadOnTimer {
    fn run(context: &L::Context<'_>) {
        let current = CURRENT.get().cast::<HandlerContext<'_, L>>();
        // SAFETY: null, or set by `set_current` on this thread, which keeps the context until it
        // sets none; there is one type of lock in a process that has installed this handler.
        if let Some(current) = unsafe { current.as_ref() } {
            current.handle(context);
        }
    }
}
