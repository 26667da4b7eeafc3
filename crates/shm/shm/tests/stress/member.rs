//! Members lent to closures: what a forgotten guard, a panic, an inner call, a fork and a kill
//! leave.

use crate::joined::joined;
use std::cell::RefCell;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use ulocks_core::robust::ListError;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Op, Set};
use ulocks_shm::robust::RawRobust;
use ulocks_shm::{
    FairMutex, JoinError, Joined, LockError, Member, Mutex, Refused, Region, RwLock, SemArray, SemError,
    Semaphore, SharedSafe,
};
use ulocks_testkit::Child;
use ulocks_testkit::limit::until;
use ulocks_testkit::watchdog::watch;

const SLOTS: usize = 4;

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    mutex: Mutex<u32>,
    fair: FairMutex<u32>,
    lock: RwLock<u32>,
    array: SemArray<2>,
    semaphore: Semaphore,
}

fn region() -> Region<Root> {
    Region::options().participants(SLOTS as u32).anonymous().expect("a region")
}

/// What `f` returns as a member.
fn member<O>(region: &Region<Root>, f: impl FnOnce(&Member<'_>) -> O) -> O {
    region.with_member(f).expect("a slot")
}

/// Takes a mutex whose last holder has died or left with it, and repairs it. What that one left.
fn told<L: RawRobust>(mutex: &Mutex<u32, L>, me: &Member<'_>) -> u32 {
    match mutex.lock(me) {
        Err(LockError::OwnerDied(mut guard)) => {
            guard.mark_consistent();
            *guard
        }
        other => panic!("not told: {other:?}"),
    }
}

/// No member is there, and no lock is held: as many threads as there are slots can take part.
fn is_as_new(region: Region<Root>) {
    fn fill(region: &Region<Root>, more: usize) {
        member(region, |me| {
            drop(region.mutex.lock(me).expect("a free mutex"));
            drop(region.fair.lock(me).expect("a free mutex"));
            drop(region.lock.write(me).expect("a free lock"));
            if more > 1 {
                fill(region, more - 1);
            }
        });
    }
    fill(&region, SLOTS);
    region.detach().expect("no thread takes part");
}

/// What a closure has forgotten is told after so many other closures, and comes back.
fn forgets_and_is_told(region: &Region<Root>, closures: u32) {
    member(region, |me| {
        *region.mutex.lock(me).unwrap() = 1;
        *region.fair.lock(me).unwrap() = 2;
        *region.lock.write(me).unwrap() = 3;
        forget(region.mutex.lock(me).unwrap());
        Box::leak(Box::new(region.fair.lock(me).unwrap()));
        forget(region.lock.write(me).unwrap());
        forget(region.array.acquire(me, Set::new().sub(0, 2).sub(1, 1)).unwrap());
        forget(region.semaphore.acquire(me).unwrap());
        assert_eq!(me.held(), 5);
    });
    (0..closures).for_each(|_| member(region, |_| ()));
    // By another thread of the same process, which lives on.
    member(region, |me| {
        assert_eq!(told(&region.mutex, me), 1);
        assert_eq!(told(&region.fair, me), 2);
        match region.lock.write(me) {
            Err(LockError::OwnerDied(mut guard)) => {
                guard.mark_consistent();
                assert_eq!(*guard, 3);
            }
            Err(error) => panic!("not told: {error}"),
            Ok(_) => panic!("not told"),
        }
        region.array.reclaim(me).unwrap();
        assert_eq!(region.array.values(), [3, 1]);
        drop(region.semaphore.acquire_many(me, 2).expect("both have come back"));
        assert_eq!(region.semaphore.available_permits(), 2);
    });
}

#[test]
fn permits_are_taken_until_a_deadline_or_not_at_all() {
    let region = region_with_permits();
    member(&region, |me| {
        let (semaphore, now) = (&region.semaphore, Deadline::after(Duration::ZERO));
        let is_late = |error| error == SemError::Refused(Refused::TimedOut);
        let one = semaphore.acquire_until(me, now).expect("one of two");
        assert_eq!(semaphore.available_permits(), 1);
        assert!(semaphore.acquire_many_until(me, 2, now).is_err_and(is_late));
        drop(one);
        let both = semaphore.acquire_many_until(me, 2, now).expect("both");
        assert_eq!(semaphore.available_permits(), 0);
        assert!(semaphore.acquire_until(me, now).is_err_and(is_late));
        drop(both);
    });
    assert_eq!(region.semaphore.available_permits(), 2);
}

/// A region with permits.
fn region_with_permits() -> Region<Root> {
    let region = region();
    member(&region, |me| {
        region.array.apply(me, &[Op::add(0, 3), Op::add(1, 1)]).unwrap();
        region.semaphore.add_permits(me, 2).unwrap();
    });
    region
}

#[test]
fn what_a_closure_has_forgotten_is_told_like_a_death() {
    let _watch = watch("forgotten guards", || "a thread sleeps for ever".into());
    let region = region_with_permits();
    forgets_and_is_told(&region, 0);
    is_as_new(region);
}

/// The generations of a slot come round. A lock that names one of a thread that has left or died
/// must not name the thread that has that generation then.
#[test]
fn a_name_is_not_given_again_while_a_lock_has_it() {
    let _watch = watch("names that come round", || "a thread sleeps for ever".into());
    let region = region_with_permits();
    // In the first round, and in one of which a look has said which names are there.
    for round in 0..3 {
        forgets_and_is_told(&region, 65_535);
        // Two names that follow one another.
        member(&region, |me| forget(region.mutex.lock(me)));
        member(&region, |me| forget(region.fair.lock(me)));
        (0..65_534).for_each(|_| member(&region, |_| ()));
        member(&region, |me| _ = (told(&region.mutex, me), told(&region.fair, me)));
        assert_eq!(member(&region, |me| me.slot()), 0, "round {round}");
    }
    is_as_new(region);
}

/// Data may look like names of the dead. The thread that joins does not try for ever.
#[test]
fn a_slot_without_a_free_name_is_refused() {
    const NAMES: u32 = 65_536;
    let region = Region::<[AtomicU32; NAMES as usize]>::options().participants(1).anonymous();
    let region = region.expect("a region");
    for (name, word) in (0..).zip(region.iter()) {
        word.store(1 << 29 | name << 12, Relaxed);
    }
    // The first round needs no look: no lock was held before it.
    (1..NAMES).for_each(|_| region.with_member(|_| ()).expect("a slot"));
    assert_eq!(region.with_member(|_| ()), Err(JoinError::Named { slot: 0 }));
    // The next one gets the last name, which looks free then.
    region[NAMES as usize - 1].store(0, Relaxed);
    assert_eq!(region.with_member(|_| ()), Ok(()));
    region[NAMES as usize - 1].store(1 << 29 | (NAMES - 1) << 12, Relaxed);
    assert_eq!(region.with_member(|_| ()), Err(JoinError::Named { slot: 0 }));
}

/// A thread that dies while it waits leaves its request. The next one in its slot has not made it.
#[test]
fn a_request_is_not_the_next_members() {
    let _watch = watch("a request of a dead thread", || "a thread sleeps for ever".into());
    let region = region();
    member(&region, |looks| {
        let child = Child::runs(|| {
            let _ = region.array.acquire(&joined(&region), Set::new().sub(0, 1));
            Child::exits()
        });
        child.sleeps(|| region.array.waiters(looks) == 1).killed();
        // As many as it takes until one has the name of the child.
        for _ in 0..65_536 {
            let waiters = member(&region, |me| {
                assert_eq!(me.slot(), 1);
                region.array.waiters(looks)
            });
            assert_eq!(waiters, 0, "a member waits that has asked for nothing");
        }
    });
    is_as_new(region);
}

#[test]
fn a_reader_that_is_forgotten_leaves_no_trace() {
    let _watch = watch("a forgotten reader", || "a writer sleeps for ever".into());
    let region = region();
    member(&region, |me| forget(region.lock.read(me).unwrap()));
    member(&region, |me| forget(region.lock.read_urgent(me).unwrap()));
    member(&region, |me| *region.lock.write(me).expect("a free lock") = 1);
    is_as_new(region);
}

#[test]
fn a_panic_in_the_closure_releases_and_leaves() {
    let region = region();
    for _ in 0..3 * SLOTS {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            member(&region, |me| {
                let mut guard = match region.mutex.lock(me) {
                    Ok(guard) | Err(LockError::OwnerDied(guard)) => guard,
                    Err(error) => panic!("{error}"),
                };
                guard.mark_consistent();
                *guard += 1;
                forget(region.fair.lock(me));
                std::panic::resume_unwind(Box::new("by design"));
            })
        }));
        let said = panic.unwrap_err();
        assert_eq!(said.downcast_ref(), Some(&"by design"));
        // The guard that was dropped says so, and so does the mutex whose guard was forgotten.
        member(&region, |me| {
            told(&region.mutex, me);
            told(&region.fair, me);
        });
    }
    member(&region, |me| assert_eq!(*region.mutex.lock(me).unwrap(), 3 * SLOTS as u32));
    is_as_new(region);
}

