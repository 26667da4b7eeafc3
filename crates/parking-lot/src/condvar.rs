//! A condition variable that counts exactly: a queue of waiters' nodes under a small mutex.
//!
//! # Properties
//! - A notification takes waiters out of the queue and returns how many. Each of them returns from
//!   its wait and says that it was notified, also if its deadline has passed meanwhile.
//! - *No spurious wake-ups.* A wait ends only by a notification or by its deadline.
//! - First in, first out: `notify_one` takes the waiter that has waited longest.
//! - All waiters wait with one mutex. A wait with another one is refused while there are waiters.
//! - `notify_all` makes at most one system call. The first waiter wakes the second when it has
//!   acquired the mutex, and so on. So they do not wake up all at once only to wait for the mutex.
//! - All-zero is a condition variable without waiters. Nothing is allocated.
//!
//! # State
//! | what | changed by |
//! |---|---|
//! | `lock`, the queue lock | each thread that changes the queue |
//! | `waiting`, the length of the queue | the queue-lock holder |
//! | `queue`: the first and the last node, and the mutex | the queue-lock holder |
//! | the links of a node in the queue | the queue-lock holder |
//! | the status of a node | see below |
//!
//! | label | the status of a node | by |
//! |---|---|---|
//! | (W) | made as `WAITING`, then put at the end of the queue | its thread, which holds the mutex |
//! | (N) | `WAITING` to `NOTIFIED`, and out of the queue | a notification, holding the queue lock |
//! | (T) | stays `WAITING`, and out of the queue | its thread, holding the queue lock, after its deadline |
//!
//! # Invariants
//! 1. While the queue lock is free, a node is in the queue if and only if it is `WAITING` and its
//!    thread has done (W) and not (T). So (N) and (T) exclude each other, and a notification that
//!    has counted a waiter is not taken back.
//! 2. *No notification is missed.* A waiter does (W) before it releases the mutex. A notifier that
//!    has held the mutex since, or is ordered after that release otherwise, finds `waiting` not
//!    zero, and the node.
//! 3. *No notified waiter is forgotten.* A waiter sleeps only while its status is `WAITING`: the
//!    kernel compares. After (N), either the notifier wakes it, or the node before it names it in
//!    `next_key`, and the thread of that node wakes it before its own wait ends. That thread is
//!    itself awake or not forgotten. It does not unwind.
//! 4. A node lives until its thread has seen `NOTIFIED` or has done (T). (N) is the last access to
//!    the node by another thread. A wake-up goes by the node's address, as a key.
//! 5. From (W) to the end a waiter does not unwind: the queue would name a dead node.
//!
//! # Memory ordering
//! - The queue and the links pass from one queue-lock holder to the next by the queue lock.
//! - (N) is Release. A waiter's look at its status is Acquire, and sees `next_key`. It is the last
//!   one before the node dies, so the accesses of the notifier come before that.
//! - (N) is a read-modify-write, since loom orders a plain store and the kernel's comparison in
//!   both ways, whichever was first.
//! - `waiting` is Relaxed: invariant 2 rests on what orders the notifier after the waiter's release
//!   of its mutex. A notifier that nothing orders may miss a waiter, as if it had come before.
//! - What a waiter sees of the notifier's work comes by the mutex.
//!
//! # Sources
//! The promises are those of `parking_lot::Condvar`. The counts and the refusal of a second mutex
//! need no more than a queue; there it is `parking_lot_core`'s.

use core::fmt;
use core::ptr;
use ulocks_core::futex::{Futex, FutexKey, Private, Waited};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, without_unwinding};
use ulocks_core::time::Deadline;

type QueueLock = ulocks_unfair::RawMutex;
type Key = FutexKey<Private>;

const WAITING: u32 = 0;
const NOTIFIED: u32 = 1;

/// A waiter's place in the queue, on its stack.
struct Node {
    status: Futex<Private>,
    links: UnsafeCell<Links>,
}

