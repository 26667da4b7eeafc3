//! Inversions that do not deadlock in the run.

use crate::harness::{breaks, circle, fault};
use crate::misuse::Unplaced;
use crate::{Fault, order, order_of_three};
use std::time::Duration;
use ulocks_core::task::{AsyncMutex, AsyncRwLock};
use ulocks_debug::*;

const SECOND: Duration = Duration::from_secs(1);
static ACCOUNTS: Class = Class::new("accounts");
static LOGS: Class = Class::new("logs");

fn two_of(class: &'static Class) -> [Mutex<()>; 2] {
    [(); 2].map(|()| Mutex::new_in(class, ()))
}

fn of_a_task(mutex: &Mutex<()>) {
    crate::executor::run(vec![Box::pin(async { drop(mutex.lock_async().await) })]);
}

fn written_by_a_task(lock: &RwLock<()>) {
    crate::executor::run(vec![Box::pin(async { drop(lock.write_async().await) })]);
}

pub const TABLE: &[Fault] = &[
    ("inversion in two threads", || {
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
    }),
    ("inversion of other locks of the same classes", || {
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
    }),
    order! { "inversion of two kinds of locks", [a = Calock::new(()), b = PiMutex::new(())]
    a.lock();
    b.lock().unwrap();
    b.lock().unwrap();
    a.lock() },
    ("inversion below the last held lock", || {
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
    }),
    // The edge leads from the tried lock, since it is held. None leads to it.
    order! { "inversion over a lock that was tried", [a = Mutex::new(()), b = FairMutex::new(())]
    a.try_lock().unwrap();
    b.lock();
    b.lock();
    { drop(a.try_lock().unwrap()); a.lock() } },
    order! { "inversion over a lock with a deadline", [a = Mutex::new(()), b = FairMutex::new(())]
    a.try_lock_for(SECOND).unwrap();
    b.lock();
    b.try_lock_for(SECOND).unwrap();
    { drop(a.try_lock_for(SECOND).unwrap()); a.lock() } },
    order_of_three! { "inversion over a lock that is gone", [a = Mutex::new(()), c = FairMutex::new(()), b = Box::new(Calock::new(()))]
    a.lock();
    b.lock();
    b.lock();
    c.lock();
    { drop(b); c.lock() };
    a.lock() },
    order! { "inversion of named classes", [a = two_of(&ACCOUNTS), b = two_of(&LOGS)]
    a[0].lock();
    b[0].lock();
    b[1].lock();
    a[1].lock() },
    order! { "inversion of subclasses", [nodes = [(); 3].map(|()| Mutex::new(()))]
    nodes[0].lock();
    nodes[1].lock_nested(1);
    nodes[1].lock_nested(1);
    nodes[2].lock() },
    order! { "inversion with a lock that a task had first", [of = [(); 2].map(|()| Mutex::new(())), log = Mutex::new(())]
    of[0].lock();
    log.lock();
    log.lock();
    { of_a_task(&of[1]); of[1].lock() } },
    order! { "inversion with a lock that a task wrote first", [of = [(); 2].map(|()| RwLock::new(())), log = Mutex::new(())]
    of[0].write();
    log.lock();
    log.lock();
    { written_by_a_task(&of[1]); of[1].read() } },
    ("three philosophers of one class", || {
        let forks = [(); 3].map(|()| Mutex::new(()));
        let eat = |left: usize| {
            let _left = forks[left].lock();
            breaks(|| drop(forks[(left + 1) % 3].lock()));
        };
        let at = line!() - 3;
        (0..3).for_each(eat);
        vec![circle(Rule::Order, &[(at, at + 1); 3])]
    }),
    order! { "inversion of locks without a constructor", [a = Unplaced::new(()), b = Unplaced::new(())]
    a.lock();
    b.lock();
    b.lock();
    a.lock() },
    ("inversion of locks in zeroed memory", || {
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
    }),
    // A callback gets it once.
    order! { "inversion that is found again", [a = Mutex::new(()), b = FairMutex::new(())]
    a.lock();
    b.lock();
    b.lock();
    Vec::from([(); 3].map(|()| breaks(|| drop(a.lock())))) },
    ("inversion by a wait", || {
        let (mutex, other, changed) = (Mutex::new(()), FairMutex::new(()), Condvar::new());
        let (mut in_mutex, m) = (mutex.lock(), line!());
        let (_in_other, o) = (other.lock(), line!());
        // The mutex is acquired again while the other lock is held.
        changed.wait_for(&mut in_mutex, Duration::from_millis(1));
        vec![fault(Rule::NoLockInWait, m, o), circle(Rule::Order, &[(o, m), (m, o)])]
    }),
    // Only the first acquisition counts, and the lock is held until the last release.
    order! { "inversion of a reentrant lock", [a = ReentrantMutex::new(()), b = Mutex::new(())]
    (a.lock(), a.lock());
    b.lock();
    b.lock();
    a.lock() },
    ("inversion after a release out of order", || {
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
    }),
    // What the thread holds is told by a sum, which the place of the released lock must not keep.
    ("inversion of a lock in the place of another", || {
        let (a, b, c, d, e) =
            (Mutex::new(()), Mutex::new(()), Mutex::new(()), Mutex::new(()), Mutex::new(()));
        for _ in 0..2 {
            drop((a.lock(), b.lock(), c.lock(), e.lock()));
        }
        let (in_e, e1) = (e.lock(), line!());
        let (in_d, d1) = (d.lock(), line!());
        drop((in_d, in_e));
        let (in_a, in_b, in_c) = (a.lock(), b.lock(), c.lock());
        drop(in_b);
        let (in_d, d2) = (d.lock(), line!());
        breaks(|| drop(e.lock()));
        let e2 = line!() - 1;
        drop((in_d, in_c, in_a));
        vec![circle(Rule::Order, &[(d2, e2), (e1, d1)])]
    }),
];
