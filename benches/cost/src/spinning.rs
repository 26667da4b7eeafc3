//! The spin locks of the literature: what a lock costs that does nothing but its algorithm. They
//! are yardsticks for the family.
//!
//! J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors" (ACM TOCS 1991). Each word lies on a cache line of its own.

use crossbeam_utils::CachePadded;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicBool, AtomicU32, pause, spin_until};
use ulocks_vm_cost::{CostError, Outcome, Run};

/// Test-and-set: every look is a write. Test-and-test-and-set `LOOKS` until the lock seems free.
pub(super) fn test_and_set<const LOOKS: bool>(run: &Run, _: f64) -> Result<Outcome, CostError> {
    run.contend(CachePadded::<AtomicBool>::default, |taken, worker| {
        worker.acquire(|| {
            loop {
                if LOOKS {
                    spin_until(|| !taken.load(Relaxed));
                }
                if !taken.swap(true, Acquire) {
                    break;
                }
                if !LOOKS {
                    pause();
                }
            }
        });
        worker.hold();
        taken.store(false, Release);
    })
}

/// First come, first served; all look at one word.
pub(super) fn ticket(run: &Run, _: f64) -> Result<Outcome, CostError> {
    run.contend(<[CachePadded<AtomicU32>; 2]>::default, |[next, serving], worker| {
        let mine = worker.acquire(|| {
            let mine = next.fetch_add(1, Relaxed);
            spin_until(|| serving.load(Acquire) == mine);
            mine
        });
        worker.hold();
        serving.store(mine.wrapping_add(1), Release);
    })
}

#[derive(Default)]
struct Node {
    next: AtomicU32,
    waits: AtomicBool,
}

/// First come, first served; each looks at a word of its own. Nodes are named by numbers, and node
/// 0 is no thread's.
pub(super) fn mcs(run: &Run, _: f64) -> Result<Outcome, CostError> {
    let nodes = run.threads + 1;
    let make = move || {
        let nodes: Vec<CachePadded<Node>> = (0..nodes).map(|_| CachePadded::default()).collect();
        (CachePadded::<AtomicU32>::default(), nodes)
    };
    run.contend(make, |(tail, nodes), worker| {
        let mine = worker.index() + 1;
        let Node { next, waits } = &*nodes[mine];
        worker.acquire(|| {
            next.store(0, Relaxed);
            waits.store(true, Relaxed);
            let before = tail.swap(mine as u32, AcqRel);
            if before != 0 {
                nodes[before as usize].next.store(mine as u32, Release);
                spin_until(|| !waits.load(Acquire));
            }
        });
        worker.hold();
        if next.load(Acquire) == 0 {
            if tail.compare_exchange(mine as u32, 0, Release, Relaxed).is_ok() {
                return;
            }
            spin_until(|| next.load(Acquire) != 0);
        }
        nodes[next.load(Acquire) as usize].waits.store(false, Release);
    })
}
