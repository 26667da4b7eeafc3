//! Scripts: what happens to an array one step at a time, and what the model expects.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, FileFailurePersistence};
use ulocks_testkit::sets::{Ended, Op, Sets, Waiters, add, sub, wait_zero};

/// The worker of a step that no worker makes.
pub const DRIVER: usize = usize::MAX;

/// Where scripts that failed are kept, to be tried first the next time.
const FAILED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/failed-scripts.txt");

/// One step of a script. A step for a worker that sleeps is left out, and so is the interruption of
/// one that does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A worker comes with a set and waits for it, if need be until the end of the script.
    Apply(usize, Vec<Op>),
    /// A worker comes with a set that is not to wait.
    Try(usize, Vec<Op>),
    /// A worker comes with a set, and times out at once when it sleeps.
    Timed(usize, Vec<Op>),
    /// A signal for a worker that sleeps.
    Interrupt(usize),
    /// A semaphore gets a value.
    Set(usize, u32),
    /// All semaphores get values.
    SetAll(Vec<u32>),
    /// What a set did, or might have done, is given back.
    GiveBack(Vec<Op>),
}

/// What is seen after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The workers whose sets ended in this step, and the outcomes.
    pub ended: Ended,
    /// The values.
    pub values: Vec<u32>,
    /// The waiting sets at each semaphore.
    pub waiters: Vec<Waiters>,
}

impl Seen {
    /// What is seen of a model after a step in which these sets ended.
    pub fn of(model: &Sets, mut ended: Ended) -> Self {
        // Several sets that end in one step return when the scheduler lets them, so their order is
        // not seen.
        ended.sort_unstable();
        Self { ended, values: model.values().to_vec(), waiters: model.waiters() }
    }
}

/// The workers that end by `step`, in the model's order. `None` if the step is left out.
pub fn predict(model: &mut Sets, step: &Step) -> Option<Ended> {
    use ulocks_testkit::sets::Refusal::{Interrupted, TimedOut};
    let by_driver =
        |ended: Result<Ended, _>| Some(ended.unwrap_or_else(|refusal| vec![(DRIVER, Err(refusal))]));
    match step {
        Step::Set(index, value) => by_driver(model.set(*index, *value)),
        Step::SetAll(values) => by_driver(model.set_all(values)),
        Step::GiveBack(ops) => Some(model.give_back(ops)),
        Step::Interrupt(worker) => model.sleeps(*worker).then(|| model.cancel(*worker, Interrupted)),
        Step::Apply(worker, ..) | Step::Try(worker, ..) | Step::Timed(worker, ..)
            if model.sleeps(*worker) =>
        {
            None
        }
        Step::Apply(worker, ops) => Some(model.apply(*worker, ops, true)),
        Step::Try(worker, ops) => Some(model.apply(*worker, ops, false)),
        Step::Timed(worker, ops) => {
            let mut ended = model.apply(*worker, ops, true);
            ended.extend(model.cancel(*worker, TimedOut));
            Some(ended)
        }
    }
}

/// `PROPTEST_CASES` cases; if that is not set, `cases`.
pub fn cases(cases: u32) -> Config {
    let failure_persistence = Some(Box::new(FileFailurePersistence::Direct(FAILED)) as Box<_>);
    // In milliseconds: to find out that a script hangs takes long.
    let default = Config { failure_persistence, max_shrink_time: 90_000, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { default } else { Config { cases, ..default } }
}

/// Values at the start, and steps.
pub fn scripts(
    len: usize,
    limit: u32,
    step: impl Strategy<Value = Step>,
) -> impl Strategy<Value = (Vec<u32>, Vec<Step>)> {
    (vec(values(limit), len), vec(step, 1..60))
}

/// Values where something is near: zero or the limit.
fn values(limit: u32) -> impl Strategy<Value = u32> {
    prop_oneof![5 => 0..=limit.min(3), 1 => limit.saturating_sub(3)..=limit]
}

/// Steps for `workers` workers, with sets from `sets`.
pub fn step(
    workers: usize,
    len: usize,
    limit: u32,
    sets: impl Strategy<Value = Vec<Op>>,
) -> impl Strategy<Value = Step> {
    let comes = (0..workers, sets).prop_flat_map(|(worker, ops)| {
        prop_oneof![
            14 => Just(Step::Apply(worker, ops.clone())),
            2 => Just(Step::Try(worker, ops.clone())),
            1 => Just(Step::Timed(worker, ops)),
        ]
    });
    prop_oneof![
        17 => comes,
        2 => (0..workers).prop_map(Step::Interrupt),
        1 => (0..len, values(limit)).prop_map(|(index, value)| Step::Set(index, value)),
        1 => vec(values(limit), len).prop_map(Step::SetAll),
    ]
}

/// Sets: half of them single operations, and some that change nothing. All are for `semop` too.
pub fn set(len: usize, limit: u32) -> impl Strategy<Value = Vec<Op>> {
    let waits = prop_oneof![4 => Just(false), 1 => Just(true)];
    let zero = (0..len, waits).prop_map(|(index, no_wait)| Op { no_wait, ..wait_zero(index) });
    prop_oneof![
        20 => vec(op(len, limit), 1),
        16 => vec(op(len, limit), 2..=4),
        4 => vec(zero, 2..=3),
        1 => vec(op(len, limit), 9..=20),
    ]
}

fn op(len: usize, limit: u32) -> impl Strategy<Value = Op> {
    let amount = || prop_oneof![30 => 1..=limit.min(3), 1 => limit.saturating_sub(2).max(1)..=limit];
    let index = move || 0..len;
    let op = prop_oneof![
        2 => (index(), amount()).prop_map(|(index, amount)| add(index, amount)),
        2 => (index(), amount()).prop_map(|(index, amount)| sub(index, amount)),
        1 => index().prop_map(wait_zero),
    ];
    (op, any::<[bool; 3]>()).prop_map(|(op, no_wait)| Op { no_wait: no_wait == [true; 3], ..op })
}
