//! The mutex in two bits of a byte, whose waiters are in the parking lot. The lot grows with the
//! threads that have ever waited at once, and then no more.

use ulocks_testkit::crowd;
use ulocks_unfair::RawByteMutex;

#[test]
fn ten_thousand_wait_and_only_the_first_time_the_lot_grows() {
    // Threads that find no table at all each make one, of which one is kept.
    _ = crowd::wait_for_lock::<RawByteMutex>(1);
    let first = crowd::ten_thousand_wait::<RawByteMutex>();
    println!("{first:?}");
    // A table and its buckets, each time the number of threads has doubled: by one thread.
    assert!(first.allocations <= 2 * 16, "{first:?}");
    crowd::Crowd { allocations: 0, ..first }.check();
    let second = crowd::wait_for_lock::<RawByteMutex>(first.waited);
    second.check();
}
