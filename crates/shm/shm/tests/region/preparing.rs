//! The root is prepared before another process gets it.

use super::Root;
use super::scratch::{Scratch, alone, turn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_shm::{Attached, Options, Region, RegionError};
use ulocks_testkit::Child;

fn options() -> Options<Root> {
    Region::options().wait(Duration::from_secs(60))
}

/// Opens the region, and counts what it was prepared for.
fn prepared(scratch: &Scratch) -> (Region<Root>, Option<Attached>) {
    let mut seen = None;
    let region = options().create_or_open_with(scratch.path(), 0o600, |region| {
        assert!(!region.total.is_locked());
        region.plain.fetch_add(1, Relaxed);
        seen = Some(region.attached());
        Ok(())
    });
    (region.expect("a region"), seen)
}

#[test]
fn a_root_is_prepared_when_it_is_new_and_when_it_is_reset() {
    let (_turn, scratch) = alone();
    for (times, expected) in (1..).zip([Attached::Created, Attached::Reset, Attached::Reset]) {
        let (region, seen) = prepared(&scratch);
        assert_eq!((region.attached(), seen, region.plain.load(Relaxed)), (expected, Some(expected), times));
        let (joined, seen) = prepared(&scratch);
        assert_eq!((joined.attached(), seen, joined.plain.load(Relaxed)), (Attached::Joined, None, times));
        std::mem::forget(region.total.lock());
    }
    // An empty file, and one whose creator has died, are new.
    for bytes in [&[][..], b"ULOCKNEW"] {
        let (region, seen) = prepared(&Scratch::with(bytes));
        assert_eq!((seen, region.plain.load(Relaxed)), (Some(Attached::Created), 1));
    }
}

/// Eight begin at once. Whoever gets the region finds it prepared, once.
#[test]
fn nobody_sees_a_root_that_is_not_prepared() {
    let _turn = turn();
    for _ in 0..10 {
        let scratch = Scratch::new();
        let regions: Vec<_> = std::thread::scope(|scope| {
            let opens = || {
                let region = options().create_or_open_with(scratch.path(), 0o600, |region| {
                    std::thread::sleep(Duration::from_millis(2));
                    region.plain.fetch_add(7, Relaxed);
                    Ok(())
                });
                let region = region.expect("a region");
                assert_eq!(region.plain.load(Relaxed), 7);
                region
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(opens)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
        });
        assert_eq!(regions.iter().filter(|region| region.attached() == Attached::Created).count(), 1);
    }
}

#[test]
fn what_fails_to_be_prepared_is_prepared_by_the_next() {
    let (_turn, scratch) = alone();
    let fails = || {
        options().create_or_open_with(scratch.path(), 0o600, |region| {
            region.plain.store(99, Relaxed);
            Err(io::Error::other("no configuration"))
        })
    };
    let panics = || {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            options().create_or_open_with(scratch.path(), 0o600, |region| {
                region.plain.store(99, Relaxed);
                panic!("planned")
            })
        }));
        assert!(panicked.is_err());
    };
    let dies = || {
        Child::runs(|| {
            let made = options().create_or_open_with(scratch.path(), 0o600, |region| {
                region.plain.store(99, Relaxed);
                Child::exits()
            });
            drop(made);
        })
        .ends();
    };
    let error = fails().expect_err("it failed");
    assert!(matches!(error, RegionError::Io { step: "prepare the root", .. }), "{error}");
    assert!(error.to_string().contains("no configuration"), "{error}");
    assert!(!scratch.path().exists(), "a new file is removed");
    let attempts: [&dyn Fn(); 3] = [&|| drop(fails()), &panics, &dies];
    for attempt in attempts {
        // A new region is zeroed again.
        let _ = std::fs::remove_file(scratch.path());
        attempt();
        let (region, seen) = prepared(&scratch);
        assert_eq!((seen, region.plain.load(Relaxed)), (Some(Attached::Created), 1));
        drop(region);
        // An old one keeps its data, and is reset and prepared again.
        attempt();
        let (region, seen) = prepared(&scratch);
        assert_eq!((seen, region.plain.load(Relaxed), region.epoch()), (Some(Attached::Reset), 100, 3));
    }
}

