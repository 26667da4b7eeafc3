use super::rest::LONGEST_REST;
use super::solo::VALID;
use super::*;

fn after_a_round(seen: u64, lasted: u32) -> Plan {
    let mut plan =
        Plan { usable: Cpus::of(0b11), seen: Cpus::of(seen), began: u32::MAX - 9, ..Plan::NOTHING };
    plan.end_round(lasted - 10);
    plan
}

#[test]
fn no_waiter_is_woken_after_a_full_round() {
    assert!(!after_a_round(0b11, ROUND_US).wants_wake(false));
    assert!(after_a_round(0b01, ROUND_US).wants_wake(false), "a CPU is free");
    assert!(
        after_a_round(0b11, LONGEST_US + 1).wants_wake(false),
        "the threads return too rarely to use a CPU each"
    );
    let mut plan = after_a_round(0b11, ROUND_US);
    plan.was_idle();
    assert!(plan.wants_wake(false) && plan.usable == Cpus::of(0b11));
}

#[test]
fn a_round_goes_on_until_its_time_is_over() {
    let plan = after_a_round(0b11, ROUND_US - 1);
    assert_eq!((plan.flags & FULL, plan.seen), (0, Cpus::of(0b11)));
    assert_eq!(after_a_round(0b11, ROUND_US).seen, Cpus::NONE);
}

#[test]
fn wasted_wake_ups_become_rare() {
    let mut plan = Plan { usable: Cpus::of(1), ..Plan::NOTHING };
    assert!(plan.wants_wake(false));
    let mut rests = Vec::new();
    for _ in 0..7 {
        plan.wake_was_wasted();
        plan.end_round(plan.rests_until.wrapping_sub(1).into());
        assert!(!plan.wants_wake(false));
        plan.end_round(plan.rests_until.into());
        assert!(plan.wants_wake(false));
        rests.push(plan.rest);
    }
    assert_eq!(rests, [1, 2, 4, 8, 16, 32, 32]);
    plan.has_come(true);
    plan.wake_was_wasted();
    assert_eq!(plan.rest, 1);
}

#[test]
fn a_waiter_that_does_not_arrive_is_replaced() {
    let mut plan = Plan { usable: Cpus::of(1), ..Plan::NOTHING };
    plan.wakes(false);
    assert!(!plan.wants_wake(true) && plan.wants_wake(false));
    plan.end_round(plan.rests_until.into());
    assert!(plan.wants_wake(true));
    plan.wakes(true);
    assert!(!plan.wants_wake(true));
}

/// Ends a round in which the lock was released on `seen` every so many nanoseconds.
fn round(plan: &mut Plan, seen: u64, ns: u32) -> bool {
    plan.seen = Cpus::of(seen);
    plan.periods = (ROUND_US * 1_000 / (ns * PERIOD)).min(255) as u8;
    plan.end_round(plan.began.wrapping_add(ROUND_US));
    plan.is_solo()
}

fn contended() -> Plan {
    Plan { usable: Cpus::of(0b11), ..Plan::NOTHING }
}

#[test]
fn one_thread_is_active_if_it_is_faster_alone() {
    let mut plan = contended();
    assert!(round(&mut plan, 0b11, 120) && !plan.wants_wake(false), "a trial");
    for _ in 1..VALID {
        assert!(round(&mut plan, 0b01, 90));
    }
    assert!(!round(&mut plan, 0b01, 90), "the answer is out of date");
    assert!(plan.wants_wake(false) && round(&mut plan, 0b11, 120), "and the rule asks again");
}

#[test]
fn several_threads_are_active_if_one_is_slower_alone() {
    let mut plan = contended();
    assert!(round(&mut plan, 0b11, 120));
    assert!(!round(&mut plan, 0b01, 160) && plan.wants_wake(false));
    for _ in 1..VALID {
        assert!(!round(&mut plan, 0b11, 120));
    }
    assert!(round(&mut plan, 0b11, 120), "the next trial");
    (0..1_000)
        .for_each(|_| assert!(!round(&mut plan, 0b11, 5_000), "it was fast once, and the rule does not ask"));
    assert!(!round(&mut contended(), 0b11, 500), "the rule does not ask");
    assert!(!round(&mut contended(), 0b01, 1_000), "nor of a single slow thread");
}

#[test]
fn short_sections_stay_solo() {
    let mut plan = contended();
    assert!(round(&mut plan, 0b11, 20));
    for _ in 0..1_000 {
        assert!(round(&mut plan, 0b01, 30));
    }
    assert!(round(&mut plan, 0b01, 500), "it may have been disturbed");
    assert!(round(&mut plan, 0b01, 30));
    assert!(round(&mut plan, 0b01, 500) && !round(&mut plan, 0b01, 500), "it has changed");
}

#[test]
fn a_promoted_waiter_sees_that_solo_mode_is_over() {
    let mut plan = contended();
    assert!(round(&mut plan, 0b11, 20));
    plan.began = now_us().wrapping_sub(LONGEST_US + 1);
    plan.has_come(false);
    assert!(!plan.is_solo());
}

#[test]
fn promotions_do_not_prolong_solo_mode() {
    let mut plan = contended();
    assert!(round(&mut plan, 0b11, 120));
    let mut promotions = 0;
    while plan.is_solo() {
        plan.began = now_us();
        plan.has_come(false);
        promotions += 1;
    }
    assert!(promotions <= u32::from(VALID), "{promotions}");
}

#[test]
fn any_bytes_are_a_plan() {
    let mut plan = Plan { rest: u8::MAX, rests_until: u16::MAX, ..Plan::NOTHING };
    plan.wake_was_wasted();
    assert_eq!(plan.rest, LONGEST_REST);
}
