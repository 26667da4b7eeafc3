//! The benchmarks of this repository: one program, its rows, and what is made of its records.
//!
//! | folder | what |
//! |---|---|
//! | `statistics` | means, intervals, ratios over rounds, random numbers |
//! | `run` | one run on this machine: a process for it, its CPUs, clocks, delays, busy work, counted system calls |
//! | `subjects` | what is measured, each by name and without its type; the inner loops, compiled for each |
//! | `workloads` | what subjects are put through: a [`Scenario`](workloads::Scenario), carried out in a process of its own |
//! | `engine` | cells and records, the plan of a run, its turns, its command line |
//! | `rows` | the rows of the program: which scenarios, which subjects, which columns and sentences |
//! | `report` | tables, the answer, the page, comparisons and kept records |
//! | `mails` | the programs of the five mails, with their own arguments and columns |
//!
//! Folders use those above them in this table, with these exceptions: workloads and run name the
//! outcome of a trial, which is the engine's; the program in `engine` starts rows and reports;
//! engine and rows write numbers by `report::units`; and the page shows the mails' tables.

#[cfg(test)]
use ulocks_testkit as _;

pub mod engine;
pub mod mails;
pub mod report;
pub mod rows;
pub mod run;
pub mod statistics;
pub mod subjects;
pub mod workloads;
