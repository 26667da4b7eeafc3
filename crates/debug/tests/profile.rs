//! The contention profile: what it counts, of what, and when.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use ulocks_core::task::AsyncMutex as _;
use ulocks_debug::profile::{self, LockLine, Profile, Sums};
use ulocks_debug::*;
use ulocks_testkit::Child;
use ulocks_testkit::allocations::{Counting, during};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `program` alone, with the profile on and empty.
fn profiled(program: impl FnOnce()) -> Profile {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    profile::reset();
    profile::start();
    program();
    profile::stop();
    profile::snapshot()
}

/// The line of a class.
fn class<'a>(profile: &'a Profile, name: &str) -> Option<&'a LockLine> {
    profile.classes().iter().find(|line| line.lock.name == name)
}

/// Waits until a thread waits for a lock of class `name`.
fn await_waiter(name: &str) {
    let is_so = || held().locks().iter().any(|held| held.lock.name == name && held.waiters > 0);
    ulocks_testkit::limit::until(&format!("a thread waits for `{name}`"), is_so);
}

#[test]
fn every_acquisition_is_counted() {
    static NAME: Class = Class::new("counted");
    let locks = [(); 2].map(|()| Mutex::new_in(&NAME, 0));
    let profile = profiled(|| {
        thread::scope(|scope| {
            for number in 0..4 {
                let locks = &locks;
                let work = move || {
                    for round in 0..500 {
                        *locks[usize::from(round % 5 == 0)].lock() += 1;
                    }
                };
                thread::Builder::new()
                    .name(format!("worker-{}", number % 2))
                    .spawn_scoped(scope, work)
                    .unwrap();
            }
        });
    });
    let line = class(&profile, "counted").unwrap();
    assert_eq!(line.sums.acquired, 2000);
    assert!(line.sums.held >= line.sums.longest_hold && !line.sums.longest_hold.is_zero());
    assert!(line.held_longest_at.is_some_and(|place| place.file().ends_with("tests/profile.rs")));
    let of = |name: &str| -> Vec<&Sums> {
        let sites = profile.sites().iter().filter(|site| site.thread == name && site.lock.name == "counted");
        sites.map(|site| &site.sums).collect()
    };
    for name in ["worker-0", "worker-1"] {
        assert_eq!(of(name).iter().map(|sums| sums.acquired).collect::<Vec<_>>(), [1000], "{name}");
    }
    let mut by_lock: Vec<u64> = profile
        .locks()
        .iter()
        .filter(|line| line.lock.name == "counted")
        .map(|line| line.sums.acquired)
        .collect();
    by_lock.sort_unstable();
    assert_eq!(by_lock, [400, 1600]);
    let sum: Duration = profile.sites().iter().map(|site| site.sums.held).sum();
    assert_eq!(sum, profile.classes().iter().map(|line| line.sums.held).sum());
}

#[test]
fn a_wait_and_a_hold_have_their_places() {
    static NAME: Class = Class::new("slow");
    let lock = FairMutex::new_in(&NAME, ());
    let (mut holds, mut waits) = (0, 0);
    let pause = Duration::from_millis(20);
    let profile = profiled(|| {
        thread::scope(|scope| {
            let waits = &mut waits;
            // A short hold by the same thread, at another place.
            drop(lock.lock());
            let (guard, line) = (lock.lock(), line!());
            holds = line;
            scope.spawn(|| {
                let (_guard, line) = (lock.lock(), line!());
                *waits = line;
            });
            await_waiter("slow");
            thread::sleep(pause);
            drop(guard);
        });
    });
    let LockLine { sums, waited_longest_at, held_longest_at, .. } = class(&profile, "slow").unwrap();
    assert_eq!((sums.acquired, sums.contended), (3, 1));
    assert_eq!(waited_longest_at.map(|place| place.line()), Some(waits));
    assert_eq!(held_longest_at.map(|place| place.line()), Some(holds));
    assert!(sums.waited >= pause && sums.longest_wait == sums.waited);
    assert!(sums.longest_hold >= pause && sums.longest_hold <= sums.held);
    assert!(profile.ran() >= sums.longest_hold);
    // The longest wait is first.
    assert_eq!(profile.top(1).classes()[0].lock.name, "slow");
    let text = profile.top(1).to_string();
    assert!(text.contains(&format!("waited longest at {}:{waits}:", file!())), "{text}");
    assert!(text.contains(&format!("held longest from {}:{holds}:", file!())), "{text}");
}

