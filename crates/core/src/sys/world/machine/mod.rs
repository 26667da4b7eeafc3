//! The machine: `core`'s atomics, the kernel's futex.

pub mod capabilities;
pub(crate) mod clock;
mod cpu;
mod declare;
pub(crate) mod kernel;
pub(crate) mod membarrier;
mod namespace;
pub(crate) mod pause;
pub(crate) mod pi;
#[cfg(not(miri))]
mod quota;
mod refusal;
pub(crate) mod robust;
pub(crate) mod signal;
pub(crate) mod syscall;
mod tid;
mod wipe;

pub(crate) use cpu::{
    count as cpu_count, current as current_cpu, has_rates, keep_quota as keep_cpu_quota,
    recount as recount_cpus, usable as usable_cpus, with_releases,
};
pub(crate) use namespace::current as pid_namespace;
pub(crate) use pause::only_cpu;
pub(crate) use tid::current as thread_id;
pub(crate) use tid::generation as process_generation;
pub(crate) use tid::this_process;
pub use wipe::wipe_on_fork;

/// Atomic types of this world.
pub mod atomic {
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
    };
    /// What programs may have in a region. No protocol of the family uses them, so no model world
    /// has them.
    #[doc(hidden)]
    pub use core::sync::atomic::{AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU16};
}

/// A cell whose accesses a model world can see: data is reached through closures.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// The value, out of its cell.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Shared access for the duration of `f`.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Exclusive access for the duration of `f`.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// One processor hint: the caller is waiting for another CPU's store.
#[inline(always)]
pub fn pause() {
    core::hint::spin_loop();
}

/// A scheduling point of a model world; on the machine nothing at all (a lock never yields).
#[inline(always)]
pub fn yield_now() {}

/// A place in a protocol, between two of its steps, where a modelled signal handler may run on this
/// thread or the thread may die; on the machine nothing at all, because there every instruction is
/// such a place.
#[inline(always)]
pub fn interruption_point() {}

/// Waits, spinning, until `ready` returns true.
#[inline(always)]
pub fn spin_until(mut ready: impl FnMut() -> bool) {
    while !ready() {
        pause();
    }
}

/// Whether a panic ends the execution of a model: then what a guard would release has no owner any
/// more, and another operation would panic in a destructor. On the machine a panic is no reason not
/// to release.
#[inline(always)]
#[must_use]
pub const fn is_abandoned() -> bool {
    false
}

/// Runs `f`, and aborts the process if `f` panics. A lock uses it while other threads know an
/// address in this stack frame, or wait for something that only this thread can do. In a model a
/// panic is the end of the execution, and passes.
#[inline(always)]
pub fn without_unwinding<R>(f: impl FnOnce() -> R) -> R {
    const WHY: &str = "ulocks: the process aborts, because this panic would leave other threads waiting for ever, \
                       or with the address of a stack frame that is gone\n";
    let inside = NoUnwinding::because(WHY);
    let result = f();
    inside.end();
    result
}

/// Aborts the process if a panic drops it. It is [`without_unwinding`] for calls that ask for the
/// place of their caller, which a closure would hide, and with a reason of the user's.
#[must_use = "it is dropped at once, and that aborts"]
#[derive(Debug)]
pub struct NoUnwinding(&'static str);

impl NoUnwinding {
    /// From here on a panic aborts. The process says `line` then, which ends in a newline.
    #[inline(always)]
    pub const fn because(line: &'static str) -> Self {
        Self(line)
    }

    /// From here on a panic may pass.
    #[inline(always)]
    pub const fn end(self) {
        core::mem::forget(self);
    }
}

impl Drop for NoUnwinding {
    fn drop(&mut self) {
        abort_unwinding(self.0);
    }
}

/// Says why the process ends, and ends it. The panic hook has printed the panic itself, unless the
/// program has silenced the hook.
#[cold]
#[inline(never)]
fn abort_unwinding(why: &'static str) -> ! {
    // SAFETY: the bytes are a constant, and are read before the call returns. `write` is
    // async-signal-safe, for a panic may be in a signal handler.
    unsafe { libc::write(libc::STDERR_FILENO, why.as_ptr().cast(), why.len()) };
    std::process::abort();
}

/// Sets `bit` in the address that `word` holds; whether it was set.
#[inline(always)]
pub(crate) fn set_bit<T>(word: &atomic::AtomicPtr<T>, bit: usize, order: atomic::Ordering) -> bool {
    word.fetch_or(bit, order).addr() & bit != 0
}
