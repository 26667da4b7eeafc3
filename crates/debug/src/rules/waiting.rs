//! A wait for a lock.

use super::clock::coarse_now;
use super::deliver::{From, deliver};
use super::handler;
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::thread::{Record, Wait};
use crate::seen::wait::deadlock;

/// Publishes that the thread waits, and looks for a deadlock, while `wait` waits.
///
/// In a wait for a promise the thread may wait for something else. That is what is published
/// meanwhile. A deadlock of the outer wait that has come about then is in the list of deadlocks.
#[track_caller]
pub(crate) fn waiting<T>(me: &'static Record, asked: &Asked, timed: bool, wait: impl FnOnce() -> T) -> T {
    let ends = begin(me, asked, timed);
    if me.is_handler() {
        if !timed {
            handler::waits(me, asked);
        }
    } else if let Some(report) = deadlock(me) {
        deliver(&report, From::Call);
    }
    let result = wait();
    drop(ends);
    result
}

/// As [`waiting`], of a thread that has the lock already. That was reported, and others see the
/// wait.
#[track_caller]
pub(crate) fn waiting_for_itself<T>(
    me: &'static Record,
    asked: &Asked,
    timed: bool,
    wait: impl FnOnce() -> T,
) -> T {
    let ends = begin(me, asked, timed);
    let result = wait();
    drop(ends);
    result
}

fn begin(me: &'static Record, asked: &Asked, timed: bool) -> Ends {
    let Asked { lock, class, access, subclass, instance, at } = *asked;
    let before = if access == Access::Promise { me.entries() } else { (0, 0) };
    let since = coarse_now();
    let wait_of = Wait { lock, class, subclass, access, instance, place: at, timed, since, before };
    let outer = me.waiting().map(|(outer, _)| outer);
    if outer.is_some() {
        me.end_wait();
    }
    me.begin_wait(&wait_of);
    Ends(me, outer)
}

/// Ends the wait of a thread when dropped, also by a panic, and goes on with the one around it.
struct Ends(&'static Record, Option<Wait>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end_wait();
        if let Some(outer) = &self.1 {
            self.0.begin_wait(outer);
        }
    }
}
