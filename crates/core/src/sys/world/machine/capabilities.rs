//! What the running kernel can do for locks beyond what every kernel can.
//!
//! [`capabilities`] asks the kernel once. The probes change nothing: they pass an address no
//! process has, a flag no kernel knows, or ask a question that is only a question; the kind of
//! refusal tells whether the call exists. An answer that is neither yes nor no, as from a seccomp
//! filter, counts as no.
//!
//! The operations of this crate do not wait for the probes. Each tries the better call, takes
//! `ENOSYS` for an answer, and remembers it; so a process under a strict filter meets no system
//! call that it did not ask for.

use crate::sys::errno::Errno;
use crate::sys::world::syscall::{checked, futex, name};
use core::fmt;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Mutex;

/// Something that some kernels can do and others cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Capability {
    /// Deadlines beyond 2038 on 32-bit machines (`futex_time64`, Linux 5.1). Always there on 64-bit
    /// ones.
    Time64,
    /// Futexes with priority inheritance (`CONFIG_FUTEX_PI`).
    PriorityInheritance,
    /// `FUTEX_LOCK_PI2`: priority inheritance with monotonic deadlines (Linux 5.14).
    LockPi2,
    /// `futex_waitv`: waiting on several futexes (Linux 5.16).
    Waitv,
    /// `FUTEX_ROBUST_UNLOCK`: release and forget a robust futex in one step (Linux 7.2).
    RobustUnlock,
    /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED`: a barrier on every CPU that runs this process (Linux
    /// 4.14).
    Membarrier,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Time64,
        Self::PriorityInheritance,
        Self::LockPi2,
        Self::Waitv,
        Self::RobustUnlock,
        Self::Membarrier,
    ];

    const fn bit(self) -> u32 {
        1 << self as u8
    }

    /// Asks the kernel, without side effects.
    fn is_there(self) -> bool {
        // The last word of the address space is the kernel's, or is not mapped.
        let nowhere = name(usize::MAX - 3);
        let futex_command = |command| {
            // SAFETY: no process can have memory at `nowhere`, so there is nothing to write to.
            exists(unsafe { futex(nowhere, command, true, 1, 0, null_mut(), u32::MAX) })
        };
        let ask = |number: libc::c_long, first: usize, second: usize, third: usize, fourth: usize| {
            // SAFETY: in all the calls below, the kernel refuses the address or a flag before it
            // does anything, or the arguments are numbers that ask for a number.
            checked(|| unsafe { libc::syscall(number, first, second, third, fourth, 0usize, 0usize) })
        };
        let no_flag = u32::MAX as usize;
        match self {
            Self::Time64 => time64_is_there(),
            Self::PriorityInheritance => futex_command(libc::FUTEX_TRYLOCK_PI),
            Self::LockPi2 => futex_command(libc::FUTEX_LOCK_PI2),
            Self::RobustUnlock => futex_command(libc::FUTEX_WAKE | FUTEX_ROBUST_UNLOCK),
            Self::Waitv => exists(ask(libc::SYS_futex_waitv, 0, 0, no_flag, 0)),
            Self::Membarrier => {
                let commands = ask(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY as usize, 0, 0, 0);
                let wanted = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED as u32;
                commands.is_ok_and(|commands| commands & wanted != 0)
            }
        }
    }
}

/// linux/futex.h. The libc crate lacks it for Android.
const FUTEX_ROBUST_UNLOCK: i32 = 512;

/// Whether the refusal was of the arguments, not of the call.
fn exists(answer: Result<u32, Errno>) -> bool {
    matches!(answer, Ok(_) | Err(Errno(libc::EFAULT | libc::EINVAL)))
}

#[cfg(all(target_pointer_width = "32", not(target_arch = "x86_64")))]
pub(crate) fn time64_is_there() -> bool {
    use crate::sys::world::syscall::SYS_FUTEX_TIME64;
    // SAFETY: a wake-up of no thread: no process can have memory at this address.
    exists(checked(|| unsafe {
        libc::syscall(SYS_FUTEX_TIME64, name(usize::MAX - 3), libc::FUTEX_WAKE, 1, 0usize, 0usize, 0)
    }))
}

#[cfg(not(all(target_pointer_width = "32", not(target_arch = "x86_64"))))]
fn time64_is_there() -> bool {
    true
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time64 => "64-bit time",
            Self::PriorityInheritance => "priority inheritance",
            Self::LockPi2 => "FUTEX_LOCK_PI2",
            Self::Waitv => "futex_waitv",
            Self::RobustUnlock => "FUTEX_ROBUST_UNLOCK",
            Self::Membarrier => "membarrier",
        })
    }
}

/// A set of capabilities: what a kernel has.
///
/// `Display` is one line for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Whether `capability` is among them.
    #[must_use]
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & capability.bit() != 0
    }

    /// The capabilities that are there.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |&capability| self.has(capability))
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = |title: &str, wanted: bool| {
            let mut separator = title;
            for capability in Capability::ALL.into_iter().filter(|&capability| self.has(capability) == wanted)
            {
                write!(f, "{separator}{capability}")?;
                separator = ", ";
            }
            Ok(separator == ", ")
        };
        let any = list("has ", true)?;
        list(if any { "; lacks " } else { "lacks " }, false)?;
        Ok(())
    }
}

/// What the kernel answered when it was asked, with [`ASKED`] once it was.
static ANSWERS: AtomicU32 = AtomicU32::new(0);
const ASKED: u32 = 1 << 31;
/// What an operation found missing.
static FOUND_MISSING: AtomicU32 = AtomicU32::new(0);
/// What a test wants missing.
static FORCED: AtomicU32 = AtomicU32::new(0);

/// What the running kernel can do. The first call asks it, later ones remember.
///
/// Under Miri, which has no such calls, the answer is nothing but 64-bit time.
///
/// # Blocking
/// Never. The first call makes some ten system calls, later ones none; none allocates.
///
/// # Signals and forks
/// Async-signal-safe. A child of fork inherits the answers.
///
/// # Examples
/// ```
/// use ulocks_core::capabilities::{Capability, capabilities};
///
/// if !capabilities().has(Capability::Waitv) {
///     eprintln!("this kernel cannot wait for several futexes");
/// }
/// println!("{}", capabilities());
/// ```
#[must_use]
pub fn capabilities() -> Capabilities {
    let mut answers = ANSWERS.load(Relaxed);
    if answers & ASKED == 0 {
        // Two threads that both ask get the same answers.
        answers = Capability::ALL
            .into_iter()
            .filter(
                |&capability| {
                    if cfg!(miri) { capability == Capability::Time64 } else { capability.is_there() }
                },
            )
            .fold(ASKED, |answers, capability| answers | capability.bit());
        ANSWERS.store(answers, Relaxed);
    }
    Capabilities(answers & !ASKED & !FOUND_MISSING.load(Relaxed) & !FORCED.load(Relaxed))
}

