//! Actions of signals: `sigaction` and its kin, with [`on_signal`](super::on_signal) in the place
//! of each handler.
//!
//! The kernel has the program's action, but for the handler, `SA_SIGINFO`, which is always there,
//! and `SA_RESETHAND`, which never is. The table has these three. What the program asks for its
//! action, it gets back as it was.
//!
//! # Invariants
//! 1. An entry is written before the kernel has the action, so a handler finds one. It stays when
//!    the program chooses the default or none, for a handler may be on its way.
//! 2. A thread that changes an action has the turn, and all its signals blocked; so does a handler
//!    that resets one. A turn whose owner is not a thread of this process was copied by fork, and
//!    is free.
//! 3. Without a handler of the program, SIGBUS has this one once [`guard`] was called. Then the
//!    table has the program's choice.
//!
//! A child of `vfork` has its parent's memory. The C library keeps the number of each thread, which
//! in a child of fork is the child's, and in one of `vfork` the parent's. So the child is known by
//! it. Its calls go to the C library as they are, and fill no memory that its parent would find. A
//! child of a bare `fork` or `clone` looks the same until its first call with an array.

use super::on_signal;
use crate::{process, sys};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

/// The C library's structure.
pub type Action = libc::sigaction;

/// The highest number of a signal.
const SIGNALS: usize = 64;
/// By number: the handler's address, and flags.
static TABLE: [AtomicU64; SIGNALS + 1] = [const { AtomicU64::new(0) }; SIGNALS + 1];
/// The handler wants to know more than the signal.
const INFO: u64 = 1 << 63;
/// The handler is to be called once.
const ONCE: u64 = 1 << 62;
/// The handler runs on the alternate stack, which the program did not ask for.
const MOVED: u64 = 1 << 61;
const ADDRESS: u64 = (1 << 56) - 1;

/// Signals after which `siginterrupt` has asked that calls end.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);
static IS_GUARDED: AtomicBool = AtomicBool::new(false);

/// Invariant 2. The owner's thread, or 0.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The right to change actions. One thread has it at a time.
struct Turn {
    mask: u64,
}

