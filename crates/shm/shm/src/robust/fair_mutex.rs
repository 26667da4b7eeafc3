//! [`FairMutex`]: a robust mutex that its waiters get in the order of their arrival.
//!
//! # Properties
//! - Exclusion; what a holder did, also one that died, happens before the next acquisition returns.
//! - A thread that finds the mutex held gets it after those that came before it, and before those
//!   that came later. "Before" is the order in which they take the queue lock.
//! - What the queue promises for deaths. The next acquisition after the death of a
//!   holder in its critical section says so.
//!
//! # State
//! The word, beside the `Queue`:
//!
//! | part | meaning |
//! |---|---|
//! | the holder | its slot and generation; all zero if the mutex is free |
//! | `WAITERS` | a thread may wait in the queue: the holder releases under the queue lock |
//! | `CLEAN` | the holder is outside of its critical section: the mutex may be granted |
//!
//! | transition | by | label |
//! |---|---|---|
//! | free to the holder | an arriving thread | (acquire) |
//! | the holder to free | the holder, if there is no `WAITERS` | (free) |
//! | `WAITERS` set | an arriving thread with the queue lock, before its request is in the queue | (mark waiters) |
//! | `CLEAN` set | the holder whose (free) has failed; then it takes the queue lock | (leave) |
//! | `CLEAN` set, and `died` before it | a thread with the queue lock that finds the holder dead | (bury) |
//! | a holder with `CLEAN` to another one with `WAITERS` | a thread with the queue lock, for a request | (grant) |
//! | the holder with `CLEAN` to free | the holder after (leave), if no thread waits | (settle) |
//!
//! # Invariants
//! 1. While a request waits, the word has `WAITERS` or `CLEAN`. So no thread makes (acquire) or
//!    (free) then.
//! 2. `died` is set from (bury) to the next acquisition, which clears it and tells its caller. If
//!    that thread dies before, (bury) sets it again.
//! 3. A word with `CLEAN` is granted by the next thread that has the queue lock. Its holder takes
//!    that lock after (leave). If the holder dies first, the head waiter does, which watches it.
//!
//! # Ordering
//! (acquire) and (grant) acquire, (free) and (leave) release. A dead holder made no release: the
//! thread that makes (bury) has acquired what the kernel's full barrier released. The queue lock
//! orders (bury), (grant) and the looks at a holder.
//!
//! (acquire) without the queue lock also releases, and a thread that asks whether a holder lives
//! has read the word with Acquire. So it sees the holder's slot as the holder has claimed it, and
//! not as it was before.

use crate::robust::RawRobust;
use crate::robust::mutex::{Acquired, Mutex, Refused};
use crate::robust::queue::{Patience, Queue, Reap, Rule};
use crate::slots::{Member, Owner};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Shared, futex};

const FREE: u32 = 0;
const WAITERS: u32 = 1 << 31;
pub(crate) const CLEAN: u32 = 1 << 28;

/// Mutual exclusion around a `T` between processes, in the order of arrival: if a holder dies, the
/// waiter that is next gets the mutex, and is told. 28 bytes beside the data.
///
/// Its methods, errors and guards are those of [`Mutex`].
///
/// # Fairness
/// First in, first out. An arriving thread takes a free mutex only if no thread waits for it. A
/// waiter that dies or times out loses its place.
///
/// # Blocking
/// Uncontended, an acquisition is one compare-exchange, and so is a release. Otherwise the caller
/// takes a lock of the queue for a short time. It spins for some microseconds if it is the first.
/// Then it sleeps in the kernel (`futex_waitv`) until it is granted the mutex or a thread dies that
/// it watches. It looks again each 200 ms. A release hands the mutex to the first waiter: with more
/// threads than processors each acquisition waits for a switch of threads. [`Mutex`] has no such
/// wait.
///
/// # Process-shared
/// As [`Mutex`].
///
/// # Signals and forks
/// As [`Mutex`].
///
/// # Examples
/// ```
/// use ulocks_shm::{FairMutex, Region};
///
/// let region = Region::<FairMutex<u64>>::options().anonymous()?;
/// region.with_member(|me| *region.lock(me).expect("no holder has died") += 1)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type FairMutex<T, P = Shared> = Mutex<T, RawFairMutex<P>>;

