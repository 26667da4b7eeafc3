//! Inversions with readers that do not deadlock in the run.

use crate::Fault;
use crate::harness::{Places, breaks, circle};
use ulocks_debug::*;
use ulocks_psrwlock::{Nested, Urgent};

pub const TABLE: &[Fault] = &[
    ("inversion of a reader and a mutex", reader_and_mutex),
    ("inversion of readers", readers),
    ("inversion of readers of one class", readers_of_one_class),
    ("inversion of readers of two classes of locks and of readers", urgent_readers),
    ("inversion of a writer and a reader that passes writers", writer_and_nested),
    ("inversion by an upgrade", upgrade),
    ("inversion of upgradable readers", upgradables),
    ("inversion that a reader of a higher class does not hide", after_a_right_one),
    ("inversion of three, by readers", three),
];

fn reader_and_mutex() -> Vec<Places> {
    let (table, log) = (RwLock::new(()), Mutex::new(()));
    let (in_table, first) = (table.read(), line!());
    let (in_log, second) = (log.lock(), line!());
    drop((in_log, in_table));
    let (_in_log, third) = (log.lock(), line!());
    breaks(|| drop(table.write()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn readers() -> Vec<Places> {
    let (a, b) = (RwLock::new(()), RwLock::new(()));
    let (in_a, first) = (a.read(), line!());
    let (in_b, second) = (b.read(), line!());
    drop((in_b, in_a));
    let (_in_b, third) = (b.read(), line!());
    // Two writers may come between, one for each lock.
    breaks(|| drop(a.read()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn readers_of_one_class() -> Vec<Places> {
    let locks = [(); 2].map(|()| RwLock::new(()));
    let (in_a, first) = (locks[0].read(), line!());
    let (in_b, second) = (locks[1].read(), line!());
    drop((in_b, in_a));
    let (_in_b, third) = (locks[1].read(), line!());
    breaks(|| drop(locks[0].read()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn urgent_readers() -> Vec<Places> {
    let (a, b) = (RwLock::new(()), RwLock::new(()));
    let (in_a, first) = (a.read_in::<Urgent>(), line!());
    let (in_b, second) = (b.read(), line!());
    drop((in_b, in_a));
    let (_in_b, third) = (b.read(), line!());
    breaks(|| drop(a.read_in::<Urgent>()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn writer_and_nested() -> Vec<Places> {
    let (table, log) = (RwLock::new(()), Mutex::new(()));
    let (in_table, first) = (table.write(), line!());
    let (in_log, second) = (log.lock(), line!());
    drop((in_log, in_table));
    let (_in_log, third) = (log.lock(), line!());
    // It passes writers that wait, and not those that write.
    breaks(|| drop(table.read_in::<Nested>()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn upgrade() -> Vec<Places> {
    let (table, log) = (RwLock::new(()), Mutex::new(()));
    let (in_table, first) = (table.read(), line!());
    let (in_log, second) = (log.lock(), line!());
    drop((in_log, in_table));
    let upgradable = table.upgradable_read();
    let (_in_log, third) = (log.lock(), line!());
    breaks(|| drop(RwLockUpgradableReadGuard::upgrade(upgradable)));
    let fourth = line!() - 1;
    assert!(!table.is_locked());
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn upgradables() -> Vec<Places> {
    let (table, log) = (RwLock::new(()), Mutex::new(()));
    let (in_table, first) = (table.upgradable_read(), line!());
    let (in_log, second) = (log.lock(), line!());
    drop((in_log, in_table));
    let (_in_log, third) = (log.lock(), line!());
    drop(table.read());
    breaks(|| drop(table.upgradable_read()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn after_a_right_one() -> Vec<Places> {
    let (table, log) = (RwLock::new(()), Mutex::new(()));
    let (in_table, first) = (table.read(), line!());
    let (in_log, second) = (log.lock(), line!());
    drop((in_log, in_table));
    let (_in_log, third) = (log.lock(), line!());
    for _ in 0..2 {
        drop(table.read_in::<Nested>());
    }
    breaks(|| drop(table.read()));
    let fourth = line!() - 1;
    vec![circle(Rule::Order, &[(third, fourth), (first, second)])]
}

fn three() -> Vec<Places> {
    let (a, b, c) = (RwLock::new(()), RwLock::new(()), FairMutex::new(()));
    let (in_a, a1) = (a.read(), line!());
    let (in_b, b1) = (b.write(), line!());
    drop((in_b, in_a));
    let (in_b, b2) = (b.read(), line!());
    let (in_c, c1) = (c.lock(), line!());
    drop((in_c, in_b));
    let (_in_c, c2) = (c.lock(), line!());
    drop(a.read_in::<Urgent>());
    breaks(|| drop(a.read()));
    let a2 = line!() - 1;
    vec![circle(Rule::Order, &[(c2, a2), (a1, b1), (b2, c1)])]
}
