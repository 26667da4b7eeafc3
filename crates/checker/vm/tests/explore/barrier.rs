//! `membarrier`: a full fence that one thread makes on all of them.

use crate::{all_outcomes, shared};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::{AcqRel, Relaxed};
use ulocks_vm::sync::membarrier;

type Words = (AtomicU32, AtomicU32);

/// Store buffering: without a barrier both may read zero.
#[test]
fn one_barrier_forbids_store_buffering() {
    let left = |(x, y): &Words| {
        x.store(1, Relaxed);
        y.load(Relaxed)
    };
    all_outcomes(
        move || {
            shared((AtomicU32::new(0), AtomicU32::new(0))).threads([left, |(x, y)| {
                y.store(1, Relaxed);
                x.load(Relaxed)
            }])
        },
        [[0, 0], [0, 1], [1, 0], [1, 1]],
    );
    all_outcomes(
        move || {
            shared((AtomicU32::new(0), AtomicU32::new(0))).threads([left, |(x, y)| {
                y.store(1, Relaxed);
                membarrier();
                x.load(Relaxed)
            }])
        },
        [[0, 1], [1, 0], [1, 1]],
    );
}

/// A barrier that strikes *before* the other thread's store orders what that thread loads after it,
/// although there is no fence between its store and its load. (A plain store beside a
/// read-modify-write: the release of an asymmetric mutex.)
#[test]
fn what_was_stored_before_a_barrier_is_loaded_after_it() {
    all_outcomes(
        || {
            shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
                |(word, gate): &Words| {
                    word.store(1, Relaxed);
                    gate.load(Relaxed)
                },
                |(word, gate): &Words| {
                    gate.fetch_add(1, Relaxed);
                    membarrier();
                    word.swap(2, AcqRel)
                },
            ])
        },
        // If the exchange did not see the store, the load sees the addition.
        [[0, 1], [1, 0], [1, 1]],
    );
}
