//! Time slice extensions on the machine: what the kernel says, and what a lock does with and
//! without them.
#![cfg(world = "machine")]
#![cfg_attr(miri, allow(unused))]

#[path = "common/mod.rs"]
mod common;

use common::Plain;
use std::sync::Mutex;
use std::thread;
use ulocks_core::api;
use ulocks_core::capabilities::{Capability, capabilities, force_fallback};
use ulocks_core::slice::{Extended, SliceError, enable, enter, is_enabled, leave};
use ulocks_testkit as _;

/// A capability that is forced away is away for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// On a thread of its own, since a thread that is enabled stays so.
fn on_a_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(f).join().expect("passes"))
}

#[cfg(not(miri))]
fn state() -> libc::c_long {
    // SAFETY: a question: PR_RSEQ_SLICE_EXTENSION_GET.
    unsafe { libc::syscall(libc::SYS_prctl, 79, 1usize, 0usize, 0usize, 0usize) }
}

#[test]
fn it_is_enabled_or_says_why_not_and_keeps_errno() {
    let _alone = ALONE.lock();
    on_a_thread(|| {
        // SAFETY: the address is this thread's.
        unsafe { *libc::__errno_location() = 4711 };
        assert!(!is_enabled());
        let answer = enable();
        assert_eq!(enable(), answer);
        assert_eq!(is_enabled(), answer.is_ok());
        // SAFETY: as above.
        assert_eq!(unsafe { *libc::__errno_location() }, 4711);
        match answer {
            Ok(()) => assert!(capabilities().has(Capability::SliceExtension)),
            Err(error) => println!("not enabled: {error}"),
        }
        let known = capabilities().has(Capability::SliceExtension);
        assert_eq!(answer == Err(SliceError::Unsupported), !known);
        #[cfg(not(miri))]
        assert_eq!(state(), if known { libc::c_long::from(answer.is_ok()) } else { -1 });
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = 0 };
    });
    assert!(!on_a_thread(is_enabled), "a thread starts without");
}

#[test]
fn what_is_forced_away_is_unsupported() {
    let _alone = ALONE.lock();
    let _old_kernel = force_fallback(Capability::SliceExtension);
    on_a_thread(|| {
        assert_eq!(enable(), Err(SliceError::Unsupported));
        assert!(!is_enabled());
        enter();
        leave();
        leave();
    });
}

/// Where the kernel has it this asks it, in earnest; elsewhere it shows that nothing is lost.
#[test]
fn a_lock_works_with_it_and_without() {
    let _alone = ALONE.lock();
    const TIMES: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let total = api::Mutex::<Extended<Plain>, u64>::new(0);
    let answers = thread::scope(|scope| {
        let threads = [true, true, false, false].map(|wants| {
            let total = &total;
            scope.spawn(move || {
                let answer = wants.then(enable);
                for _ in 0..TIMES {
                    let mut outer = total.lock();
                    enter();
                    *outer += 1;
                    leave();
                }
                answer
            })
        });
        threads.map(|thread| thread.join().expect("passes"))
    });
    assert_eq!(*total.lock(), 4 * TIMES);
    if answers[0] != Some(Ok(())) {
        println!("nothing was asked of the kernel: {}", answers[0].unwrap().unwrap_err());
    }
}

#[test]
fn every_error_says_what_to_do() {
    for (error, part) in [
        (SliceError::Unsupported, "Linux 7.0"),
        (SliceError::Disabled, "rseq_slice_ext="),
        (SliceError::NoArea, "glibc 2.41"),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}
