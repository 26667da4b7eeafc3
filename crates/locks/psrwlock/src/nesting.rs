//! What this thread holds: finds an acquisition that would wait for its own thread.
//!
//! A thread may nest read locks of one lock upward only. Recursion in one class and downward
//! nesting deadlock if a writer comes in between: the writer waits for the first acquisition, and
//! the second for the writer. Here they panic nearly every time, and name both places. What is not
//! found is below.
//!
//! What a task acquires is in no table: another thread may release it. The token of a reader says
//! so, since the thread that releases may be a reader itself.
//!
//! Each thread has a table of what it holds. The table has a fixed size, so that nothing is
//! allocated or torn down; what does not fit is not checked. Guards are not `Send`, so a thread
//! releases what it acquires. Attempts and acquisitions with a deadline are entered and not
//! checked: they end.
//!
//! The checked locks of `ulocks-debug` find the same faults and more, by lists of their own, and
//! switch this check off ([`Unchecked`]). This one is not a client of those lists. They allocate,
//! have a destructor for each thread, and are for the locks of one process on the machine. A plain
//! lock may guard a global allocator, and lie between processes; the models run this check, too.
//! Besides, `ulocks-debug` depends on this crate.
//!
//! # Forgotten guards
//! A forgotten guard leaves its entry behind. The lock may be gone by then, and another lock may be
//! at its address. An entry is void if the lock has no holder of its kind. But another thread may
//! hold the new lock in the same way. So each entry has the [epoch] of its address and kind, and is
//! void when that epoch is over. Each thread looks at the lock before *every* acquisition, and ends
//! the epoch if the lock has no holder of the kind that is asked for.
//!
//! *An entry that is not void stands for a holder*, if all threads that use the lock are in this
//! process. While this thread holds the lock, no thread finds it without a holder. A lock that has
//! come to the address since had no holder at first. The first thread to acquire it looked before,
//! found no holder, and ended the epoch. So the entry was void before the lock had a holder.
//!
//! A lock between processes may have its first holder elsewhere. There a forgotten guard of a lock
//! that is gone may be taken for a guard of the present lock. So may a guard of a lock that was
//! moved while it was held.
//!
//! An entry may be void without a reason. Two keys share an epoch with a probability of about one
//! in ten thousand. And the look and the end of the epoch are two steps: another thread may look
//! before this thread acquires, and end the epoch after that. In both cases an acquisition that
//! would wait for its own thread is not found.

use crate::class::{Bulk, Class as _};
use crate::word::Layout;
use core::cell::RefCell;
use core::fmt;
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
    /// Whether an acquisition `asked` may wait for a holder with this access.
    fn blocks(self, asked: Self) -> bool {
        match (self, asked) {
            (Self::Read(held), Self::Read(asked)) => held >= asked,
            (Self::Read(held), Self::Exclude(asked)) => held <= asked,
            (Self::Upgradable, Self::Exclude(_)) => false,
            _ => true,
        }
    }

    /// The key of an epoch: the address of a lock, which is a multiple of eight, and the kind of
    /// holder.
    fn key(self, lock: usize) -> usize {
        match self {
            Self::Read(index) => lock + 1 + usize::from(index),
            Self::Upgradable | Self::Write | Self::Exclude(_) => lock,
        }
    }

    /// What the user calls it. Who reads in `Bulk` has mostly chosen no class.
    fn name(self, layout: Layout) -> &'static str {
        match self {
            Self::Read(0) if layout.contains(Bulk::RANK) => "read",
            Self::Read(index) => layout.name(index.into()),
            Self::Upgradable => "upgradable",
            Self::Write | Self::Exclude(_) => "write",
        }
    }

    /// For whom an acquisition `asked` would wait, and what to do in place of it. Nothing is
    /// allocated: the lock may guard the allocator.
    fn way_out(self, asked: Self, layout: Layout) -> impl fmt::Display {
        fmt::from_fn(move |f| match (self, asked) {
            (Self::Read(held), Self::Read(_)) => {
                f.write_str(
                    "a writer that comes between waits for this thread, and this thread for the writer: ",
                )?;
                match layout.name(layout.top()) {
                    top if u32::from(held) < layout.top() => {
                        write!(f, "use `read_in::<{top}>()` for the inner one, or pass the guard down")
                    }
                    top => write!(f, "pass the guard down, since no class is above {top}"),
                }
            }
            (Self::Upgradable, Self::Write) => {
                f.write_str("it would wait for itself: use `RwLockUpgradableReadGuard::upgrade`")
            }
            _ => f.write_str("it would wait for itself: pass the guard down, or drop it first"),
        })
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
    /// Whether it certainly stands for a holder.
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
            "deadlock: this thread asks for the {} lock at {at}, and holds the {} lock since {}; {}",
            asked.name(layout),
            held.access.name(layout),
            held.at,
            held.access.way_out(asked, layout)
        );
    }
}

/// Called before each acquisition of a lock that has no holder of that kind: its entries are void.
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

/// This thread does not hold the lock any more. Whether the table had it, by an entry that is not
/// void.
pub(crate) fn leave(lock: usize, access: Access) -> bool {
    let thread = tid::current();
    HELD.with_borrow_mut(|held| {
        let is_it = |entry: &Entry| (entry.thread, entry.lock, entry.access) == (thread, lock, access);
        let mine = held.iter_mut().filter(|entry| entry.as_ref().is_some_and(is_it));
        let mine = mine.max_by_key(|entry| entry.as_ref().is_some_and(Entry::is_valid));
        // A void entry goes, too. It may be of a forgotten guard, and the caller may be a task that
        // this thread runs: so it does not count.
        mine.and_then(Option::take).is_some_and(|entry| entry.is_valid())
    })
}
