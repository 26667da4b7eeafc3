//! Random small histories, against a checker that is too simple to be wrong: it tries every order
//! of every choice of open operations. And long histories that are linearizable because of how they
//! were made.

use std::collections::HashSet;
use std::fmt::Debug;
use ulocks_vm::linear::specs::{
    Mutex, MutexCall, Queue, QueueCall, Register, RegisterCall, RwLock, RwLockCall, Semaphore, SemaphoreCall,
};
use ulocks_vm::linear::{History, Operation, Specification};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) % bound as u64) as usize
    }
}

type Operations<S> = [Operation<<S as Specification>::Call, <S as Specification>::Return>];

/// When an operation returned, if it did before event `end`.
fn returned<C, R>(operation: &Operation<C, R>, end: usize) -> Option<&(usize, R)> {
    operation.returned.as_ref().filter(|(number, _)| *number < end)
}

/// Whether `first` returned before `second` was called.
fn precedes<C, R>(first: &Operation<C, R>, second: &Operation<C, R>) -> bool {
    first.returned.as_ref().is_some_and(|(number, _)| *number < second.called)
}

/// Whether the operations can come in this order, and return what they do: all states they may lead
/// to.
fn replay<S: Specification>(spec: &S, operations: &Operations<S>, order: &[usize], end: usize) -> bool {
    let mut states = HashSet::from([spec.start()]);
    for &number in order {
        let operation = &operations[number];
        let mut next = HashSet::new();
        for state in &states {
            for (after, value) in spec.outcomes(state, &operation.call) {
                if returned(operation, end).is_none_or(|(_, returned)| *returned == value) {
                    next.insert(after);
                }
            }
        }
        states = next;
    }
    !states.is_empty()
}

/// Whether `order` has no operation after one that it precedes.
fn respects_time<C, R>(operations: &[Operation<C, R>], order: &[usize]) -> bool {
    order.iter().enumerate().all(|(place, &later)| {
        order[..place].iter().all(|&earlier| !precedes(&operations[later], &operations[earlier]))
    })
}

/// Whether the events before number `end` are linearizable: some permutation of all operations that
/// returned and some that did not.
fn brute_force<S: Specification>(spec: &S, operations: &Operations<S>, end: usize) -> bool {
    fn permutations<S: Specification>(
        spec: &S,
        operations: &Operations<S>,
        order: &mut Vec<usize>,
        end: usize,
    ) -> bool {
        // Whatever follows, these stay where they are.
        if !respects_time(operations, order) || !replay(spec, operations, order, end) {
            return false;
        }
        let called = (0..operations.len()).filter(|&number| operations[number].called < end);
        let missing: Vec<usize> = called.filter(|number| !order.contains(number)).collect();
        if missing.iter().all(|&number| returned(&operations[number], end).is_none()) {
            return true;
        }
        missing.into_iter().any(|number| {
            order.push(number);
            let found = permutations(spec, operations, order, end);
            order.pop();
            found
        })
    }
    permutations(spec, operations, &mut Vec::new(), end)
}

/// Each thread calls, returns, or dies; what is returned is one of `returns`, wherever the run
/// stands.
fn random_history<C, R>(
    random: &mut Random,
    call: impl Fn(&mut Random) -> C,
    value: impl Fn(&mut Random, &C) -> R,
) -> History<C, R> {
    let mut history = History::new();
    let mut open: Vec<Option<usize>> = vec![None; 2 + random.below(2)];
    let mut left = 2 + random.below(4);
    for _ in 0..6 + random.below(7) {
        let thread = random.below(open.len());
        match open[thread] {
            None if left > 0 => {
                open[thread] = Some(history.call(thread, call(random)));
                left -= 1;
            }
            None => {}
            Some(operation) => {
                let value = value(random, &history.operations()[operation].call);
                history.returned(operation, value);
                open[thread] = None;
            }
        }
    }
    history
}

fn compare<S>(
    spec: &S,
    seed: u64,
    call: impl Fn(&mut Random) -> S::Call,
    value: impl Fn(&mut Random, &S::Call) -> S::Return,
) where
    S: Specification,
    S::Call: Debug,
{
    let mut random = Random(seed);
    let (mut good, mut bad, mut open) = (0, 0, 0);
    for _ in 0..3_000 {
        let history = random_history(&mut random, &call, &value);
        let operations = history.operations();
        open += usize::from(operations.iter().any(|operation| operation.returned.is_none()));
        let expected = brute_force(spec, operations, history.events());
        match history.check(spec) {
            Ok(order) => {
                assert!(expected, "an order that is none: {:?} of {history:?}", order.sequence());
                let order = order.sequence();
                assert_eq!(
                    order.iter().collect::<HashSet<_>>().len(),
                    order.len(),
                    "{order:?} of {history:?}"
                );
                assert!(
                    (0..operations.len())
                        .all(|number| order.contains(&number) || operations[number].returned.is_none()),
                    "{order:?} leaves out what happened in {history:?}"
                );
                assert!(respects_time(operations, order), "{order:?} of {history:?}");
                assert!(replay(spec, operations, order, history.events()), "{order:?} of {history:?}");
                good += 1;
            }
            Err(error) => {
                assert!(!expected, "an order was overlooked:\n{error}");
                assert!(brute_force(spec, operations, error.event()), "the prefix is too long:\n{error}");
                assert!(
                    !brute_force(spec, operations, error.event() + 1),
                    "the prefix is too short:\n{error}"
                );
                let (number, _) =
                    operations[error.operation()].returned.as_ref().expect("a return is at fault");
                assert_eq!(*number, error.event());
                bad += 1;
            }
        }
    }
    // A comparison in which one answer is rare compares little.
    assert!(good > 300 && bad > 300 && open > 300, "{good} good, {bad} bad, {open} with open operations");
}

