//! One operation of every kind that the lock has, drawn by lot.

use super::variables::Variables;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use ulocks_psrwlock::{
    ByClass, Configuration, Partial, PsRwLockReadGuard, PsRwLockUpgradableReadGuard, PsRwLockWith,
    PsRwLockWriteGuard, State, ThreadClass,
};
use ulocks_testkit::stress::Random;

pub type Lock<D> = PsRwLockWith<Variables, D>;
type ReadGuard<'a, D> = PsRwLockReadGuard<'a, Variables, D>;
type UpgradableGuard<'a, D> = PsRwLockUpgradableReadGuard<'a, Variables, D>;
type WriteGuard<'a, D> = PsRwLockWriteGuard<'a, Variables, D>;

/// How an acquisition is asked for.
#[derive(Clone, Copy)]
pub enum How {
    Wait,
    Try,
    For(Duration),
}

impl How {
    fn drawn(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Try,
            1 => Self::For(Duration::from_nanos(random.below(300_000).into())),
            _ => Self::Wait,
        }
    }
}

type Read<D> = for<'a> fn(&'a Lock<D>, How) -> Option<ReadGuard<'a, D>>;
type Exclude<D> = fn(&mut UpgradableGuard<'_, D>, How) -> bool;

/// What a discipline's classes of threads can do, the lowest class first.
pub struct Classes<D: Configuration> {
    pub read: &'static [Read<D>],
    pub exclude: &'static [Exclude<D>],
}

pub fn read_in<C: ThreadClass, D: Configuration>(lock: &Lock<D>, how: How) -> Option<ReadGuard<'_, D>> {
    match how {
        How::Wait => Some(lock.read_in::<C>()),
        How::Try => lock.try_read_in::<C>(),
        How::For(timeout) => lock.try_read_in_for::<C>(timeout),
    }
}

pub fn exclude<C: ThreadClass, D: Configuration>(guard: &mut UpgradableGuard<'_, D>, how: How) -> bool {
    match how {
        How::Wait => Partial::exclude::<C>(guard),
        How::Try => return Partial::try_exclude::<C>(guard),
        How::For(timeout) => return Partial::try_exclude_for::<C>(guard, timeout),
    }
    true
}

/// The [`Classes`] of a discipline.
macro_rules! classes {
    ($discipline:ty: $($class:ident),+) => {
        mixed::Classes::<$discipline> {
            read: &[$(mixed::read_in::<ulocks_psrwlock::$class, $discipline>),+],
            exclude: &[$(mixed::exclude::<ulocks_psrwlock::$class, $discipline>),+],
        }
    };
}
pub(crate) use classes;

fn write<D: Configuration>(lock: &Lock<D>, how: How) -> Option<WriteGuard<'_, D>> {
    match how {
        How::Wait => Some(lock.write()),
        How::Try => lock.try_write(),
        How::For(timeout) => lock.try_write_for(timeout),
    }
}

fn upgradable<D: Configuration>(lock: &Lock<D>, how: How) -> Option<UpgradableGuard<'_, D>> {
    match how {
        How::Wait => Some(lock.upgradable_read()),
        How::Try => lock.try_upgradable_read(),
        How::For(timeout) => lock.try_upgradable_read_for(timeout),
    }
}

/// Looks, upgrades and writes; no thread has written in between. How many writes that was.
fn upgrade<D: Configuration>(guard: UpgradableGuard<'_, D>, how: How) -> u64 {
    let seen = guard.look();
    let upgraded = match how {
        How::Wait => Ok(UpgradableGuard::upgrade(guard)),
        How::Try => UpgradableGuard::try_upgrade(guard),
        How::For(timeout) => UpgradableGuard::try_upgrade_for(guard, timeout),
    };
    match upgraded {
        Ok(mut guard) => {
            assert_eq!(guard.add_one(), seen + 1, "somebody wrote before the upgrade");
            1
        }
        Err(guard) => {
            assert_eq!(guard.look(), seen, "somebody wrote beside an upgradable reader");
            0
        }
    }
}