#[test]
fn readers_writers_and_upgrades_are_counted() {
    static NAME: Class = Class::new("shared");
    let lock = RwLock::new_in(&NAME, 0);
    let pause = Duration::from_millis(5);
    let profile = profiled(|| {
        let (first, second) = (lock.read(), thread::scope(|scope| scope.spawn(|| *lock.read()).join()));
        thread::scope(|scope| {
            scope.spawn(|| *lock.write() += second.unwrap());
            ulocks_testkit::limit::until("a thread waits", || !waiters().is_empty());
            thread::sleep(pause);
            drop(first);
        });
        // Each change of the access is an acquisition.
        let upgraded = RwLockUpgradableReadGuard::upgrade(lock.upgradable_read());
        drop(RwLockWriteGuard::downgrade(upgraded));
    });
    let LockLine { sums, .. } = class(&profile, "shared").unwrap();
    assert_eq!((sums.acquired, sums.contended), (6, 1));
    assert!(sums.waited >= pause && sums.longest_hold >= pause);
}

#[test]
fn a_wait_for_permits_is_a_wait() {
    static NAME: Class = Class::new("permits");
    let permits = Semaphore::new_in(&NAME, 0);
    // The name of this one is the line that waits for it first.
    let [without_class] = [0].map(Semaphore::new);
    let profile = profiled(|| {
        assert!(without_class.try_acquire_for(Duration::from_millis(1)).is_none());
        assert!(permits.try_acquire_for(Duration::from_millis(5)).is_none());
        permits.release(1).unwrap();
        drop(permits.acquire());
    });
    let LockLine { sums, .. } = class(&profile, "permits").unwrap();
    assert_eq!((sums.acquired, sums.contended), (0, 1));
    assert!(!sums.waited.is_zero() && sums.held.is_zero());
    assert!(!profile.to_string().contains("a plain lock"), "{profile}");
}

#[test]
fn a_wait_without_the_lock_is_a_wait() {
    static NAME: Class = Class::new("given up");
    let lock = Mutex::new_in(&NAME, ());
    let profile = profiled(|| {
        let _held = lock.lock();
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!(lock.try_lock().is_none());
                assert!(lock.try_lock_for(Duration::from_millis(5)).is_none());
            });
        });
    });
    let sums = &class(&profile, "given up").unwrap().sums;
    assert_eq!((sums.acquired, sums.contended), (1, 1));
    assert!(!sums.waited.is_zero());
}

#[test]
fn nothing_counts_while_it_is_off() {
    static NAME: Class = Class::new("off");
    let lock = Mutex::new_in(&NAME, ());
    let profile = profiled(|| {
        profile::stop();
        drop(lock.lock());
        assert!(!profile::is_on());
        let begun_before = lock.lock();
        profile::start();
        drop(begun_before);
    });
    assert!(class(&profile, "off").is_none(), "{profile}");
    let profile = profiled(|| {
        let begun_before = lock.lock();
        profile::reset();
        assert!(profile::is_on());
        drop(begun_before);
    });
    assert!(class(&profile, "off").is_none(), "{profile}");
    let profile = profiled(|| {
        let across = lock.lock();
        profile::stop();
        profile::start();
        drop(across);
        drop(lock.try_lock());
    });
    let sums = class(&profile, "off").unwrap().sums;
    assert_eq!(sums.acquired, 2);
    assert_eq!(sums.held, sums.longest_hold, "the hold across a pause is none");
}

