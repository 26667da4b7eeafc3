//! Peers that are not like this process: in other PID namespaces, dumping core, on a full disk,
//! with read permission only, and one that truncates the file.

use crate::joined::joined;
use crate::place::Shm;
use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::{fs, io, ptr};
use ulocks_shm::{LockError, Mutex, Refused, Region, RegionError};
use ulocks_testkit::Child;
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::watch;

/// A directory of a test, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ulocks-peers-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("a directory for a test");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("region")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Gives the calling process namespaces of its own. A process that is not root first becomes the
/// root of a user namespace.
fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: no preconditions.
    let user = unsafe { libc::geteuid() };
    let new_user = if user == 0 { 0 } else { libc::CLONE_NEWUSER };
    // SAFETY: the argument is a number.
    if unsafe { libc::unshare(new_user | namespaces) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if user == 0 { Ok(()) } else { fs::write("/proc/self/uid_map", format!("0 {user} 1")) }
}

/// Whether the kernel lets a process have such namespaces; if not, says so.
fn may_unshare(namespaces: libc::c_int) -> bool {
    let mut command = Command::new("/bin/true");
    // SAFETY: the child of this process allocates, for which the C library makes that usable.
    unsafe { command.pre_exec(move || unshare(namespaces)) };
    match command.status() {
        Ok(_) => true,
        Err(error) => {
            println!("not tested: the kernel permits no namespaces: {error}");
            false
        }
    }
}

/// A child that is the first process of a PID namespace, runs `body`, and then waits to be killed.
fn in_a_namespace(shm: &Shm, body: impl FnOnce()) -> Child {
    let begun = shm.place().begun.load(Relaxed);
    Child::runs(|| {
        unshare(libc::CLONE_NEWPID).expect("it was permitted before");
        let inner = Child::runs(|| {
            // SAFETY: no preconditions.
            assert_eq!(unsafe { libc::getpid() }, 1, "not the first process of a namespace");
            body();
            Child::pauses();
        });
        // The inner child is killed with this one.
        inner.ends();
    })
    .sleeps(|| shm.place().begun.load(Relaxed) > begun)
}

/// Two holders have the process id 1, each in a namespace of its own. The death of one is not taken
/// for the death of the other, and waiters in all namespaces are told.
#[test]
fn holders_of_the_same_process_id_are_told_apart() {
    if !may_unshare(libc::CLONE_NEWPID) {
        return;
    }
    let (shm, _watch) = Shm::new("PID namespaces");
    let place = shm.place();
    let holds = |mutex: fn(&crate::place::Place) -> &crate::place::Mutex| {
        in_a_namespace(&shm, || {
            let me = shm.join();
            std::mem::forget(mutex(place).lock(&me).unwrap());
            std::mem::forget(me);
            place.begun.fetch_add(1, Relaxed);
        })
    };
    let first = holds(|place| &place.mutex);
    let second = holds(|place| &place.other);
    // A third namespace has a waiter for the first holder. It begins to wait, and is asleep soon.
    let waiter = in_a_namespace(&shm, || {
        let me = shm.join();
        place.begun.fetch_add(1, Relaxed);
        shm.adds(&me);
    });
    std::thread::sleep(std::time::Duration::from_millis(20));
    first.killed();
    while place.finished.load(Relaxed) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(place.told.load(Relaxed), 1, "the waiter is told of the death");
    let me = shm.join();
    shm.adds(&me);
    assert_eq!(place.told.load(Relaxed), 1, "it is told once");
    assert!(
        matches!(place.other.try_lock(&me), Err(LockError::Refused(Refused::TimedOut))),
        "the holder with the same process id lives"
    );
    let sleeper = Child::runs(|| {
        let me = shm.join();
        place.begun.fetch_add(1, Relaxed);
        assert!(matches!(place.other.lock(&me), Err(LockError::OwnerDied(_))));
    })
    .sleeps(|| place.begun.load(Relaxed) == 4);
    second.killed();
    sleeper.ends();
    waiter.killed();
}

