//! A write in steps does not keep handlers off between the polls, unless it is ready.

use crate::ByAll;
use crate::soft::Inside;
use crate::strikes::{Struck, real_time, strike_me};
use crate::threads::until;
use std::sync::atomic::Ordering::SeqCst;
use ulocks_psrwlock::signal::Soft;
use ulocks_psrwlock::{ByClass, Nested, Stage, Urgent};
use ulocks_testkit::watchdog::watch;

#[test]
fn handlers_run_between_the_polls() {
    let (signal, staying) = (real_time(7), real_time(8));
    let struck = Struck::<ByAll>::new();
    let _installed = struck.install(&[signal]);
    let Struck { lock, seen } = struck;
    let inside = Inside::install(lock, staying);
    let _watchdog = watch("polls", move || format!("{:?}, {seen:?}", lock.state()));
    let at_once = || {
        let before = seen.read.load(SeqCst);
        strike_me(signal);
        assert_eq!(seen.read.load(SeqCst), before + 1);
        assert!(!Soft::is_up());
    };
    std::thread::scope(|scope| {
        let handler = scope.spawn(|| strike_me(staying));
        until(|| inside.is_inside.load(SeqCst));
        let (slow, urgent, nested) = (lock.read(), lock.read_in::<Urgent>(), lock.read_in::<Nested>());
        let mut write = lock.write_begin();
        assert_eq!(write.poll(), Stage::Readers("Bulk"));
        at_once();
        drop(slow);
        assert_eq!(write.poll(), Stage::Readers("Urgent"));
        at_once();
        drop(urgent);
        assert_eq!(write.poll(), Stage::Readers("Nested"));
        at_once();
        drop(nested);
        for _ in 0..3 {
            assert_eq!(write.poll(), Stage::Readers("Handler"));
            assert!(lock.try_read_in::<Nested>().is_none(), "the others stay shut out");
            at_once();
        }
        inside.leave();
        handler.join().unwrap();
        // The handler's last touch comes after its word.
        while write.poll() != Stage::Ready {}
        for finishes in [true, false] {
            let before = seen.counts();
            assert!(Soft::is_up());
            strike_me(signal);
            assert_eq!((seen.counts(), write.poll()), (before, Stage::Ready), "it waits");
            if finishes {
                _ = write.finish().expect("it is ready").add_one();
            } else {
                drop(write);
            }
            assert_eq!(seen.counts(), [before[0] + 1, before[1] + 1, before[2]]);
            at_once();
            write = lock.write_begin();
            assert_eq!(write.poll(), Stage::Ready);
        }
    });
    assert!(!Soft::is_up());
    assert_eq!(lock.read().look(), 1);
    seen.check();
}
