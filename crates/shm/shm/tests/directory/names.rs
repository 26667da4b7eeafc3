//! Names, types and room.

use super::joined::joined;
use super::scratch::{Scratch, alone, turn};
use super::{Names, Plain, Robust, open};
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{Directory, DirectoryError, Refused, Region, RwLock, SemArray, Semaphore, SharedSafe};
use ulocks_testkit::Child;

/// A struct of a user.
#[derive(SharedSafe)]
#[repr(C)]
struct Jobs {
    states: Robust,
    done: AtomicU64,
}

#[test]
fn processes_find_each_others_locks() {
    let (_turn, scratch) = alone();
    let region = open(&scratch);
    let me = joined(&region);
    let jobs = region.find_or_create::<Jobs>(&me, "jobs").expect("room");
    let held = jobs.states.lock(&me).expect("no holder has died");
    let child = Child::runs(|| {
        let own = open(&scratch);
        let me = joined(&own);
        let jobs = own.find::<Jobs>(&me, "jobs").expect("the parent's");
        assert!(matches!(own.find::<Jobs>(&me, "job"), Err(DirectoryError::NotFound)));
        let total = own.find_or_create::<Plain>(&me, "total").expect("room");
        *total.lock() = 5;
        jobs.done.store(1, Relaxed);
        *jobs.states.lock(&me).expect("no holder has died") += 7;
    })
    .sleeps(|| jobs.done.load(Relaxed) == 1);
    drop(held);
    child.ends();
    assert_eq!(*jobs.states.lock(&me).expect("no holder has died"), 7);
    assert_eq!(*region.find::<Plain>(&me, "total").expect("the child's").lock(), 5);
}

#[test]
fn creators_of_one_name_get_one_value() {
    const PROCESSES: u64 = 6;
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let _turn = turn();
    for round in 0..30 {
        let scratch = Scratch::new();
        drop(open(&scratch));
        let children: Vec<_> = (0..PROCESSES)
            .map(|nth| {
                let scratch = &scratch;
                Child::runs(move || {
                    let own = open(scratch);
                    let me = joined(&own);
                    for turn in 0..4 {
                        let name = NAMES[((nth + turn) % 4) as usize];
                        let prepare = |new: &Plain, _| *new.lock() += 100;
                        let lock = own.find_or_create_with(&me, name, prepare).expect("room");
                        *lock.lock() += 1;
                    }
                })
            })
            .collect();
        let region = open(&scratch);
        children.into_iter().for_each(Child::ends);
        let me = joined(&region);
        for name in NAMES {
            let lock = region.find::<Plain>(&me, name).expect("created");
            // Whether a process was alone for a moment is chance: then a value is prepared again.
            let value = *lock.lock();
            assert_eq!(value % 100, PROCESSES, "round {round}: {name} has {value}");
            assert!(value >= 100, "round {round}: {name} has {value}");
        }
        let mut names: Vec<_> = region.entries().map(|entry| entry.expect("no damage").name).collect();
        names.sort();
        assert_eq!(names, NAMES);
    }
}

#[test]
fn values_do_not_overlap() {
    #[derive(SharedSafe)]
    #[repr(C, align(64))]
    struct Line(AtomicU64);
    let region = Region::<Names>::options().anonymous().expect("a region");
    let me = joined(&region);
    let byte = region.find_or_create::<[u8; 3]>(&me, "three bytes").expect("room");
    let word = region.find_or_create::<AtomicU64>(&me, "word").expect("room");
    let nothing = region.find_or_create::<()>(&me, "nothing").expect("room");
    let line = region.find_or_create::<Line>(&me, "line").expect("room");
    let last = region.find_or_create::<[u8; 5]>(&me, "last").expect("room");
    let start = std::ptr::from_ref(byte).addr();
    let places = [
        std::ptr::from_ref(word).addr(),
        std::ptr::from_ref(nothing).addr(),
        std::ptr::from_ref(line).addr(),
        std::ptr::from_ref(last).addr(),
    ];
    assert_eq!(places.map(|place| place - start), [8, 16, 64, 128]);
    assert_eq!(start % 64, 0);
}

#[test]
fn a_name_has_one_type() {
    let region = Region::<Names>::options().anonymous().expect("a region");
    let me = joined(&region);
    region.find_or_create::<Robust>(&me, "lock").expect("room");
    let error = region.find_or_create::<Plain>(&me, "lock").expect_err("another type");
    let DirectoryError::WrongType { asked, found } = &error else { panic!("{error}") };
    assert!(asked.starts_with("Mutex<") && found.starts_with("Mutex<u64"), "{error}");
    for text in [asked.as_str(), found.as_str(), "another name"] {
        assert!(error.to_string().contains(text), "{error}");
    }
    assert!(matches!(region.find::<AtomicU64>(&me, "lock"), Err(DirectoryError::WrongType { .. })));
    region.find::<Robust>(&me, "lock").expect("it is as it was");
}

