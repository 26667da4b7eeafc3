//! The table of the threads that take part in the robust locks of a region.
//!
//! A thread that uses robust locks *joins*: it claims a slot, whose token the kernel marks when the
//! thread dies ([`ulocks_core::robust`]). A lock word names its owner by an `Owner`: the number
//! of the slot, and how often the slot was claimed, modulo 2^16. So a lock whose owner is gone is
//! recognised even if up to 65,535 threads have claimed the slot since. That a name which a lock
//! still has is not given again is for the caller of [`Member::join`] to see to: a region does
//! (`region/names.rs`).
//!
//! # Invariants
//! 1. An owner is alive if and only if the slot's token is alive and has the owner's generation.
//! 2. A thread whose slot is in a lock word has that lock, or had it when it died or left.
//! 3. A thread that leaves with a lock is to all others one that died with it: what it did is
//!    visible to a thread that finds its slot free or claimed anew. By then nothing in its process
//!    uses what the lock protects: the contract of [`Member::join`].
//! 4. The request of a slot is that of its thread, or of a thread that is gone and whose name is
//!    another one. A thread that joins withdraws the request that it finds (withdraw): it would be
//!    its own when the name comes round.

use core::cell::Cell;
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use ulocks_core::futex::{Futex, Global, WAITERS};
use ulocks_core::robust::{ListError, Registration, Token};
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::sync::{AtomicU32, AtomicU64};

/// A place in the table. All-zero memory is a free slot.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot {
    pub(crate) token: Token,
    pub(crate) request: Request,
}

/// What the thread of a slot waits for: see `robust::queue`. A thread waits for one lock at a time.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Request {
    /// The thread as an owner, and how far its request is.
    pub(crate) word: Futex<Global>,
    /// What it wants of the lock.
    pub(crate) want: AtomicU32,
    /// The lock: the offset of its queue in the region.
    pub(crate) lock: AtomicU64,
    /// Its place in the queue.
    pub(crate) place: AtomicU64,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Slot>() == 64);

impl Slot {
    ulocks_core::const_fn! {
        /// A free slot.
        #[allow(clippy::new_without_default)]
        #[inline]
        pub fn new() -> Self {
            Self {
                token: Token::new(),
                request: Request {
                    word: Futex::new(0),
                    want: AtomicU32::new(0),
                    lock: AtomicU64::new(0),
                    place: AtomicU64::new(0),
                },
            }
        }
    }

    /// Whether a living thread has it, claims it or leaves it, at the moment of the look. What that
    /// thread did need not be visible to the caller.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        !Token::is_claimable(self.token.word().load(Relaxed))
    }
}

/// After so long a thread that sleeps for a robust lock looks again.
///
/// Before Linux 5.16 there is no `futex_waitv`, so a thread cannot sleep for the lock and for the
/// death of its holder at once. There a waiter notices a death only when it looks again.
pub const RECHECK: Duration = Duration::from_millis(200);

/// The greatest number of slots in a table.
pub const MOST_SLOTS: usize = 1 << Owner::SLOT_BITS;

/// Who owns a lock: a slot, and the generation of its token, modulo 2^16.
///
/// | bits | meaning |
/// |---|---|
/// | 0 to 11 | the slot |
/// | 12 to 27 | the generation |
/// | 29 | set, so that no owner looks like a thread id |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    const SLOT_BITS: u32 = 12;
    const GENERATION_BITS: u32 = 16;
    /// In a word that names an owner. A thread id is less.
    pub(crate) const OWNED: u32 = 1 << 29;
    /// The bits of a word that name an owner.
    pub(crate) const MASK: u32 = Self::OWNED | ((1 << (Self::SLOT_BITS + Self::GENERATION_BITS)) - 1);

    #[inline]
    fn new(slot: usize, generation: u32) -> Self {
        let generation = generation & ((1 << Self::GENERATION_BITS) - 1);
        Self(Self::OWNED | generation << Self::SLOT_BITS | slot as u32)
    }

    /// The owner that a lock's word names, if it names one.
    #[inline]
    pub(crate) fn of(word: u32) -> Option<Self> {
        (word & Self::OWNED != 0).then_some(Self(word & Self::MASK))
    }

    /// The bits that name it.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn slot(self) -> usize {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)) as usize
    }

    /// Modulo 2^16.
    #[cfg(regions)]
    fn generation(self) -> u16 {
        (self.0 >> Self::SLOT_BITS) as u16
    }

    #[inline]
    pub(crate) fn is_of(self, generation: u32) -> bool {
        self == Self::new(self.slot(), generation)
    }
}

/// The generation, modulo 2^16, of the thread of `slot` that `word` names, if it does.
#[cfg(regions)]
pub(crate) fn generation_of(word: u32, slot: usize) -> Option<u16> {
    Owner::of(word).filter(|owner| owner.slot() == slot).map(Owner::generation)
}

