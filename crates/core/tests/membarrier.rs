//! The asymmetric fence on the machine.
#![cfg(world = "machine")]
#![cfg_attr(miri, allow(unused))]

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicUsize};
use ulocks_core::capabilities::{Capability, capabilities, force_fallback};
use ulocks_core::membarrier::{heavy, light, ready, store};
use ulocks_testkit::Child;

/// A capability that is forced away is away for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn it_is_ready_if_the_kernel_has_it_and_keeps_errno() {
    let _alone = ALONE.lock();
    // SAFETY: the address is this thread's.
    unsafe { *libc::__errno_location() = 4711 };
    assert_eq!(ready(), capabilities().has(Capability::Membarrier));
    assert_eq!(heavy(), ready());
    // SAFETY: as above.
    assert_eq!(unsafe { *libc::__errno_location() }, 4711);
}

/// Nor is the answer taken back: another thread may have relied on it.
#[test]
fn what_is_forced_away_is_refused() {
    let _alone = ALONE.lock();
    let before = ready();
    let _filter = force_fallback(Capability::Membarrier);
    assert_eq!(ready(), before);
    assert!(!heavy());
}

/// A child of fork may rely on a fence that its parent made ready.
#[test]
#[cfg_attr(miri, ignore = "forks")]
fn a_child_has_it_too() {
    let _alone = ALONE.lock();
    let expected = ready();
    Child::runs(|| assert_eq!(heavy(), expected)).ends();
}

/// Store buffering on real processors, the light side with no fence at all: never both zero.
#[test]
#[cfg_attr(miri, ignore = "Miri has no such call")]
fn one_heavy_side_is_enough() {
    let _alone = ALONE.lock();
    if !ready() {
        println!("not tested: no membarrier here");
        return;
    }
    const ROUNDS: usize = 20_000;
    let words: [AtomicU32; 2] = Default::default();
    let (round, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let seen = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for nth in 1..=ROUNDS {
                while round.load(Acquire) != nth {
                    std::hint::spin_loop();
                }
                store(&words[0], 1, Relaxed);
                light();
                seen.store(words[1].load(Relaxed), Relaxed);
                done.store(nth, Release);
            }
        });
        for nth in 1..=ROUNDS {
            words.iter().for_each(|word| word.store(0, Relaxed));
            round.store(nth, Release);
            words[1].store(1, Relaxed);
            assert!(heavy());
            let mine = words[0].load(Relaxed);
            while done.load(Acquire) != nth {
                std::hint::spin_loop();
            }
            assert!(mine == 1 || seen.load(Relaxed) == 1, "both sides have read zero in round {nth}");
        }
    });
}