#[test]
fn register_agrees_with_brute_force() {
    use RegisterCall::{Read, Write};
    compare(
        &Register(0),
        1,
        |random| if random.below(2) == 0 { Read } else { Write(random.below(3)) },
        |random, call| if *call == Read { Some(random.below(3)) } else { None },
    );
}

#[test]
fn queue_agrees_with_brute_force() {
    use QueueCall::{Pop, Push, Take};
    compare(
        &Queue::new(),
        2,
        |random| [Pop, Take, Push(1), Push(2)][random.below(4)],
        |random, call| match call {
            Push(_) => None,
            Take => Some(1 + random.below(2)),
            Pop => [None, Some(1), Some(2)][random.below(3)],
        },
    );
}

#[test]
fn mutex_agrees_with_brute_force() {
    use MutexCall::{Attempt, Lock, TryLock, Unlock};
    compare(
        &Mutex,
        3,
        |random| [Attempt, Lock, TryLock, Unlock, Unlock][random.below(5)],
        |random, call| matches!(call, Lock | Unlock) || random.below(2) == 0,
    );
}

#[test]
fn rwlock_agrees_with_brute_force() {
    use RwLockCall::{AttemptRead, AttemptWrite, Downgrade, Read, ReadUnlock, Write, WriteUnlock};
    compare(
        &RwLock,
        4,
        |random| {
            [Read, Read, ReadUnlock, Write, Write, WriteUnlock, AttemptRead, AttemptWrite, Downgrade]
                [random.below(9)]
        },
        |random, call| !matches!(call, AttemptRead | AttemptWrite) || random.below(2) == 0,
    );
}

#[test]
fn semaphore_agrees_with_brute_force() {
    use SemaphoreCall::{Acquire, Attempt, Release, TryAcquire};
    compare(
        &Semaphore(1),
        5,
        |random| {
            let count = 1 + random.below(2) as u64;
            [Acquire(count), Attempt(count), Release(count), TryAcquire(count)][random.below(4)]
        },
        |random, call| matches!(call, Acquire(_) | Release(_)) || random.below(2) == 0,
    );
}

/// Takes effect at a moment between call and return, on a real queue: linearizable whatever is
/// chosen.
#[test]
fn long_histories_of_an_atomic_object_are_linearizable() {
    use QueueCall::{Pop, Push};
    #[derive(Clone, Copy)]
    enum At {
        Rest,
        Called(usize),
        Done(usize, Option<usize>),
    }
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut history = History::new();
        let mut queue = std::collections::VecDeque::new();
        let mut threads = [At::Rest; 4];
        for pushed in 0..300 {
            let thread = random.below(threads.len());
            threads[thread] = match threads[thread] {
                At::Rest => {
                    let call = if random.below(5) < 2 { Push(pushed) } else { Pop };
                    At::Called(history.call(thread, call))
                }
                At::Called(operation) => match history.operations()[operation].call {
                    Push(value) => {
                        queue.push_back(value);
                        At::Done(operation, None)
                    }
                    _ => At::Done(operation, queue.pop_front()),
                },
                At::Done(operation, value) => {
                    history.returned(operation, value);
                    At::Rest
                }
            };
        }
        let order = history.check(&Queue::new()).unwrap_or_else(|error| panic!("{error}"));
        assert!(replay(&Queue::new(), history.operations(), order.sequence(), history.events()));
    }
}

/// All n operations overlap, so there are n! orders; but only 2^n sets of operations, and one state
/// for each.
#[test]
fn no_configuration_is_searched_twice() {
    let mut history = History::new();
    let releases: Vec<usize> =
        (0..14).map(|thread| history.call(thread, SemaphoreCall::Release(1))).collect();
    let impossible = history.call(14, SemaphoreCall::TryAcquire(100));
    for operation in releases.into_iter().chain([impossible]) {
        history.returned(operation, true);
    }
    let error = history.check(&Semaphore(0)).expect_err("there were never 100 permits");
    assert_eq!(error.configurations(), 1 << 14);
    assert_eq!(error.operation(), impossible);
}

/// As long as nothing overlaps, the search goes straight through.
#[test]
fn a_sequential_history_is_searched_in_one_go() {
    let mut history = History::new();
    for round in 0..10_000 {
        let push = history.call(round % 3, QueueCall::Push(round));
        history.returned(push, None);
        let pop = history.call(round % 2, QueueCall::Pop);
        history.returned(pop, Some(round));
    }
    let order = history.check(&Queue::new()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(order.configurations(), 20_001);
    assert!(order.sequence().iter().copied().eq(0..20_000));
}