/// Why a thread could not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// So many threads take part, and there are no more slots.
    Full(usize),
    /// The thread has no robust list that can be used.
    List(ListError),
    /// The file of the region could not be read, to see whether locks still name a dead thread.
    Unread(std::io::ErrorKind),
    /// Each of the 65,536 names of the slot looks as if a lock still named a dead thread by it.
    Named {
        /// The slot.
        slot: usize,
    },
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(slots) => {
                write!(
                    f,
                    "all {slots} slots of the region are taken by threads that live; `ulocks-region list` shows \
                     them; create it for more participants"
                )
            }
            Self::List(error) => error.fmt(f),
            Self::Unread(why) => write!(f, "the file of the region cannot be read: {why}"),
            Self::Named { slot } => write!(
                f,
                "locks, or data that looks like locks, name a dead thread by each name of slot {slot}; end all \
                 processes of the region, so that the next one resets it"
            ),
        }
    }
}

impl core::error::Error for JoinError {}

/// What an owner is, as far as the table knows.
pub(crate) enum Life<'s> {
    /// The table has no such slot: the word is corrupt.
    Unknown,
    /// The owner has died, or left without its lock.
    Gone,
    /// It lives, and the caller watches it: sleep while this word holds this value.
    Watched(&'s Futex<Global>, u32),
}

/// A thread that takes part: its slot, while it lives.
///
/// `Region::with_member` lends one to a closure. The guards of the robust locks are bound to the
/// lifetime of that loan. So safe code keeps no guard, nor a reference by it, for longer.
///
/// # Blocking
/// Joining and leaving never block.
///
/// # Signals and forks
/// A child of fork does not take part by its parent's member: its operations panic, and say so.
#[derive(Debug)]
pub struct Member<'s> {
    slots: &'s [Slot],
    /// The addresses of the region: locks elsewhere have other members.
    region: Range<usize>,
    owner: Owner,
    registration: Registration,
    held: Cell<u32>,
    recheck: Cell<Duration>,
}

impl<'s> Member<'s> {
    /// Claims a free slot for the calling thread. `region` are the addresses at which the locks of
    /// the table's members lie.
    ///
    /// # Errors
    /// If no slot is free, or if the thread has no robust list.
    ///
    /// # Panics
    /// If there are more than 4,096 slots.
    ///
    /// # Safety
    /// - The slots stay mapped, at this address, until the member is dropped or the thread has
    ///   ended; forgetting the member does not end that.
    /// - When the thread ends, nothing is used any more that a lock has lent to the member: no
    ///   guard, and no reference to the data by a guard, also not in another thread. A member that
    ///   is dropped before the thread ends sees to that, for guards borrow it. One that is leaked
    ///   does not: the kernel gives the locks to other threads.
    pub unsafe fn join(slots: &'s [Slot], region: Range<usize>) -> Result<Self, JoinError> {
        assert!(slots.len() <= MOST_SLOTS, "{} slots, but at most {MOST_SLOTS} are allowed", slots.len());
        // First those that no thread of another PID namespace has used.
        let tries = [false, true]
            .into_iter()
            .flat_map(|foreign| slots.iter().enumerate().map(move |slot| (foreign, slot)));
        for (foreign, (number, slot)) in tries {
            let claimed = match foreign {
                // SAFETY: the caller's promise.
                false => unsafe { slot.token.claim() },
                // SAFETY: as above.
                true => unsafe { slot.token.claim_foreign() },
            };
            if let Some(registration) = claimed.map_err(JoinError::List)? {
                slot.request.word.store(0, Relaxed); // (withdraw): invariant 4
                let owner = Owner::new(number, registration.generation());
                let (held, recheck) = (Cell::new(0), Cell::new(RECHECK));
                return Ok(Self { slots, region, owner, registration, held, recheck });
            }
        }
        Err(JoinError::Full(slots.len()))
    }

    /// Changes [`RECHECK`] for this thread: a test that finds a lost wake-up must not have it
    /// mended by the next look.
    #[doc(hidden)]
    pub fn set_recheck(&self, recheck: Duration) {
        self.recheck.set(recheck);
    }

    pub(crate) fn recheck(&self) -> Duration {
        self.recheck.get()
    }

    /// The number of the slot.
    #[must_use]
    #[inline]
    pub fn slot(&self) -> usize {
        self.owner.slot()
    }

    /// How often the slot was claimed.
    #[cfg(regions)]
    pub(crate) fn generation(&self) -> u32 {
        self.registration.generation()
    }

    /// The process of the thread, by its own number: for people.
    #[inline]
    pub(crate) fn process(&self) -> u32 {
        self.slots[self.owner.slot()].token.process()
    }

    /// Whether a lock lies in the member's region.
    #[doc(hidden)]
    #[must_use]
    pub fn covers<T: ?Sized>(&self, lock: *const T) -> bool {
        self.region.contains(&lock.addr())
    }

