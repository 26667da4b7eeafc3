//! What else the door offers on the virtual machine: time, statics, busy-waits, thread ids; and the
//! example of the documentation, which is for both model worlds.
#![cfg(world = "vm")]

mod outcomes;

use outcomes::Outcomes;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ulocks_core::futex::{Futex, Local, Waited};
use ulocks_core::model::thread::spawn;
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_core::spin::{self, Look, NoSpin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, spin_until};
use ulocks_core::tid;
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit::thread::with;

const LATER: Duration = Duration::from_secs(1);

#[test]
fn the_example_of_the_documentation() {
    explore(Config::default(), || {
        let gate = Arc::new(Futex::<Local>::new(0));
        let opener = {
            let gate = Arc::clone(&gate);
            spawn(move || {
                gate.swap(1, Release);
                gate.key().wake(u32::MAX);
            })
        };
        while gate.load(Acquire) == 0 {
            gate.wait(0, None);
        }
        opener.join().unwrap();
    });
}

#[test]
fn a_report_names_the_line_of_the_lock() {
    let (line, file) = (line!() + 3, file!());
    let failure = finds_bug_saying("deadlock", Config::exhaustive(), || {
        let word = Futex::<Local>::new(0);
        word.wait(0, None);
    });
    let place = format!("{file}:{line}");
    assert!(failure.verdict.to_string().contains(&place), "{failure} does not name {place}");
}

#[test]
fn a_later_deadline_does_not_pass_before_an_earlier_one() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    explore(Config::exhaustive(), move || {
        let [first, second] = [(); 2].map(|()| Deadline::after_on(Clock::Realtime, LATER));
        assert!(first.passes_before(second));
        let later = second.has_passed();
        seen.add((first.has_passed(), later));
    });
    outcomes.are([(false, false), (true, false), (true, true)]);
}

#[test]
fn instants_are_moments_in_the_order_in_which_they_are_met() {
    explore(Config::exhaustive(), || {
        let now = Instant::now();
        let [first, second] = [now + LATER, now + 2 * LATER].map(Deadline::at);
        assert!(Deadline::after(Duration::ZERO).passes_before(first) && first.passes_before(second));
        assert_eq!(first, Deadline::at(now + LATER), "an instant is one moment in all of an execution");
    });
}

ulocks_core::sync_static! {
    /// Lives for one execution.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    pub(crate) static OTHER: AtomicU32 = AtomicU32::new(7);
}

#[test]
fn what_a_static_holds_at_first_needs_no_publication() {
    explore(Config::exhaustive(), || {
        let others = [(); 2].map(|()| spawn(|| OTHER.load(Relaxed)));
        for other in others {
            assert_eq!(other.join().unwrap(), 7);
        }
    });
    // Whereas an atomic that a thread makes has to be handed over.
    finds_bug_saying("creates the atomic", Config::exhaustive(), || {
        let place = Arc::new((AtomicU32::new(0), std::sync::OnceLock::new()));
        let maker = with(&place, |place| {
            let _ = place.1.set(AtomicU32::new(7));
            place.0.store(1, Relaxed);
        });
        if place.0.load(Relaxed) == 1 {
            assert_eq!(place.1.get().unwrap().load(Relaxed), 7);
        }
        maker.join().unwrap();
    });
}

#[test]
fn threads_of_the_system_have_statics_of_their_own() {
    let runs = [(); 4].map(|()| {
        std::thread::spawn(|| {
            explore(Config::sampled(500), || {
                let others = [(); 3].map(|()| spawn(|| COUNT.fetch_add(1, Relaxed)));
                others.into_iter().for_each(|other| _ = other.join().unwrap());
                assert_eq!(COUNT.load(Relaxed), 3);
            })
        })
    });
    for run in runs {
        assert!(run.join().unwrap().executions > 0);
    }
}

#[test]
fn a_busy_wait_ends_with_any_number_of_threads() {
    explore(Config::sampled(500), || {
        let turn = Arc::new(AtomicU32::new(0));
        let others = [1, 2, 3, 4, 5].map(|mine| {
            with(&turn, move |turn| {
                spin_until(|| turn.load(Acquire) == mine);
                turn.store(mine + 1, Release);
            })
        });
        turn.store(1, Release);
        spin_until(|| turn.load(Acquire) == 6);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    finds_bug_saying("deadlock", Config::exhaustive(), || {
        let never = AtomicU32::new(0);
        spin_until(|| never.load(Relaxed) == 1);
    });
}

fn looks(strategy: fn(&mut dyn FnMut() -> Look) -> bool) -> u32 {
    let mut looks = 0;
    assert!(!strategy(&mut || {
        looks += 1;
        Look::Taken
    }));
    looks
}

#[test]
fn a_budget_is_one_look() {
    use ulocks_core::Private;
    explore(Config::exhaustive(), || {
        assert_eq!(looks(|look| spin::backing_off::<Private>(look)), 1);
        assert_eq!(looks(|look| spin::closely::<Private>(look)), 1);
        assert_eq!(looks(|look| spin::backing_off::<Private<NoSpin>>(look)), 0);
    });
}

#[test]
fn a_thread_id_is_the_number_of_the_thread_from_one() {
    explore(Config::exhaustive(), || {
        let others = [(); 2].map(|()| spawn(tid::current));
        let ids = others.map(|other| other.join().unwrap());
        assert_eq!((tid::current(), ids), (1, [2, 3]));
    });
}

#[test]
fn the_callers_errno_is_its_own() {
    explore(Config::exhaustive(), || {
        let _errno = ulocks_core::errno::Guard::new();
        assert_eq!(Futex::<Local>::new(0).wait(1, None), Waited::Mismatch);
    });
}
