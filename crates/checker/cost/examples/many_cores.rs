//! Textbook locks on 1 to 512 virtual CPUs, with what each run took of real time.
//!
//! ```sh
//! cargo run --release -p ulocks-vm-cost --example many_cores [MACHINE.json]
//! ```
//!
//! Without a file, the machine is a guess. What is printed is predicted, whatever the machine.

use std::process::ExitCode;
use std::time::Instant;
use ulocks_vm_cost::{CostError, Machine, Outcome, Run};

#[path = "../src/bin/ulocks-vm-calibrate/simulated.rs"]
mod simulated;
use simulated::locks::{Lock, Mcs, Tas, ThreeState, Ticket, Ttas};

fn contend<L: Lock>(machine: &Machine, cpus: usize) -> Result<Outcome, CostError> {
    Run { warm_up_ns: 0.0, time_ns: 200_000.0, ..Run::new(machine.clone(), cpus) }.contend(
        move || L::new(cpus),
        |lock, worker| {
            worker.acquire(|| lock.lock(worker.index()));
            worker.hold();
            lock.unlock(worker.index());
        },
    )
}

fn main() -> ExitCode {
    match table() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("many_cores: {why}");
            ExitCode::FAILURE
        }
    }
}

fn table() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1);
    let machine = match &file {
        Some(file) => Machine::load(file)?,
        None => Machine::example_with(512),
    };
    type Costing = fn(&Machine, usize) -> Result<Outcome, CostError>;
    let locks: [(&str, Costing); 6] = [
        ("tas", contend::<Tas>),
        ("ttas", contend::<Ttas>),
        ("ticket", contend::<Ticket>),
        ("mcs", contend::<Mcs>),
        ("futex", contend::<ThreeState<0>>),
        ("futex, looks", contend::<ThreeState<100>>),
    ];
    print!(
        "{machine}\nPREDICTED operations/us, (transfers/operation), [milliseconds it took]\n{:>5}",
        "CPUs"
    );
    locks.iter().for_each(|(name, _)| print!(" {name:>22}"));
    println!();
    let sizes = (0..10).map(|doublings| 1 << doublings);
    for cpus in sizes.take_while(|&cpus| cpus <= machine.topology.total()) {
        print!("{cpus:>5}");
        for (_, costing) in &locks {
            let start = Instant::now();
            let outcome = costing(&machine, cpus)?;
            let took = start.elapsed().as_secs_f64() * 1e3;
            let cell = format!("{:.2} ({:.1}) [{took:.0}]", outcome.per_us, outcome.transfers_per_operation);
            print!(" {cell:>22}");
        }
        println!();
    }
    Ok(())
}
