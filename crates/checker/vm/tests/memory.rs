//! Memory that a model gives back, with the machine's allocator: which thread has it next, and
//! which touches it although it is gone.

#![allow(clippy::undocumented_unsafe_blocks, reason = "faults of models are what is tested")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::hint::black_box;
use std::ptr;
use std::sync::{Arc, LazyLock, Mutex};
use ulocks_vm::explore::{Config, Failure, Report, Reuse, explore, run};
#[cfg(feature = "linux")]
use ulocks_vm::signal;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicPtr, AtomicU32, UnsafeCell, yield_now};
use ulocks_vm::thread;

#[global_allocator]
static ALLOCATOR: ulocks_vm::alloc::Allocator = ulocks_vm::alloc::Allocator;

fn with(reuse: Reuse) -> Config {
    Config { reuse, ..Config::exhaustive() }
}

#[track_caller]
fn fails(config: &Config, model: impl Fn() + 'static) -> Box<Failure> {
    run(config, model).expect_err("nothing went wrong")
}

/// A node of `N` words is taken and freed, `between` words are made, and another node put in its
/// place. The other thread exchanges what it has seen. Whether it ever found another node where it
/// had seen one before.
fn exchange<const N: usize>(between: usize) -> bool {
    let head = Arc::new(AtomicPtr::new(Box::into_raw(Box::new([0_u64; N]))));
    let other = {
        let head = Arc::clone(&head);
        thread::spawn(move || {
            let seen = head.load(Acquire);
            // What the node holds is not looked at: it may be gone.
            yield_now();
            head.compare_exchange(seen, ptr::null_mut(), AcqRel, Acquire).is_ok().then_some(seen.addr())
        })
    };
    let first = head.load(Acquire);
    let mut second = ptr::null_mut();
    if !first.is_null() && head.compare_exchange(first, ptr::null_mut(), AcqRel, Acquire).is_ok() {
        drop(unsafe { Box::from_raw(first) });
        let words: Vec<_> = (0..between).map(|_| AtomicU32::new(0)).collect();
        second = Box::into_raw(Box::new([1_u64; N]));
        head.store(second, Release);
        drop(words);
    }
    let taken = other.join().unwrap();
    taken.is_some_and(|taken| taken == first.addr() && taken == second.addr())
}

/// How many executions there are, and in how many a thread took the one node for the other.
fn exchanges<const N: usize>(reuse: Reuse, between: usize) -> (u64, u64) {
    let mistaken = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&mistaken);
    let report = explore(with(reuse), move || *counted.lock().unwrap() += u64::from(exchange::<N>(between)));
    assert!(report.finished, "{report}");
    (report.executions, *mistaken.lock().unwrap())
}

#[test]
fn executions_do_not_depend_on_sizes_and_on_other_allocations() {
    for reuse in [Reuse::Never, Reuse::LastFreed] {
        let first = exchanges::<1>(reuse, 0);
        for between in [1, 2, 4, 16] {
            assert_eq!(exchanges::<2>(reuse, between), first);
            assert_eq!(exchanges::<16>(reuse, between), first);
            assert_eq!(exchanges::<128>(reuse, between), first);
        }
    }
}

#[test]
fn a_node_takes_the_place_of_another_where_memory_may_be_had_again() {
    assert_eq!(exchanges::<4>(Reuse::Never, 0).1, 0);
    assert!(exchanges::<4>(Reuse::LastFreed, 0).1 > 0);
}

/// Each round has its block at the same address: what the round before has given back.
#[test]
fn a_wait_whose_rounds_allocate_is_recognised() {
    let report: Report = explore(with(Reuse::LastFreed), || {
        let flag = Arc::new(AtomicU32::new(0));
        let setter = {
            let flag = Arc::clone(&flag);
            thread::spawn(move || flag.store(1, Release))
        };
        while *Box::new(flag.load(Acquire)) == 0 {
            yield_now();
        }
        setter.join().unwrap();
    });
    assert!(report.finished && report.bounds.rounds.is_some(), "{report}");
}

/// A node with a word and data, in a place that two threads know.
struct Node {
    word: AtomicU32,
    data: UnsafeCell<u32>,
}

/// One thread gives a node back, the other uses it.
fn used_after_its_end(by: fn(*const Node)) -> impl Fn() + Clone + 'static {
    move || {
        let node = Box::new(Node { word: AtomicU32::new(0), data: UnsafeCell::new(7) });
        let place = Arc::new(AtomicPtr::new(Box::into_raw(node)));
        let other = {
            let place = Arc::clone(&place);
            thread::spawn(move || {
                let node = place.load(Acquire);
                if !node.is_null() {
                    by(node);
                }
            })
        };
        let node = place.swap(ptr::null_mut(), AcqRel);
        // Without a drop: its word is not known to have ended.
        unsafe { dealloc(node.cast(), Layout::new::<Node>()) };
        other.join().unwrap();
    }
}

