//! Replays, strings as input, and the story: one execution, again, and told.

use crate::locks::{ThreeStates, counting};
use crate::{address, failure, shared};
use std::process::Command;
use ulocks_vm::explore::{Config, Strategy, Verdict, explore, finds_bug, run};
use ulocks_vm::futex::{wait, wake};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, UnsafeCell, interruption_point};

struct Mailbox {
    ready: AtomicU32,
    data: UnsafeCell<u32>,
}
unsafe impl Sync for Mailbox {}

/// The data is a race, for want of a release.
fn relaxed_mailbox() {
    shared(Mailbox { ready: AtomicU32::new(0), data: UnsafeCell::new(0) }).threads([
        |mailbox| {
            mailbox.data.with_mut(|data| unsafe { *data = 1 });
            mailbox.ready.store(1, Relaxed);
        },
        |mailbox| {
            if mailbox.ready.load(Acquire) == 1 {
                mailbox.data.with(|data| unsafe { assert_eq!(*data, 1) });
            }
        },
    ]);
}

/// Store buffering: both threads may read 0.
fn store_buffering() {
    let [a, b] = shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
        |(a, b)| {
            a.store(1, Release);
            b.load(Acquire)
        },
        |(a, b)| {
            b.store(1, Release);
            a.load(Acquire)
        },
    ]);
    assert!(a + b > 0, "both read 0");
}

/// A wake-up is missing.
fn forgotten_sleeper() {
    shared(AtomicU32::new(0)).threads([
        |word| assert_eq!(format!("{:?}", wait(word, 0, u32::MAX, None, true)), "Mismatch"),
        |word| {
            interruption_point();
            wake(address(word), 1, u32::MAX, true);
            word.store(1, Relaxed);
        },
    ]);
}

const MODELS: [(fn(), &str); 3] =
    [(relaxed_mailbox, "data race"), (store_buffering, "panic"), (forgotten_sleeper, "lost wake-up")];

fn configurations() -> [Config; 5] {
    let with = |strategy| Config { strategy, ..Config::default() };
    [
        with(Strategy::Mixed),
        with(Strategy::Random),
        with(Strategy::Pct { depth: 2 }),
        Config::exhaustive(),
        Config { shrink: 0, ..Config::default() },
    ]
}

#[test]
fn a_replay_is_the_same_failure_with_the_same_story() {
    for (model, kind) in MODELS {
        for config in configurations() {
            let found = match run(&config, model) {
                Err(found) => found,
                Ok(report) => panic!("{kind} was not found: {report}"),
            };
            // A failing assertion about how the wait ended comes as easily.
            assert!(found.verdict.kind() == kind || kind == "lost wake-up", "{found}");
            let again = failure(&config.clone().replaying(&found.replay), model);
            assert_eq!(again.verdict, found.verdict);
            assert_eq!(again.story, found.story);
            assert_eq!(again.replay, found.replay);
            assert_eq!(again.execution, 1);
        }
    }
}

#[test]
fn the_same_seed_is_the_same_result_and_another_is_another() {
    let all = |seed| {
        let config = Config { seed, ..Config::sampled(300) };
        let steps = run(&config, counting::<ThreeStates>(3, 2)).unwrap().steps;
        let found = failure(&config, store_buffering);
        (steps, found.execution, found.replay)
    };
    assert_eq!(all(7), all(7));
    assert_ne!(all(7).0, all(8).0);
}

#[test]
fn a_failure_is_shrunk_to_what_it_takes() {
    let config = |shrink| Config { shrink, strategy: Strategy::Random, seed: 3, ..Config::default() };
    let (long, short) = (failure(&config(0), store_buffering), failure(&config(2_000), store_buffering));
    assert!(short.replay.len() <= long.replay.len(), "{} {}", short.replay, long.replay);
    // One stale read is all it takes.
    assert!(short.replay.len() <= "v1_1g1_0000".len() + 4, "{}", short.replay);
}

/// Bytes as a fuzzer may write them.
fn noise(state: &mut u64, longest: u64) -> Vec<u8> {
    let mut next = || {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    };
    let length = next() % longest;
    (0..length).map(|_| if next() % 3 == 0 { next() as u8 } else { (next() % 3) as u8 }).collect()
}

#[cfg(feature = "linux")]
mod deadly {
    use super::noise;
    use crate::locks::{Lock, ThreeStates, Ticket, Ttas};
    use crate::with;
    use ulocks_vm::explore::{Config, Deaths, Strategy, Survivors, run};
    use ulocks_vm::sync::interruption_point;

    #[test]
    fn any_bytes_are_an_execution() {
        let mut state = 0x1234_5678_9abc_def1;
        let mut steps = std::collections::BTreeSet::new();
        for round in 0..2_000 {
            let bytes = noise(&mut state, 200);
            let deaths = if round % 2 == 0 { Deaths::None } else { Deaths::Threads(1) };
            let survivors = Survivors::MayBlock;
            let config = Config { strategy: Strategy::Bytes(bytes), deaths, survivors, ..Config::default() };
            let report = match round % 3 {
                0 => run(&config, counting_or_dead::<ThreeStates>),
                1 => run(&config, counting_or_dead::<Ticket>),
                _ => run(&config, counting_or_dead::<Ttas>),
            };
            let report = report.unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!((report.executions, report.finished), (1, false));
            steps.insert(report.steps);
        }
        assert!(steps.len() > 20, "{steps:?}");
    }

