//! The list of held locks as text, from any place of a program: a signal handler, a panic hook.
//!
//! # What makes it safe in a signal handler
//! - It allocates nothing. A line is put together in a buffer on the stack.
//! - It takes no lock, and waits for nothing but `write`.
//! - It writes no word that the checker reads, so it may interrupt the checker at any instruction.
//!   Slots, waits and names of threads are read as another thread reads them (`slot.rs`). An entry
//!   that the interrupted thread is just writing is left out.
//! - It leaves `errno` as it was.
//!
//! # Lists at once
//! Signals in several threads write lists at the same time. A list may be of any length, and the
//! stack of a handler is small, so it cannot be one write. Each line is one. Each list has a
//! number, which is in all of its lines. In one thread the second signal waits until the first list
//! is complete: two handlers at once may be more than the alternate stack has room for.

use crate::rules::clock::coarse_now;
use crate::seen::access::Access;
use crate::seen::class::Node;
use crate::seen::thread::{Held, Record, existing, records};
use core::ffi::c_int;
use core::fmt::{self, Write};
use core::ptr;
use std::io;
use ulocks_core::errno;
use ulocks_core::sync::{AtomicU32, Ordering::Relaxed};
use ulocks_profile::counting::Once;

/// Signals have the numbers 1 to 64.
const SIGNALS: usize = 65;
/// A line that is longer is written in parts.
const LINE: usize = 1024;

/// Text on its way to a descriptor.
struct Text {
    descriptor: c_int,
    /// That of the list.
    number: u32,
    buffer: [u8; LINE],
    length: usize,
}

impl Text {
    /// Writes out what is there. What cannot be written is lost.
    fn flush(&mut self) {
        let mut rest = &self.buffer[..self.length];
        while !rest.is_empty() {
            // SAFETY: the bytes are those of a slice.
            let written = unsafe { libc::write(self.descriptor, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(written) => rest = &rest[written.min(rest.len())..],
                Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.length = 0;
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.length == LINE {
                self.flush();
            }
            self.buffer[self.length] = byte;
            self.length += 1;
            if byte == b'\n' {
                self.flush();
            }
        }
        Ok(())
    }
}

/// A lock, as `LockName` shows it.
struct Lock<'a>(&'a Node, u8, usize, Access);

impl fmt::Display for Lock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(class, subclass, address, access) = *self;
        write!(f, "`{}`", class.name())?;
        if subclass > 0 {
            write!(f, " subclass {subclass}")?;
        }
        write!(f, " of {} at {address:#x}", class.place())?;
        access.fmt(f)
    }
}

/// A thread, as `ThreadName` shows it.
struct Thread<'a>(&'a Record);

impl fmt::Display for Thread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}", self.0.identity().tid())?;
        let bytes = self.0.identity().bytes();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        match core::str::from_utf8(&bytes[..end]) {
            Ok("") | Err(_) => Ok(()),
            Ok(name) => write!(f, " `{name}`"),
        }
    }
}

/// Why the list is written.
#[derive(Clone, Copy)]
enum Cause {
    Signal(c_int),
    Panic,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Panic => f.write_str("a panic"),
        }
    }
}

fn line_of(text: &mut Text, record: &Record, now: u64) -> fmt::Result {
    let number = text.number;
    for Held { lock, class, subclass, access, place, since, .. } in record.held() {
        let (thread, lock) = (Thread(record), Lock(class, subclass, lock, access));
        let millis = now.saturating_sub(since) / 1_000_000;
        writeln!(text, "  #{number} {thread} holds {lock} since {place} for {millis} ms")?;
    }
    if let Some((wait, _)) = record.waiting() {
        let (thread, lock) = (Thread(record), Lock(wait.class, wait.subclass, wait.lock, wait.access));
        writeln!(text, "  #{number} {thread} waits for {lock} in {}", wait.place)?;
    }
    Ok(())
}

fn new_number() -> u32 {
    static LISTS: AtomicU32 = AtomicU32::new(1);
    LISTS.fetch_add(1, Relaxed)
}