/// The kernel writes the dump before it marks the tokens: the waiters sleep through it.
#[test]
fn a_holder_that_dumps_core_leaves_the_mutex() {
    let scratch = Scratch::new("core");
    let (shm, _watch) = Shm::new("core dump");
    let holder = Child::runs(|| {
        let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the limit is for this child.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) };
        std::env::set_current_dir(&scratch.0).expect("the directory is there");
        let me = shm.join();
        let _guard = shm.place().mutex.lock(&me).unwrap();
        shm.place().begun.fetch_add(1, Relaxed);
        Child::pauses();
    })
    .sleeps(|| shm.place().begun.load(Relaxed) == 1);
    let sleepers: Vec<_> = (0..3).map(|_| shm.waiter()).collect();
    holder.signal(libc::SIGABRT);
    sleepers.into_iter().for_each(Child::ends);
    assert_eq!(shm.place().told.load(Relaxed), 1);
    let status = holder.waited();
    assert_eq!(libc::WTERMSIG(status), libc::SIGABRT);
    if !libc::WCOREDUMP(status) {
        println!("without a dump: this machine writes none");
    }
}

/// Does `body` in a child that has a file system of `kind` in a directory `name`, unless it may not
/// be mounted.
fn mounted(name: &str, kind: &CStr, options: Option<&CStr>, body: impl FnOnce(&Scratch)) {
    let namespaces = libc::CLONE_NEWNS;
    if !may_unshare(namespaces) {
        return;
    }
    let scratch = Scratch::new(name);
    Child::runs(|| {
        unshare(namespaces).expect("it was permitted before");
        let (none, all) = (ptr::null(), libc::MS_REC | libc::MS_PRIVATE);
        // SAFETY: a string that ends in zero. The mount below is then seen by this child alone.
        unsafe { libc::mount(none, c"/".as_ptr(), none, all, ptr::null()) };
        let target = CString::new(scratch.0.as_os_str().as_bytes()).expect("no zero in it");
        let (kind, options) = (kind.as_ptr(), options.map_or(ptr::null(), CStr::as_ptr));
        // SAFETY: strings that end in zero; the mount is in a namespace of this child.
        if unsafe { libc::mount(kind, target.as_ptr(), kind, 0, options.cast()) } != 0 {
            println!("not tested: no file system may be mounted: {}", io::Error::last_os_error());
            return;
        }
        body(&scratch);
    })
    .ends();
}

/// A file system of 64 KiB, most of which another file has.
#[test]
fn a_full_disk_is_an_error_and_leaves_no_file() {
    mounted("full", c"tmpfs", Some(c"size=64k"), |scratch| {
        fs::write(scratch.0.join("other"), [1; 56 << 10]).expect("room for it");
        let create = || Region::<Mutex<u64>>::options().create(scratch.file(), 0o600);
        match create() {
            Err(RegionError::NoSpace { source, .. }) => assert_eq!(source.raw_os_error(), Some(libc::ENOSPC)),
            other => panic!("{other:?}"),
        }
        assert!(!scratch.file().exists());
        // With room, on the same file system, the region has its space for good.
        fs::remove_file(scratch.0.join("other")).expect("it is there");
        let region = create().expect("there is room now");
        let filled = fs::write(scratch.0.join("other"), [1; 64 << 10]);
        assert!(filled.is_err(), "the file system was larger than it said");
        let me = joined(&region);
        *region.lock(&me).unwrap() += 1;
    });
}

/// A file system that rounds the size of a file up to huge pages: the region would never be opened
/// again.
#[test]
fn a_file_system_of_huge_pages_is_refused_and_keeps_no_file() {
    mounted("huge", c"hugetlbfs", None, |scratch| {
        let error = Region::<Mutex<u64>>::options().create(scratch.file(), 0o600).unwrap_err();
        assert!(matches!(error, RegionError::HugePages), "{error}");
        assert!(!scratch.file().exists());
    });
}

