//! Correct programs with futures that are watched.

// Two of the programs do so, and nothing waits.
#![allow(clippy::await_holding_lock)]

use crate::executor::{Travels, run, turn};
use std::future::ready;
use std::sync::Arc;
use ulocks_debug::*;

pub const TABLE: &[(&str, fn())] = &[
    ("locks between awaits", || {
        let (count, log) = (Mutex::new(0), RwLock::new(Vec::new()));
        let task = |id: u32| {
            let (count, log) = (&count, &log);
            watch(async move {
                for _ in 0..20 {
                    *count.lock() += 1;
                    turn().await;
                    log.write().push(id);
                    turn().await;
                    assert!(!log.read().is_empty());
                }
            })
        };
        run(vec![Box::pin(task(1)), Box::pin(task(2)), Box::pin(task(3))]);
        assert_eq!((*count.lock(), log.read().len()), (60, 60));
    }),
    ("a guard that a future returns", || {
        let mutex = Mutex::new(1);
        run(vec![Box::pin(async {
            let guard = watch(async {
                turn().await;
                mutex.lock()
            })
            .await;
            assert_eq!(*guard, 1);
        })]);
    }),
    ("a poll of a caller that holds a lock", || {
        let (outer, inner) = (Mutex::new(0), Mutex::new(0));
        let task = watch(async {
            for _ in 0..3 {
                *inner.lock() += 1;
                turn().await;
            }
        });
        let held = outer.lock();
        run(vec![Box::pin(task)]);
        drop(held);
        assert_eq!(inner.into_inner(), 3);
    }),
    ("an await that does not wait, with a lock", || {
        let mutex = Mutex::new(0);
        run(vec![Box::pin(watch(async {
            let mut held = mutex.lock();
            *held += ready(3).await;
            drop(held);
            turn().await;
        }))]);
        assert_eq!(mutex.into_inner(), 3);
    }),
    // What is not watched may hold a lock, and a watched future may release it.
    ("a lock of the poll before, released in this one", || {
        let mutex = Mutex::new(0);
        run(vec![Box::pin(async {
            let held = mutex.lock();
            turn().await;
            watch(async {
                drop(held);
                turn().await;
            })
            .await;
        })]);
    }),
    ("a task that goes from thread to thread", || {
        let mutex = Arc::new(Mutex::new(0));
        let shared = Arc::clone(&mutex);
        // It never has a guard where it waits.
        let mut task = Travels(Box::pin(watch(async move {
            for _ in 0..6 {
                *shared.lock() += 1;
                turn().await;
            }
        })));
        for _ in 0..6 {
            task = std::thread::spawn(move || {
                assert!(!task.step());
                task
            })
            .join()
            .unwrap();
        }
        assert!(task.step());
        assert_eq!(*mutex.lock(), 6);
    }),
];
