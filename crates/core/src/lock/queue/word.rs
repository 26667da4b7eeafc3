//! The word of a mutex whose waiters queue: the newest waiter, and six bits.

use super::Node;
use core::fmt;
use core::ptr;

/// A value of the word.
///
/// | part | meaning | set by | cleared by | how stale |
/// |---|---|---|---|---|
/// | `LOCKED` | a thread holds the mutex, or owns it for the oldest waiter | an arriving thread, the candidate, the queue-lock holder | the holder; the queue-lock holder, if the queue is empty | never |
/// | `QUEUE_LOCKED` | a thread works on the queue: the *queue-lock holder* | a releasing thread, a waiter that leaves, the candidate that stands back | the queue-lock holder | never |
/// | `LEAVERS` | a waiter whose time is up asks the queue-lock holder to detach it | that waiter, while `QUEUE_LOCKED` is set | the queue-lock holder | may be set though that waiter has been answered; illegal to clear while a waiter asks |
/// | `AWAKE` | barging: there is a candidate, which looks at the word before it sleeps | the candidate that comes forward; the queue-lock holder that chooses it | the candidate | never: the candidate may not run yet, but it will |
/// | `DUE` | barging: no arriving thread may take the mutex. It is for the candidate, or else for the oldest waiter | the candidate, when the bound has passed | the candidate; the queue-lock holder, with a hand-over or for an empty queue | may be set though the waiter that set it has left; illegal to clear while it waits |
/// | `SINGLE` | in order: the newest node is the oldest, and no queue-lock holder has seen it | an arriving thread, with an empty queue that is not locked | each thread that queues, or locks the queue; (hand over one) | may be clear though there is one node |
/// | `NOTED` | barging, the same bit: a release came while the queue was locked | the holder | the queue-lock holder | may be set though there is no waiter |
/// | the rest | the newest node, null if the queue is empty | an arriving thread | the queue-lock holder | never |
///
/// Zero is a free mutex with an empty queue. `QUEUE_LOCKED` alone is one too: a waiter that has
/// left is about to release the queue lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) *mut Node);

pub(super) const LOCKED: usize = 1;
const QUEUE_LOCKED: usize = 2;
const LEAVERS: usize = 4;
const AWAKE: usize = 8;
pub(super) const DUE: usize = 16;
const SINGLE: usize = 32;
/// The same bit: a lock is in order or not.
const NOTED: usize = SINGLE;
const BITS: usize = LOCKED | QUEUE_LOCKED | LEAVERS | AWAKE | DUE | SINGLE;
const _: () = assert!(align_of::<Node>() > BITS, "the bits are those that the address of a node leaves free");

impl State {
    /// Free, with an empty queue.
    pub(super) const FREE: Self = Self(ptr::null_mut());
    /// Held, with an empty queue.
    pub(super) const HELD: Self = Self(ptr::without_provenance_mut(LOCKED));

    fn has(self, bit: usize) -> bool {
        self.0.addr() & bit != 0
    }

