//! The priority-inheriting futex, modelled: who owns is in the word, who waits is in a queue, first
//! in, first out. There are no priorities here, and threads do not die; the virtual machine has
//! both.
//!
//! The kernel decides on two things at once, the word and its queue, under the lock of the queue.
//! The model has such a lock, too: without it a thread could queue between another's look at the
//! queue and its exchange of the word. It orders what threads do in the kernel, as the kernel's
//! does, and nothing else: who sleeps is not given it back.
//!
//! The kernel's exchanges acquire and release; the end of a wait orders nothing (in the grade
//! `Unordered`, see `kernel`).

use super::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed},
};
use super::interrupted_here;
use super::kernel::{holds, table};
use super::model::Grade;
use super::table::Key;
use crate::futex::{OWNER_DIED, PiError, PiWaited, TID_MASK, WAITERS};
use crate::time::Deadline;
use core::cell::{Cell, RefCell};
use loom::sync::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::rc::Rc;

/// A thread that waits for a lock, or to be moved to one.
struct Waiter {
    id: u32,
    /// Where it waits now.
    key: Cell<Key>,
    /// The lock it is to be moved to, if it has not been.
    aim: Option<Key>,
    /// The owner of the lock it waits for.
    owner: Cell<u32>,
    deadline: Option<Deadline>,
    ended: Cell<Option<Ended>>,
    thread: loom::thread::Thread,
}

#[derive(Clone, Copy)]
enum Ended {
    Owner,
    TimedOut,
}

/// The kernel's side of all locks.
struct Locks {
    gate: Mutex<()>,
    queue: RefCell<VecDeque<Rc<Waiter>>>,
    threads: Cell<u32>,
}

loom::lazy_static! {
    static ref LOCKS: Locks =
        Locks { gate: Mutex::new(()), queue: RefCell::default(), threads: Cell::new(0) };
}

loom::thread_local! {
    static ID: Cell<u32> = Cell::new(0);
}

/// Brings it to life before the model's first thread starts.
pub(super) fn boot() {
    let _ = LOCKS.threads.get();
}

/// The calling thread as a thread id: a number of its own, from one, in the order in which threads
/// ask.
pub(crate) fn thread_id() -> u32 {
    ID.with(|id| {
        if id.get() == 0 {
            LOCKS.threads.set(LOCKS.threads.get() + 1);
            id.set(LOCKS.threads.get());
        }
        id.get()
    })
}

fn enter() -> MutexGuard<'static, ()> {
    LOCKS.gate.lock().expect("a panic ends the model")
}

fn key(word: &AtomicU32, private: bool) -> Key {
    Key { address: core::ptr::from_ref(word).addr(), private }
}

/// The newest value.
fn newest(word: &AtomicU32) -> u32 {
    word.fetch_add(0, Relaxed)
}

impl Locks {
    /// Those who wait at `key`, to be moved or for the lock.
    fn first(&self, key: Key) -> Option<Rc<Waiter>> {
        self.queue.borrow().iter().find(|waiter| waiter.key.get() == key).cloned()
    }

    /// Whether `owner` waits, through any number of locks, for what `id` owns.
    fn closes_circle(&self, id: u32, mut owner: u32) -> bool {
        let queue = self.queue.borrow();
        loop {
            if owner == id {
                return true;
            }
            match queue
                .iter()
                .find(|waiter| waiter.id == owner && waiter.aim.is_none_or(|aim| waiter.key.get() == aim))
            {
                Some(waiter) => owner = waiter.owner.get(),
                None => return false,
            }
        }
    }

    fn leave(&self, waiter: &Rc<Waiter>, ended: Ended) {
        self.queue.borrow_mut().retain(|other| !Rc::ptr_eq(other, waiter));
        waiter.ended.set(Some(ended));
        if table().grade() != Grade::Unordered {
            waiter.thread.unpark();
        }
    }