/// While a process prepares a new region, another program takes the name for a file of its own.
#[test]
fn a_failure_removes_no_file_of_another() {
    let (_turn, scratch) = alone();
    let made = options().create_or_open_with(scratch.path(), 0o600, |_| {
        std::fs::remove_file(scratch.path())?;
        std::fs::write(scratch.path(), b"precious")?;
        Err(io::Error::other("no configuration"))
    });
    assert!(made.is_err());
    assert_eq!(scratch.bytes(), b"precious");
}

/// A child of a fork has a copy of the descriptor, and so of the lock that its parent had.
#[test]
fn a_failure_keeps_nobody_out_although_a_child_lives() {
    let _turn = turn();
    // A region that is new, one of an empty file, and one that is reset.
    let (created, empty, left) = (Scratch::new(), Scratch::with(b""), Scratch::new());
    drop(prepared(&left));
    for (scratch, panics) in
        [(&created, false), (&created, true), (&empty, false), (&empty, true), (&left, false), (&left, true)]
    {
        let mut children = Vec::new();
        let made = catch_unwind(AssertUnwindSafe(|| {
            options().create_or_open_with(scratch.path(), 0o600, |_| {
                children.push(Child::runs(|| {
                    Child::pauses();
                }));
                assert!(!panics, "planned");
                Err(io::Error::other("no configuration"))
            })
        }));
        assert!(!matches!(made, Ok(Ok(_))));
        let next = options().wait(Duration::ZERO).create_or_open(scratch.path(), 0o600);
        let attached = next.map(|region| region.attached());
        let expected = if std::ptr::eq(scratch, &left) { Attached::Reset } else { Attached::Created };
        assert!(matches!(attached, Ok(attached) if attached == expected), "panics {panics}: {attached:?}");
        children.into_iter().for_each(Child::killed);
        if expected == Attached::Created {
            std::fs::write(scratch.path(), b"").expect("it is ours");
        }
        if std::ptr::eq(scratch, &created) {
            std::fs::remove_file(scratch.path()).expect("it is ours");
        }
    }
}

/// The child returns from the preparation, too, and has a copy of the lock: others would get in.
#[test]
fn a_child_of_a_fork_in_a_preparation_ends_it_for_nobody() {
    let _turn = turn();
    for fails in [false, true] {
        let scratch = Scratch::new();
        let (mut child, mut meanwhile) = (0, None);
        let made = catch_unwind(AssertUnwindSafe(|| {
            options().create_or_open_with(scratch.path(), 0o600, |_| {
                // SAFETY: the child ends by `_exit`, after it has left the preparation.
                child = unsafe { libc::fork() };
                if child == 0 {
                    return if fails { Err(io::Error::other("the child fails")) } else { Ok(()) };
                }
                // SAFETY: a child of this process, whose status is not asked for.
                assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
                meanwhile = options().wait(Duration::ZERO).open(scratch.path()).err();
                Ok(())
            })
        }));
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        assert!(matches!(made, Ok(Ok(_))), "{made:?}");
        assert!(matches!(meanwhile, Some(RegionError::Busy)), "another one got in: {meanwhile:?}");
    }
}

/// The members of a region can be had while it is prepared.
#[test]
fn a_thread_takes_part_while_it_prepares() {
    use ulocks_shm::Semaphore;
    let (_turn, scratch) = alone();
    let region = Region::<Semaphore<64>>::options().create_or_open_with(scratch.path(), 0o600, |region| {
        let added = region.with_member(|me| region.add_permits(me, 3)).map_err(io::Error::other)?;
        added.map_err(io::Error::other)
    });
    assert_eq!(region.expect("a region").available_permits(), 3);
}
