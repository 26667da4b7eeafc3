//! From measurements to parameters: some are read off, some are solved for, so that the model
//! repeats what was measured. No lock is part of it.

use crate::probes::{
    Alone, Sharing, alone, contended_add, lateness, misses, ping_pong, sharing, wake_up, walk,
};
use crate::topology::Cpus;
use std::collections::BTreeMap;
use std::time::Duration;
use ulocks_vm::sync::{AtomicU32, Ordering::*, spin_until};
use ulocks_vm_cost::{Kernel, Machine, Memory, Origin, Run, Scheduler, Topology};

/// Parameters and where they come from.
struct Sources(BTreeMap<String, String>);

impl Sources {
    fn note(&mut self, parameter: &str, source: impl Into<String>) {
        self.0.insert(parameter.into(), source.into());
    }
}

/// Measures, and says what it does on standard error.
pub fn calibrate(name: &str, cpus: &Cpus) -> Machine {
    let mut sources = Sources(BTreeMap::new());
    sources.note("topology", &cpus.remark);
    let say = |what: &str| eprintln!("calibrating: {what}");

    say("one CPU");
    let (here, pairs) = (cpus.list[0], cpus.pairs());
    let alone = alone(here);
    say("lines between CPUs");
    let mut memory = lines(&alone, pairs, &mut sources);
    say("sleeping and waking");
    let sharing = sharing(here);
    let nearest = pairs.into_iter().flatten().next();
    let kernel = kernel(here, nearest, &alone, &sharing, &mut sources);
    let context_switch = (sharing.yielding - kernel.futex).max(0.0);
    sources.note(
        "scheduler.context_switch",
        format!("measured: two threads that yield, {:.0}, less a system call", sharing.yielding),
    );
    let wake_preemption = sharing.wake_up_and_yield > 1.5 * sharing.wake_up;
    sources.note(
        "scheduler.wake_preemption",
        format!(
            "measured: a wake-up on the same CPU takes {:.0} if it may let the other run, {:.0} if not",
            sharing.wake_up_and_yield, sharing.wake_up
        ),
    );
    sources.note("scheduler.migration", "not measured; guessed 1000");
    let slice = sharing.slice.unwrap_or(3e6);
    let source = if sharing.slice.is_some() { "measured: two threads that compute" } else { "guessed" };
    sources.note("scheduler.slice", source);
    let mut machine = Machine {
        name: name.into(),
        origin: Origin::Measured,
        topology: cpus.topology,
        memory,
        kernel,
        scheduler: Scheduler {
            slice: slice.round(),
            wake_preemption,
            context_switch: round(context_switch),
            migration: 1_000.0,
        },
        noise: None,
        sources: BTreeMap::new(),
    };
    if let Some(pair) = nearest {
        say("two CPUs on one line");
        let measured = contended_add(pair);
        let (share, reached) = solve_request_share(&machine, measured);
        memory.request_share = share;
        machine.memory = memory;
        let (real, modelled) = (ping_pong(pair), modelled_ping_pong(&machine));
        say(&format!(
            "as a check, a line goes there and back in {real:.0} ns, and in the model in {modelled:.0} ns"
        ));
        sources.note(
            "memory.request_share",
            format!(
                "solved for {measured:.1} additions/us of two CPUs on one line; the model makes {reached:.1}"
            ),
        );
    } else {
        sources.note("memory.request_share", "not measured: one CPU only; guessed");
    }
    machine.memory = memory;
    machine.sources = sources.0;
    machine
}

fn lines(alone: &Alone, pairs: [Option<(usize, usize)>; 3], sources: &mut Sources) -> Memory {
    sources.note(
        "memory.hit",
        "measured: what a load or store adds beside a read-modify-write, but at least 0.05",
    );
    sources.note("memory.rmw", "measured: swap on an own line, less a hit");
    sources.note("memory.fence", "measured: beside a store");
    sources.note("memory.pause", "measured");
    sources.note("memory.clock_read", "measured");
    sources.note("memory.store_buffer", "not measured; true of current processors");
    let mut transfers = [None; 3];
    let mut migratory = None;
    for ((transfer, pair), name) in transfers.iter_mut().zip(pairs).zip([
        "memory.same_complex",
        "memory.same_socket",
        "memory.cross_socket",
    ]) {
        let Some(pair) = pair else { continue };
        let misses = misses(pair);
        sources.note(
            name,
            format!(
                "measured: reads ({:.1}) and updates ({:.1}) of lines that CPU {} has written, by CPU {}, less a hit",
                misses.read, misses.update, pair.1, pair.0
            ),
        );
        let one = (misses.read + misses.update - alone.rmw) / 2.0 - alone.hit;
        *transfer = Some(one.max(alone.hit));
        migratory.get_or_insert(misses);
    }
    if let Some(misses) = &migratory {
        sources.note(
            "memory.migratory",
            format!(
                "measured: an update of a line that was modified by the other and read before takes {:.1}",
                misses.upgrade
            ),
        );
    } else {
        sources.note("memory.migratory", "not measured: one CPU only; guessed");
    }
    let migratory = migratory.is_some_and(|misses| misses.upgrade < (misses.update + alone.rmw) / 2.0);
    // What is not there costs what the next nearer costs, and cannot be reached anyway.
    let mut last = transfers.iter().flatten().copied().next().unwrap_or(50.0).max(alone.hit);
    let [same_complex, same_socket, cross_socket] = transfers.map(|transfer| {
        last = transfer.unwrap_or(last).max(last);
        round(last)
    });
    for (transfer, name) in
        transfers.iter().zip(["memory.same_complex", "memory.same_socket", "memory.cross_socket"])
    {
        if transfer.is_none() {
            sources.note(name, "not measured: no such pair of CPUs; as the next nearer");
        }
    }
    sources.note("memory.read_occupancy", "not measured: needs many readers; guessed, at most a transfer");
    sources.note(
        "memory.memory",
        if alone.memory.is_some() {
            "measured: flushed lines"
        } else {
            "not measured on this architecture; guessed"
        },
    );
    Memory {
        hit: round(alone.hit),
        rmw: round(alone.rmw),
        fence: round(alone.fence),
        same_complex,
        same_socket,
        cross_socket,
        memory: round(alone.memory.unwrap_or(90.0)),
        read_occupancy: round(same_complex.min(10.0)),
        request_share: 0.5,
        migratory,
        store_buffer: true,
        pause: round(alone.pause),
        clock_read: round(alone.clock_read),
    }
}

