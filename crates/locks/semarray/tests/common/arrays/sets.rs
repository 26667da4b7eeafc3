//! Clients whose sets have several operations.

use super::{Array, LIMIT, PATIENTLY, array, asleep, at_rest, counts, soon, start};
use ulocks_core::sync::UnsafeCell;
use ulocks_semarray::{Error, Fairness, Op, Wait};
use ulocks_testkit::thread::{Arc, together};

/// The same for a set that wants one unit of each of two semaphores.
pub fn a_pairs_timeout_against_posts() {
    let array = array(&[0, 0]);
    let timed = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], soon());
    for index in [0, 1] {
        assert_eq!(array.apply(&[Op::add(index, 1)], Wait::No), Ok(()));
    }
    let rest = match timed.join().unwrap() {
        Ok(()) => 0,
        Err(error) => {
            assert_eq!(error, Error::TimedOut);
            1
        }
    };
    at_rest(&array, &[rest, rest]);
}

/// A set wants one unit of each of two semaphores, which come from two threads. Beside it another
/// wants one of the second only.
pub fn a_pair_from_two_posters(beside: bool) {
    let array = array(&[0, u32::from(beside)]);
    let pair = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    let single = beside.then(|| start(&array, [Op::sub(1, 1)], PATIENTLY));
    let posts = Arc::clone(&array);
    together(2, move |index| assert_eq!(posts.apply(&[Op::add(index, 1)], Wait::No), Ok(())));
    assert_eq!(pair.join().unwrap(), Ok(()));
    if let Some(single) = single {
        assert_eq!(single.join().unwrap(), Ok(()));
    }
    at_rest(&array, &[0, 0]);
}

