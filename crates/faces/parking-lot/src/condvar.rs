//! A condition variable that counts exactly: a queue of waiters' nodes under a small mutex.
//!
//! # Properties
//! - A notification takes waiters out of the queue and returns how many. Each of them returns from
//!   its wait and says that it was notified, also if its deadline has passed meanwhile.
//! - *No spurious wake-ups.* A wait ends only by a notification or by its deadline.
//! - First in, first out: `notify_one` takes the waiter that has waited longest.
//! - All waiters wait with one mutex. A wait with another one is refused while there are waiters.
//! - A notification makes one system call at most, and wakes one thread. `notify_all` wakes the
//!   first waiter. Each waiter wakes the next one when it has acquired the mutex. So they do not
//!   all wake up at once only to wait for it.
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
//! | (enqueue) | made as `WAITING`, then put at the end of the queue | its thread, which holds the mutex |
//! | (time out) | stays `WAITING`, and out of the queue | its thread, holding the queue lock, after its deadline |
//! | (take) | `WAITING` to `TAKEN`, and out of the queue | a notification, holding the queue lock |
//! | (deliver) | `TAKEN` to `NOTIFIED` | the deliverer, which then wakes the thread |
//!
//! The *deliverer* of the first node that a notification takes is the notifier. That of each
//! further one is the thread of the node before it, when it has acquired the mutex.
//!
//! # Invariants
//! 1. While the queue lock is free, a node is in the queue if and only if it is `WAITING` and its
//!    thread has done (enqueue) and not (time out). So (take) and (time out) exclude each other,
//!    and a notification that has counted a waiter is not taken back.
//! 2. *No notification is missed.* A waiter does (enqueue) before it releases the mutex. A notifier
//!    that has held the mutex since, or is ordered after that release otherwise, finds `waiting`
//!    not zero, and the node.
//! 3. *A node lives until (deliver)*, or (time out). A waiter does not return before, and (deliver)
//!    is the last access to the node by another thread. The wake-up after it goes by an address, as
//!    a key. The mutex of the queue is compared, and never accessed.
//! 4. *No waiter that was taken is forgotten.* Its deliverer is awake or not forgotten, and does
//!    not unwind. A waiter sleeps only while it is `WAITING` or `TAKEN`: the kernel compares. If it
//!    is asleep at (deliver), the deliverer wakes it after that. If it is not, it sees (deliver).
//! 5. From (enqueue) to the end a waiter does not unwind: the queue would name a dead node.
//!
//! # Memory ordering
//! - The queue and the links pass from one queue-lock holder to the next by the queue lock.
//! - (deliver) is Release. A waiter's look at its status is Acquire, and sees its links: the
//!   deliverer has the node from the queue-lock holder, or from a waiter that has.
//! - (take) is Relaxed: no thread reads anything by it. It and (deliver) are read-modify-writes,
//!   since loom orders a plain store and the kernel's comparison in both ways, whichever was first.
//! - `waiting` is Relaxed: invariant 2 rests on what orders the notifier after the waiter's release
//!   of its mutex. A notifier that nothing orders may miss a waiter, as if it had come before.
//! - What a waiter sees of the notifier's work comes by the mutex.
//!
//! # Sources
//! The promises are those of `parking_lot::Condvar`, whose queue is `parking_lot_core`'s. That one
//! moves a waiter to the mutex if the mutex is held. The mutex of this crate has no foreign
//! sleepers (`RawMutex::requeue_key`), so a waiter that was notified comes to it as any thread
//! does.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr;
use ulocks_core::futex::{Futex, Local, Waited};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, without_unwinding};
use ulocks_core::time::Deadline;

type QueueLock = ulocks_unfair::RawBargingMutex;

const WAITING: u32 = 0;
const TAKEN: u32 = 1;
const NOTIFIED: u32 = 2;

/// A waiter's place in the queue, on its stack.
struct Node {
    status: Futex<Local>,
    links: UnsafeCell<Links>,
}

#[derive(Clone, Copy)]
struct Links {
    previous: *const Node,
    /// After (take): the waiter that this one is the deliverer of.
    next: *const Node,
}

impl Node {
    fn new() -> Self {
        let links = Links { previous: ptr::null(), next: ptr::null() };
        Self { status: Futex::new(WAITING), links: UnsafeCell::new(links) }
    }

    fn links(&self) -> Links {
        // SAFETY: read by the queue-lock holder, or after (deliver) by its own thread.
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

    /// (deliver): notifies the thread of a node that is `TAKEN`. After that the node may be gone.
    ///
    /// # Safety
    /// The caller is the deliverer of `node`.
    unsafe fn deliver(node: *const Self) {
        // SAFETY: the node lives until (deliver).
        let status = unsafe { &(*node).status };
        let key = status.key();
        without_unwinding(|| {
            status.swap(NOTIFIED, Release);
            key.wake(1);
        });
    }
}

/// The queue. All functions are for the queue-lock holder.
struct Queue<L> {
    first: *const Node,
    last: *const Node,
    /// The mutex that the waiters in the queue wait with.
    mutex: *const L,
}

impl<L> Queue<L> {
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
        let Links { previous, next } = node.links();
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

