//! What the environment says, read once.

use crate::layout::MOST_OPS;
use crate::sys::{self, Answer};
use core::ptr::null_mut;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicPtr, AtomicU32};

/// The longest path of the directory, in bytes.
pub const LONGEST: usize = 255;
/// The start of the default: the number of the effective user follows.
const DEFAULT: &[u8] = b"/dev/shm/ulocks-sysv-";
const MOST_DIGITS: usize = 10;

/// A number of the environment.
struct Number {
    name: &'static core::ffi::CStr,
    default: u32,
    least: u32,
    most: u32,
    rule: &'static [u8],
}

const NUMBERS: [Number; 6] = [
    Number {
        name: c"ULOCKS_SYSV_SEMMSL",
        default: 32_000,
        least: 1,
        most: 32_768,
        rule: b"a number from 1 to 32768",
    },
    Number {
        name: c"ULOCKS_SYSV_SEMOPM",
        default: 500,
        least: 1,
        most: MOST_OPS as u32,
        rule: b"a number from 1 to 500",
    },
    Number {
        name: c"ULOCKS_SYSV_SEMMNI",
        default: 32_000,
        least: 1,
        most: 32_768,
        rule: b"a number from 1 to 32768",
    },
    Number {
        name: c"ULOCKS_SYSV_SEMMNS",
        default: 1_024_000_000,
        least: 1,
        most: 1_073_741_824,
        rule: b"a number from 1 to 1073741824",
    },
    Number {
        name: c"ULOCKS_SYSV_WAITERS",
        default: 1_024,
        least: 1,
        most: 32_768,
        rule: b"a number from 1 to 32768",
    },
    Number { name: c"ULOCKS_SYSV_STRICT", default: 0, least: 0, most: 1, rule: b"0 or 1" },
];

/// The settings of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most semaphores of an array.
    pub semmsl: u32,
    /// The most operations of a set.
    pub semopm: u32,
    /// The most arrays.
    pub semmni: u32,
    /// The most semaphores.
    pub semmns: u32,
    /// How many sets can sleep on an array that this process makes.
    pub waiters: u32,
    /// Whether pointers are checked.
    pub strict: bool,
}

/// What decides where operations go.
const UNKNOWN: u32 = 0;
const FILES: u32 = 1;
const KERNEL: u32 = 2;

static MODE: AtomicU32 = AtomicU32::new(UNKNOWN);
static VALUES: [AtomicU32; NUMBERS.len()] = [const { AtomicU32::new(0) }; NUMBERS.len()];
/// The directory: a length, and that many bytes.
static FOLDER: AtomicPtr<[u8; LONGEST + 1]> = AtomicPtr::new(null_mut());
static FOLDER_LEN: AtomicU32 = AtomicU32::new(0);
/// The access bits of the directory.
static FOLDER_MODE: AtomicU32 = AtomicU32::new(0);

/// The settings; `None` if the process uses the kernel's semaphores, because a setting is bad.
///
/// # Errors
/// If the directory cannot be opened for now. The next call tries again.
pub fn get() -> Answer<Option<Config>> {
    let mode = match MODE.load(Acquire) {
        UNKNOWN => read()?,
        mode => mode,
    };
    let value = |index: usize| VALUES[index].load(Relaxed);
    Ok((mode == FILES).then(|| Config {
        semmsl: value(0),
        semopm: value(1),
        semmni: value(2),
        semmns: value(3),
        waiters: value(4),
        strict: value(5) == 1,
    }))
}

/// Whether a single operation may be tried before anything is checked.
#[inline]
pub fn is_strict() -> bool {
    VALUES[5].load(Relaxed) == 1
}

