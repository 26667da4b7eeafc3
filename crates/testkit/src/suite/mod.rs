//! The tests that every mutex of the family has: one call of a macro for each kind of test.
//!
//! A lock names the types to test and a few numbers. The macros make only the `#[test]` functions;
//! what these do is in generic functions beside them. Tests that only one lock has stay beside the
//! call, in the file of the lock.
//!
//! | macro | tests | what the lock gives |
//! |---|---|---|
//! | [`stress_tests!`](crate::stress_tests) | exclusion, also by threads that move; waits that give up; signals; more threads than CPUs; the last user unmaps | the `Effort`, each policy and bound |
//! | [`interrupt_tests!`](crate::interrupt_tests) | waits that a signal handler ends, also on a condition variable | the `Effort`, each policy and bound |
//! | [`layout_tests!`](crate::layout_tests) | a static; a forgotten guard; counters; `UnwindSafe` | its typed face, its counting type, each scope |
//! | [`shared_tests!`](crate::shared_tests) | exclusion and waits that give up between processes | the load, each process-shared type |
//! | [`crowd_tests!`](crate::crowd_tests) | ten thousand threads wait and allocate nothing | each scope and bound |
//! | [`miri_tests!`](crate::miri_tests) | the clients of [`model`](crate::model); the typed face with its condition variable | its typed face, each way of waiting |
//! | [`loom_models!`](crate::loom_models) | exclusion, wake-ups, timeouts, last access, with small bounds | its types |
//! | [`vm_models!`](crate::vm_models) | the same, the truth of `try_lock`, and deaths | a seed for each type; the types that two threads explore exhaustively |
//!
//! The state spaces of the locks differ in size. So the bounds of the models of the virtual machine
//! are parameters. loom keeps few models of each lock, for its agreement with the machine.
//! Order, bounds on overtaking and robustness are promises of single locks and not in here.
//!
//! `xtask/src/scan.rs` reads the names of the tests from the macros below.

use core::panic::{RefUnwindSafe, UnwindSafe};
use ulocks_core::api::{Mutex, Raw, RawCondvar};
use ulocks_core::raw::RawMutex;

#[cfg(world = "loom")]
mod loom;
#[cfg(world = "machine")]
mod machine;
#[cfg(world = "vm")]
mod vm;

#[cfg(world = "loom")]
pub use loom::{exact, exclusion, last_unlocker_frees, no_lost_wake, timed, timeout_vs_unlock, unordered};
#[cfg(world = "machine")]
pub use machine::{
    Effort, clients, contended, counters_agree, counts_what_happened, excludes, handlers_end_waits,
    last_unlocker_unmaps, new_is_all_zero, oversubscribed, storm_of_signals, waiters_give_up,
};
#[cfg(world = "vm")]
pub use vm::{
    MANY, exclusion, exclusion_despite_deaths, interrupt_vs_unlock, last_unlocker_frees, no_lost_wake,
    timeout_vs_unlock, try_lock_coherence,
};

/// A mutex and its condition variable may be used across `catch_unwind`.
pub const fn a_panic_leaves_it_whole<L: RawMutex>()
where
    Raw<L>: UnwindSafe + RefUnwindSafe,
    RawCondvar<L>: UnwindSafe + RefUnwindSafe,
    Mutex<L, ()>: UnwindSafe,
{
}

/// The tests of a mutex under load: `stress_tests! { EFFORT; TYPE, ... }`.
#[macro_export]
macro_rules! stress_tests {
    ($effort:expr; $($lock:ty),+ $(,)?) => {
        #[test]
        fn excludes() {
            $($crate::suite::excludes::<$lock>($effort);)+
        }

        #[test]
        fn survives_waiters_that_give_up() {
            $($crate::suite::waiters_give_up::<$lock>($effort);)+
        }

        #[test]
        fn survives_a_storm_of_signals() {
            $($crate::suite::storm_of_signals::<$lock>($effort);)+
        }

        #[test]
        fn serves_everybody_when_oversubscribed() {
            $($crate::suite::oversubscribed::<$lock>($effort);)+
        }

        #[test]
        fn the_last_unlocker_may_unmap() {
            $($crate::suite::last_unlocker_unmaps::<$lock>($effort);)+
        }
    };
}

/// The tests of a mutex whose waits a signal handler can end:
/// `interrupt_tests! { EFFORT; TYPE, ... }`.
#[macro_export]
macro_rules! interrupt_tests {
    ($effort:expr; $($lock:ty),+ $(,)?) => {
        #[test]
        fn a_handler_ends_a_wait_and_strands_nobody() {
            $($crate::suite::handlers_end_waits::<$lock>($effort);)+
        }
    };
}

/// The tests of what a mutex promises of its memory:
/// `layout_tests! { TYPED; COUNTED; TYPE, ... }`.
#[macro_export]
macro_rules! layout_tests {
    ($typed:ident; $counted:ty; $($lock:ty),+ $(,)?) => {
        const _: () = { $($crate::suite::a_panic_leaves_it_whole::<$lock>();)+ };

        static IN_A_STATIC: $typed<()> = $typed::new(());

        #[test]
        fn lives_in_a_static() {
            let held = IN_A_STATIC.lock();
            assert!(IN_A_STATIC.is_locked());
            drop(held);
            assert!(!IN_A_STATIC.is_locked());
        }

        #[test]
        fn a_forgotten_guard_leaves_it_locked_and_it_may_be_moved() {
            let mutex = $typed::new(String::from("kept"));
            std::mem::forget(mutex.lock());
            let moved = Box::new(mutex);
            assert!(moved.is_locked() && moved.try_lock().is_none());
            assert_eq!(moved.into_inner(), "kept");
        }

        #[test]
        fn counts_what_happened() {
            $crate::suite::counts_what_happened::<$counted>();
        }
    };
}

