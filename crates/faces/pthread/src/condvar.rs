//! `pthread_cond_t`: the family's condition variable.
//!
//! # Layout
//! | bytes | what |
//! |---|---|
//! | 0 to 15 | the condition variable |
//! | where glibc has `__wrefs` | bit 0: process-shared; bit 1: the clock is `CLOCK_MONOTONIC`; from bit 3 on: the threads inside of a wait. As in glibc |
//!
//! So a notification that finds none of these but the clock has nobody to notify, whether the
//! condition variable is ours or glibc's.
//!
//! glibc has moved `__wrefs` from one version to another, so it is found by a trial: a
//! process-shared condition variable of glibc has that bit set and no other.
//!
//! # What is passed on to glibc
//! Process-shared condition variables: another process may run without this library. If the mutex
//! of a wait is not glibc's then, glibc cannot release it. The wait *relays*: it holds a mutex of
//! glibc's, the guard, from before it releases the program's mutex until glibc's wait has begun.
//! Each notification of this process takes the guard once, so it comes before or after both.
//!
//! # Cancellation
//! A thread sleeps in `wait.c`. If it is cancelled there, it leaves the condition variable, passes
//! on a notification that was meant for it, and acquires the mutex for its cleanup handlers.
//!
//! # Destruction
//! `pthread_cond_destroy` may be called when all waiters have been notified, and before they have
//! returned. It waits until the last of them is past the condition variable, and wakes those that
//! sleep on the mutex, since the caller may hold it.

use crate::choice::{Algorithm, Choice};
use crate::mutex::Waitable;
use crate::time::{self, clock_of};
use crate::{fork, glibc};
use core::ffi::c_int;
use core::mem::{self, MaybeUninit};
use core::ptr;
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use ulocks_core::condvar::{RawCondvar, Waiting, Wakeup, Woken};
use ulocks_core::futex::Waited;
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, AtomicUsize};
use ulocks_core::time::Clock;

#[repr(C, align(8))]
struct Condvar {
    condvar: RawCondvar<Waitable>,
    // The rest, up to the flags, is not used.
}

const _: () = assert!(size_of::<Condvar>() == 16);

const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;
/// One thread inside of a wait.
const INSIDE: u32 = 8;

/// The offset of the flags; zero until it is known.
static FLAGS: AtomicUsize = AtomicUsize::new(0);

#[cold]
fn find_flags() -> usize {
    let words = || -> [u32; size_of::<pthread_cond_t>() / 4] {
        let mut attributes = MaybeUninit::<pthread_condattr_t>::uninit();
        let mut trial = MaybeUninit::<pthread_cond_t>::zeroed();
        // SAFETY: both are initialised by the functions for that, in this order, and are plain
        // bytes. A condition variable without waiters need not be destroyed.
        unsafe {
            libc::pthread_condattr_init(attributes.as_mut_ptr());
            libc::pthread_condattr_setpshared(attributes.as_mut_ptr(), libc::PTHREAD_PROCESS_SHARED);
            glibc::pthread_cond_init(trial.as_mut_ptr(), attributes.as_ptr());
            libc::pthread_condattr_destroy(attributes.as_mut_ptr());
            mem::transmute(trial)
        }
    };
    let found = words().iter().position(|&word| word & SHARED != 0).map(|index| index * 4);
    // Elsewhere the condition variables of this process would be taken for shared, or the reverse.
    let offset = found.filter(|&offset| offset >= size_of::<Condvar>()).unwrap_or(36);
    FLAGS.store(offset, Relaxed);
    offset
}

impl Condvar {
    /// # Safety
    /// `condvar` points to a `pthread_cond_t` that is initialised, and lives as long as the caller
    /// uses what this returns.
    unsafe fn at<'a>(condvar: *mut pthread_cond_t) -> &'a Self {
        // SAFETY: the caller's promise. The layout is smaller and no stricter aligned.
        unsafe { &*condvar.cast() }
    }

    fn address(&self) -> *mut pthread_cond_t {
        ptr::from_ref(self).cast_mut().cast()
    }

    fn flags(&self) -> &AtomicU32 {
        let offset = match FLAGS.load(Relaxed) {
            0 => find_flags(),
            offset => offset,
        };
        // SAFETY: it comes from `find_flags`.
        unsafe { self.flags_at(offset) }
    }

    /// # Safety
    /// `offset` comes from `find_flags`.
    #[inline(always)]
    unsafe fn flags_at(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside of the `pthread_cond_t`, behind this type's field, and aligned.
        unsafe { &*self.address().cast::<u8>().add(offset).cast() }
    }