    fn counting_or_dead<L: Lock>() {
        let lock = std::sync::Arc::new(L::default());
        let started = [(), (), ()].map(|()| with(&lock, |lock| lock.locked(interruption_point)));
        started.into_iter().for_each(|thread| crate::discard(thread.join().is_ok()));
    }
}

#[test]
fn bytes_find_what_a_replay_does() {
    let mut state = 99;
    let found = (0..5_000).find_map(|_| {
        let bytes = noise(&mut state, 30);
        let config = Config { strategy: Strategy::Bytes(bytes), ..Config::default() };
        run(&config, store_buffering).err()
    });
    let found = found.expect("one of the strings is the execution");
    assert!(matches!(&found.verdict, Verdict::Panic(text) if text.contains("both read 0")), "{found}");
    let again = failure(&Config::default().replaying(&found.replay), store_buffering);
    assert_eq!(again.story, found.story);
}

#[test]
fn a_string_that_is_no_replay_is_refused_with_what_is_wrong() {
    for (text, says) in [("", "it is empty"), ("v1_3_0000", "checksum"), ("hello", "it begins with `hel`")] {
        let refused = std::panic::catch_unwind(|| drop(run(&Config::default().replaying(text), || ())));
        let refused = refused.unwrap_err();
        let message = refused.downcast_ref::<String>().expect("a message");
        assert!(message.contains("not a replay") && message.contains(says), "{message}");
    }
}

#[test]
fn the_story_names_places_values_and_why_a_read_was_stale() {
    let found = failure(&Config::exhaustive(), store_buffering);
    let lines: Vec<_> = found.story.lines().collect();
    let has = |parts: &[&str]| lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(&["thread 1", "replay.rs:", ".store(0x1, Release)"]), "{found}");
    assert!(has(&["thread 2", "replay.rs:", ".store(0x1, Release)"]), "{found}");
    let stale = [
        "replay.rs:",
        ".load(Acquire) = 0x0 of ",
        "1 write behind: ",
        "nothing orders this after",
        "replay.rs:",
    ];
    assert!(has(&stale), "{found}");
    assert!(has(&["panics: both read 0", "replay.rs:"]), "{found}");
    assert!(has(&["a was made at ", "replay.rs:"]), "{found}");
    let whole = found.to_string();
    assert!(whole.contains("at execution ") && whole.contains("(exhaustive)"), "{whole}");
    assert!(whole.contains(&format!("ULOCKS_VM_REPLAY={}", found.replay)), "{whole}");

    let found = failure(&Config::exhaustive(), || {
        shared(AtomicU32::new(0)).threads([
            |word| crate::discard(wait(word, 0, u32::MAX, None, true)),
            |word| {
                wake(address(word), 1, u32::MAX, true);
                word.store(1, Relaxed);
            },
        ]);
    });
    assert!(found.story.contains("sleeps on word") && found.story.contains("wakes nobody"), "{found}");
}

/// What the tests of the environment run in a process of their own.
#[test]
fn in_an_environment() {
    match std::env::var("MODEL").as_deref() {
        Ok("bug") => drop(finds_bug(Config::default(), store_buffering)),
        Ok("explore") => crate::discard(explore(Config::default(), store_buffering)),
        _ => println!("RAN {:?}", explore(Config::sampled(50), counting::<ThreeStates>(2, 1))),
    }
}

/// What a run prints, and whether it passed, with these variables.
fn with_environment(variables: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "replay::in_an_environment", "--nocapture"]);
    command.env_remove("ULOCKS_VM_EXECUTIONS").env_remove("ULOCKS_VM_SEED").env_remove("ULOCKS_VM_REPLAY");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.success(), text)
}

#[test]
fn the_environment_sets_the_number_the_seed_and_the_execution() {
    let (passed, plain) = with_environment(&[]);
    assert!(passed && plain.contains("executions: 50,"), "{plain}");
    let (passed, text) = with_environment(&[("ULOCKS_VM_EXECUTIONS", "33")]);
    assert!(passed && text.contains("executions: 33,"), "{text}");
    let (passed, text) = with_environment(&[("ULOCKS_VM_SEED", "77")]);
    assert!(passed && text.contains("seed 77"), "{text}");
    let found = failure(&Config::default(), store_buffering);
    let replay = [("ULOCKS_VM_REPLAY", found.replay.as_str()), ("MODEL", "explore")];
    let (passed, text) = with_environment(&replay);
    assert!(!passed && text.contains("both read 0") && text.contains("at execution 1 (replay"), "{text}");
    assert!(text.contains(&found.story), "{text}");
    let (passed, text) = with_environment(&[replay[0], ("MODEL", "bug")]);
    assert!(passed && text.contains("bug found at execution 1 (replay"), "{text}");
    let (passed, text) = with_environment(&[("ULOCKS_VM_SEED", "many")]);
    assert!(!passed && text.contains("ULOCKS_VM_SEED=many: not a number"), "{text}");
}