/// The raw mutex: 24 bytes; all zero is unlocked.
#[derive(Debug)]
#[repr(C)]
pub struct RawFairMutex<P: Policy<Scope = futex::Global> = Shared> {
    word: AtomicU32,
    /// Whether a holder died, and no later holder knows of it yet.
    died: AtomicU32,
    queue: Queue<P>,
}

impl<P: Policy<Scope = futex::Global>> RawFairMutex<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { word: AtomicU32::new(FREE), died: AtomicU32::new(0), queue: Queue::new() }
        }
    }

    /// How many threads wait, at the moment of the look.
    #[must_use]
    pub fn waiters(&self, me: &Member<'_>) -> usize {
        self.queue.waiters(me)
    }

    #[inline]
    fn acquire(&self, me: &Member<'_>, patience: Patience) -> Result<Acquired, Refused> {
        me.check_process();
        // (acquire), without the queue lock
        if self.word.compare_exchange(FREE, me.owner().bits(), AcqRel, Relaxed).is_err() {
            if Owner::of(self.word.load(Relaxed)) == Some(me.owner()) {
                return Err(Refused::Deadlock);
            }
            self.queue.acquire(me, 0, self, patience)?;
        }
        me.count(1);
        if self.died.load(Relaxed) == 0 {
            return Ok(Acquired::Clean);
        }
        self.died.store(0, Relaxed); // invariant 2
        Ok(Acquired::OwnerDied)
    }

    #[inline]
    fn release(&self, me: &Member<'_>) {
        me.check_process();
        // (free)
        if self.word.compare_exchange(me.owner().bits(), FREE, Release, Relaxed).is_err() {
            self.hand_over(me);
        }
        me.count(-1);
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&self, me: &Member<'_>) {
        self.word.fetch_or(CLEAN, Release); // (leave)
        // If the queue is corrupt, a later thread may still take the clean mutex.
        if let Ok(how) = self.queue.take(me) {
            let mut section = self.queue.section(me, self, how);
            if Owner::of(self.word.load(Relaxed)) == Some(me.owner()) {
                section.pass_on();
            } else {
                // Another thread has granted the mutex since: the head does not watch this thread.
                section.settle(Reap::Nothing);
            }
            let mine = me.owner().bits() | CLEAN | WAITERS;
            let _ = self.word.compare_exchange(mine, FREE, Relaxed, Relaxed); // (settle)
        }
    }
}

ulocks_core::initial!([P: Policy<Scope = futex::Global>] RawFairMutex<P> = Self::new());

// SAFETY: exclusion is the word's: (acquire) and (grant) make one holder, and only (free),
// (settle), and a grant after (leave) or (bury) end that. The fields are atomics; all zero is
// unlocked.
unsafe impl<P: Policy<Scope = futex::Global>> RawRobust for RawFairMutex<P> {
    const NAME: &'static str = "shm::FairMutex";

    unsafe fn lock(&self, me: &Member<'_>) -> Result<Acquired, Refused> {
        self.acquire(me, Patience::Forever)
    }

    unsafe fn lock_until(&self, me: &Member<'_>, deadline: Deadline) -> Result<Acquired, Refused> {
        self.acquire(me, Patience::Until(deadline))
    }

    unsafe fn try_lock(&self, me: &Member<'_>) -> Result<Acquired, Refused> {
        self.acquire(me, Patience::Never)
    }

    unsafe fn unlock(&self, me: &Member<'_>) {
        self.release(me);
    }

    fn is_locked(&self) -> bool {
        let word = self.word.load(Relaxed);
        word != FREE && word & CLEAN == 0
    }

