//! What the kernel does with the robust list of a thread that dies. Each fact was measured on Linux
//! 6.18. The rule for a pending lock of a stranger was measured on 7.2 as well, where it differs;
//! all others are the same in 7.2's source.

use crate::{all_outcomes_of, failure, outcomes};
use std::sync::Arc;
use std::time::Duration;
use ulocks_vm::clock::{Clock, Time, now};
use ulocks_vm::explore::{Config, Deaths, Kernel, Strategy};
use ulocks_vm::futex::{Entry, Waited, wait, wait_any};
use ulocks_vm::process::{self, Region, robust_tid, set_robust_list};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed};
use ulocks_vm::sync::{AtomicPtr, AtomicU32, AtomicUsize, interruption_point};
use ulocks_vm::thread;

const ALL: u32 = u32::MAX;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
/// What the lock of another thread holds.
const STRANGER: u32 = 1_000;

/// `struct robust_list_head`.
#[repr(C)]
struct Head {
    first: AtomicPtr<()>,
    offset: AtomicUsize,
    pending: AtomicPtr<()>,
}

/// A lock: the entry, and the word behind it.
#[repr(C)]
struct Robust {
    next: AtomicPtr<()>,
    word: AtomicU32,
}

impl Robust {
    fn new(word: u32) -> Self {
        Self { next: AtomicPtr::default(), word: AtomicU32::new(word) }
    }
}

impl Head {
    fn new() -> Box<Self> {
        let head = Box::new(Self {
            first: AtomicPtr::default(),
            offset: AtomicUsize::new(std::mem::offset_of!(Robust, word)),
            pending: AtomicPtr::default(),
        });
        head.first.store(head.end(), Relaxed);
        head
    }

    fn end(&self) -> *mut () {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn link(&self, lock: &Robust) {
        lock.next.store(self.first.load(Relaxed), Relaxed);
        self.first.store(entry(lock), Relaxed);
    }
}

fn entry(lock: &Robust) -> *mut () {
    std::ptr::from_ref(lock).cast_mut().cast()
}

/// How the dying thread knows a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// It is on the list.
    Listed,
    /// It is being acquired or released.
    Pending,
    /// Both.
    Both,
}

/// The thread that dies is thread 1, in place of its first step.
const DIES: Deaths = Deaths::At { thread: 1, step: 0 };
/// Its id.
const TID: u32 = 2;

/// All executions in which it dies.
fn deaths() -> Config {
    Config { deaths: DIES, ..Config::exhaustive() }
}

/// A thread that knows of a lock whose word is `word` dies, while `survivor` runs. What that
/// returns.
fn with_death<T>(held: Held, word: u32, survivor: impl FnOnce(&Arc<Robust>) -> T) -> T {
    let (lock, head) = (Arc::new(Robust::new(word)), Head::new());
    if held != Held::Pending {
        head.link(&lock);
    }
    if held != Held::Listed {
        head.pending.store(entry(&lock), Relaxed);
    }
    let list = head.end().expose_provenance();
    let dying = process::spawn(move || {
        unsafe { set_robust_list(std::ptr::with_exposed_provenance(list)) };
        assert_eq!(robust_tid(), TID);
        interruption_point();
        unreachable!("it dies before this");
    });
    let outcome = survivor(&lock);
    assert!(dying.join().is_err(), "it has died");
    drop(head);
    outcome
}

fn soon() -> Option<Time> {
    let since_zero = now(Clock::Monotonic) + Duration::from_secs(1);
    Some(Time { clock: Clock::Monotonic, since_zero })
}

#[test]
fn a_lock_of_the_dead_is_marked_and_keeps_its_waiters_bit() {
    for (held, before, after) in [
        (Held::Listed, TID, OWNER_DIED),
        (Held::Pending, TID, OWNER_DIED),
        (Held::Both, TID, OWNER_DIED),
        (Held::Listed, TID | WAITERS, OWNER_DIED | WAITERS),
        (Held::Pending, TID | WAITERS, OWNER_DIED | WAITERS),
        (Held::Listed, TID | OWNER_DIED, OWNER_DIED),
        (Held::Listed, STRANGER, STRANGER),
        (Held::Listed, STRANGER | WAITERS, STRANGER | WAITERS),
        (Held::Pending, STRANGER, STRANGER),
        (Held::Listed, 0, 0),
        (Held::Pending, 0, 0),
        (Held::Pending, WAITERS, WAITERS),
    ] {
        let model = move || {
            let lock = with_death(held, before, Arc::clone);
            lock.word.load(Relaxed)
        };
        all_outcomes_of(deaths(), model, [after]);
    }
}

