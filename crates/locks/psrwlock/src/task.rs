//! Waiters that are tasks: the futures of a lock of one process.
//!
//! A task takes the steps of [`raw`](super::raw) in the order in which a thread takes them. As it
//! arrives it spins for `WOKEN_NS` of its policy, and not later. Where a thread sleeps on the
//! event or at an exit, it does so by a [`TaskSleep`](ulocks_core::sleep), and its poll returns. So
//! the invariants are those of threads, with what a sleeping thread does not do beside them:
//!
//! - *A poll that was not asked for* finds the task asleep, and leaves it so. It has its place
//!   among the sleepers still.
//! - *A drop* takes the task out of the sleepers first: from then on no wake-up is spent on it.
//!   Then it leaves as a thread whose time is up. A queued reader leaves its queue. A sleeping
//!   writer sets `WRITERS` for the owner to find, and gives back what it was granted. An owner that
//!   sifts opens the classes and is the owner no more.
//! - *A task that was woken and is not polled* is a queued reader, or an owner, for as long. All
//!   others wait for it, as for a thread that gets no CPU.
//!
//! A task holds what it acquired, whichever thread polls it. So it is in no table of
//! [`nesting`](super::nesting), as the token of a reader says. A lock that signal handlers read is
//! not for tasks: what keeps a handler off is a matter of one thread.

use crate::class::{Bulk, ThreadClass};
use crate::configuration::Configuration;
use crate::nesting::Access;
use crate::raw::{Next, PolicyOf, RawPsRwLock, ReadToken, TooMany, Wait};
use crate::rows::Drain;
use crate::word::{OWNER, State, WRITERS, readers};
use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use ulocks_core::futex::Bits;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::raw::RawRwLockAsync;
use ulocks_core::sleep::{Slept, TaskSleep};
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::sync::{is_abandoned, without_unwinding};

// SAFETY: as `RawRwLock` and `RawRwLockUpgrade`: a future has acquired when it is ready, and what a
// dropped one had it gives back. No release asks for the thread: the mask of one is raised only
// where handlers read, which the futures refuse, and the table of nesting takes what it does not
// have for nothing.
unsafe impl<D: Configuration<Policy: InOneProcess>> RawRwLockAsync for RawPsRwLock<D> {
    type ReadAsync<'a> = ReadAsync<'a, D>;
    type WriteAsync<'a> = OwnAsync<'a, D>;
    type UpgradableAsync<'a> = OwnAsync<'a, D>;
    type UpgradeAsync<'a> = OwnAsync<'a, D>;

    #[inline]
    fn read_async(&self) -> ReadAsync<'_, D> {
        self.read_class_async()
    }

    #[inline]
    fn write_async(&self) -> OwnAsync<'_, D> {
        self.own_async(Goal::Write)
    }

    #[inline]
    fn upgradable_async(&self) -> OwnAsync<'_, D> {
        self.own_async(Goal::Upgradable)
    }

    #[inline]
    unsafe fn upgrade_async(&self, (): ()) -> OwnAsync<'_, D> {
        self.leave_table(Access::Upgradable);
        self.own_async(Goal::Upgrade)
    }
}

impl<D: Configuration> RawPsRwLock<D> {
    const fn is_for_tasks() {
        assert!(
            !Self::LAYOUT.is_handler(Self::CLASSES - 1),
            "a lock that signal handlers read is not for tasks: see the class `HANDLER` of its `Sifted`"
        );
    }

    /// Acquires for reading in a class, by a task.
    #[doc(hidden)]
    #[inline]
    pub fn read_class_async<C: ThreadClass>(&self) -> ReadAsync<'_, D, C> {
        const { Self::is_for_tasks() }
        ReadAsync { lock: self, stage: ReadStage::New, sleep: TaskSleep::new(), class: PhantomData }
    }

    fn own_async(&self, goal: Goal) -> OwnAsync<'_, D> {
        const { Self::is_for_tasks() }
        OwnAsync { lock: self, goal, stage: OwnStage::New, sleep: TaskSleep::new() }
    }

    /// The task falls asleep as `wait` says; false if it is to look again.
    fn fall_asleep(
        &self,
        wait: &Wait,
        bits: Bits,
        sleep: Pin<&mut TaskSleep>,
        context: &Context<'_>,
    ) -> bool {
        let waker = context.waker().clone();
        let asleep = if wait.was.is_leaving() {
            self.exit().sleep_as_task(wait.exit, sleep, waker)
        } else {
            sleep.fall_asleep(&self.event, wait.event, bits, waker)
        };
        self.count_sleep(asleep)
    }

    fn count_sleep(&self, asleep: bool) -> bool {
        if asleep {
            self.meter.count(Event::Slept);
        }
        asleep
    }
}

