//! Inversions that do not deadlock in the run.

use crate::Fault;
use crate::harness::{Places, breaks, circle, fault};
use crate::misuse::Unplaced;
use std::time::Duration;
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    ("inversion in one thread", one_thread),
    ("inversion in two threads", two_threads),
    ("inversion of other locks of the same classes", other_instances),
    ("inversion of two kinds of locks", two_kinds),
    ("inversion of three locks", three),
    ("inversion below the last held lock", below),
    ("inversion over a lock that was tried", tried),
    ("inversion over a lock with a deadline", timed),
    ("inversion over a lock that is gone", gone),
    ("inversion of named classes", named),
    ("inversion of subclasses", subclasses),
    ("inversion of two locks of one class", same_class),
    ("three philosophers of one class", philosophers),
    ("inversion of locks without a constructor", unplaced),
    ("inversion of locks in zeroed memory", in_zeroed_memory),
    ("inversion, as an error", as_error),
    ("inversion that is found again", again),
    ("inversion by a wait", by_wait),
    ("inversion of a reentrant lock", reentrant),
    ("inversion after a release out of order", out_of_order),
];

fn one_thread() -> Vec<Places> {
    let a = Mutex::new(());
    let b = Mutex::new(());
    let (in_a, first) = (a.lock(), line!());
    let (in_b, second) = (b.lock(), line!());
    drop((in_a, in_b));
    let (_in_b, third) = (b.lock(), line!());
    breaks(|| drop(a.lock()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn two_threads() -> Vec<Places> {
    static A: Mutex<()> = Mutex::new(());
    static B: Mutex<()> = Mutex::new(());
    fn first() -> (u32, u32) {
        let (_a, at) = (A.lock(), line!());
        (at, (drop(B.lock()), line!()).1)
    }
    fn second() -> (u32, u32) {
        let (_b, at) = (B.lock(), line!());
        (at, (breaks(|| drop(A.lock())), line!()).1)
    }
    // One after the other: they cannot deadlock.
    let first = std::thread::spawn(first).join().unwrap();
    let second = std::thread::spawn(second).join().unwrap();
    vec![circle(Rule::Order, &[second, first])]
}

fn other_instances() -> Vec<Places> {
    fn account() -> FairMutex<u32> {
        FairMutex::new(0)
    }
    fn log() -> FairMutex<u32> {
        FairMutex::new(0)
    }
    let (a, b) = (account(), log());
    let (in_a, first) = (a.lock(), line!());
    let (in_b, second) = (b.lock(), line!());
    drop((in_b, in_a));
    let (c, d) = (account(), log());
    let (_in_d, third) = (d.lock(), line!());
    breaks(|| drop(c.lock()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn two_kinds() -> Vec<Places> {
    let (a, b) = (Calock::new(()), PiMutex::new(()));
    let (in_a, first) = (a.lock(), line!());
    let (in_b, second) = (b.lock().unwrap(), line!());
    drop((in_b, in_a));
    let (_in_b, third) = (b.lock().unwrap(), line!());
    breaks(|| drop(a.lock()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn three() -> Vec<Places> {
    let (a, b, c) = (Mutex::new(()), AsymMutex::new(()), FairMutex::new(()));
    let (in_a, a1) = (a.lock(), line!());
    let (in_b, b1) = (b.lock(), line!());
    drop((in_b, in_a));
    let (in_b, b2) = (b.lock(), line!());
    let (in_c, c1) = (c.lock(), line!());
    drop((in_c, in_b));
    let (_in_c, c2) = (c.lock(), line!());
    breaks(|| drop(a.lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(c2, a2), (a1, b1), (b2, c1)])]
}

fn below() -> Vec<Places> {
    let (a, b, c) = (Mutex::new(()), AsymMutex::new(()), FairMutex::new(()));
    let (in_a, a1) = (a.lock(), line!());
    let (in_b, b1) = (b.lock(), line!());
    drop((in_b, in_a));
    let (_in_b, b2) = (b.lock(), line!());
    // There is no edge to the last held lock, by which the circle could be found as well.
    let _in_c = c.try_lock().unwrap();
    breaks(|| drop(a.lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(b2, a2), (a1, b1)])]
}

fn tried() -> Vec<Places> {
    let (a, b) = (Mutex::new(()), FairMutex::new(()));
    // The edge leads from the tried lock, since it is held. None leads to it.
    let (in_a, first) = (a.try_lock().unwrap(), line!());
    let (in_b, second) = (b.lock(), line!());
    drop((in_b, in_a));
    let (_in_b, third) = (b.lock(), line!());
    drop(a.try_lock().unwrap());
    breaks(|| drop(a.lock()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn timed() -> Vec<Places> {
    let (a, b) = (Mutex::new(()), FairMutex::new(()));
    let second = Duration::from_secs(1);
    let (in_a, a1) = (a.try_lock_for(second).unwrap(), line!());
    let (in_b, b1) = (b.lock(), line!());
    drop((in_b, in_a));
    let (_in_b, b2) = (b.try_lock_for(second).unwrap(), line!());
    drop(a.try_lock_for(second).unwrap());
    breaks(|| drop(a.lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(b2, a2), (a1, b1)])]
}

fn gone() -> Vec<Places> {
    let (a, c) = (Mutex::new(()), FairMutex::new(()));
    let middle = Box::new(Calock::new(()));
    let (in_a, a1) = (a.lock(), line!());
    let (in_b, b1) = (middle.lock(), line!());
    drop((in_b, in_a));
    let (in_b, b2) = (middle.lock(), line!());
    let (in_c, c1) = (c.lock(), line!());
    drop((in_c, in_b));
    drop(middle);
    let (_in_c, c2) = (c.lock(), line!());
    breaks(|| drop(a.lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(c2, a2), (a1, b1), (b2, c1)])]
}

static ACCOUNTS: Class = Class::new("accounts");
static LOGS: Class = Class::new("logs");

fn named() -> Vec<Places> {
    let a = [Mutex::new_in(&ACCOUNTS, ()), Mutex::new_in(&ACCOUNTS, ())];
    let b = [Mutex::new_in(&LOGS, ()), Mutex::new_in(&LOGS, ())];
    let (in_a, a1) = (a[0].lock(), line!());
    let (in_b, b1) = (b[0].lock(), line!());
    drop((in_b, in_a));
    let (_in_b, b2) = (b[1].lock(), line!());
    breaks(|| drop(a[1].lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(b2, a2), (a1, b1)])]
}

fn subclasses() -> Vec<Places> {
    let nodes = [(); 3].map(|()| Mutex::new(()));
    let (parent, p1) = (nodes[0].lock(), line!());
    let (child, c1) = (nodes[1].lock_nested(1), line!());
    drop((child, parent));
    let (_child, c2) = (nodes[1].lock_nested(1), line!());
    breaks(|| drop(nodes[2].lock()));
    let p2 = line!() - 1;
    vec![circle(Rule::Order, &[(c2, p2), (p1, c1)])]
}

fn same_class() -> Vec<Places> {
    let accounts = [(); 2].map(|()| Mutex::new(()));
    let (in_0, a) = (accounts[0].lock(), line!());
    let (in_1, b) = (accounts[1].lock(), line!());
    drop((in_1, in_0));
    let (_in_1, c) = (accounts[1].lock(), line!());
    breaks(|| drop(accounts[0].lock()));
    let d = line!() - 1;
    vec![circle(Rule::Order, &[(c, d), (a, b)])]
}

fn philosophers() -> Vec<Places> {
    let forks = [(); 3].map(|()| Mutex::new(()));
    let eat = |left: usize| {
        let _left = forks[left].lock();
        breaks(|| drop(forks[(left + 1) % 3].lock()));
    };
    let at = line!() - 3;
    (0..3).for_each(eat);
    vec![circle(Rule::Order, &[(at, at + 1); 3])]
}

fn unplaced() -> Vec<Places> {
    static A: Unplaced<()> = Unplaced::new(());
    static B: Unplaced<()> = Unplaced::new(());
    let (in_a, a1) = (A.lock(), line!());
    let (in_b, b1) = (B.lock(), line!());
    drop((in_b, in_a));
    let (_in_b, b2) = (B.lock(), line!());
    breaks(|| drop(A.lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(b2, a2), (a1, b1)])]
}

fn in_zeroed_memory() -> Vec<Places> {
    // SAFETY: zeroes are an unlocked lock around 0.
    let zeroed = || unsafe { Box::<Mutex<u32>>::new_zeroed().assume_init() };
    let (a, b) = (zeroed(), zeroed());
    let (in_a, a1) = (a.lock(), line!());
    let (in_b, b1) = (b.lock(), line!());
    assert_eq!((a.name(), held().locks()[0].lock.made.unwrap().line()), ("ThroughputMutex", a1));
    drop((in_b, in_a));
    let (_in_b, b2) = (b.lock(), line!());
    breaks(|| drop(a.lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(b2, a2), (a1, b1)])]
}

fn as_error() -> Vec<Places> {
    let (a, b) = (Mutex::new(()), FairMutex::new(()));
    let (in_a, a1) = (a.lock(), line!());
    let (in_b, b1) = (b.try_lock_checked().unwrap(), line!());
    drop((in_b, in_a));
    let (_in_b, b2) = (b.lock(), line!());
    let (result, a2) = (a.try_lock_checked(), line!());
    let Err(TryLockError::Fault(report)) = result else { panic!("no error") };
    let found = crate::harness::places(&report);
    assert_eq!(found, circle(Rule::Order, &[(b2, a2), (a1, b1)]));
    assert!(!a.is_locked());
    vec![]
}

fn again() -> Vec<Places> {
    let (a, b) = (Mutex::new(()), FairMutex::new(()));
    let (in_a, a1) = (a.lock(), line!());
    let (in_b, b1) = (b.lock(), line!());
    drop((in_b, in_a));
    let (_in_b, b2) = (b.lock(), line!());
    for _ in 0..3 {
        breaks(|| drop(a.lock()));
    }
    let a2 = line!() - 2;
    // A callback gets it once.
    vec![circle(Rule::Order, &[(b2, a2), (a1, b1)])]
}

fn by_wait() -> Vec<Places> {
    let (mutex, other, changed) = (Mutex::new(()), FairMutex::new(()), Condvar::new());
    let (mut in_mutex, m) = (mutex.lock(), line!());
    let (_in_other, o) = (other.lock(), line!());
    // The mutex is acquired again while the other lock is held.
    changed.wait_for(&mut in_mutex, Duration::from_millis(1));
    vec![fault(Rule::NoLockInWait, m, o), circle(Rule::Order, &[(o, m), (m, o)])]
}

fn reentrant() -> Vec<Places> {
    let (a, b) = (ReentrantMutex::new(()), Mutex::new(()));
    let (in_a, a1) = (a.lock(), line!());
    // Only the first acquisition counts, and the lock is held until the last release.
    let again = a.lock();
    let (in_b, b1) = (b.lock(), line!());
    drop((in_b, again, in_a));
    let (_in_b, b2) = (b.lock(), line!());
    breaks(|| drop(a.lock()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(b2, a2), (a1, b1)])]
}

fn out_of_order() -> Vec<Places> {
    let (a, b, c) = (Mutex::new(()), AsymMutex::new(()), FairMutex::new(()));
    let in_a = a.lock();
    let (in_b, b1) = (b.lock(), line!());
    drop(in_a);
    let (in_c, c1) = (c.lock(), line!());
    drop((in_b, in_c));
    let (_in_c, c2) = (c.lock(), line!());
    breaks(|| drop(b.lock()));
    let b2 = line!() - 1;
    vec![circle(Rule::Order, &[(c2, b2), (b1, c1)])]
}
