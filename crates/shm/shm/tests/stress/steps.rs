//! A child that is killed after each instruction of an acquisition and a release, with sleepers
//! beside it.

use crate::place::{BARGING, FAIR, PERMIT, Shm, Subject, WRITING};
use crate::traced::{step, stops, wait};
use std::sync::atomic::Ordering::Relaxed;
use ulocks_testkit::Child;

/// A child that stops itself before the mutex and after it, and is stepped through.
fn traced(shm: &Shm) -> libc::pid_t {
    let child = Child::runs(|| {
        let me = shm.join();
        stops();
        shm.adds(&me);
        Child::exits();
    });
    child.id()
}

/// Before the release the parent lets two waiters fall asleep. So the child is killed at each
/// instruction of a contended release, and at each of the acquisition before it: at one of
/// `stride`, since a pair has thousands without optimisation. `ULOCKS_STEPS=1` kills at each.
fn a_death_at_any_instruction(subject: &'static Subject, stride: usize) {
    let mut points = 0;
    let stride =
        std::env::var("ULOCKS_STEPS").map_or(stride, |text| text.parse().expect("ULOCKS_STEPS: a number"));
    for instruction in (0..).step_by(stride) {
        let (shm, _watch) = Shm::of("a death at an instruction", subject);
        let child = traced(&shm);
        wait(child);
        // As far as the critical section, if it comes so far before it dies.
        let mut lives = true;
        let mut done = 0;
        while lives && done < instruction && !shm.is_held() {
            lives = step(child, 1);
            done += 1;
        }
        let sleepers: Vec<_> = match shm.is_held() {
            true => (0..2).map(|_| shm.waiter()).collect(),
            false => Vec::new(),
        };
        lives = lives && step(child, instruction - done);
        if lives {
            // SAFETY: our child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            wait(child);
        }
        let count = sleepers.len() as u32;
        sleepers.into_iter().for_each(Child::ends);
        let me = shm.join();
        shm.adds(&me);
        assert!(shm.place().finished.load(Relaxed) > count);
        assert!(shm.place().told.load(Relaxed) <= 1);
        if !lives {
            break;
        }
        points += 1;
    }
    println!("killed at {points} instructions");
    // An optimised pair has about 290 instructions.
    assert!(points * stride > 200, "{points} steps of {stride} instructions are too few for a pair");
}

#[test]
fn a_death_at_any_instruction_strands_nobody() {
    a_death_at_any_instruction(&BARGING, 41);
}

#[test]
fn a_death_at_any_instruction_of_the_fair_mutex_strands_no_thread() {
    a_death_at_any_instruction(&FAIR, 397);
}

#[test]
fn a_death_at_any_instruction_of_a_writer_strands_no_thread() {
    a_death_at_any_instruction(&WRITING, 397);
}

#[test]
fn a_death_at_any_instruction_of_a_permit_strands_no_thread() {
    a_death_at_any_instruction(&PERMIT, 397);
}
