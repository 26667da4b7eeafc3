//! `ULOCKS_STATS=FILE`: which locks were contended, appended to a file when the program ends.
//!
//! Each lock has an entry in a table of fixed size, by address. The entry also has the return
//! addresses of the first acquisition that had to wait. An acquisition looks its entry up, so a
//! program with statistics is slower than one without.
//!
//! A lock whose memory is used for another lock later shares its entry with that.

use crate::choice::{Choice, Line, variable};
use crate::time::Patience;
use core::ffi::{CStr, c_int, c_void};
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::ptr;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::OnceLock;
use std::time::Instant;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU64, AtomicUsize};

/// How many locks the table has room for. Others are counted together.
const ENTRIES: usize = 4096;
/// How far from its place an entry may be.
const PROBES: usize = 32;
/// How many return addresses are shown.
const SHOWN: usize = 6;
/// How many are kept: those of this library come first.
const FRAMES: usize = SHOWN + 4;
/// How many locks are reported.
const REPORTED: usize = 40;

struct Entry {
    /// Zero while the entry is free.
    address: AtomicUsize,
    acquired: AtomicU64,
    contended: AtomicU64,
    /// Nanoseconds in which threads waited, and the longest wait.
    waited: AtomicU64,
    longest: AtomicU64,
    frames: [AtomicUsize; FRAMES],
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        address: AtomicUsize::new(0),
        acquired: AtomicU64::new(0),
        contended: AtomicU64::new(0),
        waited: AtomicU64::new(0),
        longest: AtomicU64::new(0),
        frames: [const { AtomicUsize::new(0) }; FRAMES],
    }
}; ENTRIES];

/// For locks that found no room.
static OTHERS: Entry = Entry {
    address: AtomicUsize::new(0),
    acquired: AtomicU64::new(0),
    contended: AtomicU64::new(0),
    waited: AtomicU64::new(0),
    longest: AtomicU64::new(0),
    frames: [const { AtomicUsize::new(0) }; FRAMES],
};

/// The entry of a lock, new if it has none.
fn entry(address: usize) -> &'static Entry {
    let place = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - ENTRIES.ilog2());
    for probe in 0..PROBES {
        let entry = &TABLE[(place + probe) % ENTRIES];
        match entry.address.load(Relaxed) {
            0 => match entry.address.compare_exchange(0, address, Relaxed, Relaxed) {
                Ok(_) => return entry,
                Err(other) if other == address => return entry,
                Err(_) => {}
            },
            known if known == address => return entry,
            _ => {}
        }
    }
    &OTHERS
}

/// A lock was acquired.
pub fn acquired(address: usize) {
    entry(address).acquired.fetch_add(1, Relaxed);
}

