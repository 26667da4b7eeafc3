//! Operations, and what a set of them would do.

use crate::array::Array;
use crate::sys::Errno;
use crate::word::MOST;
use ulocks_core::sync::Ordering::Relaxed;

/// The flag of an operation that does not wait.
pub const NO_WAIT: i16 = libc::IPC_NOWAIT as i16;
/// The flag of an operation that is undone when its process ends.
pub const UNDO: i16 = 0x1000;

/// `struct sembuf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    /// The index of the semaphore.
    pub num: u16,
    /// What is added; 0 waits for zero.
    pub op: i16,
    /// `IPC_NOWAIT`, `SEM_UNDO`.
    pub flags: i16,
}

impl Op {
    /// The operation in one word.
    pub fn pack(self) -> u64 {
        u64::from(self.num) | u64::from(self.op as u16) << 16 | u64::from(self.flags as u16) << 32
    }

    /// The reverse of [`pack`](Self::pack).
    pub fn unpack(word: u64) -> Self {
        Self { num: word as u16, op: (word >> 16) as i16, flags: (word >> 32) as i16 }
    }

    /// Whether the flag is set.
    #[inline]
    pub fn has(self, flag: i16) -> bool {
        self.flags & flag != 0
    }
}

/// The operations of a set: the caller's, or those of a sleeper.
#[derive(Clone, Copy, Debug)]
pub enum Ops<'a> {
    /// Copied from the caller.
    Own(&'a [Op]),
    /// Of the sleeper in this slot, so many.
    Sleeper(usize, usize),
}

impl Ops<'_> {
    /// How many.
    pub fn len(self) -> usize {
        match self {
            Self::Own(ops) => ops.len(),
            Self::Sleeper(_, len) => len,
        }
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn get(self, array: &Array, index: usize) -> Option<Op> {
        match self {
            Self::Own(ops) => ops.get(index).copied(),
            Self::Sleeper(slot, 1) => {
                array.sleeper(slot).map(|sleeper| Op::unpack(sleeper.first.load(Relaxed)))
            }
            Self::Sleeper(slot, _) => array.operation(slot, index).map(|op| Op::unpack(op.load(Relaxed))),
        }
    }

    /// All of them.
    pub fn iter(self, array: &Array) -> impl Iterator<Item = Op> {
        (0..self.len()).filter_map(move |index| self.get(array, index))
    }
}

/// An entry of the journal: what becomes of one semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The index of the semaphore.
    pub num: u16,
    /// The value afterwards.
    pub value: u16,
    /// The adjustment afterwards, if it changes.
    pub adjustment: Option<i16>,
}

impl Change {
    const ADJUSTS: u64 = 1 << 48;

    /// The entry in one word.
    pub fn pack(self) -> u64 {
        let word = u64::from(self.num) | u64::from(self.value) << 16;
        self.adjustment.map_or(word, |by| word | u64::from(by as u16) << 32 | Self::ADJUSTS)
    }

    /// The reverse of [`pack`](Self::pack).
    pub fn unpack(word: u64) -> Self {
        let adjustment = (word & Self::ADJUSTS != 0).then_some((word >> 32) as i16);
        Self { num: word as u16, value: (word >> 16) as u16, adjustment }
    }
}

/// What an evaluation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The set can be performed: so many entries are in the journal.
    Proceeds(usize),
    /// This operation blocks.
    Blocks(usize),
    /// The set fails.
    Fails(Errno),
}

/// Evaluates a set in the order of its operations, as the kernel does. `row` has the adjustments.
///
/// The words of the set are busy or watched. The outcome is in the entries of the journal, which is
/// not under way.
pub fn evaluate(array: &Array, ops: Ops<'_>, row: Option<usize>) -> Verdict {
    if ops.len() <= 64 { evaluate_seen::<1>(array, ops, row) } else { evaluate_seen::<512>(array, ops, row) }
}

/// `64 * WORDS` bits say which semaphores may have been named before, so that most entries need no
/// search.
fn evaluate_seen<const WORDS: usize>(array: &Array, ops: Ops<'_>, row: Option<usize>) -> Verdict {
    let mut seen = [0_u64; WORDS];
    let mut used = 0;
    for (index, op) in ops.iter(array).enumerate() {
        let num = u32::from(op.num);
        if num >= array.nsems {
            return Verdict::Fails(libc::EFBIG);
        }
        let (word, bit) = ((op.num as usize / 64) % WORDS, 1 << (op.num % 64));
        let known = (seen[word] & bit != 0)
            .then(|| (0..used).find(|&at| change(array, at).is_some_and(|change| change.num == op.num)))
            .flatten();
        seen[word] |= bit;
        let at = known.unwrap_or(used);
        let mut new = match known.and_then(|at| change(array, at)) {
            Some(change) => change,
            None => Change { num: op.num, value: array.load(num).value() as u16, adjustment: None },
        };
        let (before, by) = (i32::from(new.value), i32::from(op.op));
        let after = before + by;
        if (by == 0 && before != 0) || after < 0 {
            return Verdict::Blocks(index);
        }
        if after > MOST {
            return Verdict::Fails(libc::ERANGE);
        }
        if op.has(UNDO) {
            let Some(row) = row else { return Verdict::Fails(libc::ENOMEM) };
            let known = || array.adjustment(row, num).map_or(0, |place| place.load(Relaxed) as i16);
            let Ok(adjustment) = i16::try_from(i32::from(new.adjustment.unwrap_or_else(known)) - by) else {
                return Verdict::Fails(libc::ERANGE);
            };
            new.adjustment = Some(adjustment);
        }
        new.value = after as u16;
        let Some(entry) = array.entry(at) else { return Verdict::Fails(libc::ENOMEM) };
        entry.store(new.pack(), Relaxed);
        used = used.max(at + 1);
    }
    Verdict::Proceeds(used)
}

fn change(array: &Array, at: usize) -> Option<Change> {
    array.entry(at).map(|entry| Change::unpack(entry.load(Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_all_fields() {
        let op = Op { num: 65_535, op: -32_768, flags: UNDO | NO_WAIT };
        assert_eq!(Op::unpack(op.pack()), op);
        for adjustment in [None, Some(-32_768), Some(0), Some(32_767)] {
            let change = Change { num: 31_999, value: 32_767, adjustment };
            assert_eq!(Change::unpack(change.pack()), change);
        }
    }
}
