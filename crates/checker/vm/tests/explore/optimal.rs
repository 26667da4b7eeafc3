//! How many executions an exploration takes: one for each execution graph, and few that repeat one.

use crate::{discard, with};
use std::sync::Arc;
use ulocks_vm::explore::{Config, explore};
use ulocks_vm::futex;
use ulocks_vm::sync::Ordering::{self, Relaxed, SeqCst};
use ulocks_vm::sync::{AtomicU32, fence};

#[derive(Clone, Copy)]
enum Op {
    Load(usize),
    Store(usize),
    Add(usize),
    Fence,
    Wake(usize),
}
use Op::{Add, Fence, Load, Store, Wake};

/// Executions, and redundant ones, of threads that run `program`.
#[track_caller]
fn counts(config: Config, program: &[Vec<Op>], order: Ordering) -> (u64, u64) {
    let (program, is_bound) = (program.to_vec(), config.stale == 0);
    let report = explore(Config { executions: u64::MAX, ..config }, move || {
        let words: Arc<[AtomicU32; 4]> = Arc::default();
        let spawn = |ops: Vec<Op>| {
            with(&words, move |words| {
                for op in ops {
                    match op {
                        Load(word) => discard(words[word].load(order)),
                        Store(word) => words[word].store(1, order),
                        Add(word) => discard(words[word].fetch_add(1, order)),
                        Fence => fence(order),
                        Wake(word) => discard(futex::wake(crate::address(&words[word]), 1, 1, true)),
                    }
                }
            })
        };
        let threads: Vec<_> = program.clone().into_iter().map(spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert!(report.finished && (report.complete || is_bound), "{report}");
    (report.executions, report.redundant)
}

/// `threads` threads of the same operations.
fn same(threads: usize, ops: &[Op]) -> Vec<Vec<Op>> {
    vec![ops.to_vec(); threads]
}

/// A writer, and so many readers.
fn readers(count: usize) -> Vec<Vec<Op>> {
    [vec![Store(0)]].into_iter().chain(same(count, &[Load(0)])).collect()
}

#[test]
fn executions_are_as_many_as_graphs() {
    let iriw = vec![vec![Store(0)], vec![Store(1)], vec![Load(0), Load(1)], vec![Load(1), Load(0)]];
    let two_words = [same(2, &[Store(0), Store(1)]), same(2, &[Load(0), Load(1)])].concat();
    let apart = (0..4).map(|word| vec![Store(word), Load(word), Store(word)]).collect::<Vec<_>>();
    let table: [(&str, Vec<Vec<Op>>, Ordering, u64); 17] = [
        ("2 writers", same(2, &[Store(0)]), Relaxed, 2),
        ("1 reader", readers(1), Relaxed, 2),
        ("3 that read", same(3, &[Load(0)]), Relaxed, 1),
        ("3 fences", same(3, &[Fence]), SeqCst, 1),
        ("3 wake-ups", same(3, &[Wake(0)]), Relaxed, 6),
        ("3 add", same(3, &[Add(0)]), Relaxed, 6),
        ("4 add", same(4, &[Add(0)]), Relaxed, 24),
        ("6 add", same(6, &[Add(0)]), Relaxed, 720),
        ("3 readers", readers(3), Relaxed, 8),
        ("7 readers", readers(7), Relaxed, 128),
        ("8 readers", readers(8), Relaxed, 256),
        ("10 readers", readers(10), Relaxed, 1_024),
        ("4 writers", same(4, &[Store(0)]), Relaxed, 24),
        ("3 add twice", same(3, &[Add(0), Add(0)]), Relaxed, 90),
        ("IRIW, sequentially consistent", iriw, SeqCst, 15),
        ("2 writers and 2 readers of two words", two_words, Relaxed, 324),
        ("4 threads on words of their own", apart, Relaxed, 1),
    ];
    for (name, program, order, graphs) in table {
        assert_eq!(counts(Config::exhaustive(), &program, order), (graphs, 0), "{name}");
    }
    for (program, orders) in [(same(2, &[Store(0)]), 2), (readers(1), 2), (same(2, &[Load(0)]), 1)] {
        let newest = Config { stale: 0, ..Config::exhaustive() };
        assert_eq!(counts(newest, &program, Relaxed), (orders, 0), "with newest values only");
    }
}
