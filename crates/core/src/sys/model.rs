//! Model checking of protocols made of [`sync`](crate::sync) and [`futex`](crate::futex), and of
//! code that uses the typed locks.
//!
//! **Empty on the machine.** What is described here exists in the two model worlds. Each is asked
//! for by a `cfg` and the feature that goes with it. A feature alone does nothing. A `cfg` alone,
//! and both worlds at once, are errors.
//!
//! | world | asked for by | what `explore` visits | threads | time | memory |
//! |---|---|---|---|---|---|
//! | loom | `--cfg ulocks_loom`, `loom` | every execution loom can tell apart, up to a bound on preemptions | 5 | a choice at each look | C11 in part: its read-modify-writes always see the newest value |
//! | the virtual machine | `--cfg ulocks_vm`, `vm` | executions by chance and by priorities, or all of a small model | any number | a clock | RC11 without load buffering |
//!
//! A crate whose features `loom` and `vm` pass on those of `ulocks-core` runs its models so:
//!
//! ```console
//! $ RUSTFLAGS="--cfg ulocks_loom" cargo test --release --features loom --test loom
//! $ RUSTFLAGS="--cfg ulocks_vm" cargo test --release --features vm --test vm
//! ```
//!
//! `explore` runs a closure in one execution after another, and fails if one of them panics,
//! deadlocks, races or never ends. `finds_bug` demands the opposite: an execution must fail. A
//! model is the same in both worlds but for the threads it starts and for what `Config` offers.
//!
//! What the same locks would cost on many CPUs is a matter for the crate `ulocks-vm-cost`, which
//! runs them on the virtual machine too.
//!
//! ```ignore
//! use std::sync::Arc;
//! use ulocks_core::futex::{Futex, Local};
//! use ulocks_core::model::{self, Config};
//! use ulocks_core::sync::Ordering::{Acquire, Release};
//! use ulocks_core::model::thread; // in the virtual machine; under loom, `loom::thread`
//!
//! model::explore(Config::default(), || {
//!     let gate = Arc::new(Futex::<Local>::new(0));
//!     let opener = {
//!         let gate = Arc::clone(&gate);
//!         thread::spawn(move || {
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
//! # In your own crate
//! Code that uses the locks is model-checked as they are, the data inside of them included. Two
//! things are written differently. A lock in a `static` is declared by
//! [`sync_static!`](crate::sync_static), since the atomics of a model are no constants. The code
//! takes its own atomics from [`sync`](crate::sync). The manifest has this, which takes effect in a
//! build for loom only, and needs no feature of the crate:
//!
//! ```toml
//! [target.'cfg(ulocks_loom)'.dev-dependencies]
//! loom = "0.7"
//! ulocks = { git = "https://github.com/ulocks/ulocks", features = ["loom"] }
//! ulocks-core = { git = "https://github.com/ulocks/ulocks" }
//!
//! [lints.rust]
//! unexpected_cfgs = { level = "warn", check-cfg = ["cfg(ulocks_loom)", "cfg(ulocks_vm)"] }
//! ```
//!
//! A model is a test, in a file that begins with `#![cfg(ulocks_loom)]`. It fails if an order of
//! the threads deadlocks, races, or breaks an assertion. If the file is `tests/loom.rs`, this runs
//! it: `RUSTFLAGS="--cfg ulocks_loom" cargo test --test loom`. For the virtual machine, the
//! feature, the cfg and the threads are those of `vm`. The guide of `ulocks-vm` has all steps from
//! an empty directory, and `examples/downstream` is a crate that follows them.
//!
//! # Under loom
//! Whether a timed wait expires, and whether a wait ends spuriously, are choices loom knows nothing
//! of. The harness enumerates them around loom. With `Config::timeouts` set to `k`, the first `k`
//! looks at a deadline are told that it has passed or that it has not, in all combinations. A
//! combination that no execution can tell from one already explored is left out.
//!
//! A pass means no failure in the executions loom visits within the bound. Loom's reduction leaves
//! out some executions and its memory model has gaps (see its documentation); a pass is strong
//! evidence and no proof. Use three threads at least once: two-thread models miss errors in chains
//! of wake-ups.
//!
//! `LOOM_MAX_PREEMPTIONS`, `LOOM_MAX_BRANCHES`, `LOOM_MAX_PERMUTATIONS` and `LOOM_MAX_DURATION`
//! (seconds) override the configuration, `LOOM_LOCATION` works as in loom. An exploration that a
//! limit cuts short has failed, and says so.
//!
//! # On the virtual machine
//! The harness is that of the crate `ulocks-vm`, passed on as it is: its documentation says what
//! the machine does and what it does not. Beside what is above there are signals and deaths at any
//! step, several processes, and a string with each failure that repeats it.
//!
//! A pass of an exhaustive exploration covers every execution of that model in that memory, within
//! the bounds that `Strategy::Exhaustive` states. A pass of one by chance is evidence, and more of
//! it with more executions: `ULOCKS_VM_EXECUTIONS` sets their number, `ULOCKS_VM_SEED` where chance
//! begins, `ULOCKS_VM_REPLAY` the one execution to repeat.

#[cfg(not(world = "machine"))]
pub use crate::sys::world::model::*;