#[test]
fn a_use_of_memory_that_was_given_back_is_reported_with_both_places() {
    type Use = (&'static str, fn(*const Node));
    let uses: [Use; 3] = [
        ("accesses the atomic", |node| _ = unsafe { (*node).word.load(Relaxed) }),
        ("reads the data", |node| _ = unsafe { (*node).data.with(|data| *data) }),
        ("writes the data", |node| unsafe { (*node).data.with_mut(|data| *data = 8) }),
    ];
    for reuse in [Reuse::Never, Reuse::LastFreed] {
        for (what, by) in uses {
            let failure = fails(&with(reuse), used_after_its_end(by));
            let text = failure.verdict.to_string();
            assert_eq!(failure.verdict.kind(), "use after the end", "{text}");
            assert!(text.contains(what) && text.contains("gives the memory back"), "{text}");
            assert_eq!(text.matches("memory.rs").count(), 2, "{text}");
        }
    }
}

#[test]
fn memory_that_is_given_back_twice_is_reported() {
    let failure = fails(&with(Reuse::LastFreed), || {
        let block = unsafe { alloc(Layout::new::<u64>()) };
        let address = block.expose_provenance();
        let other = thread::spawn(move || unsafe {
            dealloc(ptr::with_exposed_provenance_mut(address), Layout::new::<u64>());
        });
        unsafe { dealloc(block, Layout::new::<u64>()) };
        other.join().unwrap();
    });
    assert!(failure.verdict.to_string().starts_with("memory given back twice: thread "), "{failure}");
}

fn leaking() -> Config {
    Config { leaks: true, ..Config::exhaustive() }
}

/// Two threads put a node where there is none: the second thread forgets its own.
#[test]
fn memory_that_is_never_given_back_is_reported() {
    fn put(head: &AtomicPtr<u64>, forgets: bool) {
        let mine = Box::into_raw(Box::new(7_u64));
        let put = head.compare_exchange(ptr::null_mut(), mine, AcqRel, Acquire);
        if put.is_err() && !forgets {
            drop(unsafe { Box::from_raw(mine) });
        }
    }
    let model = |forgets: bool| {
        move || {
            let head = Arc::new(AtomicPtr::new(ptr::null_mut()));
            let theirs = Arc::clone(&head);
            let other = thread::spawn(move || put(&theirs, forgets));
            put(&head, forgets);
            other.join().unwrap();
            drop(unsafe { Box::from_raw(head.load(Acquire)) });
        }
    };
    explore(leaking(), model(false));
    explore(Config::exhaustive(), model(true));
    let failure = fails(&leaking(), model(true));
    assert_eq!(failure.verdict.kind(), "leak");
    let text = failure.to_string();
    assert!(text.contains("8 bytes of memory were never given back: thread "), "{text}");
    assert!(text.contains(" took them "), "{text}");
}

#[test]
fn what_a_first_use_keeps_is_no_leak() {
    static FIRST: LazyLock<Vec<u64>> = LazyLock::new(|| vec![1; 10]);
    thread_local! {
        static OWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    }
    for executions in [1, 20] {
        explore(Config { leaks: true, ..Config::sampled(executions) }, || {
            assert_eq!(FIRST.len(), 10);
            OWN.with_borrow_mut(|own| own.resize(20, 0));
        });
    }
}

/// What the machine keeps for the objects of a model is the machine's.
#[test]
fn objects_of_the_machine_are_no_leak() {
    use ulocks_vm::sync::{Arc, Condvar, DroppedPerRun, Mutex, PerRun, RwLock, mpsc};
    static KEPT: PerRun<Mutex<Vec<u64>>> = PerRun::new(|| Mutex::new(vec![1; 3]));
    static DROPPED: DroppedPerRun<Vec<u64>> = DroppedPerRun::new(|| vec![2; 3]);
    ulocks_vm::thread_local! {
        static OWN: RefCell<Vec<u64>> = RefCell::new(vec![1; 3]);
    }
    explore(leaking(), || {
        let (sender, receiver) = mpsc::channel();
        let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new(), RwLock::new(0)));
        let weak = Arc::downgrade(&shared);
        let other = thread::spawn(move || {
            OWN.with(|own| own.borrow_mut().push(DROPPED.get()[0]));
            assert_eq!(KEPT.lock().unwrap().len(), 3);
            sender.send(Box::new(1)).unwrap();
            let shared = weak.upgrade();
            if let Some(shared) = &shared {
                shared.0.lock().unwrap().push(String::from("text"));
                shared.1.notify_all();
            }
            thread::park();
        });
        let received = receiver.recv().unwrap();
        *shared.2.write().unwrap() += *received;
        drop(shared);
        thread::unpark(other.thread());
        other.join().unwrap();
        unsafe { DroppedPerRun::drop_all() };
    });
}