#[derive(Clone, Copy)]
struct Links {
    previous: *const Node,
    next: *const Node,
    /// After (N): the waiter to wake next.
    next_key: Option<Key>,
}

impl Node {
    fn new() -> Self {
        let links = Links { previous: ptr::null(), next: ptr::null(), next_key: None };
        Self { status: Futex::new(WAITING), links: UnsafeCell::new(links) }
    }

    fn links(&self) -> Links {
        // SAFETY: read by the queue-lock holder, or after (N) by its own thread.
        self.links.with(|links| unsafe { *links })
    }

    /// Changes the links.
    ///
    /// # Safety
    /// The caller holds the queue lock, and the node is in the queue or about to be.
    unsafe fn change(&self, change: impl FnOnce(&mut Links)) {
        // SAFETY: the queue lock excludes other accesses.
        self.links.with_mut(|links| change(unsafe { &mut *links }));
    }
}

/// The queue. All functions are for the queue-lock holder.
struct Queue {
    first: *const Node,
    last: *const Node,
    /// The address of the mutex that the waiters in the queue wait with.
    mutex: *const (),
}

impl Queue {
    /// # Safety
    /// `node` is new, and lives until it is removed.
    unsafe fn push(&mut self, node: &Node) {
        let last = self.last;
        // SAFETY: the caller's promise; the last node is in the queue.
        unsafe {
            node.change(|links| links.previous = last);
            match last.as_ref() {
                Some(last) => last.change(|links| links.next = node),
                None => self.first = node,
            }
        }
        self.last = node;
    }

    /// # Safety
    /// `node` is in the queue.
    unsafe fn remove(&mut self, node: &Node) {
        let Links { previous, next, .. } = node.links();
        // SAFETY: the neighbours of a node in the queue are in the queue.
        unsafe {
            match previous.as_ref() {
                Some(previous) => previous.change(|links| links.next = next),
                None => self.first = next,
            }
            match next.as_ref() {
                Some(next) => next.change(|links| links.previous = previous),
                None => self.last = previous,
            }
        }
    }

    /// (N) for the first waiter. After that its node may be gone.
    fn notify_first(&mut self) -> Option<Key> {
        // SAFETY: a node in the queue lives.
        let node = unsafe { self.first.as_ref() }?;
        // SAFETY: it is in the queue.
        unsafe { self.remove(node) };
        let key = node.status.key();
        node.status.swap(NOTIFIED, Release);
        Some(key)
    }

    /// (N) for all waiters, the last one first, so that each is told of the next. The key is that
    /// of the first.
    fn notify_all(&mut self) -> Option<Key> {
        let mut next_key = None;
        // SAFETY: a node in the queue lives.
        while let Some(node) = unsafe { self.last.as_ref() } {
            // SAFETY: it is in the queue.
            unsafe {
                node.change(|links| links.next_key = next_key);
                self.remove(node);
            }
            next_key = Some(node.status.key());
            node.status.swap(NOTIFIED, Release);
        }
        next_key
    }
}

/// Why a wait did not begin: the token, back, because threads wait with another mutex.
#[derive(Debug)]
pub struct OtherMutex<K>(pub K);

/// A condition variable with exact counts, for the raw mutex `L`.
pub struct ExactCondvar<L> {
    lock: QueueLock,
    waiting: AtomicU32,
    queue: UnsafeCell<Queue>,
    mutex: core::marker::PhantomData<fn(&L)>,
}

// SAFETY: the queue is accessed by the queue-lock holder only, and the nodes as the header says.
unsafe impl<L> Sync for ExactCondvar<L> {}
// SAFETY: a condition variable with waiters is borrowed, so what is moved has an empty queue.
unsafe impl<L> Send for ExactCondvar<L> {}

impl<L: RawMutex> ExactCondvar<L> {
    ulocks_core::const_fn! {
        /// A condition variable without waiters.
        pub fn new() -> Self {
            Self {
                lock: QueueLock::new(),
                waiting: AtomicU32::new(0),
                queue: UnsafeCell::new(Queue { first: ptr::null(), last: ptr::null(), mutex: ptr::null() }),
                mutex: core::marker::PhantomData,
            }
        }
    }

