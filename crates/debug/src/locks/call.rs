//! Calls of `Default` and `From`, by the address that they return to.
//!
//! A `derive` has one line for all fields of a type. Each field is a call of its own, which returns
//! to an address of its own. The unwinder tells it; that takes a microsecond, once for each lock.

use crate::seen::class::Call;
use crate::seen::report::Place;
use crate::seen::signal::keep;
use core::ffi::{c_int, c_void};
use core::ptr;
use ulocks_core::sync::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

/// The frames above the caller of the constructor: `address` and the constructor.
const ABOVE: usize = 2;

struct Walk {
    frames: usize,
    address: usize,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}

extern "C" fn step(frame: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: `address` has given the unwinder this argument, which lives and is used by no other.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    if walk.frames == ABOVE {
        // SAFETY: the frame is the one that the unwinder looks at.
        walk.address = unsafe { _Unwind_GetIP(frame) };
        // Any value but 0 ends the walk.
        return 5;
    }
    walk.frames += 1;
    0
}

/// Where the caller of this function returns to; 0 if that is not known.
#[inline(never)]
fn address() -> usize {
    let mut walk = Walk { frames: 0, address: 0 };
    if !cfg!(miri) {
        // SAFETY: `step` is a function of the type that the unwinder asks for, and does not unwind.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    }
    walk.address
}

/// What was called before, by address. Two threads may enter a call twice, and no one minds.
const LISTS: usize = 256;
static CALLS: [AtomicPtr<Entry>; LISTS] = [const { AtomicPtr::new(ptr::null_mut()) }; LISTS];

struct Entry {
    call: Call,
    next: *mut Entry,
}

/// The call of the constructor that calls this function, from `place`. The constructor is never
/// inlined.
#[inline(always)]
pub(crate) fn called(place: Place) -> &'static Call {
    find(place, address())
}

fn find(place: Place, address: usize) -> &'static Call {
    let list = &CALLS[address / 4 % LISTS];
    let mut head = list.load(Acquire); // (publish)
    loop {
        let mut next = head;
        // SAFETY: entries are never freed, and came by (publish).
        while let Some(entry) = unsafe { next.as_ref() } {
            if entry.call.address == address && entry.call.place == place {
                return &entry.call;
            }
            next = entry.next;
        }
        let mine = keep(Entry { call: Call { place, address }, next: head }).as_ptr();
        match list.compare_exchange(head, mine, Release, Acquire) /* (publish) */ {
            // SAFETY: it is never freed.
            Ok(_) => return unsafe { &(*mine).call },
            Err(other) => head = other,
        }
    }
}
