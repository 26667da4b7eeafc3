//! What threads owe, and what a repair counts.

use super::*;
use crate::slots::Slot;

/// A thread that takes a part and gives it by permits owes each of them, in whatever order they
/// end. What a semaphore is set to is nobody's.
#[test]
fn permits_of_both_signs_are_owed_one_by_one() {
    let slots = [Slot::new(), Slot::new()];
    let array = RawSemArray::<1, 2, 2>::new([1]);
    // SAFETY: the slots outlive the member.
    let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
    let take = |ops: &[Op]| {
        // SAFETY: all members are of one table.
        unsafe { array.apply(&me, ops, true, Patience::Never) }.unwrap();
        array.sets(&me)
    };
    let give = |ops: &[Op], sets| {
        // SAFETY: as above.
        unsafe { array.give_back(&me, ops, Some(sets)) };
    };
    let now = || (array.value(0).unwrap(), array.owed(&me, 0));
    let (less, more) = ([Op::sub(0, 1)], [Op::add(0, 1)]);
    let (first, second) = (take(&less), take(&more));
    assert_eq!(now(), (1, 0));
    give(&more, second);
    assert_eq!(now(), (0, 1), "the first permit is owed still");
    give(&less, first);
    assert_eq!(now(), (1, 0));
    let both = [Op::add(0, 1), Op::sub(0, 2)];
    let third = take(&both);
    assert_eq!(now(), (0, 1));
    give(&both, third);
    assert_eq!(now(), (1, 0), "a set comes back as a whole");
    let fourth = take(&less);
    // SAFETY: as above.
    unsafe { array.set(&me, 0, 5) }.unwrap();
    let fifth = take(&less);
    assert_eq!(now(), (4, 1));
    give(&less, fourth);
    assert_eq!(now(), (5, 1), "the semaphore was set since");
    give(&less, fifth);
    assert_eq!(now(), (6, 0));
}

/// A thread that dies between a change of a row's owner and the count.
#[test]
fn the_repair_counts_the_holders() {
    let slots = [Slot::new(), Slot::new()];
    let array = RawSemArray::<1, 2, 1>::new([2]);
    // SAFETY: the slots outlive the member.
    let me = unsafe { Member::join(&slots, 0..0) }.unwrap();
    // SAFETY: all members are of one table.
    unsafe { array.apply(&me, &[Op::sub(0, 1)], true, Patience::Never) }.unwrap();
    assert_eq!(array.holding.load(Relaxed), 1, "holders");
    array.holding.store(0, Relaxed);
    array.repair();
    assert_eq!(array.holding.load(Relaxed), 1, "holders");
    assert!(array.is_held_only_by(me.owner()));
    // SAFETY: as above.
    unsafe { array.give_back(&me, &[Op::sub(0, 1)], Some(array.sets(&me))) };
    assert_eq!(array.holding.load(Relaxed), 0, "holders");
    assert!(!array.is_held_only_by(me.owner()));
}

/// A grant changes semaphores itself, and what another waiter wants may be one that the release has
/// not changed.
#[test]
fn a_grant_lets_a_waiter_for_another_semaphore_proceed() {
    let slots: [Slot; 3] = array::from_fn(|_| Slot::new());
    let array = RawSemArray::<2, 3, 2>::new([1, 0]);
    // SAFETY: the slots outlive the members.
    let members: [_; 3] = array::from_fn(|_| unsafe { Member::join(&slots, 0..0) }.unwrap());
    // SAFETY: all members are of one table.
    unsafe { array.apply(&members[0], &[Op::sub(0, 1)], true, Patience::Never) }.unwrap();
    let sets: [&[Op]; 2] = [&[Op::sub(0, 1), Op::add(1, 1)], &[Op::sub(1, 1)]];
    for (me, ops) in members[1..].iter().zip(sets) {
        let row = &array.rows[me.slot()];
        for (place, op) in row.ops.iter().zip(ops) {
            let asked = Asked::new(op, true);
            place[0].store(asked.first, Relaxed);
            place[1].store((asked.change as i32).cast_unsigned(), Relaxed);
        }
        row.number.store(ops.len() as u32, Relaxed);
        array.queue.enter(me, &array).unwrap().enqueue(semaphores(ops));
    }
    // SAFETY: as above.
    unsafe { array.give_back(&members[0], &[Op::sub(0, 1)], Some(array.sets(&members[0]))) };
    let outcomes = members.each_ref().map(|me| array.rows[me.slot()].outcome.load(Relaxed));
    assert_eq!(outcomes[1..], [outcome::DONE; 2], "waiters that can proceed");
}
