//! Many operations by the threads of one process. Each client returns what it counted; the test
//! asserts on the counts.

use super::super::stress::{Load, Random, drive, last_user_unmaps};
use super::{Counts, Table, soon, within};
use std::sync::Arc;
use std::thread;
use ulocks_core::raw::{RawRwLock, RawRwLockUpgrade};

fn run<L: RawRwLock + Send + Sync + 'static>(
    name: &str,
    load: Load,
    operation: fn(&Table<L>, &mut Random, u32) -> bool,
) -> Counts {
    let table = Arc::new(Table::<L>::new());
    let describe = |table: &Table<L>| {
        format!("locked {}, by a writer {}", table.lock.is_locked(), table.lock.is_write_locked())
    };
    let (acquired, signals) = drive(name, load, &table, describe, operation);
    Counts::new(&table, acquired, signals)
}

/// Readers and writers of every kind, with deadlines up to a millisecond: a writer is alone, and
/// a thread that gives up strands no thread.
pub fn mixed<L: RawRwLock + Send + Sync + 'static>(load: Load) -> Counts {
    run::<L>("mixed", load, |table, random, hold| table.read_or_write(random, 1_000_000, hold))
}

/// Nearly every wait is given up at once, so that giving up meets the releases, while others wait
/// in earnest.
pub fn cancel<L: RawRwLock + Send + Sync + 'static>(load: Load) -> Counts {
    run::<L>("cancel", load, |table, random, hold| match random.below(4) {
        0 => table.read_or_write(random, 20_000, hold),
        1 => {
            let token = within(random, 20_000, |deadline| table.lock.write_until(deadline));
            token.map(|token| table.write_and_unlock(token, hold)).is_some()
        }
        _ => {
            let token = within(random, 20_000, |deadline| table.lock.read_until(deadline));
            token.map(|token| table.look_and_unlock(token, hold)).is_some()
        }
    })
}

/// Eight threads for each CPU, all of which want the lock all the time, one time in four to write.
pub fn oversubscribed<L: RawRwLock + Send + Sync + 'static>(operations: usize) -> Counts {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let load = Load { threads: 8 * cpus, operations, ..Load::default() };
    run::<L>("oversubscribed", load, |table, random, hold| {
        if random.below(4) == 0 {
            table.write_and_unlock(table.lock.write(), hold);
        } else {
            table.look_and_unlock(table.lock.read(), hold);
        }
        true
    })
}

/// As [`mixed`], with upgradable holders that upgrade in every way, and writers that become readers
/// and upgradables.
pub fn upgrading<L: RawRwLockUpgrade + Send + Sync + 'static>(load: Load) -> Counts {
    run::<L>("upgrading", load, |table, random, hold| match random.below(4) {
        0 => upgrade(table, random, hold),
        1 => downgrade(table, random, hold),
        _ => table.read_or_write(random, 1_000_000, hold),
    })
}

/// Looks as an upgradable holder, upgrades somehow and writes; what it saw has not changed
/// meanwhile.
fn upgrade<L: RawRwLockUpgrade>(table: &Table<L>, random: &mut Random, hold: u32) -> bool {
    let lock = &table.lock;
    let token = match random.below(4) {
        0 => lock.try_upgradable(),
        1 => within(random, 1_000_000, |deadline| lock.upgradable_until(deadline)),
        _ => Some(lock.upgradable()),
    };
    let Some(token) = token else { return false };
    let seen = table.look(hold);
    // SAFETY: here and below, each token is that of the step before.
    let upgraded = unsafe {
        match random.below(4) {
            0 => lock.try_upgrade(token),
            1 => lock.upgrade_until(token, soon(random, 200_000)),
            2 => {
                let token = lock.downgrade_upgradable(token);
                table.expect_still(seen, 0);
                lock.unlock_read(token);
                return true;
            }
            _ => Ok(lock.upgrade(token)),
        }
    };
    match upgraded {
        Ok(token) => {
            table.expect_still(seen, 0);
            table.write_and_unlock(token, hold);
        }
        Err(token) => {
            table.expect_still(seen, 0);
            // SAFETY: as above.
            unsafe { lock.unlock_upgradable(token) };
        }
    }
    true
}

/// Writes, and finds the same when it has become a reader, by way of an upgradable holder at times.
fn downgrade<L: RawRwLockUpgrade>(table: &Table<L>, random: &mut Random, hold: u32) -> bool {
    let lock = &table.lock;
    let token = lock.write();
    table.write(hold);
    let written = table.look(0);
    // SAFETY: each token is that of the step before.
    unsafe {
        let token = if random.below(2) == 0 {
            lock.downgrade(token)
        } else {
            let token = lock.downgrade_to_upgradable(token);
            table.expect_still(written, hold);
            lock.downgrade_upgradable(token)
        };
        table.expect_still(written, hold);
        lock.unlock_read(token);
    }
    true
}

/// A lock alone on a page, and users of it of which the last unmaps the page as soon as its release
/// has returned: a writer that finds all others done, or the only reader. A release that touches
/// the lock once more meets no memory and the process dies of it. Returns how many rounds ended
/// that way; in the others the last was one of several readers.
pub fn last_unlocker_unmaps<L: RawRwLock + Send + Sync + 'static>(
    readers: usize,
    writers: usize,
    rounds: usize,
) -> usize {
    let users = readers + writers;
    last_user_unmaps::<L>(users, rounds, move |lock, me, is_last| {
        if me < readers {
            let token = lock.read();
            let last = is_last() && readers == 1;
            // SAFETY: the token is from the acquisition above.
            unsafe { lock.unlock_read(token) };
            last
        } else {
            let token = lock.write();
            let last = is_last();
            // SAFETY: the token is from the acquisition above.
            unsafe { lock.unlock_write(token) };
            last
        }
    })
}
