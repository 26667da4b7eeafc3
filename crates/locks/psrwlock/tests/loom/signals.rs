//! Handlers that strike at each of a thread's points of interruption, in turn.

use crate::clients::place::Role;
use crate::clients::signals::{Handler, struck_beside_steps, struck_reader, struck_writer};
use crate::{At, Four, Plain, exact, timed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use ulocks_core::model::{Config, explore, interrupt_at};
use ulocks_psrwlock::{BULK, Bulk, HANDLER, Nested, Urgent};

type Handled = Plain<{ BULK | HANDLER }>;

/// So many points does a reader that need not wait pass before it is outside again.
const OUTSIDE: usize = 4;

fn at(points: usize) -> impl Fn(Handler) {
    move |handler| interrupt_at(points, move || handler())
}

/// Explores `client` with a signal at the first point, at the second, and so on until none comes
/// any more.
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
    let roles: [Role<Handled>; 8] = [
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
    at_each_point(|| exact(2), |points| struck_reader::<Handled, Bulk, 1>(at(points), 1, [At::writes]));
    at_each_point(|| exact(2), |points| struck_reader::<Four, Nested, 1>(at(points), 2, [At::writes]));
    at_each_point(
        || exact(1),
        |points| struck_reader::<Four, Urgent, 2>(at(points), 1, [At::writes, At::writes]),
    );
}

/// The thread is outside when it is struck, and has made the writer sift.
#[test]
fn a_handler_beside_a_writer_that_sifts_is_alone() {
    explore(exact(3), || _ = struck_reader::<Handled, Bulk, 1>(at(OUTSIDE), 1, [At::writes]));
}

#[test]
fn a_write_in_steps_lets_handlers_by() {
    for polls in 1..4 {
        explore(exact(2), move || struck_beside_steps::<Handled>(at(0), polls));
        explore(exact(2), move || struck_beside_steps::<Handled>(at(1), polls));
    }
}
