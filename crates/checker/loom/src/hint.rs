//! As `core::hint`.

/// Another thread has to go on, for this one to make progress.
#[track_caller]
pub fn spin_loop() {
    ulocks_vm::thread::yield_now();
}

/// A place that is never reached.
///
/// # Safety
/// None: to reach it is a panic.
///
/// # Panics
/// Always.
#[track_caller]
pub unsafe fn unreachable_unchecked() -> ! {
    unreachable!("`unreachable_unchecked` was reached")
}
