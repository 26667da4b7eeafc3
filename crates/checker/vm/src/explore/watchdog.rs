//! What is said when a thread of a model does not come back to the machine: it blocks in std, or
//! loops without an operation of the facade, or ends the process.
//!
//! Each OS thread that explores writes down which thread of the model it runs, and since which
//! operation. One thread of the process looks once a second. If code of the model has run for
//! [`PATIENCE`] without an operation, it says so, and has that OS thread abort, which knows the
//! panics and the replay. Nothing else could end the run, and a test that hangs says less. The work
//! of the machine between two operations does not count, nor the time in which the OS thread waits
//! for a CPU, nor what a debugger stops: then the seconds of the thread that looks stand still,
//! too.
//!
//! `ULOCKS_VM_PATIENCE=60` waits for that many seconds; 0 is for ever.
//!
//! All of it goes to the standard error itself: what `eprintln!` prints in a test is kept by the
//! test harness, and lost when the process ends.
//!
//! # Aborts
//! | the process aborts | told by | with |
//! |---|---|---|
//! | since a panic cannot unwind, or can no more | the handler of SIGABRT | the place, the panics, and the replay or story |
//! | by itself: a model, an allocation, `malloc` | the same | the same |
//! | since a thread does not come back | the thread that looks, and then the same | the same |
//! | by an access of memory that is not there | the handler of SIGSEGV and SIGBUS | the place |
//!
//! The handler may have interrupted `malloc`, whose locks are held then. So it says the place by
//! calls that allocate nothing. What comes after that allocates, and a timer ends it.

use super::quiet;
use super::story::place_of;
use crate::alloc::outside;
use crate::{engine, fibers};
use core::fmt::Write;
use core::panic::Location;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// Seconds without an operation.
const PATIENCE: u64 = 5;

/// What one OS thread runs.
struct Watch {
    /// Changes with each entry of code of a model; 0 while none runs.
    entry: AtomicU64,
    thread: AtomicUsize,
    /// The last operation of that thread.
    at: AtomicPtr<Location<'static>>,
    /// The kernel's number of the OS thread.
    number: i32,
}

static WATCHES: Mutex<Vec<&'static Watch>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: Cell<Option<&'static Watch>> = const { Cell::new(None) };
    /// How often this OS thread has entered code of a model.
    static ENTRIES: Cell<u64> = const { Cell::new(0) };
}

fn mine() -> &'static Watch {
    MINE.get().unwrap_or_else(|| {
        let watch: &'static Watch = Box::leak(Box::new(Watch {
            entry: AtomicU64::new(0),
            thread: AtomicUsize::new(0),
            at: AtomicPtr::new(null_mut()),
            // SAFETY: the call takes nothing and cannot fail.
            number: unsafe { libc::gettid() },
        }));
        MINE.set(Some(watch));
        have_another_stack();
        WATCHES.lock().unwrap_or_else(PoisonError::into_inner).push(watch);
        start();
        watch
    })
}

/// Code of thread `thread` runs from here on: after the operation at `at`, or from its beginning.
pub(super) fn runs(thread: usize, at: Option<&'static Location<'static>>) {
    let watch = mine();
    let entry = ENTRIES.get() + 1;
    ENTRIES.set(entry);
    watch.thread.store(thread, Relaxed);
    watch.at.store(at.map_or(null_mut(), |at| core::ptr::from_ref(at).cast_mut()), Relaxed);
    watch.entry.store(entry, Relaxed);
}

/// The machine works from here on.
pub(super) fn rests() {
    if let Some(watch) = MINE.get() {
        watch.entry.store(0, Relaxed);
    }
}

impl Watch {
    /// For how many nanoseconds the OS thread has waited for a CPU, as far as the kernel says it.
    fn delay(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.number));
        text.ok().and_then(|text| text.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
    }

    /// Writes what happens in the thread. Allocates nothing, for handlers of signals.
    fn say(&self, what: &str, then: &str) {
        // SAFETY: null, or of a location that lives for ever.
        let at = unsafe { self.at.load(Relaxed).as_ref() };
        let (mut text, thread) = (Text { bytes: [0; 256], len: 0 }, self.thread.load(Relaxed));
        let _ = write!(text, "ulocks-vm: {what} thread {thread}, since ");
        let _ = match at {
            Some(at) => writeln!(text, "{at}{then}"),
            None => writeln!(text, "it has started{then}"),
        };
        print(&text.bytes[..text.len]);
    }

    /// `thread 2, since src/lib.rs:31`.
    fn place(&self) -> String {
        let at = self.at.load(Relaxed);
        // SAFETY: null, or of a location that lives for ever.
        let at = unsafe { at.as_ref() };
        let thread = self.thread.load(Relaxed);
        match at {
            Some(at) => format!("thread {thread}, since {}", place_of(at)),
            None => format!("thread {thread}, since it has started"),
        }
    }
}

fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        extern "C" fn at_exit() {
            let Some(watch) = MINE.get().filter(|watch| watch.entry.load(Relaxed) != 0) else { return };
            print(
                format!(
                    "ulocks-vm: a model ends the process, in {}: its other executions were not explored. A \
                     failure is a panic\n",
                    watch.place(),
                )
                .as_bytes(),
            );
            print_last_words();
            // SAFETY: ends the process.
            unsafe { libc::_exit(101) };
        }
        // SAFETY: the handler is a function that stays.
        unsafe { libc::atexit(at_exit) };
        name_who_aborts();
        name_who_faults();
        let patience = std::env::var("ULOCKS_VM_PATIENCE").ok().and_then(|text| text.parse().ok());
        let patience = patience.unwrap_or(PATIENCE);
        if patience > 0 {
            // Without a thread nobody looks.
            let _ = std::thread::Builder::new().name("ulocks-vm watch".into()).spawn(move || look(patience));
        }
    });
}

/// What there is to say of the run on this OS thread, in which the process ends.
fn print_last_words() {
    print_after(String::new);
}

/// As that, after `before`. Whether there was something: not while the machine works.
fn print_after(before: impl Fn() -> String) -> bool {
    outside(|| {
        let words =
            if engine::is_installed() { engine::with(|engine| engine.last_words()) } else { String::new() };
        if !words.is_empty() {
            print((before() + &words + "\n").as_bytes());
        }
        !words.is_empty()
    })
}

/// An operation while a panic unwinds, which is none of those that show that the thread comes back.
pub(super) fn unwinds() {
    if HAS_STAYED.load(Relaxed) {
        print_after(quiet::unwinding);
        rests(); // nothing is left to say in the handler
        std::process::abort();
    }
}

/// Seconds in which the handler has to tell the story.
const LAST_WORDS: u32 = 5;

/// The process ends in so many seconds, whatever the calling thread waits for. For handlers of
/// signals.
fn end_in(seconds: u32) {
    // SAFETY: the set is zeroed, which is an empty one, and then filled by the call; the default
    // action, the end, is one.
    unsafe {
        let mut alarm: libc::sigset_t = core::mem::zeroed();
        libc::sigaddset(&raw mut alarm, libc::SIGALRM);
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const alarm, null_mut());
        libc::alarm(seconds);
    }
}

/// Whether it has been said which thread does not come back. The process aborts for that.
static HAS_STAYED: AtomicBool = AtomicBool::new(false);

/// A model may abort, and so do a failed allocation and `malloc`.
fn name_who_aborts() {
    extern "C" fn on_abort(_: libc::c_int) {
        let Some(watch) = MINE.get().filter(|watch| watch.entry.load(Relaxed) != 0) else { return };
        if !HAS_STAYED.load(Relaxed) {
            watch.say("a model aborts, in", "");
        }
        end_in(LAST_WORDS);
        // If the machine works while a panic unwinds, the next operation says it.
        if print_after(quiet::unwinding) || !std::thread::panicking() {
            // SAFETY: the call takes a number. The signal comes when the handler has returned, and
            // its action is the default one by then.
            unsafe { libc::raise(libc::SIGABRT) };
        }
    }
    // SAFETY: the structure is zeroed, and filled by the call; the handler is a function that
    // stays.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        if libc::sigaction(libc::SIGABRT, core::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
        {
            action.sa_sigaction = on_abort as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(libc::SIGABRT, &raw const action, null_mut());
        }
    }
}

