//! Children of a fork that go on as their parents would: in a closure of the parent, or by a guard.
//!
//! They panic. Another thread that panics at the moment of the fork has a lock of the standard
//! library for ever, so these tests have a program of their own, and one turn.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use ulocks_core::sync::AtomicU64;
use ulocks_shm::{Directory, HashMap, Member, Mutex, Region, RwLock, SharedSafe};
use ulocks_testkit::Child;
use ulocks_testkit::watchdog::watch;

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    mutex: Mutex<u32>,
    lock: RwLock<u32>,
    map: HashMap<u64, [u64; 2], 4>,
    names: Directory<2, 64>,
}

fn turn() -> MutexGuard<'static, ()> {
    static TURN: StdMutex<()> = StdMutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn region() -> Region<Root> {
    Region::options().anonymous().expect("a region")
}

/// What `f` returns as a member.
fn member<O>(region: &Region<Root>, f: impl FnOnce(&Member<'_>) -> O) -> O {
    region.with_member(f).expect("a slot")
}

/// A guard is the parent's, also if its copy is dropped by a panic: what the child says of the data
/// would be taken for the parent's word.
#[test]
fn a_child_of_fork_says_nothing_of_its_parents_data() {
    /// The child panics, and aborts at the drop. The parent drops the guard when it has the child.
    fn panics<G>(guard: G) {
        let child = Child::runs(move || {
            let _guard = guard;
            panic!("planned");
        });
        assert_eq!(child.waited() & 0x7f, libc::SIGABRT, "the drop of a parent's guard");
    }
    let _turn = turn();
    let region = region();
    member(&region, |me| {
        panics(region.mutex.lock(me).expect("a free mutex"));
        drop(region.mutex.lock(me).expect("what a child said of the mutex"));
        panics(region.lock.write(me).expect("a free lock"));
        drop(region.lock.write(me).expect("what a child said of the lock"));
        let mut mutex = region.mutex.reset(me).expect("a free mutex");
        let mut lock = region.lock.reset(me).expect("a free lock");
        Child::runs(|| {
            let refused = |f: &mut dyn FnMut()| assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
            refused(&mut || mutex.mark_consistent());
            refused(&mut || lock.mark_consistent());
        })
        .ends();
        assert!(mutex.is_dirty() && lock.is_dirty(), "the child has said that the data is whole");
        mutex.mark_consistent();
        lock.mark_consistent();
    });
}

/// The child returns from the closure, too.
#[test]
fn a_child_of_a_fork_in_a_closure_changes_nothing() {
    let _turn = turn();
    let _watch = watch("a_child_of_a_fork_in_a_closure", || "the child has not ended".into());
    let region = region();
    member(&region, |me| {
        let (map, mut child) = (&region.map, 0);
        let updates = || {
            map.update(me, 1, |_| {
                // SAFETY: the child ends by `_exit` or a panic, after it has left the closure.
                child = unsafe { libc::fork() };
                if child == 0 {
                    return Some([9, 9]);
                }
                // SAFETY: a child of this process, whose status is not asked for.
                assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
                Some([1, 1])
            })
        };
        let updated = catch_unwind(AssertUnwindSafe(updates));
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        assert!(matches!(updated, Ok(Ok(None))));
        assert_eq!((map.get(me, &1), map.len()), (Ok(Some([1, 1])), 1));
    });
}

/// The child returns from the preparation, too.
#[test]
fn a_child_of_a_fork_in_a_preparation_publishes_nothing() {
    let _turn = turn();
    let _watch = watch("a_child_of_a_fork_in_a_preparation", || "the child has not ended".into());
    let region = region();
    member(&region, |me| {
        let (names, mut child, mut entries) = (&region.names, 0, 0);
        let prepared = catch_unwind(AssertUnwindSafe(|| {
            let value = names.find_or_create_with(me, "value", |_: &AtomicU64, _| {
                // SAFETY: the child ends by `_exit` or a panic, after it has left the preparation.
                child = unsafe { libc::fork() };
                if child != 0 {
                    // SAFETY: a child of this process, whose status is not asked for.
                    assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
                    entries = names.entries().count();
                }
            });
            assert!(value.is_ok());
        }));
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        assert!(prepared.is_ok());
        assert_eq!((entries, names.entries().count()), (0, 1));
    });
}
