//! What the futex tests share: threads one can watch falling asleep, mappings, signals.
//!
//! A test never sleeps to wait for another thread; it asks the kernel, in `/proc`, whether that
//! thread is asleep in a futex call. A watchdog ends a test program that hangs, and one whose
//! assertion fails beside a sleeping thread, which would otherwise wait for that thread for ever.

#![allow(dead_code)] // Each test program uses its own part.

use std::fs;
use std::io::{self, Write};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;
use ulocks_core::futex::{Futex, Scope as FutexScope};
use ulocks_testkit::watchdog::patience;
use ulocks_testkit::{Child, task};

/// Ends the program if it is still there after [`patience`]. What any thread panicked with before
/// is on stderr then: written past the test harness, which holds output back until a test has
/// ended.
pub fn watchdog() {
    static START: Once = Once::new();
    START.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let _ = writeln!(io::stderr(), "{info}");
            hook(info);
        }));
        thread::spawn(|| {
            thread::sleep(patience());
            let _ = writeln!(io::stderr(), "a test hangs: {:?} have passed", patience());
            std::process::abort();
        });
    });
}

/// A thread that has begun to run `body`, and its id.
pub struct Sleeper<'scope, T> {
    pub id: u32,
    handle: ScopedJoinHandle<'scope, T>,
}

impl<T> Sleeper<'_, T> {
    pub fn join(self) -> T {
        self.handle.join().unwrap()
    }

    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

/// Runs `body` in a thread, and returns once that thread sleeps in a futex call.
pub fn asleep<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Sleeper<'scope, T> {
    let sleeper = started(scope, body);
    until_asleep(std::process::id(), sleeper.id);
    sleeper
}

/// Runs `body` in a thread, and returns once it has begun.
pub fn started<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Sleeper<'scope, T> {
    watchdog();
    let (id, handle) = task::begun(scope, body);
    Sleeper { id: id.unsigned_abs(), handle }
}

/// Returns once the first thread of `child` sleeps in a futex call.
pub fn until_child_asleep(child: &Child) {
    until_asleep(child.id() as u32, child.id() as u32);
}

/// Returns once `thread` of `process` sleeps in a futex call.
pub fn until_asleep(process: u32, thread: u32) {
    watchdog();
    while !task::is_in_futex_call(process, thread).expect("a thread that exists") {
        // A yield leaves this thread on its CPU if the machine has CPUs enough. A waiter for a lock
        // with priority inheritance spins in the kernel for as long as the owner is on one.
        thread::sleep(Duration::from_micros(100));
    }
}

/// Returns once `done`.
pub fn until(done: impl Fn() -> bool) {
    watchdog();
    while !done() {
        thread::yield_now();
    }
}

/// A page that is mapped shared; children of fork share it.
pub struct Mapping(*mut u8);

pub const PAGE: usize = 4096;

impl Mapping {
    pub fn anonymous() -> Self {
        Self::map(-1, libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// A page without access. To the kernel it is as good as none, and no other test gets
    /// the address.
    pub fn inaccessible() -> Self {
        Self::map(-1, libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::PROT_NONE)
    }

    /// A mapping of `file`, one page long.
    pub fn of_file(file: &fs::File, access: i32) -> Self {
        use std::os::fd::AsRawFd;
        Self::map(file.as_raw_fd(), libc::MAP_SHARED, access)
    }

    fn map(file: i32, kind: i32, access: i32) -> Self {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, kind, file, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        Self(page.cast())
    }

    /// The futex at word `index`. The tests do not look into it where the page is inaccessible.
    pub fn futex<S: FutexScope>(&self, index: usize) -> &Futex<S> {
        assert!(index < PAGE / 4);
        // SAFETY: inside the page, aligned, and every bit pattern is a futex.
        unsafe { &*self.address(index).cast() }
    }

    pub fn address(&self, index: usize) -> *const u32 {
        // SAFETY: the callers stay inside the page.
        unsafe { self.0.cast::<u32>().add(index) }
    }
}

// SAFETY: the page holds atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours, and every futex in it borrows from `self`.
        assert_eq!(unsafe { libc::munmap(self.0.cast(), PAGE) }, 0);
    }
}

/// An unlinked file in memory, one page long.
pub fn memory_file() -> fs::File {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a C string.
    let file = unsafe { libc::memfd_create(c"futex".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(file >= 0);
    // SAFETY: a new descriptor that no other code has.
    let file = unsafe { fs::File::from_raw_fd(file) };
    file.set_len(PAGE as u64).unwrap();
    file
}

/// How often a handler has run.
pub static HANDLED: AtomicU32 = AtomicU32::new(0);

/// A signal whose handler counts itself in [`HANDLED`].
#[derive(Clone, Copy, Debug)]
pub struct Signal(i32);

impl Signal {
    /// A signal whose handler was installed without `SA_RESTART`.
    pub fn plain() -> Self {
        Self::installed(libc::SIGUSR1, 0)
    }

    /// A signal whose handler was installed with `SA_RESTART`.
    pub fn restarting() -> Self {
        Self::installed(libc::SIGUSR2, libc::SA_RESTART)
    }

    fn installed(signal: i32, flags: i32) -> Self {
        extern "C" fn handler(_: i32) {
            HANDLED.fetch_add(1, Relaxed);
        }
        // SAFETY: the handler does nothing but count.
        unsafe { task::handle(signal, handler, flags) };
        Self(signal)
    }

    /// Sends the signal to a thread of this process.
    pub fn send(self, thread: u32) {
        task::signal(thread as i32, self.0);
    }

    /// Sends the signal to a thread of this process that is asleep; returns once its handler has
    /// run and the thread is asleep again or has `ended`. No other test of the program may send
    /// signals meanwhile.
    pub fn send_to_sleeper<T>(self, sleeper: &Sleeper<'_, T>) {
        let before = HANDLED.load(Relaxed);
        self.send(sleeper.id);
        until(|| HANDLED.load(Relaxed) > before);
    }
}
