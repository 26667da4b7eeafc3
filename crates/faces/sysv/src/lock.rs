//! A lock between processes that survives the death of its holder.
//!
//! # State
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | thread id | held |
//! | thread id, `WAITERS` | held, and threads may sleep |
//! | `OWNER_DIED`, maybe `WAITERS` | its holder has died |
//!
//! | transition | by | label |
//! |---|---|---|
//! | free or died to the thread id, `WAITERS` kept | a thread that acquires | (acquire) |
//! | `WAITERS` set | a thread that is about to sleep | (mark waiting) |
//! | anything to free; then one sleeper is woken | the holder | (release) |
//! | a thread id to `OWNER_DIED` | the kernel, or a waiter that finds that thread gone | (mark dead) |
//!
//! # Invariants
//! 1. From before (acquire) until after the wake-up of (release), the word is the *pending* word of
//!    the thread's robust list. So the kernel makes (mark dead) if the holder dies. If the thread
//!    dies after (release) and before its wake-up, the kernel wakes a sleeper.
//! 2. A thread that has slept sets `WAITERS` at (acquire): others may sleep.
//! 3. All signals but SIGBUS are blocked from (acquire) to (release), and a SIGBUS that was sent
//!    waits for (release) too (see `fault.rs`). So a handler never finds its own thread inside, and
//!    cannot leave it by a jump.
//! 4. A thread holds one lock of this kind at a time, for there is one pending word. Another word
//!    that was pending before (acquire) may be that of a lock of another kind which the thread
//!    holds. One of its sleepers is woken then, and watches the thread (`ulocks_core::robust`). The
//!    word is pending again after (release).
//!
//! A sleep lasts at most [`RECHECK`]: a woken thread may die while another thread takes the lock
//! without `WAITERS`, and then no thread wakes the sleepers. A thread without a robust list is
//! found gone by its number.
//!
//! # Ordering
//! (release) is Release and (acquire) is Acquire. The kernel's (mark dead) is a full barrier.
//!
//! # Sources
//! Documentation/locking/robust-futex-ABI.rst in the kernel. U. Drepper, "Futexes Are Tricky".

use crate::sys;
use core::cell::Cell;
use core::ptr::null_mut;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use ulocks_core::sync::{AtomicU32, compiler_fence};

const WAITERS: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;
const THREAD: u32 = OWNER_DIED - 1;

/// The longest sleep, in nanoseconds.
pub const RECHECK: u64 = 100_000_000;
/// How often a thread polls before it sleeps. A section takes less than a microsecond, which is
/// about this many polls.
const POLLS: u32 = 100;

/// The kernel's `struct robust_list_head`.
#[repr(C)]
struct Head {
    first: *mut (),
    offset: isize,
    pending: usize,
}

thread_local! {
    static HEAD: Cell<*mut Head> = const { Cell::new(null_mut()) };
}

/// The calling thread, with its signals blocked.
#[derive(Debug)]
pub struct Thread {
    number: u32,
    head: *mut Head,
    /// Dropped last.
    pub mask: sys::Masked,
}

impl Thread {
    /// Blocks all signals of the calling thread.
    pub fn new() -> Self {
        let mask = sys::Masked::new();
        let head = HEAD.with(|known| {
            if known.get().is_null() {
                known.set(robust_list());
            }
            known.get()
        });
        Self { number: ulocks_core::tid::current(), head, mask }
    }

    /// The kernel's number of the thread.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Names the pending word. Returns the former one. If there is one, it may be that of a lock
    /// which the thread holds, and whose waiters do not watch it (`ulocks_core::robust`): one of
    /// them is woken before.
    fn replace_pending(&self, word: usize) -> usize {
        if self.head.is_null() {
            return 0;
        }
        // SAFETY: the kernel has told where the head is, and the C library keeps it as long as the
        // thread lives. The thread and the kernel alone write to it.
        let (before, offset) =
            unsafe { ((&raw const (*self.head).pending).read_volatile(), (*self.head).offset) };
        if before != 0 {
            sys::wake_at(before.wrapping_add_signed(offset), 1);
        }
        self.set_pending(word);
        before
    }

    /// Names the pending word.
    fn set_pending(&self, word: usize) {
        if self.head.is_null() {
            return;
        }
        compiler_fence(SeqCst); // The kernel sees what this thread did in the order of the program.
        // SAFETY: as in `replace_pending`.
        unsafe { (&raw mut (*self.head).pending).write_volatile(word) };
        compiler_fence(SeqCst);
    }

    /// What stands for `word` in the list.
    fn entry(&self, word: &AtomicU32) -> usize {
        if self.head.is_null() {
            return 0;
        }
        // SAFETY: as in `replace_pending`.
        let offset = unsafe { (*self.head).offset };
        (word.as_ptr() as usize).wrapping_add_signed(-offset)
    }
}

fn robust_list() -> *mut Head {
    let (mut head, mut bytes) = (null_mut::<Head>(), 0_usize);
    let a = [0, &raw mut head as usize, &raw mut bytes as usize, 0, 0, 0];
    // SAFETY: 0 is the calling thread; both places are borrowed.
    let answer = unsafe { sys::raw(libc::SYS_get_robust_list, a) };
    if answer < 0 || bytes != size_of::<Head>() { null_mut() } else { head }
}

/// The lock: all zero is free.
#[derive(Debug)]
#[repr(transparent)]
pub struct Lock {
    word: AtomicU32,
}

/// A lock that is held.
#[derive(Debug)]
pub struct Held<'a> {
    lock: &'a Lock,
    /// The thread that holds it.
    pub thread: Thread,
    before: usize,
    /// Whether the former holder died with it.
    pub died: bool,
}

impl Lock {
    /// Acquires it, for `thread`.
    pub fn lock(&self, thread: Thread) -> Held<'_> {
        let before = thread.replace_pending(thread.entry(&self.word)); // invariant 1
        let died = match self.word.compare_exchange(0, thread.number, Acquire, Relaxed) {
            Ok(_) => false,
            Err(_) => self.contended(&thread),
        };
        Held { lock: self, thread, before, died }
    }

    #[cold]
    fn contended(&self, thread: &Thread) -> bool {
        let (mut polls, mut mine) = (0, thread.number);
        loop {
            let seen = self.word.load(Relaxed);
            if seen & THREAD == 0 {
                // (acquire)
                let taken = self.word.compare_exchange(seen, mine | seen & WAITERS, Acquire, Relaxed);
                if taken.is_ok() {
                    return seen & OWNER_DIED != 0;
                }
                continue;
            }
            if polls < POLLS {
                polls += 1;
                core::hint::spin_loop();
                continue;
            }
            let marked = seen | WAITERS;
            // (mark waiting)
            if seen != marked && self.word.compare_exchange(seen, marked, Relaxed, Relaxed).is_err() {
                continue;
            }
            mine |= WAITERS; // invariant 2
            let slept = sys::wait(&self.word, marked, sys::monotonic() + RECHECK);
            if slept == Err(libc::ETIMEDOUT) && !sys::thread_exists(marked & THREAD) {
                // (mark dead). The exchange fails if the word has another holder by now.
                let _ = self.word.compare_exchange(marked, OWNER_DIED | WAITERS, Relaxed, Relaxed);
            }
        }
    }
}

impl Held<'_> {
    /// Releases it, with the signals still blocked.
    pub fn unlock(self) -> Thread {
        if self.lock.word.swap(0, Release) & WAITERS != 0 {
            sys::wake(&self.lock.word, 1); // (release)
        }
        self.thread.set_pending(self.before);
        self.thread
    }
}
