//! A waiter that is bound to one CPU spins for nothing if all others are bound to the same; of that
//! a process can be sure only as long as it has seen no other. Alone in its file: the first waiters
//! of the process must be those below.
#![cfg(all(world = "machine", not(miri)))]

use std::thread;
use ulocks_core::spin::{Look, Patience, closely};
use ulocks_core::{Private, Shared};
use ulocks_testkit::task::{bind, cpus_of};

fn looks_in_one_process() -> bool {
    closely::<Private<Patience<1_000_000>>>(|| Look::Acquired)
}

fn looks_between_processes() -> bool {
    closely::<Shared<Patience<1_000_000>>>(|| Look::Acquired)
}

#[test]
fn one_bound_waiter_does_not_switch_spinning_off_for_the_process() {
    let cpus = cpus_of(0);
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let bound_to = |cpu| {
        let waiter = move || {
            bind(0, &[cpu]);
            (looks_in_one_process(), looks_between_processes())
        };
        thread::spawn(waiter).join().expect("a thread may bind itself to a CPU it may run on")
    };
    assert_eq!(bound_to(first), (false, true), "all waiters so far are bound to one CPU");
    assert_eq!(bound_to(first), (false, true), "so is the second");
    let many = first != last;
    assert_eq!(bound_to(last), (many, true), "the third is bound to another");
    assert_eq!(bound_to(first), (many, true), "from now on everybody spins");
}