#[test]
fn a_plain_write_to_memory_that_was_given_back_is_reported() {
    let failure = fails(&with(Reuse::Never), || {
        let block = black_box(Box::into_raw(Box::new(5_u64)));
        drop(unsafe { Box::from_raw(block) });
        unsafe { black_box(block).write(6) };
    });
    assert!(
        failure.verdict.to_string().contains("8 bytes of memory were written to after thread 0"),
        "{failure}"
    );
}

/// What a model leaves in a static outlives its executions.
#[test]
fn what_a_static_holds_stays_as_it_is() {
    static NAMES: LazyLock<Mutex<Vec<String>>> = LazyLock::new(Mutex::default);
    explore(Config::sampled(20), || {
        thread::spawn(|| {
            let mut names = NAMES.lock().unwrap();
            let number = names.len();
            names.push(number.to_string());
        })
        .join()
        .unwrap();
    });
    let names = NAMES.lock().unwrap();
    assert_eq!(*names, (0..20).map(|number: usize| number.to_string()).collect::<Vec<_>>());
}

/// Blocks that grow keep what they hold.
#[test]
fn a_block_that_grows_keeps_what_it_holds() {
    explore(with(Reuse::LastFreed), || {
        let mut numbers = Vec::new();
        for number in 0..100_u32 {
            numbers.push(number);
            if number % 7 == 0 {
                numbers.shrink_to_fit();
            }
        }
        assert!(numbers.into_iter().eq(0..100));
        assert_eq!(vec![0_u8; 64], [0; 64]);
    });
}

#[test]
fn a_thread_has_its_own_memory_again_and_no_other_the_last_first() {
    explore(with(Reuse::LastFreed), || {
        let blocks: [Box<[u64; 9]>; 3] = [Box::default(), Box::default(), Box::default()];
        let places = blocks.each_ref().map(|block| ptr::from_ref(&**block).addr());
        let [first, second, third] = blocks;
        thread::spawn(move || drop(third)).join().unwrap();
        drop(first);
        drop(second);
        let place = |block: &[u64; 9]| ptr::from_ref(block).addr();
        let again: [Box<[u64; 9]>; 3] = [Box::default(), Box::default(), Box::default()];
        let had = again.each_ref().map(|block| place(block));
        assert_eq!(had[..2], [places[1], places[0]]);
        assert_ne!(had[2], places[2]);
    });
}

/// The loser of two drops looks at the count after it has given its share away: between its two
/// operations the winner may give the memory back.
#[test]
fn memory_is_looked_at_when_an_operation_is_carried_out() {
    for reuse in [Reuse::Never, Reuse::LastFreed] {
        let failure = fails(&with(reuse), || {
            let counted = Box::into_raw(Box::new(AtomicU32::new(2)));
            let place = counted.expose_provenance();
            let give_up = move || {
                let count = ptr::with_exposed_provenance_mut::<AtomicU32>(place);
                if unsafe { (*count).fetch_sub(1, AcqRel) } == 1 {
                    unsafe { dealloc(count.cast(), Layout::new::<AtomicU32>()) };
                } else {
                    unsafe { (*count).load(Relaxed) };
                }
            };
            let other = thread::spawn(give_up);
            give_up();
            other.join().unwrap();
        });
        assert_eq!(failure.verdict.kind(), "use after the end", "{failure}");
    }
}

/// Nothing orders the reader before the thread that gives the cell back, whichever is which.
#[test]
fn memory_that_is_given_back_without_an_order_is_a_race() {
    for (drops, reads_first) in [(true, true), (true, false), (false, true), (false, false)] {
        let failure = fails(&with(Reuse::LastFreed), move || {
            let cell = Box::into_raw(Box::new(UnsafeCell::new(7_u64)));
            let place = cell.expose_provenance();
            let read = move || {
                let word = AtomicU32::new(1);
                word.store(2, Relaxed);
                let cell = ptr::with_exposed_provenance::<UnsafeCell<u64>>(place);
                unsafe { (*cell).with(|data| *data) };
                word.store(3, Relaxed);
            };
            let give_back = move || {
                let word = AtomicU32::new(1);
                word.store(2, Relaxed);
                let cell = ptr::with_exposed_provenance_mut::<UnsafeCell<u64>>(place);
                if drops {
                    drop(unsafe { Box::from_raw(cell) });
                } else {
                    unsafe { dealloc(cell.cast(), Layout::new::<u64>()) };
                }
                word.store(3, Relaxed);
            };
            let other = if reads_first { thread::spawn(give_back) } else { thread::spawn(read) };
            if reads_first {
                read()
            } else {
                give_back()
            }
            other.join().unwrap();
        });
        assert!(["data race", "use after the end"].contains(&failure.verdict.kind()), "{failure}");
    }
}