/// How two timed waits on the lock's word end while its owner dies: how many were woken, at most
/// and at least.
fn woken(held: Held, word: u32, private: bool) -> Vec<u32> {
    let [old, new] = Kernel::ALL.map(|kernel| woken_by(kernel, held, word, private));
    assert_eq!(old, new, "{held:?}, {word:#x}");
    old
}

/// The same on one kernel.
fn woken_by(kernel: Kernel, held: Held, word: u32, private: bool) -> Vec<u32> {
    let model = move || {
        let wait_once =
            move |lock: &Robust| u32::from(wait(&lock.word, word, ALL, soon(), private) == Waited::Woken);
        with_death(held, word, |lock| {
            let shared = Arc::clone(lock);
            let other = thread::spawn(move || wait_once(&shared));
            wait_once(lock) + other.join().unwrap()
        })
    };
    outcomes(Config { kernel, ..deaths() }, model).into_iter().collect()
}

#[test]
fn one_waiter_is_woken_and_only_if_the_bit_says_that_there_is_one() {
    assert_eq!(woken(Held::Listed, TID | WAITERS, false), [0, 1]);
    assert_eq!(woken(Held::Pending, TID | WAITERS, false), [0, 1]);
    assert_eq!(woken(Held::Both, TID | WAITERS, false), [0, 1]);
    assert_eq!(woken(Held::Listed, TID, false), [0]);
    assert_eq!(woken(Held::Pending, TID, false), [0]);
}

#[test]
fn a_private_waiter_is_never_woken() {
    assert_eq!(woken(Held::Listed, TID | WAITERS, true), [0]);
    let model = || {
        with_death(Held::Listed, TID | WAITERS, |lock| {
            if lock.word.load(Relaxed) == TID | WAITERS {
                wait(&lock.word, TID | WAITERS, ALL, None, true);
            }
        });
    };
    assert_eq!(failure(&deaths(), model).verdict.kind(), "lost wake-up");
}

#[test]
fn a_pending_lock_that_is_not_the_deads_passes_a_wake_up_on() {
    let (none, one): (&[u32], &[u32]) = (&[0], &[0, 1]);
    for (word, old, new) in
        [(0, one, one), (WAITERS, one, one), (STRANGER, none, one), (STRANGER | WAITERS, none, none)]
    {
        for (kernel, expected) in [(Kernel::V6_18, old), (Kernel::V7_2, new)] {
            let woken = woken_by(kernel, Held::Pending, word, false);
            assert_eq!(woken, expected, "{kernel:?}, {word:#x}");
        }
        assert_eq!(woken(Held::Listed, word, false), none, "{word:#x}, not pending");
    }
}

#[test]
fn who_waits_for_any_is_told_which_owner_died() {
    let model = || {
        with_death(Held::Listed, TID | WAITERS, |lock| {
            let other = AtomicU32::new(0);
            let entries = [
                Entry { word: &other, expected: 0, private: true },
                Entry { word: &lock.word, expected: TID | WAITERS, private: false },
            ];
            let (waited, which) = wait_any(&entries, soon());
            (format!("{waited:?}"), which)
        })
    };
    let ends = [("Mismatch", None), ("TimedOut", None), ("Woken", Some(1))];
    all_outcomes_of(deaths(), model, ends.map(|(end, which)| (end.to_owned(), which)));
}

