//! Operations on an array: single ones without a lock, sets under the array lock.

use crate::array::Array;
use crate::op::{NO_WAIT, Op, Ops, UNDO, Verdict, evaluate};
use crate::section::{Actor, Section};
use crate::sys::{self, Answer};
use crate::word::{MOST, Word};
use crate::{process, queue, registry, signal, sleep, undo};
use ulocks_core::sync::Ordering::{AcqRel, Relaxed};

/// A single operation on a plain word; `None` if that is not possible.
///
/// What is refused is an exchange, too, of the word for itself. For calls come one after the other,
/// as in the kernel: of two threads that post and then are refused what the other posts, one at
/// least comes later. Two loads could both be too early. So all that is seen is acquired by an
/// exchange.
#[inline]
pub fn single(array: &Array, process: u32, op: Op) -> Option<Answer> {
    let word = array.word(op.num.into())?;
    let exchange = |seen: Word, new: Word| {
        word.compare_exchange_weak(seen.0, new.0, AcqRel, Relaxed).map(drop).map_err(Word)
    };
    let mut seen = Word(word.load(Relaxed));
    loop {
        if !seen.is_plain() {
            return None;
        }
        let (before, by) = (seen.value(), i32::from(op.op));
        let after = before + by;
        let is_blocked = after < 0 || (by == 0 && before != 0);
        if is_blocked || after > MOST {
            if is_blocked && !op.has(NO_WAIT) {
                return None;
            }
            match exchange(seen, seen) {
                Ok(()) => {
                    let error = if is_blocked { libc::EAGAIN } else { libc::ERANGE };
                    return Some(array.unless_blank(Err(error)));
                }
                Err(now) => seen = now,
            }
            continue;
        }
        match exchange(seen, seen.with(after, process)) {
            Ok(()) => break,
            Err(now) => seen = now,
        }
    }
    // Otherwise the exchange may have been made in memory of this process alone. A post stands for
    // one just before the removal; the zero that was waited for may be that of blank memory.
    if !array.is_whole() && (op.op == 0 || array.is_lost()) {
        return Some(array.unless_blank(Ok(0)));
    }
    let (otime, now) = (&array.head().otime, sys::seconds());
    if otime.load(Relaxed) != now {
        otime.store(now, Relaxed);
    }
    Some(Ok(0))
}

/// Performs a set under the array lock, or sleeps. `timeout` is in nanoseconds.
///
/// # Errors
/// As the kernel's.
pub fn set(array: &'static Array, ops: &[Op], timeout: Option<u64>) -> Answer {
    const FAR: u64 = 1 << 62;
    let _ = sleep::end_interrupted(); // Of a handler that ours has not called.
    signal::forget_handlers();
    let undoes = ops.iter().any(|op| op.has(UNDO));
    let mut slot = process::mine();
    if undoes || slot.is_some() {
        slot = Some(process::claim(registry::get()?)?);
    }
    let deadline = timeout.map(|limit| sys::monotonic().saturating_add(limit.min(FAR)));
    loop {
        let mut section = Section::enter(array)?;
        let row = slot.filter(|_| undoes).map(|slot| slot.index);
        if let Some(slot) = slot.filter(|_| undoes)
            && let Err(error) = undo::enable(&mut section, slot)
        {
            section.leave();
            return Err(error);
        }
        let own = Ops::Own(ops);
        let was_watched = section.mark(own);
        let verdict = evaluate(array, own, row);
        let answer = match verdict {
            Verdict::Proceeds(entries) => {
                let process = process::number();
                section.commit(entries, Actor { process, row, slot: None, sets: false });
                if was_watched && ops.iter().any(|op| op.op != 0) {
                    section.settle(Some(own));
                }
                section.touch();
                Ok(0)
            }
            Verdict::Fails(error) => Err(error),
            Verdict::Blocks(index) if ops[index].has(NO_WAIT) || timeout == Some(0) => Err(libc::EAGAIN),
            Verdict::Blocks(index) => match slot {
                Some(owner) => match queue::enqueue(&mut section, ops, owner, index) {
                    Ok(slot) => {
                        section.unmark(own);
                        return sleep::sleep(section, slot, deadline);
                    }
                    Err(error) => Err(error),
                },
                None => {
                    section.unmark(own);
                    section.leave();
                    slot = Some(process::claim(registry::get()?)?);
                    continue;
                }
            },
        };
        section.unmark(own);
        section.leave();
        return array.unless_lost(answer);
    }
}
