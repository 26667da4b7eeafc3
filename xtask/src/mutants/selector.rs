//! Says which mutant this process runs. `cargo xtask mutants` writes this file into crates of its
//! copy of the workspace. The workspace itself does not compile it.
//!
//! The variable `ULOCKS_MUTANT` holds the number of the mutant, so child processes run the same
//! one. The first function that has a mutant reads it. Its value is kept in a static that no model
//! tracks. The read neither allocates nor locks, because the first function may be a signal
//! handler.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU64, Ordering};

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
}

const UNREAD: u64 = u64::MAX;

// All accesses are Relaxed: every thread that reads the variable stores the same value.
static CHOSEN: AtomicU64 = AtomicU64::new(UNREAD);

/// Whether this process runs the mutant `id`.
#[inline]
pub fn is(id: u32) -> bool {
    chosen() == u64::from(id) << 8
}

/// The ordering of the site `id`: `sound`, or what the letter of the mutant makes of it.
#[inline]
pub fn ordering(id: u32, sound: Ordering) -> Ordering {
    let chosen = chosen();
    if chosen >> 8 == u64::from(id) { weakened(sound, chosen as u8) } else { sound }
}

/// The ordering of the fence `id`. None if it is gone.
#[inline]
pub fn fence(id: u32, sound: Ordering) -> Option<Ordering> {
    match ordering(id, sound) {
        Ordering::Relaxed => None,
        order => Some(order),
    }
}

#[cold]
pub(super) fn weakened(sound: Ordering, letter: u8) -> Ordering {
    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    match (letter, sound) {
        (_, Relaxed) | (b'x', _) => Relaxed,
        (b'a', AcqRel | SeqCst) => Acquire,
        (b'r', AcqRel | SeqCst) => Release,
        (b'q', SeqCst) => AcqRel,
        _ => sound,
    }
}

#[inline]
fn chosen() -> u64 {
    match CHOSEN.load(Ordering::Relaxed) {
        UNREAD => read(),
        chosen => chosen,
    }
}

#[cold]
fn read() -> u64 {
    // SAFETY: the name ends with a zero. No test changes its own environment.
    let value = unsafe { getenv(c"ULOCKS_MUTANT".as_ptr()) };
    let chosen = if value.is_null() {
        0
    } else {
        // SAFETY: not null, so it is a string of the environment, which nothing changes.
        parse(unsafe { CStr::from_ptr(value) }.to_bytes())
    };
    CHOSEN.store(chosen, Ordering::Relaxed);
    chosen
}

/// `NUMBER` or `NUMBER:LETTER`, as the number times 256 and the letter.
pub(super) fn parse(value: &[u8]) -> u64 {
    let mut chosen = 0;
    for &byte in value {
        match byte {
            b'0'..=b'9' => chosen = chosen * 10 + u64::from(byte - b'0'),
            b':' => chosen <<= 8,
            _ => return chosen | u64::from(byte),
        }
    }
    if value.contains(&b':') { chosen } else { chosen << 8 }
}
