//! The mutex.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_fair::RawFairMutex;
use ulocks_testkit::shared;
use ulocks_testkit::stress::Load;

ulocks_testkit::shared_tests! { Load::default(); RawFairMutex<Shared>, RawFairMutex<Shared<NoSpin>> }

/// More than have room in the queue with a deadline.
#[test]
fn many_processes_that_give_up_strand_nobody() {
    let many = Load { threads: 32, operations: 500, ..Load::default() };
    shared::timed::<RawFairMutex<Shared>>(many).check(many);
}
