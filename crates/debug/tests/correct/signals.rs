//! Correct programs with locks in signal handlers.

use crate::common::{blocked, install, interrupt, leaked, opened, own_signal, signals};
use libc::{SIGUSR1, SIGUSR2};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use ulocks_core::signal::{Mask, Soft};
use ulocks_debug::*;
use ulocks_psrwlock::Nested;

pub const TABLE: &[(&str, fn())] = &[
    ("a lock of a handler, with the signal blocked", || {
        let (mutex, other) = (leaked(Mutex::new(0)), Mutex::new(0));
        blocked(&[SIGUSR1], || *mutex.lock() += 1);
        let in_other = other.lock();
        interrupt(SIGUSR1, || {
            *mutex.lock() += 1;
            assert_eq!(held().locks().len(), 1);
        });
        drop(in_other);
        // Another signal may be open.
        blocked(&[SIGUSR1], || *mutex.lock() += 1);
        std::thread::spawn(|| blocked(&[SIGUSR1, SIGUSR2], || *mutex.lock() += 1)).join().unwrap();
        assert_eq!(blocked(&[SIGUSR1], || *mutex.lock()), 4);
    }),
    ("a handler that only tries", || {
        let mutex = leaked(Mutex::new(0));
        let in_mutex = mutex.lock();
        interrupt(SIGUSR1, || assert!(mutex.try_lock().is_none()));
        drop(in_mutex);
        interrupt(SIGUSR1, || *mutex.try_lock().unwrap() += 1);
        assert_eq!(*mutex.lock(), 1);
    }),
    ("a handler that reads in a class above the reads of threads", || {
        let lock = leaked(RwLock::new(7));
        let held = lock.read();
        interrupt(SIGUSR1, || assert_eq!(*lock.read_in::<Nested>(), 7));
        drop(held);
        assert_eq!(*lock.read(), 7);
        blocked(&[SIGUSR1], || *lock.write() = 8);
    }),
    ("a lock of a handler, while a soft mask is up", || {
        let mutex = leaked(Mutex::new(0));
        interrupt(SIGUSR1, || *mutex.lock() += 1);
        Soft::raise();
        *mutex.lock() += 1;
        Soft::lower();
    }),
    ("a handler in a handler", || {
        let (inner, outer, other) = (leaked(Mutex::new(0)), leaked(Mutex::new(0)), own_signal(0));
        install(other, || *inner.lock() += 1);
        interrupt(SIGUSR1, move || {
            let mut in_outer = outer.lock();
            // SAFETY: the signal has a handler.
            opened(&[other], || assert_eq!(unsafe { libc::raise(other) }, 0));
            *in_outer += 1;
        });
        // One after the other: `outer` in `inner` would be an inversion.
        assert_eq!(blocked(&signals(), || *inner.lock()), 1);
        assert_eq!(blocked(&signals(), || *outer.lock()), 1);
    }),
    ("a handler of a thread that has used no lock", || {
        let mutex = leaked(Mutex::new(0));
        for _ in 0..3 {
            std::thread::spawn(|| interrupt(SIGUSR1, || *mutex.lock() += 1)).join().unwrap();
        }
        assert_eq!(blocked(&[SIGUSR1], || *mutex.lock()), 3);
    }),
    ("two locks of a handler, in one order everywhere", || {
        let (a, b) = (leaked(Mutex::new(0)), leaked(Mutex::new(0)));
        let both = [SIGUSR1, SIGUSR2];
        for signal in both {
            interrupt(signal, move || blocked(&both, || *a.lock() += *b.lock()));
        }
        blocked(&both, || *a.lock() += *b.lock());
        looks();
    }),
    ("a lock of a handler under one that is held with the signal open", || {
        let (usual, table) = (leaked(Mutex::new(0)), leaked(Mutex::new(0)));
        *usual.lock() += 1;
        interrupt(SIGUSR1, || *table.lock() += 1);
        blocked(&[SIGUSR1], || {
            let mut in_usual = usual.lock();
            *in_usual += *table.lock();
        });
        looks();
    }),
    // Another signal is open.
    ("a lock of a handler, and under it one that is never held with the signal open", || {
        let (usual, table) = (leaked(Mutex::new(0)), leaked(Mutex::new(0)));
        interrupt(SIGUSR1, || *table.lock() += 1);
        blocked(&[SIGUSR1], || {
            let mut in_table = table.lock();
            *in_table += *usual.lock();
        });
        blocked(&[SIGUSR1], || *usual.lock() += 1);
        looks();
    }),
    ("a lock of a handler, and under it one that is tried", || {
        let (usual, table) = (leaked(Mutex::new(0)), leaked(Mutex::new(0)));
        *usual.lock() += 1;
        interrupt(SIGUSR1, || *table.lock() += 1);
        blocked(&[SIGUSR1], || {
            let mut in_table = table.lock();
            *in_table += *usual.try_lock().unwrap();
        });
        looks();
    }),
    // The handler's read passes a writer of the other lock that waits, and no writer holds this
    // one.
    ("a lock of a handler that reads above the writes of threads", || {
        let (usual, table) = (leaked(Mutex::new(0)), leaked(RwLock::new(1)));
        *usual.lock() += 1;
        interrupt(SIGUSR1, || assert_eq!(*table.read_in::<Nested>(), 1));
        let in_table = table.read();
        *usual.lock() += *in_table;
        drop(in_table);
        looks();
    }),
    ("handlers at random, while locks are contended", || {
        const SIGNALS: u64 = 200;
        static HANDLED: AtomicU64 = AtomicU64::new(0);
        let count = leaked(FairMutex::new(0_u64));
        let (a, b) = (Mutex::new(0_u64), Mutex::new(0_u64));
        install(SIGUSR1, move || {
            *count.lock() += 1;
            HANDLED.fetch_add(1, Relaxed);
        });
        let is_over = AtomicBool::new(false);
        let mine = std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let work = || {
                let mut mine = 0;
                while !is_over.load(Relaxed) {
                    let mut in_a = a.lock();
                    *b.lock() += 1;
                    *in_a += 1;
                    drop(in_a);
                    blocked(&[SIGUSR1], || *count.lock() += 1);
                    mine += 1;
                }
                mine
            };
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        // musl's is a pointer, which no channel takes.
                        // SAFETY: it has no preconditions.
                        sender.send(unsafe { libc::pthread_self() } as usize).unwrap();
                        work()
                    })
                })
                .collect();
            let ids: Vec<_> = receiver.iter().take(3).collect();
            for sent in 0..SIGNALS {
                let id = ids[sent as usize % 3] as libc::pthread_t;
                // SAFETY: the threads run until `is_over`.
                assert_eq!(unsafe { libc::pthread_kill(id, SIGUSR1) }, 0);
                ulocks_testkit::limit::until("the signal is handled", || HANDLED.load(Relaxed) > sent);
            }
            is_over.store(true, Relaxed);
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
        });
        assert_eq!(blocked(&[SIGUSR1], || *count.lock()), SIGNALS + mine);
        assert_eq!((a.into_inner(), b.into_inner()), (mine, mine));
    }),
];

/// Has the thread look at what handlers have left: it acquires a lock of a new class.
#[track_caller]
fn looks() {
    drop(Mutex::new(()).lock());
}