fn kernel(
    here: usize,
    nearest: Option<(usize, usize)>,
    alone: &Alone,
    sharing: &Sharing,
    sources: &mut Sources,
) -> Kernel {
    const QUEUE: f64 = 30.0;
    let futex = (alone.wake_nobody - QUEUE).max(0.0);
    sources.note("kernel.futex", "measured: a wake-up of nobody, less kernel.queue");
    sources.note("kernel.queue", "not measured; guessed 30");
    let walk = walk(here, alone.wake_nobody);
    sources.note("kernel.walk", "measured: a wake-up that passes over sleepers with another mask");
    let call = sharing.wake_up - alone.clock_read;
    let wake = (call - alone.wake_nobody - walk).max(0.0);
    sources.note(
        "kernel.wake",
        format!("measured: a wake-up on the same CPU, {call:.0}, less a call for nobody"),
    );
    let switch = (sharing.yielding - futex).max(0.0);
    let block = (sharing.futexes - call - alone.wake_nobody - switch).max(0.0);
    let futexes = sharing.futexes;
    sources.note(
        "kernel.block",
        format!("measured: what is left of handing over by futexes on one CPU, {futexes:.0}, in all"),
    );
    let (interrupt, wake_latency) = if let Some(pair) = nearest {
        let soon = wake_up(pair, Duration::from_micros(20));
        let late = wake_up(pair, Duration::from_micros(500));
        sources.note(
            "kernel.interrupt",
            format!(
                "measured: a wake-up on a CPU idle for 20 us, {:.0} (for 500 us: {:.0}), less one on the same CPU",
                soon.call, late.call
            ),
        );
        sources.note(
            "kernel.wake_latency",
            format!(
                "measured: until a thread runs on a CPU idle for 20 us, {:.0} (for 500 us: {:.0}), less the call",
                soon.latency, late.latency
            ),
        );
        ((soon.call - alone.clock_read - call).max(0.0), (soon.latency - alone.clock_read - call).max(0.0))
    } else {
        sources.note("kernel.interrupt", "not measured: one CPU only; guessed 500");
        sources.note("kernel.wake_latency", "not measured: one CPU only; guessed 3000");
        (500.0, 3_000.0)
    };
    let late = lateness(here);
    sources.note(
        "kernel.timer_slack",
        format!("measured: a sleep of 1 ms is {late:.0} late, less kernel.wake_latency"),
    );
    sources.note("kernel.spawn", "measured");
    Kernel {
        futex: round(futex),
        queue: QUEUE,
        walk: round(walk),
        block: round(block),
        wake: round(wake),
        interrupt: round(interrupt),
        wake_latency: round(wake_latency),
        timer_slack: round((late - wake_latency).max(0.0)),
        spawn: round(alone.spawn),
    }
}

/// As the probe of that name, in the model, in nanoseconds.
fn modelled_ping_pong(machine: &Machine) -> f64 {
    const TURNS: u32 = 1_000;
    let mut machine = machine.clone();
    machine.memory.pause = machine.memory.hit.max(0.1);
    let outcome = Run { warm_up_ns: 0.0, time_ns: 1e8, ..Run::new(machine, 2) }.of(
        || AtomicU32::new(0),
        |word, worker| {
            for turn in 0..TURNS {
                spin_until(|| word.load(Acquire) == 2 * turn + worker.index() as u32);
                word.store(2 * turn + worker.index() as u32 + 1, Release);
            }
        },
    );
    outcome.expect("each waits for the other alone").time_ns / f64::from(TURNS)
}

/// The share at which the model adds as fast as the machine, and how fast that is. If none does,
/// the nearest.
fn solve_request_share(machine: &Machine, measured: f64) -> (f64, f64) {
    let adds = |share: f64| {
        let mut machine = machine.clone();
        machine.topology = Topology { sockets: 1, complexes: 1, cpus: 2 };
        machine.memory.request_share = share;
        let run = Run { time_ns: 1e5, ..Run::new(machine, 2) };
        let outcome = run.of(
            || AtomicU32::new(0),
            |word, worker| loop {
                word.fetch_add(1, Relaxed);
                worker.count();
            },
        );
        outcome.expect("nobody waits").per_us
    };
    let shares = (0..=100).map(|percent| f64::from(percent) / 100.0);
    let off = |reached: f64| (reached / measured).ln().abs();
    shares
        .map(|share| (share, adds(share)))
        .min_by(|one, other| off(one.1).total_cmp(&off(other.1)))
        .expect("there are shares")
}

/// To three digits after the point: more is noise.
fn round(ns: f64) -> f64 {
    (ns * 1e3).round() / 1e3
}
