//! What `list` shows.

use super::joined::joined;
use super::scratch::{Scratch, alone, turn};
use super::{Plain, list, open};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{Condvar, FairMutex, HashMap, LockError, Mutex, Queue, Region, RwLock, SemArray, Semaphore};
use ulocks_testkit::Child;
use ulocks_testkit::limit::until;

/// The program takes no part: a region that nobody uses is not attached to, and not reset.
#[test]
fn a_look_changes_nothing() {
    let (_turn, scratch) = alone();
    {
        let region = open(&scratch);
        let me = joined(&region);
        region.find_or_create::<Plain>(&me, "plain").expect("room");
    }
    let before = scratch.bytes();
    assert_eq!(list(&scratch).code, 0);
    assert_eq!(scratch.bytes(), before);
    let mut read_only = fs::metadata(scratch.path()).expect("the file").permissions();
    read_only.set_readonly(true);
    fs::set_permissions(scratch.path(), read_only).expect("it is the test's");
    assert_eq!(list(&scratch).code, 0);
}

/// A child holds locks of each kind, and another thread waits for one.
#[test]
fn holders_and_waiters() {
    let (_turn, scratch) = alone();
    let region = open(&scratch);
    let step = Region::<AtomicU32>::options().anonymous().expect("a region");
    let holder = Child::runs(|| {
        let own = open(&scratch);
        let me = joined(&own);
        let mutex = own.find_or_create::<Mutex<u64>>(&me, "mutex").expect("room");
        let fair = own.find_or_create::<FairMutex<u64>>(&me, "fair").expect("room");
        let rwlock = own.find_or_create::<RwLock<u64, 4>>(&me, "rwlock").expect("room");
        let array = own.find_or_create::<SemArray<3, 4, 2>>(&me, "array").expect("room");
        let one = own.find_or_create::<Semaphore<4>>(&me, "semaphore").expect("room");
        own.find_or_create::<Condvar>(&me, "condvar").expect("room");
        own.find_or_create::<Plain>(&me, "plain").expect("room");
        for (index, value) in [5, 6, 7].into_iter().enumerate() {
            array.set(&me, index, value).expect("a value");
        }
        one.add_permits(&me, 9).expect("values");
        let _permit = one.acquire_many(&me, 2).expect("a permit");
        let _held = (mutex.lock(&me), fair.lock(&me), rwlock.read(&me));
        step.store(1, Relaxed);
        Child::pauses();
    })
    .sleeps(|| step.load(Relaxed) == 1);
    let waiter = Child::runs(|| {
        let own = open(&scratch);
        let me = joined(&own);
        let fair = own.find::<FairMutex<u64>>(&me, "fair").expect("the holder's");
        step.store(2, Relaxed);
        assert!(matches!(fair.lock(&me), Err(LockError::OwnerDied(_))));
    })
    .sleeps(|| step.load(Relaxed) == 2);

    let ran = list(&scratch);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let process = format!("process {}", holder.id());
    ran.has(&["2 of 4 slots are taken"]);
    ran.has(&["slot 0, generation 1:", &process, "thread began"]);
    ran.has(&["slot 1, generation 1:", &format!("process {}", waiter.id())]);
    ran.has(&["directory at 0x2000: 7 of 8 names"]);
    ran.has(&["\"mutex\": Mutex<u64", "24 bytes", "slot 0", &process, "holds it"]);
    ran.has(&["\"fair\": Mutex<u64, RawFairMutex", "slot 0", "holds it", "1 waits"]);
    ran.has(&["\"rwlock\": RwLock<u64, 4", "slot 0", "reads"]);
    ran.has(&["\"array\": SemArray<3, 4, 2", "values 5 6 7"]);
    ran.has(&["\"semaphore\": ", "values 7", "slot 0", "has permits, its death adds 2 to 0"]);
    ran.has(&["\"condvar\": Condvar"]);
    let waits = |line: &str| line.contains("\"condvar\"") && line.contains("wait");
    assert!(!ran.out.lines().any(waits), "the condition variable has no waiters:\n{}", ran.out);
    ran.has(&["\"plain\": Mutex<", "no robust lock"]);
    ran.has_not("DAMAGED");

    holder.killed();
    waiter.ends();
    let ran = list(&scratch);
    ran.has(&["slot 0, generation 1: dead, was", &process]);
    ran.has(&["\"mutex\"", "slot 0 (dead) holds it"]);
    ran.has(&["\"fair\"", "free", "not recoverable"]);
    drop(region);
}

