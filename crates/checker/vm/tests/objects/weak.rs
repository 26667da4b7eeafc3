//! Pointers that do not keep their value.

use crate::Plain;
use ulocks_vm::explore::{Config, explore, finds_bug_saying};
use ulocks_vm::sync::Ordering::Relaxed;
use ulocks_vm::sync::{Arc, AtomicU32, Weak};
use ulocks_vm::thread;

/// Both happen, and a value that was upgraded in time is there.
#[test]
fn an_upgrade_comes_in_time_or_too_late() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new([0; 2]));
    let counted = std::sync::Arc::clone(&seen);
    explore(Config::exhaustive(), move || {
        let value = Arc::new(Plain::default());
        let weak = Arc::downgrade(&value);
        let other = thread::spawn(move || weak.upgrade().map(|value| value.get()));
        drop(value);
        let upgraded = other.join().unwrap();
        assert!(upgraded.is_none_or(|data| data == 0));
        counted.lock().unwrap()[usize::from(upgraded.is_some())] += 1;
    });
    assert!(seen.lock().unwrap().iter().all(|&count| count > 0));
}

/// What the thread did that dropped the last pointer is known to the one that drops the value.
#[test]
fn the_thread_that_upgraded_drops_the_value_in_an_ordered_way() {
    struct Reads(Plain);
    impl Drop for Reads {
        fn drop(&mut self) {
            self.0.get();
        }
    }
    explore(Config::exhaustive(), || {
        let value = Arc::new(Reads(Plain::default()));
        let weak = Arc::downgrade(&value);
        let other = thread::spawn(move || drop(weak.upgrade()));
        value.0.add(1);
        drop(value);
        other.join().unwrap();
    });
}

#[test]
fn a_weak_pointer_is_counted_and_keeps_others_from_changing_the_value() {
    explore(Config::exhaustive(), || {
        let mut value = Arc::new(1);
        assert_eq!(Arc::weak_count(&value), 0);
        let weak = Arc::downgrade(&value);
        let other = weak.clone();
        assert_eq!((Arc::strong_count(&value), Arc::weak_count(&value)), (1, 2));
        assert_eq!((weak.strong_count(), weak.weak_count()), (1, 2));
        assert!(Arc::get_mut(&mut value).is_none());
        drop(other);
        assert!(weak.ptr_eq(&Arc::downgrade(&value)));
        *Arc::make_mut(&mut value) = 2;
        assert!(weak.upgrade().is_none());
        assert_eq!((weak.strong_count(), weak.weak_count()), (0, 0));
        drop(weak);
        assert_eq!(Arc::get_mut(&mut value), Some(&mut 2));
        assert!(Weak::<u32>::new().upgrade().is_none());
    });
}

#[test]
fn get_mut_knows_the_drop_of_a_weak_pointer() {
    explore(Config::exhaustive(), || {
        let data = Arc::new(Plain::default());
        let mut value = Arc::new(());
        let weak = Arc::downgrade(&value);
        let other = {
            let data = Arc::clone(&data);
            thread::spawn(move || {
                data.add(1);
                drop(weak);
            })
        };
        if Arc::get_mut(&mut value).is_some() {
            assert_eq!(data.get(), 1);
        }
        other.join().unwrap();
    });
}

/// Memory is given back by whichever comes last, the last pointer, whose value takes steps as it
/// goes, or the last weak one.
#[test]
fn whoever_comes_last_gives_the_memory_back() {
    struct Looks(AtomicU32);
    impl Drop for Looks {
        fn drop(&mut self) {
            self.0.load(Relaxed);
        }
    }
    explore(Config::exhaustive(), || {
        let value = Arc::new(Looks(AtomicU32::new(0)));
        let weak = Arc::downgrade(&value);
        let other = thread::spawn(move || drop(weak));
        drop(value);
        other.join().unwrap();
    });
}

#[test]
fn a_value_may_point_to_itself() {
    struct Node {
        me: Weak<Self>,
        data: u32,
    }
    explore(Config::exhaustive(), || {
        let node = Arc::new_cyclic(|me: &Weak<Node>| {
            assert!(me.upgrade().is_none());
            Node { me: me.clone(), data: 7 }
        });
        assert_eq!(node.me.upgrade().unwrap().data, 7);
    });
}

#[test]
fn a_weak_pointer_that_is_kept_is_a_leak() {
    let failure = finds_bug_saying("leak", Config::exhaustive(), || {
        std::mem::forget(Arc::downgrade(&Arc::new(1)));
    });
    let text = failure.verdict.to_string();
    assert!(text.contains("the Weak made at") && text.contains("weak.rs:"), "{text}");
}