/// Gives a block back when it goes.
struct GivesBack(*mut u8);

impl Drop for GivesBack {
    fn drop(&mut self) {
        unsafe { dealloc(self.0, Layout::new::<u64>()) };
    }
}

#[test]
fn what_a_panic_gives_back_twice_harms_nothing() {
    let failure = fails(&with(Reuse::LastFreed), || {
        let block = unsafe { alloc(Layout::new::<u64>()) };
        let _twice = [GivesBack(block), GivesBack(block)];
        panic!("first");
    });
    assert!(failure.verdict.to_string().contains("first"), "{failure}");
    assert!(!std::thread::panicking());
    a_node_takes_the_place_of_another_where_memory_may_be_had_again();
}

/// On the way through the machine's own frames.
#[cfg(feature = "linux")]
#[test]
fn what_a_panic_of_the_machine_gives_back_twice_harms_nothing() {
    let failure = fails(&with(Reuse::LastFreed), || {
        let block = unsafe { alloc(Layout::new::<u64>()) };
        unsafe { dealloc(block, Layout::new::<u64>()) };
        let _again = GivesBack(block);
        signal::send(99, signal::Signal::new(10));
    });
    assert_eq!(failure.verdict.kind(), "panic", "{failure}");
    assert!(!std::thread::panicking());
    a_node_takes_the_place_of_another_where_memory_may_be_had_again();
}

#[cfg(feature = "linux")]
#[test]
fn what_a_handler_gives_back_is_kept() {
    let failure = fails(&with(Reuse::Never), || {
        let word = Box::into_raw(Box::new(AtomicU32::new(0)));
        let place = word.expose_provenance();
        let signal = signal::Signal::new(10);
        signal::install(signal, 0, move || unsafe {
            dealloc(ptr::with_exposed_provenance_mut(place), Layout::new::<AtomicU32>());
        });
        signal::send(0, signal);
        AtomicU32::new(1).load(Relaxed);
        unsafe { (*word).load(Relaxed) };
    });
    assert_eq!(failure.verdict.kind(), "use after the end", "{failure}");
}

/// A buffer that a static has had before is there in one execution and not in the next.
#[test]
fn what_other_executions_have_allocated_is_given_to_nobody() {
    static SEEN: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    let grown = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&grown);
    explore(Config { reuse: Reuse::LastFreed, ..Config::sampled(40) }, move || {
        let mut seen = SEEN.lock().unwrap();
        let (before, words) = (seen.as_ptr().addr(), seen.capacity());
        seen.push(1);
        let is_grown = seen.capacity() > words && words > 0;
        drop(seen);
        *counted.lock().unwrap() += u32::from(is_grown);
        let layout = Layout::array::<u64>(words.max(1)).unwrap();
        let block = unsafe { alloc(layout) };
        assert_ne!((is_grown, block.addr()), (true, before));
        unsafe { dealloc(block, layout) };
    });
    assert!(*grown.lock().unwrap() > 2);
}

/// A value that is taken out leaves its memory to the weak pointers, and each order of their ends
/// gives it back in an ordered way.
#[test]
fn a_value_that_is_taken_out_leaves_its_memory_to_weak_pointers() {
    use ulocks_vm::explore::Strategy;
    use ulocks_vm::sync::Arc;
    let random = Config { strategy: Strategy::Random, ..Config::sampled(500) };
    for config in [Config::exhaustive(), Config::sampled(500), random] {
        explore(config, || {
            let value = Arc::new(AtomicU32::new(7));
            let weak = Arc::downgrade(&value);
            let other = thread::spawn(move || weak.upgrade().map(|value| value.load(Relaxed)));
            let taken = Arc::try_unwrap(value).map(|value| value.load(Relaxed)).ok();
            let seen = other.join().unwrap();
            assert!(taken.or(seen) == Some(7));
        });
    }
}

/// What the machine keeps of a panic, and of variables of threads, is not the model's.
#[test]
fn a_panic_that_is_caught_and_a_variable_of_a_thread_are_no_leaks() {
    ulocks_vm::thread_local! {
        static NUMBER: std::cell::Cell<u32> = const { std::cell::Cell::new(1) };
    }
    explore(Config { leaks: true, ..Config::exhaustive() }, || {
        let caught = std::panic::catch_unwind(|| panic!("{}", black_box(1)));
        assert!(caught.is_err());
        thread::spawn(|| NUMBER.get()).join().unwrap();
    });
}
