use super::*;
use crate::programs::turns;
use crate::run::child::Task;

#[test]
fn a_trial_loses_no_section_and_no_file() {
    for case in Case::ALL {
        for lock in ["semaphore", "throughput", "std"] {
            let spec = TestMutexSpec { lock: lock.into(), case, tasks: 3, window_ms: 5 };
            let count = spec.carry_out().unwrap();
            assert!(count.loops > 0 && count.elapsed_s >= 0.005, "{count:?}");
        }
    }
}

#[test]
fn a_lock_that_does_not_exclude_is_no_lock() {
    let spec = TestMutexSpec { lock: "no such lock".into(), case: Case::Lock, tasks: 1, window_ms: 1 };
    assert!(spec.carry_out().unwrap_err().to_string().contains("no such lock"));
}

#[test]
fn a_table_has_the_ratios_of_2005_beside_the_default_mutex() {
    let count = |loops, cpu_s| Count { loops, elapsed_s: 1.0, cpu_s, cpus: 2 };
    let row = |lock: &str, loops| Row {
        case: Case::Files,
        operations: 0,
        lock: lock.into(),
        rounds: vec![count(loops, 1.0), count(2 * loops, 2.0)],
    };
    let rows = [row("semaphore", 100), row("throughput", 300), row("std", 200)];
    let text = turns::table::<TestMutexSpec>(Case::Files, &rows);
    let line = |lock: &str| text.lines().find(|line| line.starts_with(lock)).unwrap();
    assert!(line("throughput").contains("3.00 [3.00 3.00]  2.42, 1.42"), "{text}");
    // Loops of a CPU second, as he gives them: 6.9 and 4.1 times.
    assert!(line("throughput").ends_with("6.94, 4.17"), "{text}");
    assert!(line("std").contains("75 %") && !line("std").contains("2.42"), "{text}");
}
