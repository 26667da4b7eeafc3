//! Tests written for loom, which the patch in the manifest runs on the virtual machine.

#![cfg(loom)]

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, Ordering::SeqCst};
use loom::sync::{Arc, Condvar, Mutex, Notify, RwLock, mpsc};
use loom::thread;
use loom_tests::Slot;

fn fill_and_take(publish: Ordering) {
    let slot = Arc::new(Slot::publishing_with(publish));
    let filler = {
        let slot = Arc::clone(&slot);
        // SAFETY: the only call.
        thread::spawn(move || unsafe { slot.fill(7) })
    };
    // SAFETY: by this thread alone.
    let taken = unsafe { slot.take() };
    assert!(taken.is_none_or(|value| value == 7));
    filler.join().unwrap();
}

#[test]
fn a_slot_hands_over() {
    loom::model(|| fill_and_take(Ordering::Release));
}

#[test]
#[should_panic(expected = "data race")]
fn a_slot_that_does_not_release_is_a_race() {
    loom::model(|| fill_and_take(Ordering::Relaxed));
}

/// That the patch was applied: loom itself fails here, since it takes `SeqCst` for `AcqRel`.
#[test]
fn sequentially_consistent_accesses_are() {
    loom::model(|| {
        let words = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let other = {
            let words = Arc::clone(&words);
            thread::spawn(move || {
                words.0.store(true, SeqCst);
                words.1.load(SeqCst)
            })
        };
        words.1.store(true, SeqCst);
        let seen = words.0.load(SeqCst);
        assert!(other.join().unwrap() || seen);
    });
}

#[test]
fn the_objects_work_together() {
    loom::model(|| {
        let shared = Arc::new((Mutex::new(0), Condvar::new(), RwLock::new(1), Notify::new()));
        let (sender, receiver) = mpsc::channel();
        let other = {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name("other".into());
            let body = move || {
                assert_eq!(thread::current().name(), Some("other"));
                *shared.0.lock().unwrap() += *shared.2.read().unwrap();
                shared.1.notify_one();
                sender.send(3).unwrap();
                shared.3.notify();
                thread::park();
            };
            builder.spawn(body).unwrap()
        };
        let mut count = shared.0.lock().unwrap();
        while *count == 0 {
            count = shared.1.wait(count).unwrap();
        }
        drop(count);
        shared.3.wait();
        assert_eq!(receiver.recv(), Ok(3));
        other.thread().unpark();
        other.join().unwrap();
    });
}

loom::lazy_static! {
    static ref MADE: AtomicUsize = AtomicUsize::new(5);
}

loom::thread_local! {
    static OWN: std::cell::Cell<u32> = std::cell::Cell::new(1);
}

#[test]
fn statics_begin_anew_in_each_execution() {
    loom::model(|| {
        let other = thread::spawn(|| (MADE.fetch_add(1, SeqCst), OWN.with(|own| own.replace(2))));
        let mine = (MADE.fetch_add(1, SeqCst), OWN.with(|own| own.replace(2)));
        let theirs = other.join().unwrap();
        assert_eq!((mine.0 + theirs.0, mine.1, theirs.1), (11, 1, 1));
    });
}

#[test]
#[should_panic(expected = "leak")]
fn memory_that_is_kept_is_a_leak() {
    loom::model(|| std::mem::forget(loom::alloc::Track::new(1)));
}

#[test]
fn a_task_is_woken() {
    loom::model(|| {
        let shared = Arc::new((loom::future::AtomicWaker::new(), AtomicBool::new(false)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(true, Ordering::Release);
                shared.0.wake();
            })
        };
        loom::future::block_on(std::future::poll_fn(|context| {
            shared.0.register_by_ref(context.waker());
            match shared.1.load(Ordering::Acquire) {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        }));
        other.join().unwrap();
    });
}

/// A model whose bounds cut it passes, as in loom.
#[test]
fn a_bounded_model_passes() {
    let mut builder = loom::model::Builder::new();
    builder.max_permutations = Some(2);
    builder.preemption_bound = Some(1);
    builder.max_branches = usize::MAX;
    builder.max_duration = Some(std::time::Duration::MAX);
    builder.check(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let add = |word: &Arc<AtomicUsize>| {
            let word = Arc::clone(word);
            thread::spawn(move || word.fetch_add(1, SeqCst))
        };
        let threads = [add(&word), add(&word), add(&word)];
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(word.load(SeqCst), 3);
    });
}

