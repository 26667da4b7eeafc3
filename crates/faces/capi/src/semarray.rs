//! `ulocks_semarray_t`: SemArray of this family.

use crate::call;
use core::ffi::c_int;
use core::slice;
use core::time::Duration;
use libc::{size_t, timespec};
use ulocks_core::errno::Guard;
use ulocks_semarray::{Builder, Error, Fairness, Op, SemArray, Set, Wait};

/// Semaphores on which sets of operations take effect all at one moment, or not at all: those of
/// semop, in user space, for the threads of one process.
///
/// ulocks_semarray_create makes an array, ulocks_semarray_destroy frees it. A value is from 0 to a
/// limit. The operations of a set are looked at in their order, and each sees what the earlier ones
/// did. A set that fails has changed nothing. Sets of more than eight operations allocate, and so
/// may waits.
///
/// Errors, as those of semop but for EBUSY:
///
/// | number | why |
/// |---|---|
/// | EBUSY | the set cannot be performed now, and the call or the operation does not wait |
/// | ETIMEDOUT | the moment has passed |
/// | EINTR | a signal handler ran in an interruptible wait |
/// | ERANGE | a value would be greater than the limit |
/// | EFBIG | there is no semaphore of that index |
/// | E2BIG | the set has too many operations |
/// | EIDRM | the array was closed |
/// | EINVAL | a null pointer, flags that do not exist, a number of values that is not the array's |
pub struct ulocks_semarray_t(SemArray);

/// One operation of a set.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ulocks_semop_t {
    /// The semaphore, from 0 on.
    pub index: u32,
    /// Greater than 0: added to the value. Less than 0: subtracted, when the value is great enough.
    /// 0: waits until the value is 0.
    pub change: i32,
    /// 0 or ULOCKS_SEMOP_NOWAIT.
    pub flags: u32,
}

/// The set fails with EBUSY if it stops at this operation.
pub const ULOCKS_SEMOP_NOWAIT: u32 = 1;

/// An arriving set is tried first, past those that wait: as semop on Linux.
pub const ULOCKS_SEMARRAY_BARGING: u32 = 0;
/// A set that has waited for `strict_after_ns` stops later sets from taking what it needs.
pub const ULOCKS_SEMARRAY_STRICT: u32 = 1;

/// How an array is made. All bytes zero has the defaults.
#[repr(C)]
pub struct ulocks_semarray_options_t {
    /// The greatest value of a semaphore: 134217727 at most. 0 is the default, 32767.
    pub limit: u32,
    /// The most operations of a set. 0 is the default, 500.
    pub max_ops: u32,
    /// ULOCKS_SEMARRAY_BARGING or ULOCKS_SEMARRAY_STRICT.
    pub fairness: u32,
    /// Zero.
    pub reserved: u32,
    /// For how many nanoseconds sets may pass another one, if fairness is strict.
    pub strict_after_ns: u64,
}

/// The most semaphores of an array.
pub const ULOCKS_SEMARRAY_MOST: u32 = 1_048_576;

fn number(error: Error) -> c_int {
    match error {
        Error::WouldBlock => libc::EBUSY,
        Error::TimedOut => libc::ETIMEDOUT,
        Error::Interrupted => libc::EINTR,
        Error::ValueOutOfRange { .. } => libc::ERANGE,
        Error::IndexOutOfRange { .. } => libc::EFBIG,
        Error::SetTooLong { .. } => libc::E2BIG,
        Error::Closed => libc::EIDRM,
        _ => libc::EINVAL,
    }
}

fn code(result: Result<(), Error>) -> c_int {
    result.map_or_else(number, |()| 0)
}

/// # Safety
/// `array` comes from `ulocks_semarray_create`, and lives as long as the caller uses what this
/// returns.
unsafe fn of<'a>(array: *const ulocks_semarray_t) -> &'a SemArray {
    // SAFETY: the caller's promise.
    unsafe { &(*array).0 }
}

/// The values at a pointer, or none if that is null and there should be some.
///
/// # Safety
/// `start` is null or points to `count` values, which do not change while the caller uses them.
unsafe fn slice_of<'a, T>(start: *const T, count: size_t) -> Option<&'a [T]> {
    match (count, start.is_null()) {
        (0, _) => Some(&[]),
        (_, true) => None,
        // SAFETY: the caller's promise, and not null.
        _ => Some(unsafe { slice::from_raw_parts(start, count) }),
    }
}

fn op(of: &ulocks_semop_t) -> Result<Op, c_int> {
    if of.flags & !ULOCKS_SEMOP_NOWAIT != 0 {
        return Err(libc::EINVAL);
    }
    let (index, amount) = (of.index as usize, of.change.unsigned_abs());
    let op = match of.change {
        0 => Op::wait_zero(index),
        1.. => Op::add(index, amount),
        _ => Op::sub(index, amount),
    };
    Ok(if of.flags & ULOCKS_SEMOP_NOWAIT != 0 { op.no_wait() } else { op })
}

