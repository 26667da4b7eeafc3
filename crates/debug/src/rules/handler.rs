//! [`SignalContext`]: a handler says that it is one.

use super::deliver::{From, deliver, write};
use super::{current, faults, order};
use crate::seen::asked::Asked;
use crate::seen::report::{Report, Rule};
use crate::seen::signal::{earlier, edges, interrupts, put_back, take, used};
use crate::seen::thread::{Held, Record, existing, is_current, restore, swap};
use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use ulocks_core::signal::Soft;

/// Tells the checker that the calling code is a signal handler, until this is dropped.
///
/// A handler that uses checked locks makes one before it does so. It is dropped last.
///
/// # What is checked
/// A lock that a handler waits for must not be held by a thread while the signal is open: the
/// handler may interrupt that thread, and waits for ever. So if a lock of some class is acquired in
/// a handler, and one of the class is acquired with that signal open, this is reported, in
/// whatever threads and order that happens: [`Rule::NoOpenSignal`]. The next acquisition of the
/// class by a thread reports it, or the end of a thread. A handler that only tries does not wait,
/// and a try of a thread counts.
///
/// The signals that are open are asked of the kernel when a lock of a class is acquired for the
/// first time, and at each acquisition once a handler has acquired one of the class. That is a
/// system call; the [guide](crate::guide::cost) says what was measured. While a `Soft` mask of
/// `ulocks_core::signal` is up, all signals count as blocked.
///
/// If a thread opens the signal later, while it holds the lock, this is known once the handler has
/// interrupted it there.
///
/// A handler is in the order of locks, too: a lock that it waits for comes after each lock that is
/// held with the signal open. It is an inversion if a thread, with the signal blocked, asks for
/// them the other way around. The order of two locks in a handler counts as in a thread. Threads
/// report both: when they acquire two locks in a new order, or a lock of a class that is new or
/// that handlers acquire, and when they end.
///
/// # Panics
/// If `signal` is not 1 to 64.
///
/// # Aborts
/// If a handler panics. If it has a fault, after the report, unless the policy is
/// [`Call`](crate::Policy::Call): the function is then called in the handler. If a context is
/// dropped that is not the last one of its thread, or after the thread has ended, as one in a
/// thread-local variable may be. One that is forgotten leaves its thread a handler to its end.
///
/// # Signals
/// To make and to drop it is async-signal-safe. In a shared object that was loaded by `dlopen`, the
/// first use of thread-local memory by a thread may allocate. The handler must not leave by
/// `siglongjmp`, and must not fork.
///
/// # Examples
/// ```
/// use ulocks_debug::{Mutex, SignalContext};
///
/// static COUNT: Mutex<u32> = Mutex::new(0);
///
/// extern "C" fn handle(signal: libc::c_int) {
///     let _context = SignalContext::enter(signal);
///     *COUNT.lock() += 1;
/// }
///
/// # fn with_blocked<T>(signal: libc::c_int, work: impl FnOnce() -> T) -> T {
/// #     // SAFETY: all zero is a valid set, and the pointers are valid.
/// #     unsafe {
/// #         let (mut set, mut before) = std::mem::zeroed::<[libc::sigset_t; 2]>().into();
/// #         libc::sigaddset(&raw mut set, signal);
/// #         libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
/// #         let result = work();
/// #         libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
/// #         result
/// #     }
/// # }
/// // SAFETY: the handler does what a handler may do.
/// unsafe { libc::signal(libc::SIGUSR1, handle as *const () as libc::sighandler_t) };
/// // SAFETY: the signal has a handler.
/// unsafe { libc::raise(libc::SIGUSR1) };
/// // `pthread_sigmask` blocks the signal, runs the closure, and opens the signal.
/// let count = with_blocked(libc::SIGUSR1, || *COUNT.lock());
/// assert_eq!(count, 1);
///
/// let open = std::thread::spawn(|| *COUNT.lock());
/// let panic = open.join().unwrap_err();
/// assert!(panic.downcast_ref::<String>().unwrap().contains("the signal is open"));
/// ```
#[must_use = "the handler is one until this is dropped"]
pub struct SignalContext {
    /// `None` if nothing is checked in this handler: not in this run, or the kernel had no memory.
    record: Option<&'static Record>,
    before: *const Record,
    /// It belongs to the thread.
    not_send: PhantomData<*mut ()>,
}

