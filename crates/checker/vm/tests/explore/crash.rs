//! The sweep over deaths: it says exactly which steps of a lock must not be a thread's last.

use crate::locks::{Lock, ThreeStates};
use crate::with;
use std::sync::Arc;
use ulocks_vm::crash::sweep;
use ulocks_vm::explore::{Config, Deaths, Kernel, explore, finds_bug_saying};
use ulocks_vm::futex;
use ulocks_vm::process::{robust_tid, set_robust_list};
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed};
use ulocks_vm::sync::{AtomicPtr, AtomicU32, AtomicUsize};
use ulocks_vm::thread;

#[test]
fn the_last_steps_that_hold_up_others_are_those_of_an_owner_and_of_a_waker() {
    // Thread 1 comes to a lock that no thread holds, and thread 2 after it has it.
    let model = || {
        let lock = Arc::new((ThreeStates::default(), AtomicU32::new(0)));
        let [one, two] = [Arc::clone(&lock), Arc::clone(&lock)];
        let first = thread::spawn(move || {
            let second = one.0.locked(|| thread::spawn(move || two.0.locked(|| ())));
            drop(second.join());
        });
        drop(first.join());
    };
    let sweep = sweep(&Config::exhaustive(), 1, model).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{sweep}");
    let fatal: Vec<_> = sweep.fatal().map(|point| point.step).collect();
    // 0: take it. 1: start the other. 2: give it back. 3: wake, or wait for the other to end. 4:
    // wait.
    assert_eq!(sweep.points.iter().map(|point| point.step).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(fatal, [2, 3], "{sweep}");
    let [_, start, give_back, wake, end] = &sweep.points[..] else { panic!("{sweep}") };
    assert_eq!((start.blocked, end.blocked), (0, 0), "nobody else is there, or waits: {sweep}");
    assert_eq!(give_back.deaths, give_back.blocked, "{sweep}");
    assert!(0 < wake.blocked && wake.blocked < wake.deaths, "{sweep}");
    assert!(
        sweep.points.iter().flat_map(|point| &point.places).all(|place| place.contains(".rs:")),
        "{sweep}"
    );
}

const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;

/// The list of one thread.
#[repr(C)]
struct Head {
    first: AtomicPtr<()>,
    offset: AtomicUsize,
    pending: AtomicPtr<()>,
}

/// A mutex that survives its owner, as C libraries have it: the word is the owner's thread id.
#[repr(C)]
struct RobustMutex {
    next: AtomicPtr<()>,
    word: AtomicU32,
    seeded: bool,
}

impl Head {
    fn register() -> &'static Self {
        let head: &Self = Box::leak(Box::new(Self {
            first: AtomicPtr::default(),
            offset: AtomicUsize::new(std::mem::offset_of!(RobustMutex, word)),
            pending: AtomicPtr::default(),
        }));
        head.first.store(std::ptr::from_ref(head).cast_mut().cast(), Relaxed);
        unsafe { set_robust_list(std::ptr::from_ref(head).cast()) };
        head
    }
}

impl RobustMutex {
    fn entry(&self) -> *mut () {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn lock(&self, head: &Head) {
        if !self.seeded {
            head.pending.store(self.entry(), Relaxed);
        }
        let mut keep = 0;
        loop {
            let seen = self.word.load(Relaxed);
            if seen & !(OWNER_DIED | WAITERS) == 0 {
                let taken = robust_tid() | seen & WAITERS | keep;
                if self.word.compare_exchange(seen, taken, Acquire, Relaxed).is_ok() {
                    break;
                }
            } else if seen & WAITERS != 0
                || self.word.compare_exchange(seen, seen | WAITERS, Relaxed, Relaxed).is_ok()
            {
                futex::wait(&self.word, seen | WAITERS, u32::MAX, None, false);
                keep = WAITERS;
            }
        }
        self.next.store(head.first.load(Relaxed), Relaxed);
        head.first.store(self.entry(), Relaxed);
        head.pending.store(std::ptr::null_mut(), Relaxed);
    }

    fn unlock(&self, head: &Head) {
        head.pending.store(self.entry(), Relaxed);
        head.first.store(self.next.load(Relaxed), Relaxed);
        let key = std::ptr::from_ref(&self.word).addr();
        if self.word.swap(0, AcqRel) & WAITERS != 0 {
            futex::wake(key, 1, u32::MAX, false);
        }
        head.pending.store(std::ptr::null_mut(), Relaxed);
    }
}

fn two_with_a_robust_mutex(seeded: bool) -> impl Fn() + 'static {
    some_with_a_robust_mutex::<2>(seeded)
}

fn some_with_a_robust_mutex<const THREADS: usize>(seeded: bool) -> impl Fn() + 'static {
    move || {
        let next = AtomicPtr::default();
        let lock = Arc::new((RobustMutex { next, word: AtomicU32::new(0), seeded }, AtomicU32::new(0)));
        let started = [(); THREADS].map(|()| {
            with(&lock, |lock| {
                let head = Head::register();
                let (mutex, inside) = lock;
                mutex.lock(head);
                inside.fetch_add(1, Relaxed);
                mutex.unlock(head);
            })
        });
        let dead = started.map(|thread| thread.join().is_err());
        assert!(dead.iter().filter(|dead| **dead).count() <= 1);
        assert!(lock.1.load(Acquire) as usize <= THREADS);
    }
}

#[test]
fn a_robust_mutex_has_no_last_step_that_holds_up_another() {
    for kernel in Kernel::ALL {
        let config = Config { stale: 0, kernel, ..Config::sampled(400) };
        let sweep =
            sweep(&config, 1, two_with_a_robust_mutex(false)).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{kernel:?}: {sweep}");
        assert!(sweep.points.len() >= 10, "{sweep}");
        assert_eq!(sweep.fatal().count(), 0, "{sweep}");
    }
}

/// A mutex of that kind loses a wake-up on 6.18: the woken waiter dies after a third thread has
/// taken the free mutex, and that thread sets no `WAITERS`, for it does not know of another waiter.
#[test]
fn a_third_thread_that_passes_a_woken_waiter_is_a_fault_on_6_18_only() {
    let several = |kernel| Config { kernel, deaths: Deaths::Threads(1), ..Config::sampled(4_000) };
    finds_bug_saying("lost wake-up", several(Kernel::V6_18), some_with_a_robust_mutex::<4>(false));
    explore(several(Kernel::V7_2), some_with_a_robust_mutex::<4>(false));
}

#[test]
fn without_the_pending_entry_it_has_some() {
    let config = Config { stale: 0, ..Config::sampled(400) };
    let sweep =
        sweep(&config, 1, two_with_a_robust_mutex(true)).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(sweep.fatal().count() > 0, "{sweep}");
}
