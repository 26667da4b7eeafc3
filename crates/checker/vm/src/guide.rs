//! How to check a protocol with this crate, in ten pages. The page `more` needs the features
//! `linux` and `linear`.
//!
//! | page | what it is for |
//! |---|---|
//! | [`start`] | from an empty directory to a protocol that has been explored |
//! | [`from_loom`] | from a crate that has loom tests |
//! | [`modelled`] | what the machine models, and what not |
//! | [`bounds`] | how to bound an exploration, and what its report says |
//! | [`loops`] | busy-waits, and loops that end by themselves |
//! | [`stories`] | how to read a failure |
//! | [`doubt`] | how to doubt a model that passes |
//! | [`bugs`] | five bugs, found, read and mended |
#![cfg_attr(
    all(feature = "linux", feature = "linear"),
    doc = "| [`more`] | deaths, signals, time, histories, costs |"
)]
//! | [`others`] | loom, shuttle, Miri, GenMC, CDSChecker |

#[doc = include_str!("../guide/start.md")]
pub mod start {}

#[doc = include_str!("../guide/from_loom.md")]
pub mod from_loom {}

#[doc = include_str!("../guide/modelled.md")]
pub mod modelled {}

#[doc = include_str!("../guide/bounds.md")]
pub mod bounds {}

#[doc = include_str!("../guide/loops.md")]
pub mod loops {}

#[doc = include_str!("../guide/stories.md")]
pub mod stories {}

#[doc = include_str!("../guide/doubt.md")]
pub mod doubt {}

#[doc = include_str!("../guide/bugs.md")]
pub mod bugs {}

#[cfg(all(feature = "linux", feature = "linear"))]
#[doc = include_str!("../guide/more.md")]
pub mod more {}

#[doc = include_str!("../guide/others.md")]
pub mod others {}