/// Writes the list. The calling thread comes first.
fn dump(descriptor: c_int, cause: Cause) {
    let number = new_number();
    let mut text = Text { descriptor, number, buffer: [0; LINE], length: 0 };
    let now = coarse_now();
    let me = existing();
    let write = || -> fmt::Result {
        // SAFETY: it has no preconditions.
        let process = unsafe { libc::getpid() };
        writeln!(text, "ulocks-debug: #{number} held locks of process {process}, by {cause}")?;
        if let Some(me) = me {
            line_of(&mut text, me, now)?;
        }
        for record in records() {
            if !me.is_some_and(|me| ptr::eq(me, record)) {
                line_of(&mut text, record, now)?;
            }
        }
        writeln!(text, "ulocks-debug: #{number} end of held locks")
    };
    // `Text` does not fail.
    let _ = { write }();
    text.flush();
}

/// By signal.
static DESCRIPTORS: [AtomicU32; SIGNALS] = [const { AtomicU32::new(2) }; SIGNALS];

extern "C" fn handle(signal: c_int) {
    let _errno = errno::Guard::new();
    let descriptor = usize::try_from(signal).ok().and_then(|signal| DESCRIPTORS.get(signal));
    dump(
        descriptor.map_or(libc::STDERR_FILENO, |place| place.load(Relaxed).cast_signed()),
        Cause::Signal(signal),
    );
}

/// Has `signal` print the held locks to standard error. As [`on_signal_to`], for the descriptor 2.
///
/// # Errors
/// Those of [`on_signal_to`].
///
/// # Examples
/// ```
/// ulocks_debug::held::on_signal(libc::SIGUSR1)?;
/// // From now on, `kill -USR1` shows which thread holds which lock.
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn on_signal(signal: c_int) -> io::Result<()> {
    on_signal_to(signal, libc::STDERR_FILENO)
}

/// Has `signal` print the held locks, and the locks that threads wait for, to `descriptor`.
///
/// The list is that of [`held`](crate::held()), one line for each lock. It begins with the thread
/// that handles the signal. The handler allocates nothing and takes no lock. It may interrupt a
/// thread inside of the checker. Then a lock that this thread is about to enter or to remove may be
/// missing.
///
/// # Two lists at once
/// Each list has a number, which is in all of its lines: of handlers that run at the same time,
/// `grep '#7 '` finds the lines of one. A line of up to 1024 bytes is one `write`. So give a
/// descriptor to which writes are whole and go to the end: a pipe, a terminal, or a file that is
/// open for appending. In other files two writes at once may go to the same place.
///
/// # Signals
/// The handler replaces that of the program, if there was one. Interrupted system calls go on. The
/// thread blocks all signals while it writes. A thread with an alternate signal stack handles the
/// signal there; it needs 4 KiB.
///
/// # Errors
/// If the kernel refuses a handler of that signal, as for `SIGKILL`.
///
/// # Examples
/// ```
/// use std::{fs::File, os::fd::IntoRawFd};
///
/// let log = File::options().append(true).open("/dev/null")?.into_raw_fd();
/// ulocks_debug::held::on_signal_to(libc::SIGUSR2, log)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn on_signal_to(signal: c_int, descriptor: c_int) -> io::Result<()> {
    let place = usize::try_from(signal).ok().and_then(|signal| DESCRIPTORS.get(signal));
    let Some(place) = place else { return Err(io::Error::from_raw_os_error(libc::EINVAL)) };
    let before = place.swap(descriptor.cast_unsigned(), Relaxed);
    // SAFETY: all zero is a valid value of this structure.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handle as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // A handler in this one may not find room on the alternate stack.
    // SAFETY: the place of the set is valid.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    // SAFETY: the action is a valid one. Its handler only does what a handler may do, and does not
    // unwind.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        let error = io::Error::last_os_error();
        place.store(before, Relaxed);
        return Err(error);
    }
    Ok(())
}

/// Has a panic print the held locks to standard error, after the message of the panic.
///
/// The locks of the panicking thread come first. The hook that was there before runs before. A
/// second call does nothing.
///
/// # Examples
/// ```
/// ulocks_debug::held::on_panic();
/// ```
pub fn on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            dump(libc::STDERR_FILENO, Cause::Panic);
        }));
    });
}
