//! What every benchmark of this repository shares, from the bottom up:
//!
//! | folder | what |
//! |---|---|
//! | `statistics` | means, intervals, ratios over rounds, delays, random numbers |
//! | `run` | one run on this machine: a process for it, its CPUs, clocks, busy work, counted system calls |
//! | `subjects` | what is measured: mutexes, reader-writer locks, semaphores, condition variables, each by name |
//! | `workloads` | what subjects are put through, each workload in a process of its own |
//! | `report` | the record of a run of `scaling`, its tables and its page |
//! | `programs` | which workloads, which subjects, and the tables; and the harness that all of them share |
//!
//! No folder uses one below it in this table. The harness needs workloads and reports, and both of
//! these need what is in `run`: so the harness is among the programs.
//!
//! Programs that compare locks run trials of all of them in turn, in fresh processes, and judge
//! ratios within a round.

#[cfg(test)]
use ulocks_testkit as _;

pub mod programs;
pub mod report;
pub mod run;
pub mod statistics;
pub mod subjects;
pub mod workloads;
