//! Faults of each kind, in a child that may die of them.

#![allow(dead_code)] // Each test program uses its own part.

use super::signals::{realtime, strike};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use ulocks_core::signal::{Context, Handlers, Installed};
use ulocks_testkit::limit;

/// How a child has ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Killed(i32),
}

/// Runs `body` in a process of its own, which is this test program once more, with the one test
/// `name`, which calls this. The child ends with 0 when `body` returns.
pub fn child(name: &str, body: impl FnOnce()) -> (End, String) {
    let Some(Output { status, stderr, .. }) = limit::child(name) else {
        bounded();
        body();
        // SAFETY: ends the child, without what the test harness would write.
        unsafe { libc::_exit(0) };
    };
    let end = match (status.code(), status.signal()) {
        (Some(code), _) => End::Exit(code),
        (_, Some(signal)) => End::Killed(signal),
        _ => unreachable!("a child has ended"),
    };
    (end, String::from_utf8_lossy(&stderr).into_owned())
}

/// Runs `body` in a fork of this process, which ends with 0 when `body` returns, and with 101 when
/// it panics: for many children in one test.
pub fn forked(body: impl FnOnce()) -> End {
    let mut status = 0;
    // SAFETY: the child does what `body` does, which faults, strikes itself, and ends it.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            bounded();
            // Past this function the thread would end, and the process with 0.
            let ended = catch_unwind(AssertUnwindSafe(body));
            libc::_exit(if ended.is_ok() { 0 } else { 101 });
        }
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    if libc::WIFEXITED(status) {
        End::Exit(libc::WEXITSTATUS(status))
    } else {
        End::Killed(libc::WTERMSIG(status))
    }
}

/// A fault that comes again without end is no hang: this process is killed by SIGALRM then.
fn bounded() {
    // SAFETY: sets a timer.
    unsafe { libc::alarm(20) };
}

/// Gives the calling thread an alternate stack of 64 KiB, which holds several frames of the kernel
/// on any processor. One frame takes 3.4 KiB with AVX-512, and some 11 KiB with AMX.
pub fn large_alternate_stack() {
    let size = 64 << 10;
    // SAFETY: a new mapping becomes the alternate stack. Nothing unmaps it.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let ss_sp = libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0);
        check(ss_sp != libc::MAP_FAILED);
        let stack = libc::stack_t { ss_sp, ss_flags: 0, ss_size: size };
        check(libc::sigaltstack(&raw const stack, std::ptr::null_mut()) == 0);
    }
}

/// Ends a forked child with a code.
pub fn exit(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// Ends a child with `code` unless `holds`: for handlers, and for children, which must not panic.
#[track_caller]
pub fn check(holds: bool) {
    if !holds {
        exit(i32::try_from(std::panic::Location::caller().line() % 200).unwrap_or(0) + 50);
    }
}

/// The signals that a fault can raise here, each with the fault.
pub const FAULTS: &[(i32, fn())] = &[
    (libc::SIGSEGV, touch),
    (libc::SIGBUS, touch_beyond_the_end),
    #[cfg(target_arch = "x86_64")]
    (libc::SIGFPE, divide_by_zero),
    #[cfg(target_arch = "x86_64")]
    (libc::SIGILL, illegal),
    #[cfg(target_arch = "x86_64")]
    (libc::SIGTRAP, trap),
    (libc::SIGSYS, refused),
];

/// A page without access, once [`guard`] was called.
pub static PAGE: AtomicUsize = AtomicUsize::new(0);
const SIZE: usize = 4096;

fn map(access: i32, kind: i32, file: i32) -> *mut libc::c_void {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, access, kind, file, 0) };
    check(page != libc::MAP_FAILED);
    page
}

fn protect(access: i32) {
    let page = std::ptr::with_exposed_provenance_mut::<libc::c_void>(PAGE.load(SeqCst));
    // SAFETY: the page is ours.
    check(unsafe { libc::mprotect(page, SIZE, access) } == 0);
}

/// Makes the page, or makes it inaccessible again.
pub fn guard() {
    if PAGE.load(SeqCst) == 0 {
        let page = map(libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
        PAGE.store(page.expose_provenance(), SeqCst);
    }
    protect(libc::PROT_NONE);
}

/// Resolves the fault of [`touch`].
pub fn resolve() {
    protect(libc::PROT_READ | libc::PROT_WRITE);
}

/// Writes to a page that is inaccessible.
pub fn touch() {
    guard();
    let page = std::ptr::with_exposed_provenance_mut::<u32>(PAGE.load(SeqCst));
    // SAFETY: the page is ours. That it cannot be written is what this is about.
    unsafe { page.write_volatile(1) };
}

fn touch_beyond_the_end() {
    // SAFETY: the name is a C string.
    let file = unsafe { libc::memfd_create(c"empty".as_ptr(), libc::MFD_CLOEXEC) };
    check(file >= 0);
    let page = map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file);
    // SAFETY: the page is ours. That it is beyond the end of its file is what this is about.
    unsafe { page.cast::<u32>().write_volatile(1) };
}

#[cfg(target_arch = "x86_64")]
fn divide_by_zero() {
    // SAFETY: a division, which faults.
    unsafe {
        std::arch::asm!("div {zero:e}", zero = in(reg) 0, inout("eax") 1 => _, inout("edx") 0 => _);
    }
}

#[cfg(target_arch = "x86_64")]
fn illegal() {
    // SAFETY: an instruction that faults.
    unsafe { std::arch::asm!("ud2") };
}

#[cfg(target_arch = "x86_64")]
pub fn trap() {
    // SAFETY: an instruction that traps. The next one follows.
    unsafe { std::arch::asm!("int3") };
}

/// Makes a system call that a filter refuses by SIGSYS.
fn refused() {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const IS_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let of = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        of(LOAD, 0, 0, 0),
        of(IS_EQUAL, 0, 1, libc::SYS_getppid as u32),
        of(RETURN, 0, 0, libc::SECCOMP_RET_TRAP),
        of(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the filter is there while the kernel copies it.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        check(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0);
        libc::syscall(libc::SYS_getppid);
    }
}

/// Installs a handler of these signals for the life of the process.
pub fn install(signals: &[i32], handler: impl Fn(&Context<'_>) + Send + Sync + 'static) -> Installed {
    let handlers = signals.iter().fold(Handlers::new(), |handlers, &signal| handlers.signal(signal));
    // SAFETY: what the tests do in handlers is async-signal-safe.
    unsafe { handlers.install(handler) }.unwrap()
}

/// The asynchronous signals of these tests.
pub fn first() -> i32 {
    realtime(2)
}

pub fn second() -> i32 {
    libc::SIGUSR2
}

/// Runs a fault at some place.
pub type Place = fn(fn());

/// Where a fault may come, with a signal of the class before it or around it. Each runs `fault`
/// once, if [`second`] is wrapped and its handler runs `fault`, too.
pub const PLACES: &[(&str, Place)] = &[
    ("nothing around it", |fault| fault()),
    ("under a mask", |fault| masked(fault)),
    ("under a mask, with a signal put aside", |fault| {
        masked(|| {
            strike(first());
            fault();
        });
    }),
    ("in the handler of another signal", |_| strike(second())),
    ("in a handler that was deferred", |_| masked(|| strike(second()))),
];

fn masked(body: impl FnOnce()) {
    use ulocks_core::signal::{Mask, Soft};
    Soft::raise();
    body();
    Soft::lower();
}
