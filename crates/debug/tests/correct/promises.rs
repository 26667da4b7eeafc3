//! Correct programs that declare what their threads wait for.

use crate::common::{blocked, interrupt, leaked, opened, own_signal};
use libc::SIGUSR1;
use std::sync::mpsc;
use ulocks_debug::*;
use ulocks_testkit::limit;

pub const TABLE: &[(&str, fn())] = &[
    ("requests with a promise each", || {
        let table = Mutex::new(0);
        let (ask, asked) = mpsc::channel::<(mpsc::Sender<u32>, std::sync::Arc<Promise>)>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (answer, reply) in asked {
                    let owner = reply.own();
                    let mut count = table.lock();
                    *count += 1;
                    let now = *count;
                    drop((count, owner));
                    answer.send(now).unwrap();
                }
            });
            for _ in 0..3 {
                let ask = ask.clone();
                let _client = scope.spawn(move || {
                    for _ in 0..100 {
                        let (answer, answered) = mpsc::channel();
                        let reply = std::sync::Arc::new(Promise::new());
                        ask.send((answer, reply.clone())).unwrap();
                        assert!(reply.wait(|| answered.recv()).unwrap() > 0);
                    }
                });
            }
            drop(ask);
        });
        assert_eq!(*table.lock(), 300);
    }),
    // What an owner holds already is asked for before.
    ("an owner that has the lock before", || {
        let (mutex, reply) = (Mutex::new(0), Promise::new());
        for _ in 0..2 {
            let held = mutex.lock();
            let owner = reply.own();
            drop((owner, held));
            let held = mutex.lock();
            reply.wait(|| ());
            drop(held);
        }
    }),
    ("an owner that waits on a condition variable", || {
        let (mutex, changed, reply) = (Mutex::new(()), Condvar::new(), Promise::new());
        let owner = reply.own();
        changed.wait_for(&mut mutex.lock(), std::time::Duration::from_millis(1));
        drop(owner);
    }),
    // The waiter runs, and releases.
    ("an owner that waits for what is acquired in the wait", || {
        // With the slot of the list free at the start of the wait, and with a lock in it.
        for is_used in [false, true] {
            let (before, table, reply) = (Mutex::new(()), Mutex::new(()), Promise::new());
            let (say, hear) = mpsc::channel();
            std::thread::scope(|scope| {
                let (table, reply) = (&table, &reply);
                scope.spawn(move || {
                    let owner = reply.own();
                    hear.recv().unwrap();
                    drop(table.lock());
                    drop(owner);
                });
                let in_before = is_used.then(|| before.lock());
                reply.wait(|| {
                    drop(in_before);
                    let in_table = table.lock();
                    say.send(()).unwrap();
                    limit::until("the owner waits", || waiters().len() == 2);
                    assert!(deadlocks().is_empty());
                    drop(in_table);
                });
            });
        }
    }),
    ("a mutex is waited for in a wait for a promise", || {
        const TABLE: &Class = &Class::new("table");
        const REPLY: &Class = &Class::new("a late reply");
        let (table, reply) = (Mutex::new_in(TABLE, ()), Promise::new_in(REPLY));
        let ((say, hear), (end, ended)) = (mpsc::channel(), mpsc::channel::<()>());
        let waits_for = |name: &str| waiters().iter().any(|waiter| waiter.to_string().contains(name));
        std::thread::scope(|scope| {
            let (table, reply) = (&table, &reply);
            let in_table = table.lock();
            scope.spawn(move || {
                reply.wait(|| {
                    drop(table.lock());
                    say.send(()).unwrap();
                    ended.recv().unwrap_err()
                })
            });
            limit::until("it waits for the table", || waits_for("waits for `table`"));
            drop(in_table);
            hear.recv().unwrap();
            assert!(waits_for("waits for `a late reply`") && waiters().len() == 1, "{:?}", waiters());
            drop(end);
        });
        assert!(waiters().is_empty());
    }),
    ("a promise of a handler, waited for with the signal open", || {
        let (mutex, reply) = (leaked(Mutex::new(())), leaked(Promise::new()));
        interrupt(SIGUSR1, || reply.wait(|| ()));
        reply.wait(|| ());
        drop(blocked(&[SIGUSR1], || reply.own()));
        // A promise that threads wait for, and what they hold then is a lock of a handler.
        let asked = leaked(Promise::new());
        asked.wait(|| ());
        interrupt(SIGUSR1, || drop(mutex.lock()));
        blocked(&[SIGUSR1], || {
            let _in_mutex = mutex.lock();
            asked.wait(|| ());
        });
        drop(Mutex::new(()).lock());
    }),
    ("two handlers that wait for one promise", || {
        let (reply, other) = (leaked(Promise::new()), own_signal(0));
        interrupt(SIGUSR1, move || opened(&[other], || reply.wait(|| ())));
        interrupt(other, || reply.wait(|| ()));
        drop(Mutex::new(()).lock());
    }),
    ("a list of waiters for promises", || {
        const REPLY: &Class = &Class::new("reply");
        let reply = Promise::new_in(REPLY);
        let owner = reply.own();
        assert!(held().locks()[0].lock.to_string().contains("`reply`"), "{}", held());
        let (send, receive) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let reply = &reply;
            scope.spawn(move || reply.wait(|| receive.recv().unwrap_err()));
            limit::until("a thread waits", || !waiters().is_empty());
            assert!(waiters()[0].to_string().contains("waits for `reply`"), "{}", waiters()[0]);
            assert!(deadlocks().is_empty());
            drop((owner, send));
        });
        assert!(waiters().is_empty());
    }),
];