/// Whether an operation must do without `capability`: it was found missing, or a test wants it so,
/// or Miri has none.
#[inline]
pub(crate) fn missing(capability: Capability) -> bool {
    cfg!(miri) || (FOUND_MISSING.load(Relaxed) | FORCED.load(Relaxed)) & capability.bit() != 0
}

/// An operation found `capability` missing.
#[cold]
pub(crate) fn note_missing(capability: Capability) {
    FOUND_MISSING.fetch_or(capability.bit(), Relaxed);
}

/// Keeps a capability unused; see [`force_fallback`].
#[derive(Debug)]
#[must_use = "the capability is used again once this is dropped, which is at once"]
pub struct Forced(Capability);

/// How many [`Forced`] there are of each.
static FORCES: Mutex<[u32; Capability::ALL.len()]> = Mutex::new([0; _]);

/// For tests: the process behaves as if the kernel lacked `capability` until the returned value is
/// dropped.
///
/// Operations use their fallback, or say they are unsupported; [`capabilities`] says the capability
/// is missing. A lock with priority inheritance can still be released.
/// [`membarrier::ready`](crate::membarrier::ready) keeps its first answer: force that one before
/// the first lock is used, since a lock may abort that finds it taken back. This is for the whole
/// process: tests that run beside this one must not rely on the capability.
///
/// # Examples
/// ```
/// use ulocks_core::capabilities::{Capability, capabilities, force_fallback};
///
/// let old_kernel = force_fallback(Capability::LockPi2);
/// assert!(!capabilities().has(Capability::LockPi2));
/// ```
pub fn force_fallback(capability: Capability) -> Forced {
    change_force(capability, |count| count.checked_add(1).expect("fewer than 2^32 at a time"));
    Forced(capability)
}

impl Drop for Forced {
    fn drop(&mut self) {
        change_force(self.0, |count| count - 1);
    }
}

fn change_force(capability: Capability, change: impl FnOnce(u32) -> u32) {
    let mut forces = FORCES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let count = &mut forces[capability as usize];
    *count = change(*count);
    if *count > 0 {
        FORCED.fetch_or(capability.bit(), Relaxed);
    } else {
        FORCED.fetch_and(!capability.bit(), Relaxed);
    }
}