    fn is_shared(&self) -> bool {
        self.flags().load(Relaxed) & SHARED != 0
    }

    fn clock(&self) -> Clock {
        if self.flags().load(Relaxed) & MONOTONIC != 0 { Clock::Monotonic } else { Clock::Realtime }
    }
}

/// A wait, as `wait.c` sees it.
#[repr(C)]
pub struct Wait {
    condvar: *const Condvar,
    mutex: *const Waitable,
    word: *const u32,
    expected: u32,
    bits: u32,
    deadline: *const timespec,
    is_realtime: c_int,
    reserved: c_int,
    slept: unsafe extern "C" fn(*mut Wait, c_int),
    cancelled: unsafe extern "C" fn(*mut Wait),
    waiting: MaybeUninit<Waiting>,
    rest: [u8; 32 - size_of::<Waiting>()],
}

// The C side sees the wait and the relay by address only.
#[allow(improper_ctypes)]
unsafe extern "C-unwind" {
    fn ulocks_cond_sleep(wait: *mut Wait);
    fn ulocks_relay_wait(
        relay: *mut Relay,
        call: unsafe extern "C-unwind" fn(*mut Relay) -> c_int,
        end: unsafe extern "C" fn(*mut Relay),
    ) -> c_int;
    /// As in the libc crate, but it unwinds.
    pub fn pthread_testcancel();
}

impl Wait {
    /// What to sleep on next.
    fn aim(&mut self) {
        // SAFETY: the condition variable lives until this thread has left it, and `waiting` is
        // initialised until `end`.
        let sleep = unsafe { (*self.condvar).condvar.sleep(self.waiting.assume_init_ref()) };
        match sleep {
            Some(sleep) => {
                self.word = ptr::with_exposed_provenance(sleep.address);
                (self.expected, self.bits) = (sleep.expected, sleep.bits);
            }
            None => self.word = ptr::null(),
        }
    }

    /// Leaves the condition variable by `end`, and acquires the mutex: what that returned, and
    /// whether the wait was notified.
    ///
    /// # Safety
    /// It is the last call.
    unsafe fn end(&mut self, end: impl FnOnce(&RawCondvar<Waitable>, Waiting) -> Woken) -> (c_int, Wakeup) {
        // SAFETY: as in `aim`; `waiting` is moved out by the last call.
        let (condvar, mutex, waiting) =
            unsafe { (&*self.condvar, &*self.mutex, self.waiting.assume_init_read()) };
        let woken = end(&condvar.condvar, waiting);
        // Release: pairs with the Acquire of `pthread_cond_destroy`. The last touch.
        condvar.flags().fetch_sub(INSIDE, Release);
        let result = if woken.requeued { mutex.lock_requeued() } else { mutex.lock() };
        mutex.remove_sleeper();
        (result, woken.wakeup)
    }
}

/// # Safety
/// For `wait.c` only, with the wait that `ulocks_cond_sleep` was given.
unsafe extern "C" fn slept(wait: *mut Wait, error: c_int) {
    let waited = match error {
        0 => Waited::Woken,
        libc::EAGAIN => Waited::Mismatch,
        libc::ETIMEDOUT => Waited::TimedOut,
        libc::EINTR => Waited::Interrupted,
        error => refused(error),
    };
    // SAFETY: the caller's promise; the condition variable lives until this thread has left it.
    unsafe {
        let wait = &mut *wait;
        (*wait.condvar).condvar.slept(wait.waiting.assume_init_mut(), waited);
        wait.aim();
    }
}

/// # Safety
/// For `wait.c` only, with the wait that `ulocks_cond_sleep` was given.
unsafe extern "C" fn cancelled(wait: *mut Wait) {
    // SAFETY: the caller's promise; the thread does not come back to the wait.
    _ = unsafe { (*wait).end(RawCondvar::cancel_wait) };
}

#[cold]
fn refused(error: c_int) -> ! {
    panic!(
        "pthread_cond_wait: the kernel refuses to let the thread sleep: {}; look for a seccomp filter that forbids futex",
        std::io::Error::from_raw_os_error(error)
    );
}

/// A wait on glibc's condition variable with a mutex that is not glibc's.
pub struct Relay {
    condvar: *mut pthread_cond_t,
    mutex: *const Waitable,
    deadline: *const timespec,
    clock: Option<clockid_t>,
    /// What acquiring the mutex returned.
    locked: c_int,
}

/// The guard: held from before the release of the program's mutex until glibc's wait has begun.
static mut GUARD: pthread_mutex_t = libc::PTHREAD_MUTEX_INITIALIZER;

