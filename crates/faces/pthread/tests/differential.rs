//! Runs C programs on glibc and under the library, and demands the same lines from both.
//!
//! Each program of `tests/programs` prints the result of each case. glibc's own locks give the
//! expected lines, so no file of expected lines can become stale.

#[path = "../../capi/tests/harness/elf.rs"]
mod elf;
mod harness;

use harness::{Choice, Program, compare};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use ulocks_testkit::refusal;

/// What a choice of locks must be tried on.
#[rustfmt::skip]
const PROGRAMS: &[Program] = &[
    Program::c("mutex_types"), Program::c("mutex_time"), Program::c("mutex_attributes"),
    Program::c("mutex_robust"), Program::c("mutex_stress"), Program::c("mutex_last_touch"),
    Program::c("mutex_process"), Program::c("mutex_million"),
    Program::c("cond_results"), Program::c("cond_wake"), Program::c("cond_cancel"),
    Program::c("cond_process"), Program::c("cond_stress"), Program::c("cond_odd"),
    Program::c("rwlock_results"), Program::c("rwlock_threads"), Program::c("rwlock_readers"),
    Program::c("spin"),
    Program::c("start_up").with_plugin("plugin"), Program::c("c11"), Program::cpp("standard"),
    Program::c("preinit"), Program::c("fork_handlers"), Program::c("old_names"),
    Program::c_with_exceptions("cond_cancel_unwinding", "cond_cancel"),
    Program::c("cond_handlers"), Program::c_with_exceptions("cond_handlers_unwinding", "cond_handlers"),
    Program::cpp("cond_handlers_cpp"),
];

fn all_equal(compared: impl Iterator<Item = Result<(), String>>) {
    let differences: Vec<_> = compared.filter_map(Result::err).collect();
    assert!(differences.is_empty(), "{} runs differ:\n{}", differences.len(), differences.concat());
}

/// A test for each choice of locks: all programs behave under it as on glibc.
macro_rules! choices {
    ($($name:ident: $choice:expr;)*) => {$(
        #[test]
        fn $name() {
            all_equal(PROGRAMS.iter().map(|program| compare(*program, &$choice)));
        }
    )*};
}

choices! {
    the_default_choice_which_is_the_throughput_mutex_behaves_as_glibc: Choice::default();
    calock_behaves_as_glibc: Choice::mutex("calock");
    the_fair_mutex_behaves_as_glibc: Choice::mutex("fair");
    the_unfair_mutex_behaves_as_glibc: Choice::mutex("unfair");
    the_pi_mutex_behaves_as_glibc: Choice::mutex("pi");
    the_readers_writer_lock_behaves_as_glibc_beside_its_mutexes:
        Choice { mutex: Some("glibc"), rwlock: Some("psrwlock") };
    a_choice_of_glibc_for_everything_behaves_as_glibc:
        Choice { mutex: Some("glibc"), rwlock: Some("glibc") };
}

/// A program of one fault that was mended, with each mutex.
fn behaves_as_glibc_with_each_mutex(program: Program) {
    let mutexes = ["throughput", "calock", "fair", "unfair", "pi", "glibc"];
    all_equal(mutexes.into_iter().map(|name| compare(program, &Choice::mutex(name))));
}

#[test]
fn no_function_is_a_cancellation_point_that_posix_says_is_none() {
    behaves_as_glibc_with_each_mutex(Program::c("cancel_points"));
}

#[test]
fn a_child_has_the_mutex_of_its_parent_without_the_waiters_whatever_it_calls_first() {
    behaves_as_glibc_with_each_mutex(Program::c("fork_held"));
}

#[test]
fn a_child_whose_thread_forked_in_a_wait_may_destroy_the_mutex() {
    behaves_as_glibc_with_each_mutex(Program::c("fork_in_wait"));
}

#[test]
fn a_child_waits_for_no_thread_of_its_parent_that_was_beginning_a_lock_anew() {
    let program = Program::c("fork_again");
    all_equal(["throughput", "pi"].into_iter().map(|name| compare(program, &Choice::mutex(name))));
}

