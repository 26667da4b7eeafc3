//! Inversions with readers that do not deadlock in the run.

use crate::harness::{breaks, circle};
use crate::{Fault, order, order_of_three};
use ulocks_debug::*;
use ulocks_psrwlock::{Nested, Urgent};

pub const TABLE: &[Fault] = &[
    order! { "inversion of a reader and a mutex", [table = RwLock::new(()), log = Mutex::new(())]
    table.read();
    log.lock();
    log.lock();
    table.write() },
    // Two writers may come between, one for each lock.
    order! { "inversion of readers of one class", [of = [(); 2].map(|()| RwLock::new(()))]
    of[0].read();
    of[1].read();
    of[1].read();
    of[0].read() },
    order! { "inversion of readers of two classes of locks and of readers", [a = RwLock::new(()), b = RwLock::new(())]
    a.read_in::<Urgent>();
    b.read();
    b.read();
    a.read_in::<Urgent>() },
    // The reader passes writers that wait, and not those that write.
    order! { "inversion of a writer and a reader that passes writers", [table = RwLock::new(()), log = Mutex::new(())]
    table.write();
    log.lock();
    log.lock();
    table.read_in::<Nested>() },
    ("inversion by an upgrade", || {
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
    }),
    order! { "inversion of upgradable readers", [table = RwLock::new(()), log = Mutex::new(())]
    table.upgradable_read();
    log.lock();
    log.lock();
    { drop(table.read()); table.upgradable_read() } },
    order! { "inversion that a reader of a higher class does not hide", [table = RwLock::new(()), log = Mutex::new(())]
    table.read();
    log.lock();
    log.lock();
    { (0..2).for_each(|_| drop(table.read_in::<Nested>())); table.read() } },
    order_of_three! { "inversion of three, by readers", [a = RwLock::new(()), b = RwLock::new(()), c = FairMutex::new(())]
    a.read();
    b.write();
    b.read();
    c.lock();
    c.lock();
    { drop(a.read_in::<Urgent>()); a.read() } },
];
