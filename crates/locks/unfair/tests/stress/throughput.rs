//! The throughput mutex.

use crate::overtaking::owed_is_next;
use ulocks_core::Private;
use ulocks_core::meter::{Counted, Snapshot};
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_testkit::suite::{self, Effort};
use ulocks_testkit::tasks::{Mixed, Restless, Tasks};
use ulocks_unfair::{After, HandOff, RawThroughputMutex};

// Each way of waiting, and bounds that are met often: they leave by different doors.
ulocks_testkit::stress_tests! {
    Effort::LESS;
    RawThroughputMutex<Private, After>,
    RawThroughputMutex<Private, After<20_000>>,
    RawThroughputMutex<Private, HandOff>,
    RawThroughputMutex<Private<NoSpin>, HandOff>,
    RawThroughputMutex<Private<Adaptive, Counted>, After<1_000>>,
    Tasks<RawThroughputMutex<Private>>,
    Mixed<RawThroughputMutex<Private>>,
    Restless<RawThroughputMutex<Private<NoSpin, Counted>, HandOff>>,
}

ulocks_testkit::interrupt_tests! {
    Effort::LESS;
    RawThroughputMutex<Private, After>,
    RawThroughputMutex<Private, HandOff>,
    RawThroughputMutex<Private<NoSpin>, HandOff>,
}

#[test]
fn nobody_overtakes_whom_the_mutex_is_owed_to() {
    // Longer than an arrival's patience, so that waiters sleep and are woken in vain.
    fn hold() {
        (0..1_000).for_each(|_| std::hint::spin_loop());
    }
    let debts = owed_is_next::<Private, HandOff>(vec![500; 8], hold)
        + owed_is_next::<Private<NoSpin>, HandOff>(vec![1_000; 4], hold)
        + owed_is_next::<Private, After<10_000>>(vec![200; 32], hold);
    assert!(debts > 0, "it was never owed to a waiter");
}

#[test]
fn each_acquisition_is_counted_in_one_way() {
    type Mutex = RawThroughputMutex<Private<NoSpin, Counted>, HandOff>;
    each_is_counted_in_one_way(suite::contended::<Mutex>(20_000));
    each_is_counted_in_one_way(suite::contended::<Mixed<Mutex>>(20_000));
}

fn each_is_counted_in_one_way(counted: Snapshot) {
    let contended = counted.spun + counted.stolen + counted.woken + counted.reserved;
    assert_eq!(counted.contended, contended, "{counted:?}");
    assert_eq!(counted.fast(), 80_000 - contended);
    assert!(counted.slept > 0 || counted.woken + counted.reserved == 0, "{counted:?}");
}
