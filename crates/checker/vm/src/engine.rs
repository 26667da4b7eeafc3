//! What stands behind the facade: the operations of lock code, as calls on the engine that runs it.
//!
//! Lock code calls [`sync`](crate::sync), [`futex`](crate::futex), [`thread`](crate::thread) and
//! [`clock`](crate::clock). Each of these is a thin typed layer over one method of [`Engine`].
//! There are two engines: the explorer, which keeps a history of every word and chooses what a load
//! reads, and the cost model of `ulocks-vm-cost`, which keeps one value and charges for the way to
//! it. Exactly one engine runs on an OS thread at a time.
//!
//! The module is public for that crate alone, and is no part of what this one promises.

#[cfg(feature = "linux")]
pub mod linux;

pub use crate::fibers::{Fibers, Stopped, suspend};

use crate::clock::Time;
use crate::futex::{Entry, Waited};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::panic::Location;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::alloc::System;

/// The line of lock code an operation is on.
pub type At = &'static Location<'static>;

/// How wide a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    W8,
    W16,
    W32,
    W64,
}

/// Where an atomic lives, and how wide it is.
///
/// What its bytes hold is the engine's affair. The cost model keeps the value there, as the machine
/// does. The explorer keeps the number of the word's history there, so that an atomic may be moved,
/// and may lie in a page that is mapped twice; zero is a word that has no history yet and holds
/// zero.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    bytes: NonNull<u8>,
    width: Width,
}

impl Word {
    /// The word at `bytes`, which is valid for reads and writes of `width` for as long as the
    /// result is used.
    pub fn new(bytes: NonNull<u8>, width: Width) -> Self {
        Self { bytes, width }
    }

    pub fn address(self) -> usize {
        self.bytes.as_ptr().addr()
    }

    pub fn width(self) -> Width {
        self.width
    }

    /// What the bytes hold.
    pub fn bits(self) -> u64 {
        // SAFETY: valid and aligned for reads by the promise given at `new`; the engine's OS thread
        // is the only one.
        unsafe {
            match self.width {
                Width::W8 => self.bytes.read().into(),
                Width::W16 => self.bytes.cast::<u16>().read().into(),
                Width::W32 => self.bytes.cast::<u32>().read().into(),
                Width::W64 => self.bytes.cast::<u64>().read(),
            }
        }
    }

    /// Sets what the bytes hold; what exceeds the width is cut off.
    pub fn set_bits(self, bits: u64) {
        // SAFETY: as in `bits`, for writes.
        unsafe {
            match self.width {
                Width::W8 => self.bytes.write(bits as u8),
                Width::W16 => self.bytes.cast::<u16>().write(bits as u16),
                Width::W32 => self.bytes.cast::<u32>().write(bits as u32),
                Width::W64 => self.bytes.cast::<u64>().write(bits),
            }
        }
    }
}

/// A read-modify-write.
pub struct Update<'a> {
    /// What it is called, for reports: `swap`, `compare_exchange`.
    pub name: &'static str,
    pub success: Ordering,
    /// The ordering of the load where `change` declines.
    pub failure: Ordering,
    /// Whether it may decline although `change` would not (`compare_exchange_weak`).
    pub weak: bool,
    /// The new value, or `None` to leave the word alone. Called any number of times; has no effects
    /// of its own.
    pub change: &'a dyn Fn(u64) -> Option<u64>,
}

/// What the newest value of a word has to be for a thread to go on: [`Engine::settle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// None of these bits is set.
    Clear(u64),
    /// One of these bits is set.
    Set(u64),
}

impl Until {
    pub fn holds(self, value: u64) -> bool {
        match self {
            Self::Clear(bits) => value & bits == 0,
            Self::Set(bits) => value & bits != 0,
        }
    }
}

/// What part of an execution is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    Stop,
    Resume,
    Skip,
}

/// A futex by address. An address in a region that is mapped more than once names the same futex by
/// each mapping, unless it is private.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub address: usize,
    pub private: bool,
}

