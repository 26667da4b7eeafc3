//! What a waiter sleeps on: its own word, and the tokens of the threads that it watches.

use crate::slots::{Life, Member, Owner, Request};
use core::array;
use ulocks_core::futex::{Futex, Global, Waiter, WaitvOutcome, waitv};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;

/// The greatest number of threads that a waiter watches: the kernel waits on 128 words at most. Of
/// the death of further holders a head waiter learns by its next look.
pub(super) const MOST: usize = 127;

/// A thread that is watched.
#[derive(Clone, Copy)]
struct Token<'s> {
    owner: Owner,
    word: &'s Futex<Global>,
    alive: u32,
}

/// The threads that a waiter is about to watch.
pub(super) struct Watched<'s> {
    word: &'s Futex<Global>,
    /// The word while it waits.
    waiting: u32,
    tokens: [Option<Token<'s>>; MOST],
    number: usize,
    has_died: bool,
    corrupt: Option<Owner>,
    /// Whether the waiter is the head, which watches the holders.
    pub(super) is_head: bool,
}

impl<'s> Watched<'s> {
    pub(super) fn new(request: &'s Request, waiting: u32, is_head: bool) -> Self {
        let (word, tokens) = (&request.word, [None; MOST]);
        Self { word, waiting, tokens, number: 0, has_died: false, corrupt: None, is_head }
    }

    /// Adds `owner`, unless it is the caller.
    pub(super) fn add(&mut self, me: &Member<'s>, owner: Owner) {
        if owner == me.owner() || self.number == MOST {
            return;
        }
        match me.watch(owner) {
            Life::Watched(word, alive) => {
                self.tokens[self.number] = Some(Token { owner, word, alive });
                self.number += 1;
            }
            Life::Gone => self.has_died = true,
            Life::Unknown => self.corrupt = Some(owner),
        }
    }

    /// Whether the waiter is the head, and a holder goes on while it spins; or any thread, if there
    /// is no holder.
    pub(super) fn may_poll(&self, me: &Member<'s>) -> bool {
        let mut holders = self.tokens.iter().flatten();
        self.is_head
            && match self.number {
                0 => me.may_poll_for_any(),
                _ => holders.any(|token| me.may_poll_for(token.owner)),
            }
    }

    /// Whether one of the threads has died already.
    pub(super) fn has_died(&self) -> bool {
        self.has_died
    }

    /// An owner whose slot does not exist.
    pub(super) fn corrupt(&self) -> Option<Owner> {
        self.corrupt
    }

    /// Sleeps while the caller's word says that it waits and all watched threads live, until
    /// `deadline` or the caller's next look. Whether one of the threads has died.
    pub(super) fn sleep(&self, me: &Member<'s>, deadline: Option<Deadline>) -> bool {
        let recheck = Deadline::after(me.recheck());
        let until = deadline.filter(|deadline| deadline.passes_before(recheck)).unwrap_or(recheck);
        if self.number == 0 {
            self.sleep_plainly(until);
            return false;
        }
        let words: [Waiter<'_>; MOST + 1] =
            array::from_fn(|nth| match self.tokens.get(nth.wrapping_sub(1)) {
                Some(Some(token)) => Waiter::new(token.word, token.alive),
                _ => Waiter::new(self.word, self.waiting),
            });
        let slept = waitv(&words[..=self.number], Some(until));
        // Each of them: the kernel tells of one, whichever words have woken this thread.
        let died = (1..).zip(self.tokens.iter().flatten()).filter(|(nth, token)| {
            let is_told = matches!(slept, Ok(WaitvOutcome::Woken(woken)) if woken == *nth);
            me.pass_on_death(token.owner, token.alive, is_told)
        });
        let has_died = died.count() != 0;
        match slept {
            Ok(_) => has_died,
            // Whatever the reason is: the kernel may also be out of memory.
            Err(_) => {
                self.sleep_plainly(until);
                self.tokens.iter().flatten().any(|token| token.word.load(Relaxed) != token.alive)
            }
        }
    }

    /// Sleeps while the caller's word says that it waits. A thread that unwinds here would leave
    /// its request in the queue, and others would wait for what that is granted.
    fn sleep_plainly(&self, until: Deadline) {
        without_unwinding(|| self.word.wait(self.waiting, Some(until)));
    }
}

#[cfg(all(test, regions, not(miri)))]
mod tests {
    use super::super::WAITING;
    use super::*;
    use crate::slots::Slot;

    /// Otherwise a waiter that nobody notifies would look for ever.
    #[test]
    fn a_death_before_the_sleep_is_one() {
        let slots = [Slot::new(), Slot::new()];
        // SAFETY: the slots outlive the member.
        let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
        // SAFETY: as above.
        let other = unsafe { Member::join(&slots, 0..0) }.unwrap();
        let waiting = me.owner().bits() | WAITING;
        me.request().word.store(waiting, Relaxed);
        let mut watched = Watched::new(me.request(), waiting, true);
        watched.add(&me, other.owner());
        drop(other);
        assert!(watched.sleep(&me, None), "a token changed, and no thread has died");
        me.request().word.store(0, Relaxed);
        let watched = Watched::new(me.request(), waiting, true);
        assert!(!watched.sleep(&me, None), "the waiter was told");
    }
}
