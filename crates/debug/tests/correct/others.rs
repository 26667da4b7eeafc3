//! Correct programs with reentrant mutexes and semaphores, and guards that own their lock.

use std::cell::Cell;
use std::time::{Duration, Instant};
use ulocks_debug::*;

pub const TABLE: &[(&str, fn())] = &[
    ("a reentrant mutex", || {
        static DEPTH: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(0));
        fn descend(levels: u32) {
            let depth = DEPTH.lock();
            depth.set(depth.get() + 1);
            if levels > 0 {
                descend(levels - 1);
            }
            assert_eq!(held().locks().len(), 1);
        }
        for _ in 0..3 {
            descend(2);
        }
        let again = (DEPTH.try_lock().unwrap(), DEPTH.try_lock_for(Duration::ZERO).unwrap());
        assert!(DEPTH.is_owned_by_current_thread());
        let other = std::thread::spawn(|| DEPTH.try_lock_until(Instant::now()).is_none());
        assert!(other.join().unwrap());
        let mut last = DEPTH.lock();
        drop(again);
        ReentrantMutexGuard::unlocked(&mut last, || assert!(held().locks().is_empty()));
        assert_eq!(last.get(), 9);
    }),
    // The second acquisition does not wait.
    ("a reentrant mutex, again below another lock", || {
        let (a, b) = (ReentrantMutex::new(()), Mutex::new(()));
        for _ in 0..2 {
            let in_a = a.lock();
            let in_b = b.lock();
            drop(a.lock());
            drop((in_b, in_a));
        }
    }),
    ("a semaphore of several threads", || {
        let (slots, most) = (Semaphore::new(2), Mutex::new((0, 0)));
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let slot = slots.acquire();
                        let mut inside = most.lock();
                        inside.0 += 1;
                        inside.1 = inside.0.max(inside.1);
                        drop(inside);
                        std::thread::yield_now();
                        most.lock().0 -= 1;
                        drop(slot);
                    }
                });
            }
        });
        assert!(most.into_inner().1 <= 2);
        assert_eq!(slots.available_permits(), 2);
        let both = slots.acquire_many(2);
        assert!(slots.try_acquire().is_none() && slots.try_acquire_for(Duration::from_millis(1)).is_none());
        assert!(slots.try_acquire_many_until(2, Instant::now()).is_none());
        drop(both);
        assert!(slots.try_acquire_many_for(2, Duration::ZERO).is_some());
    }),
    // Permits have no holder, so there is no order to break.
    ("a semaphore that is waited for while locks are held", || {
        let (ready, a) = (Semaphore::new(0), Mutex::new(0));
        let held = a.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| ready.release(1).unwrap());
            ready.acquire().forget();
        });
        drop(held);
        ready.release(1).unwrap();
        let slot = ready.acquire();
        *a.lock() += 1;
        slot.forget();
    }),
    ("a list of waiters for permits", || {
        const SLOTS: &Class = &Class::new("slots");
        let slots = CheckedSemaphore::new_in(SLOTS, 1);
        assert_eq!(slots.name(), "slots");
        let slot = slots.acquire();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(slots.acquire_many(1)));
            ulocks_testkit::limit::until("a thread waits", || !waiters().is_empty());
            let all = waiters();
            assert_eq!((all.len(), all[0].lock.access, all[0].has_deadline), (1, Access::Permits, false));
            assert!(all[0].to_string().contains("waits for `slots`"), "{}", all[0]);
            assert!(held().locks().is_empty() && deadlocks().is_empty());
            drop(slot);
        });
        assert!(waiters().is_empty());
    }),
    ("a semaphore that is closed", || {
        let work = Semaphore::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| while work.acquire_unless_closed().is_ok() {});
            }
            work.release(1).unwrap();
            ulocks_testkit::limit::until("both threads wait", || waiters().len() == 2);
            work.close();
        });
        assert!(work.is_closed() && work.acquire_many_unless_closed(2).is_err());
        assert!(work.try_acquire().is_none() && waiters().is_empty());
    }),
    ("an acquisition from a semaphore that is closed panics, and waits no more", || {
        let slot = Semaphore::new(1);
        let permit = slot.acquire_as_lock();
        std::thread::scope(|scope| {
            let waiting = [
                scope.spawn(|| slot.acquire().forget()),
                scope.spawn(|| slot.acquire_many(2).forget()),
                scope.spawn(|| drop(slot.acquire_as_lock())),
            ];
            ulocks_testkit::limit::until("three threads wait", || waiters().len() == 3);
            slot.close();
            waiting.into_iter().for_each(|thread| assert!(thread.join().is_err()));
        });
        drop(permit);
        assert!(waiters().is_empty() && held().locks().is_empty() && deadlocks().is_empty());
        assert_eq!(slot.available_permits(), 1);
    }),
    #[cfg(feature = "arc_lock")]
    ("permits that own a share", || {
        use std::sync::Arc;
        let slots = Arc::new(Semaphore::new(2));
        let (mut one, late) = (slots.clone().acquire_owned(), Instant::now());
        assert!(slots.clone().try_acquire_many_owned(2).is_none());
        assert!(slots.clone().try_acquire_many_owned_for(2, Duration::ZERO).is_none());
        assert!(slots.clone().try_acquire_many_owned_until(2, late).is_none());
        one.merge(slots.clone().try_acquire_owned().expect("there is one"));
        assert!(slots.clone().try_acquire_owned_for(Duration::ZERO).is_none());
        assert!(slots.clone().try_acquire_owned_until(late).is_none());
        assert!(one.split(3).is_none() && Arc::ptr_eq(one.semaphore(), &slots));
        assert_eq!(format!("{one:?}"), "OwnedPermit { count: 2 }");
        let mine = slots.clone();
        let waiting = std::thread::spawn(move || mine.acquire_many_owned(2).count());
        ulocks_testkit::limit::until("a thread waits", || !waiters().is_empty());
        let at = &waiters()[0];
        assert!(at.to_string().contains("tests/correct/"), "{at}");
        drop(one.split(1));
        drop(one);
        assert_eq!(waiting.join().unwrap(), 2);
        slots.clone().acquire_many_owned_unless_closed(1).expect("it is open").forget();
        slots.close();
        assert!(slots.clone().acquire_owned_unless_closed().is_err());
        assert_eq!((slots.available_permits(), Arc::strong_count(&slots)), (1, 1));
    }),
    ("a semaphore that is a lock, of several threads", || {
        let (slot, inner) = (Semaphore::new(1), Mutex::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let permit = slot.acquire_as_lock();
                        *inner.lock() += 1;
                        drop(permit);
                        drop(slot.try_acquire_as_lock());
                    }
                });
            }
        });
        // A thread may use it as both, in turn.
        slot.acquire().forget();
        assert!(slot.try_acquire_as_lock().is_none());
        slot.release(1).unwrap();
        let held_back = inner.lock();
        assert!(slot.try_acquire_as_lock().is_some());
        assert_eq!(*held_back, 800);
    }),
    #[cfg(feature = "arc_lock")]
    ("guards that own a share", || {
        use std::sync::Arc;
        let (mutex, lock) = (Arc::new(Mutex::new(1)), Arc::new(RwLock::new(1)));
        let mut owned: ArcMutexGuard<i32> = mutex.lock_arc();
        assert!(mutex.try_lock_arc().is_none() && mutex.try_lock_arc_for(Duration::ZERO).is_none());
        *owned += 1;
        assert!(held().locks()[0].at.file().contains("tests/"), "{}", held());
        drop(mutex);
        assert_eq!(*owned, 2);
        drop(owned);
        let read: ArcRwLockReadGuard<i32> = lock.read_arc();
        assert!(lock.try_write_arc().is_none() && lock.try_write_arc_until(Instant::now()).is_none());
        drop(read);
        let upgradable: ArcRwLockUpgradableReadGuard<i32> = lock.upgradable_read_arc();
        drop(upgradable);
        let write: ArcRwLockWriteGuard<i32> = lock.write_arc();
        assert_eq!(Arc::strong_count(&lock), 2);
        drop(write);
        let unsized_data: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2]));
        assert_eq!(unsized_data.lock_arc().len(), 2);
        let depth = Arc::new(ReentrantMutex::new(1));
        let owned: ArcReentrantMutexGuard<i32> = depth.lock_arc();
        assert!(held().locks()[0].at.file().contains("tests/"), "{}", held());
        let again = depth.try_lock_arc_for(Duration::ZERO).expect("this thread has it");
        assert_eq!((*again, held().locks().len()), (1, 1));
        drop((depth, owned, again));
    }),
];
