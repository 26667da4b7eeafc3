//! Grants, and which waiters are woken for them: (grant) and (rearm).

use super::place::Place;
use super::{GRANTED, REARM, Reap, Rule, Section, WAITING, Waiting};
use crate::slots::{Request, Slot};
use ulocks_core::sync::Ordering::{Relaxed, Release};
use ulocks_core::{Policy, futex};

impl<'s, P: Policy<Scope = futex::Global>, R: Rule> Section<'_, 's, P, R> {
    /// Reaps if asked to, grants what can be granted, and lets the first waiters watch whom they
    /// are to (invariants 3 and 4).
    pub(crate) fn settle(&mut self, reap: Reap) {
        if let Some(first) = self.settle_but_first(reap) {
            self.notify(first);
        }
    }

    /// For a thread that was a holder until now, or that gives what it did not hold: grants what
    /// can be granted. It wakes the first waiter after the queue lock, if that one watches it
    /// (invariant 7).
    pub(crate) fn pass_on(&mut self) {
        let Some(first) = self.settle_but_first(Reap::Nothing) else { return };
        let watched = first.place.watched();
        if watched == first.owner.slot() || watched == self.me.slot() {
            self.late = Some(self.tell(first));
        } else {
            self.notify(first);
        }
    }

    /// The same. Returns the first waiter that it has granted, which is to be told last: until then
    /// it, or a head that is not granted, watches this thread, if this was a holder (invariant 6).
    pub(super) fn settle_but_first(&mut self, reap: Reap) -> Option<Waiting<'s>> {
        if reap == Reap::Dead {
            self.reap_dead();
        }
        if !self.queue.may_have_waiters() {
            self.head = None;
            return None;
        }
        // A slot has one request at a time: more grants are a peer's that overwrites the slots.
        let mut first = None;
        for _ in 0..=self.me.slots().len() {
            match self.grant_one(first) {
                Ok(granted) if first.is_none() => first = Some(granted),
                Ok(granted) => self.notify(granted),
                Err([head, second]) => {
                    self.head = head.map(|head| head.owner);
                    if let Some(head) = head {
                        self.rearm_head(head);
                    }
                    if let (true, Some(head), Some(second)) = (R::OVERTAKES, head, second) {
                        self.rearm_second(head, second);
                    }
                    break;
                }
            }
        }
        first
    }

    /// Takes back what dead holders have. Whether there was one.
    pub(super) fn reap_dead(&mut self) -> bool {
        let mut any = false;
        self.rule.holders(&mut |owner| {
            if self.me.is_gone(owner) {
                self.rule.reap(owner);
                any = true;
            }
        });
        any
    }

    /// Makes a holder of the first waiter, but `first`, that can be one, or says which are the head
    /// and the second one.
    pub(super) fn grant_one(
        &mut self,
        first: Option<Waiting<'s>>,
    ) -> Result<Waiting<'s>, [Option<Waiting<'s>>; 2]> {
        let is_first = |place: Place| first.is_some_and(|first| first.place.order() == place.order());
        let ([mut head, mut second], mut next) = ([None::<Waiting<'_>>; 2], None::<Waiting<'_>>);
        let is_before = |waiter: &Waiting<'_>, other: &Option<Waiting<'_>>| {
            other.is_none_or(|other| waiter.place.order() < other.place.order())
        };
        for waiter in self.waiting(|place| !is_first(place)) {
            if is_before(&waiter, &head) {
                (head, second) = (Some(waiter), head);
            } else if is_before(&waiter, &second) {
                second = Some(waiter);
            }
            let may_be_next = R::OVERTAKES && waiter.want & self.changed != 0;
            if may_be_next && is_before(&waiter, &next) && self.rule.would_grant(waiter.owner) {
                next = Some(waiter);
            }
        }
        if head.is_none() && first.is_none() {
            self.queue.has_no_waiters();
        }
        let next = if R::OVERTAKES { next } else { head };
        match next {
            Some(waiter) if self.rule.grant(waiter.owner, waiter.want) => {
                self.added |= self.rule.is_holder(waiter.owner);
                self.changed |= waiter.want;
                Ok(waiter)
            }
            _ => Err([head, second]),
        }
    }

    /// Wakes all granted waiters: a thread may have died before the wake-up that belongs to
    /// (grant).
    pub(crate) fn wake_granted(&self) {
        for Slot { request, .. } in self.me.slots() {
            let is_granted = request.word.load(Relaxed) & GRANTED != 0;
            if is_granted && request.lock.load(Relaxed) == self.name() {
                request.word.key().wake(1);
            }
        }
    }

    /// (grant). Returns what is to be woken.
    pub(super) fn tell(&self, waiter: Waiting<'s>) -> &'s Request {
        let granted = waiter.owner.bits() | GRANTED;
        // It fails if the waiter has died since: invariant 8.
        let _ = waiter.request.word.compare_exchange(waiter.word, granted, Release, Relaxed);
        waiter.request
    }

    /// (grant), with its wake-up.
    pub(super) fn notify(&self, waiter: Waiting<'s>) {
        self.tell(waiter).word.key().wake(1);
    }

    /// Invariant 4.
    pub(super) fn rearm_head(&mut self, head: Waiting<'s>) {
        let watches_all = head.place.watched() == head.owner.slot();
        // A thread that had the slot before holds nothing, or has died and is watched: at worst the
        // head looks once more.
        let watches_holder = || {
            let watched = self.me.owner_in(head.place.watched());
            watched.is_some_and(|watched| self.rule.is_held_only_by(watched))
        };
        let watches = if watches_all { !self.added } else { watches_holder() };
        if watches || self.rule.has_no_holder() {
            return;
        }
        self.added = false;
        // (rearm), unless the calling thread is the head: it is awake.
        if head.owner != self.me.owner() {
            Self::rearm(head);
        }
    }

    /// (rearm).
    pub(super) fn rearm(waiter: Waiting<'s>) {
        let rearmed = waiter.owner.bits() | WAITING | REARM;
        // It fails as (grant) does.
        // Mutant: Release -> Relaxed: as (wait), for a scan of the queue that the slot was in
        // before.
        let _ = waiter.request.word.compare_exchange(waiter.word, rearmed, Release, Relaxed);
        waiter.request.word.key().wake(1);
    }

    /// Where waiters overtake: the second one watches a head that is a holder (invariant 3).
    fn rearm_second(&self, head: Waiting<'s>, second: Waiting<'s>) {
        let watches = second.place.watched() == head.owner.slot() || second.owner == self.me.owner();
        if !watches && self.rule.is_holder(head.owner) {
            Self::rearm(second);
        }
    }

    /// In order: the waiter that leaves from this place is watched no more by the waiter behind it
    /// (invariant 3).
    pub(super) fn rearm_behind(&self, place: Place, slot: usize) {
        let behind = self.least(|other| other.order() > place.order());
        if let Some(behind) = behind.filter(|behind| behind.place.watched() == slot) {
            Self::rearm(behind);
        }
    }
}