/// Some emulators of the kernel answer success to every advice, and wipe nothing. Here a filter
/// does. A child that takes itself for its parent hands a fair mutex over to a waiter that it does
/// not have; a throughput mutex it may release well, by chance.
#[test]
fn a_child_under_a_kernel_that_accepts_any_advice_has_the_mutex_without_the_waiters() {
    let run = || {
        refusal::refuse(libc::SYS_madvise, 0);
        let program = Program::c("fork_held");
        all_equal(["throughput", "fair"].into_iter().map(|name| compare(program, &Choice::mutex(name))));
    };
    std::thread::scope(|scope| scope.spawn(run).join()).expect("the child of each mutex goes on");
}

#[test]
fn a_wait_releases_a_robust_mutex_whose_owner_died() {
    behaves_as_glibc_with_each_mutex(Program::c("cond_robust"));
}

/// It opens and writes a file, and these are cancellation points.
#[test]
fn the_report_is_written_although_a_cancellation_is_pending() {
    let stats = harness::scratch_file("stats-cancelled");
    let variables = [("ULOCKS_STATS", &*stats.to_string_lossy())];
    let outcome = harness::run_with(Program::c("cancel_exit"), &Choice::default(), &variables);
    assert_eq!(outcome.code(), Some(7), "the program does not end by its `exit`: {outcome:?}");
    let report = std::fs::read_to_string(&stats).expect("a report of contention");
    assert!(report.contains("acquisitions"), "{report}");
    std::fs::remove_file(&stats).expect("a file of this test");
}

/// A process that has not forked would begin its locks anew, without their waiters.
#[test]
fn two_threads_that_call_first_at_once_are_no_child_of_a_fork() {
    let program = Program::c("first_calls");
    for at in ["1", "2", "3", "4"] {
        let outcome = harness::run_with(program, &Choice::default(), &[("AT", at)]);
        assert_eq!(outcome.code(), Some(0), "at page {at}: {outcome:?}");
        assert_eq!(outcome.stdout, "the forks that a mutex has lived through: 0\nend\n", "at page {at}");
    }
}

/// Not compared: glibc's own lock lets such a child wait for ever.
#[test]
fn the_child_of_a_reader_goes_on_although_writers_wait() {
    let outcome = harness::run_with(Program::c("rwlock_fork"), &Choice::default(), &[]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let ends = outcome
        .stdout
        .lines()
        .filter(|line| line.contains("kind") || line.contains("order"))
        .all(|line| line.ends_with(": 0") || line.ends_with(": ok"));
    assert!(ends && outcome.stdout.ends_with("end\n"), "{outcome:?}");
}

/// Not compared: the program writes into the condition variable, instead of 65,535 threads.
#[test]
fn a_wait_ends_at_its_deadline_however_many_threads_wait() {
    for mutex in ["throughput", "calock", "fair", "unfair", "pi"] {
        let outcome = harness::run_with(Program::c("cond_full"), &Choice::mutex(mutex), &[]);
        assert_eq!(outcome.code(), Some(0), "{mutex}: {outcome:?}");
        let expected = "few wait: ETIMEDOUT\nmany wait, past: ETIMEDOUT\nmany wait, far: ok\nend\n";
        assert_eq!(outcome.stdout, expected, "{mutex}");
    }
}

/// The library reads what it needs when it is loaded.
#[test]
fn no_wait_opens_a_file_which_a_sandbox_may_forbid() {
    behaves_as_glibc_with_each_mutex(Program::c("no_files"));
}

#[test]
fn a_thread_with_the_smallest_stack_waits_for_a_lock() {
    behaves_as_glibc_with_each_mutex(Program::c("small_stack"));
}

/// A new thread of the child may get the memory, and so the thread pointer, of one of the parent.
#[test]
fn a_new_thread_of_a_child_is_not_the_owner_of_what_a_thread_of_the_parent_holds() {
    let program = Program::c("fork_owners");
    behaves_as_glibc_with_each_mutex(program);
    for mutex in ["throughput", "calock", "fair", "unfair", "pi"] {
        let outcome = harness::run_with(program, &Choice::mutex(mutex), &[("KEEPS", "1")]);
        assert!(outcome.code() == Some(0) && outcome.stdout.ends_with("end\n"), "{mutex}: {outcome:?}");
        assert!(outcome.stdout.lines().all(|line| line.ends_with(": 0") || line == "end"), "{outcome:?}");
    }
}

/// The list of a thread's reads had the lock that was there before.
#[test]
fn a_child_finds_a_lock_free_that_was_made_where_its_thread_read_another() {
    all_equal([compare(Program::c("rwlock_made_anew"), &Choice::default())].into_iter());
}

#[test]
fn a_thread_of_a_high_priority_lets_another_begin_a_lock_anew() {
    let outcome = harness::run_with(Program::c("fork_priorities"), &Choice::default(), &[]);
    if !outcome.stderr.is_empty() {
        println!("not tested: {}", outcome.stderr);
    }
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout, "a thread of a higher priority: ok\nend\n");
}

