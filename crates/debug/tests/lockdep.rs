//! The ideas of the selftests of the kernel's lockdep (`lib/locking-selftest.c`), by their names.
//!
//! An idea is a script: words that run one after the other, in one thread, and then each in a
//! thread of its own. A word nests locks: `AB` holds `A` and asks for `B`. A small letter is
//! another lock of the same class. A mark after a letter says how the lock is acquired, which
//! otherwise the kind of lock says:
//!
//! | mark | the lock is | | sign before a letter | the rest of the word runs |
//! |---|---|---|---|---|
//! | `w` | written | | `!` | in a handler of the first signal |
//! | `r` | read, as by `down_read`: behind a writer that waits | | `?` | in a handler of the second one |
//! | `s` | read recursively, as by `read_lock`: past it | | `-` | with both blocked |
//! | `t` | tried | | `~` | with the second one blocked |
//!
//! A script runs with each kind of lock that its row names, in a child of a fork, which knows of
//! no order. Words with signals run twice, since a program goes on, and up to three of them in each
//! order, as the kernel's do. What is found is told by letters: `again A` of one lock, `open A` of
//! a lock of a handler with the signal open, and the steps of a circle from the least one on.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod common;

use common::{blocked, interrupt, leaked, own_signal};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use ulocks_core::futex::Local;
use ulocks_core::raw::{RawMutex, RawRwLock as _};
use ulocks_debug::*;
use ulocks_testkit::Child;

/// Kinds of locks: `ThroughputMutex`, `BargingMutex`, `AsymMutex`, `FairMutex`, `Calock`,
/// `PiMutex`, a semaphore of one permit, and a lock that is written, read or upgradable.
const ALL: &str = "tbafcpkwru";
const ALONE: &str = "tbafcpkw";
const GATES: &str = "tbafcpkwu";
/// Those that the kernel has with interrupts, and one whose readers are recursive.
const EXCLUSIVE: &str = "tw";
const RECURSIVE: &str = "s";
const ONE: &str = "t";

/// The name in the kernel's list, the kinds of locks, the script, and what is found.
type Idea = (&'static str, &'static str, &'static str, &'static str);

