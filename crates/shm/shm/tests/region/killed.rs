//! Processes are killed while they create, attach, join, leave and detach: at each of their
//! instructions, between their system calls, and at random. The next one gets in, and no slot is
//! lost.

use super::scratch::{Scratch, alone, turn};
use super::traced::{beside, step, stops, wait};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;
use ulocks_core::Shared;
use ulocks_core::sync::{AtomicU32, Ordering::Relaxed};
use ulocks_shm::{Attached, LockError, Mutex, Options, Region, RegionError, SharedSafe};
use ulocks_testkit::Child;
use ulocks_testkit::watchdog::watch;
use ulocks_unfair::BargingMutexWith;

const SLOTS: u32 = 8;
/// What a prepared root has.
const PREPARED: u32 = 7;

#[derive(SharedSafe)]
#[repr(C)]
struct Life {
    prepared: AtomicU32,
    plain: BargingMutexWith<u32, Shared>,
    robust: Mutex<u32>,
}

fn options() -> Options<Life> {
    Region::options().participants(SLOTS).wait(Duration::from_secs(60))
}

/// Opens the region at `path`, or creates it. It is prepared then.
fn opens(path: &Path) -> Region<Life> {
    let region = options().create_or_open_with(path, 0o600, |region| {
        region.prepared.store(PREPARED, Relaxed);
        Ok(())
    });
    let region = region.unwrap_or_else(|error| panic!("a file that nobody can open: {error}"));
    assert_eq!(region.prepared.load(Relaxed), PREPARED, "a root that is not prepared");
    region
}

/// The calling thread takes part, changes the number under the robust mutex, and leaves.
fn takes_part(region: &Region<Life>) {
    let part = region.with_member(|me| match region.robust.lock(me) {
        Ok(mut number) => *number += 1,
        Err(LockError::OwnerDied(mut number)) => number.mark_consistent(),
        Err(error) => panic!("{error}"),
    });
    part.expect("a slot");
}

/// Each slot of the region can be had by this process.
fn has_all_slots(region: &Region<Life>) {
    fn at_most(region: &Region<Life>) -> u32 {
        region.with_member(|_| 1 + at_most(region)).unwrap_or(0)
    }
    assert_eq!(at_most(region), SLOTS, "slots are lost");
}

/// All that a process does with a region.
fn lives(path: &Path) {
    let region = opens(path);
    takes_part(&region);
    region.detach().expect("no thread takes part");
}

/// A child that stops itself, and then does that.
fn traced(body: impl FnOnce()) -> libc::pid_t {
    let child = Child::runs(|| {
        stops();
        body();
    });
    wait(child.id());
    child.id()
}

fn kill(child: libc::pid_t) {
    // SAFETY: our child.
    unsafe { libc::kill(child, libc::SIGKILL) };
    wait(child);
}

/// Where a process is killed: at one of so many instructions, or before and after each system call.
/// Between two calls a process changes nothing that others see but the header, and the words of its
/// slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Point {
    Instruction { stride: usize },
    SystemCall,
}

/// A process is killed that creates the region, if `before` makes none; that resets it, or that
/// joins another.
fn a_death_at_any(point: Point, before: impl Fn(&Path) -> Option<Region<Life>>) {
    let stride = match point {
        Point::Instruction { stride } => {
            std::env::var("ULOCKS_STEPS").map_or(stride, |text| text.parse().expect("ULOCKS_STEPS: a number"))
        }
        Point::SystemCall => 1,
    };
    for points in (0..).step_by(stride) {
        let scratch = Scratch::new();
        let other = before(scratch.path());
        let child = traced(|| lives(scratch.path()));
        let lives = match point {
            Point::Instruction { .. } => step(child, points),
            Point::SystemCall => (0..points).all(|_| to_system_call(child)),
        };
        if lives {
            kill(child);
        }
        let region = opens(scratch.path());
        assert_eq!(region.attached() == Attached::Joined, other.is_some());
        takes_part(&region);
        has_all_slots(&region);
        assert!(other.is_some() || !region.plain.is_locked());
        if !lives {
            let least = if point == Point::SystemCall { 20 } else { 1_000 };
            assert!(points > least, "{points} steps are too few for a life");
            break;
        }
    }
}

/// Of a process that creates, of one that resets, and of one that joins.
fn deaths_at_any(point: Point) {
    a_death_at_any(point, |_| None);
    a_death_at_any(point, |path| {
        let region = opens(path);
        std::mem::forget(region.plain.lock());
        None
    });
    a_death_at_any(point, |path| Some(opens(path)));
}

#[test]
fn a_process_may_die_at_any_system_call() {
    let _turn = turn();
    deaths_at_any(Point::SystemCall);
}

/// `ULOCKS_STEPS=1` kills at each.
#[test]
fn a_process_may_die_at_any_instruction() {
    let _turn = turn();
    deaths_at_any(Point::Instruction { stride: 4_999 });
}

