//! Tokens: words in shared memory that the kernel marks when their thread dies.
//!
//! A thread that takes part in robust locks puts one [`Token`] on its *robust list*, once. If the
//! thread dies by whatever means (a signal, an exit, an `execve`, a crash), the kernel walks the
//! list, sets [`OWNER_DIED`] in the token, and wakes one of the threads that sleep on it. A lock
//! names its owner by the token's place in a table, and never by a thread id. So a number that the
//! kernel uses again, or another namespace of thread ids, fools no lock.
//!
//! Beside the list, a thread can name one word as *pending* ([`Registration::set_pending`]). If it
//! dies then, the kernel wakes one sleeper of that word, provided that the word names no owner: its
//! thread-id bits ([`TID_MASK`]) are zero. So a wake-up is not lost if the thread dies between a
//! release and its wake-up, or after it was woken and before it has acquired. The word must never
//! hold a thread id. Then the kernel never writes to it.
//!
//! # State of a token's word
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | `WAITERS` alone | *between owners*: a thread claims it or leaves it |
//! | thread id | claimed by that thread, which lives |
//! | thread id, `WAITERS` | the same, and threads may sleep on the word |
//! | `OWNER_DIED`, maybe `WAITERS` | claimed by a thread that has died |
//!
//! | transition | by | label |
//! |---|---|---|
//! | free or died to between owners | a thread that claims the token | (C) |
//! | the generation increases | that thread | (G) |
//! | between owners to the thread id | that thread, which has the token pending | (A) |
//! | `WAITERS` set | a thread that is about to sleep | (S) |
//! | `OWNER_DIED` | the kernel | (D) |
//! | the thread id to between owners; sleepers woken | the thread that leaves, which has it pending | (L) |
//! | between owners to free | that thread, which has nothing pending | (F) |
//!
//! # Invariants
//! 1. Between (C) and (F) or (D) one thread owns the token, and it alone changes the generation.
//! 2. A thread that sleeps on the word has read the generation after its own (S), which needs a
//!    living owner. If that owner leaves or dies before the sleep, the word is another one, and the
//!    sleep does not begin. If it does so later, (L) wakes all sleepers, and the kernel one, which
//!    wakes the others. If (S) comes after the next (A), it has acquired what (A) released, and the
//!    thread sees the new generation.
//! 3. The kernel finds the token at each moment between (A) and (L): it is pending, or on the list.
//! 4. While the word has a thread id, only its owner has the token pending or on its list. So the
//!    kernel marks it at the death of its owner only, also if a thread in another namespace has the
//!    same thread id. Between owners the kernel marks nothing: there is no thread id.
//!
//! If a thread dies between (C) and (A), or between (L) and (F), the slot stays between owners. It
//! is lost until the table is zeroed, and no lock names its thread.
//!
//! # Ordering
//! (D) is a full barrier, and so a thread that finds [`OWNER_DIED`] with Acquire sees all that the
//! dead thread did. (C) acquires that too, and (G) releases it: so does a thread see it that finds
//! a new generation. (A) is Release, (S) is Acquire: invariant 2. (F) releases, (C) acquires.
//!
//! # Sources
//! Documentation/locking/robust-futexes.rst and robust-futex-ABI.rst in the kernel. The design with
//! tokens is this project's. The list is the C library's own, so its robust mutexes still work.

pub use super::types::robust::ListError;

use super::futex::{Futex, OWNER_DIED, Shared, TID_MASK, WAITERS};
use super::sync::Ordering::{Acquire, Relaxed, Release};
use super::sync::{AtomicPtr, AtomicU32};
use super::types::robust::WORD;
use super::world::robust::List;
use super::world::{process_generation, thread_id};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// A word that the kernel marks when its thread dies, and what it needs for that. All-zero memory
/// is a free token.
///
/// # Process-shared
/// Yes, in any shared mapping, at whatever addresses.
///
/// # Signals and forks
/// A child of fork has no token: its parent keeps it.
#[repr(C)]
pub struct Token {
    /// The kernel looks at the first word in a thread of glibc, and at the second in one of musl.
    words: [Futex<Shared>; 2],
    generation: AtomicU32,
    /// The process that has claimed it: for people, not for the protocol.
    process: AtomicU32,
    reserved: [AtomicU32; 2],
    /// The C library writes here and never reads.
    previous: AtomicPtr<()>,
    next: AtomicPtr<()>,
}

/// The word of a token between owners.
const BETWEEN: u32 = WAITERS;

/// How far the entry of the list is behind the first word: the distance of glibc's lists.
const ENTRY: usize = 32;
#[cfg(target_pointer_width = "64")]
const _: () = assert!(core::mem::offset_of!(Token, next) == ENTRY && size_of::<Token>() == 40);

