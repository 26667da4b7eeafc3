//! A thousand threads on a few CPUs of the cost model: how many of them go round, and how often one
//! sleeps. Counts, of runs that are always the same; no times.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use ulocks_calock::RawCalock;
use ulocks_core::raw::RawMutex;
use ulocks_core::{Private, cpu};
use ulocks_vm_cost::{Machine, Run};

const THREADS: usize = 1_000;

/// What a crowd comes to once it has settled.
struct Settled {
    /// How many threads acquired.
    active: usize,
    /// Sleeps in the kernel.
    sleeps: u64,
    operations: u64,
}

fn crowd(cpus: usize, hold_ns: f64, think_ns: f64) -> Settled {
    let (warm_up_ns, time_ns) = (100e6, 100e6);
    let run = Run {
        cpus,
        hold_ns,
        think_ns,
        warm_up_ns,
        time_ns,
        ..Run::new(Machine::example_with(cpus), THREADS)
    };
    let active = Rc::new(RefCell::new(BTreeSet::new()));
    let seen = Rc::clone(&active);
    let outcome = run.contend(ulocks_testkit::new_lock::<RawCalock<Private>>, move |lock, worker| {
        worker.acquire(|| lock.lock());
        if worker.now_ns() > warm_up_ns {
            seen.borrow_mut().insert(worker.index());
        }
        worker.hold();
        // SAFETY: acquired above, in this thread.
        unsafe { lock.unlock(()) };
    });
    let outcome = outcome.unwrap();
    let active = active.borrow().len();
    Settled { active, sleeps: outcome.kernel.sleeps, operations: outcome.operations }
}

/// A release wakes a thread seldom.
#[test]
fn a_sleep_is_shared_by_many_operations() {
    for (cpus, hold, think, least) in [
        (4, 3_000.0, 7_000.0, 6),
        (16, 3_000.0, 7_000.0, 4),
        (16, 1_000.0, 9_000.0, 3),
        (4, 10_000.0, 0.0, 50),
    ] {
        let Settled { operations, sleeps, .. } = crowd(cpus, hold, think);
        assert!(sleeps * least < operations, "{cpus} CPUs: {sleeps} sleeps in {operations} operations");
    }
}

/// Where all of them want the lock, the same few go round, and one more in each interval.
#[test]
fn a_saturated_lock_has_few_active() {
    for cpus in [4, 16] {
        let Settled { active, .. } = crowd(cpus, 10_000.0, 0.0);
        assert!(active <= 25, "{cpus} CPUs: {active} of {THREADS} go round");
    }
}

#[test]
fn a_virtual_cpu_is_a_cpu() {
    let run = Run { warm_up_ns: 0.0, ..Run::new(Machine::example_with(3), 3) };
    let outcome = run.of(
        || (),
        |(), worker| {
            assert_eq!((cpu::current(), cpu::usable()), (Some(worker.index() as u32), 0b111));
            worker.count();
        },
    );
    assert_eq!(outcome.unwrap().operations, 3);
}
