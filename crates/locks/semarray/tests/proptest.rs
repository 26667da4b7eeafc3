//! Arrays of many kinds against the model: scripts of one thread, which tries everything and never
//! sleeps, and scripts of several.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

#[path = "common/crew.rs"]
mod crew;
#[path = "common/ours.rs"]
mod ours;
#[path = "common/script.rs"]
mod script;

use crate::crew::Crew;
use crate::script::{Step, cases, scripts};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::prop_assert_eq;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::cell::RefCell;
use std::time::{Duration, Instant};
use ulocks_semarray::{Builder, Fairness, Permit, SemArray};
use ulocks_testkit::sets::{self, Action, Ended, Op, Outcome, Refusal, Sets};

/// Lengths and limits of arrays. Half of the lengths are short, so that sets meet.
fn kinds() -> impl Strategy<Value = (usize, u32)> {
    let limits = select(vec![1, 2, 5, Builder::LIMIT, Builder::GREATEST_LIMIT]);
    (prop_oneof![1..=4_usize, select(vec![5, 8, 33, 70])], limits)
}

/// Orders of service in which no set becomes aged before a test has ended.
fn in_order() -> impl Strategy<Value = Fairness> {
    select(vec![Fairness::Barging, Fairness::Strict { after: Duration::from_secs(3_600) }])
}

/// What a thread can do that waits for no other.
#[derive(Clone, Debug)]
enum Call {
    Try(Vec<Op>),
    /// With a deadline that has passed.
    Until(Vec<Op>),
    /// With a duration of nothing.
    For(Vec<Op>),
    Interruptible(Vec<Op>),
    TryAcquire(Vec<Op>),
    AcquireUntil(Vec<Op>),
    /// Drops one of the permits.
    GiveBack(usize),
    /// Keeps what one of the permits took.
    Forget(usize),
    Set(usize, u32),
    SetAll(Vec<u32>),
    Close,
}

fn call(len: usize, limit: u32) -> impl Strategy<Value = Call> {
    let set = || set(len, limit);
    // Beyond the limit too.
    let value = || prop_oneof![4 => 0..=limit.min(3), 2 => limit.saturating_sub(2)..=limit.saturating_add(1)];
    prop_oneof![
        20 => set().prop_map(Call::Try),
        10 => set().prop_map(Call::Until),
        5 => set().prop_map(Call::For),
        5 => set().prop_map(Call::Interruptible),
        10 => set().prop_map(Call::TryAcquire),
        5 => set().prop_map(Call::AcquireUntil),
        10 => any::<usize>().prop_map(Call::GiveBack),
        5 => any::<usize>().prop_map(Call::Forget),
        5 => (0..=len, value()).prop_map(|(index, value)| Call::Set(index, value)),
        3 => vec(value(), len).prop_map(Call::SetAll),
        1 => Just(Call::Close),
    ]
}

/// Sets, sometimes of nothing, or with an amount that is nothing or too much, or an index too far.
fn set(len: usize, limit: u32) -> impl Strategy<Value = Vec<Op>> {
    let amounts = (script::set(len, limit), select(vec![0, limit + 1])).prop_map(|(mut ops, amount)| {
        ops[0] = match ops[0].action {
            Action::Sub(_) => sets::sub(ops[0].index, amount),
            _ => sets::add(ops[0].index, amount),
        };
        ops
    });
    prop_oneof![40 => script::set(len, limit), 2 => amounts, 1 => script::set(len + 1, limit), 1 => Just(Vec::new())]
}

/// The only thread. No set waits that it could complete.
const ME: usize = 0;

fn tried(model: &mut Sets, ops: &[Op]) -> Outcome {
    model.apply(ME, ops, false)[0].1
}

/// Waits until a deadline that has passed.
fn gives_up(model: &mut Sets, ops: &[Op]) -> Outcome {
    let mut ended = model.apply(ME, ops, true);
    ended.extend(model.cancel(ME, Refusal::TimedOut));
    ended[0].1
}

fn alone(result: Result<Ended, Refusal>) -> Outcome {
    result.map(|completed| assert_eq!(completed, []))
}