/// A handle may be kept where its result may be, as std's and loom's, and be joined elsewhere.
#[test]
fn a_handle_may_be_joined_by_another_thread() {
    loom::model(|| {
        let handle = std::sync::Arc::new(std::sync::Mutex::new(Some(thread::spawn(|| 7))));
        let other = {
            let handle = std::sync::Arc::clone(&handle);
            thread::spawn(move || handle.lock().unwrap().take().map(|handle| handle.join().unwrap()))
        };
        assert_eq!(other.join().unwrap(), Some(7));
    });
}

/// As with std's atomics, a reference may cross `catch_unwind`.
#[test]
fn atomics_are_updated_by_a_function_also_where_panics_are_caught() {
    loom::model(|| {
        let count = AtomicUsize::new(1);
        assert_eq!(count.update(SeqCst, SeqCst, |value| value + 1), 1);
        assert_eq!(count.try_update(SeqCst, SeqCst, |value| value.checked_sub(5)), Err(2));
        assert_eq!(
            std::panic::catch_unwind(|| count.try_update(SeqCst, SeqCst, |value| Some(value * 2))).unwrap(),
            Ok(2)
        );
        assert_eq!(count.load(SeqCst), 4);
    });
}

/// loom 0.5 has its names on the same machine.
#[test]
fn a_test_of_loom_0_5_runs_here() {
    use loom05::sync::atomic::AtomicUsize;
    loom05::model(|| {
        let word = loom05::sync::Arc::new(AtomicUsize::new(0));
        let other = loom05::thread::spawn({
            let word = loom05::sync::Arc::clone(&word);
            move || word.fetch_add(1, SeqCst)
        });
        let mine = word.fetch_add(1, SeqCst);
        assert_ne!(mine, other.join().unwrap());
    });
}

/// One thread writes by a pointer, releases, and drops the pointer then; or it writes once more.
fn a_pointer_outlives_the_release(writes_again: bool) {
    let cell = Arc::new((loom::cell::UnsafeCell::new(0), AtomicBool::new(false)));
    let writer = thread::spawn({
        let cell = Arc::clone(&cell);
        move || {
            let pointer = cell.0.get_mut();
            // SAFETY: the other thread waits for the flag.
            unsafe { *pointer.deref() = 7 };
            cell.1.store(true, Ordering::Release);
            if writes_again {
                // SAFETY: none: it is the planted bug.
                unsafe { *pointer.deref() = 8 };
            }
        }
    });
    if cell.1.load(Ordering::Acquire) {
        // SAFETY: the flag is set.
        assert_eq!(unsafe { *cell.0.get_mut().deref() }, 7);
    }
    writer.join().unwrap();
}

#[test]
fn a_pointer_that_is_not_used_may_outlive_the_release() {
    loom::model(|| a_pointer_outlives_the_release(false));
}

#[test]
#[should_panic(expected = "data race")]
fn a_pointer_that_is_used_after_the_release_is_a_race() {
    loom::model(|| a_pointer_outlives_the_release(true));
}

/// The access is over then, and others may come.
#[test]
fn a_panic_in_an_access_of_a_cell_may_be_caught() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    loom::model(|| {
        let cell = loom::cell::UnsafeCell::new(1);
        for _ in 0..2 {
            let read = catch_unwind(AssertUnwindSafe(|| cell.with(|_| -> () { panic!("inside") })));
            let write = catch_unwind(AssertUnwindSafe(|| cell.with_mut(|_| -> () { panic!("inside") })));
            assert!(read.is_err() && write.is_err());
        }
    });
}

#[test]
fn a_race_of_a_swap_is_told_at_its_line() {
    let told = std::panic::catch_unwind(|| {
        loom::model(|| {
            struct Shared(loom::cell::Cell<u32>);
            // SAFETY: none: the race is what is tested.
            unsafe impl Sync for Shared {}
            let shared = Arc::new(Shared(loom::cell::Cell::new(1)));
            let other = Arc::clone(&shared);
            let other = thread::spawn(move || loom::cell::Cell::new(2).swap(&other.0));
            shared.0.get();
            other.join().unwrap();
        });
    });
    let told = *told.unwrap_err().downcast::<String>().unwrap();
    assert!(told.starts_with("data race: ") && !told.contains("src/cell"), "{told}");
}
