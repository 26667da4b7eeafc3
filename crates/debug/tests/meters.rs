//! A checked lock has the meter of the lock inside.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::{Private, meter::Counted, raw::Metered, spin::Adaptive};
use ulocks_debug::*;
use ulocks_testkit as _;

named!(Inside = "inside");

#[test]
fn a_stamped_lock_is_in_the_profile_inside_of_a_checked_one() {
    static OUTSIDE: Class = Class::new("outside");
    type Lock<M> = CheckedMutex<ulocks_unfair::RawBargingMutex<Private<Adaptive, M>>, u8>;
    let stamped = Lock::<profile::Stamped<Inside>>::new_in(&OUTSIDE, 0);
    profile::start();
    *stamped.lock() += 1;
    profile::stop();
    let profile = profile::snapshot();
    let acquired = ["outside", "inside"].map(|name| {
        profile.classes().iter().find(|line| line.lock.name == name).map(|line| line.sums.acquired)
    });
    assert_eq!(acquired, [Some(1), Some(1)]);
    let counted = Lock::<Counted>::new(0);
    *counted.lock() += 1;
    assert_eq!(counted.counts().acquired, 1);
}