/// The actions that were there before, for SIGSEGV and for SIGBUS.
static BEFORE: [AtomicPtr<libc::sigaction>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

/// An access below a thread's stack, or by a pointer that dangles, is a fault of the kernel's. The
/// second is named, and left to the action that was there before. The handler's stack may have no
/// room for a story.
fn name_who_faults() {
    extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel hands the handler a valid `siginfo_t` of a fault, which has an
        // address.
        let address = unsafe { (*info).si_addr() }.addr();
        let before = BEFORE[usize::from(signal == libc::SIGBUS)].load(Relaxed);
        if !fibers::is_beyond_the_stack(address) {
            if let Some(watch) = MINE.get().filter(|watch| watch.entry.load(Relaxed) != 0) {
                watch.say(
                    "an access of memory that is not there, in",
                    ": a pointer of the model dangles, or is none",
                );
            }
            // SAFETY: the action is one that the kernel has told; the access faults again after it.
            unsafe { libc::sigaction(signal, before, null_mut()) };
            return;
        }
        if let Some(watch) = MINE.get() {
            watch.say("stack overflow of", ": `Config::stack` gives each thread more bytes");
        }
        // SAFETY: the default action is one. The process ends.
        unsafe {
            libc::signal(libc::SIGABRT, libc::SIG_DFL);
            libc::abort();
        }
    }
    for (signal, before) in [libc::SIGSEGV, libc::SIGBUS].into_iter().zip(&BEFORE) {
        // SAFETY: the structures are zeroed, and filled by the calls; the handler is a function
        // that stays, and the action before it is never freed.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            libc::sigaction(signal, core::ptr::null(), &raw mut action);
            before.store(Box::leak(Box::new(action)), Relaxed);
            action.sa_sigaction =
                on_fault as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigaction(signal, &raw const action, null_mut());
        }
    }
}

/// A stack for the handler, which cannot run on one that has overflowed. Threads of std have one.
fn have_another_stack() {
    const BYTES: usize = 64 * 1024;
    // SAFETY: the structure is zeroed, and filled by the call; the memory of the new stack stays.
    unsafe {
        let mut stack: libc::stack_t = core::mem::zeroed();
        libc::sigaltstack(core::ptr::null(), &raw mut stack);
        if stack.ss_flags & libc::SS_DISABLE != 0 {
            stack.ss_sp = Box::leak(vec![0_u8; BYTES].into_boxed_slice()).as_mut_ptr().cast();
            stack.ss_size = BYTES;
            stack.ss_flags = 0;
            libc::sigaltstack(&raw const stack, null_mut());
        }
    }
}

/// Writes to the standard error itself. For handlers of signals, too.
fn print(mut text: &[u8]) {
    while !text.is_empty() {
        // SAFETY: the bytes are borrowed, with their length.
        let written = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        let Ok(written @ 1..) = usize::try_from(written) else { return };
        text = &text[written..];
    }
}

/// A line that needs no allocation.
struct Text {
    bytes: [u8; 256],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = &mut self.bytes[self.len..];
        let len = text.len().min(room.len());
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}

fn look(patience: u64) {
    const SECOND: u64 = 1_000_000_000;
    let mut seen: Vec<(u64, u64, u64)> = Vec::new();
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner).clone();
        seen.resize(watches.len(), (0, 0, 0));
        for (watch, (entry, time, delay)) in watches.iter().zip(&mut seen) {
            let now = watch.entry.load(Relaxed);
            if now == 0 {
                continue;
            }
            let before = std::mem::replace(delay, watch.delay());
            // The kernel says of a wait when it has ended, so it may be of more than one second.
            let waited = delay.saturating_sub(before);
            *time = if now == *entry { (*time + SECOND).saturating_sub(waited) } else { 0 };
            *entry = now;
            // The sleep above is not exact either.
            if *time + SECOND / 2 >= patience.saturating_mul(SECOND) {
                print(
                    format!(
                        "ulocks-vm: {} has not come back for {patience} s: does it block in std, or loop \
                         without an operation of the facade? A thread of a model waits by the types of the \
                         facade only. ULOCKS_VM_PATIENCE=SECONDS waits longer, 0 for ever\n",
                        watch.place()
                    )
                    .as_bytes(),
                );
                HAS_STAYED.store(true, Relaxed);
                // SAFETY: the call takes numbers; the OS thread is one of this process, or none.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), watch.number, libc::SIGABRT) };
                std::thread::sleep(Duration::from_secs(LAST_WORDS.into()));
                std::process::abort();
            }
        }
    }
}
