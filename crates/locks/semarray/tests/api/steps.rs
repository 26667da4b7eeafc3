//! Threads that are known to sleep in an array: for tests in which everything has its order.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread::{Scope, ScopedJoinHandle, yield_now};
use std::time::Duration;
use ulocks_semarray::{Builder, Error, Fairness, InOneProcess, Op, SemArray, SemArrayWith, Waiters};
use ulocks_testkit::task;
use ulocks_testkit::watchdog::watch;

pub type Result<T = ()> = core::result::Result<T, Error>;

/// Returns when `is_so`.
pub fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        yield_now();
    }
}

/// How many sleep at each semaphore: for it to grow, and for it to be zero.
pub fn sleeping<P: InOneProcess>(array: &SemArrayWith<P>) -> Vec<(usize, usize)> {
    let at = |index| {
        let Waiters { increase, zero } = array.waiters(index).unwrap();
        (increase, zero)
    };
    (0..array.len()).map(at).collect()
}

pub fn sleepers<P: InOneProcess>(array: &SemArrayWith<P>) -> usize {
    sleeping(array).iter().map(|(increase, zero)| increase + zero).sum()
}

/// A thread that makes a call, and the result of that.
pub struct Sleeper<'scope, R> {
    thread: ScopedJoinHandle<'scope, R>,
    id: i32,
}

impl<'scope, R: Send + 'scope> Sleeper<'scope, R> {
    /// Starts a thread that makes a call.
    pub fn new(scope: &'scope Scope<'scope, '_>, call: impl FnOnce() -> R + Send + 'scope) -> Self {
        let (id, thread) = task::begun(scope, call);
        Self { thread, id }
    }

    /// Whether the call has returned.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// The kernel's id of the thread.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Sends the thread signals until `is_over`. Their handler asks for calls to be restarted.
    pub fn strike_until(&self, is_over: impl Fn() -> bool) {
        // SAFETY: the handler does nothing but count.
        unsafe { task::handle(libc::SIGUSR2, strike, libc::SA_RESTART) };
        while !is_over() {
            // SAFETY: no preconditions. If the thread is gone, so is the reason.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.id(), libc::SIGUSR2) };
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl<'scope, R: PartialEq + Debug + Send + 'scope> Sleeper<'scope, R> {
    /// Its call returns, with this.
    #[track_caller]
    pub fn returns(self, result: R) {
        assert_eq!(self.thread.join().expect("a sleeper panicked"), result);
    }
}

impl<'scope> Sleeper<'scope, Result> {
    /// Its call, which wants to know of signals, is interrupted.
    #[track_caller]
    pub fn ends_interrupted(self) {
        self.strike_until(|| self.is_over());
        self.returns(Err(Error::Interrupted));
    }
}

/// Signals that were handled.
pub static STRUCK: AtomicI32 = AtomicI32::new(0);

extern "C" fn strike(_: libc::c_int) {
    STRUCK.fetch_add(1, Relaxed);
}

/// Starts a thread that makes a call, and returns when the thread sleeps in `array`. Meanwhile no
/// other thread comes or goes, not even because of a deadline.
pub fn asleep<'scope, P: InOneProcess, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    array: &'scope SemArrayWith<P>,
    call: impl FnOnce(&'scope SemArrayWith<P>) -> R + Send + 'scope,
) -> Sleeper<'scope, R> {
    let before = sleepers(array);
    let sleeper = Sleeper::new(scope, move || call(array));
    until(|| sleepers(array) == before + 1);
    sleeper
}

/// As [`asleep`], with a set that waits for as long as it takes.
pub fn applying<'scope, P: InOneProcess, const N: usize>(
    scope: &'scope Scope<'scope, '_>,
    array: &'scope SemArrayWith<P>,
    ops: [Op; N],
) -> Sleeper<'scope, Result> {
    asleep(scope, array, move |array| array.apply(&ops))
}

/// As [`applying`], until a signal comes.
pub fn interruptible<'scope, P: InOneProcess, const N: usize>(
    scope: &'scope Scope<'scope, '_>,
    array: &'scope SemArrayWith<P>,
    ops: [Op; N],
) -> Sleeper<'scope, Result> {
    asleep(scope, array, move |array| array.apply_interruptible(&ops, None))
}

/// Runs `test`, and ends it if it hangs. Afterwards no thread sleeps.
pub fn with<R>(
    array: SemArray,
    test: impl for<'scope> FnOnce(&'scope Scope<'scope, '_>, &'scope SemArray) -> R,
) -> R {
    // For the watchdog, which may outlive the test by a moment.
    let array: &'static SemArray = Box::leak(Box::new(array));
    let _watchdog = watch("one step after the other", || {
        format!("values {:?}, waiting sets {:?}", array.values(), sleeping(array))
    });
    let result = std::thread::scope(|scope| {
        let result = catch_unwind(AssertUnwindSafe(|| test(scope, array)));
        if result.is_err() {
            // So that no thread sleeps on, and the test ends.
            array.close();
        }
        result
    });
    let result = result.unwrap_or_else(|panic| resume_unwind(panic));
    assert_eq!(sleepers(array), 0, "a sleeper was left behind");
    result
}

/// As [`with`], with an array of these values.
pub fn with_values<const N: usize>(
    values: [u32; N],
    test: impl for<'scope> FnOnce(&'scope Scope<'scope, '_>, &'scope SemArray),
) {
    with(SemArray::with_values(values), test);
}

/// As [`with`], with an array of these values whose waiting sets become aged.
pub fn with_aging<const N: usize>(
    values: [u32; N],
    fairness: Fairness,
    test: impl for<'scope> FnOnce(&'scope Scope<'scope, '_>, &'scope SemArray),
) {
    with(Builder::with_values(values).fairness(fairness).build().unwrap(), test);
}
