//! Why handlers cannot be installed.

use core::fmt;

/// Why [`Handlers`](super::Handlers) were not installed. None of them was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstallError {
    /// Not on this architecture.
    Unsupported,
    /// No signal was named.
    NoSignals,
    /// There is no signal of this number.
    NoSuchSignal(i32),
    /// `SIGKILL` and `SIGSTOP` have no handlers.
    Uncatchable(i32),
    /// The C library keeps this one for itself.
    Reserved(i32),
    /// It has been installed with [`Handlers`](super::Handlers) before.
    AlreadyInstalled(i32),
    /// The kernel refused.
    Refused {
        /// The signal.
        signal: i32,
        /// Its answer.
        errno: i32,
    },
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unsupported => f.write_str(
                "signals cannot be deferred on this architecture, whose signal context is not known here: use plain \
                 handlers and `Hard` masks",
            ),
            Self::NoSignals => {
                f.write_str("no signal to install a handler for: name at least one with `signal`")
            }
            Self::NoSuchSignal(signal) => {
                write!(f, "there is no signal {signal}: they are numbered 1 to {}", libc::SIGRTMAX())
            }
            Self::Uncatchable(signal) => {
                write!(f, "signal {signal} cannot be handled: any but SIGKILL and SIGSTOP can")
            }
            Self::Reserved(signal) => write!(
                f,
                "signal {signal} belongs to the C library: the real-time signals from SIGRTMIN, which is {}, to \
                 SIGRTMAX are free",
                libc::SIGRTMIN()
            ),
            Self::AlreadyInstalled(signal) => write!(
                f,
                "signal {signal} has a handler of this kind already: uninstall that first, or let one closure do both"
            ),
            Self::Refused { signal, errno } => {
                let error = std::io::Error::from_raw_os_error(errno);
                write!(f, "the kernel refuses a handler of signal {signal}: {error}")
            }
        }
    }
}

impl core::error::Error for InstallError {}