#[test]
fn an_inner_call_is_another_participant() {
    let region = region();
    member(&region, |outer| {
        let guard = region.mutex.lock(outer).unwrap();
        member(&region, |inner| {
            assert_ne!(outer.slot(), inner.slot());
            assert!(matches!(region.mutex.try_lock(inner), Err(LockError::Refused(Refused::TimedOut))));
            *region.fair.lock(inner).unwrap() = 5;
            forget(region.fair.lock(inner));
            // By either of the two, and in any order.
            drop(region.lock.read(outer).unwrap());
            drop(region.lock.read(inner).unwrap());
            assert_eq!((outer.held(), inner.held()), (1, 1));
        });
        assert_eq!(told(&region.fair, outer), 5);
        drop(guard);
        assert_eq!(outer.held(), 0);
    });
    is_as_new(region);
}

#[test]
fn without_a_slot_the_closure_does_not_run() {
    fn fill(region: &Region<Root>, more: usize) {
        if more == 0 {
            let full = region.with_member(|_| panic!("there is no slot"));
            assert_eq!(full, Err::<(), _>(JoinError::Full(SLOTS)));
        } else {
            member(region, |_| fill(region, more - 1));
        }
    }
    let region = region();
    fill(&region, SLOTS);
    is_as_new(region);
}

