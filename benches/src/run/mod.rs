//! One run on this machine: the process that it gets, the CPUs that it uses, the clocks that it is
//! measured by, and a description of all that.

pub mod busy_work;
pub mod child;
pub mod clock;
pub mod crew;
pub mod machine;
pub mod pinning;
pub mod syscalls;
pub mod threads;
pub mod waits;
