//! `ULOCKS_STATS=FILE`: which locks were contended, appended to a file when the program ends.
//!
//! Each lock has an entry in a table of fixed size, by address. The entry also has the return
//! addresses of the first acquisition that had to wait, and of the call that made the mutex. Only
//! the holder of a mutex, or a writer, writes down how long it held the lock. An acquisition and a
//! release look the entry up, so a program with statistics is slower than one without.
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
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicBool, AtomicU64, AtomicUsize};

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

#[derive(Debug)]
struct Entry {
    /// Zero while the entry is free.
    address: AtomicUsize,
    acquired: AtomicU64,
    contended: AtomicU64,
    /// Nanoseconds in which threads waited, and the longest wait.
    waited: AtomicU64,
    longest: AtomicU64,
    /// When the lock was acquired last, of the clock of [`now`], or zero.
    since: AtomicU64,
    /// The longest time for which it was held, in nanoseconds, and the thread.
    held: AtomicU64,
    holder: AtomicU64,
    frames: [AtomicUsize; FRAMES],
    made: [AtomicUsize; FRAMES],
}

impl Entry {
    const fn new() -> Self {
        Self {
            address: AtomicUsize::new(0),
            acquired: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            since: AtomicU64::new(0),
            held: AtomicU64::new(0),
            holder: AtomicU64::new(0),
            frames: [const { AtomicUsize::new(0) }; FRAMES],
            made: [const { AtomicUsize::new(0) }; FRAMES],
        }
    }
}

static TABLE: [Entry; ENTRIES] = [const { Entry::new() }; ENTRIES];

/// For locks that found no room.
static OTHERS: Entry = Entry::new();

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
    let entry = entry(address);
    entry.acquired.fetch_add(1, Relaxed);
    entry.since.store(now(), Relaxed);
}

/// A wait on a condition variable ends with the mutex held.
pub fn held_again(address: usize) {
    entry(address).since.store(now(), Relaxed);
}

/// The thread that alone holds the lock is about to release it.
pub fn releases(address: usize) {
    let entry = entry(address);
    let since = entry.since.swap(0, Relaxed);
    let held = now().saturating_sub(since);
    if since != 0 && held > entry.held.load(Relaxed) && !ptr::eq(entry, &raw const OTHERS) {
        entry.held.store(held, Relaxed);
        entry.holder.store(ulocks_core::tid::current().into(), Relaxed);
    }
}

/// A mutex was made.
pub fn made(address: usize) {
    keep_frames(&entry(address).made);
}

/// Nanoseconds of the monotonic clock.
fn now() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is borrowed.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
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
            keep_frames(&entry.frames);
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

/// Whether [`register`] has called `backtrace`. The first call loads a library, which allocates,
/// and the caller may be an allocator that makes its lock.
static HAS_UNWINDER: AtomicBool = AtomicBool::new(false);

