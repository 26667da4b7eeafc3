//! What the kernel is said to have, against what it does; and each fallback, forced.

#![cfg(all(world = "machine", not(miri)))]

mod support;

use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;
use support::asleep;
use ulocks_core::capabilities::{Capability, capabilities, force_fallback};
use ulocks_core::futex::{Futex, Local, PiError, Waited, Waiter, WaitvError, WaitvOutcome, waitv};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::tid;
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit as _;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What is forced is forced for the whole process.
fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn the_probes_agree_with_the_operations() {
    let _alone = alone();
    let has = capabilities();
    let futex = Futex::<Local>::new(1);
    let waitv = waitv(&[Waiter::new(&futex, 0)], None);
    assert_eq!(waitv != Err(WaitvError::Unsupported), has.has(Capability::Waitv));
    let lock = Futex::<Local>::new(0).lock_pi(None);
    assert_eq!(lock != Err(PiError::Unsupported), has.has(Capability::PriorityInheritance));
    // The call, or the lack of it, is noted by the lock above.
    assert_eq!(capabilities(), has);
    assert!(!has.has(Capability::LockPi2) || has.has(Capability::PriorityInheritance));
    assert!(has.has(Capability::Time64) || cfg!(target_pointer_width = "32"));
}

#[test]
fn the_probe_of_the_barrier_agrees_with_the_barrier() {
    let _alone = alone();
    let register = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    // SAFETY: registers the process for a barrier that no test here makes.
    let registered = unsafe { libc::syscall(libc::SYS_membarrier, register, 0, 0) } == 0;
    assert_eq!(registered, capabilities().has(Capability::Membarrier));
}

#[test]
fn the_report_is_one_line_with_everything_in_it() {
    let _alone = alone();
    let (has, report) = (capabilities(), capabilities().to_string());
    assert!(!report.contains('\n'));
    let (there, lacking) = report.split_once("; lacks ").unwrap_or((&report, ""));
    for capability in Capability::ALL {
        let part = if has.has(capability) { there.trim_start_matches("has ") } else { lacking };
        assert!(part.split(", ").any(|item| item == capability.to_string()), "{capability} in {report}");
    }
    assert!(has.iter().all(|capability| has.has(capability)));
    assert_eq!(has.iter().count() + lacking.split_terminator(", ").count(), Capability::ALL.len());
    let forced: Vec<_> = Capability::ALL.into_iter().map(force_fallback).collect();
    let report = capabilities().to_string();
    assert!(report.starts_with("lacks 64-bit time, "), "{report}");
    drop(forced);
}

#[test]
fn what_is_forced_twice_is_free_after_the_second() {
    let _alone = alone();
    let before = capabilities();
    let first = force_fallback(Capability::Membarrier);
    let second = force_fallback(Capability::Membarrier);
    drop(first);
    assert!(!capabilities().has(Capability::Membarrier));
    drop(second);
    assert_eq!(capabilities(), before);
}

#[test]
fn without_the_call_waitv_is_unsupported() {
    let _alone = alone();
    let _old_kernel = force_fallback(Capability::Waitv);
    let futex = Futex::<Local>::new(1);
    assert_eq!(waitv(&[Waiter::new(&futex, 0)], None), Err(WaitvError::Unsupported));
    assert_ne!(waitv(&[], None), Ok(WaitvOutcome::Mismatch));
}

/// It changed nothing.
#[test]
fn without_priority_inheritance_its_operations_are_unsupported() {
    let _alone = alone();
    let (event, futex) = (Futex::<Local>::new(1), Futex::<Local>::new(tid::current()));
    let _old_kernel = force_fallback(Capability::PriorityInheritance);
    assert_eq!(futex.lock_pi(None), Err(PiError::Unsupported));
    assert_eq!(futex.try_lock_pi(), Err(PiError::Unsupported));
    assert_eq!(event.wait_requeue_pi(2, &futex, None), Err(PiError::Unsupported));
    assert_eq!(event.cmp_requeue_pi(1, 0, &futex), Err(PiError::Unsupported));
    assert_eq!((futex.unlock_pi(), futex.load(Relaxed)), (Ok(()), 0), "what is held can be released");
}

/// On 64-bit machines this forces nothing; on 32-bit ones, seconds that do not fit.
#[test]
fn without_64_bit_time_deadlines_saturate() {
    let _alone = alone();
    let _old_kernel = force_fallback(Capability::Time64);
    let futex = Futex::<Local>::new(1);
    let far = Deadline::new(Clock::Realtime, Duration::from_secs(1 << 40));
    for deadline in [None, Some(Deadline::NEVER), Some(far)] {
        thread::scope(|scope| {
            let sleeper = asleep(scope, || futex.wait(1, deadline));
            assert_eq!(futex.key().wake(1), 1);
            assert_eq!(sleeper.join(), Waited::Woken);
        });
    }
    let soon = Deadline::after(Duration::from_millis(3));
    assert_eq!(futex.wait(1, Some(soon)), Waited::TimedOut);
    assert!(soon.has_passed());
}
