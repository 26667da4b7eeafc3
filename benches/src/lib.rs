//! What every benchmark of this repository shares: the locks under test, the work done with them,
//! trials, pinning, statistics, and a description of the machine.
//!
//! A trial is one lock under one load (`trial`); the programs that compare locks run trials of all
//! of them in turn, in fresh processes, and judge ratios within a round (`stats`). How it is meant
//! to be honest is written where it is done.

pub mod condvar;
pub mod convoy;
pub mod duel;
pub mod flex;
pub mod futexes;
pub mod handoff;
pub mod keeper;
pub mod locks;
pub mod machine;
pub mod options;
pub mod pairs;
pub mod pin;
pub mod promises;
pub mod report;
pub mod rounds;
pub mod rw;
pub mod scaling;
pub mod sem;
pub mod semset;
pub mod stats;
mod status;
pub mod trial;
pub mod work;