enum ReadStage {
    New,
    Queued,
    Done,
}

/// The future of an acquisition for reading.
#[must_use = "a future does nothing unless it is polled"]
pub struct ReadAsync<'a, D: Configuration, C: ThreadClass = Bulk> {
    lock: &'a RawPsRwLock<D>,
    stage: ReadStage,
    sleep: TaskSleep,
    class: PhantomData<fn() -> C>,
}

impl<D: Configuration, C: ThreadClass> ReadAsync<'_, D, C> {
    const TOKEN: ReadToken = RawPsRwLock::<D>::token::<C>();
    const INDEX: u32 = Self::TOKEN.index as u32;
    const QUEUE: u64 = RawPsRwLock::<D>::LAYOUT.queue(Self::INDEX);

    /// The first poll; `None` if the reader is queued.
    fn start(&mut self) -> Option<ReadToken> {
        let lock = self.lock;
        lock.begin(Access::Read(Self::TOKEN.index));
        if let Some(at_slot) = lock.at_slot::<C>() {
            return Some(RawPsRwLock::<D>::not_in_table(at_slot));
        }
        let Err(was) = lock.arrive_at(Self::INDEX, None) else {
            lock.meter.count(Event::Acquired);
            return Some(const { RawPsRwLock::<D>::not_in_table(Self::TOKEN) });
        };
        if was.level() <= Self::INDEX {
            RawPsRwLock::<D>::too_many(Self::INDEX);
        }
        lock.meter.count(Event::ReaderContended);
        if spin::closely::<PolicyOf<D>>(|| lock.look_to_read(Self::INDEX, Self::QUEUE)) {
            lock.meter.count(Event::Spun);
            lock.meter.count(Event::Acquired);
            return Some(const { RawPsRwLock::<D>::not_in_table(Self::TOKEN) });
        }
        lock.join_queue(Self::QUEUE);
        self.stage = ReadStage::Queued;
        None
    }

    /// A poll of a queued reader.
    fn go_on(&mut self, context: &Context<'_>) -> Poll<ReadToken> {
        // SAFETY: the future is pinned, and moves none of its parts.
        let mut sleep = unsafe { Pin::new_unchecked(&mut self.sleep) };
        if sleep.as_mut().sleeps_on(context.waker()) == Slept::On {
            return Poll::Pending;
        }
        loop {
            let next = without_unwinding(|| self.lock.read_step(Self::INDEX, Self::QUEUE, false));
            match next {
                Ok(Next::Wait(wait)) => {
                    if self.lock.fall_asleep(&wait, readers(Self::INDEX), sleep.as_mut(), context) {
                        return Poll::Pending;
                    }
                }
                Ok(_) => {
                    self.stage = ReadStage::Done;
                    self.lock.leave_queue(Self::QUEUE);
                    self.lock.meter.count(Event::Acquired);
                    return Poll::Ready(const { RawPsRwLock::<D>::not_in_table(Self::TOKEN) });
                }
                Err(TooMany) => {
                    self.stage = ReadStage::Done;
                    self.lock.leave_queue(Self::QUEUE);
                    RawPsRwLock::<D>::too_many(Self::INDEX);
                }
            }
        }
    }
}

impl<D: Configuration, C: ThreadClass> Future for ReadAsync<'_, D, C> {
    type Output = ReadToken;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ReadToken> {
        // SAFETY: the sleep is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        match this.stage {
            ReadStage::New => {
                if let Some(token) = this.start() {
                    this.stage = ReadStage::Done;
                    return Poll::Ready(token);
                }
            }
            ReadStage::Queued => {}
            ReadStage::Done => panic!("the future of a lock was polled after it was ready"),
        }
        this.go_on(context)
    }
}

impl<D: Configuration, C: ThreadClass> Drop for ReadAsync<'_, D, C> {
    fn drop(&mut self) {
        if matches!(self.stage, ReadStage::Queued) && !is_abandoned() {
            // SAFETY: it is dropped where it was pinned.
            let _waker = unsafe { Pin::new_unchecked(&mut self.sleep) }.wake_up();
            self.lock.leave_queue(Self::QUEUE);
            self.lock.meter.gave_up();
        }
    }
}

impl<D: Configuration, C: ThreadClass> fmt::Debug for ReadAsync<'_, D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadAsync { .. }")
    }
}