#[test]
fn an_acquisition_allocates_once_for_each_place() {
    static NAME: Class = Class::new("steady");
    let (lock, other) = (Mutex::new_in(&NAME, 0), FairMutex::new(0));
    let profile = profiled(|| {
        let round = || {
            let mut outer = other.lock();
            *lock.lock() += 1;
            *outer += 1;
        };
        round();
        assert_eq!(during(|| (0..10_000).for_each(|_| round())).times, 0);
    });
    assert_eq!(class(&profile, "steady").unwrap().sums.acquired, 10_001);
}

#[test]
fn the_entries_of_a_thread_are_bounded() {
    static NAME: Class = Class::new("many");
    let locks: Vec<Mutex<()>> = (0..20_000).map(|_| Mutex::new_in(&NAME, ())).collect();
    let profile = profiled(|| {
        thread::scope(|scope| {
            // A thread of a name of its own has a table of its own.
            let work = || {
                let allocated = during(|| locks.iter().for_each(|lock| drop(lock.lock())));
                assert!(allocated.times < 4_200, "{allocated:?}");
            };
            thread::Builder::new().name("many".to_owned()).spawn_scoped(scope, work).unwrap();
        });
    });
    assert_eq!(class(&profile, "many").unwrap().sums.acquired, 20_000);
    // If there are many tables already, this one has entries of other tests.
    let own = profile.locks().iter().filter(|line| line.lock.name == "many").count();
    assert!((4_000..=4_096).contains(&own), "{own}");
}

#[test]
fn threads_of_many_names_share_a_line() {
    static NAME: Class = Class::new("names");
    let lock = Mutex::new_in(&NAME, ());
    let profile = profiled(|| {
        for number in 0..300 {
            let work = || drop(lock.lock());
            thread::scope(|scope| {
                thread::Builder::new().name(format!("name-{number}")).spawn_scoped(scope, work).unwrap();
            });
        }
    });
    let sites = profile.sites().iter().filter(|site| site.lock.name == "names");
    let (others, named): (Vec<_>, Vec<_>) = sites.partition(|site| site.thread == "(other threads)");
    assert!((200..=256).contains(&named.len()), "{}", named.len());
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].sums.acquired + named.len() as u64, 300);
}

#[test]
fn a_profile_is_read_while_it_is_reset() {
    static NAME: Class = Class::new("reset");
    let is_over = AtomicBool::new(false);
    let ready = Barrier::new(2);
    profiled(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let lock = Mutex::new_in(&NAME, 0_u64);
                ready.wait();
                while !is_over.load(Relaxed) {
                    *lock.lock() += 1;
                }
            });
            ready.wait();
            let mut seen = 0;
            let mut wrong = None;
            while seen < 2_000 && wrong.is_none() {
                profile::reset();
                while class(&profile::snapshot(), "reset").is_none() {
                    std::hint::spin_loop();
                }
                let profile = profile::snapshot();
                let sums = class(&profile, "reset").map(|line| line.sums).unwrap_or_default();
                // Sums of an older epoch would be longer than the profile has been on.
                wrong = (sums.held > profile.ran()).then_some((sums, profile));
                seen += 1;
            }
            is_over.store(true, Relaxed);
            assert!(wrong.is_none(), "sums of two epochs: {wrong:?}");
        });
    });
}

/// Whether `program` returns true in a child of a fork.
fn in_child(program: impl FnOnce() -> bool) -> bool {
    Child::runs(|| assert!(program())).waited() == 0
}

#[test]
fn the_child_of_a_fork_begins_with_nothing() {
    static NAME: Class = Class::new("forked");
    let lock = Mutex::new_in(&NAME, ());
    let profile = profiled(|| {
        drop(lock.lock());
        let before = std::time::Instant::now();
        let is_right = in_child(|| {
            drop(lock.lock());
            let profile = profile::snapshot();
            let acquired = class(&profile, "forked").map(|line| line.sums.acquired);
            acquired == Some(1) && profile.ran() <= before.elapsed()
        });
        assert!(is_right);
    });
    assert_eq!(class(&profile, "forked").unwrap().sums.acquired, 1);
}

