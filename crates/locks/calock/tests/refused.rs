//! A kernel that refuses the futex calls of a calock: the process aborts, because other threads
//! depend on the waiter.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use ulocks_calock::RawCalock;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::refusal;

/// The waiter may be the candidate.
#[test]
fn a_waiter_that_is_refused_does_not_stay_the_candidate() {
    refusal::waiter_aborts::<RawCalock<Private<NoSpin, Counted>>>(
        "a_waiter_that_is_refused_does_not_stay_the_candidate",
    );
}
