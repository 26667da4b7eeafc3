//! `semop` and `semtimedop`.

use crate::array::{Array, attach, mapped};
use crate::config;
use crate::layout::MOST_OPS;
use crate::op::{Op, UNDO};
use crate::sys::{self, Answer};
use crate::{access, perform, process, registry, user};
use core::mem::MaybeUninit;

/// `semop`.
///
/// # Errors
/// As the kernel's, in its order.
///
/// # Safety
/// `ops` is valid for `number` operations, unless the process is in strict mode.
#[inline]
pub unsafe fn semop(id: i32, ops: *const Op, number: usize) -> Answer {
    if number == 1 && ops as usize > 4_096 && !config::is_strict() {
        // SAFETY: the caller's promise.
        let op = unsafe { ops.read_unaligned() };
        if let Some(answer) = single(id, op) {
            return answer;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { semtimedop(id, ops, number, core::ptr::null()) }
}

/// A single operation on a plain word; `None` if that is not possible.
#[inline]
fn single(id: i32, op: Op) -> Option<Answer> {
    let array = mapped(id as u32)?;
    let process = process::known()?;
    if op.has(UNDO) || !access::is_granted(array, process, op.op != 0) {
        return None;
    }
    perform::single(array, process, op)
}

/// `semtimedop`; a null `timeout` is none.
///
/// # Errors
/// As the kernel's, in its order.
///
/// # Safety
/// As [`semop`], and `timeout` is null or valid, unless the process is in strict mode.
#[cold]
#[inline(never)]
pub unsafe fn semtimedop(id: i32, ops: *const Op, number: usize, timeout: *const libc::timespec) -> Answer {
    let Some(config) = config::get()? else {
        let a = [id as usize, ops as usize, number, timeout as usize, 0, 0];
        // SAFETY: the caller's promise, which the kernel checks.
        return unsafe { sys::call(libc::SYS_semtimedop, a) }.map(|answer| answer as i32);
    };
    // SAFETY: the caller's promise; any bytes are a timespec.
    let timeout = if timeout.is_null() { None } else { Some(unsafe { user::read(timeout) }?) };
    let number = number as u32; // As the kernel does.
    if number > config.semopm {
        return Err(libc::E2BIG);
    }
    let mut copy = [const { MaybeUninit::<Op>::uninit() }; MOST_OPS];
    let copy = &mut copy[..(number as usize).min(MOST_OPS)];
    // SAFETY: the caller's promise; any bytes are an operation.
    unsafe { user::read_all(ops, copy) }?;
    // SAFETY: all of them were just written.
    let ops = unsafe { &*(core::ptr::from_ref(copy) as *const [Op]) };
    if ops.is_empty() || id < 0 {
        return Err(libc::EINVAL);
    }
    let is_valid = |limit: &libc::timespec| limit.tv_sec >= 0 && (0..1_000_000_000).contains(&limit.tv_nsec);
    if timeout.as_ref().is_some_and(|limit| !is_valid(limit)) {
        return Err(libc::EINVAL);
    }
    let array = find(id, ops)?;
    if let ([op], true) = (ops, config.strict)
        && let Some(answer) = single(id, *op)
    {
        return answer;
    }
    let nanoseconds = timeout.map(|limit| {
        (limit.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(limit.tv_nsec as u64)
    });
    perform::set(array, ops, nanoseconds)
}

/// The array, once all that is wrong with the call has been said.
fn find(id: i32, ops: &[Op]) -> Answer<&'static Array> {
    let alters = ops.iter().any(|op| op.op != 0);
    let most = ops.iter().map(|op| u32::from(op.num)).max().unwrap_or(0);
    let array = match attach(id as u32) {
        Err(libc::EACCES) => {
            let nsems = registry::get()?.semaphores_of(id as u32).ok_or(libc::EINVAL)?;
            return Err(if most >= nsems { libc::EFBIG } else { libc::EACCES });
        }
        answer => answer?,
    };
    if most >= array.nsems {
        return Err(libc::EFBIG);
    }
    if access::check(array, alters) { Ok(array) } else { array.unless_blank(Err(libc::EACCES)) }
}