/// Whether there was a relayed wait in this process. Set before the mutex is released, so a thread
/// that holds the mutex after that sees it.
static HAS_RELAYED: AtomicU32 = AtomicU32::new(0);

/// For the child of a fork: no thread of it is inside the guard.
pub fn forget() {
    if HAS_RELAYED.swap(0, Relaxed) != 0 {
        // SAFETY: the threads of the parent that use the guard are not in this process. The first
        // call in the child is before any use by this one.
        unsafe { (&raw mut GUARD).write(libc::PTHREAD_MUTEX_INITIALIZER) };
    }
}

/// # Safety
/// For `wait.c` only, with the relay that `ulocks_relay_wait` was given.
unsafe extern "C-unwind" fn relay_call(relay: *mut Relay) -> c_int {
    // SAFETY: the caller's promise, and that of the caller of `pthread_cond_wait`.
    unsafe {
        let Relay { condvar, deadline, clock, .. } = *relay;
        match clock {
            _ if deadline.is_null() => glibc::pthread_cond_wait(condvar, &raw mut GUARD),
            None => glibc::pthread_cond_timedwait(condvar, &raw mut GUARD, deadline),
            Some(clock) => glibc::pthread_cond_clockwait(condvar, &raw mut GUARD, clock, deadline),
        }
    }
}

/// # Safety
/// For `wait.c` and [`wait_relayed`] only, once, after glibc's wait.
unsafe extern "C" fn relay_end(relay: *mut Relay) {
    // SAFETY: glibc's wait ends with the guard held; the mutex lives as long as its waiters.
    unsafe {
        glibc::pthread_mutex_unlock(&raw mut GUARD);
        (*relay).locked = (*(*relay).mutex).lock();
        (*(*relay).mutex).remove_sleeper();
    }
}

unsafe fn wait_relayed(mut relay: Relay) -> c_int {
    // SAFETY: the caller of `pthread_cond_wait` holds the mutex.
    unsafe {
        let mutex = &*relay.mutex;
        mutex.add_sleeper();
        HAS_RELAYED.store(1, Relaxed);
        glibc::pthread_mutex_lock(&raw mut GUARD);
        mutex.unlock_to_wait(0);
        let result = ulocks_relay_wait(&raw mut relay, relay_call, relay_end);
        relay_end(&raw mut relay);
        if relay.locked == 0 { result } else { relay.locked }
    }
}

/// All three waits. `clock` is the one that the caller names.
///
/// # Safety
/// As `pthread_cond_clockwait`, if `deadline` is not null.
unsafe fn wait(
    address: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: Option<clockid_t>,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    let (condvar, mutex) = unsafe { (Condvar::at(address), &*mutex.cast::<Waitable>()) };
    let choice = Choice::get();
    let is_glibcs = mutex.0.is_passed_on(choice);
    // The first call in a child may be this one. The release below must find no waiter of the
    // parent, nor may the mutex be begun anew after the wait has counted itself there.
    if !is_glibcs && choice.is_forked() {
        fork::renew_mutex(&mutex.0, choice);
    }
    if choice.mutex() == Algorithm::Glibc || condvar.is_shared() {
        if !is_glibcs {
            let refused = mutex.check_owner();
            if refused != 0 {
                return refused;
            }
            // SAFETY: the caller's promise.
            return unsafe { wait_relayed(Relay { condvar: address, mutex, deadline, clock, locked: 0 }) };
        }
        let glibcs = ptr::from_ref(mutex).cast_mut().cast();
        // SAFETY: the caller's promise.
        return unsafe {
            match clock {
                _ if deadline.is_null() => glibc::pthread_cond_wait(address, glibcs),
                None => glibc::pthread_cond_timedwait(address, glibcs, deadline),
                Some(clock) => glibc::pthread_cond_clockwait(address, glibcs, clock, deadline),
            }
        };
    }
    let clock = match clock.map(clock_of) {
        None => condvar.clock(),
        Some(Some(clock)) => clock,
        Some(None) => return libc::EINVAL,
    };
    let mut until = None;
    if !deadline.is_null() {
        // SAFETY: the caller's promise.
        until = match unsafe { time::deadline(clock, deadline) } {
            Err(libc::EINVAL) => return libc::EINVAL,
            Err(_) => return time_out_at_once(mutex),
            Ok(until) => Some(until),
        };
    }
    match mutex.check_owner() {
        0 => {}
        error => return error,
    }
    // SAFETY: a plain call.
    unsafe { pthread_testcancel() };
    condvar.flags().fetch_add(INSIDE, Relaxed);
    mutex.add_sleeper();
    let mut wait = Wait {
        condvar,
        mutex,
        word: ptr::null(),
        expected: 0,
        bits: 0,
        deadline,
        is_realtime: c_int::from(clock == Clock::Realtime),
        reserved: 0,
        slept,
        cancelled,
        // SAFETY: the caller holds the mutex; the wait ends below, or in `cancelled`.
        waiting: MaybeUninit::new(unsafe { condvar.condvar.begin_wait(mutex, 0, until) }),
        rest: [0; _],
    };
    wait.aim();
    // SAFETY: the wait has begun and ends once.
    let (locked, wakeup) = unsafe {
        if !wait.word.is_null() {
            ulocks_cond_sleep(&raw mut wait);
        }
        wait.end(RawCondvar::end_wait)
    };
    match (locked, wakeup) {
        (0, Wakeup::TimedOut) => libc::ETIMEDOUT,
        (locked, _) => locked,
    }
}

