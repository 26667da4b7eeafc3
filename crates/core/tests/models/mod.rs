//! Models of the futex and of the typed faces, for both worlds. What the worlds differ in is here.

mod futex;
mod mutex;
mod rwlock;

pub use world::*;

#[cfg(world = "loom")]
mod world {
    use ulocks_core::model::{Config, Grade};

    /// How many threads a model may start.
    pub const OTHERS: u32 = 2;
    /// What the world says of two accesses that nothing orders.
    pub const RACE: &str = "Causality violation";
    /// What it says of an access during a write.
    pub const DURING_WRITE: &str = "currently writing";
    /// What it says of a write during a read.
    pub const DURING_READ: &str = "currently reading";
    /// What it says of threads that all sleep.
    pub const STUCK: &str = "deadlock";
    /// What it says of a sleeper whose wake-up came before it slept.
    pub const LOST: &str = "deadlock";

    /// A model small enough to see every execution of it.
    pub fn whole() -> Config {
        Config::unbounded()
    }

    /// A larger model: up to `preemptions`.
    pub fn some(preemptions: usize) -> Config {
        Config::bounded(preemptions)
    }

    /// `config` with up to `timeouts` polls of a deadline that may find it passed.
    pub fn timed(timeouts: u32, config: Config) -> Config {
        Config { timeouts, ..config }
    }

    /// `config` with a wake-up that orders nothing.
    pub fn unordered(config: Config) -> Config {
        Config { grade: Grade::Unordered, ..config }
    }
}

#[cfg(world = "vm")]
mod world {
    use ulocks_core::model::Config;

    /// How many threads a model may start.
    pub const OTHERS: u32 = 4;
    /// What the world says of two accesses that nothing orders.
    pub const RACE: &str = "data race";
    /// What it says of an access during a write.
    pub const DURING_WRITE: &str = "at the same time";
    /// What it says of a write during a read.
    pub const DURING_READ: &str = "at the same time";
    /// What it says of threads that all sleep.
    pub const STUCK: &str = "nobody can go on";
    /// What it says of a sleeper whose wake-up came before it slept.
    pub const LOST: &str = "lost wake-up";

    /// A model small enough to see every execution of it.
    pub fn whole() -> Config {
        Config::exhaustive()
    }

    /// A larger model: by chance.
    pub fn some(_: usize) -> Config {
        Config::sampled(2_000)
    }

    /// Deadlines pass at any moment in each model.
    pub fn timed(_: u32, config: Config) -> Config {
        config
    }

    /// No wake-up orders anything.
    pub fn unordered(config: Config) -> Config {
        config
    }
}
