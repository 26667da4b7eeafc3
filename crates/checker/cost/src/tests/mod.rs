//! The laws of locks come out of the model, and counts that can be made by hand are exact. Errors
//! planted in the model, which these tests must notice, are in `mutants/cost.toml`.

mod counts;
mod kernel;
mod laws;
mod locks;
mod noise;
mod spinning;

use super::{CostError, Machine, Outcome, Run, Worker};
use ulocks_vm::sync::AtomicU32;

/// A machine on which times are easy to add up: one complex of 16 CPUs, no time for anything but
/// what a test sets.
fn plain() -> Machine {
    let mut machine = Machine::example();
    machine.name = "plain".into();
    machine.topology = super::Topology { sockets: 1, complexes: 1, cpus: 16 };
    machine.memory = super::Memory {
        hit: 1.0,
        rmw: 4.0,
        fence: 5.0,
        same_complex: 40.0,
        same_socket: 40.0,
        cross_socket: 40.0,
        memory: 80.0,
        read_occupancy: 10.0,
        request_share: 0.5,
        migratory: false,
        store_buffer: false,
        pause: 10.0,
        clock_read: 0.0,
    };
    machine.kernel = super::Kernel {
        futex: 100.0,
        queue: 0.0,
        walk: 0.0,
        block: 200.0,
        wake: 300.0,
        interrupt: 400.0,
        wake_latency: 2_000.0,
        timer_slack: 0.0,
        spawn: 1_000.0,
    };
    machine.scheduler =
        super::Scheduler { slice: 10_000.0, wake_preemption: false, context_switch: 500.0, migration: 0.0 };
    machine
}

/// A run on it with a CPU for each worker.
fn on_plain(threads: usize) -> Run {
    Run { warm_up_ns: 0.0, time_ns: 1e6, ..Run::new(plain(), threads) }
}

/// What comes of `body` in so many threads on it.
#[track_caller]
fn ran<S: 'static>(
    threads: usize,
    state: impl FnOnce() -> S,
    body: impl Fn(&S, &Worker) + 'static,
) -> Outcome {
    on_plain(threads).of(state, body).unwrap()
}

/// A word that is 0, which the threads of a run share.
fn word() -> AtomicU32 {
    AtomicU32::new(0)
}

/// They share nothing.
fn nothing() {}

/// A lock under contention.
fn contend<L: locks::Lock>(run: &Run) -> Result<Outcome, CostError> {
    let threads = run.threads;
    run.contend(
        move || L::new(threads),
        |lock, worker| {
            worker.acquire(|| lock.lock(worker.index()));
            worker.hold();
            lock.unlock(worker.index());
        },
    )
}
