//! Promises: waits for what other threads do, as a program declares them.

use crate::common::leaked;
use crate::deadlocks::held_by_me;
use crate::harness::{breaks, circle, fault};
use crate::{Fault, awaits, deadlock, dropped, open, order, order_of_three, twice};
use libc::SIGUSR1;
use std::mem;
use std::sync::mpsc;
use std::time::Duration;
use ulocks_debug::*;

pub const TABLE: &[Fault] = &[
    twice! { "an owner waits for its own promise", NoRecursion [reply = Promise::new()]
    reply.own();
    reply.wait(String::new) },
    order! { "inversion of a promise and a mutex", [reply = Promise::new(), mutex = Mutex::new(())]
    reply.own();
    mutex.lock();
    mutex.lock();
    reply.wait(String::new) },
    order! { "inversion of a mutex and a promise", [reply = Promise::new(), mutex = Mutex::new(())]
    mutex.lock();
    reply.wait(String::new);
    reply.own();
    mutex.lock() },
    order_of_three! { "inversion of two promises and a mutex", [a = Promise::new(), b = Promise::new(), mutex = Mutex::new(())]
    a.own();
    b.wait(String::new);
    b.own();
    mutex.lock();
    mutex.lock();
    a.wait(String::new) },
    // A mutex that both hold would keep two orders apart. A promise does not.
    order! { "inversion of two mutexes by owners of one promise", [reply = Promise::new(), a = Mutex::new(()), b = Mutex::new(())]
    (reply.own(), a.lock());
    b.lock();
    (reply.own(), b.lock());
    a.lock() },
    deadlock! { "deadlock of a promise and a mutex", [mutex = Mutex::new(()), reply = Promise::new()]
    mutex.lock();
    reply.own();
    mutex.lock();
    reply.wait(String::new) },
    ("deadlock of a promise and a mutex, after a wait in the wait", || {
        let (mutex, reply, other_reply) =
            (leaked(Mutex::new(())), leaked(Promise::new()), leaked(Promise::new()));
        let ((say, hear), (end, ended)) = (mpsc::channel(), mpsc::channel::<()>());
        let (mine, a1) = (reply.own(), line!());
        let b1 = line!() + 2;
        let other = std::thread::spawn(move || {
            let _in_mutex = mutex.lock();
            reply.wait(|| {
                other_reply.wait(String::new);
                say.send(()).unwrap();
                ended.recv().unwrap_err()
            })
        });
        hear.recv().unwrap();
        drop(mutex.try_lock_for(Duration::from_millis(1)));
        let a2 = line!() - 1;
        drop((mine, end));
        other.join().unwrap();
        vec![circle(Rule::Deadlock, &[(a1, a2), (b1, b1 + 1)])]
    }),
    open! { "a promise of a handler, owned with the signal open", SIGUSR1, [reply = Promise::new()]
    reply.wait(String::new);
    reply.own() },
    ("a thread ends as the owner of a promise", || {
        let reply = leaked(Promise::new());
        let before = line!() + 1;
        std::thread::spawn(|| mem::forget(reply.own())).join().unwrap();
        vec![fault(Rule::NoExit, None, before)]
    }),
    dropped! { "an owned promise is dropped", [reply = Promise::new()]
    reply.own();
    drop(reply) },
    ("a promise where an owned one was dropped", || {
        let mut place = Some(Promise::new());
        let before = line!() + 1;
        mem::forget(place.as_ref().unwrap().own());
        breaks(|| place = None);
        place.insert(Promise::new()).wait(|| ());
        assert_eq!(held_by_me(), 0);
        vec![fault(Rule::NotDropped, None, before)]
    }),
    awaits! { "an await as the owner of a promise", [reply = Promise::new()]
    reply.own() },
];
