//! The queue and the pool on the virtual machine: the code of `src/bounded_queue.rs` and
//! `src/job_pool.rs` as it stands, with more threads than loom can take, and the histories of the
//! queue checked for linearizability.
//!
//! `RUSTFLAGS="--cfg ulocks_vm" cargo test --profile model --features vm -p ulocks-examples --test
//! vm`
#![cfg(all(ulocks_vm, feature = "vm"))]

mod clients;

use clients::pool::{crosswise, job_and_pause, timed};
use clients::queue::{close_on_two, in_order, one_to_two, timed_pop, two_to_one};
use clients::spawn;
use std::sync::Arc;
use ulocks_core::model::linear::Recorder;
use ulocks_core::model::linear::specs::{Queue, QueueCall};
use ulocks_core::model::{Config, explore, thread};
use ulocks_examples::{BoundedQueue, JobPool};

#[test]
fn every_item_comes_out_once() {
    explore(Config::sampled(3_000), two_to_one);
    explore(Config::sampled(3_000), one_to_two);
}

#[test]
fn items_come_out_in_the_order_they_went_in() {
    explore(Config::sampled(3_000), in_order);
}

#[test]
fn closing_ends_every_wait() {
    explore(Config::sampled(3_000), close_on_two);
}

#[test]
fn a_timed_pop_gets_the_item_or_leaves_it() {
    explore(Config::sampled(3_000), timed_pop);
}

/// Three producers and three consumers; what they did is what some order of their calls would have
/// done.
#[test]
fn pushes_and_pops_are_linearizable() {
    explore(Config::sampled(1_000), || {
        let queue = Arc::new(BoundedQueue::<u32>::new(2));
        let recorder = Recorder::new();
        let producers: Vec<_> = (0..3)
            .map(|me| {
                let recorder = recorder.clone();
                spawn(&queue, move |queue| {
                    for item in [2 * me, 2 * me + 1] {
                        recorder.record(QueueCall::Push(item), || {
                            queue.push(item).unwrap();
                            None
                        });
                    }
                })
            })
            .collect();
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                let recorder = recorder.clone();
                spawn(&queue, move |queue| {
                    for _ in 0..2 {
                        recorder.record(QueueCall::Pop, || queue.pop());
                    }
                })
            })
            .collect();
        for thread in producers.into_iter().chain(consumers) {
            thread.join().unwrap();
        }
        if let Err(history) = recorder.check(&Queue::new()) {
            panic!("{history}");
        }
    });
}

#[test]
fn jobs_that_need_the_same_things_do_not_deadlock() {
    explore(Config::sampled(3_000), crosswise);
}

#[test]
fn no_job_runs_in_a_pause() {
    explore(Config::sampled(3_000), job_and_pause);
}

#[test]
fn a_job_that_gives_up_has_taken_nothing() {
    explore(Config::sampled(3_000), timed);
}

/// Five philosophers: a table that is a pool of five forks, of which each job needs two neighbours.
#[test]
fn everybody_eats() {
    explore(Config::sampled(1_000), || {
        let table = Arc::new(JobPool::new(&[1; 5]));
        let philosophers: Vec<_> = (0..5)
            .map(|left| {
                let right = (left + 1) % 5;
                spawn(&table, move |table| {
                    for _ in 0..2 {
                        let forks = table.take(&[(left, 1), (right, 1)]).unwrap();
                        let free = table.free();
                        assert_eq!((free[left], free[right]), (0, 0));
                        drop(forks);
                    }
                })
            })
            .collect();
        for philosopher in philosophers {
            philosopher.join().unwrap();
        }
        assert_eq!(table.free(), [1; 5]);
    });
}