    /// Takes the lock for `id`, or marks it for a wait and returns its owner.
    fn take_or_mark(&self, word: &AtomicU32, key: Key, id: u32, marks: u32) -> Result<Option<u32>, PiError> {
        let mut seen = newest(word);
        loop {
            let owner = seen & TID_MASK;
            let next = match owner {
                0 if self.first(key).is_some() => return Err(PiError::Inconsistent),
                0 => seen & OWNER_DIED | id | marks,
                _ if owner == id => return Err(PiError::Deadlock),
                _ => seen | WAITERS,
            };
            // A marked word is the kernel's to change.
            if next == seen {
                break;
            }
            match word.compare_exchange(seen, next, AcqRel, Relaxed) {
                Ok(_) if owner == 0 => return Ok(None),
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let owner = seen & TID_MASK;
        if self.closes_circle(id, owner) { Err(PiError::Deadlock) } else { Ok(Some(owner)) }
    }

    fn enqueue(&self, key: Key, aim: Option<Key>, owner: u32, deadline: Option<Deadline>) -> Rc<Waiter> {
        let waiter = Rc::new(Waiter {
            id: thread_id(),
            key: Cell::new(key),
            aim,
            owner: Cell::new(owner),
            deadline,
            ended: Cell::new(None),
            thread: loom::thread::current(),
        });
        self.queue.borrow_mut().push_back(Rc::clone(&waiter));
        waiter
    }
}

fn sleep(waiter: &Waiter) -> Ended {
    loop {
        if let Some(ended) = waiter.ended.get() {
            return ended;
        }
        match table().grade() {
            Grade::Unordered => loom::thread::yield_now(),
            Grade::Cheap | Grade::Exact => loom::thread::park(),
        }
    }
}

/// `FUTEX_LOCK_PI2`.
pub(crate) fn lock(word: &AtomicU32, deadline: Option<Deadline>, private: bool) -> Result<(), PiError> {
    // A handler runs, and the wait goes on.
    interrupted_here();
    let key = key(word, private);
    let entered = enter();
    let Some(owner) = LOCKS.take_or_mark(word, key, thread_id(), 0)? else { return Ok(()) };
    // To every other thread, a wait that expires is the same as one that ends at once: the mark is
    // there.
    if deadline.is_some_and(|deadline| table().draw_expiry(&deadline)) {
        return Err(PiError::TimedOut);
    }
    let waiter = LOCKS.enqueue(key, None, owner, None);
    drop(entered);
    sleep(&waiter);
    // The kernel knows by now that the word is the caller's, who reads nothing older after that.
    newest(word);
    Ok(())
}

/// `FUTEX_TRYLOCK_PI`.
pub(crate) fn try_lock(word: &AtomicU32, private: bool) -> Result<bool, PiError> {
    let _entered = enter();
    Ok(LOCKS.take_or_mark(word, key(word, private), thread_id(), 0)?.is_none())
}

/// `FUTEX_UNLOCK_PI`.
pub(crate) fn unlock(word: &AtomicU32, private: bool) -> Result<(), PiError> {
    let key = key(word, private);
    let _entered = enter();
    let mut seen = newest(word);
    loop {
        if seen & TID_MASK != thread_id() {
            return Err(PiError::NotPermitted);
        }
        let next = LOCKS.first(key);
        let value = next.as_ref().map_or(0, |next| WAITERS | next.id);
        match word.compare_exchange(seen, value, AcqRel, Relaxed) {
            Err(now) => seen = now,
            Ok(_) => {
                if let Some(next) = next {
                    LOCKS.leave(&next, Ended::Owner);
                    let queue = LOCKS.queue.borrow();
                    queue
                        .iter()
                        .filter(|other| other.key.get() == key)
                        .for_each(|other| other.owner.set(next.id));
                }
                return Ok(());
            }
        }
    }
}

/// `FUTEX_WAIT_REQUEUE_PI`.
pub(crate) fn wait_requeue(
    word: &AtomicU32,
    expected: u32,
    to: &AtomicU32,
    deadline: Option<Deadline>,
    private: bool,
) -> Result<PiWaited, PiError> {
    let (from, lock) = (key(word, private), key(to, private));
    if from == lock {
        return Err(PiError::Inconsistent);
    }
    if interrupted_here() {
        return Ok(PiWaited::Retry);
    }
    let entered = enter();
    if !holds(word, expected) || table().draw_spurious() {
        return Ok(PiWaited::Retry);
    }
    if deadline.is_some_and(|deadline| table().draw_expiry(&deadline)) {
        return Err(PiError::TimedOut);
    }
    let waiter = LOCKS.enqueue(from, Some(lock), 0, deadline);
    drop(entered);
    match sleep(&waiter) {
        Ended::Owner => {
            newest(to);
            Ok(PiWaited::Locked)
        }
        Ended::TimedOut => Err(PiError::TimedOut),
    }
}

/// `FUTEX_CMP_REQUEUE_PI`.
pub(crate) fn cmp_requeue(
    word: &AtomicU32,
    expected: u32,
    requeue: u32,
    to: &AtomicU32,
    private: bool,
) -> Result<u32, PiError> {
    let (from, lock) = (key(word, private), key(to, private));
    if from == lock {
        return Err(PiError::Inconsistent);
    }
    let _entered = enter();
    if !holds(word, expected) {
        return Err(PiError::Mismatch);
    }
    let mut done = 0;
    while done <= requeue {
        let Some(next) = LOCKS.first(from) else { break };
        if next.aim != Some(lock) {
            return Err(PiError::Inconsistent);
        }
        let marks = if requeue > 0 { WAITERS } else { 0 };
        match LOCKS.take_or_mark(to, lock, next.id, marks)? {
            None => LOCKS.leave(&next, Ended::Owner),
            // It may expire now that it was moved, or be served; before, it could not.
            Some(_) if next.deadline.is_some_and(|deadline| table().draw_expiry(&deadline)) => {
                LOCKS.leave(&next, Ended::TimedOut);
            }
            Some(owner) => {
                next.key.set(lock);
                next.owner.set(owner);
                let mut queue = LOCKS.queue.borrow_mut();
                queue.retain(|other| !Rc::ptr_eq(other, &next));
                queue.push_back(next);
            }
        }
        done += 1;
    }
    Ok(done)
}