/// How a child ends that has left the closure. One that panics ends with 0, since its only thread
/// returns to the harness and is over.
const LEFT: libc::c_int = 7;

/// The status of a child of this process, once it has ended.
fn how_it_ends(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    until("the child has ended", || unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child);
    status
}

/// The child returns from the closure too, with its copy of the member.
#[test]
fn a_child_of_a_fork_in_the_closure_leaves_its_parent_in_place() {
    let region = region();
    let in_parent = member(&region, |me| {
        let mut guard = region.mutex.lock(me).unwrap();
        // SAFETY: the child ends by `_exit`, after it has left the closure.
        let child = unsafe { libc::fork() };
        if child == 0 {
            forget(guard);
            return false;
        }
        assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
        assert_eq!(how_it_ends(child), LEFT << 8, "the child has not left the closure");
        *guard = 7;
        member(&region, |me| match region.mutex.try_lock(me) {
            Err(LockError::Refused(Refused::TimedOut)) => {}
            other => panic!("the parent has lost its mutex: {other:?}"),
        });
        true
    });
    if !in_parent {
        // SAFETY: ends the child.
        unsafe { libc::_exit(LEFT) };
    }
    member(&region, |me| assert_eq!(*region.mutex.lock(me).expect("nobody has died"), 7));
    is_as_new(region);
}

/// Where the C library does not empty the robust list of a child, the list leads to the slots of
/// the parent: they are mapped still when the child takes part for itself.
#[test]
fn a_child_that_has_dropped_its_parents_region_takes_part_in_another_one() {
    let (mut region, mut other) = (Some(region()), None);
    let in_parent = member(region.as_ref().expect("it is there"), |_| {
        // SAFETY: the child ends by `_exit`, after it has left the closure.
        let child = unsafe { libc::fork() };
        if child == 0 {
            return false;
        }
        assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
        assert_eq!(how_it_ends(child), LEFT << 8, "the child has not taken part");
        true
    });
    if !in_parent {
        // At another address than the parent's.
        let other = other.insert(self::region());
        drop(region.take());
        member(other, |me| *other.mutex.lock(me).expect("a free mutex") += 1);
        // SAFETY: ends the child.
        unsafe { libc::_exit(LEFT) };
    }
}

/// A value with a drop that uses the region when its thread ends.
struct AtTheEnd(Arc<Region<Root>>, Sender<Result<(), JoinError>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let took_part = self.0.with_member(|me| *self.0.mutex.lock(me).expect("nobody has died") += 1);
        self.1.send(took_part).expect("a receiver");
    }
}