/// What the documentation of a region says of truncation: a SIGBUS in each process that touches a
/// page which is gone, and a typed error for those that come later.
#[test]
fn a_truncated_file_is_a_sigbus_for_those_that_have_it_mapped() {
    let scratch = Scratch::new("truncated");
    let _watch = watch("truncation", || "a process waits for ever".into());
    let region = Region::<Mutex<u64>>::options().create(scratch.file(), 0o600).unwrap();
    let size = fs::metadata(scratch.file()).unwrap().len();
    let child = Child::runs(|| {
        let me = joined(&region);
        let guard = region.lock(&me).unwrap();
        // SAFETY: waits for a signal, which this process has no handler for but the one below.
        unsafe { libc::signal(libc::SIGUSR1, nothing as *const () as libc::sighandler_t) };
        Child::pauses();
        drop(guard);
    })
    .sleeps(|| region.is_locked());
    fs::OpenOptions::new().write(true).open(scratch.file()).unwrap().set_len(4096).unwrap();
    child.signal(libc::SIGUSR1);
    assert_eq!(libc::WTERMSIG(child.waited()), libc::SIGBUS);
    let error = Region::<Mutex<u64>>::options().open(scratch.file()).unwrap_err();
    assert!(matches!(error, RegionError::Truncated { expected, found: 4096 } if expected == size), "{error}");
}

extern "C" fn nothing(_: libc::c_int) {}

/// Maps the file of a region for reading.
fn mapped_for_reading(path: &Path, size: usize) -> *const AtomicU32 {
    let file = fs::File::open(path).expect("it may be read");
    let (none, fd) = (ptr::null_mut(), file.as_raw_fd());
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(none, size, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    base.cast()
}

/// A process that may only read the file can sleep on a lock's baton, and so absorb a wake-up. The
/// waiter looks again by itself: it is late, and not lost.
#[test]
fn a_reader_that_absorbs_a_wake_up_delays_a_waiter_by_a_look() {
    let scratch = Scratch::new("reader");
    let _watch = watch("a reader", || "a waiter sleeps for ever".into());
    let counts = Mapping::shared();
    // SAFETY: the mapping is zeroed, as long as this function runs, and accessed as nothing else.
    let [begun, absorbed] = unsafe { &*counts.place::<[AtomicU32; 2]>() };
    let region = Region::<Mutex<u64>>::options().create(scratch.file(), 0o600).unwrap();
    let word = ptr::from_ref(&*region).addr() - region.base().addr().get();
    let size = fs::metadata(scratch.file()).unwrap().len() as usize;
    let me = joined(&region);
    let guard = region.lock(&me).unwrap();
    let thief = Child::runs(|| {
        let base = mapped_for_reading(&scratch.file(), size);
        // SAFETY: the second word of the root is the baton of its mutex, inside of the mapping.
        let word = unsafe { &*base.byte_add(word + 4) };
        let (seen, never) = (word.load(Relaxed), ptr::null::<libc::timespec>());
        begun.fetch_add(1, Relaxed);
        // SAFETY: the word lives as long as the mapping.
        let slept = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, never) };
        absorbed.store(u32::from(slept == 0), Relaxed);
        // SAFETY: the kernel refuses the write.
        let locked = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_LOCK_PI, 0, never) };
        let error = io::Error::last_os_error().raw_os_error();
        assert_eq!((locked, error), (-1, Some(libc::EFAULT)), "it can write");
    })
    .sleeps(|| begun.load(Relaxed) == 1);
    let waiter = Child::runs(|| {
        let me = joined(&region);
        begun.fetch_add(1, Relaxed);
        *region.lock(&me).unwrap() += 1;
    })
    .sleeps(|| begun.load(Relaxed) == 2);
    drop(guard);
    thief.ends();
    assert_eq!(absorbed.load(Relaxed), 1, "the reader slept in front of the waiter");
    waiter.ends();
    assert_eq!(*region.lock(&me).unwrap(), 1);
}