    fn with(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address | bits))
    }

    fn without(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address & !bits))
    }

    /// Whether a thread holds the mutex, or owns it for the oldest waiter.
    pub(super) fn is_locked(self) -> bool {
        self.has(LOCKED)
    }

    /// Whether a thread holds the queue lock.
    pub(super) fn is_queue_locked(self) -> bool {
        self.has(QUEUE_LOCKED)
    }

    /// Whether a waiter asks to be detached.
    pub(super) fn has_leavers(self) -> bool {
        self.has(LEAVERS)
    }

    /// The newest node, or null. A guess may have written a pointer that was made from a node which
    /// had its place before, so this one is made anew. (Miri guesses nothing, and sees more so.)
    pub(super) fn newest(self) -> *const Node {
        let node = self.without(BITS).0;
        if cfg!(miri) { node } else { ptr::with_exposed_provenance(node.addr()) }
    }

    /// The same with `node` as the newest; null for an empty queue. Its provenance is exposed, for
    /// [`State::newest`].
    pub(super) fn with_newest(self, node: *const Node) -> Self {
        node.expose_provenance();
        Self(node.cast_mut().map_addr(|address| address | (self.0.addr() & BITS)))
    }

    /// The address and the bits.
    pub(super) fn bits(self) -> usize {
        self.0.addr()
    }

    /// The word of these bits and this address.
    pub(super) fn guessed(bits: usize) -> Self {
        Self(ptr::without_provenance_mut(bits))
    }

    pub(super) fn locked(self) -> Self {
        self.with(LOCKED)
    }

    pub(super) fn unlocked(self) -> Self {
        self.without(LOCKED)
    }

    pub(super) fn queue_locked(self) -> Self {
        self.with(QUEUE_LOCKED).not_single()
    }

    pub(super) fn queue_unlocked(self) -> Self {
        self.without(QUEUE_LOCKED)
    }

    /// Whether a candidate is awake.
    pub(super) fn is_awake(self) -> bool {
        self.has(AWAKE)
    }

    /// Whether the next hand-over is owed to the oldest waiter.
    pub(super) fn is_due(self) -> bool {
        self.has(DUE)
    }

    /// Barging: whether a release came while the queue was locked, and nobody was awake.
    pub(super) fn is_noted(self) -> bool {
        self.has(NOTED)
    }

    pub(super) fn noted(self) -> Self {
        self.with(NOTED)
    }

    pub(super) fn not_noted(self) -> Self {
        self.without(NOTED)
    }

    /// In order: whether the newest node is the oldest, for certain.
    pub(super) fn is_single(self) -> bool {
        self.has(SINGLE)
    }

    pub(super) fn single(self) -> Self {
        self.with(SINGLE)
    }

    pub(super) fn not_single(self) -> Self {
        self.without(SINGLE)
    }

    /// Whether the queue has a waiter.
    pub(super) fn has_waiters(self) -> bool {
        !self.newest().is_null()
    }

    pub(super) fn awake(self) -> Self {
        self.with(AWAKE)
    }

    pub(super) fn not_awake(self) -> Self {
        self.without(AWAKE)
    }

    pub(super) fn not_due(self) -> Self {
        self.without(DUE)
    }

    pub(super) fn with_leavers(self) -> Self {
        self.with(LEAVERS)
    }

    pub(super) fn without_leavers(self) -> Self {
        self.without(LEAVERS)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FREE {
            return f.write_str("FREE");
        }
        let waiters = !self.newest().is_null();
        let parts = [
            (self.is_locked(), "LOCKED"),
            (self.is_queue_locked(), "QUEUE_LOCKED"),
            (self.has_leavers(), "LEAVERS"),
            (self.is_awake(), "AWAKE"),
            (self.is_due(), "DUE"),
            (self.has(SINGLE), "SINGLE/NOTED"),
            (waiters, "WAITERS"),
        ];
        let mut separator = "";
        for (_, name) in parts.into_iter().filter(|&(set, _)| set) {
            write!(f, "{separator}{name}")?;
            separator = "|";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::queue::Cpu;

    #[test]
    fn bits_and_address_do_not_meet() {
        let waiter = Node::new(Cpu::UNKNOWN, 1);
        let word = State::HELD.with_newest(&raw const waiter).queue_locked().with_leavers();
        assert!(word.is_locked() && word.is_queue_locked() && word.has_leavers());
        assert_eq!(word.newest(), &raw const waiter);
        assert_eq!(word.unlocked().queue_unlocked().without_leavers().0.cast_const(), &raw const waiter);
        assert_eq!(word.with_newest(ptr::null()).queue_unlocked().without_leavers(), State::HELD);
        assert_eq!(State::HELD.unlocked(), State::FREE);
        let free = State::FREE.with_newest(&raw const waiter);
        assert!(!free.is_locked() && !free.is_queue_locked() && !free.has_leavers());
    }

    #[test]
    fn debug_names_the_parts() {
        let waiter = Node::new(Cpu::UNKNOWN, 1);
        assert_eq!(format!("{:?}", State::FREE), "FREE");
        assert_eq!(
            format!("{:?}", State::HELD.queue_locked().with_newest(&raw const waiter)),
            "LOCKED|QUEUE_LOCKED|WAITERS"
        );
    }
}
