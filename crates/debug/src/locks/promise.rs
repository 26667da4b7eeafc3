//! [`CheckedPromise`]: a hint by which the checker knows of a wait for no lock.

use crate::locks::listed::{Listed, check, dropped};
use crate::rules::current::current;
use crate::rules::handler;
use crate::rules::waiting::waiting;
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Class, Origin};
use crate::seen::identity::Identity;
use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr;

/// Tells the checker that a thread waits for what another thread is to do, as if that were a lock
/// which the other one holds.
///
/// It is for the receive of a channel, the join of a thread, a barrier: what the checker does not
/// see. It changes nothing in the program. The thread that is to do it *owns* the promise, and
/// another one waits for it: the terms are those of Voss and Sarkar (2021).
///
/// # What is checked
/// A thread that waits has an order with what it holds, as if it asked for a lock. The owner has
/// one with what it asks for meanwhile. So an inversion of a promise and a lock is found, and a
/// deadlock through both, an owner that waits for itself or ends, and an owned promise that is
/// dropped. The lists of held locks and of waiters have it.
///
/// In a wait the thread may wait for something else, which is what the list of waiters has
/// meanwhile. What it acquires in a wait is in no deadlock of the promise: it may release that.
/// If a lock that it held before is released in the wait and its place got another one, nothing
/// that the thread holds is in one.
///
/// # What it asks of the program
/// That is by declaration: what is declared wrongly is reported wrongly.
///
/// - One thread owns it at a time.
/// - The owner gives it up just before it does what others wait for. It asks for no lock between
///   the two.
/// - So a wait that begins while it is owned does not end before the owner gives it up. A channel
///   of several messages has a promise for each message, or none.
/// - What a thread holds when its wait begins it holds until the end.
/// - A wait that ends by a deadline is no wait for a promise. Nor is one on a condition variable
///   with a guard from before, whose lock that wait releases.
///
/// # Memory
/// Two words. All-zero memory is a promise that no thread owns. The first use of a thread
/// allocates, and the first one in a new order.
///
/// # Panics
/// If a rule is broken, unless [`set_policy`](crate::set_policy) says otherwise.
///
/// # Signals and forks
/// A signal handler may use it. Its owner keeps a handler waiting that waits for it, as the holder
/// of a lock does. A thread that waits for it keeps none. A fork does not change it:
/// the child owns nothing that another thread of its parent owned.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use std::sync::mpsc;
/// use ulocks_debug::{Mutex, Promise, Rule, set_policy, Policy};
///
/// let (table, reply) = (Mutex::new(7), Promise::new());
/// let (send, receive) = mpsc::channel();
/// std::thread::scope(|scope| {
///     let server = scope.spawn(|| {
///         let owner = reply.own();
///         let answer = *table.lock();
///         drop(owner);
///         send.send(answer).unwrap();
///     });
///     assert_eq!(reply.wait(|| receive.recv()), Ok(7));
///     server.join().unwrap();
/// });
///
/// // With the table locked, the server may wait for this thread, and this thread for the server.
/// static REPORTS: AtomicU32 = AtomicU32::new(0);
/// set_policy(Policy::Call(|report| {
///     assert_eq!(report.rule(), Rule::Order);
///     REPORTS.fetch_add(1, Relaxed);
/// }));
/// let _held = table.lock();
/// reply.wait(|| ());
/// assert_eq!(REPORTS.load(Relaxed), 1);
/// ```
pub struct CheckedPromise {
    identity: Identity,
}

/// A promise to the checker's eyes, by its name.
struct RawPromise;

impl CheckedPromise {
    /// A promise that no thread owns. Those that one line makes are a class of the lock order.
    #[track_caller]
    #[must_use]
    pub const fn new() -> Self {
        Self { identity: Identity::new(Origin::made::<()>(Location::caller())) }
    }

    /// A promise of a named class.
    #[must_use]
    pub const fn new_in(class: &'static Class) -> Self {
        Self { identity: Identity::new(Origin::named(class)) }
    }

    #[track_caller]
    fn asked(&self) -> Asked {
        let address = ptr::from_ref(self).addr();
        self.identity.asked::<RawPromise>(address, Access::Promise, 0, Location::caller())
    }

    /// This thread is the one that others wait for, until what this returns is dropped.
    ///
    /// It does not wait, so nothing is asked of what the thread holds already.
    #[track_caller]
    pub fn own(&self) -> CheckedPromiseOwner<'_> {
        let asked = self.asked();
        let me = current();
        if let Some(me) = me {
            handler::look(me, &asked, false);
        }
        let entry = Listed::new(me.map(|me| (me, &asked)));
        CheckedPromiseOwner { _entry: entry, promise: PhantomData }
    }

    /// Calls `wait`, which waits for what the owner does. Returns what that returns.
    #[track_caller]
    pub fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        let Some(me) = current() else { return wait() };
        let asked = self.asked();
        check(me, &asked);
        waiting(me, &asked, false, wait)
    }
}

/// A thread that owns it would owe what none can wait for.
impl Drop for CheckedPromise {
    #[track_caller]
    fn drop(&mut self) {
        dropped(&self.identity, ptr::from_ref(self).addr());
    }
}

impl Default for CheckedPromise {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CheckedPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promise").finish_non_exhaustive()
    }
}

/// The thread owns a [`CheckedPromise`] as long as this lives.
#[must_use = "dropped at once, it gives the promise up"]
pub struct CheckedPromiseOwner<'a> {
    _entry: Listed,
    promise: PhantomData<&'a CheckedPromise>,
}

impl fmt::Debug for CheckedPromiseOwner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromiseOwner").finish_non_exhaustive()
    }
}
