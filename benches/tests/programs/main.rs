//! The programs from outside: exit codes, one-line errors, what they write.

mod common;
mod condvar;
mod convoy;
mod promises;
mod psrw;
mod scaling;
mod sem;
mod shared;
mod turns;

use common::{Program, knows_its_name, refuses, run, text};
use std::process::ExitCode;
use ulocks_benches::programs;
use ulocks_benches::programs::condvar::Condvar;
use ulocks_benches::programs::convoy::Convoy;
use ulocks_benches::programs::harness::{self, Program as Harnessed};
use ulocks_benches::programs::promises::Promises;
use ulocks_benches::programs::psrw::Psrw;
use ulocks_benches::programs::semaphores::sembench::Sembench;
use ulocks_benches::programs::semaphores::semscale::Semscale;
use ulocks_benches::programs::shared::Shared;
use ulocks_testkit as _;

fn of<P: Harnessed>() -> Program {
    (P::NAME, harness::main::<P>)
}

/// Those that run rounds by the harness.
fn harnessed() -> [Program; 7] {
    [
        of::<Condvar>(),
        of::<Convoy>(),
        of::<Promises>(),
        of::<Psrw>(),
        of::<Sembench>(),
        of::<Semscale>(),
        of::<Shared>(),
    ]
}

/// Tests by their names.
macro_rules! tests {
    ($($path:path;)*) => { &[$((stringify!($path), $path as fn())),*] };
}

fn main() -> ExitCode {
    let others: [Program; 3] = [
        ("scaling", programs::scaling::main),
        ("test-mutex", programs::test_mutex::main),
        ("tofutex", programs::tofutex::main),
    ];
    let programs = [&harnessed()[..], &others].concat();
    common::main(
        &programs,
        tests! {
            wrong_options_are_one_line_and_exit_code_2;
            foreign_filters_and_lists_run_nothing;
            condvar::a_smoke_run_leaves_a_record_of_every_pair;
            condvar::what_is_asked_for_is_compared_with_the_peers;
            convoy::a_smoke_run_leaves_a_record;
            convoy::a_cell_is_had_by_its_name;
            promises::wrong_options_are_one_line_and_exit_code_2;
            promises::a_smoke_run_leaves_a_record_that_explains_its_rows;
            promises::an_interrupt_leaves_what_there_is;
            psrw::a_smoke_run_leaves_a_record_and_a_page;
            scaling::the_last_bench_says_where_the_report_is;
            scaling::wrong_options_are_one_line_and_exit_code_2;
            scaling::foreign_filters_and_lists_run_nothing;
            scaling::a_smoke_run_leaves_record_and_page;
            scaling::tables_are_on_the_screen_if_they_are_short_or_asked_for;
            scaling::a_record_names_the_machine_and_no_host_user_or_folder;
            scaling::one_workload_and_its_window;
            scaling::an_interrupt_leaves_what_there_is;
            scaling::a_killed_run_goes_on;
            scaling::a_trial_that_cannot_start_ends_the_run;
            scaling::a_trial_answers_in_json_or_says_why_not;
            sem::wrong_options_are_one_line_and_exit_code_2;
            sem::a_smoke_run_of_sembench_leaves_a_record;
            sem::a_smoke_run_of_semscale_leaves_a_record;
            sem::one_size_with_the_letters_of_2010;
            sem::an_interrupt_leaves_a_record_and_no_semaphores;
            shared::a_smoke_run_leaves_a_record_of_every_row;
            turns::an_interrupt_leaves_what_there_is_and_no_good_record_is_lost;
            turns::a_thread_that_cannot_be_had_is_an_error_at_once;
            turns::a_folder_that_cannot_be_written_is_an_error_at_once;
        },
    )
}

fn wrong_options_are_one_line_and_exit_code_2() {
    for (name, _) in harnessed() {
        refuses(
            name,
            &[
                (&["--rounds", "0"], "'0' is not a number of rounds; allowed: 1 to 1000"),
                (&["--locks", "lockless"], "unknown lock 'lockless'; allowed: "),
                (&["--onyl", "queue"], "unexpected argument '--onyl'; allowed: "),
            ],
        );
    }
}

fn foreign_filters_and_lists_run_nothing() {
    for (name, _) in harnessed() {
        knows_its_name(name);
        let output = run(name, &["--only", "no such row"]);
        assert!(output.status.success() && output.stdout.is_empty());
        let said = format!("{name}: no row is of these --locks and has a name that contains this --only\n");
        assert_eq!(text(&output.stderr), said);
    }
}
