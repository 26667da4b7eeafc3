//! Who holds what on this thread: finds the acquisition that would wait for its own thread.
//!
//! A thread may nest read locks of one lock upward only. Same-class recursion and downward nesting work as long as no writer comes at
//! the wrong moment, and deadlock when one does: the writer waits for the first acquisition, and the second for the writer.
//! Here they panic every time, and name both places.
//!
//! Each thread has a table of what it holds, of fixed size, so that nothing is allocated and nothing has to be torn down;
//! what does not fit is not checked. Guards are not `Send`, so what a thread acquires it releases. A guard that is forgotten
//! leaves its entry behind, also when the lock is gone and another has its place; an entry of which the lock knows nothing is taken for
//! such a one. Attempts and acquisitions with a deadline are entered and not checked: they come to an end.

use crate::word::Layout;
use core::cell::RefCell;
use core::panic::Location;
use ulocks_core::tid;

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
    /// Asked for by an upgradable reader: to be without readers of the class of this index and below.
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
    at: &'static Location<'static>,
}

std::thread_local! {
    static HELD: RefCell<[Option<Entry>; 16]> = const { RefCell::new([None; 16]) };
}

/// Panics if this thread holds the lock at the address `lock` in a way for which `asked` may wait. `is_held` says whether the
/// lock knows of such a holder, and would make it wait.
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
        mine.copied().find(|entry| entry.access.blocks(asked) && is_held(entry.access))
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

/// This thread holds the lock from now on.
pub(crate) fn enter(lock: usize, access: Access, at: &'static Location<'static>) {
    let entry = Entry { thread: tid::current(), lock, access, at };
    HELD.with_borrow_mut(|held| {
        if let Some(free) = held.iter_mut().find(|entry| entry.is_none()) {
            *free = Some(entry);
        }
    });
}

/// This thread does not any more.
pub(crate) fn leave(lock: usize, access: Access) {
    let thread = tid::current();
    HELD.with_borrow_mut(|held| {
        let is_it = |entry: &Entry| (entry.thread, entry.lock, entry.access) == (thread, lock, access);
        if let Some(mine) = held.iter_mut().rev().find(|entry| entry.as_ref().is_some_and(is_it)) {
            *mine = None;
        }
    });
}