#[test]
fn a_program_that_is_linked_statically_does_not_load_the_library() {
    let asked = Command::new("cc").arg("-print-file-name=libc.a").output();
    if !asked.is_ok_and(|asked| asked.stdout.starts_with(b"/")) {
        println!("not tested: this machine has no glibc to link statically");
        return;
    }
    let program = Program::c_static("mutex_types_static", "mutex_types");
    let outcome = harness::run_with(program, &Choice::mutex("quick"), &[]);
    assert!(outcome.code() == Some(0) && outcome.stdout.ends_with("end\n"), "{outcome:?}");
    assert_eq!(outcome.stderr, "", "the library would report the name of the lock");
}

const STATS: Program = Program::c("stats");
const ONE: Program = Program::c("cond_stress");

/// Without this the other tests could compare glibc with itself.
#[test]
fn the_library_is_in_front_of_glibc() {
    let stats = harness::scratch_file("stats");
    let choice = Choice::mutex("throughput");
    let outcome = harness::run_with(ONE, &choice, &[("ULOCKS_STATS", &stats.to_string_lossy())]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    let report = std::fs::read_to_string(&stats).expect("a report of contention");
    assert!(report.contains("acquisitions"), "{report}");
    let before = report.lines().count();
    harness::run_with(ONE, &choice, &[("ULOCKS_STATS", &stats.to_string_lossy())]);
    let after = std::fs::read_to_string(&stats).expect("two reports");
    assert!(after.starts_with(&report), "the second report is appended");
    assert!(after.lines().count() > before, "{after}");
    std::fs::remove_file(&stats).expect("a file of this test");
}

#[test]
fn a_report_that_cannot_be_written_does_no_harm_to_the_program() {
    let outcome = harness::run_with(ONE, &Choice::default(), &[("ULOCKS_STATS", "/nonexistent/stats")]);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.stdout.ends_with("end\n"), "{outcome:?}");
}

#[test]
fn statistics_do_not_call_an_allocator_that_makes_its_lock() {
    let stats = harness::scratch_file("stats-malloc");
    let variables = [("ULOCKS_STATS", &*stats.to_string_lossy())];
    let outcome = harness::run_with(Program::c("own_malloc"), &Choice::default(), &variables);
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout, "threads that allocate: 3\nend\n");
    let report = std::fs::read_to_string(&stats).expect("a report of contention");
    assert!(report.contains("acquisitions"), "{report}");
    std::fs::remove_file(&stats).expect("a file of this test");
}

/// Even if another process reads the pipe: it may stop to read at any time.
#[test]
fn a_special_file_for_the_report_neither_holds_up_the_program_nor_gets_a_report() {
    let stats = harness::scratch_file("stats-fifo");
    let name = std::ffi::CString::new(stats.as_os_str().as_bytes()).expect("a path");
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let link = harness::scratch_file("stats-link");
    let target = harness::scratch_file("stats-target");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    let not_written = |name: &Path| {
        let outcome =
            harness::run_with(STATS, &Choice::default(), &[("ULOCKS_STATS", &name.to_string_lossy())]);
        assert_eq!(outcome.code(), Some(0), "{}: {outcome:?}", name.display());
        let errors = &outcome.stderr;
        assert!(
            errors.lines().count() == 1 && errors.contains("regular file"),
            "{}: {errors}",
            name.display()
        );
    };
    not_written(&stats);
    let mut reader =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&stats).expect("the pipe");
    not_written(&stats);
    assert_eq!(reader.read(&mut [0]).expect("an end"), 0, "something was written to the pipe");
    not_written(&link);
    assert!(!target.exists(), "the report went through a link");
    not_written(Path::new("/dev/null"));
    for file in [&stats, &link] {
        std::fs::remove_file(file).expect("a file of this test");
    }
}

