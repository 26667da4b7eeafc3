//! A lock passed to and fro between two threads.

use super::*;

/// Carries it out in this process.
pub fn carry_out(_: &str, _: &Conditions) -> Result<Outcome> {
    todo!()
}
