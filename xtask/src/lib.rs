//! What the commands of this repository share: `cargo xtask` and `cargo lab`.

pub mod exec;
pub mod filters;
pub mod nightly;
pub mod programs;
pub mod scan;
pub mod steps;
pub mod tools;
pub mod workspace;
pub mod world;
