//! Which lock a program gets: the environment, read once.
//!
//! | variable | values | default |
//! |---|---|---|
//! | `ULOCKS_MUTEX` | `throughput`, `calock`, `fair`, `unfair`, `pi`, `glibc` | `throughput` |
//! | `ULOCKS_RWLOCK` | `psrwlock`, `glibc` | `psrwlock` |
//! | `ULOCKS_STATS` | a file, to which a report is appended | none |
//!
//! A value that is not in the table is reported on standard error, and then all locks are glibc's.
//! A program that runs with more rights than its caller has none of these variables.
//!
//! The answer is a byte that each function loads. The first call decides it, whichever that is: a
//! library's constructor may lock before this library's constructor has run.
//!
//! # Forks
//! The byte is alone on its page, and the kernel makes that page zero in the child of a fork. So
//! the first call in the child, whichever that is, finds zero, and begins what a child begins anew.
//! A handler of `pthread_atfork` would be too late: those of the program's libraries may run before
//! it, and unlock mutexes. It serves on kernels that cannot wipe a page (before Linux 4.14, or that
//! only say so), and where pages are larger.

use crate::fork;
use core::ffi::{CStr, c_char};
use ulocks_core::spin;
use ulocks_core::sync::AtomicU8;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

/// A lock for mutexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Algorithm {
    Glibc = 1,
    Throughput = 2,
    Calock = 3,
    Fair = 4,
    Unfair = 5,
    Pi = 6,
}

/// Everything that is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice(u8);

const ALGORITHM: u8 = 0b111;
const PSRWLOCK: u8 = 1 << 3;
const STATS: u8 = 1 << 4;
/// This process is the child of a fork of a program with this library.
const FORKED: u8 = 1 << 5;

/// The page that is zero again in the child of a fork.
#[repr(C, align(4096))]
struct Page {
    /// The choice; zero until it is decided.
    choice: AtomicU8,
    /// 1 once a thread of this child has begun what a child begins anew.
    is_begun: AtomicU8,
    rest: [u8; PAGE - 2],
}

const PAGE: usize = 4096;

static OWN_PAGE: Page = Page { choice: AtomicU8::new(0), is_begun: AtomicU8::new(0), rest: [0; _] };

/// What was decided first, also in children.
static DECIDED: AtomicU8 = AtomicU8::new(0);

/// 1 if the kernel wipes the page.
static WIPES: AtomicU8 = AtomicU8::new(0);

impl Choice {
    /// The choice, decided now if this is the first call.
    #[inline(always)]
    pub fn get() -> Self {
        // Acquire: pairs with the releases in `begin_child`, `note_fork` and `read_environment`.
        match OWN_PAGE.choice.load(Acquire) {
            0 => decide(),
            choice => Self(choice),
        }
    }

    /// Whether mutexes are `ThroughputMutex`, with nothing else to do.
    #[inline(always)]
    pub fn is_throughput_only() -> bool {
        OWN_PAGE.choice.load(Relaxed) & (ALGORITHM | STATS | FORKED) == Algorithm::Throughput as u8
    }

    /// Whether rwlocks are `PsRwLock`, with nothing else to do.
    #[inline(always)]
    pub fn is_psrwlock_only() -> bool {
        OWN_PAGE.choice.load(Relaxed) & (PSRWLOCK | STATS | FORKED) == PSRWLOCK
    }

    #[inline(always)]
    pub fn mutex(self) -> Algorithm {
        match self.0 & ALGORITHM {
            2 => Algorithm::Throughput,
            3 => Algorithm::Calock,
            4 => Algorithm::Fair,
            5 => Algorithm::Unfair,
            6 => Algorithm::Pi,
            _ => Algorithm::Glibc,
        }
    }

    pub fn has_psrwlock(self) -> bool {
        self.0 & PSRWLOCK != 0
    }

    pub fn has_stats(self) -> bool {
        self.0 & STATS != 0
    }

    pub fn is_forked(self) -> bool {
        self.0 & FORKED != 0
    }
}

/// For the child of a fork, in a handler.
pub fn note_fork() {
    if WIPES.load(Relaxed) == 0 {
        fork::begin_child();
        OWN_PAGE.choice.fetch_or(FORKED, Release); // See `Choice::get`.
    } else {
        _ = Choice::get();
    }
}

/// The first call in a process.
#[cold]
fn decide() -> Choice {
    // Acquire: pairs with the release in `read_environment`, which stores the choice before.
    let decided = DECIDED.load(Acquire);
    if decided == 0 {
        return read_environment();
    }
    // Another thread may have decided between this one's look at the choice and that at `DECIDED`.
    // Only a fork takes the choice away again. Acquire: as in `Choice::get`.
    match OWN_PAGE.choice.load(Acquire) {
        0 => begin_child(decided | FORKED),
        choice => Choice(choice),
    }
}

/// The first call in the child of a fork. If two threads make it at once, one waits for the other.
fn begin_child(choice: u8) -> Choice {
    if OWN_PAGE.is_begun.swap(1, Relaxed) == 0 {
        fork::begin_child();
        OWN_PAGE.choice.store(choice, Release);
    }
    // Acquire: pairs with the store above.
    spin::outlast(|| OWN_PAGE.choice.load(Acquire) != 0);
    Choice(choice)
}

