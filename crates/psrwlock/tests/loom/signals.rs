//! Handlers that strike at each of a thread's points of interruption, in turn.

use crate::clients::place::Role;
use crate::clients::signals::{Handler, struck_beside_steps, struck_reader, struck_writer};
use crate::{At, Four, Plain, exact, timed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use ulocks_core::model::{Config, explore, finds_bug_saying, interrupt_at};
use ulocks_psrwlock::{BULK, Bulk, HANDLER, Nested, Urgent, seeded as bug};

type Handled = Plain<{ BULK | HANDLER }>;

/// So many points does a reader that need not wait pass before it is outside again.
const OUTSIDE: usize = 4;

fn at(points: usize) -> impl Fn(Handler) {
    move |handler| interrupt_at(points, move || handler())
}

/// Explores `client` with a signal at the first point, at the second, and so on until none comes any more.
fn at_each_point(config: impl Fn() -> Config, client: impl Fn(usize) -> bool + Copy + Send + Sync + 'static) {
    for points in 0.. {
        let came = Arc::new(AtomicBool::new(false));
        let comes = Arc::clone(&came);
        explore(config(), move || comes.store(client(points) | comes.load(Relaxed), Relaxed));
        if !came.load(Relaxed) {
            assert!(points > 4, "there are no points");
            return;
        }
    }
}

#[test]
fn a_writer_is_not_struck_where_handlers_could_not_read() {
    type H = At<Handled>;
    let roles: [Role<Handled, 0>; 8] = [
        H::writes,
        H::writes_fairly,
        H::tries_to_write,
        H::upgrades,
        H::tries_to_upgrade,
        H::downgrades,
        H::goes_up_and_down,
        H::writes_in_time,
    ];
    for role in roles {
        at_each_point(|| exact(2), move |points| struck_writer(at(points), role, []));
        // Beside a reader, which makes it sift.
        at_each_point(|| timed(2, 2), move |points| struck_writer(at(points), role, [H::reads::<Bulk>]));
    }
}

#[test]
fn a_handler_on_a_reader_gets_in() {
    at_each_point(|| exact(2), |points| struck_reader::<Handled, Bulk, 0, 1>(at(points), 1, [At::writes]));
    at_each_point(|| exact(2), |points| struck_reader::<Four, Nested, 0, 1>(at(points), 2, [At::writes]));
    at_each_point(
        || exact(1),
        |points| struck_reader::<Four, Urgent, 0, 2>(at(points), 1, [At::writes, At::writes]),
    );
}

#[test]
fn a_write_in_steps_lets_handlers_by() {
    for polls in 1..4 {
        explore(exact(2), move || struck_beside_steps::<Handled>(at(0), polls));
        explore(exact(2), move || struck_beside_steps::<Handled>(at(1), polls));
    }
}

#[test]
fn each_bug_is_found() {
    const SHUT: &str = "a handler finds the lock shut by its own thread";
    /// At which point nobody knows beforehand: each is part of the model.
    fn found(says: &str, client: impl Fn(usize) -> bool + Copy + Send + Sync + 'static) {
        finds_bug_saying(says, exact(2), move || _ = (0..).take_while(|&points| client(points)).count());
    }
    found(SHUT, |points| struck_writer::<Handled, { bug::UNMASKED }, 0>(at(points), At::writes, []));
    found(SHUT, |points| struck_writer::<Handled, { bug::LOWERS_EARLY }, 0>(at(points), At::writes, []));
    // It strikes a thread that is outside, and has made the writer sift.
    finds_bug_saying("Causality violation", exact(3), || {
        struck_reader::<Handled, Bulk, { bug::FORGETS_HANDLERS }, 1>(at(OUTSIDE), 1, [At::writes]);
    });
}
