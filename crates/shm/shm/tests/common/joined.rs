//! A member that a test may forget, with its guards, for a thread that dies.

use ulocks_shm::{Joined, Region, SharedSafe};

/// Lets the calling thread take part.
///
/// It is not `unsafe`, as the interface is: tests that forget members would all say the same.
pub fn joined<R: SharedSafe>(region: &Region<R>) -> Joined<'_> {
    // SAFETY: a test that forgets a member forgets its guards too, or is a process that ends. None
    // sends a reference by a guard to another thread.
    unsafe { region.join() }.expect("a slot")
}