impl Turn {
    fn take() -> Self {
        let (mask, mine) = (sys::block_all(), ulocks_core::tid::current());
        loop {
            match OWNER.compare_exchange(0, mine, Acquire, Relaxed) {
                Ok(_) => return Self { mask },
                // Of the process that this one was forked from.
                Err(other) if other == mine || !sys::exists(sys::process(), other) => {
                    let _ = OWNER.compare_exchange(other, 0, Relaxed, Relaxed);
                }
                // It may be preempted by this thread.
                Err(other) => spin::outlast(|| OWNER.load(Relaxed) != other),
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        OWNER.store(0, Release);
        sys::set_mask(self.mask);
    }
}

fn ours() -> usize {
    on_signal as *const () as usize
}

/// The C library's `sigaction`.
///
/// # Safety
/// As that function.
unsafe fn real(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    type Function = unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int;
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let mut address = REAL.load(Acquire);
    if address.is_null() {
        // SAFETY: the name is a C string.
        address = unsafe { libc::dlsym(libc::RTLD_NEXT, c"sigaction".as_ptr()) };
        REAL.store(address, Release);
    }
    if address.is_null() {
        return sys::fail(libc::ENOSYS);
    }
    // SAFETY: the address is that of the function of this name, whose type this is.
    let function = unsafe { core::mem::transmute::<*mut c_void, Function>(address) };
    // SAFETY: the caller's promise.
    unsafe { function(signal, new, old) }
}

/// What the program has set, of the kernel's action and the entry that was there.
fn translated(mut action: Action, entry: u64) -> Action {
    if action.sa_sigaction == ours() {
        action.sa_sigaction = (entry & ADDRESS) as usize;
        action.sa_flags &= !libc::SA_SIGINFO;
        action.sa_flags |= if entry & INFO != 0 { libc::SA_SIGINFO } else { 0 };
        action.sa_flags |= if entry & ONCE != 0 { libc::SA_RESETHAND } else { 0 };
        action.sa_flags &= if entry & MOVED != 0 { !libc::SA_ONSTACK } else { !0 };
    }
    action
}

/// Gives the kernel an action, or asks for the one that it has: what the program had set, or what
/// the C library says.
///
/// # Safety
/// The handler has the type that the flags say.
unsafe fn exchange(_: &Turn, signal: c_int, mut new: Option<Action>) -> Result<Action, c_int> {
    let Some(place) = usize::try_from(signal).ok().and_then(|signal| TABLE.get(signal)) else {
        sys::fail(libc::EINVAL);
        return Err(-1);
    };
    let entry = place.load(Relaxed);
    if let Some(action) = &mut new {
        let is_handler = !is_none(action);
        if is_handler || (signal == libc::SIGBUS && IS_GUARDED.load(Relaxed)) {
            let flags = action.sa_flags;
            let info = if flags & libc::SA_SIGINFO != 0 { INFO } else { 0 };
            let once = if flags & libc::SA_RESETHAND != 0 { ONCE } else { 0 };
            // A handler of the program says itself where it can run.
            let moved = if is_handler || flags & libc::SA_ONSTACK != 0 { 0 } else { MOVED };
            place.store(action.sa_sigaction as u64 | info | once | moved, Release); // Invariant 1.
            action.sa_sigaction = ours();
            action.sa_flags = flags & !libc::SA_RESETHAND | libc::SA_SIGINFO;
            action.sa_flags |= if moved != 0 { libc::SA_ONSTACK } else { 0 };
        }
    }
    let given = new.as_ref().map_or(null(), core::ptr::from_ref);
    let mut before = MaybeUninit::<Action>::uninit();
    // SAFETY: both structures are borrowed; the caller's promise for the handler, which ours keeps.
    let answer = unsafe { real(signal, given, before.as_mut_ptr()) };
    if answer != 0 {
        place.store(entry, Release);
        return Err(answer);
    }
    // SAFETY: the call has written it.
    Ok(translated(unsafe { before.assume_init() }, entry))
}

fn is_none(action: &Action) -> bool {
    matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

/// Whether the caller is the child of a `vfork`. It asks for no number that would be kept.
fn is_vfork() -> bool {
    let mut clock = 0;
    // SAFETY: the thread is the calling one, so it lives; the place is borrowed.
    let answer = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    // The kernel's name for the clock of a thread has the inverted number above three bits.
    let kept = !(clock >> 3) as u32;
    let is_other = answer != 0 || kept != sys::thread();
    is_other && process::known() != Some(sys::process())
}

/// `sigaction`.
///
/// # Safety
/// As the C library's function.
pub unsafe fn set(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    if is_vfork() {
        // SAFETY: the caller's promise.
        return unsafe { real(signal, new, old) };
    }
    // Before the turn, for a bad pointer is the program's own fault.
    // SAFETY: the caller's promise.
    let new = if new.is_null() { None } else { Some(unsafe { new.read() }) };
    let turn = Turn::take();
    // SAFETY: the caller's promise.
    let before = unsafe { exchange(&turn, signal, new) };
    drop(turn);
    match before {
        // SAFETY: the caller's promise.
        Ok(before) if !old.is_null() => unsafe { old.write(before) },
        Ok(_) => {}
        Err(answer) => return answer,
    }
    0
}

/// `signal` and its kin: the handler before, or SIG_ERR.
///
/// # Safety
/// As the C library's function.
pub unsafe fn set_by_name(signal: c_int, handler: usize, flags: c_int) -> usize {
    if handler == libc::SIG_ERR || !(1..=SIGNALS as c_int).contains(&signal) {
        sys::fail(libc::EINVAL);
        return libc::SIG_ERR;
    }
    // SAFETY: all-zero is a valid value of these integers.
    let mut action: Action = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    if flags & libc::SA_RESTART != 0 {
        // SAFETY: the set is borrowed, and the number is that of a signal.
        unsafe { libc::sigaddset(&raw mut action.sa_mask, signal) };
        if INTERRUPTS.load(Relaxed) & 1 << (signal - 1) != 0 {
            action.sa_flags &= !libc::SA_RESTART;
        }
    }
    let mut old = MaybeUninit::<Action>::uninit();
    // SAFETY: the action is complete; the place is borrowed.
    if unsafe { set(signal, &raw const action, old.as_mut_ptr()) } != 0 {
        return libc::SIG_ERR;
    }
    // SAFETY: the call has written it.
    unsafe { old.assume_init() }.sa_sigaction
}

/// `sigset`: the handler before, or that the signal was blocked.
///
/// # Safety
/// As the C library's function.
pub unsafe fn set_and_let_in(signal: c_int, handler: usize) -> usize {
    const HOLD: usize = 2;
    if !(1..=SIGNALS as c_int).contains(&signal) {
        sys::fail(libc::EINVAL);
        return libc::SIG_ERR;
    }
    let bit = 1_u64 << (signal - 1);
    let former = if handler == HOLD {
        get(signal).map_or(libc::SIG_ERR, |action| action.sa_sigaction)
    } else {
        // SAFETY: the caller's promise.
        unsafe { set_by_name(signal, handler, 0) }
    };
    if former == libc::SIG_ERR {
        return former;
    }
    let how = if handler == HOLD { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    let was_blocked = sys::change_mask(how, bit) & bit != 0;
    if was_blocked { HOLD } else { former }
}

/// What the program has set.
fn get(signal: c_int) -> Option<Action> {
    let mut action = MaybeUninit::<Action>::uninit();
    // SAFETY: the place is borrowed.
    let answer = unsafe { set(signal, null(), action.as_mut_ptr()) };
    // SAFETY: the call has written it.
    (answer == 0).then(|| unsafe { action.assume_init() })
}

/// `siginterrupt`.
pub fn interrupt(signal: c_int, ends: bool) -> c_int {
    let Some(mut action) = get(signal) else { return -1 };
    let bit = 1 << (signal - 1);
    if ends {
        INTERRUPTS.fetch_or(bit, Relaxed);
        action.sa_flags &= !libc::SA_RESTART;
    } else {
        INTERRUPTS.fetch_and(!bit, Relaxed);
        action.sa_flags |= libc::SA_RESTART;
    }
    // SAFETY: the action is the one that was there.
    unsafe { set(signal, &raw const action, null_mut()) }
}

/// Looks the C library's function up, which a handler should not do first.
pub fn resolve() {
    let _errno = ulocks_core::errno::Guard::new();
    // SAFETY: a number that no signal has; nothing is read or written.
    unsafe { real(-1, null(), null_mut()) };
}

/// Before the first section: takes handlers over that the program has installed by bare system
/// calls, and installs one of SIGBUS. A thread that returns has it, unless the kernel refused. If a
/// signal has an entry already, the handler of the bare call may call ours: it stays as it is.
pub fn guard() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if IS_DONE.load(Acquire) {
        return;
    }
    let turn = Turn::take();
    IS_GUARDED.store(true, Relaxed);
    for signal in 1..=SIGNALS as c_int {
        let mut action = MaybeUninit::<Action>::uninit();
        // SAFETY: the place is borrowed.
        if unsafe { real(signal, null(), action.as_mut_ptr()) } != 0 {
            continue; // The C library's own.
        }
        // SAFETY: the call has written it.
        let action = unsafe { action.assume_init() };
        let is_new = TABLE.get(signal as usize).is_some_and(|place| place.load(Relaxed) & ADDRESS == 0);
        let is_wanted = if is_none(&action) { signal == libc::SIGBUS } else { is_new };
        if action.sa_sigaction != ours() && is_wanted {
            // SAFETY: the action is the one that is there.
            let _ = unsafe { exchange(&turn, signal, Some(action)) };
        }
    }
    IS_DONE.store(true, Release);
}

/// Whether the program has a handler of the signal.
pub fn has_handler(signal: c_int) -> bool {
    let entry = TABLE.get(signal as usize).map_or(0, |place| place.load(Acquire));
    entry & ADDRESS > libc::SIG_IGN as u64
}

/// Does what would be done if the kernel had the program's action.
pub fn call(signal: c_int, is_fault: bool, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(place) = TABLE.get(signal as usize) else { return };
    let entry = place.load(Acquire);
    let default = || {
        let _turn = (!is_vfork()).then(Turn::take);
        let mut action = MaybeUninit::<Action>::uninit();
        // SAFETY: the place is borrowed.
        if unsafe { real(signal, null(), action.as_mut_ptr()) } == 0 {
            // SAFETY: the call has written it.
            let action = unsafe { action.assume_init() };
            if action.sa_sigaction == ours() && place.load(Relaxed) == entry {
                let action = Action { sa_sigaction: libc::SIG_DFL, ..translated(action, entry) };
                // SAFETY: the default action needs no handler.
                unsafe { real(signal, &raw const action, null_mut()) };
            } // Otherwise the program has chosen meanwhile, and its choice holds.
        }
    };
    if entry & ONCE != 0 && entry & ADDRESS > libc::SIG_IGN as u64 {
        // As the kernel does before it calls such a handler.
        if signal == libc::SIGBUS && IS_GUARDED.load(Relaxed) {
            let _ = place.compare_exchange(entry, entry & !ADDRESS, AcqRel, Relaxed);
        } else {
            default();
        }
    }
    match (entry & ADDRESS) as usize {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_IGN | libc::SIG_DFL => {
            default();
            if !is_fault {
                sys::send_to_self(signal); // It comes when the handler returns, as a fault does.
            }
        }
        handler if entry & INFO != 0 => {
            // SAFETY: the program has given its handler this type, by the flag.
            let handler: extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { core::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: as above, without the flag.
            let handler: extern "C-unwind" fn(c_int) = unsafe { core::mem::transmute(handler) };
            handler(signal);
        }
    }
}
