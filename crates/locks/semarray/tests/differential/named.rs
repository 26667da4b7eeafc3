//! One script for each consequence of the rules that is not obvious, with its result written out.

use crate::crew::{Crew, Subject};
use crate::kernel;
use crate::ours;
use crate::script::{Step, predict};
use ulocks_semarray::Fairness;
use ulocks_testkit::sets::Refusal::{Closed, Interrupted, OutOfRange, TimedOut, WouldBlock};
use ulocks_testkit::sets::{Ended, Op, Outcome, Sets, add, sub, wait_zero};

const LIMIT: u32 = 32_767;
const DONE: Outcome = Ok(());

/// A script.
struct Script {
    start: Vec<u32>,
    lines: Vec<Line>,
}

/// A step, and what is expected of it.
#[derive(Clone)]
struct Line {
    step: Step,
    /// The workers whose sets end in it, in this order.
    ended: Ended,
    /// The values after it.
    values: Option<Vec<u32>>,
    /// How many sleep at each semaphore after it, until it grows and until it is zero.
    asleep: Option<Vec<(usize, usize)>>,
}

fn on<const N: usize>(start: [u32; N], lines: impl Into<Vec<Line>>) -> Script {
    Script { start: start.into(), lines: lines.into() }
}

/// The kernel's array does all that, and so does ours.
macro_rules! check {
    ($start:expr => $($line:expr),+ $(,)?) => {
        let script = on($start, [$($line),+]);
        script.check_kernel();
        script.check_ours();
    };
}

/// No set ends unless [`ends`](Line::ends) says so.
fn step(step: Step) -> Line {
    Line { step, ended: Vec::new(), values: None, asleep: None }
}

fn apply<const N: usize>(worker: usize, ops: [Op; N]) -> Line {
    step(Step::Apply(worker, ops.into()))
}

impl Line {
    fn ends<const N: usize>(self, ended: [(usize, Outcome); N]) -> Self {
        Self { ended: ended.into(), ..self }
    }

    fn values<const N: usize>(self, values: [u32; N]) -> Self {
        Self { values: Some(values.into()), ..self }
    }

    fn asleep<const N: usize>(self, asleep: [(usize, usize); N]) -> Self {
        Self { asleep: Some(asleep.into()), ..self }
    }
}

impl Script {
    fn check_ours(&self) {
        let model = Sets::new(self.start.clone(), LIMIT);
        self.expected_of(model.clone());
        self.play(ours::array(&self.start, LIMIT, Fairness::Barging), model);
    }

    fn check_kernel(&self) {
        let model = Sets::new(self.start.clone(), LIMIT).as_in_linux();
        self.expected_of(model.clone());
        if let Some(array) = kernel::array(&self.start) {
            for line in &self.lines {
                if let Step::GiveBack(ops) = &line.step {
                    array.prepare_give_back(ops);
                }
            }
            self.play(array, model);
        }
    }

    /// The model says what is written here.
    fn expected_of(&self, mut model: Sets) {
        for (at, Line { step, ended, values, asleep }) in self.lines.iter().enumerate() {
            let context = format!("step {at}, {step:?}");
            assert_eq!(predict(&mut model, step).as_ref(), Some(ended), "{context}");
            if let Some(values) = values {
                assert_eq!(model.values(), values, "{context}");
            }
            if let Some(asleep) = asleep {
                let counted: Vec<_> = model.waiters().iter().map(|at| (at.increase, at.zero)).collect();
                assert_eq!(counted, *asleep, "{context}");
            }
        }
    }