    fn reset(&self) -> bool {
        let was = self.word.swap(FREE, Relaxed);
        let died = self.died.swap(0, Relaxed) != 0;
        self.queue.reset();
        died || (was != FREE && was & CLEAN == 0)
    }
}

impl<P: Policy<Scope = futex::Global>> Rule for RawFairMutex<P> {
    /// (acquire), (grant) or (mark waiters).
    fn grant(&self, owner: Owner, _want: u32) -> bool {
        let mut seen = self.word.load(Relaxed);
        loop {
            let next = match seen {
                FREE => owner.bits(),
                _ if seen & CLEAN != 0 => owner.bits() | WAITERS,
                _ if Owner::of(seen) == Some(owner) => return true,
                _ if seen & WAITERS != 0 => return false,
                _ => seen | WAITERS,
            };
            match self.word.compare_exchange(seen, next, Acquire, Relaxed) {
                Ok(_) => seen = next,
                Err(now) => seen = now,
            }
        }
    }

    fn holders(&self, each: &mut dyn FnMut(Owner)) {
        if let Some(owner) = Owner::of(self.word.load(Acquire)) {
            each(owner);
        }
    }

    fn corrupt(&self) -> Option<u32> {
        Some(self.word.load(Relaxed)).filter(|word| *word != FREE && Owner::of(*word).is_none())
    }

    fn is_held_only_by(&self, owner: Owner) -> bool {
        Owner::of(self.word.load(Relaxed)) == Some(owner)
    }

    /// (bury).
    fn reap(&self, gone: Owner) {
        let word = self.word.load(Relaxed);
        if Owner::of(word) == Some(gone) && word & CLEAN == 0 {
            self.died.store(1, Relaxed);
            // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
            self.word.fetch_or(CLEAN, Release);
        }
    }
}

#[cfg(all(test, regions, not(miri)))]
mod tests {
    use super::*;
    use crate::slots::Slot;

    #[test]
    fn a_word_that_names_no_slot_is_corrupt() {
        let mutex = RawFairMutex::<Shared>::new();
        let slots = [Slot::new()];
        // SAFETY: the slots outlive the member.
        let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
        for word in [Owner::OWNED | 1, Owner::OWNED | 4_095, 1, WAITERS] {
            mutex.word.store(word, Relaxed);
            // SAFETY: the only member.
            let refused = unsafe { mutex.lock(&me) };
            assert!(matches!(refused, Err(Refused::Corrupt(_))), "{word:#x}: {refused:?}");
        }
        mutex.word.store(FREE, Relaxed);
        // SAFETY: the only member, and it holds the mutex once it has acquired.
        unsafe {
            assert_eq!(mutex.lock(&me), Ok(Acquired::Clean));
            assert_eq!(mutex.lock(&me), Err(Refused::Deadlock));
            mutex.unlock(&me);
        }
        assert!(!mutex.is_locked());
    }

    #[test]
    fn only_a_death_in_a_critical_section_is_told() {
        for (flags, how) in [(0, Acquired::OwnerDied), (CLEAN, Acquired::Clean)] {
            let (slots, mutex) = ([Slot::new(), Slot::new()], RawFairMutex::<Shared>::new());
            // SAFETY: the slots outlive both members.
            let gone = unsafe { Member::join(&slots, 0..0) }.unwrap().owner().bits();
            mutex.word.store(gone | flags, Relaxed);
            // SAFETY: as above.
            let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
            // SAFETY: all members are of one table; the mutex is acquired before it is released.
            unsafe {
                assert_eq!(mutex.lock(&me), Ok(how));
                mutex.unlock(&me);
                assert_eq!(mutex.lock(&me), Ok(Acquired::Clean), "it is told once");
                mutex.unlock(&me);
            }
            assert_eq!(mutex.word.load(Relaxed), FREE);
        }
    }
}
