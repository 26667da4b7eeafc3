//! When a handler runs, and what it gets, struck at a known place: it waits for the write of its
//! own thread and for nothing else, and reads wherever its class is open.

use crate::strikes::{Seen, Struck, keeping_errno, real_time, strike, strike_me};
use crate::threads::until;
use crate::{ALL, ByAll};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use ulocks_core::Private;
use ulocks_psrwlock::signal::Soft;
use ulocks_psrwlock::{
    ByClass, Configuration, Eager, Nested, Partial, PhaseFair,
    PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWriteGuard as WriteGuard, Sifted, Urgent,
};
use ulocks_testkit::task;
use ulocks_testkit::watchdog::watch;

const LONG: Duration = Duration::from_secs(60);

type AtSlots = Sifted<ALL, Private, PhaseFair, Eager>;

/// Strikes this thread and checks that the handler runs at once, and reads, or finds its class
/// shut.
fn runs_at_once(seen: &Seen, signal: i32, reads: bool) {
    let [handled, read, shut] = seen.counts();
    keeping_errno(|| strike_me(signal));
    assert_eq!(seen.counts(), [handled + 1, read + usize::from(reads), shut + usize::from(!reads)]);
    assert!(!Soft::is_up());
}

/// Strikes this thread, which writes, and checks that the handler runs in `release`, and reads.
fn runs_in<R>(seen: &Seen, signal: i32, release: impl FnOnce() -> R) -> R {
    let (before, deferred) = (seen.counts(), seen.deferred.load(SeqCst));
    strike_me(signal);
    strike_me(signal);
    assert_eq!(seen.counts(), before, "it waits");
    let result = keeping_errno(release);
    assert_eq!(seen.counts(), [before[0] + 2, before[1] + 2, before[2]], "both were run, and could read");
    assert_eq!(
        seen.deferred.load(SeqCst),
        deferred + 1,
        "one was put aside, the other stayed with the kernel"
    );
    assert!(!Soft::is_up());
    result
}

fn at_each_release<D: Configuration>(signal: i32) {
    let struck = Struck::<D>::new();
    let installed = struck.install(&[signal]);
    let Struck { lock, seen } = struck;
    runs_in(seen, signal, {
        let held = lock.write();
        || drop(held)
    });
    runs_in(seen, signal, {
        let held = lock.try_write().expect("free");
        || drop(held)
    });
    runs_in(seen, signal, {
        let held = lock.try_write_for(LONG).expect("free");
        || drop(held)
    });
    runs_in(seen, signal, {
        let held = lock.write();
        || WriteGuard::unlock_fair(held)
    });
    let reader = runs_in(seen, signal, {
        let held = lock.write();
        || WriteGuard::downgrade(held)
    });
    runs_at_once(seen, signal, true);
    drop(reader);
    let upgradable = runs_in(seen, signal, {
        let held = lock.write();
        || WriteGuard::downgrade_to_upgradable(held)
    });
    runs_at_once(seen, signal, true);
    let held = UpgradableGuard::upgrade(upgradable);
    runs_in(seen, signal, || drop(held));
    let held = UpgradableGuard::try_upgrade(lock.upgradable_read()).expect("nobody reads");
    runs_in(seen, signal, || drop(held));
    seen.check();
    installed.uninstall();
}

#[test]
fn a_handler_waits_for_the_write_of_its_own_thread() {
    at_each_release::<ByAll>(real_time(2));
    at_each_release::<AtSlots>(real_time(2));
}

/// A thread that waits for the lock in some way, and is struck meanwhile.
fn while_it_waits<D: Configuration>(
    struck: Struck<D>,
    signal: i32,
    waits: impl FnOnce() + Send,
    is_waiting: impl Fn() -> bool,
    reads: bool,
    release: impl FnOnce(),
) {
    let seen = struck.seen;
    std::thread::scope(|scope| {
        let (id, waiter) = task::begun(scope, || keeping_errno(waits));
        until(&is_waiting);
        task::until_asleep(&[id]);
        for _ in 0..5 {
            let [handled, read, shut] = seen.counts();
            strike(id, signal);
            until(|| seen.handled.load(SeqCst) == handled + 1);
            assert_eq!(seen.counts(), [handled + 1, read + usize::from(reads), shut + usize::from(!reads)]);
        }
        assert!(!waiter.is_finished() && is_waiting(), "the wait goes on");
        release();
        waiter.join().unwrap();
    });
}

#[test]
fn a_handler_runs_while_its_thread_waits() {
    fn check<D: Configuration>(signal: i32) {
        let struck = Struck::<D>::new();
        let installed = struck.install(&[signal]);
        let Struck { lock, seen } = struck;
        let _watchdog = watch("struck while it waits", move || format!("{:?}, {seen:?}", lock.state()));
        macro_rules! while_it_waits {
            ($held:expr, $is_waiting:expr, $reads:literal, $waits:expr) => {{
                let held = $held;
                while_it_waits(struck, signal, || _ = $waits, $is_waiting, $reads, || drop(held));
            }};
        }
        // Behind slow readers: the class of handlers is open.
        let level = |level| move || lock.state().level() == level;
        while_it_waits!(lock.read(), level(1), true, lock.write().add_one());
        while_it_waits!(lock.read_in::<Urgent>(), level(2), true, lock.write().add_one());
        while_it_waits!(
            lock.read_in::<Nested>(),
            level(3),
            true,
            lock.try_write_for(LONG).expect("in time").add_one()
        );
        while_it_waits!(
            lock.read(),
            level(1),
            true,
            UpgradableGuard::upgrade(lock.upgradable_read()).add_one()
        );
        while_it_waits!(lock.read_in::<Nested>(), level(3), true, {
            let upgraded = UpgradableGuard::try_upgrade_for(lock.upgradable_read(), LONG);
            upgraded.map(|mut held| held.add_one()).expect("in time")
        });
        while_it_waits!(lock.read(), level(1), true, Partial::exclude::<Nested>(&mut lock.upgradable_read()));
        // Behind an upgradable reader.
        while_it_waits!(lock.upgradable_read(), level(0), true, lock.write().add_one());
        while_it_waits!(
            lock.upgradable_read(),
            level(0),
            true,
            lock.try_upgradable_read_for(LONG).expect("in time")
        );
        // Behind a writer on another thread: the class is shut, and the handler gives up.
        while_it_waits!(lock.write(), level(4), false, lock.read().look());
        while_it_waits!(lock.write(), level(4), false, lock.read_in::<Nested>().look());
        while_it_waits!(lock.write(), level(4), false, lock.try_read_for(LONG).expect("in time").look());
        while_it_waits!(lock.write(), level(4), false, lock.write().add_one());
        while_it_waits!(lock.write(), level(4), false, lock.upgradable_read().look());
        seen.check();
        installed.uninstall();
    }
    check::<ByAll>(real_time(4));
    check::<AtSlots>(real_time(4));
}
