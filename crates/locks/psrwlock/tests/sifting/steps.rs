//! Writes in steps: what each poll says, and that a drop takes everything back.

use crate::threads::{asleep, until, with};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use ulocks_core::Private;
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Distributed, NESTED, Nested, Partial, PhaseFair, PsRwLock,
    PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWith, PsRwLockWriteGuard as WriteGuard, Sifted,
    Stage, State, ThreadClass, URGENT, Urgent,
};
use ulocks_testkit::task;

#[test]
fn each_poll_says_what_it_waits_for() {
    macro_rules! check {
        ($lock:expr) => {
            with("stages", $lock, |lock| {
                let upgradable = lock.upgradable_read();
                let (slow, urgent, nested) =
                    (lock.read(), lock.read_in::<Urgent>(), lock.read_in::<Nested>());
                let mut write = lock.write_begin();
                assert_eq!(lock.state().level(), 0, "it begins with the first poll");
                assert_eq!((write.poll(), write.data().is_none()), (Stage::Writer, true));
                assert_eq!(lock.state().level(), 0);
                drop(upgradable);
                for _ in 0..3 {
                    assert_eq!((write.poll(), write.data()), (Stage::Readers("Bulk"), Some(&0)));
                }
                assert!(lock.try_read().is_none() && lock.try_read_in::<Urgent>().is_some());
                drop(slow);
                assert_eq!(write.poll(), Stage::Readers("Urgent"));
                assert!(lock.try_read_in::<Urgent>().is_none() && lock.try_read_in::<Nested>().is_some());
                drop(urgent);
                let mut write = write.finish().expect_err("it is not ready");
                assert_eq!(write.poll(), Stage::Readers("Nested"));
                drop(nested);
                assert_eq!(write.poll(), Stage::Ready);
                assert!(lock.try_read_in::<Nested>().is_none());
                *write.finish().expect("it is ready") += 1;
                assert_eq!(*lock.read(), 1);
            })
        };
    }
    check!(PsRwLock::new(0));
    type Slots = Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Distributed<2>>;
    check!(PsRwLockWith::<i32, Slots>::new(0));
}

#[test]
fn a_drop_takes_back_what_the_polls_have_done() {
    with("drop", PsRwLock::new(0), |lock| {
        // Before the first poll, and behind another writer.
        drop(lock.write_begin());
        let held = lock.upgradable_read();
        let mut write = lock.write_begin();
        assert_eq!(write.poll(), Stage::Writer);
        drop(write);
        assert!(lock.try_write().is_none());
        drop(held);

        // At each stage, with readers that sleep because of it.
        macro_rules! at_the_stage_of {
            ($held:expr, $name:literal) => {
                let held = $held;
                let mut write = lock.write_begin();
                assert_eq!(write.poll(), Stage::Readers($name));
                thread::scope(|scope| {
                    let reader = asleep(scope, || *lock.read());
                    drop(write);
                    assert_eq!(reader.join().unwrap(), 0);
                });
                drop(held);
            };
        }
        at_the_stage_of!(lock.read(), "Bulk");
        at_the_stage_of!(lock.read_in::<Urgent>(), "Urgent");
        at_the_stage_of!(lock.read_in::<Nested>(), "Nested");

        // And when it would have been ready.
        let mut write = lock.write_begin();
        assert_eq!(write.poll(), Stage::Ready);
        assert_eq!(write.poll(), Stage::Ready);
        thread::scope(|scope| {
            let readers = [asleep(scope, || *lock.read()), asleep(scope, || *lock.read_in::<Nested>())];
            let writer = asleep(scope, || *lock.write() += 1);
            drop(write);
            assert!(readers.map(|reader| reader.join().unwrap()).iter().all(|&value| value <= 1));
            writer.join().unwrap();
        });
    });
}

#[test]
fn the_last_step_may_wait() {
    fn check<C: ThreadClass>(lock: &PsRwLock<u32>, stage: Stage) {
        let (is_inside, may_leave) = (AtomicBool::new(false), AtomicBool::new(false));
        let me = task::id();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _held = lock.read_in::<C>();
                is_inside.store(true, Relaxed);
                until(|| may_leave.load(Relaxed));
                is_inside.store(false, Relaxed);
            });
            until(|| is_inside.load(Relaxed));
            let mut write = lock.write_begin();
            assert_eq!(write.poll(), stage);
            scope.spawn(|| {
                task::until_asleep(&[me]);
                may_leave.store(true, Relaxed);
            });
            let mut write = write.wait();
            assert!(!is_inside.load(Relaxed), "it writes beside a reader");
            *write += 1;
        });
    }
    with("wait", PsRwLock::new(0), |lock| {
        *lock.write_begin().wait() += 1;
        check::<Bulk>(lock, Stage::Readers("Bulk"));
        check::<Urgent>(lock, Stage::Readers("Urgent"));
        check::<Nested>(lock, Stage::Readers("Nested"));
        assert_eq!(*lock.read(), 4);
    });
}

