//! A process has the CPUs of all its threads that sleep at locks, also if each is bound to one.
//! Alone in its file: no other thread of the process may have waited before.
#![cfg(all(world = "machine", not(miri)))]

use std::sync::mpsc;
use std::thread;
use ulocks_core::queue::{InOrder, QueueMutex};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, cpu};
use ulocks_testkit::task::{self, bind, cpus_of, until_asleep};

/// A thread that is bound to `cpu` sleeps for a mutex.
fn sleep_on(cpu: usize) {
    let mutex = QueueMutex::<Private<NoSpin>, InOrder>::new();
    let (tell, told) = mpsc::channel();
    mutex.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            bind(0, &[cpu]);
            tell.send(task::id()).unwrap();
            mutex.lock();
            // SAFETY: locked above; the token is nothing.
            unsafe { mutex.unlock(()) };
        });
        until_asleep(&[told.recv().unwrap()]);
        // SAFETY: locked above.
        unsafe { mutex.unlock(()) };
    });
}

#[test]
fn bound_threads_have_their_cpus_between_them() {
    let cpus = cpus_of(0);
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    // A quota may be less.
    let both = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(2) as u32);
    sleep_on(first);
    assert_eq!(cpu::count(), 1, "the only thread that has slept is bound to one CPU");
    sleep_on(last);
    assert_eq!(cpu::count(), both);
    sleep_on(first);
    assert_eq!(cpu::count(), both);
}