/// What a task is the owner for.
#[derive(Clone, Copy, PartialEq)]
enum Goal {
    Write,
    Upgradable,
    /// It is an upgradable reader, and is to write.
    Upgrade,
}

enum OwnStage {
    New,
    /// It sleeps until it is the owner: `counted` as a sleeper.
    Owning {
        counted: bool,
        mark: u64,
        was_woken: bool,
    },
    /// The owner closes the class of that index.
    Sifting(u32, Part),
    Done,
}

/// What an owner waits for in the stage of a class; whether it has said so.
enum Part {
    Queue { waits: bool },
    State { waits: bool },
    Row(Drain),
}

/// The future of an acquisition for writing, of an upgradable one, and of an upgrade.
#[must_use = "a future does nothing unless it is polled"]
pub struct OwnAsync<'a, D: Configuration> {
    lock: &'a RawPsRwLock<D>,
    goal: Goal,
    stage: OwnStage,
    sleep: TaskSleep,
}

// SAFETY: a shared reference gives access to nothing.
unsafe impl<D: Configuration> Sync for OwnAsync<'_, D> {}

impl<D: Configuration<Policy: InOneProcess>> OwnAsync<'_, D> {
    /// The first poll. Whether it has acquired.
    fn start(&mut self) -> bool {
        let lock = self.lock;
        match self.goal {
            Goal::Write => {
                lock.begin(Access::Write);
                if lock.write_at_once() {
                    return true;
                }
                lock.meter.count(Event::Contended);
            }
            Goal::Upgradable => lock.begin(Access::Upgradable),
            Goal::Upgrade => return self.own(),
        }
        if lock.try_own() {
            return self.own();
        }
        if self.goal == Goal::Upgradable {
            lock.meter.count(Event::Contended);
        }
        if spin::closely::<PolicyOf<D>>(|| lock.look_to_own()) {
            return self.own();
        }
        let counted = lock.enter_sleepers();
        self.stage = OwnStage::Owning { counted, mark: 0, was_woken: false };
        false
    }

    /// The task is the owner. Whether that is all.
    fn own(&mut self) -> bool {
        if self.goal == Goal::Upgradable || self.lock.sift_at_once() {
            return true;
        }
        self.stage = OwnStage::Sifting(self.lock.level(), Part::Queue { waits: false });
        false
    }

    /// What comes until the task has acquired, or sleeps.
    fn go_on(&mut self, context: &Context<'_>) -> Poll<()> {
        // SAFETY: the future is pinned, and moves none of its parts.
        let slept = unsafe { Pin::new_unchecked(&mut self.sleep) }.sleeps_on(context.waker());
        if slept == Slept::On {
            return Poll::Pending;
        }
        if let OwnStage::Owning { was_woken, mark, .. } = &mut self.stage
            && slept == Slept::UntilWoken
        {
            (*mark, *was_woken) = (State::WRITERS, true);
        }
        let (lock, mut has_acquired) = (self.lock, false);
        while !has_acquired {
            let asleep = match &mut self.stage {
                OwnStage::Owning { counted, mark, was_woken } => {
                    // SAFETY: as above.
                    let sleep = unsafe { Pin::new_unchecked(&mut self.sleep) };
                    match without_unwinding(|| lock.own_step(*mark, *was_woken)) {
                        Some(wait) => {
                            if wait.was.is_leaving() {
                                // As for a thread: it may use up a wake-up.
                                (*mark, *was_woken) = (State::WRITERS, true);
                            }
                            lock.fall_asleep(&wait, WRITERS, sleep, context)
                        }
                        None => {
                            if *counted {
                                lock.leave_sleepers();
                            }
                            has_acquired = self.own();
                            false
                        }
                    }
                }
                OwnStage::Sifting(index, _) if *index == RawPsRwLock::<D>::CLASSES => {
                    has_acquired = true;
                    false
                }
                OwnStage::Sifting(..) => self.sift(context),
                OwnStage::New | OwnStage::Done => unreachable!("it is neither new nor done"),
            };
            if asleep {
                return Poll::Pending;
            }
        }
        self.end()
    }

    /// One part of a stage. Whether the task sleeps; otherwise it goes on.
    fn sift(&mut self, context: &Context<'_>) -> bool {
        let (lock, OwnStage::Sifting(index, part)) = (self.lock, &mut self.stage) else {
            unreachable!("the owner sifts")
        };
        // SAFETY: the future is pinned, and moves none of its parts.
        let sleep = unsafe { Pin::new_unchecked(&mut self.sleep) };
        match part {
            Part::Queue { waits } => {
                if let Some(flag) = RawPsRwLock::<D>::queue_before(*index)
                    && (*waits || !lock.queue_is_empty(flag))
                {
                    *waits = true;
                    if let Err(event) = lock.look_at_queue(flag) {
                        let waker = context.waker().clone();
                        return lock.count_sleep(sleep.fall_asleep(&lock.event, event, OWNER, waker));
                    }
                }
                *part = Part::State { waits: false };
                lock.close(*index);
            }
            Part::State { waits } => {
                if *waits || !lock.is_drained(*index, State(lock.state.load(Acquire))) {
                    *waits = true;
                    let exit = lock.exit().seen();
                    let was = State(lock.state.fetch_or(State::DRAINING, Acquire));
                    if !lock.is_drained(*index, was) {
                        let waker = context.waker().clone();
                        return lock.count_sleep(lock.exit().sleep_as_task(exit, sleep, waker));
                    }
                    lock.state.fetch_and(!State::DRAINING, Relaxed);
                }
                let drain = if *index == 0 { without_unwinding(|| lock.begin_drain()) } else { None };
                match drain {
                    Some(drain) => *part = Part::Row(drain),
                    None => self.stage = OwnStage::Sifting(*index + 1, Part::Queue { waits: false }),
                }
            }
            Part::Row(drain) => {
                if let Err((exit, seen)) = lock.look_at_row(drain) {
                    let waker = context.waker().clone();
                    return lock.count_sleep(exit.sleep_as_task(seen, sleep, waker));
                }
                self.stage = OwnStage::Sifting(*index + 1, Part::Queue { waits: false });
            }
        }
        false
    }

    fn end(&mut self) -> Poll<()> {
        self.stage = OwnStage::Done;
        if self.goal != Goal::Upgrade {
            self.lock.meter.count(Event::Acquired);
        }
        Poll::Ready(())
    }
}

