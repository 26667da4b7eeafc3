//! Who holds what on this thread: finds the acquisition that would wait for its own thread.
//!
//! A thread may nest read locks of one lock upward only. Same-class recursion and downward nesting
//! work as long as no writer comes at the wrong moment, and deadlock when one does: the writer
//! waits for the first acquisition, and the second for the writer. Here they panic every time, and
//! name both places.
//!
//! Each thread has a table of what it holds, of fixed size, so that nothing is allocated and
//! nothing has to be torn down; what does not fit is not checked. Guards are not `Send`, so what a
//! thread acquires it releases. Attempts and acquisitions with a deadline are entered and not
//! checked: they come to an end.
//!
//! # Forgotten guards
//! A guard that is forgotten leaves its entry behind. The lock may be gone by then, and another one
//! may be at its address. An entry of which the lock knows nothing is void. But if another thread
//! holds the new lock in the same way, the lock knows of a holder. So each entry has the [epoch] of
//! its address and kind, and is void if that is over. Each thread looks at the lock before *every*
//! acquisition, and ends the epoch if the lock has no holder of the kind that is asked for.
//!
//! *An entry that is not void stands for a holder*, as long as all who use the lock are in this
//! process. As long as this thread holds the lock, nobody finds it without a holder. A lock that
//! has come to the address since was without a holder at first. The first thread to acquire it has
//! looked before, has found nobody, and has ended the epoch. So the entry was void before the lock
//! had a holder. A lock between processes may have its first holder elsewhere: there a forgotten
//! guard of a lock that is gone may be taken for one of the lock that is there. So may a guard of a
//! lock that was moved while it was held.
//!
//! Several keys share an epoch, one in some ten thousand with any other. So an entry may be void
//! without a reason; then an acquisition that would wait for its own thread is not found.

use crate::word::Layout;
use core::cell::RefCell;
use core::panic::Location;
use ulocks_core::{epoch, tid};

/// Whether a lock looks for acquisitions that would wait for their own thread. Chosen by type.
pub trait Nesting: Send + Sync + 'static {
    /// Whether it does.
    const CHECKED: bool;
}

/// Checks in builds with debug assertions. The default.
#[derive(Debug)]
pub enum InDebug {}
/// Checks always: a look through a table of sixteen for each acquisition and release.
#[derive(Debug)]
pub enum Checked {}
/// Never checks.
#[derive(Debug)]
pub enum Unchecked {}

impl Nesting for InDebug {
    const CHECKED: bool = cfg!(debug_assertions);
}
impl Nesting for Checked {
    const CHECKED: bool = true;
}
impl Nesting for Unchecked {
    const CHECKED: bool = false;
}

/// In what way a lock is held, or asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// For reading, in the class of this index.
    Read(u8),
    Upgradable,
    Write,
    /// Asked for by an upgradable reader: to be without readers of the class of this index and
    /// below.
    Exclude(u8),
}

impl Access {
    /// Whether who holds the lock like this can be waited for by who asks for it like `asked`.
    fn blocks(self, asked: Self) -> bool {
        match (self, asked) {
            (Self::Read(held), Self::Read(asked)) => held >= asked,
            (Self::Read(held), Self::Exclude(asked)) => held <= asked,
            (Self::Upgradable, Self::Exclude(_)) => false,
            _ => true,
        }
    }

    /// What an epoch is of: holders of this kind of the lock at that address. An address of a lock
    /// is a multiple of eight.
    fn key(self, lock: usize) -> usize {
        match self {
            Self::Read(index) => lock + 1 + usize::from(index),
            Self::Upgradable | Self::Write | Self::Exclude(_) => lock,
        }
    }

    fn name(self, layout: Layout) -> &'static str {
        match self {
            Self::Read(index) => layout.name(index.into()),
            Self::Upgradable => "upgradable",
            Self::Write | Self::Exclude(_) => "write",
        }
    }
}

#[derive(Clone, Copy)]
struct Entry {
    /// In the model worlds all threads have one table.
    thread: u32,
    lock: usize,
    access: Access,
    epoch: u32,
    at: &'static Location<'static>,
}

impl Entry {
    /// Whether it stands for a holder for certain.
    fn is_valid(&self) -> bool {
        self.epoch == epoch::current(self.access.key(self.lock))
    }
}

std::thread_local! {
    static HELD: RefCell<[Option<Entry>; 16]> = const { RefCell::new([None; 16]) };
}

/// Panics if this thread holds the lock at the address `lock` in a way for which `asked` may wait.
/// `is_held` says whether the lock knows of such a holder, and would make it wait.
pub(crate) fn check(
    lock: usize,
    asked: Access,
    layout: Layout,
    is_held: impl Fn(Access) -> bool,
    at: &'static Location<'static>,
) {
    let thread = tid::current();
    let found = HELD.with_borrow(|held| {
        let mine = held.iter().flatten().filter(|entry| entry.thread == thread && entry.lock == lock);
        // In this order: if a holder is seen, so is the end of the epoch that came before it.
        mine.copied().find(|entry| entry.access.blocks(asked) && is_held(entry.access) && entry.is_valid())
    });
    if let Some(held) = found {
        panic!(
            "deadlock: this thread asks for the {} lock at {at}, and holds the {} lock since {}; a writer that comes \
             between waits for the one, and the other for the writer. Read locks of one lock are nested upward only: {}",
            asked.name(layout),
            held.access.name(layout),
            held.at,
            "Bulk, Urgent, Nested"
        );
    }
}

/// Called before each acquisition of a lock that has no holder of that kind: what is entered of it
/// is void.
pub(crate) fn begin(lock: usize, access: Access) {
    epoch::advance(access.key(lock));
}

/// This thread holds the lock from now on.
pub(crate) fn enter(lock: usize, access: Access, at: &'static Location<'static>) {
    let epoch = epoch::current(access.key(lock));
    let entry = Entry { thread: tid::current(), lock, access, epoch, at };
    HELD.with_borrow_mut(|held| {
        let free = held.iter().position(Option::is_none);
        let free =
            free.or_else(|| held.iter().position(|entry| entry.is_some_and(|entry| !entry.is_valid())));
        if let Some(free) = free.and_then(|free| held.get_mut(free)) {
            *free = Some(entry);
        }
    });
}

/// This thread does not any more.
pub(crate) fn leave(lock: usize, access: Access) {
    let thread = tid::current();
    HELD.with_borrow_mut(|held| {
        let is_it = |entry: &Entry| (entry.thread, entry.lock, entry.access) == (thread, lock, access);
        let mine = held.iter_mut().filter(|entry| entry.as_ref().is_some_and(is_it));
        // One that is void is of a forgotten guard, or as good as any other.
        if let Some(mine) = mine.max_by_key(|entry| entry.as_ref().is_some_and(Entry::is_valid)) {
            *mine = None;
        }
    });
}
