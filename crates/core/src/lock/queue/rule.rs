//! The rules.
use super::QueueMutex;
use super::condvar::QueueCondvar;
use super::window::Window;
use crate::lock::condvar::{Sequence, Waits};
use crate::lock::policy::InOneProcess;
use crate::lock::traits::Initial;
use core::marker::PhantomData;

/// Which threads may take a free word past the queue, and which one a release wakes.
pub trait Rule: Sized + Send + Sync + 'static {
    /// Nobody passes the queue.
    const IN_ORDER: bool;
    /// For how long others may overtake the candidate, in nanoseconds.
    const BOUND_NS: u64;
    /// Whether the lock has a plan: whether the candidate naps while one thread is faster alone.
    const PLANNED: bool = false;
    /// Whether the candidate naps in any case.
    const CULLED: bool = false;
    /// What it keeps in the lock.
    type Room: Room;
    /// Models: solo mode never ends.
    #[doc(hidden)]
    const ALWAYS_SOLO: bool = false;
    /// The condition variable of its mutex. In order it is the sequence: a waiter that was moved
    /// behind a held mutex would get it asleep, and keep all others out until it runs. (Two CPUs of
    /// an EPYC, 1 + 8 threads, notified under the lock: 0.06 of the rate; 20 buffers in the mean,
    /// 0.82.)
    type Condvar<P: InOneProcess>: Waits<QueueMutex<P, Self>>;
}

/// What a rule keeps in the lock beside the word.
pub trait Room: Initial + Send + Sync + 'static {
    /// The window, if the rule has one.
    fn window(&self) -> Option<&Window> {
        None
    }
}

/// Nobody passes the queue.
#[derive(Debug)]
pub enum InOrder {}

impl Rule for InOrder {
    const IN_ORDER: bool = true;
    const BOUND_NS: u64 = 0;
    type Room = Window;
    type Condvar<P: InOneProcess> = Sequence<QueueMutex<P, Self>>;
}

/// Any thread takes a free lock, until the candidate has been overtaken for `NS` nanoseconds, by
/// default 100 us.
#[derive(Debug)]
pub struct After<const NS: u64 = 100_000, A: Advice = Planned>(PhantomData<A>);

/// At once: a woken waiter that finds the lock taken is the next to acquire it, but for threads
/// that acquire in the same moment. Long's hand-off.
#[derive(Debug)]
pub enum HandOff {}

/// Any thread takes a free lock, and releases wake nobody while a candidate naps. Every `NS`
/// nanoseconds, by default ten milliseconds, the lock is handed over to the candidate.
///
/// A hand-over costs a timer, two wake-ups and a sleep. A shorter interval bounds the wait of the
/// others more tightly, and costs more.
#[derive(Debug)]
pub struct Every<const NS: u64 = 10_000_000, A: Advice = Planned>(PhantomData<A>);

/// What a model decides in place of the plan, which is advice.
#[doc(hidden)]
pub trait Advice: Send + Sync + 'static {
    /// Whether solo mode never ends.
    const ALWAYS_SOLO: bool = false;
}

/// All decisions are left to the plan.
#[doc(hidden)]
#[derive(Debug)]
pub enum Planned {}

impl Advice for Planned {}

impl<const NS: u64, A: Advice> Rule for Every<NS, A> {
    const IN_ORDER: bool = false;
    const BOUND_NS: u64 = NS;
    const PLANNED: bool = true;
    const CULLED: bool = true;
    type Room = Nothing;
    type Condvar<P: InOneProcess> = QueueCondvar<P, Self>;
    const ALWAYS_SOLO: bool = A::ALWAYS_SOLO;
}

impl<const NS: u64, A: Advice> Rule for After<NS, A> {
    const IN_ORDER: bool = false;
    const BOUND_NS: u64 = NS;
    const PLANNED: bool = true;
    type Room = Nothing;
    type Condvar<P: InOneProcess> = QueueCondvar<P, Self>;
    const ALWAYS_SOLO: bool = A::ALWAYS_SOLO;
}

impl Rule for HandOff {
    const IN_ORDER: bool = false;
    const BOUND_NS: u64 = 0;
    type Room = Nothing;
    type Condvar<P: InOneProcess> = QueueCondvar<P, Self>;
}

/// No room at all.
#[derive(Debug)]
pub struct Nothing(());

crate::initial!([] Window = Self::new());
crate::initial!([] Nothing = Self(()));

impl Room for Window {
    fn window(&self) -> Option<&Window> {
        Some(self)
    }
}

impl Room for Nothing {}