#[test]
fn a_fork_while_another_thread_reads_the_profile() {
    let is_over = AtomicBool::new(false);
    profiled(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    profile::snapshot();
                }
            });
            let right = (0..40).take_while(|_| in_child(|| profile::snapshot().locks().is_empty())).count();
            is_over.store(true, Relaxed);
            assert_eq!(right, 40, "children that used the profile");
        });
    });
}

/// The report of a fork with a lock held asks for the profile.
#[test]
fn a_report_of_a_fork_may_read_the_profile() {
    static LOCK: Mutex<()> = Mutex::new(());
    // The checker watches forks from here on, and before the profile is on.
    drop(LOCK.lock());
    profiled(|| {
        let (before, _held) = (policy(), LOCK.lock());
        static READ: AtomicBool = AtomicBool::new(false);
        set_policy(Policy::Call(|_| READ.store(!profile::snapshot().locks().is_empty(), Relaxed)));
        let is_right = in_child(|| true);
        set_policy(before);
        assert!(is_right && READ.load(Relaxed));
    });
}

/// A profile with a wait.
fn contended(name: &'static Class) -> Profile {
    let lock = Mutex::new_in(name, ());
    profiled(|| {
        let guard = lock.lock();
        thread::scope(|scope| {
            let work = || drop(lock.lock());
            thread::Builder::new().name("waits; long".to_owned()).spawn_scoped(scope, work).unwrap();
            ulocks_testkit::limit::until("a thread waits for a lock", || {
                held().locks().iter().any(|held| held.waiters > 0)
            });
            drop(guard);
        });
    })
}

#[test]
fn folded_stacks_are_a_thread_a_class_and_a_place() {
    static NAME: Class = Class::new("folded");
    let profile = contended(&NAME);
    let waits = profile.folded_waits();
    let waits: Vec<&str> = waits.lines().filter(|line| line.contains("folded")).collect();
    let [wait] = waits[..] else { panic!("{waits:?}") };
    let (stack, nanos) = wait.rsplit_once(' ').unwrap();
    let frames: Vec<&str> = stack.split(';').collect();
    let [thread, class_frame, place] = frames[..] else { panic!("{wait}") };
    assert_eq!(thread, "waits, long");
    assert!(class_frame.starts_with("folded of ") && class_frame.contains(file!()), "{class_frame}");
    assert!(place.starts_with(file!()), "{place}");
    let sums = class(&profile, "folded").unwrap().sums;
    assert_eq!(nanos.parse::<u128>().unwrap(), sums.waited.as_nanos());
    let holds = profile.folded_holds();
    let holds = holds.lines().filter(|line| line.contains("folded"));
    let nanos: u128 = holds.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u128>().unwrap()).sum();
    assert_eq!(nanos, sums.held.as_nanos());
}

#[test]
fn the_profile_as_json() {
    static NAME: Class = Class::new("json");
    let profile = contended(&NAME);
    let json: serde_json::Value = serde_json::from_str(&profile.to_json()).unwrap();
    let line =
        json["classes"].as_array().unwrap().iter().find(|line| line["lock"]["name"] == "json").unwrap();
    let sums = class(&profile, "json").unwrap().sums;
    assert_eq!(line["acquired"], sums.acquired);
    assert_eq!(u128::from(line["waited_ns"].as_u64().unwrap()), sums.waited.as_nanos());
    assert!(line["waited_longest_at"].as_str().unwrap().starts_with(file!()));
    assert_eq!(json["sites"].as_array().unwrap().len(), profile.sites().len());
    assert_eq!(u128::from(json["ran_ns"].as_u64().unwrap()), profile.ran().as_nanos());
}

