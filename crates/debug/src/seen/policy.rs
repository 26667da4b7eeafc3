//! What becomes of reports.

use crate::seen::report::Report;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem;
use core::ptr;
use ulocks_core::sync::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use ulocks_core::sync_static;

/// What happens when a rule is broken.
///
/// A warning is printed and nothing else, except by [`Call`](Self::Call). What is printed goes to
/// the descriptor of standard error: the harness of `cargo test` shows it also of a test that
/// passes. What cannot be written is lost.
///
/// # The environment
/// The variable `ULOCKS_CHECKED` decides for programs whose source cannot be changed. It has words
/// with commas between them:
///
/// | word | what it does |
/// |---|---|
/// | `panic`, `abort`, `warn` | the policy of this name; [`set_policy`] then changes nothing |
/// | `off` | nothing is checked, and no lock is listed |
/// | `strict` | as [`set_strict`] |
/// | `accept=FILE` | each line of the file is accepted, as by `accept`: `BEFORE -> HERE` |
///
/// It is read at the first acquisition of the process. A word that is none of these is said, and
/// ignored.
#[derive(Clone, Copy, Debug, Default)]
pub enum Policy {
    /// The call that breaks the rule panics with the report as its message, before it has changed
    /// the lock. The report is printed instead where a panic could not unwind: in a thread that
    /// panics already, and of what a thread holds at its end. In the destructor of a thread-local
    /// variable a panic aborts the process.
    #[default]
    Panic,
    /// The report is printed, and the process aborts.
    Abort,
    /// The report is printed, and the call goes on as that of the plain lock. Reports of one rule
    /// and two lines are printed once, or again after thousands of others.
    Warn,
    /// The function gets the report. It may panic where [`Panic`](Self::Panic) would.
    ///
    /// If it returns, the call goes on as that of the plain lock: a self-deadlock then deadlocks.
    /// One call is left out, the release of a lock that is not held. The function holds no lock of
    /// the checker, and may acquire locks.
    Call(fn(&Report)),
}

sync_static! {
    /// The callback, or one of these.
    static POLICY: AtomicPtr<()> = AtomicPtr::new(PANIC);
    /// What the environment says, or `OPEN`. It has a word of its own, since the program may set
    /// the policy while another thread looks at the environment.
    static FIXED: AtomicPtr<()> = AtomicPtr::new(OPEN);
    static IS_STRICT: AtomicBool = AtomicBool::new(false);
}
const PANIC: *mut () = ptr::null_mut();
const ABORT: *mut () = ptr::without_provenance_mut(1);
const WARN: *mut () = ptr::without_provenance_mut(2);
const OPEN: *mut () = ptr::without_provenance_mut(3);

/// Decides what becomes of reports from now on, in all threads, unless `ULOCKS_CHECKED` does.
pub fn set_policy(policy: Policy) {
    POLICY.store(word(policy), Relaxed);
}

/// The policy for the whole run.
#[cfg(checking)]
pub(crate) fn fix_policy(policy: Policy) {
    FIXED.store(word(policy), Relaxed);
}

fn word(policy: Policy) -> *mut () {
    match policy {
        Policy::Panic => PANIC,
        Policy::Abort => ABORT,
        Policy::Warn => WARN,
        Policy::Call(function) => function as *mut (),
    }
}

/// Whether different locks of one line in opposite orders are a fault from now on, and not a
/// warning. A line that makes locks of several purposes is then reported wrongly.
pub fn set_strict(on: bool) {
    IS_STRICT.store(on, Relaxed);
}

#[cfg(checking)]
pub(crate) fn is_strict() -> bool {
    IS_STRICT.load(Relaxed)
}

/// What becomes of reports.
pub fn policy() -> Policy {
    let fixed = FIXED.load(Relaxed);
    match if fixed == OPEN { POLICY.load(Relaxed) } else { fixed } {
        PANIC => Policy::Panic,
        ABORT => Policy::Abort,
        WARN => Policy::Warn,
        // SAFETY: `word` is the only other source of values, and makes them of such functions.
        function => Policy::Call(unsafe { mem::transmute::<*mut (), fn(&Report)>(function) }),
    }
}

std::thread_local! {
    /// Why this thread may not unwind, if a [`FaultsAbort`] says so.
    static NO_UNWINDING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// As long as it lives, a fault that would panic on this thread is printed and aborts the process:
/// for faces that cannot bear a panic. It says why.
#[doc(hidden)]
#[must_use = "it ends when it is dropped, which is at once"]
pub struct FaultsAbort {
    before: Option<&'static str>,
    /// It is for the thread that has made it.
    stays: PhantomData<*const ()>,
}

impl FaultsAbort {
    #[inline]
    pub fn because(line: &'static str) -> Self {
        Self { before: NO_UNWINDING.replace(Some(line)), stays: PhantomData }
    }
}

impl Drop for FaultsAbort {
    #[inline]
    fn drop(&mut self) {
        NO_UNWINDING.set(self.before);
    }
}

/// Why this thread may not unwind, if it may not.
pub(crate) fn no_unwinding() -> Option<&'static str> {
    NO_UNWINDING.get()
}
