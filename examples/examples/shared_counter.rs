//! A lock in memory that two processes share.

use std::ptr;
use ulocks::Shared;
use ulocks::unfair::MutexWith;

type Counter = MutexWith<u64, Shared>;

const ROUNDS: u64 = 50_000;

/// Zeroed memory that this process and its children share.
fn shared_counter() -> &'static Counter {
    // SAFETY: asks for a fresh mapping at no particular place.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size_of::<Counter>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    // SAFETY: the mapping is large enough, page-aligned, never unmapped, and all zero: an unlocked
    // mutex around 0.
    unsafe { &*page.cast() }
}

fn main() {
    let counter = shared_counter();
    // SAFETY: this process has one thread, so the child may go on as if nothing had happened.
    let child = unsafe { libc::fork() };
    assert_ne!(child, -1, "{}", std::io::Error::last_os_error());
    for _ in 0..ROUNDS {
        *counter.lock() += 1;
    }
    if child == 0 {
        // SAFETY: ends the child without running what the parent will run.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is writable for the duration of the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");

    let count = *counter.lock();
    assert_eq!(count, 2 * ROUNDS);
    println!("{count} rounds by two processes: none lost");
}