    /// (take) for the first waiter.
    fn take_first(&mut self) -> *const Node {
        let first = self.first;
        // SAFETY: a node in the queue lives, and this one is in it.
        if let Some(node) = unsafe { first.as_ref() } {
            // SAFETY: as above.
            unsafe {
                self.remove(node);
                node.change(|links| links.next = ptr::null());
            }
            node.status.swap(TAKEN, Relaxed);
        }
        first
    }

    /// (take) for all waiters. Returns the first, from which the links lead to the others.
    fn take_all(&mut self) -> *const Node {
        let mut node = self.first;
        // SAFETY: a node in the queue lives, and until (deliver).
        while let Some(taken) = unsafe { node.as_ref() } {
            node = taken.links().next;
            taken.status.swap(TAKEN, Relaxed);
        }
        self.last = ptr::null();
        core::mem::replace(&mut self.first, ptr::null())
    }
}

/// Why a wait did not begin: the token, back, because threads wait with another mutex.
#[derive(Debug)]
pub struct OtherMutex<K>(pub K);

/// A condition variable with exact counts, for the raw mutex `L`.
pub struct ExactCondvar<L> {
    lock: QueueLock,
    waiting: AtomicU32,
    queue: UnsafeCell<Queue<L>>,
}

// SAFETY: the queue is accessed by the queue-lock holder only, and the nodes as the header says.
unsafe impl<L> Sync for ExactCondvar<L> {}
// SAFETY: a condition variable with waiters is borrowed, so what is moved has an empty queue.
unsafe impl<L> Send for ExactCondvar<L> {}

// No user's code runs while the queue is changed, so a panic leaves it whole.
impl<L> UnwindSafe for ExactCondvar<L> {}
impl<L> RefUnwindSafe for ExactCondvar<L> {}

impl<L: RawMutex<Scope = Local>> ExactCondvar<L> {
    ulocks_core::const_fn! {
        /// A condition variable without waiters.
        pub fn new() -> Self {
            Self {
                lock: QueueLock::new(),
                waiting: AtomicU32::new(0),
                queue: UnsafeCell::new(Queue { first: ptr::null(), last: ptr::null(), mutex: ptr::null() }),
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
            let is_queued = self.locked(|queue, waiting| {
                if waiting > 0 && !ptr::eq(queue.mutex, mutex) {
                    return (false, waiting);
                }
                queue.mutex = mutex;
                // (enqueue). SAFETY: the node is new, and lives until (take) or (time out).
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
            let next = node.links().next;
            if is_notified && !next.is_null() {
                // SAFETY: this thread is the deliverer.
                unsafe { Node::deliver(next) };
            }
            Ok((token, is_notified))
        })
    }

    /// Sleeps until (deliver), or does (time out). Returns whether a notification came.
    fn sleep(&self, node: &Node, deadline: Option<Deadline>) -> bool {
        loop {
            match node.status.load(Acquire) {
                WAITING => {
                    let is_late = node.status.wait(WAITING, deadline) == Waited::TimedOut;
                    if is_late && self.give_up(node) {
                        return false;
                    }
                }
                TAKEN => _ = node.status.wait(TAKEN, None),
                _ => return true,
            }
        }
    }

    /// (time out), unless the waiter is notified already.
    #[cold]
    fn give_up(&self, node: &Node) -> bool {
        self.locked(|queue, waiting| {
            // Relaxed: (take) happens under the queue lock.
            if node.status.load(Relaxed) != WAITING {
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
        let first = self.locked(|queue, waiting| {
            let first = queue.take_first();
            (first, waiting - u32::from(!first.is_null()))
        });
        if !first.is_null() {
            // SAFETY: this thread is the deliverer.
            unsafe { Node::deliver(first) };
        }
        !first.is_null()
    }

    /// Notifies all waiters. Returns how many there were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.waiting.load(Relaxed) == 0 { 0 } else { self.notify_each() }
    }

    #[cold]
    fn notify_each(&self) -> usize {
        let (first, count) = self.locked(|queue, waiting| ((queue.take_all(), waiting), 0));
        if !first.is_null() {
            // SAFETY: this thread is the deliverer.
            unsafe { Node::deliver(first) };
        }
        count as usize
    }

    /// Calls `change` with the queue and its length, holding the queue lock. It returns the new
    /// length.
    fn locked<R>(&self, change: impl FnOnce(&mut Queue<L>, u32) -> (R, u32)) -> R {
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

impl<L: RawMutex<Scope = Local>> Default for ExactCondvar<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L> fmt::Debug for ExactCondvar<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExactCondvar").field("waiting", &self.waiting.load(Relaxed)).finish()
    }
}
