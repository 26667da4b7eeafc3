//! Creating regions, and what stands in the way of it.

use super::Root;
use super::scratch::{Scratch, alone, turn};
use std::fs::{self, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{Attached, MOST_PARTICIPANTS, Options, Region, RegionError, RwLock, SharedSafe};
use ulocks_testkit::Child;

fn options() -> Options<Root> {
    Region::options().wait(Duration::from_millis(3))
}

#[test]
fn a_new_region_is_all_zero() {
    let (_turn, scratch) = alone();
    let region = options().create(scratch.path(), 0o640).expect("a region");
    assert_eq!((region.attached(), region.epoch(), region.participants()), (Attached::Created, 1, 64));
    assert_eq!((*region.total.lock(), region.plain.load(Relaxed)), (0, 0));
    let mode = fs::metadata(scratch.path()).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777 & !0o640, 0);
    assert!(format!("{region:?}").starts_with("Region { size: 12288, participants: 64, epoch: 1, "));
}

#[test]
fn slots_are_aligned_and_inside() {
    let _turn = turn();
    for participants in [1, 63, 64, 65, MOST_PARTICIPANTS] {
        let region = options().participants(participants).anonymous().expect("a region");
        assert_eq!(region.participants(), participants);
        let (base, slots) = (region.base().addr().get(), region.slots().addr().get());
        assert_eq!((slots % 64, base % 4096), (0, 0));
        let root = std::ptr::from_ref::<Root>(&region).addr();
        assert!(slots >= base + 128 && slots + participants as usize * 64 <= root);
        // SAFETY: the slots are mapped, and no thread uses them.
        let bytes =
            unsafe { std::slice::from_raw_parts(region.slots().as_ptr(), participants as usize * 64) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
}

#[test]
fn the_number_of_participants_has_bounds() {
    let _turn = turn();
    assert!(matches!(options().participants(0).anonymous(), Err(RegionError::NoParticipants)));
    let error = options().participants(MOST_PARTICIPANTS + 1).anonymous().expect_err("too many");
    assert!(matches!(error, RegionError::TooManyParticipants { asked: 4097 }), "{error}");
    let scratch = Scratch::new();
    options().participants(u32::MAX).create_or_open(scratch.path(), 0o600).expect_err("too many");
    assert!(!scratch.path().exists());
}

#[test]
fn each_participant_has_a_slot_in_each_lock() {
    let _turn = turn();
    type Root = [(AtomicU64, RwLock<u64, 4>); 2];
    let four = Region::<Root>::options().participants(4);
    let five = Region::<Root>::options().participants(5);
    let scratch = Scratch::new();
    let refused = |result: Result<Region<Root>, RegionError>| {
        let error = result.expect_err("a lock of four slots");
        assert!(matches!(error, RegionError::TooFewSlots { participants: 5, slots: 4 }), "{error}");
        assert!(error.to_string().contains("as in `RwLock<T, 5>`"), "{error}");
    };
    refused(five.anonymous());
    refused(five.create(scratch.path(), 0o600));
    refused(five.create_or_open(scratch.path(), 0o600));
    refused(five.create_or_open_with(scratch.path(), 0o600, |_| panic!("there is no region")));
    assert!(!scratch.path().exists());
    drop(four.anonymous().expect("a slot for each"));
    drop(four.create_or_open(scratch.path(), 0o600).expect("a slot for each"));
}

/// Of a program that did not look at the slots when it made its region.
#[test]
fn a_region_of_more_participants_than_a_lock_has_slots_is_not_opened() {
    #[repr(transparent)]
    struct Careless(RwLock<u64, 4>);

    // SAFETY: one field, which promises all of it.
    unsafe impl SharedSafe for Careless {
        const LAYOUT: u64 = <RwLock<u64, 4>>::LAYOUT;

        unsafe fn reset_locks(this: *mut Self) {
            // SAFETY: the caller's promise; the field is at the same place.
            unsafe { SharedSafe::reset_locks(&raw mut (*this).0) };
        }
    }

    let _turn = turn();
    let careless = Region::<Careless>::options().participants(5);
    let careful = Region::<RwLock<u64, 4>>::options().participants(4);
    let scratch = Scratch::new();
    let region = careless.create(scratch.path(), 0o600).expect("a region");
    let bytes = || fs::read(scratch.path()).expect("a file");
    for _ in 0..2 {
        let before = bytes();
        for result in [
            careful.open(scratch.path()),
            careful.create_or_open(scratch.path(), 0o600),
            careful.from_fd(fs::File::options().read(true).write(true).open(scratch.path()).expect("a file")),
            careful.from_fd(region.fd()),
        ] {
            let error = result.expect_err("a lock of four slots");
            assert!(matches!(error, RegionError::TooFewSlots { participants: 5, slots: 4 }), "{error}");
        }
        assert!(bytes() == before, "the file has changed");
    }
}

#[test]
fn an_existing_region_keeps_its_number_of_participants() {
    let (_turn, scratch) = alone();
    drop(options().participants(200).create(scratch.path(), 0o600).expect("a region"));
    let region = options().participants(3).create_or_open(scratch.path(), 0o600).expect("the region");
    assert_eq!(region.participants(), 200);
}

#[test]
fn what_exists_is_not_created_and_what_is_not_there_not_opened() {
    let _turn = turn();
    let scratch = Scratch::with(b"precious");
    assert!(matches!(options().create(scratch.path(), 0o600), Err(RegionError::AlreadyExists)));
    assert_eq!(scratch.bytes(), b"precious");
    let path = Scratch::new().path().to_owned();
    assert!(matches!(options().open(&path), Err(RegionError::NotFound)));
    // Nor is the folder of a new file made.
    let inside = std::path::Path::new(&path).join("region");
    for made in [options().create(&inside, 0o600), options().create_or_open(&inside, 0o600)] {
        let error = made.expect_err("there is no folder");
        assert!(error.to_string().starts_with("the folder of the file does not exist"), "{error}");
    }
    assert!(matches!(options().open(&inside), Err(RegionError::NotFound)));
}

#[test]
fn an_empty_file_is_filled_by_a_process_that_may_create() {
    let _turn = turn();
    let scratch = Scratch::with(b"");
    assert!(matches!(options().open(scratch.path()), Err(RegionError::HalfInitialised)));
    let region = options().create_or_open(scratch.path(), 0o600).expect("a region");
    assert_eq!(region.attached(), Attached::Created);
    assert_eq!(options().open(scratch.path()).expect("the region").attached(), Attached::Joined);
}

#[test]
fn only_regular_files() {
    let _turn = turn();
    for scratch in [Scratch::pipe(), Scratch::new()] {
        let path = if scratch.path().exists() { scratch.path().to_owned() } else { std::env::temp_dir() };
        for result in [options().open(&path), options().create_or_open(&path, 0o600)] {
            assert!(matches!(result, Err(RegionError::NotRegular)), "{path:?}: {result:?}");
        }
    }
    assert!(matches!(options().open("/dev/null"), Err(RegionError::NotRegular)));
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    // A pipe's end is open for writing only.
    assert!(matches!(options().from_fd(&writer), Err(RegionError::ReadOnly)));
}

#[test]
fn a_file_that_may_only_be_read() {
    let (_turn, scratch) = alone();
    drop(options().create(scratch.path(), 0o600).expect("a region"));
    let bytes = scratch.bytes();
    let reader = OpenOptions::new().read(true).open(scratch.path()).expect("a reader");
    assert!(matches!(options().from_fd(reader.as_fd()), Err(RegionError::ReadOnly)));
    fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o444)).expect("it is ours");
    // Root may write to every file, so a child gives that up.
    Child::runs(|| {
        // SAFETY: the child has one thread, and no secrets.
        let result = unsafe { if libc::geteuid() == 0 { libc::seteuid(65534) } else { 0 } };
        assert_eq!(result, 0, "seteuid");
        let error = options().open(scratch.path()).expect_err("it may not be written");
        assert!(matches!(error, RegionError::ReadOnly), "{error}");
        assert!(error.to_string().contains("write permission"));
    })
    .ends();
    assert_eq!(scratch.bytes(), bytes);
}