thread_local! {
    static AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// It takes part, whichever thread-local value was used first.
#[test]
fn a_destructor_of_a_thread_takes_part() {
    let region = Arc::new(region());
    let (send, receive) = channel();
    let ends = |joins_first: bool| {
        let (region, send) = (Arc::clone(&region), send.clone());
        let uses = |region: &Region<Root>| {
            member(region, |me| drop(region.mutex.lock(me).expect("nobody has died")));
        };
        let thread = std::thread::spawn(move || {
            if joins_first {
                uses(&region);
            }
            AT_THE_END.set(Some(AtTheEnd(Arc::clone(&region), send)));
            uses(&region);
        });
        thread.join().expect("the thread");
        receive.recv().expect("what the destructor has sent")
    };
    let threads = 6 * SLOTS as u32;
    for thread in 0..threads {
        assert_eq!(ends(thread % 2 == 0), Ok(()));
    }
    member(&region, |me| assert_eq!(*region.mutex.lock(me).expect("nobody has died"), threads));
    is_as_new(Arc::into_inner(region).expect("all threads have ended"));
}

/// As a program in C does: the C library calls this when all thread-local values of the thread are
/// destroyed.
unsafe extern "C" fn leaves(me: *mut libc::c_void) {
    // SAFETY: what the thread has made a pointer of, once.
    drop(unsafe { Box::from_raw(me.cast::<Joined<'static>>()) });
}

#[test]
fn a_thread_leaves_in_its_last_destructor() {
    let region: &'static Region<Root> = Box::leak(Box::new(region()));
    let mut key = 0;
    // SAFETY: `key` is a place for the answer; the destructor fits what the threads give it.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(leaves)) }, 0);
    for _ in 0..2 * SLOTS {
        std::thread::spawn(move || {
            let me = Box::into_raw(Box::new(joined(region)));
            // SAFETY: the key is never deleted.
            assert_eq!(unsafe { libc::pthread_setspecific(key, me.cast()) }, 0);
        })
        .join()
        .expect("the thread");
    }
    // SAFETY: from the box above; nobody uses it any more.
    is_as_new(*unsafe { Box::from_raw(std::ptr::from_ref(region).cast_mut()) });
}

/// The kernel follows 2,048 entries of the list of a thread that dies. A thread that joins once
/// more than it can be found is told so.
#[test]
fn a_thread_takes_part_no_more_often_than_the_kernel_finds() {
    let region = Region::<AtomicU32>::options().participants(2_001).anonymous().expect("a region");
    let mut members = Vec::new();
    let refused = loop {
        // SAFETY: no guard is made.
        match unsafe { region.join() } {
            Ok(me) => members.push(me),
            Err(error) => break error,
        }
    };
    assert_eq!((refused, members.len()), (JoinError::List(ListError::Full), 2_000));
    // The refused one has no slot.
    members.pop();
    members.push(joined(&region));
    drop(members);
    // Each of them is found.
    Child::runs(|| {
        let members: Vec<_> = (0..2_000).map(|_| joined(&region)).collect();
        forget(members);
        Child::exits()
    })
    .ends();
    let members: Vec<_> = (0..2_000).map(|_| joined(&region)).collect();
    assert_eq!(members.len(), 2_000);
}

/// Each thread has its whole body in the closure. All of them leave with what they hold.
#[test]
fn threads_that_forget_by_turns_lose_no_count() {
    let _watch = watch("threads that forget", || "a thread sleeps for ever".into());
    const ROUNDS: u32 = 300;
    let (region, deaths) = (region(), AtomicU32::new(0));
    let count = |me: &Member<'_>, forgets: bool| {
        let mut guard = region.fair.lock(me).unwrap_or_else(|error| match error {
            LockError::OwnerDied(mut guard) => {
                deaths.fetch_add(1, Relaxed);
                guard.mark_consistent();
                guard
            }
            error => panic!("{error}"),
        });
        *guard += 1;
        let count = *guard;
        if forgets {
            forget(guard);
        }
        count
    };
    std::thread::scope(|scope| {
        for thread in 0..SLOTS as u32 {
            let (region, count) = (&region, &count);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    member(region, |me| count(me, (round + thread).is_multiple_of(3)));
                }
            });
        }
    });
    let all = SLOTS as u32 * ROUNDS;
    assert_eq!(member(&region, |me| count(me, false)), all + 1);
    assert_eq!(deaths.load(Relaxed), all / 3, "each forgotten guard is told once");
    is_as_new(region);
}
