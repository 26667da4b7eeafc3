//! Histories whose verdict is known, most of them from the literature.

use crate::{Call, Event, Return, history};
use ulocks_vm::linear::specs::{
    Mutex, MutexCall, Queue, QueueCall, Register, RegisterCall, RwLock, RwLockCall, Semaphore, SemaphoreCall,
};
use ulocks_vm::linear::{History, Specification};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

#[track_caller]
fn good<S: Specification>(spec: &S, events: impl IntoIterator<Item = Event<S::Call, S::Return>>) {
    if let Err(error) = history(events).check(spec) {
        panic!("{error}");
    }
}

/// Not linearizable, and that shows first in the event with this number.
#[track_caller]
fn bad<S: Specification>(
    spec: &S,
    event: usize,
    events: impl IntoIterator<Item = Event<S::Call, S::Return>>,
) {
    match history(events).check(spec) {
        Ok(order) => panic!("an order was found: {:?}", order.sequence()),
        Err(error) => assert_eq!(error.event(), event, "{error}"),
    }
}

#[test]
fn nothing_happened() {
    let order = History::new().check(&Mutex).expect("there is nothing to explain");
    assert!(order.sequence().is_empty());
    assert_eq!(order.configurations(), 1);
}

// Herlihy & Wing 1990, figure 1: the queue histories H2 and H4. What the search does with H1, H3,
// and with operations that never return, is held against brute force.

#[test]
fn queue_h2_an_enqueue_that_ended_before_another_began_comes_first() {
    use QueueCall::{Pop, Push};
    bad(
        &Queue::new(),
        5,
        [
            Call(A, Push('x')),
            Return(A, None),
            Call(B, Push('y')),
            Call(A, Pop),
            Return(B, None),
            Return(A, Some('y')),
        ],
    );
}

#[test]
fn queue_h4_no_value_leaves_twice() {
    use QueueCall::{Pop, Push};
    bad(
        &Queue::new(),
        7,
        [
            Call(A, Push('x')),
            Call(B, Push('y')),
            Return(A, None),
            Return(B, None),
            Call(A, Pop),
            Call(C, Pop),
            Return(A, Some('y')),
            Return(C, Some('y')),
        ],
    );
}

#[test]
fn queue_is_found_empty_only_when_it_may_be() {
    use QueueCall::{Pop, Push};
    let spec = Queue::new();
    bad(&spec, 3, [Call(A, Push('x')), Return(A, None), Call(B, Pop), Return(B, None)]);
    good(&spec, [Call(A, Push('x')), Call(B, Pop), Return(A, None), Return(B, None)]);
}

#[test]
fn queue_take_waits() {
    use QueueCall::{Push, Take};
    good(&Queue::new(), [Call(B, Take), Call(A, Push('x')), Return(A, None), Return(B, Some('x'))]);
    bad(&Queue::new(), 1, [Call(B, Take), Return(B, Some('x')), Call(A, Push('x')), Return(A, None)]);
    bad(&Queue::<char>::new(), 1, [Call(B, Take), Return(B, None)]);
}

#[test]
fn register_new_old_inversion() {
    // Lamport, "On Interprocess Communication" (1986): regular registers do this, atomic ones do
    // not.
    use RegisterCall::{Read, Write};
    let reads = |first, second| {
        [
            Call(A, Write(1)),
            Call(B, Read),
            Return(B, Some(first)),
            Call(C, Read),
            Return(C, Some(second)),
            Return(A, None),
        ]
    };
    good(&Register(0), reads(0, 0));
    good(&Register(0), reads(0, 1));
    good(&Register(0), reads(1, 1));
    bad(&Register(0), 4, reads(1, 0));
}

#[test]
fn register_two_readers_disagree_on_two_writes() {
    use RegisterCall::{Read, Write};
    bad(
        &Register(0),
        11,
        [
            Call(A, Write(1)),
            Call(B, Write(2)),
            Call(C, Read),
            Return(C, Some(1)),
            Call(3, Read),
            Return(3, Some(2)),
            Call(C, Read),
            Return(C, Some(2)),
            Return(A, None),
            Return(B, None),
            Call(3, Read),
            Return(3, Some(1)),
        ],
    );
}

