//! Attempts that check the order: `try_lock_checked`.

use super::{REPORTS, reports};
use ulocks_debug::{Mutex, TryLockError};

fn count() -> usize {
    REPORTS.lock().unwrap().len()
}

/// An attempt that is refused holds nothing and waits for nothing.
#[test]
fn a_refused_attempt_leaves_no_order() {
    let found = reports(|| {
        let [outer, inner, tried] = [(); 3].map(|()| Box::<Mutex<u32>>::default());
        drop((tried.lock(), inner.lock()));
        {
            let _held = (outer.lock(), inner.lock());
            // Against `tried`, then `inner`. The order of `outer` and `tried` is free.
            assert!(matches!(tried.try_lock_checked(), Err(TryLockError::Fault(_))));
        }
        drop((tried.lock(), outer.lock()));
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn an_attempt_that_would_wait_leaves_no_order() {
    let found = reports(|| {
        let [outer, tried] = [(); 2].map(|()| Box::<Mutex<u32>>::default());
        let held = tried.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _outer = outer.lock();
                assert!(matches!(tried.try_lock_checked(), Err(TryLockError::WouldBlock)));
            });
        });
        drop(held);
        drop((tried.lock(), outer.lock()));
    });
    assert!(found.is_empty(), "{found:#?}");
}

/// An attempt that is made is an acquisition as by `lock`.
#[test]
fn an_attempt_that_is_made_leaves_its_order() {
    let found = reports(|| {
        let [outer, tried] = [(); 2].map(|()| Box::<Mutex<u32>>::default());
        for _ in 0..3 {
            let _outer = outer.lock();
            drop(tried.try_lock_checked().unwrap());
        }
        drop((tried.lock(), outer.lock()));
    });
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn the_error_of_an_attempt_leaves_the_report_to_the_acquisition() {
    let found = reports(|| {
        let (inner, outer) = (Mutex::new(0_u16), Mutex::new(0_u32));
        drop((inner.lock(), outer.lock()));
        let _outer = outer.lock();
        for _ in 0..2 {
            assert!(matches!(inner.try_lock_checked(), Err(TryLockError::Fault(_))));
        }
        assert_eq!(count(), 0, "the report is the error");
        drop(inner.lock());
    });
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn an_attempt_in_an_order_that_lost_its_gate_is_refused_each_time() {
    let found = reports(|| {
        let (gate, one, other) = (Mutex::new(0_u8), Mutex::new(0_u16), Mutex::new(0_u32));
        drop((gate.lock(), one.lock(), other.lock()));
        drop((gate.lock(), other.lock(), one.lock()));
        let _other = other.lock();
        for round in 0..3 {
            let result = one.try_lock_checked();
            assert!(matches!(result, Err(TryLockError::Fault(_))), "round {round}: {result:?}");
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}
