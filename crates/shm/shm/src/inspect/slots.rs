//! The slots of a region.

use super::process::{FileNumber, Process};
use crate::region::RegionError;
use crate::region::untyped::Untyped;
use crate::robust::queue::WAITING;
use crate::slots::{Owner, Slot};
use ulocks_core::futex::{OWNER_DIED, TID_MASK};
use ulocks_core::robust::Token;
use ulocks_core::sync::Ordering::Relaxed;

/// Whether the thread of a slot lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The kernel has not said that it died.
    Live,
    /// It died, and no thread has claimed the slot since.
    Dead,
    /// It has left, or another thread has claimed the slot.
    Gone,
    /// A living thread is claiming the slot, or leaves it.
    Between,
}

/// A slot that is not free.
#[derive(Clone, Debug)]
pub struct FoundSlot {
    /// Its number.
    pub slot: usize,
    /// How often it was claimed.
    pub generation: u32,
    /// Whether its thread lives.
    pub life: Life,
    /// The process that claimed it, by its own number.
    pub process_id: u32,
    /// The thread, by its own number; 0 if it is dead.
    pub thread_id: u32,
    /// What is known of the process, or why nothing is.
    pub process: Result<Process, &'static str>,
}

/// All slots, as they were in the file.
pub(super) struct Slots(Vec<Slot>);

impl Slots {
    pub fn read(region: &Untyped) -> Result<Self, RegionError> {
        let bytes = region.slot_bytes()?;
        let slots = bytes.chunks_exact(size_of::<Slot>()).map(|bytes| {
            // SAFETY: the bytes of a slot, which are read whatever their alignment. It is atomics,
            // so each bit pattern is valid. It has no `Drop`, and nothing follows its pointers.
            unsafe { bytes.as_ptr().cast::<Slot>().read_unaligned() }
        });
        Ok(Self(slots.collect()))
    }

    /// Those that are not free. Processes are looked up if the number of the file is given.
    pub fn found(&self, file: Option<FileNumber>) -> Vec<FoundSlot> {
        let slots = self.0.iter().enumerate();
        slots.filter_map(|(number, slot)| found(number, slot, file)).collect()
    }

    /// Whether `owner` lives.
    pub fn life(&self, owner: Owner) -> Option<Life> {
        let token = &self.0.get(owner.slot())?.token;
        let word = token.word().load(Relaxed);
        Some(match owner.is_of(token.generation()) {
            true if Token::is_alive(word) => Life::Live,
            true if word & OWNER_DIED != 0 && word & TID_MASK == 0 => Life::Dead,
            _ => Life::Gone,
        })
    }

    /// How many living threads wait in a queue in these bytes of the region.
    pub fn waiters(&self, begin: u64, size: u64) -> usize {
        let waits = |slot: &&Slot| {
            let (word, lock) = (slot.request.word.load(Relaxed), slot.request.lock.load(Relaxed));
            let lives = Owner::of(word).and_then(|owner| self.life(owner)) == Some(Life::Live);
            word & WAITING != 0 && lives && lock.wrapping_sub(begin) < size
        };
        self.0.iter().filter(waits).count()
    }
}

fn found(number: usize, slot: &Slot, file: Option<FileNumber>) -> Option<FoundSlot> {
    let word = slot.token.word().load(Relaxed);
    let thread_id = word & TID_MASK;
    let life = match (Token::is_alive(word), Token::between_owners(word)) {
        (true, _) => Life::Live,
        (false, Some(_)) => Life::Between,
        (false, None) if word & OWNER_DIED != 0 => Life::Dead,
        (false, None) => return None,
    };
    let process_id = slot.token.process();
    let process = match file {
        _ if life == Life::Dead => Err("dead"),
        // The number of the process is that of the owner before, until the claim is done.
        _ if life == Life::Between => Err("a thread is claiming it, or leaves it"),
        Some(file) => Process::find(process_id, thread_id, file),
        None => Err("of an earlier boot"),
    };
    Some(FoundSlot {
        slot: number,
        generation: slot.token.generation(),
        life,
        process_id,
        thread_id,
        process,
    })
}
