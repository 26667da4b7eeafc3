//! What the environment asks of an exploration: the table is in the documentation of `explore`.

use super::coverage::Coverage;
use super::{Config, Strategy};
use core::time::Duration;
use std::env;

impl Config {
    /// As the environment says: see the module's documentation.
    ///
    /// # Panics
    /// If a variable does not hold a number.
    #[must_use]
    pub fn with_environment(mut self) -> Self {
        if let Some(executions) = number("ULOCKS_VM_EXECUTIONS").filter(|_| self.is_sampled()) {
            self.executions = executions;
        }
        if let Some(seed) = number("ULOCKS_VM_SEED") {
            self.seed = seed;
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

/// What the environment says in figures.
pub(super) fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

/// The coverage, if the environment asks for it.
pub(super) fn asked_for() -> Option<Coverage> {
    env::var_os("ULOCKS_VM_COVERAGE").is_some().then(Coverage::default)
}
