//! Clients of the semaphore whose wakers do something: each is the body of one execution of a
//! model.

use crate::permits::semaphore;
use crate::way::Way;
use core::pin::pin;
use core::task::{Context, RawWaker, RawWakerVTable, Waker};
use ulocks_core::sync::Ordering::{Acquire, Release};
use ulocks_core::sync::{AtomicU32, spin_until};
use ulocks_testkit::thread::{Arc, Id, id, spawn, with};

/// What a waker waits for, unless it is called by the thread that makes that true.
struct Flag {
    value: AtomicU32,
    wanted: u32,
    maker: Id,
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |flag| RawWaker::new(flag, &TABLE),
    |flag| {
        // SAFETY: the client keeps the flag until all of its threads have ended.
        let flag = unsafe { &*flag.cast::<Flag>() };
        if id() != flag.maker {
            spin_until(|| flag.value.load(Acquire) == flag.wanted);
        }
    },
    |_| unreachable!("nobody wakes by reference"),
    |_| {},
);

/// # Safety
/// The flag outlives the waker and its clones.
unsafe fn waits_for(flag: &Flag) -> Waker {
    // SAFETY: the functions of the table keep the contract of `RawWaker`, as long as the flag
    // lives.
    unsafe { Waker::from_raw(RawWaker::new((&raw const *flag).cast(), &TABLE)) }
}

/// A waker takes a lock of its executor, whose holder drops another future at that time.
pub fn a_waker_takes_the_lock_of_a_drop<P: Way>() {
    let semaphore = semaphore::<P>(0);
    // Zero is a free lock. The main thread alone is another user of it.
    let lock = Arc::new(Flag { value: AtomicU32::new(0), wanted: 0, maker: id() });
    let releasing = {
        // SAFETY: the lock is kept until all have ended.
        let waker = unsafe { waits_for(&lock) };
        let mut task = Box::pin(RawTask::<P>::new(&semaphore, 1));
        assert!(!task.poll(&waker));
        let semaphore = Arc::clone(&semaphore);
        spawn(move || {
            assert_eq!(semaphore.release(1), Ok(()));
            task
        })
    };
    {
        let mut other = pin!(semaphore.acquire_async(5));
        _ = other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        lock.value.store(1, Release);
    }
    lock.value.store(0, Release);
    drop(releasing.join().unwrap());
    assert_eq!((semaphore.waiters(), semaphore.available()), (0, 1));
}

/// A waker waits for a thread that was granted by another release meanwhile.
pub fn a_waker_waits_for_the_next_in_line<P: Way>() {
    let semaphore = semaphore::<P>(0);
    let next = Arc::new(Flag { value: AtomicU32::new(0), wanted: 1, maker: id() });
    // SAFETY: the flag is kept until all have ended.
    let waker = unsafe { waits_for(&next) };
    let mut task = RawTask::<P>::new(&semaphore, 1);
    assert!(!task.poll(&waker));
    let thread = {
        let (semaphore, next) = (Arc::clone(&semaphore), Arc::clone(&next));
        spawn(move || {
            semaphore.acquire(1);
            next.value.store(1, Release);
        })
    };
    spin_until(|| semaphore.waiters() == 2);
    let releasing = with(&semaphore, |semaphore| assert_eq!(semaphore.release(1), Ok(())));
    assert_eq!(semaphore.release(1), Ok(()));
    thread.join().unwrap();
    releasing.join().unwrap();
    drop(task);
    assert_eq!((semaphore.waiters(), semaphore.available()), (0, 1));
}

/// A future that owns a share of its semaphore, as one that is sent to a thread.
struct RawTask<P: Way> {
    // Dropped before the semaphore.
    future: core::pin::Pin<Box<ulocks_fair::RawAcquireAsync<'static, P>>>,
    _semaphore: Arc<ulocks_fair::RawSemaphore<P>>,
}

impl<P: Way> RawTask<P> {
    fn new(semaphore: &Arc<ulocks_fair::RawSemaphore<P>>, wanted: u32) -> Self {
        let semaphore = Arc::clone(semaphore);
        // SAFETY: the share outlives the future, and what it owns does not move.
        let lasting: &'static ulocks_fair::RawSemaphore<P> = unsafe { &*Arc::as_ptr(&semaphore) };
        Self { future: Box::pin(lasting.acquire_async(wanted)), _semaphore: semaphore }
    }

    /// Whether it is ready.
    fn poll(&mut self, waker: &Waker) -> bool {
        self.future.as_mut().poll(&mut Context::from_waker(waker)).is_ready()
    }
}