/// One of the two machines.
///
/// Every method that takes a place (`At`) is a step: other threads may run before it.
pub trait Engine {
    // Words.
    /// The bytes of a new word that holds `value`.
    fn create(&self, value: u64, width: Width, at: At) -> u64;
    /// Reports call the word `label`. Not a step.
    fn name(&self, _word: Word, _label: &str) {}
    /// The word ends. Not a step.
    fn retire(&self, word: Word);
    fn load(&self, word: Word, order: Ordering, at: At) -> u64;
    fn store(&self, word: Word, value: u64, order: Ordering, at: At);
    /// The value before, as `Ok` if it was changed.
    fn update(&self, word: Word, update: &Update<'_>, at: At) -> Result<u64, u64>;
    /// Waits until the newest value is as `until` says, and updates the word then, in one step. For
    /// the objects of [`sync`](crate::sync): a lock is taken or it is not, and no old value of its
    /// word says otherwise.
    fn settle(&self, word: Word, until: Option<Until>, update: &Update<'_>, at: At) -> Result<u64, u64> {
        loop {
            self.begin_round();
            if until.is_none_or(|until| until.holds(self.load(word, Ordering::Relaxed, at))) {
                let seen = self.update(word, update, at);
                if seen.is_ok() || until.is_none() {
                    self.leave_round();
                    return seen;
                }
            }
            self.end_round(at);
        }
    }
    /// The owner of the word reads it as plain data: no write may be unordered with this; and if it
    /// `writes` it then, no access.
    fn alone(&self, word: Word, _writes: bool, _at: At) -> u64 {
        self.peek(word)
    }
    /// The newest value, without a step: for `Debug`, and for the owner of the word.
    fn peek(&self, word: Word) -> u64;
    fn fence(&self, order: Ordering, at: At);
    /// A `fence(SeqCst)` on every thread of the process, wherever it is (`membarrier`).
    fn membarrier(&self, at: At);

    // Plain data: `size` bytes at `address`.
    fn read_plain(&self, address: usize, size: usize, at: At);
    fn write_plain(&self, address: usize, size: usize, at: At);
    /// The data ends, or moves. Not a step.
    fn forget_plain(&self, address: usize, size: usize);

    // Memory.
    /// The running code of the model gives a block back. Whether the engine keeps it, which gives
    /// it to the system's allocator later. Not a step.
    fn keep(&self, _block: *mut u8, _layout: Layout) -> bool {
        false
    }
    /// A block for the running code of the model, or null: one that the engine has kept, and keeps
    /// no more, or one of the system's. Not a step.
    ///
    /// # Safety
    /// As [`GlobalAlloc::alloc`]'s.
    unsafe fn allocate(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    // Waiting.
    /// A round of a busy-wait begins: what is read from here on is what it depends on. Not a step.
    fn begin_round(&self);
    /// The round was fruitless: waits for something new.
    fn end_round(&self, at: At);
    /// The round was the last one: the busy-wait is over. Not a step.
    fn leave_round(&self) {}
    /// How many pauses a busy-wait of `ns` nanoseconds has room for; one look is enough for an
    /// explorer.
    fn pauses_in(&self, ns: u32) -> u32;
    /// `count` pauses of the processor.
    fn pause(&self, count: u32, at: At);
    /// A place where a signal or death may strike.
    fn point(&self, at: At);
    /// A scheduling point of a thread that lets others go first.
    fn yield_now(&self, at: At) {
        self.point(at);
    }
    /// A step whose place among the steps of all other threads makes a difference, though it
    /// touches no word: what it stands for is written down outside of the machine.
    fn event(&self, at: At) {
        self.yield_now(at);
    }
    /// `ns` nanoseconds of computation that touch no shared memory.
    fn work(&self, ns: u64, at: At);

    // The kernel.
    fn wait(&self, key: Key, word: Word, expected: u32, bits: u32, deadline: Option<Time>, at: At) -> Waited;
    fn wake(&self, key: Key, count: u32, bits: u32, at: At) -> u32;
    /// Wakes `wake` and moves `requeue` of the rest, if the word holds the expected value.
    /// Returns how many of each.
    fn requeue(
        &self,
        from: Key,
        expected: (Word, u32),
        wake: u32,
        requeue: u32,
        to: Key,
        at: At,
    ) -> Option<(u32, u32)>;
    /// Which entry was woken, if one was.
    fn wait_any(&self, entries: &[Entry<'_>], deadline: Option<Time>, at: At) -> (Waited, Option<usize>);

    /// What only Linux has, on an engine that has it.
    #[cfg(feature = "linux")]
    fn linux(&self) -> Option<&dyn linux::Linux> {
        None
    }

    // Time.
    /// Goes to the clock, to read it with [`now`](Self::now): what others do to the time may come
    /// before.
    fn look_at_clock(&self, _at: At) {}
    fn now(&self, clock: crate::clock::Clock) -> Duration;
    fn has_passed(&self, deadline: Time, at: At) -> bool;
    /// Whether deadlines pass.
    fn time_passes(&self) -> bool {
        true
    }

    // Threads.
    /// Starts a thread of the calling thread's process.
    fn spawn(&self, body: Box<dyn FnOnce()>, at: At) -> usize;
    /// Waits until the thread has ended.
    fn join(&self, thread: usize, at: At);
    /// The calling thread has returned, and says so in `word`, by its last step. Not a step.
    fn say_returned(&self, word: Word, _at: At) {
        word.set_bits(1);
    }
    /// Reads a word that stands for what changes together with a thread's steps, whatever these
    /// touch: that it has returned, or has cloned an `Arc`. Without `may_be_old`, the newest value.
    fn ask(&self, word: Word, _may_be_old: bool, at: At) -> u64 {
        self.load(word, Ordering::Relaxed, at)
    }
    fn current_thread(&self) -> usize;
    /// As `current_thread`, for the machine's own use: the program is not told the number.
    fn running_thread(&self) -> usize {
        self.current_thread()
    }
    /// The CPU of the calling thread, on an engine that has CPUs. Not a step.
    fn cpu(&self) -> Option<usize> {
        None
    }
    /// How many CPUs there are, likewise.
    fn cpus(&self) -> Option<usize> {
        None
    }

    // The run.
    /// One of `count`, by the run's choice.
    fn choose(&self, _count: usize, _at: At) -> usize {
        0
    }
    /// From here on the run is varied, or it is not.
    fn steer(&self, _steering: Steering) {}
    /// A line of the story.
    fn note(&self, _text: &dyn Fn() -> String, _at: At) {}
    /// What there is to say of the run if the process ends in it.
    fn last_words(&self) -> String {
        String::new()
    }
    /// The number of this run, different from that of every other run of this program.
    fn run(&self) -> u64;
    /// Calls `make`. The words it creates were there before the run began: what they hold at first
    /// is visible to every thread. To an engine that keeps no history all words are such.
    fn before_all(&self, make: &mut dyn FnMut()) {
        make();
    }
}

thread_local! {
    static ENGINE: Cell<Option<NonNull<dyn Engine>>> = const { Cell::new(None) };
}

/// A number for a run, different from that of every other run of this program.
pub fn next_run() -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(1);
    RUNS.fetch_add(1, Ordering::Relaxed)
}

/// Runs `body` with `engine` behind the facade.
pub fn install<R>(engine: &dyn Engine, body: impl FnOnce() -> R) -> R {
    struct Uninstall;
    impl Drop for Uninstall {
        fn drop(&mut self) {
            ENGINE.set(None);
        }
    }
    // Only the lifetime is erased. `Uninstall` removes the pointer before the borrow ends.
    let engine: NonNull<dyn Engine + '_> = NonNull::from(engine);
    // SAFETY: the two types differ in a lifetime only.
    let engine: NonNull<dyn Engine> = unsafe { core::mem::transmute(engine) };
    assert!(ENGINE.replace(Some(engine)).is_none(), "a run of the virtual machine inside another");
    let _uninstall = Uninstall;
    body()
}

/// Whether an engine runs on this OS thread.
pub fn is_installed() -> bool {
    ENGINE.get().is_some()
}

/// Calls the engine.
///
/// # Panics
/// Outside of a run.
#[track_caller]
pub fn with<R>(body: impl FnOnce(&dyn Engine) -> R) -> R {
    let engine = ENGINE.get().expect(
        "an operation of the virtual machine outside of a run: atomics, futexes and threads of this world exist only \
         inside the closure that is given to `explore` or `cost`",
    );
    // SAFETY: `install` keeps the engine borrowed while the pointer is set.
    let engine = unsafe { engine.as_ref() };
    crate::frames::call(|| body(engine))
}