    /// Whether the caller is the thread's process, and not a child of fork.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn is_of_this_process(&self) -> bool {
        self.registration.is_of_this_process()
    }

    /// Checks that a lock lies in the member's region.
    ///
    /// # Panics
    /// If not: the lock's other users are not in this member's table.
    #[inline]
    pub(crate) fn check_region<T: ?Sized>(&self, lock: &T) {
        assert!(
            self.covers(lock),
            "the lock is not in the region that the thread has joined; join the region of the lock"
        );
    }

    /// How many robust locks the thread holds.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held.get()
    }

    /// The thread as an owner.
    ///
    /// # Panics
    /// In a child of fork.
    #[inline]
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Checks that the caller is not a child of fork, which has its parent's member.
    #[inline]
    pub(crate) fn check_process(&self) {
        assert!(
            self.is_of_this_process(),
            "a child of fork uses a robust lock by its parent's member; join in the child"
        );
    }

    #[inline]
    pub(crate) fn count(&self, locks: i32) {
        self.held.set(self.held.get().wrapping_add_signed(locks));
    }

    /// Names the word that the thread is about to acquire or release, or whose lock it keeps.
    #[inline]
    pub(crate) fn set_pending(&self, word: &Futex<Global>) {
        self.registration.set_pending(word);
    }

    /// Ends that, if it is this word that is pending.
    #[inline]
    pub(crate) fn end_pending(&self, word: &Futex<Global>) {
        self.registration.end_pending(word);
    }

    /// The table.
    #[inline]
    pub(crate) fn slots(&self) -> &'s [Slot] {
        self.slots
    }

    /// The thread's own request.
    #[inline]
    pub(crate) fn request(&self) -> &'s Request {
        &self.slots[self.owner.slot()].request
    }

    /// How far `part` of a lock is from the beginning of the region: the same in each process.
    #[inline]
    pub(crate) fn offset_of<T>(&self, part: &T) -> u64 {
        core::ptr::from_ref(part).addr().wrapping_sub(self.region.start) as u64
    }

    /// Whether `owner` is alive, at the moment of the look.
    #[inline]
    pub(crate) fn is_alive(&self, owner: Owner) -> bool {
        let Some(token) = self.token(owner) else { return false };
        Token::is_alive(token.word().load(Acquire)) && owner.is_of(token.generation())
    }

    /// Whether `owner` can go on while the calling thread polls: not if both are bound to one CPU.
    #[inline]
    pub(crate) fn may_poll_for(&self, owner: Owner) -> bool {
        let mine = &self.slots[self.owner.slot()].token;
        self.token(owner).is_none_or(|token| !token.shares_its_cpu(mine))
    }

    /// Whether another thread of the table can go on while the calling thread polls.
    pub(crate) fn may_poll_for_any(&self) -> bool {
        let mine = &self.slots[self.owner.slot()].token;
        let mut others = self.slots.iter().map(|slot| &slot.token);
        !mine.is_bound()
            || others.any(|other| Token::is_alive(other.word().load(Relaxed)) && !other.shares_its_cpu(mine))
    }

    /// Whether `owner` has died or left; not if it never was one.
    pub(crate) fn is_gone(&self, owner: Owner) -> bool {
        owner.slot() < self.slots.len() && !self.is_alive(owner)
    }

    /// The thread that has `slot`, if one has it, or one that had it before.
    pub(crate) fn owner_in(&self, slot: usize) -> Option<Owner> {
        let token = &self.slots.get(slot)?.token;
        Token::is_alive(token.word().load(Relaxed)).then(|| Owner::new(slot, token.generation()))
    }

    #[inline]
    fn token(&self, owner: Owner) -> Option<&'s Token> {
        self.slots.get(owner.slot()).map(|slot| &slot.token)
    }

    /// Whether `owner` is alive; if so, the kernel wakes a thread that sleeps on the answer when
    /// the owner dies.
    pub(crate) fn watch(&self, owner: Owner) -> Life<'s> {
        let Some(token) = self.token(owner) else { return Life::Unknown };
        let generation = token.generation();
        match owner.is_of(generation).then(|| token.watch(generation)).flatten() {
            Some(word) => Life::Watched(token.word(), word),
            None => Life::Gone,
        }
    }

    /// After a sleep on the token of `owner`, whose word was `alive`: if the owner has died, wakes
    /// the next thread that sleeps on the token, which does the same. The kernel wakes the first
    /// one, and says so (`is_told`). Whether the owner has died.
    pub(crate) fn pass_on_death(&self, owner: Owner, alive: u32, is_told: bool) -> bool {
        let Some(token) = self.token(owner) else { return false };
        // A thread that acts on the answer looks again, acquiring.
        let word = token.word().load(Relaxed);
        let has_died = is_told || word != alive;
        // Whoever owns it by now: the sleep may have begun after the same thread has claimed the
        // slot again, and taken the wake-up of its death.
        if has_died && word & WAITERS != 0 {
            token.word().key().wake(1);
        }
        has_died
    }
}

impl Drop for Member<'_> {
    /// With a drop, a member must not outlive its slots: the registration borrows nothing.
    fn drop(&mut self) {}
}
