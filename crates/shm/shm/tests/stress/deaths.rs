//! Holders, waiters and releasing threads that die where all others are asleep. A passer-by would
//! repair anything, so there is none.

use crate::place::Shm;
use std::sync::atomic::Ordering::Relaxed;
use ulocks_shm::{LockError, Refused};
use ulocks_testkit::{Child, refusal, task};

const SLEEPERS: u32 = 5;

/// A child that holds the mutex until `end` ends it.
fn holder(shm: &Shm, end: impl FnOnce()) -> Child {
    Child::runs(|| {
        let me = shm.join();
        let _guard = shm.place().mutex.lock(&me).unwrap();
        shm.place().begun.fetch_add(1, Relaxed);
        Child::pauses();
        end();
    })
    .sleeps(|| shm.place().begun.load(Relaxed) == 1)
}

/// All waiters of `shm` come to their end, and one is told of a death.
fn all_finish(shm: &Shm, sleepers: Vec<Child>) {
    let count = sleepers.len() as u32;
    sleepers.into_iter().for_each(Child::ends);
    assert_eq!((shm.place().finished.load(Relaxed), shm.place().told.load(Relaxed)), (count, 1));
}

#[test]
fn a_killed_holder_leaves_the_mutex_to_its_sleepers() {
    let (shm, _watch) = Shm::new("a killed holder");
    let holder = holder(&shm, || ());
    let sleepers = (0..SLEEPERS).map(|_| shm.waiter()).collect();
    holder.killed();
    all_finish(&shm, sleepers);
}

/// Each waiter dies in its critical section, as where the data makes them crash. Only one of them
/// was woken by the first death.
#[test]
fn one_death_after_the_other_is_noticed_at_once() {
    let (shm, _watch) = Shm::new("one death after the other");
    let holder = holder(&shm, || ());
    let sleepers: Vec<_> = (0..SLEEPERS)
        .map(|nth| {
            let before = shm.place().begun.load(Relaxed);
            Child::runs(|| {
                let me = shm.join();
                shm.place().begun.fetch_add(1, Relaxed);
                match shm.place().mutex.lock(&me) {
                    Err(LockError::OwnerDied(guard)) => {
                        shm.place().told.fetch_add(1, Relaxed);
                        std::mem::forget(guard);
                    }
                    other => panic!("{nth}: {other:?}"),
                }
                std::mem::forget(me);
            })
            .sleeps(|| shm.place().begun.load(Relaxed) > before)
        })
        .collect();
    holder.killed();
    sleepers.into_iter().for_each(Child::ends);
    assert_eq!(shm.place().told.load(Relaxed), SLEEPERS);
}

/// As under a sandbox, or before Linux 5.16: such a waiter learns of deaths by its looks only, and
/// of a release at once.
#[test]
fn a_waiter_that_is_refused_waitv_is_woken_by_a_release() {
    let (shm, _watch) = Shm::new("a waiter without futex_waitv");
    let me = shm.join();
    let guard = shm.place().mutex.lock(&me).unwrap();
    let plain = (0..SLEEPERS).map(|nth| {
        let before = shm.place().begun.load(Relaxed);
        Child::runs(|| {
            if nth % 2 == 0 {
                refusal::refuse(libc::SYS_futex_waitv, libc::ENOSYS);
            }
            let me = shm.join();
            me.set_recheck(std::time::Duration::from_hours(1));
            shm.place().begun.fetch_add(1, Relaxed);
            shm.adds(&me);
        })
        .sleeps(|| shm.place().begun.load(Relaxed) > before)
    });
    let plain: Vec<_> = plain.collect();
    drop(guard);
    plain.into_iter().for_each(Child::ends);
    assert_eq!(shm.place().finished.load(Relaxed), SLEEPERS);
}

extern "C" fn nothing(_: libc::c_int) {}

/// Lets `pause` return.
fn wakes_by_signal() {
    let handler = nothing as extern "C" fn(libc::c_int);
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
}

#[test]
fn a_holder_that_ends_itself_leaves_the_mutex() {
    wakes_by_signal();
    let ends: [(&str, fn()); 3] = [
        // SAFETY: ends the process.
        ("exit", || unsafe { libc::_exit(0) }),
        ("abort", || std::process::abort()),
        ("exec", || {
            // SAFETY: strings that end in zero, in a list that ends in null.
            unsafe { libc::execl(c"/bin/sleep".as_ptr(), c"sleep".as_ptr(), c"0".as_ptr(), 0) };
        }),
    ];
    for (name, end) in ends {
        let (shm, _watch) = Shm::new(name);
        let holder = holder(&shm, end);
        let sleepers = (0..SLEEPERS).map(|_| shm.waiter()).collect();
        holder.signal(libc::SIGUSR1);
        all_finish(&shm, sleepers);
        while !holder.has_ended() {}
    }
}