    /// The array does what the model says.
    fn play(&self, array: impl Subject, model: Sets) {
        let steps: Vec<_> = self.lines.iter().map(|line| line.step.clone()).collect();
        Crew::new(5).play(array, model, &steps).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

/// 05, 11.
#[test]
fn the_first_that_cannot_proceed_decides() {
    check! { [LIMIT, 0] =>
        apply(0, [add(0, 1), sub(1, 1).no_wait()]).ends([(0, Err(OutOfRange(0)))]),
        apply(0, [sub(1, 1).no_wait(), add(0, 1)]).ends([(0, Err(WouldBlock))]),
        apply(0, [add(0, 1), sub(0, 1)]).ends([(0, Err(OutOfRange(0)))]),
        apply(0, [sub(0, 1), add(0, 1)]).ends([(0, DONE)]).values([LIMIT, 0]),
    }
}

/// 06.
#[test]
fn a_sleeper_is_refused_at_an_operation_that_does_not_wait() {
    check! { [0, 0] =>
        apply(0, [sub(0, 1), sub(1, 1).no_wait()]).asleep([(1, 0), (0, 0)]),
        apply(1, [add(0, 1)]).ends([(1, DONE), (0, Err(WouldBlock))]).values([1, 0]),
    }
}

/// 07.
#[test]
fn a_sleeper_is_refused_when_it_would_leave_the_range() {
    check! { [0, LIMIT] =>
        apply(0, [sub(0, 1), add(1, 1)]),
        apply(1, [add(0, 1)]).ends([(1, DONE), (0, Err(OutOfRange(1)))]).values([1, LIMIT]),
    }
}

/// 08, 09, 10.
#[test]
fn a_set_sees_what_it_did_before() {
    check! { [0, 10, 1] =>
        apply(0, [wait_zero(0), add(0, 1)]).ends([(0, DONE)]),
        apply(1, [wait_zero(0), add(0, 1)]).asleep([(0, 1), (0, 0), (0, 0)]),
        apply(2, [sub(1, 10), wait_zero(1)]).ends([(2, DONE)]),
        apply(2, [add(2, 5), sub(2, 2)]).ends([(2, DONE)]).values([1, 0, 4]),
        apply(2, [sub(2, 5), add(2, 5)]).asleep([(0, 1), (0, 0), (1, 0)]),
        apply(0, [sub(0, 1)]).ends([(0, DONE), (1, DONE)]).values([1, 0, 4]),
    }
}

/// 12.
#[test]
fn a_zero_inside_of_a_set_is_not_seen_and_one_between_sets_is_not_missed() {
    check! { [1] =>
        apply(0, [wait_zero(0)]),
        apply(1, [sub(0, 1), add(0, 1)]).ends([(1, DONE)]).asleep([(0, 1)]),
        apply(1, [sub(0, 1)]).ends([(1, DONE), (0, DONE)]),
        apply(1, [add(0, 1)]).ends([(1, DONE)]),
    }
}

/// 14.
#[test]
fn a_set_that_needs_less_passes_one_that_needs_more() {
    check! { [0] =>
        apply(0, [sub(0, 3)]),
        apply(1, [sub(0, 1)]),
        apply(2, [add(0, 1)]).ends([(2, DONE), (1, DONE)]).asleep([(1, 0)]),
        apply(2, [add(0, 3)]).ends([(2, DONE), (0, DONE)]),
    }
}

/// 18.
#[test]
fn a_set_that_moves_to_another_semaphore_keeps_its_age() {
    check! { [0, 0] =>
        apply(0, [sub(0, 1), sub(1, 1)]).asleep([(1, 0), (0, 0)]),
        apply(1, [sub(1, 1)]),
        apply(2, [add(0, 1)]).ends([(2, DONE)]).asleep([(0, 0), (2, 0)]),
        apply(2, [add(1, 1)]).ends([(2, DONE), (0, DONE)]).values([0, 0]).asleep([(0, 0), (1, 0)]),
    }
}

/// 35.
#[test]
fn a_sleeper_is_refused_when_an_earlier_operation_cannot_proceed_any_more() {
    check! { [1, 0] =>
        apply(0, [sub(0, 1).no_wait(), sub(1, 1)]).asleep([(0, 0), (1, 0)]),
        apply(1, [sub(0, 1)]).ends([(1, DONE), (0, Err(WouldBlock))]),
    }
}

/// 36.
#[test]
fn a_sleeper_is_refused_when_an_earlier_operation_would_leave_the_range() {
    check! { [LIMIT - 1, 0] =>
        apply(0, [add(0, 1), sub(1, 1)]),
        apply(1, [add(0, 1)]).ends([(1, DONE), (0, Err(OutOfRange(0)))]).values([LIMIT, 0]),
    }
}

/// 37.
#[test]
fn a_sleeper_counts_where_it_stops_now() {
    check! { [1, 0] =>
        apply(0, [sub(0, 1), sub(1, 1)]).asleep([(0, 0), (1, 0)]),
        apply(1, [sub(0, 1)]).ends([(1, DONE)]).asleep([(1, 0), (0, 0)]),
        apply(1, [add(1, 1)]).ends([(1, DONE)]).asleep([(1, 0), (0, 0)]),
        apply(1, [add(0, 1)]).ends([(1, DONE), (0, DONE)]).values([0, 0]),
    }
}

#[test]
fn an_arriving_set_is_tried_before_sleepers() {
    check! { [1] =>
        apply(0, [sub(0, 2)]),
        apply(1, [sub(0, 1)]).ends([(1, DONE)]).values([0]),
        apply(1, [add(0, 2), sub(0, 1)]).ends([(1, DONE)]).values([1]).asleep([(1, 0)]),
    }
}

#[test]
fn a_set_that_changes_nothing_goes_before_one_that_does() {
    check! { [1, 0] =>
        apply(0, [wait_zero(0), add(0, 1)]),
        apply(1, [wait_zero(0)]),
        apply(2, [wait_zero(0), wait_zero(1)]),
        apply(3, [sub(0, 1)]).ends([(3, DONE), (1, DONE), (2, DONE), (0, DONE)]).values([1, 0]),
    }
}

/// Each completion may complete others, and a zero between two of them counts.
#[test]
fn one_completion_leads_to_the_next() {
    check! { [0, 0, 0] =>
        apply(0, [sub(2, 1), add(0, 1)]),
        apply(1, [sub(1, 1), add(2, 1)]),
        apply(2, [sub(0, 1), add(1, 1)]),
        apply(3, [add(0, 1)]).ends([(3, DONE), (2, DONE), (1, DONE), (0, DONE)]).values([1, 0, 0]),
        apply(1, [wait_zero(0)]),
        apply(2, [sub(1, 1), add(0, 1)]),
        apply(3, [sub(0, 1), add(1, 1)]).ends([(3, DONE), (1, DONE), (2, DONE)]).values([1, 0, 0]),
    }
}

/// A set that has proceeded may help one that is older than the next ones.
#[test]
fn after_each_that_proceeds_it_begins_with_the_oldest() {
    check! { [0, 0, 0] =>
        apply(0, [sub(1, 1), sub(0, 1)]),
        apply(1, [sub(0, 1), add(1, 1)]),
        apply(2, [sub(0, 1), add(2, 1)]),
        apply(3, [add(0, 2)]).ends([(3, DONE), (1, DONE), (0, DONE)]).values([0, 0, 0]).asleep([
            (1, 0),
            (0, 0),
            (0, 0),
        ]),
    }
}

#[test]
fn a_value_that_is_set_completes_sleepers() {
    check! { [1, 0] =>
        apply(0, [sub(1, 2)]),
        apply(1, [wait_zero(0)]),
        apply(2, [sub(0, 2), sub(1, 2)]),
        step(Step::Set(1, 2)).ends([(0, DONE)]).values([1, 0]),
        step(Step::SetAll(vec![0, 2])).ends([(1, DONE)]).asleep([(1, 0), (0, 0)]),
        step(Step::Set(0, 3)).ends([(2, DONE)]).values([1, 0]),
        step(Step::Set(0, LIMIT + 1)).ends([(crate::script::DRIVER, Err(OutOfRange(0)))]).values([1, 0]),
    }
}

/// As at the end of a process. It counts what was done to a semaphore in all: to undo +2 +7 -2, 7
/// are taken from 3, and not 2 added to none.
#[test]
fn what_is_given_back_completes_sleepers() {
    check! { [0, 3, LIMIT] =>
        apply(0, [sub(0, 2)]),
        apply(1, [wait_zero(1)]),
        apply(2, [wait_zero(1), sub(0, 1)]),
        step(Step::GiveBack(vec![sub(0, 2), add(1, 2), add(1, 7), sub(1, 2), sub(2, 1)]))
            .ends([(1, DONE), (0, DONE)])
            .values([0, 0, LIMIT])
            .asleep([(1, 0), (0, 0), (0, 0)]),
        step(Step::GiveBack(vec![add(1, 5), sub(1, 7), wait_zero(0)])).values([0, 2, LIMIT]).asleep([
            (0, 0),
            (0, 1),
            (0, 0),
        ]),
    }
}

#[test]
fn a_sleeper_that_times_out_leaves_the_queue_to_the_others() {
    check! { [1, 0] =>
        apply(0, [sub(0, 1), sub(1, 1)]),
        apply(1, [sub(1, 1)]),
        step(Step::Timed(2, vec![wait_zero(0)])).ends([(2, Err(TimedOut))]),
        step(Step::Try(2, vec![wait_zero(0)])).ends([(2, Err(WouldBlock))]),
        step(Step::Interrupt(0)).ends([(0, Err(Interrupted))]).values([1, 0]).asleep([(0, 0), (1, 0)]),
        apply(0, [add(1, 1)]).ends([(0, DONE), (1, DONE)]),
    }
}

/// The end of the script closes the array: every waiting set gets the error, wherever it waits.
#[test]
fn all_sleepers_get_closed() {
    check! { [1, 0] =>
        apply(0, [sub(0, 1), sub(1, 1)]),
        apply(1, [sub(1, 1)]),
        apply(2, [wait_zero(0)]),
        apply(3, [wait_zero(1), wait_zero(0)]).asleep([(0, 2), (2, 0)]),
    }
    let mut model = Sets::new([1], LIMIT);
    assert_eq!(model.apply(0, &[wait_zero(0)], true), []);
    assert_eq!(model.close(), [(0, Err(Closed))]);
    assert_eq!(model.apply(0, &[sub(0, 1)], true), [(0, Err(Closed))]);
}

/// The kernel tries sleeping sets that change nothing when a semaphore that was operated on is
/// zero, we when it matters.
#[test]
fn sets_that_change_nothing_may_be_refused_later_in_the_kernel() {
    let sleeps = apply(0, [wait_zero(0).no_wait(), wait_zero(1)]).asleep([(0, 0), (0, 1)]);
    let adds = apply(1, [add(0, 1)]).ends([(1, DONE)]).asleep([(0, 0), (0, 1)]);
    let more = apply(1, [add(1, 1)]).ends([(1, DONE)]).asleep([(0, 0), (0, 1)]);
    on([0, 1], [sleeps.clone(), adds.clone(), more]).check_kernel();
    let zero = apply(1, [sub(1, 1)]).ends([(1, DONE), (0, Err(WouldBlock))]);
    on([0, 1], [sleeps.clone(), adds, zero]).check_kernel();
    on([0, 1], [sleeps, apply(1, [add(0, 1)]).ends([(1, DONE), (0, Err(WouldBlock))])]).check_ours();
}

/// Any semaphore that is zero will do, if it was operated on by a set that changes something.
#[test]
fn sets_that_change_nothing_may_move_later_in_the_kernel() {
    let sleeps = apply(0, [wait_zero(0), wait_zero(1)]).asleep([(0, 0), (0, 1), (0, 0)]);
    let adds = apply(1, [add(0, 1)]).ends([(1, DONE)]);
    let lines = [
        sleeps.clone(),
        adds.clone().asleep([(0, 0), (0, 1), (0, 0)]),
        apply(1, [wait_zero(2)]).ends([(1, DONE)]).asleep([(0, 0), (0, 1), (0, 0)]),
        apply(1, [wait_zero(2), add(1, 1)]).ends([(1, DONE)]).asleep([(0, 1), (0, 0), (0, 0)]),
    ];
    on([0, 1, 0], lines).check_kernel();
    on([0, 1, 0], [sleeps, adds.asleep([(0, 1), (0, 0), (0, 0)])]).check_ours();
}

/// The kernel has one queue a semaphore as long as only single operations sleep. When the queues
/// become one, that of the last semaphore comes first. Then set 1, which is younger than 0, is
/// completed before it. Set 2 never sees a zero of semaphore 0 together with a value of
/// semaphore 1.
#[test]
fn single_operations_on_different_semaphores_may_pass_each_other_in_the_kernel() {
    let script = |ended| {
        let [one, other] = [apply(0, [sub(0, 2)]), apply(1, [sub(1, 2)])];
        let looks = apply(2, [wait_zero(0), wait_zero(1).no_wait()]);
        on([1, 1], [one, other, looks, apply(3, [add(0, 1), add(1, 1)]).ends(ended).values([0, 0])])
    };
    script([(3, DONE), (1, DONE), (0, DONE), (2, DONE)]).check_kernel();
    script([(3, DONE), (0, DONE), (2, Err(WouldBlock)), (1, DONE)]).check_ours();
}
