//! Adjustments: what the end of a process gives back (`SEM_UNDO`).
//!
//! Each process with a slot has a row in each array: an adjustment for each semaphore. The bit of
//! the row is set before the first adjustment, and cleared when the row is applied: at the exit of
//! the process, or after its death.
//!
//! # Invariants
//! 1. A row's identity is that of the process it belongs to. A process that finds another identity
//!    in its row applies that row first.
//! 2. A thread that gets the array lock applies the rows of dead processes before anything else.
//!    Semaphores with adjustments are watched. So no operation sees a value that a dead process
//!    still owes. There is one exception. A token of another thread than the first is left as it is
//!    if that thread calls `execve`. Then the row is applied up to `ASK` after the end of the
//!    process, because the kernel is asked for such threads no more often.
//! 3. A row is applied by one journal: all its semaphores, as in the kernel. (apply) ends the watch
//!    of a semaphore whose only adjustment this was. So the words are busy until the journal is
//!    cleared.
//! 4. A row with an adjustment, or of a set with `SEM_UNDO` that sleeps, has its bit, its identity
//!    and its number. A process that exits applies its own row only if it has no other thread. For
//!    that one would go on with what was given back, or take it by a set in which it sleeps, and
//!    end with it. The row is applied after the end of the process then.

use crate::array::Array;
use crate::op::Change;
use crate::process::{self, Slot};
use crate::queue;
use crate::registry::{self, Registry};
use crate::section::{Actor, Section};
use crate::sys::{self, Answer};
use crate::word::MOST;
use ulocks_core::sync::Ordering::{Relaxed, Release};

/// How often a process asks for the threads of others, in nanoseconds. A system call for each of
/// them in each operation would take 0.4 us a process.
const ASK: u64 = 50_000_000;

/// Whether to ask now.
fn asks(array: &Array) -> bool {
    let now = sys::monotonic();
    let asks = now.saturating_sub(array.asked.load(Relaxed)) >= ASK;
    if asks {
        array.asked.store(now, Relaxed);
    }
    asks
}

/// Invariant 2.
pub fn reap(section: &mut Section) {
    let array = section.array;
    if array.rows().next().is_none() {
        return;
    }
    let Ok(registry) = registry::get() else { return };
    let mine = process::mine();
    let mut asked = None;
    for index in array.rows() {
        let Some(row) = array.row(index) else { continue };
        let identity = row.identity.load(Relaxed);
        let is_mine = mine.is_some_and(|mine| mine.index == index && mine.identity == identity);
        if !is_mine
            && process::is_gone(registry, index, identity, || *asked.get_or_insert_with(|| asks(array)))
        {
            apply(section, index);
        }
    }
}

/// Whether a process other than the caller has a row.
pub fn has_others(array: &Array) -> bool {
    let mine = process::mine();
    array.rows().any(|index| mine.is_none_or(|mine| mine.index != index))
}

/// Whether a process other than the caller has a row, and may be gone. This takes no lock.
pub fn has_suspects(array: &Array) -> bool {
    let Ok(registry) = registry::get() else { return false };
    let mine = process::mine();
    let mut others = array.rows().filter(|&index| mine.is_none_or(|mine| mine.index != index));
    others.any(|index| {
        let identity = array.row(index).map_or(0, |row| row.identity.load(Relaxed));
        process::is_suspect(registry, index, identity)
    })
}

/// Gives the calling process its row.
///
/// # Errors
/// ENOMEM without memory for it; EIO if the registry is damaged, and so the slot may be another's.
pub fn enable(section: &mut Section, slot: Slot) -> Answer<()> {
    let (array, registry) = (section.array, registry::get()?);
    let row = array.row(slot.index).ok_or(libc::ENOMEM)?;
    let is_set = has_row(array, slot.index);
    if is_set && row.identity.load(Relaxed) == slot.identity {
        return Ok(());
    }
    if is_set {
        apply(section, slot.index); // Invariant 1.
    }
    array.populate_row(slot.index)?;
    let has_others = array.rows().nth(1).is_some(); // A sleeper sees their rows then.
    begin(array, registry, slot, process::number());
    if !has_others {
        queue::ring_all(section); // The sleepers look more often from now on.
    }
    Ok(())
}

fn has_row(array: &Array, index: usize) -> bool {
    array.head().rows.get(index / 64).is_some_and(|bits| bits.load(Relaxed) & 1 << (index % 64) != 0)
}

/// Sets the bit of a row without adjustments, after all else.
fn begin(array: &Array, registry: &Registry, slot: Slot, number: u32) {
    let (Some(row), Some(bits)) = (array.row(slot.index), array.head().rows.get(slot.index / 64)) else {
        return;
    };
    process::will_undo(registry, slot);
    row.number.store(number, Relaxed);
    row.identity.store(slot.identity, Relaxed);
    let words = array.head().row_words.load(Relaxed).max(slot.index as u32 / 64 + 1);
    array.head().row_words.store(words, Relaxed);
    // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
    bits.fetch_or(1 << (slot.index % 64), Release);
}

/// Applies a row and clears its bit.
fn apply(section: &mut Section, index: usize) {
    let array = section.array;
    let Some(row) = array.row(index) else { return };
    let mut entries = 0;
    for num in 0..array.nsems {
        let adjustment = array.adjustment(index, num).map_or(0, |place| place.load(Relaxed) as i16);
        if adjustment != 0 {
            section.mark_one(num);
            let value = (array.load(num).value() + i32::from(adjustment)).clamp(0, MOST);
            let change = Change { num: num as u16, value: value as u16, adjustment: Some(0) };
            if let Some(entry) = array.entry(entries) {
                entry.store(change.pack(), Relaxed);
                entries += 1;
            }
        }
    }
    let process = row.number.load(Relaxed);
    section.commit(entries, Actor { process, row: Some(index), slot: None, sets: false });
    for entry in (0..entries).map_while(|at| array.entry(at)) {
        section.unmark_one(Change::unpack(entry.load(Relaxed)).num.into()); // Invariant 3.
    }
    discard(array, index);
    section.touch();
    section.settle(None);
}

/// Clears the bit of a row, then counts one less for its process.
fn discard(array: &Array, index: usize) {
    // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
    array.head().rows[index / 64].fetch_and(!(1 << (index % 64)), Release);
    if let (Some(row), Ok(registry)) = (array.row(index), registry::get()) {
        process::has_undone(registry, index, row.identity.load(Relaxed));
    }
}

/// Forgets the adjustments of all processes, for a removed array.
pub fn discard_all(array: &Array) {
    array.rows().for_each(|index| discard(array, index));
}

/// Applies the rows of a process that has ended, or is about to, in all arrays. Whether all arrays
/// could be used.
#[cfg(files)]
pub fn apply_everywhere(registry: &'static Registry, index: usize, identity: u64) -> bool {
    let mut all = true;
    for (id, _, _) in (0..registry.high()).filter_map(|at| registry.at(at)) {
        let array = match crate::array::attach(id) {
            Ok(array) => array,
            Err(libc::EINVAL) => continue,
            Err(_) => {
                all = false;
                continue;
            }
        };
        give_back(array, index, identity);
    }
    all
}

/// The same in one array.
pub fn give_back(array: &'static Array, index: usize, identity: u64) {
    if !has_row(array, index) {
        return;
    }
    if let Ok(mut section) = Section::enter(array) {
        let is_its = array.row(index).is_some_and(|row| row.identity.load(Relaxed) == identity);
        if is_its && has_row(array, index) {
            apply(&mut section, index);
        }
        section.leave();
    }
}
