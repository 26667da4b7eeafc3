//! Names of members that come round, and the look by which none is given twice.
//!
//! A lock names its holder by an [`Owner`](crate::slots::Owner): a slot, and the generation of the
//! slot modulo 2^16. The name of a thread that has died, or left with the lock, stays there until
//! another thread comes to the lock. So before a name is given again, the thread that joins *looks*
//! whether a word of the root is that name. If one is, the thread leaves, and claims the next
//! generation (skip).
//!
//! A word of the user's data may look like a name. Then a name is skipped in vain.
//!
//! # State
//! Each process keeps for each slot its last look: the generation at which it looked, and all names
//! of the slot that it found. A reset of the region sets the generation to zero and unlocks all
//! locks. So at first there has been a look at generation 0, which found none.
//!
//! # Invariants
//! 1. A look at generation `g` is good for the generations from `g` to `g + 65,535`: their names
//!    are distinct. A name that a lock has gained since is that of a generation from `g` on.
//! 2. A thread looks while it has the slot. So no other thread of its process looks for the slot
//!    at that time.
//! 3. While a thread looks, or is about to (skip), others may take the dead holder for a living
//!    one, and sleep. When the thread leaves, they are woken, and look again. A call that only
//!    tries is refused at that time.
//!
//! # Limits
//! After 2^32 claims of one slot without a reset its generation is zero again. A process that
//! attaches then takes that for the first round: a name of the last 65,536 claims may be given
//! again. A thread that is stopped while it grants a lock, and goes on after 65,536 claims of the
//! slot to which it grants, may give the lock to the thread that has that name then.

use crate::slots::{JoinError, Member};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// So many bytes are read at once.
const CHUNK: usize = 1 << 16;

/// After so many claims the names of a slot come round.
pub(super) const ROUND: u32 = 1 << 16;

/// The last look of this process at each slot.
pub(super) struct Names(Box<[Mutex<Look>]>);

/// At first, that of a region that was just reset.
#[derive(Default)]
struct Look {
    /// The generation of the slot at the look.
    generation: u32,
    /// The names of the slot that the root had, in ascending order.
    named: Vec<u16>,
}

impl Names {
    pub fn new(slots: u32) -> Self {
        Self((0..slots).map(|_| Mutex::default()).collect())
    }

    /// Whether the name of `me`, which has just joined, is in no lock of the root: the bytes at
    /// `root` of the `file`.
    pub fn is_free(&self, me: &Member<'_>, file: &File, root: Range<u64>) -> Result<bool, JoinError> {
        let generation = me.generation();
        let look = || {
            let named = find(file, root, me.slot()).map_err(|error| JoinError::Unread(error.kind()))?;
            Ok(Look { generation, named })
        };
        let is_free = |look: &Look| look.named.binary_search(&(generation as u16)).is_err();
        match self.0[me.slot()].try_lock() {
            Ok(last) if generation.wrapping_sub(last.generation) < ROUND => Ok(is_free(&last)),
            Ok(mut last) => {
                *last = look()?;
                Ok(is_free(&last))
            }
            // Invariant 2: in a child of a fork, that was made while another thread had it.
            Err(_) => look().map(|look| is_free(&look)),
        }
    }
}

/// All names of `slot` in the words at `root` of the `file`, in ascending order.
///
/// The file is read, and not the mapping: there the holder of a lock may change its data at the
/// same time, and a word that is torn is no name.
fn find(file: &File, root: Range<u64>, slot: usize) -> io::Result<Vec<u16>> {
    let (mut named, mut at, mut bytes) = (Vec::new(), root.start, vec![0; CHUNK]);
    while at < root.end {
        let length = usize::try_from(root.end - at).unwrap_or(CHUNK).min(CHUNK);
        let chunk = &mut bytes[..length];
        file.read_exact_at(chunk, at)?;
        let words = chunk.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word));
        named.extend(words.filter_map(|word| crate::slots::generation_of(word, slot)));
        at += length as u64;
    }
    named.sort_unstable();
    named.dedup();
    Ok(named)
}