/// Performs a C program's set in the way of `perform`.
///
/// # Safety
/// `ops` is null or points to `count` operations.
unsafe fn with_set(
    ops: *const ulocks_semop_t,
    count: size_t,
    most: usize,
    perform: impl FnOnce(&[Op]) -> Result<(), Error>,
) -> c_int {
    if count > most {
        return libc::E2BIG;
    }
    // SAFETY: the caller's promise.
    let Some(ops) = (unsafe { slice_of(ops, count) }) else { return libc::EINVAL };
    match ops.iter().map(op).collect::<Result<Set, c_int>>() {
        Ok(set) => code(perform(&set)),
        Err(error) => error,
    }
}

/// Makes an array of `count` semaphores with these values. Without values they are all 0, without
/// options the options are the defaults.
///
/// Returns 0; ERANGE: a value is greater than the limit; EINVAL: the options are not possible, or
/// more than ULOCKS_SEMARRAY_MOST semaphores, or `array` is a null pointer. If there is no memory,
/// the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_create(
    count: size_t,
    values: *const u32,
    options: *const ulocks_semarray_options_t,
    array: *mut *mut ulocks_semarray_t,
) -> c_int {
    let _errno = Guard::new();
    if array.is_null() || count > ULOCKS_SEMARRAY_MOST as usize {
        return libc::EINVAL;
    }
    let mut builder = if values.is_null() {
        Builder::new(count)
    } else {
        // SAFETY: the caller's promise, and not null.
        Builder::with_values(unsafe { slice::from_raw_parts(values, count) })
    };
    // SAFETY: the caller's promise.
    if let Some(options) = unsafe { options.as_ref() } {
        let after = Duration::from_nanos(options.strict_after_ns);
        builder = builder.fairness(match options.fairness {
            _ if options.reserved != 0 => return libc::EINVAL,
            ULOCKS_SEMARRAY_BARGING => Fairness::Barging,
            ULOCKS_SEMARRAY_STRICT => Fairness::Strict { after },
            _ => return libc::EINVAL,
        });
        if options.limit != 0 {
            builder = builder.limit(options.limit);
        }
        if options.max_ops != 0 {
            builder = builder.max_ops(options.max_ops as usize);
        }
    }
    match builder.build() {
        Ok(made) => {
            // SAFETY: the caller's promise, and not null.
            unsafe { array.write(Box::into_raw(Box::new(ulocks_semarray_t(made)))) };
            0
        }
        Err(error) => number(error),
    }
}

/// Frees the array. No thread may be inside of one of its functions. A null pointer is ignored.
/// Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_destroy(array: *mut ulocks_semarray_t) -> c_int {
    let _errno = Guard::new();
    if !array.is_null() {
        // SAFETY: the caller's promise: it comes from `ulocks_semarray_create`, and is freed once.
        drop(unsafe { Box::from_raw(array) });
    }
    0
}

/// Performs a set of operations, and waits as long as that takes.
///
/// Returns 0, or an error of ulocks_semarray_t; EBUSY: it stopped at an operation with
/// ULOCKS_SEMOP_NOWAIT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_apply(
    array: *mut ulocks_semarray_t,
    ops: *const ulocks_semop_t,
    count: size_t,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    let array = unsafe { of(array) };
    // SAFETY: the caller's promise.
    unsafe { with_set(ops, count, array.raw().max_ops(), |set| array.apply(set)) }
}

/// Performs a set of operations if that needs no waiting.
///
/// Returns 0, or an error of ulocks_semarray_t; EBUSY: it would have to wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_tryapply(
    array: *mut ulocks_semarray_t,
    ops: *const ulocks_semop_t,
    count: size_t,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    let array = unsafe { of(array) };
    // SAFETY: the caller's promise.
    unsafe { with_set(ops, count, array.raw().max_ops(), |set| array.try_apply(set)) }
}

/// As ulocks_semarray_apply, or gives up at a moment. It tries at least once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_apply_until(
    array: *mut ulocks_semarray_t,
    ops: *const ulocks_semop_t,
    count: size_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    let deadline = match unsafe { call::deadline(monotonic_deadline) } {
        Ok(deadline) => deadline,
        Err(error) => return error,
    };
    // SAFETY: the caller's promise.
    let array = unsafe { of(array) };
    // SAFETY: the caller's promise.
    unsafe { with_set(ops, count, array.raw().max_ops(), |set| array.apply_until(set, deadline)) }
}