impl<D: Configuration<Policy: InOneProcess>> Future for OwnAsync<'_, D> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the sleep is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        match this.stage {
            OwnStage::New => {
                if this.start() {
                    return this.end();
                }
            }
            OwnStage::Owning { .. } | OwnStage::Sifting(..) => {}
            OwnStage::Done => panic!("the future of a lock was polled after it was ready"),
        }
        this.go_on(context)
    }
}

impl<D: Configuration> Drop for OwnAsync<'_, D> {
    fn drop(&mut self) {
        if is_abandoned() {
            return;
        }
        if self.goal == Goal::Upgrade && !matches!(self.stage, OwnStage::Done) {
            self.lock.meter.released();
        }
        let lock = self.lock;
        // SAFETY: it is dropped where it was pinned.
        let _waker = unsafe { Pin::new_unchecked(&mut self.sleep) }.wake_up();
        match &self.stage {
            OwnStage::New if self.goal == Goal::Upgrade => return lock.unlock_upgradable_at(),
            OwnStage::New | OwnStage::Done => return,
            OwnStage::Owning { counted, .. } => {
                // It may be granted the write side, and wait until the releasing thread has left.
                let owns = without_unwinding(|| lock.leave_writers());
                if *counted {
                    lock.leave_sleepers();
                }
                if owns {
                    lock.give_up();
                }
            }
            OwnStage::Sifting(_, part) => {
                match part {
                    Part::State { waits: true } => _ = lock.state.fetch_and(!State::DRAINING, Relaxed),
                    Part::Row(drain) => drain.end(),
                    // `give_up` ends the wait for a queue.
                    Part::Queue { .. } | Part::State { .. } => {}
                }
                lock.give_up();
            }
        }
        lock.meter.gave_up();
    }
}

impl<D: Configuration> fmt::Debug for OwnAsync<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnAsync { .. }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::pin::pin;
    use core::task::Waker;
    use ulocks_core::raw::RawRwLock;

    /// Nothing is left of a writer that was dropped, the number of sleepers included.
    #[test]
    fn a_dropped_writer_is_not_counted() {
        let lock: RawPsRwLock = RawPsRwLock::new();
        lock.write();
        for _ in 0..3 {
            let mut writer = pin!(lock.write_async());
            assert!(writer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let sleepers =
                lock.look().0 ^ RawPsRwLock::<crate::Sifted>::LAYOUT.without_sleepers(lock.look()).0;
            assert_eq!(sleepers, crate::word::Layout::ONE_SLEEPER);
        }
        lock.unlock_write_at();
        // `WRITERS` may be stale.
        assert_eq!(lock.look().0 & !State::WRITERS, 0, "{:#x}", lock.look().0);
    }
}