/// Makes one call to both.
fn perform<'a>(
    call: &Call,
    array: &'a SemArray,
    model: &mut Sets,
    permits: &mut Vec<(Permit<'a, ours::Sleeps>, Vec<Op>)>,
) -> Result<(), TestCaseError> {
    let past = Instant::now();
    let (seen, expected) = match call {
        Call::Try(ops) => (ours::outcome(array.try_apply(&ours::set(ops))), tried(model, ops)),
        Call::Until(ops) => (ours::outcome(array.apply_until(&ours::set(ops), past)), gives_up(model, ops)),
        Call::For(ops) => {
            (ours::outcome(array.apply_for(&ours::set(ops), Duration::ZERO)), gives_up(model, ops))
        }
        Call::Interruptible(ops) => {
            let done = array.apply_interruptible(&ours::set(ops), Some(past.into()));
            (ours::outcome(done), gives_up(model, ops))
        }
        Call::TryAcquire(ops) | Call::AcquireUntil(ops) => {
            let tries = matches!(call, Call::TryAcquire(_));
            let set = ours::set(ops);
            let permit = if tries { array.try_acquire(set) } else { array.acquire_until(set, past) };
            let expected = if tries { tried(model, ops) } else { gives_up(model, ops) };
            let seen = permit.map(|permit| {
                assert_eq!(*permit.ops(), *ours::set(ops));
                permits.push((permit, ops.clone()));
            });
            (ours::outcome(seen), expected)
        }
        Call::GiveBack(which) if !permits.is_empty() => {
            let (permit, ops) = permits.swap_remove(which % permits.len());
            drop(permit);
            (Ok(()), alone(Ok(model.give_back(&ops))))
        }
        Call::Forget(which) if !permits.is_empty() => {
            permits.swap_remove(which % permits.len()).0.forget();
            (Ok(()), Ok(()))
        }
        Call::GiveBack(_) | Call::Forget(_) => return Ok(()),
        Call::Set(index, value) => {
            (ours::outcome(array.set(*index, *value)), alone(model.set(*index, *value)))
        }
        Call::SetAll(values) => (ours::outcome(array.set_all(values)), alone(model.set_all(values))),
        Call::Close => {
            array.close();
            (Ok(()), alone(Ok(model.close())))
        }
    };
    prop_assert_eq!(seen, expected, "{:?}", call);
    Ok(())
}

#[test]
fn one_thread_sees_what_the_model_says() {
    let some = kinds().prop_flat_map(|(len, limit)| {
        let calls = vec(call(len, limit), 1..100);
        (Just(limit), vec(0..=limit.min(3), len), in_order(), calls)
    });
    let check = |(limit, start, fairness, calls): (u32, Vec<u32>, _, Vec<_>)| {
        let array: SemArray =
            Builder::with_values(start.clone()).limit(limit).fairness(fairness).build().expect("in range");
        let mut model = Sets::new(start, limit);
        let (mut permits, mut closed) = (Vec::new(), false);
        for call in &calls {
            perform(call, &array, &mut model, &mut permits)?;
            let values = array.values();
            prop_assert_eq!(&*values, model.values(), "{:?}", call);
            for (index, value) in values.iter().enumerate() {
                prop_assert_eq!(array.value(index), Ok(*value));
                prop_assert_eq!(array.waiters(index), Ok(ulocks_semarray::Waiters::default()));
            }
            closed |= matches!(call, Call::Close);
            prop_assert_eq!(array.is_closed(), closed);
        }
        Ok(())
    };
    TestRunner::new(cases(1_000)).run(&some, check).unwrap_or_else(|error| panic!("{error}"));
}

/// No set becomes aged in a script: an array with another order does the same, by other ways.
#[test]
fn several_threads_see_what_the_model_says() {
    let crew = RefCell::new(Crew::new(WORKERS));
    let some = (kinds(), in_order()).prop_flat_map(|((len, limit), fairness)| {
        (Just(limit), scripts(len, limit, step(len, limit)), Just(fairness))
    });
    let check = |(limit, (start, steps), fairness): (u32, (Vec<u32>, Vec<Step>), _)| {
        let array = ours::array(&start, limit, fairness);
        crew.borrow_mut().play(array, Sets::new(start, limit), &steps).map_err(TestCaseError::fail)
    };
    TestRunner::new(cases(400)).run(&some, check).unwrap_or_else(|error| panic!("{error}"));
}

const WORKERS: usize = 10;

fn step(len: usize, limit: u32) -> impl Strategy<Value = Step> {
    let given_back = script::set(len, limit).prop_map(Step::GiveBack);
    prop_oneof![20 => script::step(WORKERS, len, limit, set(len, limit)), 1 => given_back]
}

/// The same scripts each time, on so few semaphores that their sets meet.
#[test]
fn few_semaphores_are_what_the_model_says() {
    let crew = RefCell::new(Crew::new(WORKERS));
    let some = (1..=3_usize).prop_flat_map(|len| scripts(len, Builder::LIMIT, step(len, Builder::LIMIT)));
    let check = |(start, steps): (Vec<u32>, Vec<Step>)| {
        let array = ours::array(&start, Builder::LIMIT, Fairness::Barging);
        let model = Sets::new(start, Builder::LIMIT);
        crew.borrow_mut().play(array, model, &steps).map_err(TestCaseError::fail)
    };
    let config = Config { failure_persistence: None, ..cases(400) };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    runner.run(&some, check).unwrap_or_else(|error| panic!("{error}"));
}