/// The tests of a mutex between processes: `shared_tests! { LOAD; TYPE, ... }`.
#[macro_export]
macro_rules! shared_tests {
    ($load:expr; $($lock:ty),+ $(,)?) => {
        #[test]
        fn processes_exclude_one_another() {
            $($crate::shared::exclusion::<$lock>($load).check();)+
        }

        #[test]
        fn a_process_that_gives_up_strands_nobody() {
            $($crate::shared::timed::<$lock>($load).check();)+
        }
    };
}

/// The test of a mutex with ten thousand waiters: `crowd_tests! { TYPE, ... }`.
#[macro_export]
macro_rules! crowd_tests {
    ($($lock:ty),+ $(,)?) => {
        #[test]
        fn ten_thousand_wait_and_allocate_nothing() {
            $($crate::crowd::ten_thousand_wait::<$lock>().check();)+
        }
    };
}

/// The tests of a mutex that Miri can run: `miri_tests! { TYPED, CONDVAR; TYPE, ... }`.
#[macro_export]
macro_rules! miri_tests {
    ($typed:ident, $condvar:ident; $($lock:ty),+ $(,)?) => {
        #[test]
        fn the_mutex_serves_its_clients() {
            $($crate::suite::clients::<$lock>();)+
        }

        #[test]
        fn the_typed_face_hands_data_over() {
            let slot = $typed::new(None::<Box<u32>>);
            let filled = $condvar::new();
            let sum: u32 = std::thread::scope(|scope| {
                let taker = scope.spawn(|| {
                    let mut sum = 0;
                    let mut slot = slot.lock();
                    for _ in 0..5 {
                        while slot.is_none() {
                            filled.wait_for(&mut slot, std::time::Duration::from_secs(60));
                        }
                        sum += *slot.take().expect("the loop has ended");
                        filled.notify_all();
                    }
                    sum
                });
                for number in 1..=5 {
                    let mut slot = slot.lock();
                    while slot.is_some() {
                        filled.wait(&mut slot);
                    }
                    *slot = Some(Box::new(number));
                    filled.notify_all();
                }
                taker.join().expect("the taker does not panic")
            });
            assert_eq!(sum, 15);
        }
    };
}

/// The models of a mutex in loom's world: `loom_models! { TYPE, ... }`.
#[macro_export]
macro_rules! loom_models {
    ($($lock:ty),+ $(,)?) => {
        #[test]
        fn at_most_one_is_inside() {
            $($crate::suite::exclusion::<$lock>();)+
        }

        #[test]
        fn nobody_sleeps_for_ever() {
            $($crate::suite::no_lost_wake::<$lock>();)+
        }

        #[test]
        fn a_timeout_strands_nobody() {
            $($crate::suite::timeout_vs_unlock::<$lock>();)+
        }

        #[test]
        fn the_release_is_the_last_access() {
            $($crate::suite::last_unlocker_frees::<$lock>();)+
        }
    };
}

/// The models of a mutex on the virtual machine. `sampled` gives the bounds for a number of threads
/// and a seed. The lists of `exhaustive` are explored to the end with two threads, within a limit
/// of `preemptions` if there is one.
#[macro_export]
macro_rules! vm_models {
    (
        sampled: $sampled:expr,
        locks: [$($lock:ty = $seed:expr),+ $(,)?],
        exhaustive: {
            $(preemptions: $most:expr,)?
            exclusion: [$($excl:ty),*],
            no_lost_wake: [$($wake:ty),*],
            timeout_vs_unlock: [$($timed:ty),*],
            last_unlocker_frees: [$($last:ty),*] $(,)?
        },
        try_lock: [$($tried:ty),+],
        $(interrupted: [$($cut:ty = $cut_seed:expr),+ $(,)?],)?
        $(deaths: [$($mortal:ty = $chance:expr),+ $(,)?] $(,)?)?
    ) => {
        fn exhaustive() -> ulocks_core::model::Config {
            let preemptions = None::<u32>$(.or(Some($most)))?;
            ulocks_core::model::Config { preemptions, ..ulocks_core::model::Config::exhaustive() }
        }

        #[test]
        fn at_most_one_is_inside() {
            $(ulocks_core::model::explore(exhaustive(), || $crate::model::exclusion::<$excl>(2));)*
            $($crate::suite::exclusion::<$lock>($sampled, $seed);)+
        }

        #[test]
        fn try_lock_tells_the_truth() {
            $($crate::suite::try_lock_coherence::<$tried>($sampled);)+
        }

        #[test]
        fn nobody_sleeps_for_ever() {
            $(ulocks_core::model::explore(exhaustive(), || $crate::model::no_lost_wake::<$wake>(2, 1));)*
            $($crate::suite::no_lost_wake::<$lock>($sampled, $seed);)+
        }

        #[test]
        fn a_timeout_strands_nobody() {
            $(ulocks_core::model::explore(exhaustive(), || $crate::model::timeout_vs_unlock::<$timed>(2));)*
            $($crate::suite::timeout_vs_unlock::<$lock>($sampled, $seed);)+
        }

        #[test]
        fn the_release_is_the_last_access() {
            $(ulocks_core::model::explore(exhaustive(), || $crate::model::last_unlocker_frees::<$last>(2));)*
            $($crate::suite::last_unlocker_frees::<$lock>($sampled, $seed);)+
        }

        $(#[test]
        fn an_interrupted_waiter_strands_nobody() {
            $($crate::suite::interrupt_vs_unlock::<$cut>($sampled, $cut_seed);)+
        })?

        $(#[test]
        fn a_death_lets_nobody_in() {
            $($crate::suite::exclusion_despite_deaths::<$mortal>($sampled, $chance);)+
        })?
    };
}
