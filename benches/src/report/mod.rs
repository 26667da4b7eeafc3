//! What is made of records: tables, the answer, the page, comparisons, and records that are kept.

pub mod units;