    /// Releases `mutex`, waits for a notification or for `deadline`, and acquires `mutex` again.
    /// Returns the new token, and whether a notification came.
    ///
    /// # Errors
    /// If threads wait with another mutex. `mutex` is still held then.
    ///
    /// # Aborts
    /// If the kernel refuses to let the thread sleep.
    ///
    /// # Safety
    /// `token` comes from an acquisition of `mutex` in this context.
    pub unsafe fn wait(
        &self,
        mutex: &L,
        token: L::Token,
        deadline: Option<Deadline>,
    ) -> Result<(L::Token, bool), OtherMutex<L::Token>> {
        without_unwinding(|| {
            let node = Node::new();
            let address = ptr::from_ref(mutex).cast();
            let is_queued = self.locked(|queue, waiting| {
                if waiting > 0 && queue.mutex != address {
                    return (false, waiting);
                }
                queue.mutex = address;
                // (W). SAFETY: the node is new, and lives until (N) or (T).
                unsafe { queue.push(&node) };
                (true, waiting + 1)
            });
            if !is_queued {
                return Err(OtherMutex(token));
            }
            // SAFETY: the caller's promise.
            unsafe { mutex.unlock_to_wait(token) };
            let is_notified = self.sleep(&node, deadline);
            let token = mutex.lock();
            if is_notified && let Some(next) = node.links().next_key {
                next.wake(1);
            }
            Ok((token, is_notified))
        })
    }

    /// Sleeps until (N), or does (T). Returns whether it was (N).
    fn sleep(&self, node: &Node, deadline: Option<Deadline>) -> bool {
        while node.status.load(Acquire) == WAITING {
            let is_late = node.status.wait(WAITING, deadline) == Waited::TimedOut;
            if is_late && self.give_up(node) {
                return false;
            }
        }
        true
    }

    /// (T), unless the waiter is notified already.
    #[cold]
    fn give_up(&self, node: &Node) -> bool {
        self.locked(|queue, waiting| {
            // Relaxed: (N) happens under the queue lock.
            if node.status.load(Relaxed) == NOTIFIED {
                return (false, waiting);
            }
            // SAFETY: it is in the queue (invariant 1).
            unsafe { queue.remove(node) };
            (true, waiting - 1)
        })
    }

    /// Notifies the waiter that has waited longest. Returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.waiting.load(Relaxed) > 0 && self.notify_first()
    }

    #[cold]
    fn notify_first(&self) -> bool {
        let key = self.locked(|queue, waiting| {
            let key = queue.notify_first();
            (key, waiting - u32::from(key.is_some()))
        });
        key.inspect(|key| _ = key.wake(1)).is_some()
    }

    /// Notifies all waiters. Returns how many there were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.waiting.load(Relaxed) == 0 { 0 } else { self.notify_each() }
    }

    #[cold]
    fn notify_each(&self) -> usize {
        let (first, count) = self.locked(|queue, waiting| ((queue.notify_all(), waiting), 0));
        if let Some(first) = first {
            first.wake(1);
        }
        count as usize
    }

    /// Calls `change` with the queue and its length, holding the queue lock. It returns the new
    /// length.
    fn locked<R>(&self, change: impl FnOnce(&mut Queue, u32) -> (R, u32)) -> R {
        self.lock.lock();
        // SAFETY: the queue lock is held.
        let (result, waiting) =
            self.queue.with_mut(|queue| change(unsafe { &mut *queue }, self.waiting.load(Relaxed)));
        self.waiting.store(waiting, Relaxed);
        // SAFETY: locked above; `change` does not unwind.
        unsafe { self.lock.unlock(()) };
        result
    }
}

impl<L: RawMutex> Default for ExactCondvar<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L> fmt::Debug for ExactCondvar<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactCondvar").field("waiting", &self.waiting.load(Relaxed)).finish()
    }
}
