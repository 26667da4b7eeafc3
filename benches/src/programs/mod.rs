//! The programs: which workloads, which subjects, and the tables. What they share is the
//! [`harness`] and the command line ([`options`]).

pub mod condvar;
pub mod convoy;
pub mod evidence;
pub mod harness;
pub mod options;
mod progress;
pub mod promises;
pub mod psrw;
pub mod scaling;
pub mod semaphores;
pub mod shared;
pub mod shares;
mod status_line;
pub mod test_mutex;
pub mod tofutex;
mod turns;
pub mod ulockflex;