#[test]
fn a_thread_that_ends_leaves_the_mutex() {
    let (shm, _watch) = Shm::new("a thread ends");
    std::thread::scope(|scope| {
        let place = shm.place();
        scope.spawn(|| {
            let me = place.join();
            std::mem::forget(place.mutex.lock(&me).unwrap());
            std::mem::forget(me);
        });
    });
    let me = shm.join();
    shm.adds(&me);
    assert_eq!(shm.place().told.load(Relaxed), 1);
}

/// Runs `body` so that no thread that it wakes runs before it ends: on one CPU with them, at a
/// real-time priority. False if the kernel does not permit that.
fn before_all_others(body: impl FnOnce()) -> bool {
    let set = |policy, priority| task::schedule(0, policy, priority).is_ok();
    if !set(libc::SCHED_FIFO, 1) {
        return false;
    }
    body();
    assert!(set(libc::SCHED_OTHER, 0));
    true
}

/// The release wakes the first sleeper, which is killed before it runs. Meanwhile the releasing
/// thread may have the mutex `again`. All others come to their end. False if the sleeper ran before
/// it was killed: the kernel lets such threads run now and then beside those of a real-time
/// priority.
fn dies_before_it_runs(name: &'static str, again: bool) -> bool {
    let (shm, _watch) = Shm::new(name);
    let me = shm.join();
    let guard = shm.place().mutex.lock(&me).unwrap();
    let first = shm.waiter();
    let rest: Vec<_> = (1..SLEEPERS).map(|_| shm.waiter()).collect();
    let permitted = before_all_others(|| {
        drop(guard);
        let guard = again.then(|| shm.place().mutex.try_lock(&me).ok()).flatten();
        first.signal(libc::SIGKILL);
        if guard.is_some() {
            // It is dead before the release.
            while !first.has_ended() {}
        }
    });
    assert!(permitted, "the kernel permitted it before");
    rest.into_iter().for_each(Child::ends);
    let [finished, told] = [&shm.place().finished, &shm.place().told].map(|count| count.load(Relaxed));
    assert!(finished >= SLEEPERS - 1, "{finished} of {SLEEPERS} waiters have finished");
    finished == SLEEPERS - 1 && told == 0
}

fn a_woken_waiter_dies(name: &'static str, again: bool) {
    task::bind(0, &task::cpus_of(0)[..1]);
    if !before_all_others(|| ()) {
        println!("not tested: the kernel permits no real-time priority");
        return;
    }
    assert!((0..20).any(|_| dies_before_it_runs(name, again)), "each time the sleeper ran first");
}

#[test]
fn a_woken_waiter_that_dies_passes_the_wake_up_on() {
    a_woken_waiter_dies("a woken waiter dies", false);
}

#[test]
fn a_woken_waiter_that_dies_behind_another_holder_strands_nobody() {
    a_woken_waiter_dies("a woken waiter dies behind another holder", true);
}

#[test]
fn a_waiter_that_is_killed_asleep_holds_up_nobody() {
    let (shm, _watch) = Shm::new("a waiter is killed asleep");
    let me = shm.join();
    let guard = shm.place().mutex.lock(&me).unwrap();
    let mut sleepers: Vec<_> = (0..SLEEPERS).map(|_| shm.waiter()).collect();
    sleepers.remove(2).killed();
    sleepers.remove(0).killed();
    drop(guard);
    sleepers.into_iter().for_each(Child::ends);
    assert_eq!(shm.place().finished.load(Relaxed), SLEEPERS - 2);
}

#[test]
fn data_that_is_not_repaired_makes_the_mutex_not_recoverable() {
    let (shm, _watch) = Shm::new("not recoverable");
    let holder = holder(&shm, || ());
    holder.killed();
    let me = shm.join();
    let mutex = &shm.place().mutex;
    match mutex.lock(&me) {
        Err(LockError::OwnerDied(guard)) => drop(guard),
        other => panic!("{other:?}"),
    }
    for _ in 0..2 {
        assert!(matches!(mutex.lock(&me), Err(LockError::NotRecoverable)));
    }
    let mut guard = mutex.reset(&me).unwrap();
    assert!(guard.is_dirty());
    guard.mark_consistent();
    drop(guard);
    drop(mutex.lock(&me).unwrap());
    // A panic counts as a death, and says so once.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = mutex.lock(&me).unwrap();
        panic!("in the critical section");
    }));
    assert!(panicked.is_err());
    assert!(matches!(mutex.lock(&me), Err(LockError::OwnerDied(_))));
}

