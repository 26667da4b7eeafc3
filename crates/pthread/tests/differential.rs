//! Runs C programs on glibc and under the library, and demands the same lines from both.
//!
//! Each program of `tests/programs` prints the result of each case. glibc's own locks give the
//! expected lines, so no file of expected lines can become stale. `ULOCKS_TEST_PTHREAD_ONLY` names
//! programs, with commas between them; the test of a choice then runs only these.

mod harness;

use harness::{Choice, Program, compare, library};

/// What a choice of locks must be tried on.
#[rustfmt::skip]
const PROGRAMS: &[Program] = &[
    Program::c("mutex_types"), Program::c("mutex_time"), Program::c("mutex_attributes"),
    Program::c("mutex_robust"), Program::c("mutex_stress"), Program::c("mutex_last_touch"),
    Program::c("mutex_process"),
    Program::c("cond_results"), Program::c("cond_wake"), Program::c("cond_cancel"),
    Program::c("cond_process"), Program::c("cond_stress"),
    Program::c("rwlock_results"), Program::c("rwlock_threads"), Program::c("spin"),
    Program::c("sem_results"), Program::c("sem_threads"),
    Program::c("start_up").with_plugin("plugin"), Program::c("c11"), Program::cpp("standard"),
    Program::c("preinit"),
];

fn under(choice: Choice) {
    let compared = harness::chosen(PROGRAMS).into_iter().map(|program| compare(program, &choice));
    let differences: Vec<_> = compared.filter_map(Result::err).collect();
    assert!(differences.is_empty(), "{} programs differ:\n{}", differences.len(), differences.concat());
}

#[test]
fn the_default_choice_behaves_as_glibc() {
    under(Choice::default());
}

#[test]
fn the_throughput_mutex_behaves_as_glibc() {
    under(Choice::mutex("throughput"));
}

#[test]
fn calock_behaves_as_glibc() {
    under(Choice::mutex("calock"));
}

#[test]
fn the_fair_mutex_behaves_as_glibc() {
    under(Choice::mutex("fair"));
}

#[test]
fn the_unfair_mutex_behaves_as_glibc() {
    under(Choice::mutex("unfair"));
}

#[test]
fn the_pi_mutex_behaves_as_glibc() {
    under(Choice::mutex("pi"));
}

#[test]
fn the_readers_writer_lock_behaves_as_glibc_beside_its_mutexes() {
    under(Choice { mutex: Some("glibc"), rwlock: Some("psrwlock"), sem: Some("glibc") });
}

#[test]
fn the_semaphore_behaves_as_glibc_beside_its_mutexes() {
    under(Choice { mutex: Some("glibc"), rwlock: Some("glibc"), sem: Some("spin") });
}

#[test]
fn a_choice_of_glibc_for_everything_behaves_as_glibc() {
    under(Choice { mutex: Some("glibc"), rwlock: Some("glibc"), sem: Some("glibc") });
}

#[test]
fn the_library_is_there() {
    assert!(library().is_file(), "{} was not built", library().display());
}