/// Remembers from where it is called, once the library is loaded. It does not ask the loader for
/// names, which may be what waits for this thread: in the constructor of a library that is loaded.
fn keep_frames(kept: &[AtomicUsize; FRAMES]) {
    if !HAS_UNWINDER.load(Relaxed) {
        return;
    }
    let mut frames = [ptr::null_mut(); FRAMES];
    let _errno = ulocks_core::errno::Guard::new();
    // SAFETY: the array has room for as many.
    let count = unsafe { backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
    for (kept, &frame) in kept.iter().zip(&frames[..count.max(0) as usize]) {
        kept.store(frame.addr(), Relaxed);
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
        without_cancellation(write_report);
    }
    if Choice::get().has_stats()
        && let Some(name) = variable(c"ULOCKS_STATS")
    {
        let absolute = std::path::absolute(OsStr::from_bytes(name.to_bytes())).unwrap_or_default();
        let absolute = CString::new(absolute.into_os_string().into_vec()).unwrap_or_default();
        _ = FILE.set(if absolute.is_empty() { name.into() } else { absolute });
        let mut frame = ptr::null_mut();
        // SAFETY: room for one frame; the handler is a function that stays.
        unsafe {
            backtrace(&raw mut frame, 1);
            libc::atexit(at_exit);
        }
        HAS_UNWINDER.store(true, Relaxed);
    }
}

/// Runs `work`, which opens, reads and writes files. These are cancellation points, and the thread
/// that ends the program may have a cancellation pending.
fn without_cancellation(work: impl FnOnce()) {
    const DISABLE: c_int = 1;
    unsafe extern "C" {
        /// Of glibc; the libc crate does not have it.
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }
    let mut before = 0;
    // SAFETY: a state that exists, and a place for the state before.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    work();
    // SAFETY: the state that was before. glibc takes a null pointer for no place.
    unsafe { pthread_setcancelstate(before, ptr::null_mut()) };
}

/// In the child of a fork: its report is about itself.
pub fn forget() {
    for entry in TABLE.iter().chain([&OTHERS]) {
        if entry.acquired.load(Relaxed) > 0 {
            let Entry { acquired, contended, waited, longest, since, held, holder, .. } = entry;
            for counter in [acquired, contended, waited, longest, since, held, holder] {
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
    let totals =
        [total(|entry| &entry.acquired), total(|entry| &entry.contended), total(|entry| &entry.waited)];
    let text = if name.to_bytes().ends_with(b".json") {
        json(&contended, totals)
    } else {
        table(&contended, totals)
    };
    let _errno = ulocks_core::errno::Guard::new();
    // SAFETY: the text is borrowed, with its length; the file was opened above.
    unsafe {
        libc::write(file, text.as_ptr().cast(), text.len());
        libc::close(file);
    }
}

fn program() -> String {
    std::env::args_os().next().unwrap_or_default().to_string_lossy().into_owned()
}

/// The report for people.
fn table(contended: &[&Entry], [acquired, waits, waited]: [u64; 3]) -> String {
    let mut text = String::new();
    _ = writeln!(
        text,
        "\n{} [{}]: {acquired} acquisitions, {waits} had to wait, {:.3} ms in all; {} locks were contended",
        program(),
        std::process::id(),
        waited as f64 / 1e6,
        contended.len(),
    );
    text += "waited ms   longest us  waits      acquisitions  held us     lock, and where a thread first waited for it\n";
    for entry in contended.iter().take(REPORTED) {
        _ = write!(
            text,
            "{:<11.3} {:<11.1} {:<10} {:<13} {:<11.1} {}",
            entry.waited.load(Relaxed) as f64 / 1e6,
            entry.longest.load(Relaxed) as f64 / 1e3,
            entry.contended.load(Relaxed),
            entry.acquired.load(Relaxed),
            entry.held.load(Relaxed) as f64 / 1e3,
            lock_of(entry),
        );
        places(&entry.frames).iter().for_each(|place| _ = write!(text, " < {place}"));
        let made = places(&entry.made);
        if !made.is_empty() {
            _ = write!(text, "; made by {}", made.join(" < "));
        }
        if let Some((thread, name)) = holder_of(entry) {
            _ = write!(text, "; held longest by thread {thread} {name}");
        }
        text.push('\n');
    }
    if contended.len() > REPORTED {
        _ = writeln!(text, "and {} more", contended.len() - REPORTED);
    }
    text
}

/// The report for programs: one line, an object.
fn json(contended: &[&Entry], [acquired, waits, waited]: [u64; 3]) -> String {
    let mut text = String::new();
    let strings = |all: &[String]| all.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(",");
    _ = write!(
        text,
        "{{\"program\":{},\"pid\":{},\"acquisitions\":{acquired},\"waits\":{waits},\"waited_ns\":{waited},\"locks\":[",
        quoted(&program()),
        std::process::id(),
    );
    for (nth, entry) in contended.iter().enumerate() {
        let (thread, name) = holder_of(entry).unwrap_or_default();
        _ = write!(
            text,
            "{}{{\"lock\":{},\"acquisitions\":{},\"waits\":{},\"waited_ns\":{},\"longest_wait_ns\":{},\
             \"longest_hold_ns\":{},\"longest_holder\":{{\"thread\":{thread},\"name\":{}}},\
             \"waited_at\":[{}],\"made_at\":[{}]}}",
            if nth == 0 { "" } else { "," },
            quoted(&lock_of(entry)),
            entry.acquired.load(Relaxed),
            entry.contended.load(Relaxed),
            entry.waited.load(Relaxed),
            entry.longest.load(Relaxed),
            entry.held.load(Relaxed),
            quoted(&name),
            strings(&places(&entry.frames)),
            strings(&places(&entry.made)),
        );
    }
    text += "]}\n";
    text
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter < ' ' => _ = write!(out, "\\u{:04x}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

fn lock_of(entry: &Entry) -> String {
    match entry.address.load(Relaxed) {
        0 => "locks beyond the table's room".into(),
        address => name_of(address),
    }
}

/// The thread that held the lock longest, and its name if it still lives.
fn holder_of(entry: &Entry) -> Option<(u64, String)> {
    let thread = Some(entry.holder.load(Relaxed)).filter(|&thread| thread != 0)?;
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
    Some((thread, name.trim_end().into()))
}

/// The callers, without this library.
fn places(frames: &[AtomicUsize; FRAMES]) -> Vec<String> {
    let frames = frames.iter().map(|frame| frame.load(Relaxed)).take_while(|&frame| frame != 0);
    let theirs = frames.filter(|&frame| !is_ours(ptr::without_provenance(frame)));
    theirs.take(SHOWN).map(name_of).collect()
}

/// The symbol of an address, or its place in a file, or its number.
fn name_of(address: usize) -> String {
    let mut info = empty();
    // SAFETY: any address will do.
    let found = unsafe { libc::dladdr(ptr::without_provenance(address), &raw mut info) } != 0;
    if found && !info.dli_sname.is_null() {
        // SAFETY: a name is a C string.
        let name = unsafe { CStr::from_ptr(info.dli_sname) };
        format!("{}+{:#x}", name.to_string_lossy(), address - info.dli_saddr.addr())
    } else if found && !info.dli_fname.is_null() {
        // SAFETY: a name is a C string.
        let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
        let name = path.rsplit('/').next().unwrap_or_default();
        format!("{name}+{:#x}", address - info.dli_fbase.addr())
    } else {
        format!("{address:#x}")
    }
}
