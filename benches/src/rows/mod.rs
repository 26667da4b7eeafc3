//! The rows of the program: which scenarios, which subjects, and what is printed of them.
//!
//! A row is data: jobs for the engine, columns for its tables, and its sentences, the part of the
//! last screen that is about it.

use crate::engine::cell::Job;
use crate::engine::record::{Mode, Record};
use crate::workloads::Times;

/// A row of the program.
#[derive(Clone, Copy)]
pub struct Row {
    /// What it is called on the command line; its record has the same name.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// The mail of which it is the program, if it is one: `Mason 2010`.
    pub mail: Option<&'static str>,
    /// Its share of the time of a run on two CPUs, and of one with `--quick`, in seconds.
    pub share_s: (u64, u64),
    /// What is run.
    pub jobs: fn(&Wish) -> Vec<Job>,
    /// Subjects that the plan drops where the time is short, the first first. It drops no cell.
    pub drop_first: &'static [&'static str],
    /// The columns of its tables.
    pub columns: &'static [Column],
    /// What its record says, in sentences of at most 100 characters: who is ahead and where.
    pub sentences: fn(&Record) -> Vec<String>,
    /// What the reader of its tables must know, beside the meaning of the columns.
    pub notes: &'static str,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The figure.
    pub figure: &'static str,
    /// What it is divided by.
    pub by: By,
}

/// What a figure is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By nothing: the figure itself.
    Nothing,
    /// The best peer of the cell.
    BestPeer,
    /// This subject, in the same cell.
    Subject(&'static str),
}

/// What the command line and the machine ask of a row.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// CPUs that may be used.
    pub cpus: u32,
    /// How much the run shall support.
    pub mode: Mode,
    /// `--full`: everything, however long it takes.
    pub full: bool,
    /// `--threads`.
    pub threads: Option<Vec<u32>>,
    /// `--hold`, `--think`.
    pub times: Option<Times>,
    /// `--locks`, names in the registry of the row's subjects.
    pub subjects: Option<Vec<String>>,
}

/// Every row, in the order in which they run and are shown.
pub const ALL: &[Row] = &[];