/// Not a file with holes: a store to one is a SIGBUS if the disk is full by then.
#[test]
fn the_space_is_reserved() {
    let (_turn, scratch) = alone();
    let region = options().participants(MOST_PARTICIPANTS).create(scratch.path(), 0o600).expect("a region");
    let file = fs::metadata(scratch.path()).expect("a file");
    assert!(file.blocks() * 512 >= file.len(), "{} blocks for {} bytes", file.blocks(), file.len());
    drop(region);
}

/// A limit on the size of files is asked for. Beyond it the kernel would send a signal, which ends
/// a process that does not ignore it.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_leaves_nothing() {
    let (_turn, scratch) = alone();
    let empty = Scratch::with(b"");
    Child::runs(|| {
        let limit = libc::rlimit { rlim_cur: 8192, rlim_max: 8192 };
        // SAFETY: the limit is for this child.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
        for result in [
            options().create(scratch.path(), 0o600),
            options().create_or_open(scratch.path(), 0o600),
            options().create_or_open(empty.path(), 0o600),
            options().anonymous(),
        ] {
            assert!(matches!(result, Err(RegionError::NoSpace { needed: 12288, .. })), "{result:?}");
        }
    })
    .ends();
    assert!(!scratch.path().exists());
    assert_eq!(empty.bytes(), b"");
}

/// The kernel refuses the mapping: there is too little room in the address space.
#[test]
fn a_mapping_that_is_refused_is_an_error() {
    type Large = [AtomicU64; 1 << 19];
    let (_turn, scratch) = alone();
    drop(Region::<Large>::options().create(scratch.path(), 0o600).expect("a region"));
    let bytes = scratch.bytes();
    Child::runs(|| {
        let pages = fs::read_to_string("/proc/self/statm").expect("statm");
        let pages: u64 = pages.split(' ').next().and_then(|size| size.parse().ok()).expect("a number");
        let room = pages * 4096 + (1 << 20);
        let room = room as libc::rlim_t;
        let limit = libc::rlimit { rlim_cur: room, rlim_max: room };
        // SAFETY: the limit is for this child.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        let error = Region::<Large>::options().open(scratch.path()).expect_err("there is no room");
        assert!(matches!(error, RegionError::Io { step: "map the file", .. }), "{error}");
    })
    .ends();
    assert_eq!(scratch.bytes(), bytes);
}
