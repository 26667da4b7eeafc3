//! A wait for a lock.

use super::clock::coarse_now;
use super::deliver::{From, deliver};
use super::handler;
use crate::seen::asked::Asked;
use crate::seen::thread::{Record, Wait};
use crate::seen::wait::deadlock;

/// Publishes that the thread waits, and looks for a deadlock, while `wait` waits.
#[track_caller]
pub(crate) fn waiting<T>(me: &'static Record, asked: &Asked, timed: bool, wait: impl FnOnce() -> T) -> T {
    let Asked { lock, class, access, subclass, instance, at } = *asked;
    let wait_of = Wait { lock, class, subclass, access, instance, place: at, timed, since: coarse_now() };
    me.begin_wait(&wait_of);
    let ends = Ends(me);
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

/// Ends the wait of a thread when dropped, also by a panic.
struct Ends(&'static Record);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}
