//! The checker of long histories: it explains what can be explained, and nothing else.
#![cfg(world = "machine")]

use ulocks_testkit::history::{Clock, Found, Record, Span, Spec, check};
use ulocks_testkit::stress::Random;

/// Two semaphores.
struct Two;

#[derive(Clone, Copy, Debug)]
enum Call {
    /// Adds to both, at once.
    Add([i32; 2]),
    /// Would have added to both, but one would have been negative.
    Refused([i32; 2]),
    /// Both, at one moment.
    Read([i32; 2]),
    /// The first.
    First(i32),
}
use Call::{Add, First, Read, Refused};

impl Spec for Two {
    type State = [i32; 2];
    type Call = Call;

    fn after(&self, state: &[i32; 2], call: &Call) -> Option<[i32; 2]> {
        let sum = |change: [i32; 2]| {
            let sum = [state[0] + change[0], state[1] + change[1]];
            (sum.iter().min() >= Some(&0)).then_some(sum)
        };
        match *call {
            Add(change) => sum(change),
            Refused(change) => sum(change).is_none().then_some(*state),
            Read(seen) => (seen == *state).then_some(*state),
            First(seen) => (seen == state[0]).then_some(*state),
        }
    }

    fn only_looks(&self, call: &Call) -> bool {
        !matches!(call, Add(_))
    }
}

/// The same, without a word about threads that only look.
struct Slowly;

impl Spec for Slowly {
    type State = [i32; 2];
    type Call = Call;

    fn after(&self, state: &[i32; 2], call: &Call) -> Option<[i32; 2]> {
        Two.after(state, call)
    }

    fn only_looks(&self, _: &Call) -> bool {
        false
    }
}

/// Each call with the stamps of its beginning and its end.
fn is_explained(calls: &[(u64, u64, Call)]) -> bool {
    let record = |(thread, &(began, ended, call))| Record { span: Span { began, ended }, thread, call };
    let history: Vec<_> = calls.iter().enumerate().map(record).collect();
    let quickly = check(&Two, [0, 0], &history);
    assert_eq!(
        check(&Slowly, [0, 0], &history).is_ok(),
        quickly.is_ok(),
        "one way is not exact: {quickly:?}"
    );
    quickly.is_ok()
}

#[test]
fn what_happens_in_turn_is_explained_in_this_order_only() {
    assert!(is_explained(&[]));
    assert!(is_explained(&[(0, 1, Add([1, 0])), (2, 3, Add([-1, 2])), (4, 5, Read([0, 2]))]));
    assert!(!is_explained(&[(0, 1, Add([-1, 2])), (2, 3, Add([1, 0]))]));
    assert!(!is_explained(&[(0, 1, Refused([0, 1]))]));
    assert!(is_explained(&[(0, 1, Refused([0, -1])), (2, 3, Add([0, 1])), (4, 5, Add([0, -1]))]));
}

#[test]
fn what_overlaps_may_have_been_in_any_order() {
    // A reader beside a writer sees the one or the other; of two that follow one another the second
    // does not see less.
    for (first, second, so) in [(0, 0, true), (0, 1, true), (1, 1, true), (1, 0, false)] {
        let calls = [(0, 9, Add([1, 0])), (1, 2, First(first)), (3, 4, First(second))];
        assert_eq!(is_explained(&calls), so, "{first}, then {second}");
    }
    // A thread waits for what comes later, and what it makes is seen before it returns.
    assert!(is_explained(&[
        (0, 9, Add([-2, 1])),
        (1, 2, Add([1, 0])),
        (3, 4, Read([1, 0])),
        (5, 6, Add([1, 0])),
        (7, 8, Read([0, 1]))
    ]));
}

