//! How many calls it takes to wake many threads: one a group. The array's waiters sleep in these
//! groups, and sessions wake them by this list; see `sleep/groups`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use ulocks_semarray::groups::{SEATS, Seat, Slept, Wakes};
use ulocks_testkit::task;
use ulocks_testkit::watchdog::watch;

#[test]
fn one_call_wakes_a_group() {
    let _alone = crate::alone();
    const SLEEPERS: usize = 500;
    let _watchdog = watch("one call a group", || "a waiter sleeps on".into());
    let completed = Arc::new(AtomicBool::new(false));
    let (sender, seats) = std::sync::mpsc::channel();
    let sleepers: Vec<_> = (0..SLEEPERS)
        .map(|nth| {
            let (completed, sender) = (Arc::clone(&completed), sender.clone());
            let id = Arc::new(AtomicI32::new(0));
            let own = Arc::clone(&id);
            let thread = std::thread::spawn(move || {
                let seat = Seat::claim_near(nth * 64);
                sender.send(seat).unwrap();
                own.store(task::id(), Release);
                assert_eq!(seat.sleep(|| completed.load(Acquire), None, false), Slept::Completed);
            });
            (thread, id)
        })
        .collect();
    let mut seats: Vec<_> = seats.iter().take(SLEEPERS).collect();
    let ids: Vec<_> = sleepers
        .iter()
        .map(|(_, id)| {
            ulocks_testkit::limit::until("the thread has begun", || id.load(Relaxed) != 0);
            id.load(Relaxed)
        })
        .collect();
    task::until_asleep(&ids);
    // `Seat(CPU 0, group 3, bit 7)`
    let group = |seat: &Seat| format!("{seat:?}").rsplit_once(',').unwrap().0.to_owned();
    let groups: HashSet<_> = seats.iter().map(group).collect();
    seats.sort_by_key(group);
    completed.store(true, Release);
    let mut wakes = Wakes::new();
    seats.into_iter().for_each(|seat| wakes.add(seat));
    wakes.flush();
    sleepers.into_iter().for_each(|(thread, _)| thread.join().unwrap());
    assert_eq!(wakes.made() as usize, groups.len());
    // Each CPU has a first group, and groups near the cells; where sleepers move about between
    // CPUs, more.
    assert!(groups.len() >= SLEEPERS / SEATS as usize, "{} groups for {SLEEPERS} sleepers", groups.len());
}