/// Two programs call two types alike.
#[test]
fn types_of_one_name_and_two_layouts() {
    mod other {
        #[derive(ulocks_shm::SharedSafe)]
        #[repr(C)]
        pub struct Jobs(pub u64);
    }
    let region = Region::<Names>::options().anonymous().expect("a region");
    let me = joined(&region);
    region.find_or_create::<Jobs>(&me, "jobs").expect("room");
    let error = region.find::<other::Jobs>(&me, "jobs").map(|jobs| jobs.0).expect_err("another layout");
    assert!(error.to_string().contains("of another layout"), "{error}");
}

#[test]
fn names_of_all_lengths() {
    let region = Region::<Directory<70, 2048>>::options().anonymous().expect("a region");
    let me = joined(&region);
    let long = "é".repeat(32);
    for name in ["", "a\0", "\0", &"a".repeat(65), &format!("{long}x")] {
        let error = region.find_or_create::<Plain>(&me, name).expect_err("a bad name");
        assert_eq!(error, DirectoryError::Name { bytes: name.len() });
        assert!(error.to_string().contains("1 to 64 bytes"), "{error}");
        assert_eq!(region.find::<Plain>(&me, name).map(drop), Err(error));
    }
    let names: Vec<_> = (1..=64).map(|len| "n".repeat(len)).chain([long]).collect();
    for (nth, name) in names.iter().enumerate() {
        *region.find_or_create::<Plain>(&me, name).expect("room").lock() = nth as u64;
    }
    for (nth, name) in names.iter().enumerate() {
        assert_eq!(*region.find::<Plain>(&me, name).expect("created").lock(), nth as u64);
    }
    let listed: Vec<_> = region.entries().map(|entry| entry.expect("no damage")).collect();
    assert!(listed.iter().map(|entry| &entry.name).eq(&names));
    assert!(listed.iter().all(|entry| entry.size == 16 && entry.kind.starts_with("Mutex<")), "{listed:?}");
}

#[test]
fn a_full_directory() {
    let region = Region::<Names>::options().anonymous().expect("a region");
    let me = joined(&region);
    assert_eq!(region.entries().count(), 0);
    for name in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        region.find_or_create::<u64>(&me, name).expect("room");
    }
    let error = region.find_or_create::<u64>(&me, "9").expect_err("no entry");
    assert_eq!(error, DirectoryError::Full { entries: 8 });
    assert_eq!(region.find::<u64>(&me, "9"), Err(DirectoryError::NotFound));
    region.find_or_create::<u64>(&me, "8").expect("it exists");
    assert_eq!(region.entries().count(), 8);
}

#[test]
fn a_full_arena() {
    let region = Region::<Names>::options().anonymous().expect("a region");
    let me = joined(&region);
    region.find_or_create::<[u8; 1001]>(&me, "most").expect("room");
    let error = region.find_or_create::<[u64; 3]>(&me, "more").expect_err("no room");
    assert_eq!(error, DirectoryError::NoRoom { needed: 24, left: 23 });
    region.find_or_create::<[u64; 2]>(&me, "rest").expect("room after an alignment");
    let error = region.find_or_create::<u8>(&me, "more").expect_err("no room");
    assert_eq!(error, DirectoryError::NoRoom { needed: 1, left: 0 });
    region.find_or_create::<()>(&me, "nothing").expect("room");
    assert_eq!(region.entries().count(), 3);
}

#[test]
fn a_directory_is_not_used_by_a_preparation() {
    let region = Region::<Names>::options().anonymous().expect("a region");
    let me = joined(&region);
    let nested = region.find_or_create_with(&me, "outer", |_: &u64, _| {
        let error = region.find::<u64>(&me, "inner").expect_err("the lock is held");
        assert_eq!(error, DirectoryError::Lock(Refused::Deadlock));
        assert!(error.to_string().contains("find the other value first"), "{error}");
    });
    nested.expect("room");
    assert_eq!(me.held(), 0);
}

#[test]
#[should_panic(expected = "not in the region that the thread has joined")]
fn a_member_of_another_region() {
    let region = Region::<Names>::options().anonymous().expect("a region");
    let other = Region::<Names>::options().anonymous().expect("a region");
    let me = joined(&other);
    let _ = region.find::<u64>(&me, "name");
}

/// The types are known only here, not when the region is made.
#[test]
fn each_participant_has_a_slot_in_each_lock() {
    let _turn = turn();
    let region = Region::<Directory<4, 4096>>::options().participants(9).anonymous().expect("a region");
    let me = joined(&region);
    let refused = DirectoryError::TooFewSlots { participants: 9, slots: 8 };
    let error = region.find_or_create::<RwLock<u64, 8>>(&me, "table").expect_err("eight slots");
    assert!(error.to_string().contains("as in `RwLock<T, 9>`"), "{error}");
    assert_eq!(error, refused);
    assert_eq!(region.find_or_create::<Semaphore<8>>(&me, "permits").expect_err("eight slots"), refused);
    assert_eq!(region.find::<SemArray<2, 8>>(&me, "array").expect_err("eight slots"), refused);
    let prepare = |_: &Semaphore<8>, _| panic!("there is no value");
    assert_eq!(region.find_or_create_with(&me, "permits", prepare).expect_err("eight slots"), refused);
    assert_eq!(region.entries().count(), 0);
    region.find_or_create::<RwLock<u64, 9>>(&me, "table").expect("a slot for each");
}
