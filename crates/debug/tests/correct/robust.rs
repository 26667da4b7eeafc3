//! Robust locks of a region.

use ulocks_debug::*;
use ulocks_shm::{self as shm, Member, Region};

pub const TABLE: &[(&str, fn())] = &[
    ("robust locks at the addresses of locks that are gone", || {
        let region: Region<[shm::Mutex<u32>; 2]> = Region::options().anonymous().expect("a region");
        // The handles of a region that lay here before had another order.
        for order in [[0, 1], [1, 0]] {
            let handles = [0, 1].map(|number: usize| Robust::new(&region[number]));
            let work = |me: &Member<'_>| {
                let _outer = handles[order[0]].lock(me).expect("no holder has died");
                *handles[order[1]].lock(me).expect("no holder has died") += 1;
            };
            region.with_member(work).expect("a member");
        }
    }),
    ("data that is repaired after a panic", || {
        use ulocks_shm::{OrRepair as _, OrRepairBy as _};
        let region: Region<(shm::Mutex<u32>, shm::Condvar)> =
            Region::options().anonymous().expect("a region");
        let mutex = Robust::new(&region.0);
        let works = |me: &Member<'_>| {
            let panics = std::panic::AssertUnwindSafe(|| {
                *mutex.lock(me).expect("no holder has died") = 1;
                let _guard = mutex.lock(me).or_repair(|value| *value += 1);
                panic!("the data is dirty");
            });
            assert!(std::panic::catch_unwind(panics).is_err());
            let mut guard = mutex.lock(me).or_repair(|value| *value += 10).expect("it can be repaired");
            assert_eq!((*guard, guard.is_dirty(), held().locks().len()), (11, false, 1));
            let ended =
                guard.wait_until(&region.1, ulocks_core::time::Deadline::after(std::time::Duration::ZERO));
            assert_eq!(ended.or_repair_by(&mut guard, |_| panic!("nobody died")).ok(), Some(false));
        };
        region.with_member(works).expect("a member");
    }),
    ("permits of a region in both orders", || {
        let region: Region<[shm::Semaphore; 2]> = Region::options().anonymous().expect("a region");
        let [one, other] = [0, 1].map(|number: usize| Robust::new(&region[number]));
        let works = |me: &Member<'_>| {
            region.iter().for_each(|semaphore| semaphore.add_permits(me, 2).expect("few permits"));
            for (first, second) in [(&one, &other), (&other, &one)] {
                let first = first.waits(|semaphore| semaphore.acquire(me)).expect("a permit");
                let second = second.waits(|semaphore| semaphore.acquire(me)).expect("a permit");
                assert!(held().locks().is_empty() && waiters().is_empty());
                drop((first, second));
            }
        };
        region.with_member(works).expect("a member");
    }),
    ("a waiter of a queue of a region", || {
        let region: Region<shm::Queue<u32, 4>> = Region::options().anonymous().expect("a region");
        let queue = Robust::new(&*region);
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| region.with_member(|me| queue.waits(|queue| queue.pop(me))));
            ulocks_testkit::limit::until("a queue's waiter is listed", || waiters().len() == 1);
            assert_eq!(waiters()[0].lock.name, "Queue");
            region.with_member(|me| region.push(me, 7)).expect("a member").expect("a place");
            assert_eq!(taker.join().unwrap().expect("a member"), Ok(7));
        });
        assert!(waiters().is_empty());
    }),
    ("a condition variable of another region", || {
        let region: Region<shm::Mutex<u32>> = Region::options().anonymous().expect("a region");
        let other: Region<shm::Condvar> = Region::options().anonymous().expect("a region");
        let mutex = Robust::new(&*region);
        let works = |me: &Member<'_>| {
            let mut guard = mutex.lock(me).expect("no holder has died");
            let wait = std::panic::AssertUnwindSafe(|| guard.wait(&other));
            assert!(std::panic::catch_unwind(wait).is_err(), "the wait panics");
            *guard += 1;
            let has = (mutex.is_locked(), held().locks().len());
            assert_eq!(has, (true, 1), "a wait that panics gives the mutex back to its holder");
            drop(guard);
            assert_eq!((mutex.is_locked(), held().locks().len()), (false, 0));
        };
        region.with_member(works).expect("a member");
    }),
    ("a condition variable of a region", || {
        type Mailbox = (shm::Mutex<u32>, shm::Condvar);
        let region: Region<Mailbox> = Region::options().anonymous().expect("a region");
        let letters = Robust::new(&region.0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let reads = |me: &Member<'_>| {
                    let mut guard = letters.lock(me).expect("no holder has died");
                    guard.wait_while(&region.1, |letters| *letters == 0).expect("no holder has died");
                    assert_eq!((*guard, held().locks().len()), (1, 1));
                    // The mutex is not held meanwhile, and it is afterwards.
                    *guard = 2;
                    guard.wait(&region.1).expect("no holder has died");
                    assert_eq!(*guard, 3);
                };
                region.with_member(reads).expect("a member");
            });
            let writes = |me: &Member<'_>| {
                let sends = |from: u32, to: u32| {
                    ulocks_testkit::limit::until("a thread waits, and holds nothing", || {
                        region.1.waiters(me) == 1 && held().locks().is_empty()
                    });
                    let mut guard = letters.lock(me).expect("no holder has died");
                    assert_eq!(std::mem::replace(&mut *guard, to), from);
                    drop(guard);
                    region.1.notify_one(me);
                };
                sends(0, 1);
                ulocks_testkit::limit::until("it waits again", || *letters.lock(me).expect("none died") == 2);
                sends(2, 3);
            };
            region.with_member(writes).expect("a member");
        });
    }),
];