/// The kernel cuts a name off where it likes, and a file may have any bytes for its name.
#[test]
fn a_process_is_found_whose_names_are_no_text() {
    let (_turn, scratch) = alone();
    let region = open(&scratch);
    let other = Scratch::new();
    let mut path = other.path().as_os_str().to_owned();
    path.push(OsStr::from_bytes(b"\xff"));
    let step = Region::<AtomicU32>::options().anonymous().expect("a region");
    let child = Child::runs(|| {
        // SAFETY: the name ends with a zero.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"caf\xc3".as_ptr()) };
        let own = open(&scratch);
        let _me = joined(&own);
        let _other = Region::<AtomicU32>::options().create(&path, 0o600).expect("another region");
        fs::remove_file(&path).expect("it is the test's");
        step.store(1, Relaxed);
        Child::pauses();
    });
    until("the child takes part", || step.load(Relaxed) == 1);
    let ran = list(&scratch);
    ran.has(&[&format!("process {} (caf\u{fffd})", child.id()), "thread began"]);
    child.killed();
    drop(region);
}

/// A queue and a map are shown as the mutex that begins them.
#[test]
fn who_is_in_a_map() {
    let (_turn, scratch) = alone();
    let region = open(&scratch);
    let step = Region::<AtomicU32>::options().anonymous().expect("a region");
    let holder = Child::runs(|| {
        let own = open(&scratch);
        let me = joined(&own);
        own.find_or_create::<Queue<u64, 4>>(&me, "queue").expect("room");
        let map = own.find_or_create::<HashMap<u64, u64, 4>>(&me, "map").expect("room");
        _ = map.update(&me, 1, |_| {
            step.store(1, Relaxed);
            Child::pauses();
            None
        });
    })
    .sleeps(|| step.load(Relaxed) == 1);
    let ran = list(&scratch);
    ran.has(&["\"queue\": Queue<u64, 4", "free"]);
    ran.has(&["\"map\": HashMap<u64, u64, 4", "slot 0", &format!("process {}", holder.id()), "holds it"]);
    holder.killed();
    list(&scratch).has(&["\"map\"", "slot 0 (dead) holds it"]);
    drop(region);
}

