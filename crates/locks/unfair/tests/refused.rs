//! A kernel that refuses the futex calls of a lock: the process aborts if other threads depend on
//! the caller, and else the call unwinds. One that takes the barrier of `AsymMutex` away strands
//! nobody.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use ulocks_core::capabilities::{Capability, force_fallback};
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_core::{Private, Shared, membarrier};
use ulocks_testkit::limit::until;
use ulocks_testkit::{refusal, task};
use ulocks_unfair::{RawAsymMutex, RawBargingMutex, RawThroughputMutex};

type Here = Private<NoSpin, Counted>;
type Between = Shared<NoSpin, Counted>;

/// The waiter leaves a mark behind, which costs a system call.
#[test]
fn a_waiter_of_a_mutex_that_is_refused_strands_nobody() {
    refusal::waiter_unwinds::<RawBargingMutex<Here>>("a_waiter_of_a_mutex_that_is_refused_strands_nobody");
}

#[test]
fn a_waiter_of_a_shared_mutex_that_is_refused_strands_nobody() {
    refusal::waiter_unwinds::<RawBargingMutex<Between>>(
        "a_waiter_of_a_shared_mutex_that_is_refused_strands_nobody",
    );
}

/// The waiter has left the gate before it sleeps.
#[test]
fn a_waiter_of_an_asymmetric_mutex_that_is_refused_strands_nobody() {
    refusal::waiter_unwinds::<RawAsymMutex<Here>>(
        "a_waiter_of_an_asymmetric_mutex_that_is_refused_strands_nobody",
    );
}

/// Two mutexes of one gate, since their cache line is the same.
#[repr(align(64))]
#[derive(Default)]
struct Neighbours {
    mutex: RawAsymMutex<Private<NoSpin>>,
    other: RawAsymMutex<Private<NoSpin>>,
}

impl Neighbours {
    /// Whether the gate is open: acquisitions get a pass.
    fn are_released_by_stores(&self) -> bool {
        let pass = self.other.lock();
        let is_some = format!("{pass:?}") != "Pass(0)";
        // SAFETY: locked above, with this pass.
        unsafe { self.other.unlock(pass) };
        is_some
    }

    /// The word of `mutex`.
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the mutex is one atomic word, which is borrowed.
        unsafe { AtomicU32::from_ptr((&raw const self.mutex).cast_mut().cast()) }
    }
}

/// A holder's store overwrites the last mark of a waiter that leaves, and the holder has looked at
/// the gate before that waiter came to it. The test makes that store.
#[test]
fn a_waiter_of_an_asymmetric_mutex_that_leaves_without_the_barrier_strands_no_sleeper() {
    const UNLOCKED: u32 = 0;
    const CONTENDED: u32 = 2;
    if !membarrier::ready() {
        return println!("not tested: a waiter that leaves without the barrier: there is none here");
    }
    // Leaked, so that a sleeper that is stranded does not keep the test.
    let both: &Neighbours = Box::leak(Box::default());
    let held = both.mutex.lock();
    let (tell, told) = mpsc::channel();
    let sleeper = thread::spawn(move || {
        tell.send(task::id()).expect("the test waits for it");
        both.mutex.lock()
    });
    let id = told.recv().expect("the sleeper tells its id");
    until("the sleeper has marked the mutex", || both.word().load(SeqCst) == CONTENDED);
    task::until_asleep(&[id]);
    // A waiter of another test may shut the gate.
    until("a waiter finds the gate open, and leaves", || {
        until("the gate is open again", || both.are_released_by_stores());
        let _old_kernel = force_fallback(Capability::Membarrier);
        assert!(both.mutex.lock_until(Deadline::after(Duration::from_millis(3))).is_none());
        both.are_released_by_stores()
    });
    // In place of a release with `held`.
    let _ = held;
    both.word().store(UNLOCKED, SeqCst);
    until("the sleeper has the mutex", || sleeper.is_finished());
}

#[test]
fn a_release_of_a_mutex_that_cannot_wake_does_not_go_on() {
    refusal::release_aborts::<RawBargingMutex<Here>>("a_release_of_a_mutex_that_cannot_wake_does_not_go_on");
}

/// The mutex names the node, which is on the stack that would unwind.
#[test]
fn a_waiter_of_a_throughput_mutex_that_is_refused_does_not_free_its_node() {
    refusal::waiter_aborts::<RawThroughputMutex<Here>>(
        "a_waiter_of_a_throughput_mutex_that_is_refused_does_not_free_its_node",
    );
}

/// `parking_lot_core` panics while its queue names thread-local memory. It aborts by itself.
#[cfg(feature = "parking_lot")]
#[test]
fn a_waiter_of_a_byte_mutex_that_is_refused_does_not_leave_its_entry() {
    let test = "a_waiter_of_a_byte_mutex_that_is_refused_does_not_leave_its_entry";
    refusal::aborts(test, &["futex wait failed with error", "aborting due to panic in parking lot"], || {
        let lock = ulocks_unfair::RawByteMutex::<Private<NoSpin>>::new();
        lock.lock();
        refusal::waits_refused(libc::FUTEX_WAIT, || lock.lock());
    });
}
