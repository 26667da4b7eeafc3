//! What Miri can run: it has no priority-inheriting futex, so no thread waits here.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_pi::{MappedPiMutexGuard, PiLockError, PiMutex, PiMutexGuard};
use ulocks_testkit as _;

#[test]
fn guards_give_access_and_go() {
    let mutex = PiMutex::new((String::from("left"), 1));
    {
        let guard = mutex.lock().unwrap();
        let mut left: MappedPiMutexGuard<'_, String> = PiMutexGuard::map(guard, |pair| &mut pair.0);
        left.push('!');
    }
    let guard = mutex.lock().unwrap();
    assert!(matches!(mutex.lock(), Err(PiLockError::Deadlock)));
    assert!(mutex.try_lock().unwrap().is_none());
    drop(guard);
    std::thread::scope(|scope| {
        scope.spawn(|| mutex.try_lock().unwrap().expect("free").1 += 1).join().unwrap();
    });
    assert_eq!(mutex.into_inner(), (String::from("left!"), 2));
}