/// All threads that come here read the same.
#[cold]
fn read() -> Answer<u32> {
    let mut mode = FILES;
    for (number, place) in NUMBERS.iter().zip(&VALUES) {
        let given = sys::environment(number.name).unwrap_or_default();
        let value = if given.is_empty() { Some(number.default) } else { parse(given) };
        match value.filter(|value| (number.least..=number.most).contains(value)) {
            Some(value) => place.store(value, Relaxed),
            None => {
                refuse(number.name, given, number.rule);
                mode = KERNEL;
            }
        }
    }
    let name = c"ULOCKS_SYSV_DIR";
    let user = crate::access::user();
    let mut own = [0; DEFAULT.len() + MOST_DIGITS];
    own[..DEFAULT.len()].copy_from_slice(DEFAULT);
    let own_len = DEFAULT.len() + write_number(user, &mut own[DEFAULT.len()..]);
    let given = sys::environment(name).filter(|path| !path.is_empty());
    if mode == FILES {
        match remember(given.unwrap_or(&own[..own_len]), given.is_none().then_some(user)) {
            Ok(()) => {}
            Err(error @ (libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR)) => return Err(error),
            Err(_) => {
                match given {
                    Some(folder) => refuse(
                        name,
                        folder,
                        b"an absolute path of at most 255 bytes, of a folder that can be made",
                    ),
                    None => sys::complain(&[
                        &own[..own_len],
                        b" is not a folder that its user alone may use",
                        KERNEL_THEN,
                    ]),
                }
                mode = KERNEL;
            }
        }
    }
    match MODE.compare_exchange(UNKNOWN, mode, Release, Acquire) {
        Ok(_) => Ok(mode),
        Err(first) => Ok(first),
    }
}

const KERNEL_THEN: &[u8] = b"; the program runs on the kernel's semaphores";

fn refuse(name: &core::ffi::CStr, given: &[u8], rule: &[u8]) {
    sys::complain(&[name.to_bytes(), b"=", given, b" is not allowed: it must be ", rule, KERNEL_THEN]);
}

fn parse(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// Writes a number in decimal. Returns how many digits it has.
fn write_number(number: u32, into: &mut [u8]) -> usize {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for place in into[..digits].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// Notes the directory, which is made if need be. With `owner`, it must be one that this user alone
/// may use.
fn remember(folder: &[u8], owner: Option<u32>) -> Answer<()> {
    if folder.len() > LONGEST || folder.first() != Some(&b'/') {
        return Err(libc::EINVAL);
    }
    if FOLDER.load(Acquire).is_null() {
        let place = crate::arena::take::<[u8; LONGEST + 1]>()?;
        // SAFETY: the arena has just given the place to this thread alone.
        unsafe { (&mut (*place))[..folder.len()].copy_from_slice(folder) };
        FOLDER_LEN.store(folder.len() as u32, Relaxed);
        // The first thread's copy stays.
        let _ = FOLDER.compare_exchange(null_mut(), place, AcqRel, Acquire);
    }
    let mut path = path(b"");
    if owner.is_some() {
        path[folder.len()] = 0; // With a slash at its end, a symbolic link would be followed.
    }
    match sys::make_folder(&path) {
        Ok(()) | Err(libc::EEXIST) => {}
        Err(error) => return Err(error),
    }
    let stat = sys::File::open(&path, libc::O_DIRECTORY | libc::O_RDONLY, 0)?.stat()?;
    if owner.is_some_and(|owner| stat.st_uid != owner || stat.st_mode & 0o077 != 0) {
        return Err(libc::EACCES);
    }
    FOLDER_MODE.store(stat.st_mode, Relaxed);
    Ok(())
}

/// The access bits of the registry: those may use it who may make files in the directory.
pub fn registry_mode() -> u32 {
    let folder = FOLDER_MODE.load(Relaxed);
    [0o030, 0o003]
        .into_iter()
        .filter(|class| folder & class == *class)
        .fold(0o600, |all, class| all | class << 1)
}

/// The path of `name` in the directory, with a zero byte at its end.
pub fn path(name: &[u8]) -> [u8; LONGEST + 33] {
    let mut path = [0; LONGEST + 33];
    let folder = FOLDER.load(Acquire);
    if !folder.is_null() {
        let len = (FOLDER_LEN.load(Relaxed) as usize).min(LONGEST);
        // SAFETY: what FOLDER points to is written before, and never again.
        path[..len].copy_from_slice(unsafe { &(&*folder)[..len] });
        path[len] = b'/';
        let room = name.len().min(31);
        path[len + 1..len + 1 + room].copy_from_slice(&name[..room]);
    }
    path
}

/// The path of the file of array `id`.
pub fn path_of(id: u32) -> [u8; LONGEST + 33] {
    numbered(*b"sem.0000000000", id)
}

/// The path of a registry that thread `thread` makes.
pub fn path_of_new_registry(thread: u32) -> [u8; LONGEST + 33] {
    numbered(*b"registry.0000000000", thread)
}

/// The path of a name whose last digits are a number.
fn numbered<const LEN: usize>(mut name: [u8; LEN], number: u32) -> [u8; LONGEST + 33] {
    let mut rest = number;
    for place in name[LEN - MOST_DIGITS..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    path(&name)
}
