//! What is made of records: tables, the answer, the page, comparisons, and records that are kept.

pub mod answer;
#[cfg(test)]
pub(crate) mod fixture;
pub mod page;
pub mod svg;
pub mod tables;
pub mod units;
