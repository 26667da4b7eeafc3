//! What a process leaves behind that is killed while it waits: the others go on.

use std::time::Duration;
use ulocks_calock::{CalockWith, Every, Interval, State};
use ulocks_core::Shared;
use ulocks_core::meter::Counted;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::Child;
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::watch;

type Lock<I = Every<1_000_000>> = CalockWith<u32, Shared<NoSpin>, I>;

fn state<I: Interval>(lock: &Lock<I>) -> State {
    // SAFETY: the raw mutex is only asked for its state.
    unsafe { lock.raw() }.inner().state()
}

/// A child that locks, adds one, unlocks and ends.
fn adds_one<I: Interval>(lock: &Lock<I>) -> Child {
    Child::runs(|| *lock.lock() += 1)
}

/// Returns when `child` sleeps in the kernel and `seen` holds for the lock.
fn asleep<I: Interval>(child: Child, lock: &Lock<I>, seen: impl Fn(State) -> bool) -> Child {
    child.sleeps(|| seen(state(lock)))
}

fn with_a_lock<I: Interval>(name: &str, test: impl Fn(&Lock<I>)) {
    let mapping = Mapping::shared();
    let place = mapping.place::<Lock<I>>();
    // SAFETY: a fresh page that is large enough, zeroed, which is an unlocked mutex around zero.
    let lock = unsafe { &*place };
    let address = place.expose_provenance();
    let _watchdog = watch(name, move || {
        // SAFETY: the mapping outlives the watchdog.
        let lock = unsafe { &*std::ptr::with_exposed_provenance::<Lock<I>>(address) };
        format!("{:?}", state(lock))
    });
    test(lock);
}

const PROMOTED: fn(State) -> bool = |state| state.0 & State::PROMOTED != 0;

#[test]
fn a_standby_that_dies_has_a_successor() {
    with_a_lock("standby killed", |lock: &Lock| {
        let held = lock.lock();
        let standby = asleep(adds_one(lock), lock, |state| state.parked() == 1);
        let other = asleep(adds_one(lock), lock, |state| state.parked() == 2);
        standby.killed();
        drop(held);
        other.ends();
        assert_eq!(*lock.lock(), 1);
        assert_eq!(state(lock).parked(), 1, "the dead stays counted");
    });
}

#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed() {
    with_a_lock("promoted killed", |lock: &Lock| {
        let held = lock.lock();
        let promoted = asleep(adds_one(lock), lock, PROMOTED);
        let other = asleep(adds_one(lock), lock, |state| state.parked() == 2);
        promoted.killed();
        drop(held);
        assert!(lock.try_lock().is_none(), "it is kept");
        other.ends();
        *lock.lock() += 1;
        assert_eq!(*lock.lock(), 2);
    });
}

/// Of many waiters a few watch at a time.
#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed_by_one_of_a_crowd() {
    const CROWD: u32 = 40;
    with_a_lock("promoted killed, a crowd waits", |lock: &Lock| {
        let held = lock.lock();
        let promoted = asleep(adds_one(lock), lock, PROMOTED);
        let others: Vec<_> = (0..CROWD).map(|_| adds_one(lock)).collect();
        let others: Vec<_> = others.into_iter().map(|other| other.sleeps(|| true)).collect();
        promoted.killed();
        drop(held);
        others.into_iter().for_each(Child::ends);
        assert_eq!(*lock.lock(), CROWD);
    });
}

#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed_for_an_arrival() {
    with_a_lock("promoted killed, nobody else waits", |lock: &Lock| {
        let held = lock.lock();
        asleep(adds_one(lock), lock, PROMOTED).killed();
        drop(held);
        *lock.lock() += 1;
        adds_one(lock).ends();
        assert_eq!(*lock.lock(), 2);
    });
}

/// None of them waits for as long as it takes to tell that another is dead.
#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed_for_waiters_that_give_up() {
    with_a_lock("promoted killed, the others give up", |lock: &Lock| {
        let held = lock.lock();
        asleep(adds_one(lock), lock, PROMOTED).killed();
        drop(held);
        let mut attempts = 1;
        while lock.try_lock_for(Duration::from_millis(50)).is_none() {
            attempts += 1;
        }
        assert!(attempts > 1, "it was kept");
    });
}

