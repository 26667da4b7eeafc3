//! Tokens: words in shared memory that the kernel marks when their thread dies.
//!
//! A thread that takes part in robust locks puts one [`Token`] on its *robust list*, once. If the
//! thread dies by whatever means (a signal, an exit, a crash, an `execve` of the main thread), the
//! kernel walks the list, sets [`OWNER_DIED`] in the token, and wakes one of the threads that sleep
//! on it. An `execve` of another thread is the exception: the kernel gives the caller the main
//! thread's id before it walks the list. It then takes the caller's tokens for another thread's,
//! and they stay claimed. So such a thread leaves before.
//!
//! A lock names its owner by the token's place in a table, and never by a thread id. So a number
//! that the kernel uses again, or another namespace of thread ids, fools no lock.
//!
//! Beside the list, a thread can name one word as *pending* ([`Registration::set_pending`]). If it
//! dies then, the kernel wakes one sleeper of that word, provided that the word names no owner: its
//! thread-id bits ([`TID_MASK`]) are zero. So a wake-up is not lost if the thread dies between a
//! release and its wake-up, or after it was woken and before it has acquired. The word must never
//! hold a thread id. Then the kernel never writes to it. Its memory serves no other purpose while
//! it is pending.
//!
//! A word may stay pending while the thread holds its lock: then nobody need watch the holder. A
//! thread that names another word wakes a sleeper of the former one first. If it still holds that
//! lock, the sleeper watches it from then on. The C library knows nothing of this: a robust pthread
//! mutex that the thread acquires or releases ends what is pending in silence. A child of fork may
//! inherit it: then its death, or the next word that it names, wakes a sleeper in vain.
//!
//! # State of a token's word
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | thread id | claimed by that thread, which lives |
//! | thread id, `WAITERS` | the same, and threads may sleep on the word |
//! | thread id, `OWNER_DIED`, maybe `WAITERS` | *between owners*: that thread claims it or leaves it |
//! | `OWNER_DIED`, maybe `WAITERS` | claimed by a thread that has died |
//!
//! | transition | by | label |
//! |---|---|---|
//! | free or died to between owners, `WAITERS` kept | a thread that claims the token, which has it pending | (claim) |
//! | sleepers woken, the generation increases | that thread | (renew) |
//! | between owners to the thread id | that thread | (own) |
//! | `WAITERS` set | a thread that is about to sleep | (sleep) |
//! | `OWNER_DIED` set, thread id cleared | the kernel | (die) |
//! | the thread id to between owners; sleepers woken | the thread that leaves, which has it pending | (leave) |
//! | between owners to free | that thread | (free) |
//!
//! # Invariants
//! 1. While the word has a thread id, that thread owns the token. It alone changes the generation
//!    and the namespace, and nobody else claims the token.
//! 2. A thread that sleeps on the word has read the generation after its own (sleep), which needs a
//!    living owner. If that owner leaves or dies before the sleep, the word is another one, and the
//!    sleep does not begin; unless the same thread has claimed the token again, and another has
//!    slept on it. Then it sleeps on that owner's token, and passes a wake-up on. If it does so
//!    later, (leave) wakes all sleepers, and the kernel one, which wakes the next. If (sleep) comes
//!    after the next (own), it has acquired what (own) released, and the thread sees the new
//!    generation.
//! 3. The kernel finds the token at each moment at which the word has a thread id: it is pending,
//!    or on the list.
//! 4. Only a thread that claims or owns the token has it pending or on its list. A claim that fails
//!    withdraws it at once.
//!
//! # Deaths
//! The thread that claims, or leaves, dies between two steps. In each case the next claim succeeds,
//! and no lock names the thread.
//!
//! | after | the kernel finds | and leaves |
//! |---|---|---|
//! | it named the token as pending, or its (claim) failed | a word without a thread id, or with another's | the word as it is; it may wake one sleeper, which looks again |
//! | (claim), or (renew) | its own id, pending | `OWNER_DIED` and `WAITERS`; one sleeper of the owner before is woken, which wakes the next |
//! | (own), the entry appended, nothing pending any more | its own id, pending or on the list | the same |
//! | it named the token as pending, the entry removed | its own id, on the list or pending | the same |
//! | (leave), the sleepers woken | its own id, pending | the same |
//! | (free) | no thread id, pending | free; all sleepers are awake |
//!
//! The two rules of the kernels for a pending word (6.18 and 7.2, both of which the models know)
//! differ where the word names another thread: then Linux 7.2 may wake a sleeper in vain, and no
//! kernel writes.
//!
//! # Namespaces
//! The kernel compares thread ids of the dying thread's own namespace. Two threads in two PID
//! namespaces may have one id. If one of them died while it has the token pending, and the other
//! owns it by then, the kernel would mark a living owner. So a token keeps the namespace of its
//! last claim, and a thread of another one takes it only if it finds no other (`claim_foreign`).
//! What is left is this: one of the threads has found no other free slot, both claim this one at
//! the same time, and one of them is killed between its failed (claim) and the next instructions,
//! or between (free) and those. Threads that see no `/proc` all count as of one namespace,
//! whichever theirs are. So give containers that share a region a `/proc`.
//!
//! # Ordering
//! (die) is a full barrier, and (leave) is Release. So a thread that finds [`OWNER_DIED`] with
//! Acquire sees all that the owner did. (claim) acquires that too, and (renew) releases it: so does
//! a thread see it that finds a new generation. (own) is Release, (sleep) is Acquire: invariant 2.
//! (free) releases, (claim) acquires.
//!
//! # Sources
//! Documentation/locking/robust-futexes.rst and robust-futex-ABI.rst in the kernel. The design with
//! tokens is this project's. The list is the C library's own, so its robust mutexes still work.