/// The lock is given from waiter to waiter. When the second one begins to wait, no thread has it.
#[test]
fn a_wait_is_put_down_to_a_holder_that_comes_later() {
    static NAME: Class = Class::new("given");
    let (mutex, mut line) = (FairMutex::new_in(&NAME, 0), 0);
    let profile = profiled(|| {
        // What a task holds is in the list of no thread.
        let mut future = pin!(mutex.lock_async());
        let Poll::Ready(of_task) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("it is free")
        };
        let ask = || *mutex.lock() += 1;
        line = line!() - 1;
        thread::scope(|scope| {
            for count in 0..2 {
                scope.spawn(ask);
                let is_one = |waiter: &&Waiter| waiter.lock.name == "given";
                let waits = || waiters().iter().filter(is_one).count() > count;
                ulocks_testkit::limit::until("it waits", waits);
            }
            drop(of_task);
        });
    });
    let pairs = profile.pairs().iter().filter(|pair| pair.lock.name == "given");
    let mut holders: Vec<_> = pairs.map(|pair| pair.holder.map(|at| at.line())).collect();
    holders.sort_unstable();
    assert_eq!(holders, [None, Some(line)], "{profile}");
}

/// Two lines hold the lock, and others wait for it at a third one.
#[test]
fn a_wait_is_put_down_to_the_line_that_held_the_lock() {
    static NAME: Class = Class::new("paired");
    let (table, limits) = (Mutex::new_in(&NAME, 0), RwLock::new_in(&NAME, 0));
    let (mut lines, between) = ([0; 5], Barrier::new(2));
    let profile = profiled(|| {
        let wait_beside = |held: &dyn Fn(&dyn Fn()), ask: &(dyn Fn() + Sync)| {
            thread::scope(|scope| {
                held(&|| {
                    scope.spawn(ask);
                    await_waiter("paired");
                });
            });
        };
        let ask = || drop(table.lock());
        lines[0] = line!() - 1;
        for _ in 0..2 {
            wait_beside(&|inner| drop((table.lock(), inner())), &ask);
            lines[1] = line!() - 1;
        }
        wait_beside(&|inner| drop((table.lock(), inner())), &ask);
        lines[2] = line!() - 1;
        wait_beside(&|inner| drop((limits.read(), inner())), &|| drop(limits.write()));
        lines[3] = line!() - 1;
        let beside_a_reader = |inner: &dyn Fn()| {
            thread::scope(|scope| {
                scope.spawn(|| drop((limits.read(), between.wait(), between.wait())));
                between.wait();
                inner();
                between.wait();
            });
        };
        let ask = || drop(limits.upgradable_read());
        wait_beside(&|inner| drop((limits.upgradable_read(), beside_a_reader(inner))), &ask);
        lines[4] = line!() - 1;
    });
    let pairs = profile.pairs().iter().filter(|pair| pair.lock.name == "paired");
    let mut pairs: Vec<_> =
        pairs.map(|pair| (pair.holder.map(|at| at.line()), pair.waiter.line(), pair.waits)).collect();
    pairs.sort_unstable();
    let [asked, twice, once, reads, upgradable] = lines;
    let expected = [(twice, asked, 2), (once, asked, 1), (reads, reads, 1), (upgradable, upgradable - 1, 1)];
    assert_eq!(pairs, expected.map(|(holder, waiter, waits)| (Some(holder), waiter, waits)), "{profile}");
    // The waits of a place are those of all its pairs.
    let waits = |line: u32| {
        let sites = profile.sites().iter().filter(|site| site.at.line() == line);
        sites.map(|site| site.sums.contended).sum::<u64>()
    };
    assert_eq!((waits(lines[0]), waits(lines[3])), (3, 1));
    let text = profile.to_string();
    assert!(text.contains("who made whom wait"), "{text}");
    let folded = profile.folded_pairs();
    let is_one =
        |line: &str| line.split(';').count() == 3 && line.rsplit(' ').next().unwrap().parse::<u64>().is_ok();
    assert!(folded.lines().all(is_one), "{folded}");
}
