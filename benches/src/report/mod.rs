//! What is made of records: tables, the answer, the page, comparisons, and records that are kept.

pub mod answer;
mod charts;
pub mod compare;
#[cfg(test)]
pub(crate) mod fixture;
pub mod kept;
pub mod looks;
pub mod overview;
pub mod page;
#[cfg(test)]
mod quoted;
pub mod svg;
pub mod tables;
pub mod units;