impl Token {
    crate::const_fn! {
        /// A free token; its bytes are all zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self {
                words: [Futex::new(0), Futex::new(0)],
                generation: AtomicU32::new(0),
                process: AtomicU32::new(0),
                reserved: [AtomicU32::new(0), AtomicU32::new(0)],
                previous: AtomicPtr::new(core::ptr::null_mut()),
                next: AtomicPtr::new(core::ptr::null_mut()),
            }
        }
    }

    /// The word.
    #[inline]
    pub fn word(&self) -> &Futex<Shared> {
        &self.words[WORD]
    }

    /// How often the token was claimed.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation.load(Acquire)
    }

    /// The process that claimed the token last, by its own number: for people only.
    pub fn process(&self) -> u32 {
        self.process.load(Relaxed)
    }

    /// Whether the thread that claimed the token lives; `word` is the token's word.
    #[inline]
    #[must_use]
    pub const fn is_alive(word: u32) -> bool {
        word & TID_MASK != 0 && word & OWNER_DIED == 0
    }

    /// (S): marks the word for a sleeper. Returns the marked word, or `None` if the thread that
    /// claimed the token has died or left, or if the generation is not `generation` any more.
    pub fn watch(&self, generation: u32) -> Option<u32> {
        let mut seen = self.word().load(Acquire);
        loop {
            if !Self::is_alive(seen) || self.generation() != generation {
                return None;
            }
            // An exchange also where the bit is set already: invariant 2.
            // Mutant: Acquire -> Relaxed: no model has two threads of one id, in two namespaces.
            match self.word().compare_exchange(seen, seen | WAITERS, Acquire, Acquire) {
                // The next owner may have the same thread id, in another namespace.
                Ok(_) if self.generation() == generation => return Some(seen | WAITERS),
                Ok(_) => return None,
                Err(now) => seen = now,
            }
        }
    }

    /// Claims the token for the calling thread, and puts it on the thread's robust list. `None` if
    /// it is another living thread's.
    ///
    /// # Errors
    /// If the thread has no robust list that this crate can use.
    ///
    /// # Safety
    /// The token stays mapped, at this address, until the registration is dropped or the thread has
    /// ended.
    pub unsafe fn claim(&self) -> Result<Option<Registration>, ListError> {
        let seen = self.word().load(Relaxed);
        if seen != 0 && seen & OWNER_DIED == 0 {
            return Ok(None);
        }
        let list = List::current()?;
        if list.word_index() != WORD {
            return Err(ListError::Missing);
        }
        // (C)
        if self.word().compare_exchange(seen, BETWEEN, Acquire, Relaxed).is_err() {
            return Ok(None);
        }
        let generation = self.generation.load(Relaxed).wrapping_add(1);
        self.generation.store(generation, Release); // (G)
        self.process.store(std::process::id(), Relaxed);
        list.set_pending(Some(self.address())); // invariant 3
        self.word().store(thread_id(), Release); // (A)
        // SAFETY: an entry is a pointer behind another one, both of them this token's; the caller
        // keeps it mapped.
        let appended = unsafe { list.append(self.entry()) };
        if let Err(error) = appended {
            self.leave(list);
            return Err(error);
        }
        list.set_pending(None);
        let process = process_generation();
        Ok(Some(Registration {
            token: NonNull::from(self),
            list,
            generation,
            process,
            of_thread: PhantomData,
        }))
    }

    /// (L) and (F), by the owner, whose list does not have the token any more, and which has it
    /// pending.
    fn leave(&self, list: List) {
        let was = self.word().swap(BETWEEN, Relaxed); // (L)
        if was & WAITERS != 0 {
            self.word().key().wake(u32::MAX);
        }
        list.set_pending(None);
        self.word().store(0, Release); // (F)
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self.word()).expose_provenance()
    }

    fn entry(&self) -> *mut *mut () {
        let entry = (&raw const self.next).cast_mut();
        entry.expose_provenance(); // For the kernel.
        entry.cast()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word().load(Relaxed);
        write!(f, "Token({word:#x}, generation {})", self.generation.load(Relaxed))
    }
}

/// A token on the robust list of the thread that made this. Dropped, it is free again.
///
/// # Signals and forks
/// In a child of fork it does nothing, for the token is the parent's.
#[derive(Debug)]
pub struct Registration {
    token: NonNull<Token>,
    list: List,
    generation: u32,
    process: Option<u32>,
    /// The list is the thread's.
    of_thread: PhantomData<*const ()>,
}

impl Registration {
    /// The generation of the token while this registration owns it.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether the calling process is the one that made this registration, and not a child of fork.
    #[inline]
    #[must_use]
    pub fn is_of_this_process(&self) -> bool {
        self.process == process_generation()
    }

    /// Names the word that the thread is about to acquire or release; see the module. One word at a
    /// time: `None` ends it.
    #[inline]
    pub fn set_pending(&self, word: Option<&Futex<Shared>>) {
        self.list.set_pending(word.map(|word| core::ptr::from_ref(word).expose_provenance()));
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.is_of_this_process() || super::sync::is_abandoned() {
            return;
        }
        // SAFETY: `claim`'s caller keeps the token mapped until now.
        let token = unsafe { self.token.as_ref() };
        self.list.set_pending(Some(token.address()));
        // SAFETY: `claim` has put the entry there, in this thread, and it is mapped.
        //
        // If another process has broken the list, the kernel may still find the token there. It
        // writes to it only while it holds this thread's id.
        let _ = unsafe { self.list.remove(token.entry()) };
        token.leave(self.list);
    }
}
