//! What reading costs on many CPUs, in the cost model: readers counted in the state against readers
//! at slots. Orders and counts, of runs that are always the same; the model predicts no times.

use crate::{Lock, TWO};
use core::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use ulocks_core::meter::sealed::Sealed;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::model::thread;
use ulocks_core::raw::RawRwLock;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::{Policy, Private};
use ulocks_psrwlock::{Central, Distributed, PhaseFair, Readers};
use ulocks_vm_cost::{Machine, Outcome, Run};

/// Every thread reads for about 30 ns and stays away for about 150; one operation in `every` is a
/// write, if any is.
fn mostly_read<R: Readers>(cpus: usize, every: Option<u32>) -> Outcome {
    let run = Run { warm_up_ns: 100e3, time_ns: 400e3, ..Run::new(Machine::example_with(cpus), cpus) };
    let outcome =
        run.contend(ulocks_testkit::new_lock::<Lock<TWO, Private, PhaseFair, R>>, move |lock, worker| {
            let writes = every.is_some_and(|every| worker.random() < 1.0 / f64::from(every));
            if writes {
                worker.acquire(|| lock.write());
                worker.hold();
                // SAFETY: acquired above.
                unsafe { lock.unlock_write(()) };
            } else {
                let token = worker.acquire(|| lock.read());
                worker.work_about(30.0);
                // SAFETY: acquired above.
                unsafe { lock.unlock_read(token) };
            }
        });
    outcome.expect("a run of the cost model")
}

/// For the page: what one of the two comes to.
fn line(name: &str, cpus: usize, every: Option<u32>, outcome: &Outcome) {
    let Outcome { operations, kernel, transfers_per_operation: transfers, fairness, .. } = outcome;
    let writes = every.map_or("no writes".to_owned(), |every| format!("1 write in {every}"));
    println!(
        "{name:>11}, {cpus:>2} CPUs, {writes:>15}: {operations:>7} operations, {transfers:.2} transfers each, \
         {} calls of the kernel, {} sleeps, least by most {:.2}",
        kernel.calls, kernel.sleeps, fairness.min_by_max
    );
}

fn both<const N: usize>(cpus: usize, every: Option<u32>) -> (Outcome, Outcome) {
    let (central, slots) = (mostly_read::<Central>(cpus, every), mostly_read::<Distributed<N>>(cpus, every));
    line("in the state", cpus, every, &central);
    line("at slots", cpus, every, &slots);
    (central, slots)
}

/// Readers of one word pass its line on, each for all; readers at slots, one for each CPU, share
/// nothing that any thread changes.
#[test]
fn readers_at_slots_share_no_line() {
    for (cpus, outcomes) in [(2, both::<2>(2, None)), (8, both::<8>(8, None)), (64, both::<64>(64, None))] {
        let (central, slots) = outcomes;
        assert!(slots.transfers_per_operation < 0.01, "{cpus} CPUs: {slots:?}");
        assert!(central.transfers_per_operation > 1.0, "{cpus} CPUs: {central:?}");
        assert!(slots.operations > central.operations, "{cpus} CPUs: slots slow readers down");
        assert_eq!((slots.kernel.calls, central.kernel.calls), (0, 0), "a reader entered the kernel");
    }
}

/// How rare writes have to be: each looks at all slots, and interrupts all CPUs. Between one in a
/// hundred, where slots lose, and one in a thousand.
#[test]
fn readers_at_slots_pay_where_writes_are_rare() {
    let mut gain = Vec::new();
    for every in [100, 1_000, 10_000] {
        both::<2>(2, Some(every));
        both::<8>(8, Some(every));
        let (central, slots) = both::<64>(64, Some(every));
        gain.push(slots.operations as f64 / central.operations as f64);
    }
    assert!(gain[0] < 1.0 && 1.0 < gain[1], "the break-even is elsewhere: {gain:?}");
    assert!(gain.is_sorted(), "rarer writes do not help slots: {gain:?}");
    assert!(gain[2] > 5.0, "slots do not pay where one operation in ten thousand is a write: {gain:?}");
}

/// Counts the events that each thread counts itself.
struct Own;

std::thread_local! {
    static EVENTS: RefCell<HashMap<usize, u64>> = RefCell::default();
}

fn own() -> u64 {
    EVENTS.with_borrow(|events| events.get(&thread::current()).copied().unwrap_or(0))
}

// SAFETY: it counts in thread-local memory that it does not borrow twice.
unsafe impl Sealed for Own {}

impl Meter for Own {
    const INIT: Self = Self;

    fn count(&self, event: Event) {
        if event == Event::Woke {
            EVENTS.with_borrow_mut(|events| *events.entry(thread::current()).or_default() += 1);
        }
    }
}

/// What a release may have to do more than once, if threads that are about to sleep come round just
/// then: how many events it counts, on average, where it counts any.
#[test]
fn those_about_to_sleep_do_not_hold_up_a_release() {
    fn check<P: Policy<Meter = Own>>(cpus: usize, every: u32, hold_ns: f64) {
        let run =
            Run { warm_up_ns: 0.0, time_ns: 2e6, hold_ns, ..Run::new(Machine::example_with(cpus), cpus) };
        let (most, now) = (Rc::new(Cell::new(0)), Rc::new(Cell::new((0, 0))));
        let (seen, releases) = (Rc::clone(&most), Rc::clone(&now));
        let outcome = run.contend(ulocks_testkit::new_lock::<Lock<TWO, P>>, move |lock, worker| {
            if worker.random() < 1.0 / f64::from(every) {
                worker.acquire(|| lock.write());
                worker.hold();
                let before = own();
                // SAFETY: acquired above.
                unsafe { lock.unlock_write(()) };
                let counted = own() - before;
                seen.set(seen.get().max(counted));
                let (all, events) = releases.get();
                releases.set((all + u64::from(counted > 0), events + counted));
            } else {
                let token = worker.acquire(|| lock.read());
                worker.work_about(hold_ns);
                // SAFETY: acquired above.
                unsafe { lock.unlock_read(token) };
            }
        });
        let outcome = outcome.expect("a run of the cost model");
        let (releases, events) = now.get();
        let average = events as f64 / releases.max(1) as f64;
        println!(
            "{cpus:>2} CPUs, 1 write in {every}, {hold_ns} ns: {} operations, {} sleeps, {releases} releases with sleepers, \
             {average:.2} events each, {} at most",
            outcome.operations,
            outcome.kernel.sleeps,
            most.get()
        );
        // Without a pause before each further attempt it was seven on average, and hundreds at
        // most.
        assert!(average < 1.5 && most.get() <= 16, "a release is held up by those about to sleep");
    }
    for cpus in [4, 16, 64] {
        for every in [2, 10, 50] {
            for hold in [30.0, 1_000.0] {
                check::<Private<NoSpin, Own>>(cpus, every, hold);
                check::<Private<Adaptive, Own>>(cpus, every, hold);
            }
        }
    }
}