/// While a creator has made the file and has not locked it, another process fills the file, and
/// fails to prepare it. The creator makes the region: it need not fail.
#[test]
fn a_creator_outlives_another_that_has_failed_with_its_file() {
    let _turn = turn();
    let mut failures = 0;
    for calls in 0.. {
        let scratch = Scratch::new();
        let child = traced(|| lives(scratch.path()));
        let lives = (0..calls).all(|_| to_system_call(child));
        if lives {
            let other = options().wait(Duration::ZERO).create_or_open_with(scratch.path(), 0o600, |_| {
                Err(std::io::Error::other("no configuration"))
            });
            // It had made no file of its own, or had removed it.
            failures += u32::from(scratch.path().exists() && matches!(other, Err(RegionError::Io { .. })));
            drop(other);
            while to_system_call(child) {}
        } else {
            break;
        }
    }
    assert_ne!(failures, 0, "no attempt has failed with the file of another");
}

/// Runs `child` to its next system call, or out of it. Whether it still lives.
fn to_system_call(child: libc::pid_t) -> bool {
    let status = beside(child, || {
        // SAFETY: a stopped child that is traced.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0) }, 0);
        wait(child)
    });
    let has_ended = libc::WIFEXITED(status);
    assert!(!has_ended || libc::WEXITSTATUS(status) == 0, "a child failed");
    !has_ended
}

/// A process with the exclusive lock dies before it has reset the region, while another attaches:
/// that one is not taken in by the lock that the dead one had.
#[test]
fn a_death_before_a_reset_leaves_it_to_the_next() {
    let (_turn, scratch) = alone();
    for calls in 0.. {
        let region = opens(scratch.path());
        std::mem::forget(region.plain.lock());
        drop(region);
        let dying = OpenOptions::new().read(true).write(true).open(scratch.path()).expect("the file");
        // SAFETY: all-zero bytes are a `flock`, whose fields are numbers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        (lock.l_type, lock.l_len) = (libc::F_WRLCK as libc::c_short, 1);
        // SAFETY: a `flock` whose `l_pid` is zero, as the command demands.
        let locked = unsafe { libc::fcntl(dying.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
        assert_eq!(locked, 0);
        let child = traced(|| {
            let path = scratch.path();
            // The child has a copy of the lock, which is the dying process's.
            // SAFETY: nothing of the child uses the descriptor.
            unsafe { libc::close(dying.as_raw_fd()) };
            let region = opens(path);
            assert!(!region.plain.is_locked(), "a lock of a dead process");
        });
        let lives = (0..calls).all(|_| to_system_call(child));
        drop(dying);
        assert!(lives, "it attached beside a process that is about to reset");
        while to_system_call(child) {}
        if calls == 60 {
            break;
        }
    }
}

/// 300 children are killed, or as many as `ULOCKS_KILLS` says. Some join and leave a region
/// that this process is attached to; the others create another one, reset it and detach from it.
#[test]
fn kills_at_random_lose_no_slot_and_leave_no_file_that_nobody_can_open() {
    let _turn = turn();
    let _watch = watch("kills of creators and joiners", || "a process waits for ever".into());
    let kills: u32 =
        std::env::var("ULOCKS_KILLS").map_or(300, |text| text.parse().expect("ULOCKS_KILLS: a number"));
    let (joined, fresh) = (Scratch::new(), Scratch::new());
    let region = opens(joined.path());
    let (mut created, mut killed) = (0, 0);
    for kill in 0_u32.. {
        if killed >= kills {
            break;
        }
        let joiner = Child::runs(|| {
            loop {
                takes_part(&region);
            }
        });
        // Alone it removes the file each time, and so creates it. Two do not, so that one attaches
        // while the other resets or detaches.
        let creates = kill % 2 == 0;
        let creators: Vec<_> = (0..if creates { 1 } else { 2 })
            .map(|_| {
                Child::runs(|| {
                    loop {
                        lives(fresh.path());
                        if creates {
                            let _ = std::fs::remove_file(fresh.path());
                        }
                    }
                })
            })
            .collect();
        // Most of them soon, while the first ones attach.
        let longest = if kill % 4 == 0 { 3_000 } else { 900 };
        std::thread::sleep(Duration::from_micros(u64::from(kill.wrapping_mul(7919) % longest)));
        joiner.killed();
        killed += 1 + creators.len() as u32;
        creators.into_iter().for_each(Child::killed);
        let now = opens(fresh.path());
        created += u32::from(now.attached() == Attached::Created);
        has_all_slots(&now);
        drop(now);
        if kill % 16 == 0 {
            has_all_slots(&region);
        }
    }
    has_all_slots(&region);
    println!("{killed} kills; the next process made the region {created} times");
}