#[test]
fn a_lost_update_is_not_explained() {
    let both = [(0, 3, Add([1, 0])), (1, 2, Add([1, 0]))];
    assert!(is_explained(&[both[0], both[1], (4, 5, Read([2, 0]))]));
    assert!(!is_explained(&[both[0], both[1], (4, 5, Read([1, 0]))]));
    // Nor a unit that two have got.
    assert!(!is_explained(&[(0, 1, Add([1, 0])), (2, 5, Add([-1, 0])), (3, 4, Add([-1, 0]))]));
}

#[test]
fn half_a_set_is_not_explained() {
    for (seen, so) in [([0, 0], true), ([1, 1], true), ([1, 0], false), ([0, 1], false)] {
        assert_eq!(is_explained(&[(0, 3, Add([1, 1])), (1, 2, Read(seen))]), so, "{seen:?}");
    }
    // Not even if two look at one half each.
    assert!(!is_explained(&[
        (0, 9, Add([1, 1])),
        (1, 2, Add([-1, 0])),
        (3, 4, Refused([0, -1])),
        (5, 6, Read([0, 1]))
    ]));
}

#[test]
fn a_value_in_between_is_not_explained() {
    // The set takes one and gives it back: there is no moment at which it is gone.
    let calls = |seen| [(0, 1, Add([1, 0])), (2, 5, Add([0, 0])), (3, 4, First(seen))];
    assert!(is_explained(&calls(1)));
    assert!(!is_explained(&calls(0)));
    // A thread waits for a value that is there between two calls, and nowhere else.
    assert!(is_explained(&[
        (0, 1, Add([1, 0])),
        (2, 9, First(0)),
        (3, 4, Add([-1, 0])),
        (5, 6, Add([1, 0]))
    ]));
}

#[test]
fn it_says_what_it_cannot_explain() {
    let record = |began, ended, call| Record { span: Span { began, ended }, thread: 3, call };
    let history = [
        record(0, 1, Add([1, 0])),
        record(2, 5, Add([0, 1])),
        record(3, 4, Read([0, 0])),
        record(6, 7, First(1)),
    ];
    let text = check(&Two, [0, 0], &history).unwrap_err().to_string();
    assert!(text.starts_with(
        "nothing explains Record { span: Span { began: 3, ended: 4 }, thread: 3, call: Read([0, 0]) }"
    ));
    assert!(text.contains("[1, 0], []"), "{text}");
}

/// Threads that call an object that is right: in each step one of them begins, takes effect, or
/// ends.
fn drawn(seed: usize) -> (Vec<Record<Call>>, [i32; 2]) {
    /// Began then; and, if it has taken effect, with what.
    type Open = (u64, Option<Call>);
    let mut random = Random::new(seed);
    let (mut state, mut history) = ([0, 0], Vec::new());
    let mut open: [Option<Open>; 6] = [None; 6];
    for stamp in 0.. {
        if stamp > 150 && open.iter().all(Option::is_none) {
            break;
        }
        let thread = random.below(6) as usize;
        let change = [random.below(5) as i32 - 2, random.below(5) as i32 - 2];
        let kind = random.below(4);
        match open[thread] {
            None if stamp > 150 => {}
            None => open[thread] = Some((stamp, None)),
            Some((began, None)) => {
                let call = match (kind, Two.after(&state, &Add(change))) {
                    (0, _) => Read(state),
                    (1, _) => First(state[0]),
                    (_, None) => Refused(change),
                    (_, Some(next)) => {
                        state = next;
                        Add(change)
                    }
                };
                open[thread] = Some((began, Some(call)));
            }
            Some((began, Some(call))) => {
                history.push(Record { span: Span { began, ended: stamp }, thread, call });
                open[thread] = None;
            }
        }
    }
    (history, state)
}