#[test]
fn the_report_goes_where_it_should_although_the_program_changes_its_surroundings() {
    let stats = harness::scratch_file("stats-relative");
    let relative = stats.file_name().expect("a name").to_string_lossy();
    let outcome = harness::run_with(STATS, &Choice::default(), &[("ULOCKS_STATS", &relative)]);
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    let report = std::fs::read_to_string(&stats).expect("a report of contention");
    assert!(report.contains("acquisitions"), "{report}");
    std::fs::remove_file(&stats).expect("a file of this test");
}

/// A symbol that is no function of glibc's could clash with one of the program, and an old name
/// that is missing would be glibc's function for a lock of ours.
#[test]
fn the_library_exports_the_functions_that_it_replaces_and_no_others() {
    let library = elf::read(harness::library());
    assert_eq!(library.soname.as_deref(), Some("libulocks_pthread.so"));
    let mutex = ["init", "destroy", "lock", "trylock", "unlock"].map(|end| format!("__pthread_mutex_{end}"));
    let rwlock = ["init", "destroy", "rdlock", "tryrdlock", "wrlock", "trywrlock", "unlock"];
    let rwlock = rwlock.map(|end| format!("__pthread_rwlock_{end}"));
    let old: BTreeSet<_> = mutex.into_iter().chain(rwlock).collect();
    let (found, rest): (BTreeSet<_>, BTreeSet<_>) =
        library.exported.into_iter().partition(|name| name.starts_with("__"));
    assert_eq!(found, old);
    for name in rest {
        let name = std::ffi::CString::new(name).expect("a name");
        // SAFETY: a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        assert!(!found.is_null(), "glibc has no {name:?}");
    }
}

#[test]
fn an_unknown_name_is_reported_once_and_the_program_runs() {
    for (variable, allowed) in [
        ("ULOCKS_MUTEX", &["throughput", "calock", "fair", "unfair", "pi", "glibc"][..]),
        ("ULOCKS_RWLOCK", &["psrwlock", "glibc"]),
    ] {
        let outcome = harness::run_with(ONE, &Choice::default(), &[(variable, "quick")]);
        assert_eq!(outcome.code(), Some(0), "{outcome:?}");
        assert!(outcome.stdout.ends_with("end\n"), "{outcome:?}");
        let errors = &outcome.stderr;
        assert_eq!(errors.lines().count(), 1, "{errors}");
        for word in allowed.iter().chain(&[variable, "quick"]) {
            assert!(errors.contains(word), "{word} is not in: {errors}");
        }
    }
}

/// The report names who held the mutex longest, and where the mutex was made; for programs, too.
#[test]
fn the_report_says_who_held_a_lock_and_where_it_was_made() {
    let text = harness::scratch_file("stats-held");
    let json = text.with_extension("json");
    for file in [&text, &json] {
        let outcome = harness::run_with(
            STATS,
            &Choice::mutex("throughput"),
            &[("ULOCKS_STATS", &file.to_string_lossy())],
        );
        assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    }
    let report = std::fs::read_to_string(&text).expect("a report");
    let line = report.lines().find(|line| line.contains("; made by ")).expect("a mutex that was made");
    assert!(line.contains("; held longest by thread "), "{report}");
    let report = std::fs::read_to_string(&json).expect("a report");
    let value = |name: &str| -> Vec<u64> {
        let before = format!("\"{name}\":");
        let parts = report.split(&before).skip(1);
        parts.map(|rest| rest.split([',', '}']).next().unwrap().parse().expect(name)).collect()
    };
    assert_eq!(report.lines().count(), 1, "{report}");
    // Each thread sleeps for 20 us with the mutex, 50 times.
    assert!(value("longest_hold_ns").iter().any(|&held| held >= 20_000), "{report}");
    assert!(value("thread").iter().any(|&thread| thread > 0), "{report}");
    assert!(report.contains("\"made_at\":[\""), "{report}");
    assert!(value("acquisitions")[0] >= 200, "{report}");
    for file in [&text, &json] {
        std::fs::remove_file(file).expect("a file of this test");
    }
}

#[test]
fn the_man_page_has_each_variable_and_value() {
    let page = include_str!("../man/libulocks_pthread.7");
    for word in ["ULOCKS_MUTEX", "ULOCKS_RWLOCK", "ULOCKS_STATS", "psrwlock"] {
        assert!(page.contains(word), "{word}");
    }
    for word in ["throughput", "calock", "fair", "unfair", "pi", "glibc"] {
        assert!(page.contains(word), "{word}");
    }
}
