//! A kernel that refuses the futex calls of a robust lock, for whatever reason: a waiter sleeps by
//! other means, or the process aborts. A waiter that unwound would leave its request in the queue,
//! and a lock that is granted to it would be nobody's.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{Condvar, FairMutex, Member, Mutex, Region, RwLock, Semaphore, SharedSafe};
use ulocks_testkit::{Child, refusal};

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    /// How many waiters have begun.
    begun: AtomicU32,
    mutex: Mutex<u32>,
    fair: FairMutex<u32>,
    lock: RwLock<u32>,
    permits: Semaphore,
    /// For `arrived` and `fair`.
    condvar: Condvar,
    arrived: Mutex<u32>,
}

fn region() -> Region<Root> {
    Region::options().anonymous().expect("a region")
}

/// A wait of a child for a lock that the test has.
type Wait = fn(&Region<Root>, &Member<'_>);

/// One for each lock.
const WAITS: [(&str, Wait); 5] = [
    ("mutex", |region, me| *region.mutex.lock(me).expect("a holder that lives") += 1),
    ("fair mutex", |region, me| *region.fair.lock(me).expect("a holder that lives") += 1),
    ("writer", |region, me| *region.lock.write(me).expect("a holder that lives") += 1),
    ("permit", |region, me| drop(region.permits.acquire(me).expect("it comes back"))),
    ("wait", |region, me| {
        let mut arrived = region.arrived.lock(me).expect("a holder that lives");
        region.condvar.wait_while(&mut arrived, |arrived| *arrived == 0).expect("a holder that lives");
    }),
];

/// Calls `f` while `me` has what the waits are for.
fn held(region: &Region<Root>, me: &Member<'_>, f: impl FnOnce()) {
    *region.arrived.lock(me).expect("clean") = 0;
    let mutex = region.mutex.lock(me).expect("clean");
    let fair = region.fair.lock(me).expect("clean");
    let lock = region.lock.write(me).expect("clean");
    let permit = region.permits.acquire(me).expect("one");
    f();
    drop((mutex, fair, lock, permit));
    *region.arrived.lock(me).expect("clean") = 1;
    region.condvar.notify_all(me);
}

/// As if the kernel were out of memory, or as a filter that answers what it likes.
#[test]
fn a_waiter_that_is_refused_waitv_for_another_reason_waits_all_the_same() {
    let region = region();
    let end = region.with_member(|me| {
        region.permits.add_permits(me, 1).expect("room");
        for errno in [libc::ENOMEM, libc::EACCES] {
            let mut children = Vec::new();
            held(&region, me, || {
                // Two of each: in a condition variable the second one watches the first.
                for (_, wait) in WAITS.into_iter().chain(WAITS) {
                    let before = region.begun.load(Relaxed);
                    let child = Child::runs(|| {
                        refusal::refuse(libc::SYS_futex_waitv, errno);
                        let end = region.with_member(|me| {
                            region.begun.fetch_add(1, Relaxed);
                            wait(&region, me);
                        });
                        end.expect("a slot");
                    });
                    children.push(child.sleeps(|| region.begun.load(Relaxed) > before));
                }
            });
            children.into_iter().for_each(Child::ends);
        }
        let waited = WAITS.len() as u32 - 1;
        let counts = [*region.mutex.lock(me).expect("clean"), *region.fair.lock(me).expect("clean")];
        assert_eq!((counts, *region.lock.write(me).expect("clean")), ([waited; 2], waited));
    });
    end.expect("a slot");
}

/// Others could be granted the lock after it, and it would be granted theirs.
#[test]
fn a_waiter_that_may_not_sleep_at_all_ends_its_process() {
    let region = region();
    let end = region.with_member(|me| {
        region.permits.add_permits(me, 1).expect("room");
        for (what, wait) in WAITS {
            held(&region, me, || {
                let child = Child::runs(|| {
                    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                    // SAFETY: the call reads a limit that lives until it returns.
                    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core) };
                    refusal::refuse(libc::SYS_futex_waitv, libc::ENOSYS);
                    refusal::refuse_futex(libc::FUTEX_WAIT_BITSET);
                    region.with_member(|me| wait(&region, me)).expect("a slot");
                });
                assert_eq!(child.waited(), libc::SIGABRT, "{what}");
            });
        }
    });
    end.expect("a slot");
}