/// The standby wakes by itself and not by the watch.
#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed_by_the_standby() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing. Without SA_RESTART, a wait in the kernel ends.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    with_a_lock("promoted killed, the standby waits", |lock: &Lock<Every<500_000_000>>| {
        let held = lock.lock();
        let early = asleep(
            Child::runs(|| assert!(lock.try_lock_for(Duration::from_millis(100)).is_none())),
            lock,
            |state| state.parked() == 1,
        );
        let overdue = asleep(adds_one(lock), lock, |state| state.parked() == 2);
        let standby = asleep(adds_one(lock), lock, |state| state.parked() == 3);
        // No standby is left: it would have to be woken by a release.
        early.ends();
        // One of the others is overdue after two intervals, the other after three.
        std::thread::sleep(Duration::from_millis(2 * 500));
        standby.signal(libc::SIGUSR1);
        let standby = asleep(standby, lock, |state| state.0 & State::STANDBY != 0);
        overdue.signal(libc::SIGUSR1);
        asleep(overdue, lock, PROMOTED).killed();
        drop(held);
        standby.ends();
        assert_eq!(*lock.lock(), 1);
    });
}

#[test]
fn waiters_that_are_killed_at_any_moment_strand_nobody() {
    with_a_lock("killed at any moment", |lock: &Lock| {
        let mut acquired = 0;
        for round in 0..5 {
            let held = lock.lock();
            let [dead, alive] = [3, 2].map(|some| (0..some).map(|_| adds_one(lock)).collect::<Vec<_>>());
            std::thread::sleep(Duration::from_micros(1_000 * round));
            // None of them can have the lock.
            dead.into_iter().for_each(Child::killed);
            acquired += *held;
            drop(held);
            alive.into_iter().for_each(Child::ends);
            let mut all = lock.lock();
            acquired += *all;
            *all = 0;
        }
        assert_eq!(acquired, 5 * 2);
    });
}

/// The lock is never left free for longer than it takes to acquire it again, and a thread is woken
/// all the time.
#[test]
fn a_standby_that_dies_does_not_end_promotions_on_a_busy_lock() {
    // An interval in which the standby can be killed before it is promoted.
    type Counting = CalockWith<bool, Shared<NoSpin, Counted>, Every<400_000_000>>;
    let mapping = Mapping::shared();
    let place = mapping.place::<Counting>();
    // SAFETY: a fresh page that is large enough, zeroed, which is an unlocked mutex around false.
    let lock = unsafe { &*place };
    let address = place.expose_provenance();
    let look = move || {
        // SAFETY: the mapping outlives the test; the raw mutex is only asked for its state and
        // counters.
        let raw = unsafe { (*std::ptr::with_exposed_provenance::<Counting>(address)).raw() }.inner();
        (raw.state(), raw.meter().snapshot().promoted)
    };
    let _watchdog = watch("busy, standby killed", move || format!("{:?}", look()));
    let user = || Child::runs(|| while !std::mem::replace(&mut *lock.lock(), false) {});
    let held = lock.lock();
    let standby = user().sleeps(|| look().0.0 & State::STANDBY != 0);
    let others = [user(), user()];
    standby.killed();
    assert_eq!(look().1, 0, "it was not killed in time");
    drop(held);
    let hold = |stop: bool| {
        let mut held = lock.lock();
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_micros(300) {
            std::hint::spin_loop();
        }
        *held = stop;
    };
    // On a busy machine the standbys acquire before they are promoted. The flag of the dead would
    // stay, and no waiter be promoted.
    let (mut left, mut was_set) = (0, true);
    while look().1 + left < 2 {
        hold(false);
        let is_set = look().0.0 & State::STANDBY != 0;
        left += u64::from(was_set && !is_set);
        was_set = is_set;
    }
    others.each_ref().iter().for_each(|_| {
        hold(true);
        while *lock.lock() {
            std::thread::yield_now();
        }
    });
    others.into_iter().for_each(Child::ends);
}
