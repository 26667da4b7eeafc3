//! Deadlocks that happen, with readers and writers.

use crate::Fault;
use crate::deadlocks::{await_waiters, with_order};
use crate::harness::{GO_ON, breaks, circle};
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    // Two threads read besides, and hold the lock until the end.
    ("deadlock of a writer and one of three readers", || {
        static TABLE: RwLock<()> = RwLock::new(());
        static LOG: Mutex<()> = Mutex::new(());
        static READ: Barrier = Barrier::new(4);
        static OVER: Barrier = Barrier::new(3);
        GO_ON.store(true, Relaxed);
        let others = [(); 2].map(|()| {
            std::thread::spawn(|| {
                let _reads = TABLE.read();
                READ.wait();
                OVER.wait();
            })
        });
        let at = line!() + 2;
        let reader = std::thread::spawn(|| {
            let _reads = TABLE.read();
            READ.wait();
            drop(LOG.lock());
        });
        let (in_log, l1) = (LOG.lock(), line!());
        READ.wait();
        await_waiters(1);
        breaks(|| drop(TABLE.write()));
        let t2 = line!() - 1;
        assert_eq!(held().locks().iter().filter(|held| held.lock.access == Access::Read(0)).count(), 3);
        drop(in_log);
        reader.join().unwrap();
        OVER.wait();
        others.into_iter().for_each(|other| other.join().unwrap());
        let steps = [(l1, t2), (at, at + 2)];
        with_order(&steps, &steps)
    }),
    ("deadlock of a reader behind a writer", || {
        static TABLE: RwLock<u32> = RwLock::new(0);
        static LOG: Mutex<()> = Mutex::new(());
        GO_ON.store(true, Relaxed);
        let (reads, t1) = (TABLE.read(), line!());
        let w = line!() + 1;
        let writer = std::thread::spawn(|| *TABLE.write() += 1);
        await_waiters(1);
        let at = line!() + 2;
        let other = std::thread::spawn(|| {
            let _in_log = LOG.lock();
            drop(TABLE.read());
        });
        await_waiters(2);
        breaks(|| drop(LOG.lock()));
        let l2 = line!() - 1;
        drop(reads);
        other.join().unwrap();
        writer.join().unwrap();
        let steps = [(t1, l2), (at, at + 1), (w, w)];
        with_order(&steps, &steps[..2])
    }),
    ("deadlock of an upgradable reader behind a writer", || {
        static TABLE: RwLock<u32> = RwLock::new(0);
        static LOG: Mutex<()> = Mutex::new(());
        GO_ON.store(true, Relaxed);
        let (reads, t1) = (TABLE.read(), line!());
        let w = line!() + 1;
        let writer = std::thread::spawn(|| *TABLE.write() += 1);
        await_waiters(1);
        let at = line!() + 2;
        let other = std::thread::spawn(|| {
            let _in_log = LOG.lock();
            drop(TABLE.upgradable_read());
        });
        await_waiters(2);
        breaks(|| drop(LOG.lock()));
        let l2 = line!() - 1;
        drop(reads);
        other.join().unwrap();
        writer.join().unwrap();
        let steps = [(t1, l2), (at, at + 1), (w, w)];
        with_order(&steps, &steps[..2])
    }),
    // A writer that gives up comes first, and one that does not comes last.
    ("deadlock of a writer with a deadline, and then without", || {
        static TABLE: RwLock<u32> = RwLock::new(0);
        static LOG: Mutex<()> = Mutex::new(());
        GO_ON.store(true, Relaxed);
        let (in_log, l1) = (LOG.lock(), line!());
        let (say, hear) = std::sync::mpsc::channel();
        let t1 = line!() + 2;
        let reader = std::thread::spawn(move || {
            let _reads = TABLE.read();
            say.send(()).unwrap();
            drop(LOG.lock());
        });
        hear.recv().unwrap();
        await_waiters(1);
        // It keeps what it has written to itself: the order is not asked about.
        assert!(TABLE.try_write_for(Duration::from_millis(20)).is_none());
        let w1 = line!() - 1;
        breaks(|| drop(TABLE.write()));
        let w2 = line!() - 1;
        drop(in_log);
        reader.join().unwrap();
        let (timed, untimed) = ([(l1, w1), (t1, t1 + 2)], [(l1, w2), (t1, t1 + 2)]);
        [vec![circle(Rule::Deadlock, &timed)], with_order(&untimed, &untimed)].concat()
    }),
    // A warning: the writer in front gives up, and lets the reader in.
    ("deadlock of a reader behind a writer with a deadline", || {
        static TABLE: RwLock<u32> = RwLock::new(0);
        static LOG: Mutex<()> = Mutex::new(());
        GO_ON.store(true, Relaxed);
        let (reads, t1) = (TABLE.read(), line!());
        let w = line!() + 2;
        let writer = std::thread::spawn(|| {
            assert!(TABLE.try_write_for(Duration::from_secs(2)).is_none());
        });
        await_waiters(1);
        let at = line!() + 2;
        let other = std::thread::spawn(|| {
            let _in_log = LOG.lock();
            drop(TABLE.read());
        });
        await_waiters(2);
        drop(LOG.lock());
        let l2 = line!() - 1;
        drop(reads);
        other.join().unwrap();
        writer.join().unwrap();
        let steps = [(t1, l2), (at, at + 1), (w, w)];
        with_order(&steps, &steps[..2])
    }),
    ("deadlock of two upgrades", || {
        static A: RwLock<()> = RwLock::new(());
        static B: RwLock<()> = RwLock::new(());
        static BOTH: Barrier = Barrier::new(2);
        GO_ON.store(true, Relaxed);
        let at = line!() + 2;
        let other = std::thread::spawn(|| {
            let upgradable = B.upgradable_read();
            BOTH.wait();
            let _reads = A.read();
            BOTH.wait();
            drop(RwLockUpgradableReadGuard::upgrade(upgradable));
        });
        let upgradable = A.upgradable_read();
        BOTH.wait();
        let (reads, b1) = (B.read(), line!());
        BOTH.wait();
        await_waiters(1);
        breaks(|| drop(RwLockUpgradableReadGuard::upgrade(upgradable)));
        let a2 = line!() - 1;
        drop(reads);
        other.join().unwrap();
        // The order: each holds one to read, and asks for the other to write.
        let steps = [(b1, a2), (at + 2, at + 4)];
        with_order(&steps, &steps)
    }),
];