#[test]
fn mutex_has_one_holder() {
    use MutexCall::{Lock, TryLock, Unlock};
    good(
        &Mutex,
        [
            Call(A, Lock),
            Call(B, Lock),
            Return(A, true),
            Call(C, TryLock),
            Return(C, false),
            Call(A, Unlock),
            Return(B, true),
            Return(A, true),
        ],
    );
    bad(&Mutex, 3, [Call(A, Lock), Return(A, true), Call(B, Lock), Return(B, true)]);
    bad(&Mutex, 1, [Call(A, Unlock), Return(A, true)]);
}

#[test]
fn mutex_attempts_may_fail_and_try_lock_may_not() {
    use MutexCall::{Attempt, TryLock};
    good(&Mutex, [Call(A, Attempt), Return(A, false)]);
    good(&Mutex, [Call(A, Attempt), Return(A, true), Call(B, Attempt), Return(B, false)]);
    bad(&Mutex, 3, [Call(A, Attempt), Return(A, true), Call(B, Attempt), Return(B, true)]);
    bad(&Mutex, 1, [Call(A, TryLock), Return(A, false)]);
}

#[test]
fn rwlock_readers_share_and_writers_do_not() {
    use RwLockCall::{AttemptWrite, Downgrade, Read, ReadUnlock, Write, WriteUnlock};
    let two_readers = [Call(A, Read), Return(A, true), Call(B, Read), Return(B, true)];
    let then = |call| two_readers.clone().into_iter().chain([Call(C, call), Return(C, true)]);
    good(&RwLock, two_readers.clone());
    bad(&RwLock, 5, then(Write));
    bad(&RwLock, 5, then(AttemptWrite));
    bad(&RwLock, 5, then(WriteUnlock));
    good(&RwLock, then(ReadUnlock));
    let writer = [Call(A, Write), Return(A, true), Call(B, Read)];
    let then = |call| writer.clone().into_iter().chain([Call(A, call), Return(A, true), Return(B, true)]);
    good(&RwLock, then(WriteUnlock));
    good(&RwLock, then(Downgrade));
    bad(&RwLock, 3, writer.clone().into_iter().chain([Return(B, true)]));
}

#[test]
fn semaphore_takes_all_or_nothing() {
    use SemaphoreCall::{Acquire, Release, TryAcquire};
    let two = Semaphore(2);
    good(&two, [Call(A, Acquire(2)), Return(A, true), Call(B, TryAcquire(1)), Return(B, false)]);
    bad(&two, 3, [Call(A, Acquire(2)), Return(A, true), Call(B, TryAcquire(1)), Return(B, true)]);
    good(
        &two,
        [Call(A, Acquire(3)), Call(B, TryAcquire(2)), Return(B, true), Call(B, Release(3)), Return(A, true)],
    );
    bad(&two, 1, [Call(A, Acquire(3)), Return(A, true)]);
}

// Operations that never return.

#[test]
fn an_open_operation_may_take_effect_late() {
    use RegisterCall::{Read, Write};
    let read = |value| [Call(B, Read), Return(B, Some(value))];
    good(&Register(0), [Call(A, Write(1))].into_iter().chain(read(0)).chain(read(1)));
    bad(&Register(0), 6, [Call(A, Write(1))].into_iter().chain(read(0)).chain(read(1)).chain(read(0)));
}

#[test]
fn an_open_operation_may_have_swallowed_what_is_missing() {
    use QueueCall::{Pop, Push};
    let push = [Call(A, Push('x')), Return(A, None), Call(A, Push('y')), Return(A, None)];
    let events = push.into_iter().chain([Call(B, Pop), Call(C, Pop), Return(C, Some('y'))]);
    good(&Queue::new(), events);
}

#[test]
fn a_dead_holder_explains_why_nobody_acquires() {
    use MutexCall::{Attempt, Lock, TryLock};
    good(&Mutex, [Call(A, Lock), Call(B, TryLock), Return(B, false), Call(C, Lock)]);
    // An open operation with a choice may have done either.
    good(&Mutex, [Call(A, Attempt), Call(B, TryLock), Return(B, false)]);
    good(&Mutex, [Call(A, Attempt), Call(B, TryLock), Return(B, true)]);
}

#[test]
fn a_nested_operation_overlaps_the_one_it_interrupts() {
    use RegisterCall::{Read, Write};
    // A signal handler writes while the thread it runs on reads.
    let nested =
        |value| [Call(A, Read), Call(A, Write(1)), Return(A, None), Return(A, Some(value)), Call(A, Read)];
    good(&Register(0), nested(0));
    good(&Register(0), nested(1));
    bad(&Register(0), 3, nested(2));
}
