//! Locks that know nothing of the checker: their guards enter them into the list of the thread.

use crate::rules::clock::since;
use crate::rules::deliver::{From, deliver};
use crate::rules::faults;
use crate::rules::handler;
use crate::rules::order::key;
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::identity::Identity;
use crate::seen::thread::{Record, records};
use core::marker::PhantomData;

/// The rules of an acquisition without a deadline, before it is made.
#[track_caller]
pub(crate) fn check(me: &'static Record, asked: &Asked) {
    // A thread that waits for a promise keeps no handler waiting. Its owner does.
    if asked.access != Access::Promise || me.is_handler() {
        handler::look(me, asked, true);
    }
    if !me.holds_any() {
        return;
    }
    if let Some(held) = me.held().find(|held| held.instance == asked.instance) {
        // It is reported as such, and not as an inversion.
        return deliver(&faults::again(me, asked, Some(held)), From::Call);
    }
    let key = key(me, asked);
    if !me.is_validated(key) {
        faults::order(me, asked, key);
    }
}

/// The lock of `identity` is dropped at `lock`. It is reported if a thread has it.
#[track_caller]
pub(crate) fn dropped(identity: &Identity, lock: usize) {
    let Some((class, number)) = identity.known() else { return };
    let owned = |record: &'static Record| Some((record, record.held().find(|held| held.instance == number)?));
    let mut owners = records().filter_map(owned);
    let Some((owner, held)) = owners.next() else { return };
    owners.for_each(|(other, held)| other.forget(held.lock));
    faults::dropped(lock, held.lock, Some(class), Some(owner));
}

/// A line in the list of its thread, until it is dropped.
pub(crate) struct Listed {
    /// `None` at the end of a thread, where nothing is listed.
    listed: Option<(&'static Record, Asked)>,
    /// The list is that of the thread.
    not_send: PhantomData<*const ()>,
}

impl Listed {
    pub fn new(how: Option<(&'static Record, &Asked)>) -> Self {
        let listed = how.map(|(me, asked)| {
            let held = asked.held(since(me));
            if !me.push(&held) {
                faults::too_many(me, &held);
            }
            (me, *asked)
        });
        Self { listed, not_send: PhantomData }
    }

    /// What was held in one way is held in another from now on.
    #[cfg(feature = "shm")]
    pub fn turned(mut self, access: Access) -> Self {
        let turned = self.take().map(|(me, asked)| (me, Asked { access, ..asked }));
        Self::new(turned.as_ref().map(|(me, asked)| (*me, asked)))
    }

    /// The line is off the list from now on. Returns what it was made of.
    pub fn take(&mut self) -> Option<(&'static Record, Asked)> {
        let listed = self.listed.take();
        if let Some((me, asked)) = &listed
            && !me.pop_as(asked.lock, |held| held == asked.access)
        {
            // There was no slot for it.
            me.pop_over();
        }
        listed
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.take();
    }
}