/// Has the kernel wipe the page in children.
fn wipe_on_fork() {
    // SAFETY: it has no preconditions.
    if unsafe { libc::getauxval(libc::AT_PAGESZ) } != PAGE as libc::c_ulong {
        return;
    }
    let page = (&raw const OWN_PAGE).cast_mut().cast();
    // SAFETY: the static is aligned to a page, and is zero at the start, so that it is in the
    // library's private memory that is not of the file. The page belongs to it alone, and bears to
    // be zero at any fork.
    let wipes = unsafe { ulocks_core::wipe_on_fork(page, PAGE) };
    WIPES.store(wipes.into(), Relaxed);
}

/// Reads the environment. Two threads that do so at once find the same.
fn read_environment() -> Choice {
    let mut is_valid = true;
    let mutex = one_of(
        c"ULOCKS_MUTEX",
        &[
            ("throughput", Algorithm::Throughput as u8),
            ("calock", Algorithm::Calock as u8),
            ("fair", Algorithm::Fair as u8),
            ("unfair", Algorithm::Unfair as u8),
            ("pi", Algorithm::Pi as u8),
            ("glibc", Algorithm::Glibc as u8),
        ],
        &mut is_valid,
    );
    let rwlock = one_of(c"ULOCKS_RWLOCK", &[("psrwlock", PSRWLOCK), ("glibc", 0)], &mut is_valid);
    let stats = if variable(c"ULOCKS_STATS").is_some() { STATS } else { 0 };
    let choice = if is_valid { mutex | rwlock | stats } else { Algorithm::Glibc as u8 };
    wipe_on_fork();
    // Release: pairs with the acquire in `Choice::get`. A thread that knows the choice, and forks,
    // leaves `WIPES` to its child.
    _ = OWN_PAGE.choice.compare_exchange(0, choice, Release, Relaxed);
    let choice = OWN_PAGE.choice.load(Relaxed);
    DECIDED.store(choice, Release); // See `decide`.
    Choice(choice)
}

/// The value of a variable, the first one by default.
fn one_of(name: &'static CStr, values: &[(&str, u8)], is_valid: &mut bool) -> u8 {
    let Some(given) = variable(name) else { return values[0].1 };
    if let Some(&(_, value)) = values.iter().find(|(known, _)| known.as_bytes() == given.to_bytes()) {
        return value;
    }
    // Another thread may report it, too; a second line does no harm.
    if *is_valid && DECIDED.load(Relaxed) == 0 {
        report(name, given, values);
    }
    *is_valid = false;
    0
}

/// A variable that is set and not empty.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    unsafe extern "C" {
        static environ: *const *const c_char;
        /// Of glibc; the libc crate does not have it.
        fn secure_getenv(name: *const c_char) -> *const c_char;
    }
    // SAFETY: glibc's variable, which is null before glibc has been initialised.
    if unsafe { environ.is_null() } {
        return early_variable(name);
    }
    // SAFETY: the name is a C string. The value is one too, and stays where it is unless the
    // program changes its environment while the library is loaded, or calls `setenv` for this very
    // variable.
    let value = unsafe {
        let value = secure_getenv(name.as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value)
    };
    (!value.is_empty()).then_some(value)
}

/// The same for a program that locks before glibc knows the environment: in `.preinit_array`. The
/// kernel knows it.
#[cold]
fn early_variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: it has no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    /// Longer environments are cut off; then a variable at their end is not seen.
    const ROOM: usize = 1 << 15;
    static mut ENVIRONMENT: [u8; ROOM + 1] = [0; ROOM + 1];
    let start = (&raw mut ENVIRONMENT).cast::<u8>();
    // SAFETY: there is one thread this early. The last byte stays zero, so that what is found ends.
    let environment: &'static [u8] = unsafe {
        let file = libc::open(c"/proc/self/environ".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let mut length = 0;
        while let Ok(read @ 1..) = usize::try_from(libc::read(file, start.add(length).cast(), ROOM - length))
        {
            length += read;
        }
        libc::close(file);
        core::slice::from_raw_parts(start, ROOM + 1)
    };
    let of_name = |entry: &'static [u8]| entry.strip_prefix(name.to_bytes())?.strip_prefix(b"=");
    environment
        .split_inclusive(|&byte| byte == 0)
        .find_map(of_name)
        .and_then(|value| CStr::from_bytes_with_nul(value).ok())
        .filter(|value| !value.is_empty())
}

/// One line on standard error, without an allocation: malloc may be what calls us.
fn report(name: &CStr, given: &CStr, values: &[(&str, u8)]) {
    let mut line = Line::new();
    line.add(b"libulocks_pthread: ");
    line.add(name.to_bytes());
    line.add(b" is \"");
    line.add(given.to_bytes());
    line.add(b"\", which is not known: set it to ");
    for (index, (known, _)) in values.iter().enumerate() {
        line.add(match index {
            0 => b"",
            _ if index + 1 == values.len() => b" or ",
            _ => b", ",
        });
        line.add(known.as_bytes());
    }
    line.add(b"; all locks of this program are glibc's now\n");
    line.write_to(libc::STDERR_FILENO);
}

/// A line of text on the stack; what does not fit is cut off.
pub struct Line {
    bytes: [u8; 512],
    length: usize,
}

impl Line {
    pub fn new() -> Self {
        Self { bytes: [0; 512], length: 0 }
    }

    pub fn add(&mut self, text: &[u8]) {
        let room = &mut self.bytes[self.length..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text[..length]);
        self.length += length;
    }

    /// Writes it, and leaves `errno` as it is.
    pub fn write_to(&self, file: i32) {
        let _errno = ulocks_core::errno::Guard::new();
        // SAFETY: the bytes are initialised.
        _ = unsafe { libc::write(file, self.bytes.as_ptr().cast(), self.length) };
    }
}

impl core::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}
