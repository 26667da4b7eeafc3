//! Law 2: a thread that has seen all that an operation did may free the array, while that operation
//! is on its way back. What is touched after that is not mapped any more.

use crate::pages::{self, A_PAGE};
use std::sync::Barrier;
use std::time::Duration;
use ulocks_semarray::{Builder, Fairness, Op, SemArray};
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::watch;

const PAGE: usize = 4096;
const ROUNDS: u32 = 40;

type Use = fn(&SemArray);

/// Ways to give a unit each of the first two semaphores.
const GIVE: [Use; 6] = [
    |array| array.apply(&[Op::add(0, 1), Op::add(1, 1)]).unwrap(),
    |array| array.apply(&[Op::add(1, 1), Op::add(0, 2), Op::sub(0, 1)]).unwrap(),
    |array| {
        array.apply(&[Op::add(0, 1)]).unwrap();
        array.apply(&[Op::add(1, 1)]).unwrap();
    },
    |array| {
        let mut values = [0; A_PAGE];
        values[..2].fill(1);
        array.set_all(&values).unwrap();
    },
    |array| {
        array.apply(&[Op::add(1, 1)]).unwrap();
        array.set(0, 1).unwrap();
    },
    |array| {
        // What the permit took is given back first.
        array.apply(&[Op::add(2, 1)]).unwrap();
        let permit = array.acquire([Op::sub(2, 1), Op::add(3, 2)]).unwrap();
        drop(permit);
        array.apply(&[Op::add(0, 1), Op::add(1, 1), Op::sub(2, 1)]).unwrap();
    },
];

/// Ways to take both, after which no other thread has anything to do.
const TAKE: [Use; 5] = [
    |array| array.apply(&[Op::sub(0, 1), Op::sub(1, 1)]).unwrap(),
    |array| array.apply(&[Op::sub(1, 1), Op::wait_zero(3), Op::sub(0, 1)]).unwrap(),
    |array| {
        array.apply(&[Op::sub(0, 1)]).unwrap();
        array.apply(&[Op::sub(1, 1)]).unwrap();
    },
    |array| while array.try_apply(&[Op::sub(0, 1), Op::sub(1, 1)]).is_err() {},
    |array| while array.apply_for(&[Op::sub(1, 1), Op::sub(0, 1)], Duration::from_micros(20)).is_err() {},
];

fn check(fairness: Fairness) {
    let _watchdog = watch("last touch", || "a thread waits for an array that is gone".into());
    for (give, take) in GIVE.iter().flat_map(|give| TAKE.iter().map(move |take| (give, take))) {
        for round in 0..ROUNDS {
            let page = Mapping::private().leak::<SemArray>();
            let array = Builder::new(A_PAGE).fairness(fairness).build().unwrap();
            // SAFETY: a fresh page, writable, larger than an array and aligned to more than it
            // needs.
            unsafe { page.write(array) };
            let (address, start) = (page.expose_provenance(), Barrier::new(2));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    (0..round * 20).for_each(|_| std::hint::spin_loop());
                    // SAFETY: the array is not freed before it was given everything.
                    give(unsafe { &*std::ptr::with_exposed_provenance::<SemArray>(address) });
                });
                scope.spawn(|| {
                    start.wait();
                    (0..(ROUNDS - round) * 20).for_each(|_| std::hint::spin_loop());
                    let array = std::ptr::with_exposed_provenance_mut::<SemArray>(address);
                    // SAFETY: this thread frees it, below.
                    take(unsafe { &*array });
                    // SAFETY: what the other thread gave is here, so it does not need the array any
                    // more.
                    unsafe { array.drop_in_place() };
                    // SAFETY: the page was mapped above.
                    let unmapped = unsafe { libc::munmap(array.cast(), PAGE) };
                    assert_eq!(unmapped, 0);
                });
            });
        }
    }
}

#[test]
fn a_thread_that_has_seen_everything_may_unmap() {
    for fairness in [Fairness::Barging, Fairness::Strict { after: Duration::ZERO }] {
        check(fairness);
    }
    assert!(pages::were_used(), "the semaphores of an array are not of the size that `pages` expects");
}
