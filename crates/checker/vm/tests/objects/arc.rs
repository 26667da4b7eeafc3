//! The shared pointer: what its drops order, and its leaks.

use crate::Plain;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use ulocks_vm::explore::{Config, explore, finds_bug_saying};
use ulocks_vm::sync::Ordering::Relaxed;
use ulocks_vm::sync::{Arc, AtomicU32, DroppedPerRun, Mutex, PerRun, Tracked, UnsafeCell};
use ulocks_vm::thread;

/// What a thread did before it dropped its pointer is known to the thread that drops the value.
#[test]
fn the_last_drop_knows_the_others() {
    struct Reads(Plain);
    impl Drop for Reads {
        fn drop(&mut self) {
            self.0.get();
        }
    }
    explore(Config::exhaustive(), || {
        let data = Arc::new(Reads(Plain::default()));
        let other = Arc::clone(&data);
        let other = thread::spawn(move || {
            other.0.add(1);
            drop(other);
        });
        drop(data);
        other.join().unwrap();
    });
}

#[test]
fn one_of_two_gets_the_value() {
    explore(Config::exhaustive(), || {
        let one = Arc::new(Plain::default());
        let two = Arc::clone(&one);
        let other = thread::spawn(move || Arc::into_inner(two).is_some());
        let mine = Arc::into_inner(one).is_some();
        assert_ne!(other.join().unwrap(), mine, "exactly one gets the value");
    });
}

/// The thread that gets the value out knows what the others did before.
#[test]
fn the_one_that_gets_the_value_knows_the_others() {
    explore(Config::exhaustive(), || {
        let (data, one) = (Arc::new(Plain::default()), Arc::new(7));
        let weak = Arc::downgrade(&one);
        let other = {
            let (data, two) = (Arc::clone(&data), Arc::clone(&one));
            thread::spawn(move || {
                data.add(1);
                Arc::into_inner(two)
            })
        };
        let mine = Arc::into_inner(one);
        if mine.is_some() {
            assert_eq!(data.get(), 1);
        }
        assert_eq!(other.join().unwrap().xor(mine), Some(7));
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn get_mut_is_exclusive() {
    explore(Config::exhaustive(), || {
        let mut one = Arc::new(Plain::default());
        let two = Arc::clone(&one);
        let other = thread::spawn(move || {
            two.add(1);
            drop(two);
        });
        if let Some(data) = Arc::get_mut(&mut one) {
            assert_eq!(data.add(1), 2);
        }
        other.join().unwrap();
    });
}

#[test]
fn a_pointer_that_is_kept_is_a_leak() {
    let failure = finds_bug_saying("leak", Config::exhaustive(), || {
        struct Ring(Mutex<Option<Arc<Ring>>>);
        let ring = Arc::new(Ring(Mutex::new(None)));
        *ring.0.lock().unwrap() = Some(Arc::clone(&ring));
    });
    assert!(failure.to_string().contains("arc.rs"), "{failure}");
    finds_bug_saying("leak", Config::exhaustive(), || std::mem::forget(Tracked::new("thing")));
}

#[test]
fn raw_pointers_count() {
    explore(Config::exhaustive(), || {
        let one: Arc<str> = Arc::from("text");
        let raw = Arc::into_raw(one.clone());
        unsafe { Arc::increment_strong_count(raw) };
        assert_eq!(Arc::strong_count(&one), 3);
        unsafe { Arc::decrement_strong_count(raw) };
        drop(unsafe { Arc::from_raw(raw) });
        assert_eq!((Arc::strong_count(&one), &*one), (1, "text"));
    });
}

#[test]
fn statics_are_no_leaks() {
    static KEPT: PerRun<Arc<u32>> = PerRun::new(|| Arc::new(1));
    static DROPPED: DroppedPerRun<Arc<u32>> = DroppedPerRun::new(|| Arc::new(2));
    explore(Config::exhaustive(), || {
        assert_eq!(**KEPT + **DROPPED.get(), 3);
        unsafe { DroppedPerRun::drop_all() };
    });
    finds_bug_saying("leak", Config::exhaustive(), || assert_eq!(**DROPPED.get(), 2));
}

/// The first thread has a variable whose drop uses the static.
#[test]
fn variables_of_the_first_thread_go_before_its_statics() {
    struct Uses;
    impl Drop for Uses {
        fn drop(&mut self) {
            assert_eq!(**MADE.get(), 1);
        }
    }
    static MADE: DroppedPerRun<Arc<u32>> = DroppedPerRun::new(|| Arc::new(1));
    ulocks_vm::thread_local! { static USES: Uses = Uses }
    explore(Config::exhaustive(), || {
        USES.with(|_| ());
        // SAFETY: there is no other thread.
        unsafe { DroppedPerRun::drop_all() };
    });
}

#[test]
fn a_static_is_made_once_and_known_to_each_thread_that_uses_it() {
    struct Made(AtomicU32, UnsafeCell<u32>);
    // SAFETY: the cell is written while the value is made, and only read after that.
    unsafe impl Sync for Made {}
    static MADE: DroppedPerRun<Made> = DroppedPerRun::new(|| {
        let made = Made(AtomicU32::new(0), UnsafeCell::new(0));
        made.0.store(7, Relaxed);
        // SAFETY: no other thread has the cell yet.
        made.1.with_mut(|cell| unsafe { *cell = 7 });
        made
    });
    explore(Config::exhaustive(), || {
        let look = || {
            assert_eq!(MADE.get().0.fetch_add(0, Relaxed), 7);
            // SAFETY: nothing writes the cell any more.
            assert_eq!(MADE.get().1.with(|cell| unsafe { *cell }), 7);
        };
        let other = thread::spawn(look);
        look();
        other.join().unwrap();
        // SAFETY: the other thread has ended.
        unsafe { DroppedPerRun::drop_all() };
    });
}

#[test]
fn the_use_of_a_static_is_told_at_its_line() {
    static MADE: DroppedPerRun<u32> = DroppedPerRun::new(|| 1);
    let failure = finds_bug_saying("panic", Config::exhaustive(), || assert_eq!(*MADE.get(), 2));
    let mut uses = failure.story.lines().filter(|line| line.contains("call_once"));
    assert!(uses.next().is_some_and(|line| line.contains("objects/arc.rs:")), "{failure}");
}

#[test]
fn a_reused_static_begins_anew_in_each_run_where_it_was() {
    // SAFETY: a reference is used in the run in which it was taken.
    static COUNT: PerRun<AtomicU32> = unsafe { PerRun::reused(|| AtomicU32::new(5)) };
    static KEPT: PerRun<AtomicU32> = PerRun::new(|| AtomicU32::new(5));
    let places = Rc::new(RefCell::new(Vec::new()));
    let seen = places.clone();
    let run = move || {
        let other = thread::spawn(|| COUNT.fetch_add(1, Relaxed) + KEPT.fetch_add(1, Relaxed));
        let sum = COUNT.fetch_add(1, Relaxed) + KEPT.fetch_add(1, Relaxed);
        assert_eq!(sum + other.join().unwrap(), 22);
        let place = |value: &AtomicU32| core::ptr::from_ref(value).addr();
        seen.borrow_mut().push((place(&COUNT), place(&KEPT)));
    };
    let runs = explore(Config::exhaustive(), run).executions;
    let places = places.take();
    assert!(runs > 1 && places.len() as u64 >= runs);
    assert!(places.iter().all(|&(count, _)| count == places[0].0), "{places:?}");
    let kept: BTreeSet<_> = places.iter().map(|&(_, kept)| kept).collect();
    assert_eq!(kept.len(), places.len(), "the memory of one was given to another");
}
