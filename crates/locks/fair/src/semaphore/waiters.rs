//! The half of a semaphore that is for its waiters: a queue or tickets, by scope, in the same eight
//! bytes.

use super::private::Queue;
use super::shared::Tickets;
use core::mem::ManuallyDrop;
use ulocks_core::futex::Scope;

/// The queue of the waiters. All-zero if there are none.
///
/// A union, because the layout depends on the scope alone and the type of a lock on its policy; the
/// scope is a constant, so there is nothing to tell apart when the program runs.
#[repr(C)]
pub(super) union Waiters<S: Scope> {
    queue: ManuallyDrop<Queue>,
    tickets: ManuallyDrop<Tickets<S>>,
}

impl<S: Scope> Waiters<S> {
    ulocks_core::const_fn! {
        /// A queue without waiters.
        pub fn new() -> Self {
            if S::PRIVATE {
                Self { queue: ManuallyDrop::new(Queue::new()) }
            } else {
                Self { tickets: ManuallyDrop::new(Tickets::new()) }
            }
        }
    }

    /// The queue of a private semaphore.
    #[inline]
    pub fn queue(&self) -> &Queue {
        assert!(S::PRIVATE);
        // SAFETY: `new` has initialised this field, and no other is ever written.
        unsafe { &self.queue }
    }

    /// The tickets of a shared semaphore.
    #[inline]
    pub fn tickets(&self) -> &Tickets<S> {
        assert!(!S::PRIVATE);
        // SAFETY: `new` has initialised this field, and no other is ever written.
        unsafe { &self.tickets }
    }
}

impl<S: Scope> Drop for Waiters<S> {
    /// On the machine there is nothing to drop; a model learns that the words are gone.
    fn drop(&mut self) {
        if S::PRIVATE {
            // SAFETY: initialised by `new`, and dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.queue) }
        } else {
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.tickets) }
        }
    }
}