#[test]
fn a_poll_that_fails_is_the_next() {
    with("place", PsRwLock::new(0), |lock| {
        for fair in [false, true] {
            let held = lock.write();
            let mut write = lock.write_begin();
            assert_eq!(write.poll(), Stage::Writer);
            assert!(!write.news().has_come());
            if fair {
                WriteGuard::unlock_fair(held)
            } else {
                drop(held)
            };
            assert!(write.news().has_come());
            assert!(lock.state().is_owned(), "the write side is not kept for the write that is the next");
            assert!(lock.try_read().is_some(), "it is kept from writers only");
            assert_eq!(write.poll(), Stage::Ready, "it is the next");
            *write.finish().expect("it is ready") += 1;
            // The same behind an upgradable reader, and one that has shut readers out.
            for level in 0..2 {
                let mut held = lock.upgradable_read();
                if level == 1 {
                    Partial::exclude::<Bulk>(&mut held);
                }
                let mut write = lock.write_begin();
                assert_eq!(write.poll(), Stage::Writer);
                if fair {
                    UpgradableGuard::unlock_fair(held)
                } else {
                    drop(held)
                };
                assert!(write.news().has_come());
                assert!(lock.state().is_owned(), "the write side is not kept for the write that is the next");
                assert_eq!(write.poll(), Stage::Ready, "it is the next");
            }
        }
        assert_eq!(*lock.read(), 2);
    });
}

/// Of two one comes first, and the other asks again.
#[test]
fn of_several_each_has_its_turn() {
    with("several", PsRwLock::new(0), |lock| {
        let held = lock.write();
        let mut writes = [lock.write_begin(), lock.write_begin(), lock.write_begin()];
        writes.iter_mut().for_each(|write| assert_eq!(write.poll(), Stage::Writer));
        drop(held);
        for write in writes {
            assert!(write.news().has_come());
            let mut write = write;
            assert_eq!(write.poll(), Stage::Ready);
            *write.finish().expect("it is ready") += 1;
        }
        assert_eq!(*lock.read(), 3);
    });
}

/// A writer that writes again and again does not keep it out, however often it is polled.
#[test]
fn a_write_in_steps_beside_a_busy_writer() {
    with("busy", PsRwLock::new(0_u64), |lock| {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    let mut held = lock.write();
                    *held += 1;
                    (0..2_000).for_each(|_| std::hint::spin_loop());
                }
            });
            for _ in 0..20 {
                let mut write = lock.write_begin();
                while write.poll() != Stage::Ready {
                    write.news().wait();
                }
                drop(write.finish().expect("it is ready"));
            }
            done.store(true, Relaxed);
        });
    });
}

#[test]
fn what_is_kept_for_a_write_that_does_not_come_is_taken_by_others() {
    with("forgotten", PsRwLock::new(0), |lock| {
        // Forgotten, or dropped, before or after the write side is kept for it.
        for forgets in [true, false] {
            for first in [true, false] {
                let end = |write| if forgets { std::mem::forget(write) } else { drop(write) };
                let held = lock.write();
                let mut write = lock.write_begin();
                assert_eq!(write.poll(), Stage::Writer);
                let mut write = Some(write);
                if first && let Some(write) = write.take() {
                    end(write);
                }
                thread::scope(|scope| {
                    let waits = asleep(scope, || *lock.write() += 1);
                    drop(held);
                    if let Some(write) = write.take() {
                        end(write);
                    }
                    waits.join().unwrap();
                });
                *lock.write() += 1;
            }
            let held = lock.upgradable_read();
            let mut write = lock.write_begin();
            assert_eq!(write.poll(), Stage::Writer);
            std::mem::forget(write);
            drop(held);
            // Without a wait.
            *lock.try_write().expect("nobody has it") += 1;
        }
        assert_eq!(*lock.read(), 10);
    });
}

/// A thread sleeps until there is news, at each stage.
#[test]
fn news_wakes() {
    with("news", PsRwLock::new(0), |lock| {
        let mut upgradable = lock.upgradable_read();
        Partial::exclude::<Bulk>(&mut upgradable);
        let mut write = lock.write_begin();
        assert_eq!(write.poll(), Stage::Writer);
        assert_eq!(write.news().at_most(), None);
        let news = write.news();
        thread::scope(|scope| {
            let waits = asleep(scope, move || news.wait());
            drop(upgradable);
            waits.join().unwrap();
        });
        let reader = lock.read();
        assert_eq!(write.poll(), Stage::Readers("Bulk"));
        assert!(write.news().at_most().is_some());
        let news = write.news();
        assert!(!news.wait_for(std::time::Duration::ZERO));
        drop(reader);
        while write.poll() != Stage::Ready {
            write.news().wait();
        }
        drop(write);
        assert_eq!(lock.state(), State::UNLOCKED);
    });
}
