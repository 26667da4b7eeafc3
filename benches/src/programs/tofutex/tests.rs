use super::*;
use crate::run::child::Task;

#[test]
fn a_trial_counts_all_sections_and_orders_its_times() {
    for section in [Section::Short, Section::Sleep] {
        for lock in ["wait-wake", "throughput", "std"] {
            let spec = TofutexSpec { lock: lock.into(), section, threads: 3, each: 20 };
            let times = spec.carry_out().unwrap();
            assert!(times.min_s <= times.average_s && times.average_s <= times.max_s, "{times:?}");
        }
    }
}

#[test]
fn calls_of_locks_inside_libc_are_missing_rather_than_zero() {
    let of = |lock: &str| {
        let spec = TofutexSpec { lock: lock.into(), section: Section::Sleep, threads: 4, each: 20 };
        spec.carry_out().unwrap().calls
    };
    assert!(of("pthread").is_none());
    if crate::run::syscalls::countable() {
        // Each of four threads finds the lock held by one that sleeps.
        assert!(of("wait-wake").unwrap().waits > 0);
    }
}

#[test]
fn a_table_has_a_row_for_each_lock_with_the_ratios_of_2016() {
    let times = |max_s| Times {
        max_s,
        min_s: 1.0,
        average_s: 2.0,
        system_s: 3.0,
        user_s: 1.0,
        calls: Some(crate::run::syscalls::Calls { waits: 50, refused: 0, wakes: 25 }),
    };
    let row = |lock: &str, max_s| Row {
        case: Section::Short,
        operations: 100,
        lock: lock.into(),
        rounds: vec![times(max_s), times(2.0 * max_s)],
    };
    let text = crate::programs::turns::table::<TofutexSpec>(
        Section::Short,
        &[row("wait-wake", 4.0), row("pi", 8.0), row("std", 2.0)],
    );
    let line = |lock: &str| text.lines().find(|line| line.starts_with(lock)).unwrap();
    assert!(line("pi").contains("2.00 [2.00 2.00]") && line("pi").contains("14.6"), "{text}");
    let words: Vec<_> = line("std").split_whitespace().collect();
    assert_eq!(words[..5], ["std", "3.00s", "0.500", "[0.500", "0.500]"], "{text}");
    assert_eq!(words[5], "-", "Long did not measure it: {text}");
}

#[test]
fn his_longest_time_is_the_longest() {
    for section in [Section::Short, Section::Sleep] {
        for lock in ["wait-wake", "pi", "throughput"] {
            let figures = seed::find(section, lock).unwrap();
            assert!(figures.min_s <= figures.average_s && figures.average_s <= figures.max_s);
        }
    }
}
