//! Short programs on real threads, small enough for Miri, which looks for undefined behaviour and
//! leaks on the schedules it tries.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_semarray::{Builder, Error, Fairness, InOneProcess, Op, SemArray, SemArrayWith};
use ulocks_testkit as _;
use ulocks_testkit::thread::with;

#[path = "common/tasks.rs"]
mod tasks;

fn array<P: InOneProcess>(values: &[u32], fairness: Fairness) -> SemArrayWith<P> {
    Builder::with_values(values).fairness(fairness).build().unwrap()
}

/// A value behind a semaphore. Two threads that have it at once are a data race, and so is a thread
/// that does not see what the last one did.
struct Guarded(std::cell::UnsafeCell<Vec<u32>>);
// SAFETY: the thread that has the semaphore uses it. That the array sees to this is what is tested.
unsafe impl Sync for Guarded {}

fn exclusion<P: InOneProcess>(fairness: Fairness) {
    let array = array::<P>(&[1, 1], fairness);
    let guarded = Guarded(std::cell::UnsafeCell::new(vec![0]));
    let sets = [vec![Op::sub(0, 1)], vec![Op::sub(0, 1), Op::sub(1, 1)], vec![Op::sub(1, 1), Op::sub(0, 1)]];
    thread::scope(|scope| {
        for set in sets {
            let (array, guarded) = (&array, &guarded);
            scope.spawn(move || {
                for _ in 0..3 {
                    let _permit = array.acquire(&set[..]).unwrap();
                    // SAFETY: all sets take the first semaphore, whose value is one.
                    let value = unsafe { &mut *guarded.0.get() };
                    *value = vec![value[0] + 1];
                }
            });
        }
    });
    assert_eq!(guarded.0.into_inner(), [9]);
    assert_eq!(array.values(), [1, 1]);
}

#[test]
fn sets_exclude_each_other() {
    exclusion::<Private<NoSpin>>(Fairness::Barging);
    exclusion::<Private<Patience<1_000>, Counted>>(Fairness::Strict { after: Duration::ZERO });
}

/// Waiting sets of every kind on the stacks of threads: some are served, some move, some time out,
/// and the rest ends when the array is closed.
fn sleepers(fairness: Fairness) {
    let array: SemArray = array(&[0, 1, 1], fairness);
    thread::scope(|scope| {
        let moment = Duration::from_millis(1);
        let sets = [
            vec![Op::sub(0, 1)],
            vec![Op::wait_zero(1)],
            vec![Op::sub(1, 1), Op::sub(0, 1)],
            vec![Op::wait_zero(2), Op::sub(0, 1).no_wait(), Op::add(2, 1)],
            vec![Op::sub(1, 1), Op::wait_zero(2), Op::sub(0, 2)],
        ];
        for (nth, set) in sets.into_iter().enumerate() {
            let array = &array;
            scope.spawn(move || {
                let first = array.apply_for(&set, moment * nth as u32);
                assert!(matches!(first, Ok(()) | Err(Error::TimedOut | Error::WouldBlock | Error::Closed)));
                loop {
                    match array.apply(&set) {
                        Ok(()) | Err(Error::WouldBlock) => _ = array.try_apply(&[Op::add(1, 1)]),
                        Err(error) => break assert_eq!(error, Error::Closed),
                    }
                }
            });
        }
        for _ in 0..3 {
            _ = array.apply(&[Op::add(0, 1), Op::sub(2, 1)]);
            _ = array.apply_for(&[Op::sub(2, 1)], moment);
            array.set_all(&[1, 0, 0]).unwrap();
            array.set(2, 1).unwrap();
            thread::yield_now();
        }
        array.close();
    });
}

#[test]
fn sleepers_come_and_go() {
    sleepers(Fairness::Barging);
    sleepers(Fairness::Strict { after: Duration::ZERO });
}

/// The thread that gets what the last operation gave frees the semaphores, while that operation is
/// still on its way back. Miri wants the array to stay while it is borrowed, although no thread
/// accesses it any more. The stress tests do without that, too.
#[test]
fn a_thread_that_has_seen_everything_may_free() {
    let (one, both) = ([Op::sub(0, 1)], [Op::sub(0, 1), Op::sub(1, 1)]);
    for (take, give_both) in [(&one[..], false), (&both[..], true)] {
        let array = ManuallyDrop::new(SemArray::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let give = [Op::add(0, 1), Op::add(1, 1)];
                array.apply(if give_both { &give } else { &give[..1] }).unwrap();
            });
            array.apply(take).unwrap();
            // SAFETY: no other thread drops it, and the poster is on its way out.
            drop(unsafe { std::ptr::read(&*array) });
        });
    }
}

/// The least there is: for many schedules.
#[test]
fn two_pass_a_unit() {
    let array = Arc::new(SemArray::with_values([1, 0]));
    let other = with(&array, |array| array.apply(&[Op::sub(1, 1), Op::add(0, 1)]).unwrap());
    array.apply(&[Op::sub(0, 1), Op::add(1, 1)]).unwrap();
    array.apply_for(&[Op::sub(0, 1)], Duration::from_secs(10)).unwrap();
    other.join().unwrap();
    assert_eq!(array.values(), [0, 0]);
}

#[test]
fn tasks_come_and_go() {
    tasks::all_are_served(Fairness::Barging, 1, 1, 1);
    tasks::all_are_served(Fairness::Strict { after: Duration::ZERO }, 2, 2, 0);
    for polls in [1, 2] {
        tasks::what_is_dropped_is_given_back(2, 2, 2, polls);
    }
    tasks::who_gives_up_lets_others_pass();
    tasks::all_leave(3);
    tasks::holds_and_waits();
}
