//! [`watch`]: a future that holds no lock while it waits.
//!
//! A poll enters locks into the list of its thread and removes them. What is in the list when the
//! poll returns `Pending`, and was not there when it began, the task holds across an `.await`. An
//! entry is told from a later one in its slot by the turn (`slot.rs`). A task may be polled by one
//! thread after the other, since each poll looks at the list of the thread that runs it.
//!
//! A watch inside of a watched future reports first. The slots of what it has reported are in a
//! word of the record, so that the outer watch leaves them out.

use super::watched::Turns;
use crate::rules::deliver::{From, deliver};
use crate::rules::faults;
use crate::seen::report::Place;
use crate::seen::thread::existing;
use core::fmt;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Reports the locks that `future` holds across an `.await`, with the place of this call.
///
/// A task that waits with a lock held keeps it for as long as the executor likes. If another task
/// of the same thread asks for the lock, the thread waits for itself: [`Rule::NoAwait`]. A guard
/// that is dropped before the `.await`, or that the future returns, breaks no rule. Locks that the
/// caller of the poll holds are not the future's.
///
/// It looks at what the thread holds before and after each poll. So it sees any lock that is
/// acquired inside, also in functions and crates that the compiler's lints do not see. It does not
/// look at a future that is not watched.
///
/// [`Rule::NoAwait`]: crate::Rule::NoAwait
///
/// # Panics
/// In a poll that returns `Pending`, as [`set_policy`](crate::set_policy) says. The future has been
/// polled then.
///
/// # Examples
/// ```
/// use std::future::{Future, pending};
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use ulocks_debug::{Mutex, watch};
///
/// static TOTAL: Mutex<u32> = Mutex::new(0);
///
/// # #[allow(clippy::await_holding_lock)]
/// async fn add(number: impl Future<Output = u32>) {
///     let mut total = TOTAL.lock();
///     *total += number.await;
/// }
///
/// let task = std::thread::spawn(|| {
///     let mut task = pin!(watch(add(pending())));
///     let _ = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
/// });
/// let panic = task.join().unwrap_err();
/// assert!(panic.downcast_ref::<String>().unwrap().contains("held across an `.await`"));
/// ```
#[track_caller]
pub fn watch<F: Future>(future: F) -> Watch<F> {
    Watch { future, place: Location::caller() }
}

/// The future of [`watch`].
#[must_use = "futures do nothing unless polled"]
pub struct Watch<F> {
    future: F,
    place: Place,
}

impl<F> Watch<F> {
    /// The future inside.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Watch<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let place = self.place;
        // SAFETY: the future is pinned with `self`: it is not moved out but by `into_inner`, which
        // takes a `self` that is not pinned, and there is no `Drop`. `Unpin` is as that of `F`.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        let before = existing().map(|me| (me.turns(), me.begin_watch()));
        let poll = future.poll(context);
        if let Some(me) = existing() {
            let (turns, outer) = before.unwrap_or((Turns::new(), 0));
            let new = if poll.is_pending() { me.held_since(&turns) } else { Vec::new() };
            me.end_watch(outer);
            for held in new {
                deliver(&faults::awaits(me, &held, place), From::Call);
            }
        }
        poll
    }
}

impl<F: fmt::Debug> fmt::Debug for Watch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.future.fmt(f)
    }
}
