//! Pointers that do not keep their value.

use crate::{Plain, all_outcomes};
use ulocks_vm::explore::{Config, Strategy, explore, finds_bug_saying};
use ulocks_vm::sync::Ordering::Relaxed;
use ulocks_vm::sync::{Arc, AtomicU32, Mutex, Weak};
use ulocks_vm::thread;

/// All executions, and many by each kind of chance.
fn each() -> [Config; 3] {
    let random = Config { strategy: Strategy::Random, ..Config::sampled(500) };
    [Config::exhaustive(), Config::sampled(500), random]
}

#[track_caller]
fn holds(model: fn()) {
    for config in each() {
        explore(config, model);
    }
}

/// Both happen, and a value that was upgraded in time is there.
#[test]
fn an_upgrade_comes_in_time_or_too_late() {
    for config in each() {
        let seen = std::sync::Arc::new(std::sync::Mutex::new([0; 2]));
        let counted = std::sync::Arc::clone(&seen);
        explore(config, move || {
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
    holds(|| {
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
    holds(|| {
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

/// A clone belongs to the step before it, which touches no count.
#[test]
fn counts_are_asked_for_between_any_two_steps_of_others() {
    let model = |clones: fn(&Arc<()>, &Mutex<()>), count: fn(&Arc<()>) -> usize| {
        move || {
            let (value, lock) = (Arc::new(()), Mutex::new(()));
            let [mine, other] = [Arc::clone(&value), Arc::clone(&value)];
            let asks = thread::spawn(move || count(&mine));
            let clones = thread::spawn(move || clones(&other, &lock));
            let seen = asks.join().unwrap();
            clones.join().unwrap();
            seen
        }
    };
    let strong: fn(&Arc<()>, &Mutex<()>) = |value, lock| {
        drop(lock.try_lock());
        let _clone = value.clone();
        drop(lock.try_lock());
    };
    let weak: fn(&Arc<()>, &Mutex<()>) = |value, lock| {
        drop(lock.try_lock());
        let _weak = Arc::downgrade(value);
        drop(lock.try_lock());
    };
    all_outcomes(model(strong, Arc::strong_count), [2, 3, 4]);
    all_outcomes(model(weak, Arc::weak_count), [0, 1]);
    all_outcomes(model(weak, |value| Arc::downgrade(value).weak_count()), [1, 2]);
}

#[test]
fn get_mut_knows_the_drop_of_a_weak_pointer() {
    holds(|| {
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

#[test]
fn a_weak_pointer_may_go_beside_the_last_pointer() {
    holds(|| {
        let value = Arc::new(1);
        let weak = Arc::downgrade(&value);
        let other = thread::spawn(move || drop(weak));
        drop(value);
        other.join().unwrap();
    });
}

#[test]
fn a_value_may_be_taken_out_beside_a_weak_pointer() {
    holds(|| {
        let value = Arc::new(Plain::default());
        let weak = Arc::downgrade(&value);
        let other = thread::spawn(move || weak.upgrade().map(|value| value.get()));
        if let Ok(value) = Arc::try_unwrap(value) {
            value.add(1);
        }
        assert!(other.join().unwrap().is_none_or(|data| data == 0));
    });
}

/// It reads the count, and orders nothing.
#[test]
fn a_failed_upgrade_does_not_know_what_the_last_holder_did() {
    for config in each() {
        finds_bug_saying("data race", config, || {
            let data = Arc::new(Plain::default());
            let value = Arc::new(());
            let weak = Arc::downgrade(&value);
            let other = {
                let data = Arc::clone(&data);
                thread::spawn(move || {
                    data.add(1);
                    drop(value);
                })
            };
            if weak.upgrade().is_none() {
                data.get();
            }
            other.join().unwrap();
        });
    }
}

/// Nor does a value that cannot be taken out.
#[test]
fn a_failed_try_unwrap_does_not_know_what_another_holder_did() {
    finds_bug_saying("data race", Config::exhaustive(), || {
        let data = Arc::new(Plain::default());
        let value = Arc::new(());
        let others = [Arc::clone(&value), Arc::clone(&value)];
        let other = {
            let data = Arc::clone(&data);
            thread::spawn(move || {
                let [first, second] = others;
                data.add(1);
                drop(first);
                second
            })
        };
        if Arc::strong_count(&value) == 2 && Arc::try_unwrap(value).is_err() {
            data.get();
        }
        drop(other.join().unwrap());
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
    holds(|| {
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
    holds(|| {
        let node = Arc::new_cyclic(|me: &Weak<Node>| {
            assert!(me.upgrade().is_none());
            Node { me: me.clone(), data: 7 }
        });
        assert_eq!(node.me.upgrade().unwrap().data, 7);
    });
}

/// The clone that `new_cyclic` gave away is upgraded by another thread, too early or in time.
#[test]
fn a_value_that_points_to_itself_is_found_by_another_when_it_is_made() {
    all_outcomes(
        || {
            let other = std::cell::RefCell::new(None);
            let value = Arc::new_cyclic(|me: &Weak<Plain>| {
                let me = me.clone();
                let upgrades = move || me.upgrade().map(|value| value.get());
                other.replace(Some(thread::spawn(upgrades)));
                let data = Plain::default();
                data.add(7);
                data
            });
            let seen = other.take().map(|other| other.join().unwrap());
            assert_eq!(value.get(), 7);
            seen.flatten()
        },
        [None, Some(7)],
    );
}

#[test]
fn a_weak_pointer_that_is_kept_is_a_leak() {
    for clones in [false, true] {
        let failure = finds_bug_saying("leak", Config::exhaustive(), move || {
            let weak = Arc::downgrade(&Arc::new(1));
            std::mem::forget(if clones { weak.clone() } else { weak });
        });
        let text = failure.verdict.to_string();
        assert!(text.contains("the Weak made at crates/checker/vm/tests/objects/weak.rs:"), "{text}");
    }
}