impl SignalContext {
    /// From here on the calling code is a handler of `signal`.
    pub fn enter(signal: c_int) -> Self {
        assert!((1..=64).contains(&signal), "a signal is a number from 1 to 64");
        ulocks_profile::counting::enter_handler();
        let is_checked = !current::is_off();
        let record = is_checked.then(|| Record::of_handler(signal.cast_unsigned(), existing())).flatten();
        let context = Self { record, before: swap(record), not_send: PhantomData };
        if let Some(record) = record {
            interrupts(record);
        }
        context
    }
}

impl fmt::Debug for SignalContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalContext")
            .field("signal", &self.record.map(Record::signal))
            .finish_non_exhaustive()
    }
}

impl Drop for SignalContext {
    fn drop(&mut self) {
        // Two threads would have one record later.
        if !is_current(self.record) {
            write(b"ulocks-debug: a `SignalContext` is not the last one of its thread\n");
            std::process::abort();
        }
        if let Some(record) = self.record {
            record.sweep();
            if record.holds_any() {
                faults::exit(record);
            }
        }
        restore(self.before);
        if let Some(record) = self.record {
            record.end_handler();
        }
        ulocks_profile::counting::leave_handler();
    }
}

/// The signals that are open on this thread.
fn open() -> u64 {
    // Miri has no signals.
    if Soft::is_up() || cfg!(miri) {
        return 0;
    }
    let mut blocked = 0_u64;
    let none = ptr::null::<u64>();
    // SAFETY: nothing is changed, and the place of the answer has the eight bytes of a set.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, none, &raw mut blocked, size_of::<u64>())
    };
    !blocked
}

/// An acquisition of a class that is watched, or in a handler, before it is made. `waits` is
/// whether it may wait for ever.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn check(me: &Record, asked: &Asked, waits: bool) {
    match fault(me, asked, waits) {
        Some(report) => deliver(&report, From::Call),
        None if me.is_handler() => {}
        None => report_news(From::Call),
    }
}

/// As [`check`], without the news. Returns the report.
#[cold]
pub(crate) fn fault(me: &Record, asked: &Asked, waits: bool) -> Option<Report> {
    used(me, asked, waits, open())
}

/// A thread looks at what handlers have left.
#[track_caller]
pub(crate) fn report_news(from: From) {
    // A fault that the lists tell of. None if there is nothing new.
    let fault = || take().then(|| earlier().or_else(|| order::enter_from_handlers(edges()))).flatten();
    while let Some(report) = fault() {
        put_back();
        deliver(&report, from);
    }
}

/// The rule about signal handlers, before an acquisition. `waits` is whether that may wait for
/// ever.
#[inline(always)]
#[track_caller]
pub(crate) fn look(me: &Record, asked: &Asked, waits: bool) {
    if asked.class.uses().watch() | me.signal() != 0 {
        check(me, asked, waits);
    }
}

/// A handler is about to wait for a lock, without a deadline. If its thread holds the lock, this is
/// reported.
#[cold]
#[track_caller]
pub(crate) fn waits(me: &'static Record, asked: &Asked) {
    let keeps = |held: &Held| held.instance == asked.instance && held.access.blocks(asked.access);
    let holder = me.interrupted().find_map(|record| Some((record, record.held().find(keeps)?)));
    if let Some((record, held)) = holder {
        let mut report = faults::again(me, asked, Some(held));
        report.rule = Rule::NoRecursion;
        report.holder = Some(record.name());
        deliver(&report, From::Call);
    }
}