const SCRIPTS: &[Idea] = &[
    ("A-A deadlock", ALL, "AA", "again A"),
    // There a class has no order inside. Here its locks have one.
    ("A-A deadlock, of two locks of a class", ALL, "Aa Aa", ""),
    ("A-A deadlock, of two locks of a class both ways", ALL, "Aa aA", "AA AA"),
    ("A-B-B-A deadlock", ALL, "AB BA", "AB BA"),
    ("A-B-B-A, of recursive readers", RECURSIVE, "AB BA", ""),
    ("A-B-B-C-C-A deadlock", ALL, "AB BC CA", "AB BC CA"),
    ("A-B-B-C-C-A, of recursive readers", RECURSIVE, "AB BC CA", ""),
    ("A-B-C-A-B-C deadlock", ALL, "AB CA BC", "AB BC CA"),
    ("A-B-B-C-C-D-D-A deadlock", ALL, "AB BC CD DA", "AB BC CD DA"),
    ("A-B-C-D-B-D-D-A deadlock", ALL, "AB CD BD DA", "AB BD DA"),
    ("A-B-C-D-B-C-D-A deadlock", ALL, "AB CD BC DA", "AB BC CD DA"),
    ("recursive read-lock", RECURSIVE, "AA", ""),
    ("recursive read-lock, of a semaphore", "r", "AA", "again A"),
    ("recursive read-lock #2", RECURSIVE, "Aa aA", ""),
    ("mixed read-write-lock", ONE, "ArAw", "again A"),
    ("mixed read-write-lock, recursive", ONE, "AsAw", "again A"),
    ("mixed write-read-lock", ONE, "AwAr", "again A"),
    ("mixed write-read-lock, recursive", ONE, "AwAs", "again A"),
    ("mixed read-lock/lock-write ABBA", ALL, "ArB BAw", "AB BA"),
    ("mixed read-lock/lock-write ABBA, recursive", ALL, "AsB BAw", "AB BA"),
    ("mixed read-lock/lock-read ABBA", ALL, "ArB BAr", "AB BA"),
    ("mixed read-lock/lock-read ABBA, recursive", ALL, "AsB BAs", ""),
    ("mixed write-lock/lock-write ABBA", ALL, "AwB BAw", "AB BA"),
    ("chain cached mixed R-L/L-W ABBA", ALL, "AsB BAs BAw", "AB BA"),
    ("rlock W1R2/W2R3/W3R1", ONE, "AwBs BwCs CwAs", "AB BC CA"),
    ("rlock W1W2/R2R3/W3R1", ONE, "AwBw BsCs CwAs", "AB BC CA"),
    ("rlock W1W2/R2R3/R3W1", ONE, "AwBw BsCs CsAw", ""),
    ("rlock W1R2/R2R3/W3W1", ONE, "AwBs BsCs CwAw", ""),
    ("irqs-on + irq-safe-A", ALONE, "!A A", "open A"),
    ("irqs-on + irq-safe-A, of recursive readers", RECURSIVE, "!A A", ""),
    ("safe-A + unsafe-B #1", EXCLUSIVE, "AB B !A", "AB BA, open A"),
    ("safe-A + unsafe-B #2", EXCLUSIVE, "-AB B !A", "AB BA"),
    ("safe-A + unsafe-B #2, of recursive readers", RECURSIVE, "-AB B !A", ""),
    ("irq lock-inversion", EXCLUSIVE, "-AwB B !As", "AB BA"),
    ("irq lock-inversion, of recursive readers", RECURSIVE, "-AwB B !As", ""),
    ("irq read-recursion", ONE, "-Aw As !AsB", ""),
    ("irq read-recursion, and a handler that writes", ONE, "-Aw As !AwB", "open A"),
    ("irq read-recursion #2", EXCLUSIVE, "-BAw As !B", "AB BA"),
    ("irq read-recursion #2, of recursive readers", ONE, "-BAs As !B", ""),
    ("irq read-recursion #3", ONE, "-BwAw As !Bs", "AB BA"),
    ("irq read-recursion #3, of recursive readers", ONE, "-BwAs As !Bs", ""),
    ("hardirq read-lock/lock-read", EXCLUSIVE, "!AsB -BAr", "AB BA"),
    ("hardirq lock-read/read-lock", EXCLUSIVE, "!BAs -ArB", ""),
    ("hardirq inversion", EXCLUSIVE, "!B -BAr Ar", "AB BA"),
    ("hardirq_unsafe_softirq_safe", EXCLUSIVE, "E-C !A -AB -BC ?D ~D -CD", "AB BC CD DA"),
    ("ww locking: try, and try", ALL, "ABt BAt", ""),
    ("ww locking: block, and try", ALL, "AB BAt", ""),
    ("ww locking: try, and block", ALL, "AtB BA", "AB BA"),
    ("spinlock nest", GATES, "CAB CBA", ""),
    ("spinlock nest unlocked", GATES, "CAB BA CAB", "AB BA"),
];

/// Ideas that are rows of other tables: the kernel's name, and that of the row.
const ROWS: &[(&str, &str)] = &[
    ("double unlock, mutex", "a second release: Mutex"),
    ("double unlock, rsem", "a read is released twice"),
    ("double unlock, wsem", "a write is released twice"),
    ("initialize held", "a lock lies where one was that is held, and the same thread has it"),
    ("initialize held, rsem", "dropped while it is read"),
    (
        "safe-A + irqs-on",
        "a signal is opened while a lock is held, and its handler acquires one of the class",
    ),
    ("EDEADLK handling", "inversion, as an error"),
    ("lockdep_set_subclass() name test", "inversion of subclasses"),
];

/// Ideas that locks of user space cannot have, and why.
const NONE: &[(&str, &str)] = &[
    ("sirq-safe-A => hirqs-on", "no signal is handled at the end of another's handler"),
    ("ww contexts", "no lock of the family is wounded: a thread that must step back tries"),
    ("fs_reclaim", "an allocation does not wait for locks of the program"),
    ("wait contexts", "each thread may sleep, so there is no lock inside of which a mutex is wrong"),
    ("local_lock", "no lock is one of a CPU"),
];

static REPORTS: std::sync::Mutex<Vec<Report>> = std::sync::Mutex::new(Vec::new());
/// Whether a report may come at the end of a thread, which may not panic.
static GOES_ON: AtomicBool = AtomicBool::new(false);