/// One operation. Returns how many writes it made.
///
/// # Panics
/// If it sees half a write, or that a thread has written that may not.
pub fn operate<D: Configuration>(
    lock: &Lock<D>,
    classes: &Classes<D>,
    random: &mut Random,
    hold: u32,
) -> u64 {
    let how = How::drawn(random);
    let hold = random.below(hold + 1);
    match random.below(15) {
        0..6 => {
            let read = classes.read[random.below(classes.read.len() as u32) as usize];
            let Some(guard) = read(lock, how) else { return 0 };
            let seen = guard.look();
            idle(hold);
            assert_eq!(guard.look(), seen, "somebody wrote beside a reader");
            if hold.is_multiple_of(4) {
                PsRwLockReadGuard::unlock_fair(guard);
            }
            0
        }
        6 => {
            let nested: Vec<_> = classes.read.iter().filter_map(|read| read(lock, How::Wait)).collect();
            idle(hold);
            assert!(
                nested.iter().all(|guard| guard.look() == nested[0].look()),
                "somebody wrote beside a reader"
            );
            0
        }
        7 | 8 => {
            let Some(mut guard) = write(lock, how) else { return 0 };
            idle(hold);
            guard.add_one();
            1
        }
        9 => {
            let mut guard = lock.write();
            guard.add_one();
            idle(hold);
            PsRwLockWriteGuard::unlock_fair(guard);
            1
        }
        10 => {
            let mut guard = lock.write();
            let written = guard.add_one();
            let guard = PsRwLockWriteGuard::downgrade(guard);
            idle(hold);
            assert_eq!(guard.look(), written, "somebody wrote before the downgraded one had left");
            1
        }
        11 => {
            let mut guard = lock.write();
            let written = guard.add_one();
            let guard = PsRwLockWriteGuard::downgrade_to_upgradable(guard);
            idle(hold);
            assert_eq!(guard.look(), written, "somebody wrote before the downgraded one had left");
            1 + upgrade(guard, how)
        }
        12 => upgradable(lock, how).map_or(0, |guard| upgrade(guard, How::drawn(random))),
        13 => {
            let mut guard = lock.upgradable_read();
            let exclude = classes.exclude[random.below(classes.exclude.len() as u32) as usize];
            let level = UpgradableGuard::rwlock(&guard).state().level();
            if !exclude(&mut guard, How::drawn(random)) {
                let now = UpgradableGuard::rwlock(&guard).state().level();
                assert_eq!(now, level, "an exclusion in vain has left classes shut out");
            }
            let seen = guard.look();
            idle(hold);
            assert_eq!(guard.look(), seen, "somebody wrote beside an upgradable reader");
            match random.below(4) {
                0 => Partial::admit(&mut guard),
                1 => return 0,
                _ => {}
            }
            upgrade(guard, how)
        }
        _ => {
            let Some(guard) = upgradable(lock, how) else { return 0 };
            let seen = guard.look();
            if hold.is_multiple_of(2) {
                UpgradableGuard::unlock_fair(guard);
            } else {
                assert_eq!(
                    UpgradableGuard::downgrade(guard).look(),
                    seen,
                    "somebody wrote before the downgrade"
                );
            }
            0
        }
    }
}

pub fn idle(rounds: u32) {
    for _ in 0..rounds {
        std::hint::spin_loop();
    }
}

/// That the lock is as new, but for its event: no thread is counted, inside or in line, and no
/// thread will be. The caller has it for itself.
///
/// # Panics
/// If it is not.
pub fn check_is_free<D: Configuration>(lock: &Lock<D>) {
    let state = lock.state();
    let stale = State(state.0 & (State::WRITERS | State::LOW | State::TOP));
    assert_eq!(state, stale, "nobody is there, and only flags of those who wait may be left");
    // They are taken out by a write.
    drop(lock.write());
    assert_eq!(lock.state(), State::UNLOCKED);
    // SAFETY: the lock is not used but for its address.
    let raw = std::ptr::from_ref(unsafe { lock.raw() }).cast::<AtomicU32>();
    // SAFETY: the lock has four words of this size at least, and the last of these is that of the
    // lines.
    let lines = unsafe { &*raw.add(3) }.load(Relaxed);
    // It may have a row.
    assert_eq!(lines & !(15 << 27), 0, "the word of the lines");
}
