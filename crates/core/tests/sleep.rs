//! Tasks that sleep on a futex, beside threads.
#![cfg(world = "machine")]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::channel;
use std::task::{RawWaker, RawWakerVTable, Wake, Waker};
use ulocks_core::futex::{Bits, Futex, Local, Waited};
use ulocks_core::queue::Wakers;
use ulocks_core::sleep::{Slept, TaskSleep, forget, wake};
use ulocks_testkit::shared::forked;
use ulocks_testkit::task::{id, until_asleep};

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn asleep(futex: &Futex<Local>, bits: Bits, waker: Waker) -> Pin<Box<TaskSleep>> {
    let mut sleep = Box::pin(TaskSleep::new());
    assert!(sleep.as_mut().fall_asleep(futex, 0, bits, waker));
    sleep
}

fn wake_some(futex: &Futex<Local>, count: u32, bits: Bits) -> u32 {
    let mut wakers = Wakers::new();
    let woken = wake(futex.key(), count, bits, &mut wakers);
    wakers.wake();
    woken
}

/// Whatever single wake-ups there are of other sleepers.
#[test]
fn a_task_is_passed_by_one_thread() {
    static FUTEX: Futex<Local> = Futex::new(0);
    let (ours, others) = (Bits::one(0), Bits::one(1));
    let woken = Arc::new(Woken::default());
    let mut tasks = [(); 2].map(|()| asleep(&FUTEX, ours, Arc::clone(&woken).into()));
    let (sender, ids) = channel();
    let threads = [(); 3].map(|()| {
        let sender = sender.clone();
        std::thread::spawn(move || {
            sender.send(id()).unwrap();
            while FUTEX.wait_bits(0, ours, None) != Waited::Woken {}
        })
    });
    until_asleep(&[(); 3].map(|()| ids.recv().unwrap()));
    for tasks_woken in [0, 1, 1, 2, 2] {
        let _other = asleep(&FUTEX, others, Waker::noop().clone());
        assert_eq!(wake_some(&FUTEX, 1, others), 1);
        assert_eq!(wake_some(&FUTEX, 1, ours), 1);
        assert_eq!(woken.0.load(Relaxed), tasks_woken);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(wake_some(&FUTEX, 1, ours), 0);
    let waker = Waker::noop();
    tasks.iter_mut().for_each(|task| assert_eq!(task.as_mut().sleeps_on(waker), Slept::UntilWoken));
    tasks.iter_mut().for_each(|task| assert_eq!(task.as_mut().sleeps_on(waker), Slept::Not));
}

#[test]
fn as_many_are_woken_as_are_asked_for() {
    let (futex, woken) = (Futex::new(0), Arc::new(Woken::default()));
    let tasks: Vec<_> = (0..200).map(|_| asleep(&futex, Bits::ANY, Arc::clone(&woken).into())).collect();
    let mut sum = 0;
    for count in [2, 31, 32, 33, 70, u32::MAX] {
        sum += wake_some(&futex, count, Bits::ANY);
        assert!(sum == woken.0.load(Relaxed) && sum == 200 || count < 200);
    }
    assert_eq!((sum, woken.0.load(Relaxed), tasks.len()), (200, 200, 200));
}

/// A waker that panics when it is dropped.
fn evil() -> ManuallyDrop<Waker> {
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |_| RawWaker::new(ptr::null(), &TABLE),
        |_| {},
        |_| {},
        |_| resume_unwind(Box::new(())),
    );
    // SAFETY: there is no data.
    ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(ptr::null(), &TABLE)) })
}

#[test]
fn a_task_is_told_once_more_if_a_waker_panicked() {
    let futex = Futex::new(0);
    let mut task = asleep(&futex, Bits::ANY, Waker::noop().clone());
    assert_eq!(wake_some(&futex, 1, Bits::ANY), 1);
    let evil = evil();
    assert!(catch_unwind(AssertUnwindSafe(|| task.as_mut().sleeps_on(&evil))).is_err());
    assert_eq!(task.as_mut().sleeps_on(Waker::noop()), Slept::UntilWoken);
}

/// Of futures that were forgotten.
#[test]
fn a_futex_that_goes_leaves_no_task() {
    let futex = Futex::new(0);
    std::mem::forget(asleep(&futex, Bits::ANY, Waker::noop().clone()));
    forget(futex.key());
    assert_eq!(wake_some(&futex, 1, Bits::ANY), 0);
}

/// Three sleep in the parent, and one in the child, which then drops those: the middle one last,
/// since its neighbours would be written to. Others sleep and wake up at the same place meanwhile.
#[test]
fn a_child_of_fork_has_none_of_its_parents_tasks() {
    static FUTEX: Futex<Local> = Futex::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);
    let other = std::thread::spawn(|| {
        while !STOP.load(Relaxed) {
            drop(asleep(&FUTEX, Bits::one(1), Waker::noop().clone()));
        }
    });
    for _ in 0..200 {
        let woken = Arc::new(Woken::default());
        let new = || asleep(&FUTEX, Bits::one(0), Arc::clone(&woken).into());
        let parents = [(); 3].map(|()| Cell::new(Some(new())));
        forked(1, |_| {
            // SAFETY: sets a timer. A child that hangs is killed.
            unsafe { libc::alarm(20) };
            assert_eq!(wake_some(&FUTEX, u32::MAX, Bits::ANY), 0);
            let first = new();
            let gone = [0, 2, 1].map(|which| {
                let parent = parents[which].take().unwrap();
                let memory = ptr::from_ref(&*parent).cast::<[u8; size_of::<TaskSleep>()]>();
                // SAFETY: it is dropped in its place. Its memory is never freed, and is bytes
                // since.
                unsafe {
                    let parent = Box::into_raw(Pin::into_inner_unchecked(parent));
                    parent.drop_in_place();
                    memory.cast_mut().write([0xA5; _]);
                }
                memory
            });
            let second = new();
            assert_eq!(wake_some(&FUTEX, u32::MAX, Bits::ANY), 2);
            drop((first, second));
            gone.iter().for_each(|memory| {
                // SAFETY: written above.
                assert!(unsafe { memory.read() }.iter().all(|&byte| byte == 0xA5), "a future that is gone");
            });
        });
        assert_eq!(wake_some(&FUTEX, u32::MAX, Bits::one(0)), 3);
        assert_eq!(woken.0.load(Relaxed), 3);
    }
    STOP.store(true, Relaxed);
    other.join().unwrap();
}
