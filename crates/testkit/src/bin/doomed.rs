//! Runs a machine client on a broken lock, which kills this process or hangs it until the watchdog does; the tests
//! start it and look at what it died of. With `sound` it ends well.

#[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
fn main() {
    use machine::{
        readers_leave_a_sleeper, release_with_a_sleeper, touch_after_the_release, touch_after_unlock,
    };
    use ulocks_testkit::broken::{NO_WAKE, SOUND, TIMEOUT_CLEARS_CONTENDED, rw};

    match std::env::args().nth(1).as_deref() {
        Some("sound") => release_with_a_sleeper::<SOUND>(),
        Some("touch-after-release") => touch_after_the_release(),
        Some("no-wake") => release_with_a_sleeper::<NO_WAKE>(),
        Some("timeout-loses-wake") => release_with_a_sleeper::<TIMEOUT_CLEARS_CONTENDED>(),
        Some("rw-touch-after-read") => touch_after_unlock::<{ rw::TOUCH_AFTER_UNLOCK_READ }>(1, 15),
        Some("rw-touch-after-write") => touch_after_unlock::<{ rw::TOUCH_AFTER_UNLOCK_WRITE }>(0, 4),
        Some("rw-no-wake") => readers_leave_a_sleeper::<{ rw::NO_WAKE_READ }>(),
        Some("rw-sound") => readers_leave_a_sleeper::<{ rw::SOUND }>(),
        other => {
            eprintln!(
                "{other:?}: one of sound, touch-after-release, no-wake, timeout-loses-wake, rw-sound, \
                 rw-touch-after-read, rw-touch-after-write, rw-no-wake is allowed"
            );
            std::process::exit(2);
        }
    }
}

#[cfg(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm")))]
fn main() {}

#[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
mod machine {
    use std::sync::{Arc, mpsc::channel};
    use std::thread;
    use std::time::Duration;
    use ulocks_core::futex::Private;
    use ulocks_core::raw::{RawMutex, RawRwLock};
    use ulocks_core::time::Deadline;
    use ulocks_testkit::broken::rw::CountedRw;
    use ulocks_testkit::broken::{self, ThreeState};
    use ulocks_testkit::{rw, stress, task, watchdog};

    pub(super) fn touch_after_the_release() {
        stress::last_unlocker_unmaps::<ThreeState<Private, { broken::TOUCH_AFTER_RELEASE }>>(4, 1);
    }

    pub(super) fn touch_after_unlock<const BUG: u8>(readers: usize, writers: usize) {
        rw::stress::last_unlocker_unmaps::<CountedRw<Private, BUG>>(readers, writers, 1);
    }

    /// Two readers leave while a writer sleeps.
    pub(super) fn readers_leave_a_sleeper<const BUG: u8>() {
        let lock = Arc::new(CountedRw::<Private, BUG>::new());
        lock.read();
        lock.read();
        let (say, said) = channel();
        let sleeper = thread::spawn({
            let lock = Arc::clone(&lock);
            move || {
                say.send(task::id()).unwrap();
                lock.write();
            }
        });
        task::until_asleep(&[said.recv().unwrap()]);
        let _watchdog = watchdog::watch_for(Duration::from_secs(2), "stranded", {
            let lock = Arc::clone(&lock);
            move || format!("locked {}", lock.is_locked())
        });
        // SAFETY: locked above, twice.
        unsafe {
            lock.unlock_read(());
            lock.unlock_read(());
        }
        sleeper.join().unwrap();
    }

    /// A release while one thread sleeps, after another waited in vain.
    pub(super) fn release_with_a_sleeper<const BUG: u8>() {
        let lock = Arc::new(ThreeState::<Private, BUG>::new());
        lock.lock();
        let (say, said) = channel();
        let sleeper = thread::spawn({
            let lock = Arc::clone(&lock);
            move || {
                say.send(task::id()).unwrap();
                lock.lock();
            }
        });
        task::until_asleep(&[said.recv().unwrap()]);
        let _watchdog = watchdog::watch_for(Duration::from_secs(2), "stranded", {
            let lock = Arc::clone(&lock);
            move || format!("locked {}", lock.is_locked())
        });
        assert!(lock.lock_until(Deadline::after(Duration::from_millis(10))).is_none());
        // SAFETY: locked above.
        unsafe { lock.unlock(()) };
        sleeper.join().unwrap();
    }
}
