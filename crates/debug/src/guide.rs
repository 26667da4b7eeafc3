//! The rules, the reports, the profile, the lists and their cost, a page each.

#[doc = include_str!("../guide/cost.md")]
pub mod cost {}

#[doc = include_str!("../guide/lists.md")]
pub mod lists {}

#[doc = include_str!("../guide/profile.md")]
pub mod profile {}

#[doc = include_str!("../guide/reports.md")]
pub mod reports {}

#[doc = include_str!("../guide/rules.md")]
pub mod rules {}