#[test]
fn the_owner_is_found_at_whatever_address_the_survivor_has_mapped() {
    let model = || {
        let region = Region::new(64);
        let (here, there) = (region.map(), region.map());
        let head = Head::new();
        let theirs: &Robust = unsafe { there.at(0) };
        theirs.word.store(TID | WAITERS, Relaxed);
        head.link(theirs);
        let list = head.end().expose_provenance();
        let dying = process::spawn(move || {
            unsafe { set_robust_list(std::ptr::with_exposed_provenance(list)) };
            interruption_point();
        });
        let ours: &Robust = unsafe { here.at(0) };
        let waited = format!("{:?}", wait(&ours.word, TID | WAITERS, ALL, None, false));
        assert!(dying.join().is_err());
        (waited, ours.word.load(Relaxed))
    };
    let word = OWNER_DIED | WAITERS;
    all_outcomes_of(deaths(), model, [("Woken".to_owned(), word), ("Mismatch".to_owned(), word)]);
}

/// A thread with so many locks dies; how many of them are marked.
fn marked(locks: usize, circle: bool) -> usize {
    let model = move || {
        let head = Head::new();
        let locks: Vec<_> = (0..locks).map(|_| Robust::new(TID)).collect();
        if circle {
            // The last entry leads back to the first one, and never to the head.
            locks.iter().for_each(|lock| head.link(lock));
            locks[0].next.store(head.first.load(Relaxed), Relaxed);
        } else {
            locks.iter().rev().for_each(|lock| head.link(lock));
        }
        let list = head.end().expose_provenance();
        let dying = process::spawn(move || {
            unsafe { set_robust_list(std::ptr::with_exposed_provenance(list)) };
            interruption_point();
        });
        assert!(dying.join().is_err());
        locks.iter().filter(|lock| lock.word.load(Relaxed) == OWNER_DIED).count()
    };
    let config = Config { strategy: Strategy::Random, executions: 1, deaths: DIES, ..Config::default() };
    let marked = outcomes(config, model);
    assert_eq!(marked.len(), 1);
    marked.into_iter().next().unwrap_or_default()
}

#[test]
fn the_kernel_follows_2048_entries_and_no_more() {
    assert_eq!(marked(0, false), 0);
    assert_eq!(marked(3, true), 3);
    assert_eq!(marked(2_047, false), 2_047);
    assert_eq!(marked(2_048, false), 2_048);
    assert_eq!(marked(2_049, false), 2_048);
    assert_eq!(marked(3_000, false), 2_048);
}

#[test]
fn locks_are_released_one_after_the_other_in_the_order_of_the_list() {
    let model = || {
        let (head, locks) = (Head::new(), [Robust::new(TID), Robust::new(TID)]);
        locks.iter().rev().for_each(|lock| head.link(lock));
        let list = head.end().expose_provenance();
        let dying = process::spawn(move || {
            unsafe { set_robust_list(std::ptr::with_exposed_provenance(list)) };
            interruption_point();
        });
        // The kernel's look is at the newest value, and this wait ends at once.
        let past = Some(Time { clock: Clock::Monotonic, since_zero: Duration::ZERO });
        let died =
            [1, 0].map(|which: usize| wait(&locks[which].word, TID, ALL, past, true) == Waited::Mismatch);
        let again = wait(&locks[1].word, TID, ALL, past, true) == Waited::Mismatch;
        assert!(dying.join().is_err());
        (died[1], died[0], again)
    };
    let (f, t) = (false, true);
    // (the first, the second before that, the second after that)
    all_outcomes_of(deaths(), model, [(f, f, f), (f, f, t), (t, f, f), (t, f, t), (t, t, t)]);
}

#[test]
fn who_finds_the_mark_sees_all_that_the_dead_did() {
    let model = || {
        let (head, lock) = (Head::new(), Arc::new(Robust::new(TID)));
        head.link(&lock);
        let (list, data) = (head.end().expose_provenance(), Arc::new(AtomicU32::new(0)));
        let theirs = Arc::clone(&data);
        let dying = process::spawn(move || {
            unsafe { set_robust_list(std::ptr::with_exposed_provenance(list)) };
            theirs.store(1, Relaxed);
            interruption_point();
        });
        let (word, seen) = (lock.word.load(Acquire), data.load(Relaxed));
        assert!(dying.join().is_err());
        (word == OWNER_DIED, seen)
    };
    let config = Config { deaths: Deaths::At { thread: 1, step: 1 }, ..Config::exhaustive() };
    all_outcomes_of(config, model, [(false, 0), (false, 1), (true, 1)]);
}
