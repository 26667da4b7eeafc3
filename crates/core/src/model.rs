//! Model checking of protocols made of [`sync`](crate::sync) and [`futex`](crate::futex), and of code that uses the
//! typed locks.
//!
//! **Empty on the machine.** What is described here exists where the loom world is asked for, by the feature `loom`
//! together with `--cfg ulocks_loom`:
//! ```console
//! $ RUSTFLAGS="--cfg ulocks_loom" cargo test --release --features loom
//! ```
//!
//! `explore` runs a closure under loom in every execution loom can distinguish, up to a bound on preemptions, and
//! fails if one of them panics, deadlocks, races or never ends. `finds_bug` demands the opposite: a seeded bug must
//! be found.
//!
//! ```ignore
//! use std::sync::Arc;
//! use ulocks_core::futex::{Futex, Private};
//! use ulocks_core::model::{self, Config};
//! use ulocks_core::sync::Ordering::{Acquire, Release};
//!
//! model::explore(Config::default(), || {
//!     let gate = Arc::new(Futex::<Private>::new(0));
//!     let opener = {
//!         let gate = Arc::clone(&gate);
//!         loom::thread::spawn(move || {
//!             gate.swap(1, Release);
//!             gate.key().wake(u32::MAX);
//!         })
//!     };
//!     while gate.load(Acquire) == 0 {
//!         gate.wait(0, None);
//!     }
//!     opener.join().unwrap();
//! });
//! ```
//!
//! # Choices
//! Whether a timed wait expires, and whether a wait ends spuriously, are choices loom knows nothing of. The harness
//! enumerates them around loom: with `Config::timeouts` set to `k` the first `k` looks at a deadline in an execution
//! are told that it has passed or that it has not, in all combinations. A combination that no execution can tell from
//! one already explored is left out.
//!
//! # What a pass means
//! No failure in the executions loom visits within the bound. Loom's reduction leaves out some executions and its
//! memory model has gaps (see its documentation); a pass is strong evidence and no proof. Use three threads at least
//! once: two-thread models miss errors in chains of wake-ups.
//!
//! # Environment
//! `LOOM_MAX_PREEMPTIONS`, `LOOM_MAX_BRANCHES`, `LOOM_MAX_PERMUTATIONS` and `LOOM_MAX_DURATION` (seconds) override the
//! configuration, `LOOM_LOCATION` works as in loom. An exploration that a limit cuts short has failed, and says so.

#[cfg(all(ulocks_loom, feature = "loom"))]
pub use crate::world::model::*;