pub use super::types::robust::ListError;

use super::futex::{Futex, FutexKey, Global, OWNER_DIED, TID_MASK, WAITERS};
use super::sync::Ordering::{Acquire, Relaxed, Release};
use super::sync::{AtomicPtr, AtomicU32};
use super::types::robust::WORD;
use super::world::robust::List;
use super::world::{only_cpu, pid_namespace, this_process, thread_id};
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
    words: [Futex<Global>; 2],
    generation: AtomicU32,
    /// The process that has claimed it: for people, not for the protocol.
    process: AtomicU32,
    /// The PID namespace of the thread that has claimed it last; 0 if none has.
    namespace: AtomicU32,
    /// The CPU that the thread was bound to when it claimed the token, plus one; 0 if it was bound
    /// to none, or to several.
    cpu: AtomicU32,
    /// The C library writes here and never reads.
    previous: AtomicPtr<()>,
    next: AtomicPtr<()>,
}

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
                namespace: AtomicU32::new(0),
                cpu: AtomicU32::new(0),
                previous: AtomicPtr::new(core::ptr::null_mut()),
                next: AtomicPtr::new(core::ptr::null_mut()),
            }
        }
    }

    /// The word.
    #[inline]
    pub fn word(&self) -> &Futex<Global> {
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

    /// Whether the thread that has claimed the token was bound to one CPU then.
    #[inline]
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.cpu.load(Relaxed) != 0
    }

    /// Whether the two threads that have claimed the tokens were bound to one and the same CPU
    /// then: if one of them polls, the other does not run.
    #[inline]
    #[must_use]
    pub fn shares_its_cpu(&self, other: &Self) -> bool {
        self.is_bound() && self.cpu.load(Relaxed) == other.cpu.load(Relaxed)
    }

    /// Whether the thread that claimed the token lives; `word` is the token's word.
    #[inline]
    #[must_use]
    pub const fn is_alive(word: u32) -> bool {
        word & TID_MASK != 0 && word & OWNER_DIED == 0
    }

    /// (sleep): marks the word for a sleeper. Returns the marked word, or `None` if the thread that
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

    /// Whether a thread claims it or leaves it, by that thread's own number; `word` is the token's
    /// word. The thread lives, or the kernel would have marked the word.
    #[must_use]
    pub const fn between_owners(word: u32) -> Option<u32> {
        if word & TID_MASK != 0 && word & OWNER_DIED != 0 { Some(word & TID_MASK) } else { None }
    }

    /// Whether a thread can claim it; `word` is the token's word.
    #[must_use]
    pub const fn is_claimable(word: u32) -> bool {
        word & TID_MASK == 0
    }

    /// Claims the token for the calling thread, and puts it on the thread's robust list. `None` if
    /// it is another living thread's, or was last used in another PID namespace.
    ///
    /// # Errors
    /// If the thread has no robust list that this crate can use.
    ///
    /// # Safety
    /// The token stays mapped, at this address, until the registration is dropped or the thread has
    /// ended.
    pub unsafe fn claim(&self) -> Result<Option<Registration>, ListError> {
        // SAFETY: the caller's promise.
        unsafe { self.claim_in(false) }
    }

    /// The same of a token that was last used in another PID namespace: only if
    /// [`claim`](Self::claim) has found none; see the module.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    ///
    /// # Safety
    /// As [`claim`](Self::claim).
    pub unsafe fn claim_foreign(&self) -> Result<Option<Registration>, ListError> {
        // SAFETY: the caller's promise.
        unsafe { self.claim_in(true) }
    }

    unsafe fn claim_in(&self, foreign: bool) -> Result<Option<Registration>, ListError> {
        let seen = self.word().load(Relaxed);
        if !Self::is_claimable(seen) || !self.may_claim(foreign) {
            return Ok(None);
        }
        let list = List::current()?;
        if list.word_index() != WORD {
            return Err(ListError::Missing);
        }
        let (thread, process) = (thread_id(), std::process::id());
        name(list, self.address()); // invariant 3
        // (claim)
        let between = thread | OWNER_DIED | (seen & WAITERS);
        if self.word().compare_exchange(seen, between, Acquire, Relaxed).is_err() {
            list.set_pending(None); // invariant 4
            return Ok(None);
        }
        self.namespace.store(pid_namespace(), Relaxed);
        self.cpu.store(only_cpu().map_or(0, |cpu| cpu + 1), Relaxed);
        // Those that the kernel has woken none of: the next (own) clears their mark.
        if seen & WAITERS != 0 {
            self.word().key().wake(u32::MAX);
        }
        let generation = self.generation.load(Relaxed).wrapping_add(1);
        self.generation.store(generation, Release); // (renew)
        self.process.store(process, Relaxed);
        self.word().store(thread, Release); // (own)
        // SAFETY: an entry is a pointer behind another one, both of them this token's; the caller
        // keeps it mapped.
        let appended = unsafe { list.append(self.entry()) };
        if let Err(error) = appended {
            self.leave(list);
            return Err(error);
        }
        list.set_pending(None);
        Ok(Some(Registration {
            token: NonNull::from(self),
            list,
            generation,
            process: this_process(),
            of_thread: PhantomData,
        }))
    }

    /// Whether a thread of the caller's namespace may claim the token. One that nobody has claimed
    /// is of that namespace from now on; the namespace of another is its owner's to change.
    fn may_claim(&self, foreign: bool) -> bool {
        let mine = pid_namespace();
        let last = self.namespace.compare_exchange(0, mine, Relaxed, Relaxed).unwrap_or_else(|last| last);
        foreign || last == 0 || last == mine
    }

    /// (leave) and (free), by the owner, whose list does not have the token any more, and which has
    /// it pending.
    fn leave(&self, list: List) {
        let was = self.word().fetch_or(OWNER_DIED, Release); // (leave)
        if was & WAITERS != 0 {
            self.word().key().wake(u32::MAX);
        }
        self.word().store(0, Release); // (free)
        list.set_pending(None);
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
    process: u64,
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
        self.process == this_process()
    }

    /// Names the word that the thread is about to acquire or release, or whose lock it keeps; see
    /// the module.
    #[inline]
    pub fn set_pending(&self, word: &Futex<Global>) {
        name(self.list, core::ptr::from_ref(word).expose_provenance());
    }

    /// Ends that, if it is this word that is pending.
    #[inline]
    pub fn end_pending(&self, word: &Futex<Global>) {
        if self.list.pending() == Some(core::ptr::from_ref(word).addr()) {
            self.list.set_pending(None);
        }
    }
}

/// Names the word at `address` as pending. If another one is, it may be that of a lock which the
/// thread holds: one of its sleepers is woken, and watches the thread.
#[inline]
fn name(list: List, address: usize) {
    if let Some(other) = list.pending().filter(|&other| other != address) {
        let other = core::ptr::with_exposed_provenance::<Futex<Global>>(other);
        FutexKey::of(other).wake(1);
    }
    list.set_pending(Some(address));
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.is_of_this_process() || super::sync::is_abandoned() {
            return;
        }
        // SAFETY: `claim`'s caller keeps the token mapped until now.
        let token = unsafe { self.token.as_ref() };
        name(self.list, token.address());
        // SAFETY: `claim` has put the entry there, in this thread, and it is mapped.
        //
        // If another process has broken the list, the kernel may still find the token there. It
        // writes to it only while it holds this thread's id.
        let _ = unsafe { self.list.remove(token.entry()) };
        token.leave(self.list);
    }
}
