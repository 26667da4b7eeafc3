//! System calls of the virtual machine.

use core::cell::Cell;
use core::time::Duration;
use ulocks_core::futex::{Bits, Futex, FutexKey, Global, Waited};
use ulocks_core::sync::AtomicU32;
use ulocks_core::time::Deadline;

/// What a system call says instead of a result.
pub type Errno = i32;

/// A result, or an `errno`.
pub type Answer<T = i32> = Result<T, Errno>;

/// What a model chooses.
#[derive(Debug)]
pub struct Switch(Cell<bool>);

ulocks_core::sync_static! {
    /// Whether sleepers look for deaths by themselves. Without, each wake-up has to come.
    pub static LOOKS: Switch = Switch(Cell::new(false));
}

impl Switch {
    /// From here on.
    pub fn set(&self, on: bool) {
        self.0.set(on);
    }
}

/// What the clock shows at first. A deadline of a model is nearer to it than any look.
const START: u64 = 1 << 40;
const NEAR: u64 = 1_000;

ulocks_core::model::thread_local! {
    /// The thread's clock: it is set when a wait has ended by its deadline.
    static NOW: Cell<u64> = Cell::new(START);
}

/// Seconds since 1970.
pub fn seconds() -> u64 {
    0
}

/// Nanoseconds of the clock.
pub fn monotonic() -> u64 {
    NOW.get()
}

/// The calling process.
pub fn process() -> u32 {
    ulocks_core::tid::current()
}

/// Whether a thread with this number exists. The kernel says it through robust lists.
pub fn thread_exists(_: u32) -> bool {
    true
}

/// Sleeps on `word` while it is `expected`.
pub fn wait(word: &AtomicU32, expected: u32, until: u64) -> Answer<()> {
    wait_bits(word, expected, until, u32::MAX)
}

pub(super) fn wait_bits(word: &AtomicU32, expected: u32, until: u64, bits: u32) -> Answer<()> {
    let ends = until < START + NEAR || LOOKS.0.get();
    let deadline = ends.then(|| Deadline::after(Duration::from_secs(1)));
    // SAFETY: a futex is this word.
    let futex = unsafe { &*core::ptr::from_ref(word).cast::<Futex<Global>>() };
    match futex.wait_bits(expected, Bits::new(bits).unwrap_or(Bits::ANY), deadline) {
        Waited::Woken => Ok(()),
        Waited::Mismatch => Err(libc::EAGAIN),
        Waited::Interrupted => Err(libc::EINTR),
        Waited::TimedOut => {
            NOW.set(NOW.get().max(until.min(START + NEAR)));
            Err(libc::ETIMEDOUT)
        }
    }
}

fn key(address: usize) -> FutexKey<Global> {
    FutexKey::of(core::ptr::with_exposed_provenance(address))
}

/// Wakes up to `count` threads that sleep on `word`.
pub fn wake(word: &AtomicU32, count: u32) {
    wake_at(core::ptr::from_ref(word).expose_provenance(), count);
}

/// Wakes the threads that sleep on `word` with one of these bits.
pub fn wake_some(word: &AtomicU32, bits: u32) {
    let key = key(core::ptr::from_ref(word).expose_provenance());
    key.wake_bits(u32::MAX, Bits::new(bits).unwrap_or(Bits::ANY));
}

/// The same of the word at `address`.
pub fn wake_at(address: usize, count: u32) {
    key(address).wake(count);
}
