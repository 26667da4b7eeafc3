//! What the types promise of their memory, of what they allocate, and which threads they may go to.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::{Context, Waker};
use std::time::Duration;
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_semarray::{
    Builder, Error, Fairness, InOneProcess, Op, Permit, RawSemArray, SemArray, SemArrayWith, Set,
};
use ulocks_testkit::allocations::{Counting, during};

/// The fields that every operation reads have a cache line of their own, and the fields that are
/// written another.
const _: () = assert!(size_of::<SemArray>() == 128 && align_of::<SemArray>() == 64);
const _: () = assert!(size_of::<SemArray>() == size_of::<RawSemArray>());
const _: () = assert!(size_of::<SemArrayWith<Private<Patience<3_000>>>>() == size_of::<SemArray>());
const _: () = assert!(
    size_of::<SemArrayWith<Private<Adaptive, Counted>>>()
        == (size_of::<SemArray>() + size_of::<Counted>()).next_multiple_of(64)
);
const _: () = assert!(size_of::<Op>() <= 12);

fn send<T: Send>() {}
fn sync<T: Sync>() {}
const fn is_left_whole_by_a_panic<T: UnwindSafe + RefUnwindSafe>() {}
const _: () = is_left_whole_by_a_panic::<SemArray>();

#[test]
fn it_goes_to_other_threads() {
    fn check<P: InOneProcess>() {
        send::<SemArrayWith<P>>();
        sync::<SemArrayWith<P>>();
        sync::<RawSemArray<P>>();
        // A set may be given back by another thread than the thread that performed it.
        send::<Permit<'static, P>>();
        sync::<Permit<'static, P>>();
    }
    check::<Private>();
    check::<Private<NoSpin>>();
    check::<Private<Adaptive, Counted>>();
    check::<Private<Patience<1_000>>>();
    send::<Builder>();
    sync::<Set>();
    send::<Error>();
}

/// Arrays are of one process: sleepers are linked by pointers. This compiles because there is one
/// candidate for `Shared`.
#[test]
fn it_does_not_go_to_other_processes() {
    struct OfOneProcess;
    trait Candidate<A> {
        fn only_one() {}
    }
    impl<P> Candidate<()> for P {}
    impl<P: InOneProcess> Candidate<OfOneProcess> for P {}
    <Shared as Candidate<_>>::only_one();
    <Shared<NoSpin> as Candidate<_>>::only_one();
    <Shared<Adaptive, Counted> as Candidate<_>>::only_one();
    <Private as Candidate<OfOneProcess>>::only_one();
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often `body` allocates on this thread, how much, and for what alignment at the most.
fn allocations(body: impl FnOnce()) -> (usize, usize, usize) {
    let allocated = during(body);
    (allocated.times, allocated.bytes, allocated.align)
}

#[test]
fn a_semaphore_is_a_pair_of_cache_lines() {
    assert_ne!(allocations(|| drop(Box::new([0u8; 7]))), (0, 0, 0), "nothing is noted");
    for len in [1, 2, 100, 32_000] {
        let values = vec![0; len];
        let allocated = allocations(|| drop(SemArray::with_values(values)));
        assert_eq!(allocated, (1, 128 * len, 128), "{len} semaphores");
    }
    assert_eq!(allocations(|| drop(SemArray::with_values(Vec::new()))).0, 0);
}

#[test]
fn what_is_done_allocates_nothing() {
    let array = SemArray::with_values([1; 9]);
    let wait = Duration::from_millis(1);
    let nothing = (0, 0, 0);
    let ready: [Op; 8] = std::array::from_fn(|index| Op::sub(7 - index, 1));
    let stuck: [Op; 8] = std::array::from_fn(|index| Op::sub(index, 1 + index as u32 / 7));
    let one = [Op::sub(8, 2)];
    let twice = [Op::add(3, 1), Op::sub(3, 2), Op::wait_zero(3), Op::add(3, 1)];
    // Performed, in no order and twice on one semaphore; given back; refused; asleep.
    assert_eq!(allocations(|| drop(array.acquire(Set::from(ready)).unwrap())), nothing);
    assert_eq!(allocations(|| array.apply(&twice).unwrap()), nothing);
    assert_eq!(allocations(|| assert_eq!(array.try_apply(&stuck), Err(Error::WouldBlock))), nothing);
    assert_eq!(allocations(|| assert_eq!(array.apply_for(&stuck, wait), Err(Error::TimedOut))), nothing);
    assert_eq!(allocations(|| assert_eq!(array.apply_for(&one, wait), Err(Error::TimedOut))), nothing);
    assert_eq!(allocations(|| array.set(3, 1).unwrap()), nothing);
    assert_eq!(allocations(|| array.set_all(&[1; 9]).unwrap()), nothing);
    assert_eq!(allocations(|| assert_eq!(array.waiters(3).unwrap().increase, 0)), nothing);
    assert_eq!(allocations(|| array.close()), nothing);
    let strict: SemArray =
        Builder::with_values([1; 9]).fairness(Fairness::Strict { after: Duration::ZERO }).build().unwrap();
    assert_eq!(allocations(|| assert_eq!(strict.apply_for(&stuck, wait), Err(Error::TimedOut))), nothing);
}

#[test]
fn a_call_that_wakes_many_tasks_allocates_once() {
    let array = SemArray::new(1);
    for (tasks, expected) in [(32, 0), (33, 1)] {
        let mut waiting: Vec<_> = (0..tasks).map(|_| Box::pin(array.acquire_async(Op::sub(0, 1)))).collect();
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.iter_mut().all(|task| task.as_mut().poll(&mut context).is_pending()));
        let allocated = allocations(|| array.apply(&[Op::add(0, tasks)]).unwrap());
        assert_eq!(allocated.0, expected, "for the wakers of {tasks} tasks");
        // Dropped before they know, they give back what they have.
        drop(waiting);
        array.set(0, 0).unwrap();
    }
}
