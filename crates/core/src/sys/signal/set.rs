//! Sets of signals, as the kernel writes them: bit `n - 1` stands for signal `n`.

/// How many signals there are: they are numbered from 1 to this.
pub const SIGNALS: i32 = 64;

/// The signals that the processor or the C library raises for what the thread itself does:
/// `SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`, `SIGTRAP`, `SIGSYS` and `SIGABRT`. They cannot wait:
/// the thread could not go on.
pub const SYNCHRONOUS: u64 = of(&[
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
]);

/// All signals that can be blocked, but for the [`SYNCHRONOUS`] ones and those that the C library
/// keeps for itself.
pub const ASYNCHRONOUS: u64 = !(SYNCHRONOUS | of(&[libc::SIGKILL, libc::SIGSTOP]) | RESERVED);

/// Those that the C library keeps for itself, whose `SIGRTMIN` is not a constant.
pub(crate) const RESERVED: u64 = of(&[32, 33]) | if cfg!(target_env = "musl") { of(&[34]) } else { 0 };

/// The set of these signals: the parameter of [`Hard`](super::Hard).
///
/// # Panics
/// If a number is not from 1 to 64; in a constant that is an error of the compiler.
///
/// # Examples
/// ```
/// use ulocks_core::signal::{self, Hard};
///
/// const OURS: u64 = signal::of(&[libc::SIGUSR1, libc::SIGALRM]);
/// type Mask = Hard<OURS>;
/// assert_eq!(OURS, 1 << (libc::SIGUSR1 - 1) | 1 << (libc::SIGALRM - 1));
/// # let _: Option<Mask> = None;
/// ```
#[must_use]
pub const fn of(signals: &[i32]) -> u64 {
    let (mut set, mut nth) = (0, 0);
    while nth < signals.len() {
        set |= bit(signals[nth]);
        nth += 1;
    }
    set
}

/// The set of one signal.
pub(crate) const fn bit(signal: i32) -> u64 {
    assert!(signal >= 1 && signal <= SIGNALS, "signals are numbered 1 to 64");
    1 << (signal - 1)
}

/// The signals of a set. Loom does not tell them apart.
#[cfg(not(world = "loom"))]
pub(crate) fn signals_in(set: u64) -> impl Iterator<Item = i32> {
    (1..=SIGNALS).filter(move |&signal| set & bit(signal) != 0)
}
