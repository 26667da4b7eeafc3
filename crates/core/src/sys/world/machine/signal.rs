//! Signals of the machine: the class, the thread-local words, and what only the kernel can do.

use super::tid::by_kernel;
use crate::sys::errno;
use crate::sys::signal::{Blocked, Context, RESERVED, Thread};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) type Info = libc::siginfo_t;
pub(crate) type Handler = &'static (dyn Fn(&Context<'_>) + Send + Sync);

// Without destructors and with constants for values, so that handlers may touch them first: no
// access registers or allocates anything. (But in a library that was loaded by `dlopen`, the first
// access of a thread may.)
thread_local! {
    static THREAD: Thread = const { Thread::new() };
    static BLOCKED: Blocked = const { Blocked::new() };
}

/// The signals whose handlers are wrapped.
pub(crate) static CLASS: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
pub(crate) fn with_thread<R>(f: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(f)
}

#[inline(always)]
pub(crate) fn with_blocked<R>(f: impl FnOnce(&Blocked) -> R) -> R {
    BLOCKED.with(f)
}

pub(crate) fn class() -> u64 {
    CLASS.load(Relaxed)
}

/// Blocks `set` on the calling thread. What was blocked before.
pub(crate) fn block(set: u64) -> u64 {
    change(libc::SIG_BLOCK, set & !RESERVED)
}

/// Unblocks `set` on the calling thread; the kernel delivers what it has kept before this returns.
pub(crate) fn unblock(set: u64) {
    if set != 0 {
        change(libc::SIG_UNBLOCK, set & !RESERVED);
    }
}

#[cfg(not(miri))]
fn change(how: i32, set: u64) -> u64 {
    let set = sigset(set);
    let mut before = MaybeUninit::uninit();
    // SAFETY: the set is written, and there is room for the one before, which the call writes: it
    // cannot fail. It does not touch errno.
    unsafe {
        libc::pthread_sigmask(how, &raw const set, before.as_mut_ptr());
        read(before.as_ptr())
    }
}

#[cfg(miri)] // There are no signals under Miri.
fn change(_: i32, _: u64) -> u64 {
    0
}

// A set is the kernel's in its first 64 bits, in the C libraries as well: words of the width of a
// register, the lowest signals first.
type Word = core::ffi::c_ulong;
const WORDS: usize = 64 / Word::BITS as usize;
const _: () = assert!(size_of::<libc::sigset_t>() >= 8 && align_of::<libc::sigset_t>() == align_of::<Word>());

/// The signals of a set of the C library's.
pub(crate) fn signals_of(set: &libc::sigset_t) -> u64 {
    // SAFETY: a set has 64 bits at least, and this one is written.
    unsafe { read(set) }
}

/// The set as the C library has it.
pub(crate) fn sigset(set: u64) -> libc::sigset_t {
    let mut signals = MaybeUninit::zeroed();
    // SAFETY: all zero is the empty set, of which we write the first 64 bits.
    unsafe {
        write(signals.as_mut_ptr(), set);
        signals.assume_init()
    }
}

/// # Safety
/// The first 64 bits of the set are there and written.
#[allow(clippy::unnecessary_cast)] // Not where words are shorter.
unsafe fn read(set: *const libc::sigset_t) -> u64 {
    (0..WORDS).fold(0, |bits, nth| {
        // SAFETY: by the caller, and aligned by the assertion above.
        let word = unsafe { set.cast::<Word>().add(nth).read() } as u64;
        bits | word << (nth * Word::BITS as usize)
    })
}

/// # Safety
/// The first 64 bits of the set are there.
unsafe fn write(set: *mut libc::sigset_t, bits: u64) {
    for nth in 0..WORDS {
        // SAFETY: by the caller, and aligned by the assertion above.
        unsafe { set.cast::<Word>().add(nth).write((bits >> (nth * Word::BITS as usize)) as Word) };
    }
}

/// The code that a handler has interrupted, by its `ucontext_t`.
pub(crate) struct Interrupted(*mut c_void);

impl Interrupted {
    /// # Safety
    /// `context` is the third argument of a handler that has not returned, no other thread uses it,
    /// and [`CAN_DEFER`].
    pub(crate) unsafe fn new(context: *mut c_void) -> Self {
        Self(context)
    }

    /// Blocks `set` in that code, from the return of the handler on. Which of it was not blocked.
    pub(crate) fn block(&mut self, set: u64) -> u64 {
        // SAFETY: by `new`. The kernel's context is shorter than the C library's, and ends after 64
        // bits of this field, which are those that are used.
        unsafe {
            let mask = mask_in(self.0);
            let before = read(mask);
            write(mask, before | set);
            set & !before
        }
    }

    /// The stack pointer of that code, on architectures where it is known here.
    pub(crate) fn stack_pointer(&self) -> Option<usize> {
        // SAFETY: by `new`.
        unsafe { stack_pointer_in(self.0) }
    }
}

