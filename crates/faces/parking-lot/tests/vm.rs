//! Models of the protocols on the virtual machine: many threads, old values, deadlines, spurious
//! ends of a sleep. The mutants in `mutants/*.toml` show what they find.
#![cfg(all(ulocks_vm, feature = "vm"))]

mod clients;

use clients::condvar::Shipped;
use clients::rwlock::{DEEP, ONCE, PLAIN, TWICE, readers_beside_writers, readers_meet_inside};
use clients::{condvar, once};
use ulocks_core::model::{Config, explore};

fn sampled() -> Config {
    Config { spurious: 2, ..Config::sampled(3_000) }
}

#[test]
fn notifications_count_those_that_say_they_were_notified() {
    for (patient, timed) in [(1, 0), (2, 0), (1, 1), (0, 2), (2, 2), (4, 4)] {
        explore(sampled(), move || condvar::counts_agree::<Shipped>(patient, timed));
    }
}

#[test]
fn all_are_notified_and_counted() {
    for waiters in [1, 2, 3, 8] {
        explore(sampled(), move || condvar::all_at_once::<Shipped>(waiters));
        explore(sampled(), move || condvar::one_by_one::<Shipped>(waiters));
    }
}

#[test]
fn a_second_mutex_is_refused() {
    explore(sampled(), condvar::a_second_mutex_is_refused::<Shipped>);
}

#[test]
fn one_closure_runs_and_all_see_it() {
    explore(Config::exhaustive(), || once::one_of_several_runs(2, 0));
    for (callers, waiters) in [(2, 0), (1, 1), (2, 2), (4, 3)] {
        explore(sampled(), move || once::one_of_several_runs(callers, waiters));
    }
}

#[test]
fn a_thread_that_reads_may_read_again() {
    explore(sampled(), || readers_beside_writers(&[DEEP], 1));
    explore(sampled(), || readers_beside_writers(&[TWICE], 2));
    explore(sampled(), || readers_beside_writers(&[DEEP, TWICE], 2));
}

#[test]
fn a_release_is_of_what_covers_a_reader() {
    explore(sampled(), || readers_beside_writers(&[ONCE, PLAIN], 1));
    explore(sampled(), || readers_beside_writers(&[ONCE, PLAIN, ONCE], 1));
    explore(sampled(), || readers_beside_writers(&[ONCE, DEEP, PLAIN], 2));
    explore(sampled(), || readers_beside_writers(&[ONCE, ONCE, DEEP, PLAIN, TWICE], 3));
}

#[test]
fn readers_inside_do_not_wait_for_a_reader_behind_a_writer() {
    for (readers, writers) in [(2, 1), (2, 2), (3, 2)] {
        explore(sampled(), move || readers_meet_inside(readers, writers));
    }
}