/// An acquisition that found the lock taken, until it is dropped.
pub struct Contended(Option<(&'static Entry, Instant)>);

impl Contended {
    pub fn begin(choice: Choice, address: usize, patience: Patience) -> Self {
        if !choice.has_stats() || matches!(patience, Patience::Never) {
            return Self(None);
        }
        let entry = entry(address);
        if entry.contended.fetch_add(1, Relaxed) == 0 {
            keep_frames(entry);
        }
        Self(Some((entry, Instant::now())))
    }
}

impl Drop for Contended {
    fn drop(&mut self) {
        if let Some((entry, began)) = self.0 {
            let waited = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            entry.waited.fetch_add(waited, Relaxed);
            entry.longest.fetch_max(waited, Relaxed);
        }
    }
}

unsafe extern "C" {
    /// Of glibc; the libc crate does not have it.
    fn backtrace(frames: *mut *mut c_void, most: c_int) -> c_int;
}

/// Remembers from where the lock was contended first. It does not ask the loader for names, which
/// may be what waits for this thread: in the constructor of a library that is loaded.
fn keep_frames(entry: &Entry) {
    let mut frames = [ptr::null_mut(); FRAMES];
    let _errno = ulocks_core::errno::Guard::new();
    // SAFETY: the array has room for as many.
    let count = unsafe { backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
    for (kept, &frame) in entry.frames.iter().zip(&frames[..count.max(0) as usize]) {
        kept.store(frame.addr(), Release);
    }
}

/// Whether an address is in this library.
fn is_ours(address: *const c_void) -> bool {
    let (mut ours, mut theirs) = (empty(), empty());
    // SAFETY: both write to a `Dl_info`; any address will do.
    unsafe {
        libc::dladdr((is_ours as fn(*const c_void) -> bool) as *const c_void, &raw mut ours) != 0
            && libc::dladdr(address, &raw mut theirs) != 0
            && ours.dli_fbase == theirs.dli_fbase
    }
}

fn empty() -> libc::Dl_info {
    libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    }
}

/// Where the report goes. The program may change its environment, and its directory.
static FILE: OnceLock<CString> = OnceLock::new();

/// Has the report written at the end.
pub fn register() {
    extern "C" fn at_exit() {
        write_report();
    }
    if Choice::get().has_stats()
        && let Some(name) = variable(c"ULOCKS_STATS")
    {
        let absolute = std::path::absolute(OsStr::from_bytes(name.to_bytes())).unwrap_or_default();
        let absolute = CString::new(absolute.into_os_string().into_vec()).unwrap_or_default();
        _ = FILE.set(if absolute.is_empty() { name.into() } else { absolute });
        // The first call loads a library, which allocates; later calls do not.
        let mut frame = ptr::null_mut();
        // SAFETY: room for one frame; the handler is a function that stays.
        unsafe {
            backtrace(&raw mut frame, 1);
            libc::atexit(at_exit);
        }
    }
}

/// In the child of a fork: its report is about itself.
pub fn forget() {
    for entry in TABLE.iter().chain([&OTHERS]) {
        if entry.acquired.load(Relaxed) > 0 {
            for counter in [&entry.acquired, &entry.contended, &entry.waited, &entry.longest] {
                counter.store(0, Relaxed);
            }
        }
    }
}

/// Opens the file for the report. The end of a program waits for no reader of a pipe, and writes
/// to no device.
fn open(name: &CStr) -> std::io::Result<c_int> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a C string and flags; room for a `stat`, which is read once it is filled.
    unsafe {
        let file = libc::open(name.as_ptr(), flags | libc::O_NONBLOCK | libc::O_NOFOLLOW, 0o644);
        if file < 0 {
            return Err(std::io::Error::last_os_error());
        }
        if libc::fstat(file, found.as_mut_ptr()) == 0
            && found.assume_init().st_mode & libc::S_IFMT == libc::S_IFREG
        {
            return Ok(file);
        }
        libc::close(file);
    }
    Err(std::io::Error::other("it is no regular file"))
}

/// Appends the report: one section for each process.
fn write_report() {
    let Some(name) = FILE.get() else { return };
    let file = match open(name) {
        Ok(file) => file,
        Err(error) => {
            let mut line = Line::new();
            _ = writeln!(
                line,
                "libulocks_pthread: the report cannot be written to ULOCKS_STATS={}: {error}; name a \
                 regular file, or a new one, and no symbolic link",
                name.to_string_lossy(),
            );
            return line.write_to(libc::STDERR_FILENO);
        }
    };
    let mut contended: Vec<&Entry> =
        TABLE.iter().chain([&OTHERS]).filter(|entry| entry.contended.load(Relaxed) > 0).collect();
    contended.sort_by_key(|entry| core::cmp::Reverse(entry.waited.load(Relaxed)));
    let total = |of: fn(&Entry) -> &AtomicU64| -> u64 {
        TABLE.iter().chain([&OTHERS]).map(|entry| of(entry).load(Relaxed)).sum()
    };
    let mut head = Line::new();
    let program = std::env::args_os().next().unwrap_or_default();
    _ = writeln!(
        head,
        "\n{} [{}]: {} acquisitions, {} had to wait, {:.3} ms in all; {} locks were contended",
        program.display(),
        std::process::id(),
        total(|entry| &entry.acquired),
        total(|entry| &entry.contended),
        total(|entry| &entry.waited) as f64 / 1e6,
        contended.len(),
    );
    head.write_to(file);
    let mut columns = Line::new();
    columns.add(
        b"waited ms   longest us  waits      acquisitions  lock, and where a thread first waited for it\n",
    );
    columns.write_to(file);
    contended.iter().take(REPORTED).for_each(|entry| line_of(entry).write_to(file));
    if contended.len() > REPORTED {
        let mut line = Line::new();
        _ = writeln!(line, "and {} more", contended.len() - REPORTED);
        line.write_to(file);
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
}

fn line_of(entry: &Entry) -> Line {
    let mut line = Line::new();
    let address = entry.address.load(Relaxed);
    _ = write!(
        line,
        "{:<11.3} {:<11.1} {:<10} {:<13} ",
        entry.waited.load(Relaxed) as f64 / 1e6,
        entry.longest.load(Relaxed) as f64 / 1e3,
        entry.contended.load(Relaxed),
        entry.acquired.load(Relaxed),
    );
    match address {
        0 => _ = line.write_str("locks beyond the table's room"),
        _ => add_name(&mut line, address),
    }
    // Acquire: pairs with the Release in `keep_frames`.
    let frames = entry.frames.iter().map(|frame| frame.load(Acquire)).take_while(|&frame| frame != 0);
    let theirs = frames.filter(|&frame| !is_ours(ptr::without_provenance(frame)));
    for frame in theirs.take(SHOWN) {
        _ = line.write_str(" < ");
        add_name(&mut line, frame);
    }
    _ = line.write_char('\n');
    line
}

/// The symbol of an address, or its place in a file, or its number.
fn add_name(line: &mut Line, address: usize) {
    let mut info = empty();
    // SAFETY: any address will do.
    let found = unsafe { libc::dladdr(ptr::without_provenance(address), &raw mut info) } != 0;
    if found && !info.dli_sname.is_null() {
        // SAFETY: a name is a C string.
        let name = unsafe { CStr::from_ptr(info.dli_sname) };
        _ = write!(line, "{}+{:#x}", name.to_string_lossy(), address - info.dli_saddr.addr());
    } else if found && !info.dli_fname.is_null() {
        // SAFETY: a name is a C string.
        let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
        let name = path.rsplit('/').next().unwrap_or_default();
        _ = write!(line, "{name}+{:#x}", address - info.dli_fbase.addr());
    } else {
        _ = write!(line, "{address:#x}");
    }
}
