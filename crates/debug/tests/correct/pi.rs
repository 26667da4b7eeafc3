//! Correct programs with mutexes that inherit priority, and their condition variables.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use ulocks_debug::*;
use ulocks_testkit::task::until_asleep;

pub const TABLE: &[(&str, fn())] = &[
    // Several threads put and take, and are notified one by one and all at once.
    ("a queue with a PiCondvar", || {
        static ITEMS: PiMutex<(Vec<u32>, u32)> = PiMutex::new((Vec::new(), 0));
        static CHANGED: PiCondvar = PiCondvar::new();
        static TOTAL: Mutex<u32> = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let items = ITEMS.lock().unwrap();
                        let mut items =
                            CHANGED.wait_while(items, |(items, done)| items.is_empty() && *done < 2).unwrap();
                        let Some(item) = items.0.pop() else { return };
                        // In one order with the mutex.
                        *TOTAL.lock() += item;
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for item in 1..=100 {
                        ITEMS.lock().unwrap().0.push(item);
                        CHANGED.notify_one(&ITEMS).unwrap();
                    }
                    let mut items = ITEMS.lock().unwrap();
                    items.1 += 1;
                    CHANGED.notify_all(&ITEMS).unwrap();
                });
            }
        });
        assert_eq!(*TOTAL.lock(), 2 * 5050);
    }),
    ("a wait does not hold its PiMutex", || {
        let (ready, changed) = (PiMutex::new(false), PiCondvar::new());
        let (say, hear) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (held_here, line) = (ready.lock().unwrap(), line!());
                say.send(ulocks_core::tid::current()).unwrap();
                let _held = changed.wait_while(held_here, |ready| !*ready).unwrap();
                // Its place is that of the acquisition.
                let (all, me) = (held(), ulocks_core::tid::current());
                let mine: Vec<_> = all.locks().iter().filter(|held| held.thread.tid == me).collect();
                assert_eq!((mine.len(), mine[0].at.line()), (1, line), "{all}");
            });
            until_asleep(&[hear.recv().unwrap().cast_signed()]);
            assert!(held().locks().is_empty() && waiters().is_empty(), "{}", held());
            let mut now = ready.lock().unwrap();
            assert_eq!(held().locks().len(), 1);
            *now = true;
            // The waiter is moved to the mutex, and waits for this thread.
            assert_eq!(changed.notify_all(&ready).unwrap(), 1);
            assert_eq!(held().locks().len(), 1);
        });
        assert!(!ready.is_locked());
    }),
    // A wait acquires the mutex in the subclass in which it was acquired.
    ("a wait is as the acquisition before it", || {
        let (nodes, changed) = ([(); 2].map(|()| PiMutex::new(())), PiCondvar::new());
        let child = nodes[1].lock_nested(1).unwrap();
        let (child, _) = changed.wait_for(child, Duration::from_millis(1)).unwrap();
        assert_eq!(held().locks()[0].lock.subclass, 1);
        drop(child);
        let parent = nodes[0].lock().unwrap();
        drop(nodes[1].lock_nested(1).unwrap());
        drop(parent);
    }),
    ("deadlines of a PiMutex against the order", || {
        let (a, b) = (PiMutex::new(()), PiMutex::new(()));
        let in_a = a.lock().unwrap();
        drop(b.lock().unwrap());
        drop(in_a);
        let in_b = b.lock().unwrap();
        assert!(a.try_lock_for(Duration::from_secs(1)).unwrap().is_some());
        assert!(a.try_lock_until(Instant::now()).unwrap().is_some());
        assert!(a.try_lock().unwrap().is_some());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                assert!(b.try_lock().unwrap().is_none());
                assert!(b.try_lock_for(Duration::from_millis(1)).unwrap().is_none());
            });
            other.join().unwrap();
        });
        drop(in_b);
    }),
    // Another thread has the mutex when the deadline passes.
    ("a wait whose deadline passes while another thread has the PiMutex", || {
        let (mutex, changed) = (PiMutex::new(()), PiCondvar::new());
        let (say, hear) = mpsc::channel();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let guard = mutex.lock().unwrap();
                say.send(()).unwrap();
                let (guard, wakeup) = changed.wait_for(guard, Duration::from_millis(20)).unwrap();
                assert_eq!((wakeup, held_by_me()), (Wakeup::TimedOut, 1));
                drop(guard);
                assert_eq!(held_by_me(), 0);
            });
            hear.recv().unwrap();
            let held = mutex.lock().unwrap();
            std::thread::sleep(Duration::from_millis(40));
            drop(held);
            waiter.join().unwrap();
        });
    }),
    // That thread is not checked any more. The kernel gives the mutex to the next one, which is no
    // second holder.
    ("a PiMutex of a thread that ended in a destructor", || {
        static MUTEX: PiMutex<()> = PiMutex::new(());
        static NEXT: AtomicU32 = AtomicU32::new(0);
        struct Last(mpsc::Sender<()>);
        impl Drop for Last {
            fn drop(&mut self) {
                std::mem::forget(MUTEX.lock().unwrap());
                self.0.send(()).unwrap();
                until_asleep(&[NEXT.load(Relaxed).cast_signed()]);
            }
        }
        std::thread_local! { static LAST: OnceCell<Last> = const { OnceCell::new() } }
        NEXT.store(ulocks_core::tid::current(), Relaxed);
        let (say, hear) = mpsc::channel();
        let owner = std::thread::spawn(|| {
            assert!(LAST.with(|last| last.set(Last(say))).is_ok());
            drop(MUTEX.lock().unwrap());
        });
        hear.recv().unwrap();
        let Err(PiLockError::OwnerDied(orphan)) = MUTEX.lock() else { panic!("not told") };
        // SAFETY: the guard was forgotten, and nothing is left of it.
        drop(unsafe { orphan.into_guard() });
        owner.join().unwrap();
    }),
    ("a PiMutex by its infallible face", || {
        let mutex = PiMutex::new(1);
        *mutex.as_infallible().lock() += 1;
        assert!(mutex.as_infallible().try_lock().is_some());
        assert_eq!(mutex.name(), "PiMutex");
        assert_eq!(mutex.into_inner(), 2);
    }),
];

fn held_by_me() -> usize {
    let me = ulocks_core::tid::current();
    held().locks().iter().filter(|held| held.thread.tid == me).count()
}