/// As ulocks_semarray_apply_until, or without a moment as ulocks_semarray_apply. But a signal
/// handler that runs while the set sleeps ends the wait.
///
/// Returns what those do; EINTR: a signal handler ran.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_apply_interruptible(
    array: *mut ulocks_semarray_t,
    ops: *const ulocks_semop_t,
    count: size_t,
    monotonic_deadline: *const timespec,
) -> c_int {
    let _errno = Guard::new();
    let mut deadline = None;
    if !monotonic_deadline.is_null() {
        // SAFETY: the caller's promise.
        deadline = match unsafe { call::deadline(monotonic_deadline) } {
            Ok(deadline) => Some(deadline),
            Err(error) => return error,
        };
    }
    // SAFETY: the caller's promise.
    let array = unsafe { of(array) }.raw();
    let perform = |set: &[Op]| array.apply(set, Wait::Interruptible(deadline));
    // SAFETY: the caller's promise.
    unsafe { with_set(ops, count, array.max_ops(), perform) }
}

/// Undoes the changes of a set, and never waits. A value that would fall below 0 becomes 0, one
/// that would exceed the limit becomes the limit.
///
/// Returns 0, or EFBIG, E2BIG, EIDRM or EINVAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_give_back(
    array: *mut ulocks_semarray_t,
    ops: *const ulocks_semop_t,
    count: size_t,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    let array = unsafe { of(array) }.raw();
    // SAFETY: the caller's promise.
    unsafe { with_set(ops, count, array.max_ops(), |set| array.give_back(set)) }
}

/// Writes the value of a semaphore at this moment.
///
/// Returns 0; EFBIG: there is no such semaphore; EINVAL: a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_value(
    array: *const ulocks_semarray_t,
    index: u32,
    value: *mut u32,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    match unsafe { of(array) }.value(index as usize) {
        Ok(_) if value.is_null() => libc::EINVAL,
        Ok(found) => {
            // SAFETY: the caller's promise, and not null.
            unsafe { value.write(found) };
            0
        }
        Err(error) => number(error),
    }
}

/// Writes all values, as they are at one moment. `count` is how many semaphores there are.
///
/// Returns 0; EINVAL: another number, or a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_values(
    array: *const ulocks_semarray_t,
    count: size_t,
    values: *mut u32,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    let array = unsafe { of(array) };
    if count != array.len() || values.is_null() {
        return libc::EINVAL;
    }
    let found = array.values();
    // SAFETY: the caller's promise: room for `count` values, which is how many were found. They
    // were allocated here, and do not overlap.
    unsafe { values.copy_from_nonoverlapping(found.as_ptr(), count) };
    0
}

/// Gives a semaphore a value, and performs the waiting sets that can proceed then.
///
/// Returns 0, or EFBIG, ERANGE or EIDRM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_set(array: *mut ulocks_semarray_t, index: u32, value: u32) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    code(unsafe { of(array) }.set(index as usize, value))
}

/// Gives all semaphores values at one moment, and performs the waiting sets that can proceed then.
/// `count` is how many semaphores there are.
///
/// Returns 0, or ERANGE, EIDRM or EINVAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_set_all(
    array: *mut ulocks_semarray_t,
    count: size_t,
    values: *const u32,
) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    let array = unsafe { of(array) };
    if count != array.len() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { slice_of(values, count) } {
        Some(values) => code(array.set_all(values)),
        None => libc::EINVAL,
    }
}

/// Writes how many sets wait at a semaphore at this moment: until its value is greater, and until
/// it is 0.
///
/// Returns 0; EFBIG: there is no such semaphore; EINVAL: a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_waiters(
    array: *const ulocks_semarray_t,
    index: u32,
    increase: *mut u32,
    zero: *mut u32,
) -> c_int {
    let _errno = Guard::new();
    if increase.is_null() || zero.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { of(array) }.waiters(index as usize) {
        Ok(found) => {
            // SAFETY: the caller's promise, and not null.
            unsafe {
                increase.write(u32::try_from(found.increase).unwrap_or(u32::MAX));
                zero.write(u32::try_from(found.zero).unwrap_or(u32::MAX));
            }
            0
        }
        Err(error) => number(error),
    }
}

/// How many semaphores there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_count(array: *const ulocks_semarray_t) -> size_t {
    // SAFETY: the caller's promise.
    unsafe { of(array) }.len()
}

/// Closes the array: sets that wait, and later ones, return EIDRM. It is not freed. Returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_close(array: *mut ulocks_semarray_t) -> c_int {
    let _errno = Guard::new();
    // SAFETY: the caller's promise.
    unsafe { of(array) }.close();
    0
}

/// Whether the array was closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_semarray_is_closed(array: *const ulocks_semarray_t) -> bool {
    // SAFETY: the caller's promise.
    unsafe { of(array) }.is_closed()
}
