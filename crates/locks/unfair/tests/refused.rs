//! A kernel that refuses the futex calls of a lock: the process aborts if other threads depend on
//! the caller, and else the call unwinds.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use ulocks_core::meter::Counted;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::refusal;
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
    use ulocks_core::raw::RawMutex as _;

    let test = "a_waiter_of_a_byte_mutex_that_is_refused_does_not_leave_its_entry";
    refusal::aborts(test, &["futex wait failed with error", "aborting due to panic in parking lot"], || {
        let lock = ulocks_unfair::RawByteMutex::<Private<NoSpin>>::new();
        lock.lock();
        refusal::waits_refused(libc::FUTEX_WAIT, || lock.lock());
    });
}