fn record(report: &Report) {
    REPORTS.lock().unwrap().push(report.clone());
    if !GOES_ON.load(Relaxed) {
        resume_unwind(Box::new("reported"));
    }
}

/// What `acquire` returns, unless that is reported.
fn unless<T>(acquire: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(acquire))
        .map_err(|panic| {
            if panic.downcast_ref() != Some(&"reported") {
                resume_unwind(panic);
            }
        })
        .ok()
}

/// Holds a lock in a way while a closure runs, if it may.
trait Lock: Send + Sync {
    fn hold(&self, way: char, inner: &mut dyn FnMut());
}

impl<R: RawMutex<Scope = Local> + Send + Sync> Lock for CheckedMutex<R, ()> {
    fn hold(&self, way: char, inner: &mut dyn FnMut()) {
        let held = unless(|| if way == 't' { self.try_lock().expect("it is free") } else { self.lock() });
        held.inspect(|_| inner());
    }
}

impl Lock for Semaphore {
    fn hold(&self, way: char, inner: &mut dyn FnMut()) {
        let attempt = || self.try_acquire_as_lock().expect("it is free");
        let held = unless(|| if way == 't' { attempt() } else { self.acquire_as_lock() });
        held.inspect(|_| inner());
    }
}

/// A lock, and the way in which it is acquired if the script does not say.
struct Shared(RwLock<()>, char);

impl Lock for Shared {
    fn hold(&self, way: char, inner: &mut dyn FnMut()) {
        let Self(lock, own) = self;
        let is_tried = way == 't';
        match if matches!(way, 't' | ' ') { *own } else { way } {
            'r' if is_tried => drop(unless(|| lock.try_read().expect("it is free")).inspect(|_| inner())),
            'r' => drop(unless(|| lock.read()).inspect(|_| inner())),
            'u' if is_tried => {
                drop(unless(|| lock.try_upgradable_read().expect("it is free")).inspect(|_| inner()))
            }
            'u' => drop(unless(|| lock.upgradable_read()).inspect(|_| inner())),
            'w' if is_tried => drop(unless(|| lock.try_write().expect("it is free")).inspect(|_| inner())),
            'w' => drop(unless(|| lock.write()).inspect(|_| inner())),
            's' => {
                // SAFETY: it is released as it was acquired.
                let raw = unsafe { lock.raw() }.inner();
                // SAFETY: both tokens are of the lock.
                let read =
                    || unsafe { raw.read_as(Access::Recursive, |raw| raw.try_read(), |raw| raw.read()) };
                if let Some(token) = unless(read) {
                    inner();
                    // SAFETY: this thread reads by this token.
                    unsafe { raw.unlock_read(token) };
                }
            }
            way => unreachable!("{way}"),
        }
    }
}

fn make(kind: char, class: &'static Class) -> Box<dyn Lock> {
    match kind {
        't' => Box::new(Mutex::new_in(class, ())),
        'b' => Box::new(BargingMutex::new_in(class, ())),
        'a' => Box::new(AsymMutex::new_in(class, ())),
        'f' => Box::new(FairMutex::new_in(class, ())),
        'c' => Box::new(Calock::new_in(class, ())),
        'p' => Box::new(CheckedMutex::<ulocks_pi::RawPiMutex, ()>::new_in(class, ())),
        'k' => Box::new(Semaphore::new_in(class, 1)),
        way => Box::new(Shared(RwLock::new_in(class, ()), way)),
    }
}

/// The locks of a script, and its two signals.
struct Stage {
    locks: Vec<(char, Box<dyn Lock>)>,
    signals: [i32; 2],
}

