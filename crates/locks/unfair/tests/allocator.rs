//! A global allocator that is guarded by the mutex: locking allocates nothing and needs no
//! thread-local destructor.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::alloc::{GlobalAlloc, Layout, System};
use ulocks_testkit as _;
use ulocks_unfair::BargingMutex;

struct Guarded {
    live: BargingMutex<usize>,
}

#[global_allocator]
static GLOBAL: Guarded = Guarded { live: BargingMutex::new(0) };

// SAFETY: every call is passed on to `System`, whose results are returned unchanged.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut live = self.live.lock();
        // SAFETY: the caller's contract is the callee's.
        let memory = unsafe { System.alloc(layout) };
        *live += usize::from(!memory.is_null());
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let mut live = self.live.lock();
        *live -= 1;
        // SAFETY: the caller's contract is the callee's.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[test]
fn guards_a_global_allocator_under_contention() {
    let before = *GLOBAL.live.lock();
    let kept: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for size in 0..20_000 {
                        let bytes = vec![seed as u8; 1 + (size * 7 + seed) % 200];
                        if size % 100 == 0 {
                            kept.push(bytes);
                        }
                    }
                    assert!(kept.iter().flatten().all(|&byte| byte == seed as u8));
                    kept.len()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    });
    assert_eq!(kept, 4 * 200);
    // The harness allocates beside this test, so the balance is not exact; a broken lock loses
    // thousands.
    assert!(GLOBAL.live.lock().abs_diff(before) < 1_000);
}
