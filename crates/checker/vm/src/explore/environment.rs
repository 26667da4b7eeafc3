//! What the environment asks of an exploration: the table is in the documentation of `explore`.

use super::coverage::Coverage;
use super::{Config, Strategy};
use core::time::Duration;
use std::env;

/// Fewer executions than these are no parts.
const SMALL: u64 = 100;

impl Config {
    /// As the environment says: see the module's documentation.
    ///
    /// # Panics
    /// If a variable does not hold a number, or a part.
    #[must_use]
    pub fn with_environment(mut self) -> Self {
        if let Some(executions) = number("ULOCKS_VM_EXECUTIONS").filter(|_| self.is_sampled()) {
            self.executions = executions;
        }
        if let Some(seed) = number("ULOCKS_VM_SEED") {
            self.seed = seed;
        }
        if let Some((part, of)) = part("ULOCKS_VM_PART").filter(|_| self.is_sampled()) {
            // Each seed has others of its own in the other parts. What is small is not divided.
            if self.executions >= SMALL {
                self.executions = self.executions.div_ceil(of);
            }
            self.seed = self.seed.wrapping_add((part - 1) << 32);
        }
        if let Some(seconds) = number("ULOCKS_VM_SECONDS") {
            self.budget = Some(Duration::from_secs(seconds));
        }
        if let Some(leaks) = number("ULOCKS_VM_LEAKS") {
            self.leaks = leaks != 0;
        }
        if let Ok(replay) = env::var("ULOCKS_VM_REPLAY") {
            self.strategy = Strategy::Replay(replay);
        }
        self
    }
}

/// The part that the environment names, as 2 of 3 by `2/3`.
fn part(name: &str) -> Option<(u64, u64)> {
    let text = env::var(name).ok()?;
    let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    let part = numbers.filter(|&(part, of)| part > 0 && part <= of);
    Some(part.unwrap_or_else(|| panic!("{name}={text}: not a part, such as 2/3")))
}

/// What the environment says in figures.
pub(super) fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

/// The coverage, if the environment asks for it.
pub(super) fn asked_for() -> Option<Coverage> {
    env::var_os("ULOCKS_VM_COVERAGE").is_some().then(Coverage::default)
}