/// The deadline is before the clock's zero. The mutex is released, as for any other wait.
fn time_out_at_once(mutex: &Waitable) -> c_int {
    match mutex.check_owner() {
        0 => {
            // SAFETY: the caller of `pthread_cond_timedwait` holds it.
            unsafe { mutex.unlock(0) };
            match mutex.lock() {
                0 => libc::ETIMEDOUT,
                error => error,
            }
        }
        error => error,
    }
}

/// # Safety
/// As `pthread_cond_init` of POSIX, and so for the functions below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_init(
    condvar: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    // SAFETY: the caller's promise. A null pointer stands for the default attributes.
    unsafe {
        let (mut shared, mut clock) = (libc::PTHREAD_PROCESS_PRIVATE, libc::CLOCK_REALTIME);
        if !attributes.is_null() {
            libc::pthread_condattr_getpshared(attributes, &raw mut shared);
            libc::pthread_condattr_getclock(attributes, &raw mut clock);
        }
        if Choice::get().mutex() == Algorithm::Glibc || shared == libc::PTHREAD_PROCESS_SHARED {
            return glibc::pthread_cond_init(condvar, attributes);
        }
        condvar.write_bytes(0, 1);
        if clock == libc::CLOCK_MONOTONIC {
            Condvar::at(condvar).flags().store(MONOTONIC, Relaxed);
        }
    }
    0
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_destroy(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    let this = unsafe { Condvar::at(condvar) };
    if Choice::get().mutex() == Algorithm::Glibc || this.is_shared() {
        // SAFETY: it is glibc's.
        return unsafe { glibc::pthread_cond_destroy(condvar) };
    }
    // Acquire: pairs with the Release of each waiter that leaves.
    while this.flags().load(Acquire) >= INSIDE {
        this.condvar.hurry();
        time::nap();
    }
    0
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_wait(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(condvar, mutex, None, ptr::null()) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(condvar, mutex, None, deadline) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_clockwait(
    condvar: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { wait(condvar, mutex, Some(clock), deadline) }
}

/// A notification of one waiter, or of all.
///
/// # Safety
/// As `pthread_cond_signal`.
#[inline(always)]
unsafe fn notify<const ALL: bool>(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    let this = unsafe { Condvar::at(condvar) };
    // A waiter counts itself before it releases the mutex. So a thread that has held the mutex
    // after that sees it, and for others there is no order between the wait and the notification.
    let offset = FLAGS.load(Relaxed);
    // SAFETY: if it is not zero, `find_flags` has stored it.
    if offset != 0 && unsafe { this.flags_at(offset) }.load(Relaxed) & !MONOTONIC == 0 {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { notify_waiters::<ALL>(condvar) }
}

/// The same if there may be waiters. A function of C does not unwind, so that its caller needs no
/// frame.
///
/// # Safety
/// As `pthread_cond_signal`.
#[inline(never)]
unsafe extern "C" fn notify_waiters<const ALL: bool>(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    let this = unsafe { Condvar::at(condvar) };
    if Choice::get().mutex() == Algorithm::Glibc || this.is_shared() {
        // SAFETY: the guard is glibc's, and so is the condition variable.
        return unsafe {
            if HAS_RELAYED.load(Relaxed) != 0 {
                glibc::pthread_mutex_lock(&raw mut GUARD);
                glibc::pthread_mutex_unlock(&raw mut GUARD);
            }
            if ALL { glibc::pthread_cond_broadcast(condvar) } else { glibc::pthread_cond_signal(condvar) }
        };
    }
    if ALL {
        this.condvar.notify_all();
    } else {
        this.condvar.notify_one();
    }
    0
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { notify::<false>(condvar) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(condvar: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { notify::<true>(condvar) }
}