impl Stage {
    fn new(kind: char, script: &str) -> &'static Self {
        let mut locks = Vec::new();
        for letter in ('A'..='E').filter(|letter| script.contains(*letter)) {
            let is_marked = ['w', 'r', 's'].iter().any(|way| script.contains(&format!("{letter}{way}")));
            let class = leaked(Class::new(leaked(letter.to_string())));
            let kind = if is_marked { 'w' } else { kind };
            locks.extend([letter, letter.to_ascii_lowercase()].map(|name| (name, make(kind, class))));
        }
        leaked(Self { locks, signals: [0, 1].map(own_signal) })
    }

    fn run(&'static self, word: &'static str) {
        let Some(sign) = word.chars().next() else { return };
        let rest = &word[1..];
        match sign {
            '!' => interrupt(self.signals[0], || self.run(rest)),
            '?' => interrupt(self.signals[1], || self.run(rest)),
            '-' => blocked(&self.signals, || self.run(rest)),
            '~' => blocked(&self.signals[1..], || self.run(rest)),
            letter => {
                let (_, lock) = self.locks.iter().find(|(name, _)| *name == letter).expect("it is a lock");
                let (way, rest) = match rest.chars().next() {
                    Some(way @ ('w' | 'r' | 's' | 't')) => (way, &rest[1..]),
                    _ => (' ', rest),
                };
                lock.hold(way, &mut || self.run(rest));
            }
        }
    }
}

/// What is reported of the words.
fn found(kind: char, words: &[&'static str], is_of_threads: bool) -> String {
    let script = words.concat();
    let (stage, has_signals) = (Stage::new(kind, &script), script.contains('!'));
    // What handlers have left is reported at the end of a thread at the latest.
    GOES_ON.store(has_signals, Relaxed);
    set_policy(Policy::Call(record));
    let run = || {
        for word in words.iter().cycle().take(words.len() * if has_signals { 2 } else { 1 }) {
            match is_of_threads {
                true => thread::spawn(|| stage.run(word)).join().unwrap(),
                false => stage.run(word),
            }
        }
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap());
    let text = |report: &Report| {
        let step = |step: &Step| format!("{}{}", step.held.name, step.asked.name);
        let mut steps: Vec<String> = report.steps().iter().map(step).collect();
        if let Some(least) = (0..steps.len()).min_by_key(|&at| &steps[at]) {
            steps.rotate_left(least);
        }
        match report.rule() {
            Rule::NoRecursion | Rule::NoReadAgain => format!("again {}", report.lock().name),
            Rule::NoOpenSignal => format!("open {}", report.lock().name),
            Rule::Order => steps.join(" "),
            rule => format!("{rule:?}"),
        }
    };
    let all: BTreeSet<String> = REPORTS.lock().unwrap().iter().map(text).collect();
    Vec::from_iter(all).join(", ")
}

fn permutations<'a>(words: &[&'a str]) -> Vec<Vec<&'a str>> {
    let after = |at: usize| permutations(&[&words[..at], &words[at + 1..]].concat()).into_iter();
    let all = (0..words.len()).flat_map(|at| after(at).map(move |rest| [&[words[at]], &rest[..]].concat()));
    if words.is_empty() { vec![Vec::new()] } else { all.collect() }
}

#[test]
fn the_ideas_of_the_selftests_of_lockdep_hold() {
    let mut runs = 0;
    for (name, kinds, script, expected) in SCRIPTS {
        let words: Vec<&'static str> = script.split(' ').collect();
        let is_permuted = words.len() <= 3 && script.contains('!');
        let orders = if is_permuted { permutations(&words) } else { vec![words] };
        for (kind, order) in kinds.chars().flat_map(|kind| orders.iter().map(move |order| (kind, order))) {
            for is_of_threads in [false, true] {
                let ((mut told, mut tell), mut text) = (pipe().unwrap(), String::new());
                let run = || tell.write_all(found(kind, order, is_of_threads).as_bytes()).unwrap();
                let child = Child::runs(run);
                drop(tell);
                told.read_to_string(&mut text).unwrap();
                child.ends();
                assert_eq!(text, *expected, "{name}: {order:?} of {kind}, in threads: {is_of_threads}");
                runs += 1;
            }
        }
    }
    let tables = ["misuse", "rwlocks", "orders", "handler_orders", "as_errors"].map(|file| {
        std::fs::read_to_string(format!("{}/tests/faults/{file}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap()
    });
    for (name, row) in ROWS {
        assert!(tables.concat().contains(&format!("\"{row}\"")), "{name}: no row is `{row}`");
    }
    println!("{runs} runs of {} ideas; {} more are rows of other tables", SCRIPTS.len(), ROWS.len());
    NONE.iter().for_each(|(name, why)| println!("none for {name}: {why}"));
}
