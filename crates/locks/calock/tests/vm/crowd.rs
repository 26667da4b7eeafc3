//! A thousand threads on a few CPUs of the cost model: how many of them go round, and how often one
//! sleeps. Counts, of runs that are always the same; no times.

use crate::advice::{AlwaysWakes, RarelyWakes};
use std::cell::Cell;
use std::rc::Rc;
use ulocks_calock::advice::Advised;
use ulocks_calock::{Every, Interval, RawCalock};
use ulocks_core::raw::RawMutex;
use ulocks_core::{Private, cpu};
use ulocks_vm_cost::{Machine, Run};

const THREADS: usize = 1_000;

/// What a crowd comes to once it has settled.
struct Settled {
    /// The most threads that holders found not to be parked.
    awake: u32,
    /// Sleeps in the kernel.
    sleeps: u64,
    operations: u64,
}

fn crowd<I: Interval>(cpus: usize, hold_ns: f64, think_ns: f64) -> Settled {
    let (warm_up_ns, time_ns) = (100e6, 100e6);
    let run = Run {
        cpus,
        hold_ns,
        think_ns,
        warm_up_ns,
        time_ns,
        ..Run::new(Machine::example_with(cpus), THREADS)
    };
    let most = Rc::new(Cell::new(0));
    let seen = Rc::clone(&most);
    let outcome = run.contend(ulocks_testkit::new_lock::<RawCalock<Private, I>>, move |lock, worker| {
        worker.acquire(|| lock.lock());
        if worker.now_ns() > warm_up_ns {
            seen.set(seen.get().max(THREADS as u32 - lock.state().parked()));
        }
        worker.hold();
        // SAFETY: acquired above, in this thread.
        unsafe { lock.unlock(()) };
    });
    let outcome = outcome.unwrap();
    Settled { awake: most.get(), sleeps: outcome.kernel.sleeps, operations: outcome.operations }
}

/// A release wakes a thread to contend where that has been of use, and otherwise seldom.
#[test]
fn a_sleep_is_shared_by_many_operations() {
    for (cpus, hold, think, least) in [
        (4, 3_000.0, 7_000.0, 6),
        (16, 3_000.0, 7_000.0, 4),
        (16, 1_000.0, 9_000.0, 3),
        (4, 10_000.0, 0.0, 50),
    ] {
        let Settled { operations, sleeps, .. } = crowd::<Every>(cpus, hold, think);
        assert!(sleeps * least < operations, "{cpus} CPUs: {sleeps} sleeps in {operations} operations");
        // Without the plan.
        let Settled { operations, sleeps, .. } = crowd::<Advised<Every, AlwaysWakes>>(cpus, hold, think);
        assert!(sleeps * least > operations, "{cpus} CPUs: {sleeps} sleeps in {operations} operations");
    }
}

/// Where all of them want the lock, those that do not sleep are a handful: most of the CPUs have
/// nothing to do.
#[test]
fn a_saturated_lock_has_few_awake() {
    for (cpus, hold, think) in [(4, 10_000.0, 0.0), (16, 10_000.0, 0.0), (16, 3_000.0, 7_000.0)] {
        let Settled { awake, .. } = crowd::<Every>(cpus, hold, think);
        assert!(awake <= 10, "{cpus} CPUs: {awake} of {THREADS} do not sleep");
    }
}

/// If no release wakes any thread to contend, the lock is restricted too, to those that found it
/// free by chance.
#[test]
fn those_who_can_use_a_cpu_are_woken() {
    let as_planned = crowd::<Every>(16, 1_000.0, 9_000.0).operations;
    let seldom = crowd::<Advised<Every, RarelyWakes>>(16, 1_000.0, 9_000.0).operations;
    assert!(
        as_planned > seldom + seldom / 4,
        "{as_planned} operations, {seldom} if nobody is woken to contend"
    );
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