/// A pair waits at its first semaphore, and moves to its second when the first has a unit. It keeps
/// its age: it is served before a younger set that waits there already.
pub fn a_set_that_moves_keeps_its_age() {
    let array = array(&[0, 0]);
    let old = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 0, 1, 0);
    let young = start(&array, [Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(counts(&array), [0, 2], "the pair does not sleep where it stops");
    assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(array.values(), [0, 0], "the younger one was served first");
    assert_eq!(old.join().unwrap(), Ok(()));
    assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(young.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}

/// Two sets wait at different semaphores. One set posts both, the younger one's first. Both want
/// one unit that there is once: the older set gets it.
#[allow(dead_code, reason = "it takes loom more than a minute")]
pub fn the_older_of_two_candidates_proceeds() {
    let array = array(&[0, 0, 1]);
    let older = start(&array, [Op::sub(0, 1), Op::sub(2, 1)], PATIENTLY);
    asleep(&array, 0, 1, 0);
    let younger = start(&array, [Op::sub(1, 1), Op::sub(2, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::add(1, 1), Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(array.values(), [0, 1, 0], "the younger one was served first");
    assert_eq!(older.join().unwrap(), Ok(()));
    assert_eq!(array.apply(&[Op::add(2, 1)], Wait::No), Ok(()));
    assert_eq!(younger.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0, 0]);
}

/// A pair waits at its second semaphore while its first has enough. Another thread takes that away.
/// Now the pair waits at the first one, or ends if that operation does not wait.
pub fn what_was_enough_is_taken_away(no_wait: bool) {
    let array = array(&[1, 0]);
    let first = Op::sub(0, 1);
    let pair = start(&array, [if no_wait { first.no_wait() } else { first }, Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Ok(()));
    if no_wait {
        assert_eq!(pair.join().unwrap(), Err(Error::WouldBlock));
    } else {
        assert_eq!(counts(&array), [1, 0], "the pair does not sleep where it stops");
        assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
        assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
        assert_eq!(pair.join().unwrap(), Ok(()));
    }
    at_rest(&array, &[0, 0]);
}

/// A pair that adds to its first semaphore waits at its second, while another thread fills the
/// first to the limit.
pub fn a_sleeper_overflows() {
    let array = array(&[LIMIT - 1, 0]);
    let pair = start(&array, [Op::add(0, 1), Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(pair.join().unwrap(), Err(Error::ValueOutOfRange { index: 0, limit: LIMIT }));
    at_rest(&array, &[LIMIT, 0]);
}

/// Two sets want the same pair, each in another order. A third thread posts for both, with one set
/// or with single operations.
pub fn crossed_pairs(one_by_one: bool) {
    let array = array(&[0, 0]);
    let pairs = [
        start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY),
        start(&array, [Op::sub(1, 1), Op::sub(0, 1)], PATIENTLY),
    ];
    if one_by_one {
        for index in [0, 1, 1, 0] {
            assert_eq!(array.apply(&[Op::add(index, 1)], Wait::No), Ok(()));
        }
    } else {
        assert_eq!(array.apply(&[Op::add(1, 2), Op::add(0, 2)], Wait::No), Ok(()));
    }
    pairs.into_iter().for_each(|pair| assert_eq!(pair.join().unwrap(), Ok(())));
    at_rest(&array, &[0, 0]);
}

/// Sets that name a semaphore twice, so that they need sessions, in one order and in the other.
pub fn crossed_posters(posters: usize) {
    let array = array(&[0, 0]);
    let posts = Arc::clone(&array);
    together(posters, move |me| {
        let (a, b) = (me % 2, 1 - me % 2);
        assert_eq!(
            posts.apply(&[Op::add(a, 1), Op::add(b, 1), Op::sub(a, 1), Op::add(a, 1)], Wait::No),
            Ok(())
        );
    });
    at_rest(&array, &[posters as u32; 2]);
}

/// A pair of semaphores is a mutex. Some threads take it in one order, others in the other.
pub fn a_pair_excludes(threads: usize) {
    struct Inside(Array, UnsafeCell<usize>);
    // SAFETY: the thread that has both semaphores accesses the cell. That only one thread has them
    // is what the client tests.
    unsafe impl Sync for Inside {}

    let inside = Arc::new(Inside(Array::new(&[1, 1], LIMIT, 500, Fairness::Barging), UnsafeCell::new(0)));
    let shared = Arc::clone(&inside);
    together(threads, move |me| {
        let (a, b) = (me % 2, 1 - me % 2);
        assert_eq!(shared.0.apply(&[Op::sub(a, 1), Op::sub(b, 1)], PATIENTLY), Ok(()));
        // SAFETY: this thread has both.
        shared.1.with_mut(|count| unsafe { *count += 1 });
        assert_eq!(shared.0.apply(&[Op::add(b, 1), Op::add(a, 1)], Wait::No), Ok(()));
    });
    // SAFETY: the others are gone.
    assert_eq!(inside.1.with(|count| unsafe { *count }), threads);
    at_rest(&inside.0, &[1, 1]);
}

/// A set sleeps for its first semaphore, and is not to wait for its second: when the first comes,
/// it ends, and takes nothing.
pub fn a_sleeper_that_is_not_to_wait() {
    let array = array(&[0, 0]);
    let set = start(&array, [Op::sub(0, 1), Op::sub(1, 1).no_wait()], PATIENTLY);
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(set.join().unwrap(), Err(Error::WouldBlock));
    at_rest(&array, &[1, 0]);
}

/// Sets post to both semaphores, in one order and in the other, while a pair waits or is about to.
pub fn posters_against_the_cascade(posters: usize) {
    let array = array(&[0, 0]);
    let pair = start(&array, [Op::sub(1, 1), Op::sub(0, 1)], PATIENTLY);
    let posts = Arc::clone(&array);
    together(posters, move |me| {
        let (a, b) = (me % 2, 1 - me % 2);
        assert_eq!(posts.apply(&[Op::add(a, 1), Op::add(b, 1)], Wait::No), Ok(()));
    });
    assert_eq!(pair.join().unwrap(), Ok(()));
    let rest = posters as u32 - 1;
    at_rest(&array, &[rest, rest]);
}

/// Sets of both semaphores that come to nothing. With the second such set semaphore 1 becomes a
/// follower of semaphore 0.
fn wear_in(array: &Array, sets: usize) {
    for op in [Op::add, Op::sub].into_iter().cycle().take(sets) {
        assert_eq!(array.apply(&[op(0, 1), op(1, 1)], Wait::No), Ok(()));
    }
}

/// One thread uses two semaphores by sets of both, so that the second becomes a follower, or is one
/// after enough `sets`. Others use it by itself meanwhile.
pub fn a_follower_is_parted(sets: usize, threads: usize) {
    let array = array(&[2, 2]);
    wear_in(&array, sets);
    let shared = Arc::clone(&array);
    together(threads, move |me| {
        if me == 0 {
            wear_in(&shared, 2);
        } else {
            assert_eq!(shared.apply(&[Op::add(1, 1)], PATIENTLY), Ok(()));
        }
    });
    let odd = (sets % 2) as u32;
    at_rest(&array, &[2 + odd, 1 + odd + threads as u32]);
}

/// A set waits for a zero of the second semaphore of a pair. A set that adds to both does so beside
/// it, before another takes all.
pub fn a_pair_makes_a_zero() {
    let array = array(&[1, 1]);
    wear_in(&array, 1);
    let zero = start(&array, [Op::wait_zero(1)], PATIENTLY);
    asleep(&array, 1, 0, 1);
    assert_eq!(array.apply(&[Op::add(0, 1), Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(array.apply(&[Op::sub(0, 3), Op::sub(1, 3)], Wait::No), Ok(()));
    assert_eq!(zero.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}

/// A set lets a follower fall and rise again. A thread that looks at it sees it rise only.
pub fn a_look_at_a_follower() {
    let array = array(&[1, 1]);
    wear_in(&array, 2);
    let set = start(&array, [Op::sub(0, 1), Op::sub(1, 1), Op::add(1, 2)], Wait::No);
    let seen = [0, 1].map(|_| array.value(1).unwrap());
    assert_eq!(set.join().unwrap(), Ok(()));
    assert!([[1, 1], [1, 2], [2, 2]].contains(&seen), "a value is seen that was not published: {seen:?}");
    at_rest(&array, &[0, 2]);
}

/// Pairs that share semaphores: one would follow in one pair, and lead in the other; another has a
/// leader, and is named after a second.
#[allow(dead_code, reason = "it takes loom more than a minute")]
pub fn a_leader_does_not_follow(threads: usize) {
    const PAIRS: [(usize, usize); 3] = [(0, 1), (2, 0), (2, 1)];
    let array = array(&[0, 0, 0]);
    let add = |array: &Array| {
        for (a, b) in PAIRS {
            assert_eq!(array.apply(&[Op::add(a, 1), Op::add(b, 1)], Wait::No), Ok(()));
        }
    };
    add(&array);
    let shared = Arc::clone(&array);
    together(threads, move |me| {
        add(&shared);
        assert_eq!(shared.apply(&[Op::sub(me % 3, 1)], Wait::No), Ok(()));
    });
    let left = |index| 2 * (1 + threads as u32) - (threads as u32 + 2 - index) / 3;
    at_rest(&array, &[0, 1, 2].map(left));
}
