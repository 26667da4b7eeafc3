//! A waiter that is bound to one CPU spins for nothing if all others are bound to the same; of that
//! a process can be sure only as long as it has seen no other. Alone in its file: the first waiters
//! of the process must be those below.
#![cfg(all(world = "machine", not(miri)))]

use std::thread;
use ulocks_core::spin::{Look, Patience, closely};
use ulocks_core::{Private, Shared};
use ulocks_testkit as _;

fn looks_in_one_process() -> bool {
    closely::<Private<Patience<1_000_000>>>(|| Look::Acquired)
}

fn looks_between_processes() -> bool {
    closely::<Shared<Patience<1_000_000>>>(|| Look::Acquired)
}

/// The CPUs this thread may run on.
fn allowed() -> Vec<usize> {
    // SAFETY: a CPU set is a bit field, for which all-zero is a value.
    let mut cpus: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the size is that of `cpus`, which is writable; 0 names the calling thread.
    assert_eq!(unsafe { libc::sched_getaffinity(0, size_of_val(&cpus), &raw mut cpus) }, 0);
    // SAFETY: every index is within the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &cpus) }).collect()
}

fn bind_to(cpu: usize) {
    // SAFETY: a CPU set is a bit field, for which all-zero is a value.
    let mut one: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the index is that of a CPU in another set of the same size.
    unsafe { libc::CPU_SET(cpu, &mut one) };
    // SAFETY: the size is that of `one`, which is borrowed for the call; 0 names the calling
    // thread.
    assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&one), &raw const one) }, 0);
}

#[test]
fn one_bound_waiter_does_not_switch_spinning_off_for_the_process() {
    let cpus = allowed();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let bound_to = |cpu| {
        let waiter = move || {
            bind_to(cpu);
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
