//! Says which mutant this process runs. `cargo xtask mutants` writes this file into crates of its
//! copy of the workspace. The workspace itself does not compile it.
//!
//! The variable `ULOCKS_MUTANT` holds the number of the mutant, so child processes run the same
//! one. The first function that has a mutant reads it. Its value is kept in a static that no model
//! tracks. The read neither allocates nor locks, because the first function may be a signal
//! handler.
//!
//! If the variable is `reach`, no mutant runs, and each ordering that is passed is written down
//! once, as a line with its number, in the file that `ULOCKS_REACHED` names.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn write(file: c_int, text: *const c_void, length: usize) -> isize;
}

const UNREAD: u64 = u64::MAX;
/// No mutant runs, and [`FILE`] is open.
const REACH: u64 = UNREAD - 1;
/// `O_WRONLY | O_APPEND`.
const APPEND: c_int = 0o2001;

// All accesses are Relaxed: every thread that reads the variable stores the same value.
static CHOSEN: AtomicU64 = AtomicU64::new(UNREAD);
static FILE: AtomicI32 = AtomicI32::new(-1);
/// The orderings that were passed. A full table only means that one is written down again.
static PASSED: [AtomicU32; 1024] = [const { AtomicU32::new(0) }; 1024];

/// Whether this process runs the mutant `id`.
#[inline]
pub fn is(id: u32) -> bool {
    chosen() == u64::from(id) << 8
}

/// The ordering of the site `id`: `sound`, or what the letter of the mutant makes of it.
#[inline]
pub fn ordering(id: u32, sound: Ordering) -> Ordering {
    let chosen = chosen();
    if chosen >> 8 == u64::from(id) {
        return weakened(sound, chosen as u8);
    }
    if chosen == REACH {
        pass(id);
    }
    sound
}

#[cold]
fn pass(id: u32) {
    for at in 0..PASSED.len() {
        let cell = &PASSED[(id as usize + at) % PASSED.len()];
        match cell.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => break,
            Err(known) if known == id => return,
            Err(_) => {}
        }
    }
    let (mut text, mut left, mut begin) = ([b'\n'; 11], id, 10);
    while left > 0 {
        begin -= 1;
        text[begin] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    // SAFETY: the file was opened to be written, and the text ends with the array.
    unsafe { write(FILE.load(Ordering::Relaxed), text[begin..].as_ptr().cast(), text.len() - begin) };
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
        match unsafe { CStr::from_ptr(value) }.to_bytes() {
            b"reach" => reach(),
            number => parse(number),
        }
    };
    CHOSEN.store(chosen, Ordering::Relaxed);
    chosen
}

#[cold]
fn reach() -> u64 {
    // SAFETY: the name ends with a zero. No test changes its own environment.
    let path = unsafe { getenv(c"ULOCKS_REACHED".as_ptr()) };
    assert!(!path.is_null(), "ULOCKS_REACHED names the file");
    // SAFETY: a string of the environment, which nothing changes.
    let file = unsafe { open(path, APPEND) };
    assert!(file >= 0, "the file that ULOCKS_REACHED names can be opened");
    FILE.store(file, Ordering::Relaxed);
    REACH
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