#[test]
fn what_was_right_is_explained_and_what_was_not_is_not() {
    let mut most = Found::default();
    for seed in 0..300 {
        let (mut history, state) = drawn(seed);
        let found = check(&Two, [0, 0], &history).unwrap_or_else(|text| panic!("seed {seed}: {text}"));
        assert!(found.calls == history.len() && found.most_open <= 6, "{found:?}");
        most.most_configurations = most.most_configurations.max(found.most_configurations);
        check(&Slowly, [0, 0], &history).unwrap_or_else(|text| panic!("seed {seed}, slowly: {text}"));
        // At the end a thread reads, alone, what cannot be.
        let last = Span { began: 1_000_000, ended: 1_000_001 };
        for (seen, so) in [(state, true), ([state[0] + 1, state[1]], false)] {
            history.push(Record { span: last, thread: 0, call: Read(seen) });
            assert_eq!(check(&Two, [0, 0], &history).is_ok(), so, "seed {seed}");
            history.pop();
        }
        // Somewhere a change that was made is left out, or one is made twice, and the end tells.
        let changes: Vec<_> = (0..history.len())
            .filter(|nth| matches!(history[*nth].call, Add(change) if change != [0, 0]))
            .collect();
        let Some(&nth) = changes.get(seed % changes.len().max(1)) else { continue };
        history.push(Record { span: last, thread: 0, call: Read(state) });
        let Add(change) = history[nth].call else { unreachable!() };
        for wrong in [[0, 0], [2 * change[0], 2 * change[1]], [change[0], change[1] + 1]] {
            history[nth].call = Add(wrong);
            assert!(check(&Two, [0, 0], &history).is_err(), "seed {seed}, {wrong:?} for {change:?}");
        }
    }
    assert!(most.most_configurations > 8, "these histories leave no doubt about anything: {most:?}");
}

/// Whether an order explains the calls that are left, by trying all.
fn is_explained_by_any(state: [i32; 2], left: &[Record<Call>]) -> bool {
    left.is_empty()
        || (0..left.len()).any(|nth| {
            let Record { span, call, .. } = &left[nth];
            // No other thread may have ended before it began.
            let may_be_next = left.iter().all(|other| other.span.ended > span.began || other.span == *span);
            let rest = || [&left[..nth], &left[nth + 1..]].concat();
            may_be_next && Two.after(&state, call).is_some_and(|next| is_explained_by_any(next, &rest()))
        })
}

/// Random calls with random answers.
#[test]
fn it_finds_an_order_if_there_is_one() {
    let (mut explained, all) = (0, 30_000);
    for seed in 0..all {
        let mut random = Random::new(seed);
        let mut stamps: Vec<u64> = (0..12).collect();
        for nth in (1..12).rev() {
            stamps.swap(nth, random.below(nth as u32 + 1) as usize);
        }
        let mut record = |two: &[u64]| {
            let span = Span { began: two[0].min(two[1]), ended: two[0].max(two[1]) };
            let mut some = |bound, least| random.below(bound) as i32 + least;
            let (change, seen) = ([some(3, -1), some(3, -1)], [some(2, 0), some(2, 0)]);
            let call = match some(6, 0) {
                0 => Read(seen),
                1 => First(seen[0]),
                2 => Refused(change),
                _ => Add(change),
            };
            Record { span, thread: 0, call }
        };
        let history: Vec<_> = stamps.chunks(2).map(&mut record).collect();
        let is = is_explained_by_any([0, 0], &history);
        assert_eq!(check(&Two, [0, 0], &history).is_ok(), is, "seed {seed}: {history:?}");
        assert_eq!(check(&Slowly, [0, 0], &history).is_ok(), is, "seed {seed}, slowly: {history:?}");
        explained += usize::from(is);
    }
    assert!((all / 20..all - all / 20).contains(&explained), "{explained} of {all} are explained");
}

#[test]
fn stamps_say_what_came_first() {
    let clock = Clock::default();
    let (outer, (inner, seven)) = clock.time(|| clock.time(|| 7));
    assert_eq!(seven, 7);
    let (later, ()) = clock.time(|| ());
    assert!(outer.began < inner.began && inner.ended < outer.ended && outer.ended < later.began);
}
