//! The number of the CPU on which the caller runs.

#[cfg(not(miri))]
#[inline]
pub(crate) fn current() -> Option<u32> {
    // SAFETY: takes nothing. It fails by returning -1.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}

#[cfg(miri)]
pub(crate) fn current() -> Option<u32> {
    None
}