#[test]
fn a_thread_that_would_wait_for_itself_is_told() {
    let (shm, _watch) = Shm::new("deadlock");
    let me = shm.join();
    let _guard = shm.place().mutex.lock(&me).unwrap();
    for result in [shm.place().mutex.lock(&me), shm.place().mutex.try_lock(&me)] {
        assert!(matches!(result, Err(LockError::Refused(Refused::Deadlock))));
    }
}

#[test]
fn a_child_of_fork_does_not_use_its_parents_member() {
    let (shm, _watch) = Shm::new("fork");
    let me = shm.join();
    let guard = shm.place().mutex.lock(&me).unwrap();
    Child::runs(|| {
        let mutex = &shm.place().mutex;
        let used = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(mutex.try_lock(&me))));
        assert!(used.is_err(), "the child uses its parent's member");
        let mine = shm.join();
        assert_ne!(mine.slot(), me.slot());
        assert!(matches!(mutex.try_lock(&mine), Err(LockError::Refused(Refused::TimedOut))));
    })
    .ends();
    drop(guard);
    shm.adds(&me);
}

/// Two tables in one thread, left in either order, and both left by a death.
#[test]
fn a_thread_takes_part_in_two_regions() {
    let (one, _watch) = Shm::new("two regions");
    let (two, _watch) = Shm::new("two regions");
    for reversed in [false, true] {
        let (first, second) = (one.join(), two.join());
        one.adds(&first);
        two.adds(&second);
        if reversed {
            drop(first);
            two.adds(&second);
        } else {
            drop(second);
            one.adds(&first);
        }
    }
    Child::runs(|| {
        let (first, second) = (one.join(), two.join());
        std::mem::forget(one.place().mutex.lock(&first).unwrap());
        std::mem::forget(two.place().mutex.lock(&second).unwrap());
        std::mem::forget((first, second));
    })
    .ends();
    for shm in [&one, &two] {
        shm.adds(&shm.join());
        assert_eq!(shm.place().told.load(Relaxed), 1);
    }
    let wrong = std::panic::catch_unwind(|| drop(one.place().mutex.try_lock(&two.join())));
    assert!(wrong.is_err(), "a member of another region");
}

/// The C library's robust mutexes share the list: one that was locked before the thread joined, and
/// one that was locked after. Both, and ours, survive a death and a leaving.
#[test]
fn the_robust_mutexes_of_the_c_library_go_on_working() {
    let (shm, _watch) = Shm::new("robust pthread mutexes");
    let page = ulocks_testkit::shared::Mapping::shared();
    let theirs = page.place::<[libc::pthread_mutex_t; 2]>();
    // SAFETY: the page is mapped for the whole test, and the mutexes are initialised before they
    // are used.
    let [before, after] = unsafe {
        let mut kind = std::mem::zeroed();
        libc::pthread_mutexattr_init(&raw mut kind);
        libc::pthread_mutexattr_setpshared(&raw mut kind, libc::PTHREAD_PROCESS_SHARED);
        libc::pthread_mutexattr_setrobust(&raw mut kind, libc::PTHREAD_MUTEX_ROBUST);
        [0, 1].map(|nth| {
            let mutex = (&raw mut (*theirs)[nth]).expose_provenance();
            assert_eq!(
                libc::pthread_mutex_init(std::ptr::with_exposed_provenance_mut(mutex), &raw const kind),
                0
            );
            mutex
        })
    };
    let mutex = std::ptr::with_exposed_provenance_mut::<libc::pthread_mutex_t>;
    // SAFETY: initialised above; locked and unlocked by one thread.
    let lock = |theirs| unsafe { libc::pthread_mutex_lock(mutex(theirs)) };
    // SAFETY: as above.
    let unlock = |theirs| assert_eq!(unsafe { libc::pthread_mutex_unlock(mutex(theirs)) }, 0);
    // All orders of leaving.
    assert_eq!(lock(before), 0);
    let me = shm.join();
    assert_eq!(lock(after), 0);
    unlock(before);
    shm.adds(&me);
    drop(me);
    unlock(after);
    assert_eq!(lock(before), 0);
    let me = shm.join();
    drop(me);
    unlock(before);
    // And a death.
    Child::runs(|| {
        assert_eq!(lock(before), 0);
        let me = shm.join();
        std::mem::forget(shm.place().mutex.lock(&me).unwrap());
        std::mem::forget(me);
        assert_eq!(lock(after), 0);
    })
    .ends();
    assert_eq!((lock(before), lock(after)), (libc::EOWNERDEAD, libc::EOWNERDEAD));
    // Off this thread's list before the page goes: musl walks that at the end of the thread.
    unlock(before);
    unlock(after);
    shm.adds(&shm.join());
    assert_eq!(shm.place().told.load(Relaxed), 1);
}
