//! What an exploration says it did at each site.

use crate::{address, shared};
use std::process::Command;
use ulocks_vm::clock::{Clock, Time};
use ulocks_vm::explore::{Config, Coverage, Event, Operation, Site, cover, explore, run};
use ulocks_vm::futex::{wait, wake};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What all executions of `model` did.
#[track_caller]
fn covered(config: &Config, model: impl Fn() + Copy + 'static) -> Coverage {
    let (report, coverage) = cover(config, model).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report, run(config, model).unwrap(), "to be watched changes what happens");
    coverage
}

/// The sites of an operation, by line.
fn sites(coverage: &Coverage, operation: Operation) -> Vec<Site> {
    coverage.sites().into_iter().filter(|site| site.operation() == operation).collect()
}

fn counts<const N: usize>(site: &Site, events: [Event; N]) -> [u64; N] {
    events.map(|event| site.count(event))
}

/// Message passing: three executions, of which two read 1 in the flag.
fn message_passing() {
    shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
        |(data, flag)| {
            data.store(1, Relaxed);
            flag.store(1, Release);
        },
        |(data, flag)| {
            if flag.load(Acquire) == 1 {
                assert_eq!(data.load(Relaxed), 1);
            }
        },
    ]);
}

#[test]
fn loads_count_old_values_and_those_that_cannot_be_old_are_doubted() {
    let coverage = covered(&Config::sampled(500), message_passing);
    let loads = sites(&coverage, Operation::Load);
    let [flag, data] = loads.as_slice() else { panic!("{coverage}") };
    let [ran, old, preempted] = counts(flag, [Event::Ran, Event::ReadOld, Event::Preempted]);
    assert_eq!(ran, 500, "{coverage}");
    assert!(0 < old && old < ran && 0 < preempted && preempted < ran, "{coverage}");
    assert!(flag.doubts().next().is_none(), "{coverage}");
    // The acquire orders the second load: it cannot read an old value.
    assert!(data.count(Event::Ran) > 0 && data.count(Event::ReadOld) == 0, "{coverage}");
    assert!(data.doubts().any(|event| event == Event::ReadOld), "{coverage}");
    let text = coverage.to_string();
    assert!(text.contains("4 sites, ") && text.contains("read an old value"), "{text}");
    assert!(text.contains(&format!("coverage.rs:{}:{}", data.at().line(), data.at().column())), "{text}");
}

#[test]
fn exchanges_count_how_they_end() {
    let coverage = covered(&Config::exhaustive(), || {
        shared(AtomicU32::new(0)).threads([
            |word| word.compare_exchange(0, 1, AcqRel, Relaxed).is_ok(),
            |word| word.compare_exchange_weak(0, 2, AcqRel, Relaxed).is_ok(),
        ]);
    });
    let ends = [Event::Exchanged, Event::Failed, Event::FailedForNoReason, Event::ReadOld];
    // The strong one first; the weak one first, which may fail for no reason, and then both orders
    // are one. What fails may read an old value: 0, after another has replaced it.
    let [strong] = sites(&coverage, Operation::Exchange).try_into().unwrap();
    let [weak] = sites(&coverage, Operation::WeakExchange).try_into().unwrap();
    let [made, failed, for_no_reason, _] = counts(&strong, ends);
    assert!(made > 0 && failed > 0 && for_no_reason == 0, "{coverage}");
    let [made, failed, for_no_reason, old] = counts(&weak, ends);
    assert!(made > 0 && failed > 0 && for_no_reason > 0 && old > 0, "{coverage}");
    assert_eq!(weak.count(Event::Ran), made + failed + for_no_reason, "{coverage}");

    let alone = covered(&Config::exhaustive(), || {
        let word = AtomicU32::new(0);
        assert_eq!(word.compare_exchange(0, 1, AcqRel, Relaxed), Ok(0));
        let _ = word.fetch_update(Relaxed, Relaxed, |value| Some(value + 1));
    });
    let [site] = sites(&alone, Operation::Exchange).try_into().unwrap();
    let doubts: Vec<_> = site.doubts().collect();
    assert_eq!(doubts, [Event::Preempted, Event::ReadOld, Event::Failed], "{alone}");
    // One place of call, and two operations.
    assert_eq!(sites(&alone, Operation::Load)[0].at(), sites(&alone, Operation::WeakExchange)[0].at());
}

#[test]
fn waits_count_how_they_end_and_a_deadline_that_never_passes_is_doubted() {
    const LATE: Time = Time { clock: Clock::Monotonic, since_zero: core::time::Duration::from_secs(1 << 30) };
    for timeouts in [false, true] {
        let config = Config { timeouts, ..Config::exhaustive() };
        let coverage = covered(&config, || {
            shared(AtomicU32::new(0)).threads([
                |word| crate::discard(wait(word, 0, u32::MAX, Some(LATE), true)),
                |word| {
                    word.store(1, Relaxed);
                    wake(address(word), 1, u32::MAX, true);
                },
            ]);
        });
        let [site] = sites(&coverage, Operation::TimedWait).try_into().unwrap();
        let [ran, changed, slept, woken, over] =
            counts(&site, [Event::Ran, Event::FoundChanged, Event::Slept, Event::Woken, Event::TimedOut]);
        assert!(changed > 0 && slept > 0 && woken > 0 && ran == changed + slept, "{coverage}");
        assert_eq!(over > 0, timeouts, "{coverage}");
        assert_eq!(site.doubts().any(|event| event == Event::TimedOut), !timeouts, "{coverage}");
        let [site] = sites(&coverage, Operation::Wake).try_into().unwrap();
        assert!(0 < site.count(Event::Woken) && site.count(Event::Woken) < site.count(Event::Ran));
    }
}

#[test]
fn a_thread_alone_is_never_preempted() {
    let coverage = covered(&Config::sampled(20), || AtomicU32::new(0).store(1, Relaxed));
    let [site] = sites(&coverage, Operation::Store).try_into().unwrap();
    assert_eq!(counts(&site, [Event::Ran, Event::Preempted]), [20, 0], "{coverage}");
}

/// What the test of the environment runs in a process of its own.
#[test]
fn in_an_environment() {
    explore(Config::exhaustive(), message_passing);
}

#[test]
fn the_environment_asks_for_it() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "coverage::in_an_environment", "--nocapture"]);
    let output = command.env("ULOCKS_VM_COVERAGE", "1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("coverage: 4 sites, "), "{text}");
}
