//! Correct programs that declare what their threads wait for.

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