/// Names that a terminal would obey.
#[test]
fn names_are_escaped() {
    let (_turn, scratch) = alone();
    let region = open(&scratch);
    let me = joined(&region);
    region.find_or_create::<u64>(&me, "\u{1b}[31m\"\\\n\u{85}é").expect("room");
    let ran = list(&scratch);
    ran.has(&[r#""\u{1b}[31m\"\\\n\u{85}é": u64 (8 bytes)"#]);
}

/// Two directories, one of them far inside of a root that is searched in parts.
#[test]
fn directories_anywhere_in_a_root() {
    #[derive(ulocks_shm::SharedSafe)]
    #[repr(C)]
    struct Root {
        first: ulocks_shm::Directory<2, 64>,
        data: [u64; 300_000],
        second: ulocks_shm::Directory<2, 64>,
    }
    let (_turn, scratch) = alone();
    let region = Region::<Root>::options().create(scratch.path(), 0o600).expect("a region");
    let me = joined(&region);
    region.first.find_or_create::<Mutex<u64>>(&me, "one").expect("room");
    region.second.find_or_create::<Mutex<u64>>(&me, "two").expect("room");
    assert_eq!(region.data[7], 0);
    let ran = list(&scratch);
    ran.has(&["directory at 0x2000: 1 of 2 names"]);
    ran.has(&["\"one\""]);
    ran.has(&["\"two\""]);
    assert_eq!(ran.out.matches("directory at").count(), 2, "{}", ran.out);
}

/// A region of another boot, and one whose reset was cut off.
#[test]
fn the_state_of_the_header() {
    use super::scratch::{Word, set_word, word};
    let (_turn, scratch) = alone();
    drop(open(&scratch));
    let sound = scratch.bytes();
    let mut bytes = sound.clone();
    set_word(&mut bytes, Word::State, 2);
    let ran = list(&Scratch::with(&bytes));
    ran.has(&["a reset was cut off"]);
    assert_eq!(ran.code, 0);
    let mut bytes = sound.clone();
    let boot = word(&sound, Word::Boot);
    set_word(&mut bytes, Word::Boot, !boot);
    let ran = list(&Scratch::with(&bytes));
    ran.has(&["before the machine booted"]);
    ran.has(&["no process is attached"]);
    ran.has(&["no directory with names"]);
    assert_eq!(ran.code, 0);
}

/// The number of a slot's process is in use by another process here, as it is if the slot's process
/// is of another namespace, and the number of another slot's by none.
#[test]
fn a_number_of_another_process_is_not_taken_for_it() {
    let (_turn, scratch) = alone();
    let stranger = Child::runs(|| {
        Child::pauses();
    });
    drop(open(&scratch));
    let mut bytes = scratch.bytes();
    // The thread is in the first word of glibc, and in the second of musl.
    for (slot, process) in [(3, stranger.id().unsigned_abs()), (1, (1 << 29) - 1)] {
        for (word, value) in [process, process, 1, process].into_iter().enumerate() {
            let at = 4096 + slot * 64 + word * 4;
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
    }
    fs::write(scratch.path(), &bytes).expect("the file is writable");
    let ran = list(&scratch);
    assert_eq!(ran.code, 0);
    ran.has(&["slot 3, generation 1", &format!("process {}", stranger.id()), "does not map the file"]);
    ran.has(&["slot 1, generation 1", "no such process here"]);
    stranger.killed();
}

/// A thread was stopped while it claimed a slot.
#[test]
fn a_slot_between_owners() {
    let (_turn, scratch) = alone();
    drop(open(&scratch));
    let mut bytes = scratch.bytes();
    // The thread is in the first word of glibc, and in the second of musl.
    for word in 0..2 {
        let at = 4096 + 2 * 64 + word * 4;
        bytes[at..at + 4].copy_from_slice(&(0x4000_0000_u32 | 77).to_ne_bytes());
    }
    fs::write(scratch.path(), &bytes).expect("the file is writable");
    let ran = list(&scratch);
    assert_eq!(ran.code, 0);
    ran.has(&["1 of 4 slots are taken"]);
    ran.has(&["slot 2", "thread 77 is claiming it, or leaves it"]);
}

/// The id of the boot is another, as in a container: attached processes run now.
#[test]
fn a_region_that_is_used_under_another_id_of_the_boot() {
    use super::scratch::{Word, set_word};
    let (_turn, scratch) = alone();
    let region = open(&scratch);
    let _me = joined(&region);
    let mut bytes = scratch.bytes();
    set_word(&mut bytes, Word::Boot, 1);
    fs::write(scratch.path(), &bytes).expect("the file is writable");
    let ran = list(&scratch);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.has(&["reset under another id of the boot"]);
    ran.has(&["slot 0", &format!("process {}", std::process::id()), "thread began"]);
}

/// A file of a terabyte with a sound header, and almost no data: it is listed at once. So is one
/// with a directory of four thousand million free entries, which is not read into memory.
#[test]
fn a_large_region_with_holes() {
    use super::scratch::{Word, seal, set_word};
    use std::os::unix::fs::FileExt;
    const ROOT: u64 = 8192;
    let _turn = turn();
    let small = Scratch::new();
    drop(open(&small));
    let small = small.bytes();
    for (entries, room, said) in [
        (0, 0, "0 of 0 names"),
        (1 << 32, 64, "0 of 4294967296 names"),
        (4, (1 << 40) - 4096, "0 of 4 names"),
    ] {
        let scratch = Scratch::with(b"");
        let mut header = small[..128].to_vec();
        set_word(&mut header, Word::RootSize, 1 << 40);
        set_word(&mut header, Word::Size, ROOT + (1 << 40));
        seal(&mut header);
        let file = fs::OpenOptions::new().write(true).open(scratch.path()).expect("it is ours");
        if file.set_len(ROOT + (1 << 40)).is_err() {
            println!("not tested: the file system has no files of a terabyte");
            return;
        }
        file.write_all_at(&header, 0).expect("room");
        // The head of a directory, in the middle of nothing.
        let mut directory = small[8192..8192 + 64].to_vec();
        directory[16..24].copy_from_slice(&u64::from_le_bytes(*b"ULOCKDIR").to_ne_bytes());
        directory[24..32].copy_from_slice(&u64::to_ne_bytes(entries));
        directory[32..40].copy_from_slice(&u64::to_ne_bytes(room));
        file.write_all_at(&directory, ROOT).expect("room");
        let ran = list(&scratch);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
        ran.has(&["directory at 0x2000", said]);
    }
}
