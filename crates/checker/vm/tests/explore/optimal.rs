//! How many executions an exploration takes: one for each execution graph, and few that repeat one.

use crate::discard;
use std::sync::Arc;
use ulocks_vm::explore::{Config, explore};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::{self, Relaxed, SeqCst};
use ulocks_vm::thread;

#[derive(Clone, Copy)]
enum Op {
    Load(usize),
    Store(usize),
    Add(usize),
}
use Op::{Add, Load, Store};

/// Executions, and redundant ones, of threads that run `program`.
#[track_caller]
fn counts(program: &[Vec<Op>], order: Ordering) -> (u64, u64) {
    let program = program.to_vec();
    let report = explore(Config { executions: u64::MAX, ..Config::exhaustive() }, move || {
        let words: Arc<[AtomicU32; 4]> = Arc::default();
        let spawn = |ops: Vec<Op>| {
            let words = Arc::clone(&words);
            thread::spawn(move || {
                for op in ops {
                    match op {
                        Load(word) => discard(words[word].load(order)),
                        Store(word) => words[word].store(1, order),
                        Add(word) => discard(words[word].fetch_add(1, order)),
                    }
                }
            })
        };
        let threads: Vec<_> = program.clone().into_iter().map(spawn).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert!(report.complete, "{report}");
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
    let table: [(&str, Vec<Vec<Op>>, Ordering, u64); 12] = [
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
        assert_eq!(counts(&program, order), (graphs, 0), "{name}");
    }
}