/// # Safety
/// `context` points to a `ucontext_t`.
#[allow(clippy::unnecessary_cast)] // Its type is not the same everywhere.
unsafe fn stack_pointer_in(context: *mut c_void) -> Option<usize> {
    cfg_select! {
        target_arch = "x86_64" => {
            let context = context.cast::<libc::ucontext_t>();
            // SAFETY: by the caller; no reference is made to the whole.
            Some(unsafe { (&raw const (*context).uc_mcontext.gregs[libc::REG_RSP as usize]).read() } as usize)
        }
        target_arch = "aarch64" => {
            let context = context.cast::<libc::ucontext_t>();
            // SAFETY: by the caller; no reference is made to the whole.
            Some(unsafe { (&raw const (*context).uc_mcontext.sp).read() } as usize)
        }
        _ => {
            let _ = context;
            None
        }
    }
}

/// Whether the calling thread can read the word at `address`, by the answer of a system call that
/// does nothing else.
pub(crate) fn is_readable(address: usize) -> bool {
    const NO_SUCH_CHANGE: i32 = -1;
    let _errno = errno::Guard::new();
    // SAFETY: the kernel copies the set before it looks at the kind of change, which is none: it
    // fails with EFAULT or EINVAL, and changes nothing.
    unsafe {
        let answer = libc::syscall(libc::SYS_rt_sigprocmask, NO_SUCH_CHANGE, address & !7, 0_usize, 8_usize);
        answer == 0 || *errno::location() != libc::EFAULT
    }
}

macro_rules! contexts {
    ($($known:tt)*) => {
        /// Whether the layout of a `ucontext_t` is known for this architecture.
        pub(crate) const CAN_DEFER: bool = cfg!($($known)*);

        /// # Safety
        /// `context` points to a `ucontext_t`, and [`CAN_DEFER`].
        #[cfg($($known)*)]
        unsafe fn mask_in(context: *mut c_void) -> *mut libc::sigset_t {
            // SAFETY: by the caller; no reference is made.
            unsafe { &raw mut (*context.cast::<libc::ucontext_t>()).uc_sigmask }
        }

        #[cfg(not($($known)*))]
        unsafe fn mask_in(_: *mut c_void) -> *mut libc::sigset_t {
            unreachable!("no handler is installed here")
        }
    };
}

contexts! {
    any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "arm",
        target_arch = "riscv64",
        target_arch = "s390x",
        target_arch = "loongarch64",
        all(target_arch = "riscv32", target_env = "gnu"),
        all(target_arch = "powerpc64", target_env = "gnu"),
    )
}

/// Puts a signal back into the kernel's queue for the calling thread, as it came.
pub(crate) fn send_again(signal: i32, info: &Info, _: Handler) {
    let _ = queue(signal, info);
}

/// The same, without the info if the kernel refuses it: for a signal that ends the process.
pub(crate) fn send_at_any_rate(signal: i32, info: &Info) {
    if !queue(signal, info) {
        let _errno = errno::Guard::new();
        // SAFETY: sends a signal to the calling thread.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), by_kernel(), signal) };
    }
}

fn queue(signal: i32, info: &Info) -> bool {
    let _errno = errno::Guard::new();
    // SAFETY: sends a signal to the calling thread. To itself a process may send any info.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            libc::getpid(),
            by_kernel(),
            signal,
            core::ptr::from_ref(info),
        )
    };
    answer == 0
}

pub(crate) fn code(info: &Info) -> Option<i32> {
    Some(info.si_code)
}

/// Whether the kernel raised a synchronous signal for what the thread did. Positive codes are the
/// kernel's. One of them is a notice about memory that the thread has not used.
pub(crate) fn is_fault(info: &Info) -> bool {
    info.si_code > 0 && (info.si_signo, info.si_code) != (libc::SIGBUS, libc::BUS_MCEERR_AO)
}

/// The address of a fault.
pub(crate) fn address(info: &Info) -> Option<usize> {
    let has_address =
        matches!(info.si_signo, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP)
            && is_fault(info)
            && info.si_code != libc::SI_KERNEL;
    // SAFETY: these signals and codes say that the field is written.
    has_address.then(|| unsafe { info.si_addr() }.addr())
}

pub(crate) fn sender(info: &Info) -> Option<i32> {
    // SAFETY: these codes say that the field is written.
    matches!(info.si_code, libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE | libc::SI_MESGQ)
        .then(|| unsafe { info.si_pid() })
}

pub(crate) fn value(info: &Info) -> Option<usize> {
    // SAFETY: these codes say that the field is written.
    matches!(info.si_code, libc::SI_QUEUE | libc::SI_TIMER | libc::SI_MESGQ | libc::SI_ASYNCIO)
        .then(|| unsafe { info.si_value() }.sival_ptr.addr())
}
