//! Random sets by eight threads, and an order of them that explains the outcome of every one: see
//! `ulocks_testkit::history`.
//!
//! | outcome | explained by a moment at which |
//! |---|---|
//! | it was performed | its operations, one after the other, could proceed |
//! | `WouldBlock` of a call that tries | one of them could not |
//! | `WouldBlock` of a waiting set | one of them could not, and it is one without waiting |
//! | `TimedOut`, `Interrupted` | one of them could not, and it is one that waits |
//! | `ValueOutOfRange` | one of them went too far, and the earlier ones could proceed |
//!
//! Aged sets stop others for reasons that are not in the values. So of an array with strict
//! fairness only the performed sets are explained.

use crate::storm::Storm;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_core::time::Deadline;
use ulocks_semarray::{Builder, Error, Fairness, InOneProcess, Op, SemArrayWith, Set};
use ulocks_testkit::history::{Clock, Record, Spec, check};
use ulocks_testkit::stress::Random;
use ulocks_testkit::thread::together;
use ulocks_testkit::watchdog::watch;

const THREADS: usize = 8;
const SEMAPHORES: usize = 4;
/// Values beyond this are not aimed at.
const MANY: u32 = 4;

type Values = [u32; SEMAPHORES];

/// A call of a thread, and what came of it.
enum Call {
    Set {
        ops: Vec<Op>,
        how: How,
        result: Result<(), Error>,
    },
    /// A permit for this set was dropped.
    GiveBack(Vec<Op>),
    Values(Vec<u32>),
    Value(usize, u32),
    Impose(usize, u32),
    ImposeAll(Values),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Try,
    For,
    Wait,
}

/// As one would write it.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |f: &mut fmt::Formatter<'_>, ops: &[Op]| {
            for op in ops {
                let no_wait = if op.is_no_wait() { "!" } else { "" };
                match op.change() {
                    0 if op.is_wait_zero() => write!(f, " zero({}){no_wait}", op.index())?,
                    change => write!(f, " {change:+}({}){no_wait}", op.index())?,
                }
            }
            Ok(())
        };
        match self {
            Self::Set { ops, how, result } => {
                write!(f, "{how:?}")?;
                set(f, ops)?;
                write!(f, " -> {result:?}")
            }
            Self::GiveBack(ops) => {
                write!(f, "give back")?;
                set(f, ops)
            }
            Self::Values(values) => write!(f, "values {values:?}"),
            Self::Value(index, value) => write!(f, "value({index}) = {value}"),
            Self::Impose(index, value) => write!(f, "set({index}, {value})"),
            Self::ImposeAll(values) => write!(f, "set_all {values:?}"),
        }
    }
}

/// The result of a set at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Proceeds(Values),
    /// The operation at this place cannot proceed.
    Stops(usize),
    /// This semaphore would exceed the limit.
    OutOfRange(usize),
}

struct Sets {
    limit: u32,
    /// Whether sets may stop for others that are older.
    defers: bool,
}

impl Sets {
    fn verdict(&self, mut values: Values, ops: &[Op]) -> Verdict {
        for (at, op) in ops.iter().enumerate() {
            let value = &mut values[op.index()];
            let next = i64::from(*value) + op.change();
            if next < 0 || op.is_wait_zero() && *value != 0 {
                return Verdict::Stops(at);
            }
            if next > i64::from(self.limit) {
                return Verdict::OutOfRange(op.index());
            }
            *value = next as u32;
        }
        Verdict::Proceeds(values)
    }
}

/// What a set adds to each semaphore.
fn net(ops: &[Op]) -> [i64; SEMAPHORES] {
    let mut net = [0; SEMAPHORES];
    ops.iter().for_each(|op| net[op.index()] += op.change());
    net
}

impl Spec for Sets {
    type State = Values;
    type Call = Call;

    fn after(&self, values: &Values, call: &Call) -> Option<Values> {
        let so = |so: bool| so.then_some(*values);
        match call {
            Call::Set { ops, how, result } => match (result, self.verdict(*values, ops)) {
                (Ok(()), Verdict::Proceeds(next)) => Some(next),
                (Err(Error::WouldBlock | Error::TimedOut | Error::Interrupted), _) if self.defers => {
                    Some(*values)
                }
                (Err(Error::WouldBlock), Verdict::Stops(at)) => so(*how == How::Try || ops[at].is_no_wait()),
                (Err(Error::TimedOut | Error::Interrupted), Verdict::Stops(at)) => {
                    so(*how == How::For && !ops[at].is_no_wait())
                }
                (Err(Error::ValueOutOfRange { index, limit }), Verdict::OutOfRange(at)) => {
                    so((*index, *limit) == (at, self.limit))
                }
                _ => None,
            },
            Call::GiveBack(ops) => {
                let mut next = *values;
                for (value, change) in next.iter_mut().zip(net(ops)) {
                    *value = (i64::from(*value) - change).clamp(0, self.limit.into()) as u32;
                }
                Some(next)
            }
            Call::Values(seen) => so(seen == values),
            Call::Value(index, seen) => so(*seen == values[*index]),
            Call::Impose(index, value) => {
                let mut next = *values;
                next[*index] = *value;
                Some(next)
            }
            Call::ImposeAll(next) => Some(*next),
        }
    }

    fn only_looks(&self, call: &Call) -> bool {
        match call {
            Call::Set { ops, result, .. } => result.is_err() || net(ops) == [0; SEMAPHORES],
            Call::GiveBack(ops) => net(ops) == [0; SEMAPHORES],
            Call::Values(_) | Call::Value(..) => true,
            Call::Impose(..) | Call::ImposeAll(_) => false,
        }
    }
}

/// One of the threads.
struct Worker<'a, P: InOneProcess> {
    array: &'a SemArrayWith<P>,
    clock: &'a Clock,
    spec: &'a Sets,
    load: Load,
    random: Random,
    thread: usize,
    /// Random sets so far.
    sets: usize,
    log: Vec<Record<Call>>,
}

impl<P: InOneProcess> Worker<'_, P> {
    fn below(&mut self, bound: u32) -> u32 {
        self.random.below(bound)
    }

    fn note(&mut self, call: impl FnOnce(&SemArrayWith<P>) -> Call) {
        let (span, call) = self.clock.time(|| call(self.array));
        self.log.push(Record { span, thread: self.thread, call });
    }

    /// A set of up to four operations. It takes where there is much, and adds where there is
    /// little.
    fn draw(&mut self) -> Vec<Op> {
        let len = [1, 1, 1, 1, 2, 2, 3, 4][self.below(8) as usize];
        let op = |worker: &mut Self| {
            let index = worker.below(SEMAPHORES as u32) as usize;
            let amount = 1 + worker.below(3);
            let is_little = worker.array.value(index).unwrap() < MANY;
            let op = match worker.below(16) {
                0 => Op::add(index, 0),
                1 => Op::sub(index, 0),
                2 | 3 => Op::wait_zero(index),
                4..8 if is_little => Op::add(index, amount),
                4 => Op::add(index, amount),
                _ => Op::sub(index, amount),
            };
            if worker.below(8) == 0 { op.no_wait() } else { op }
        };
        (0..len).map(|_| op(self)).collect()
    }

    /// Whether no value ever meets the limit.
    fn adds_up(&self) -> bool {
        self.load.limit == Builder::LIMIT
    }

    fn values(&mut self) -> Values {
        std::array::from_fn(|_| self.below(MANY))
    }

    /// One random set. A set that might wait for ever can proceed at values that there will be
    /// again.
    fn set(&mut self) {
        self.sets += 1;
        let ops = self.draw();
        let timeout = Duration::from_micros(self.below(80).into());
        let stormy = self.load.stormy;
        match self.below(16) {
            0..5 => self.note(|array| Call::Set { result: array.try_apply(&ops), ops, how: How::Try }),
            5..9 => {
                let result = |array: &SemArrayWith<P>| {
                    if stormy {
                        array.apply_interruptible(&ops, Some(Deadline::after(timeout)))
                    } else {
                        array.apply_for(&ops, timeout)
                    }
                };
                self.note(|array| Call::Set { result: result(array), ops: ops.clone(), how: How::For });
            }
            9..13 => {
                let witness = self.values();
                if self.thread != 0 && matches!(self.spec.verdict(witness, &ops), Verdict::Proceeds(_)) {
                    self.note(|array| Call::Set { result: array.apply(&ops), ops, how: How::Wait });
                } else {
                    self.note(|array| Call::Set { result: array.try_apply(&ops), ops, how: How::Try });
                }
            }
            // A set that gives back units which others have taken stops at zero, so units would not
            // add up.
            _ if self.adds_up() && net(&ops).iter().any(|change| *change > 0) => self.sets -= 1,
            lot => self.with_permit(ops, (lot == 13).then_some(timeout)),
        }
    }

    fn set_values(&mut self) {
        let values = self.values();
        match self.below(8) {
            0 => self.note(|array| {
                array.set_all(&values).unwrap();
                Call::ImposeAll(values)
            }),
            lot => self.note(|array| {
                let index = lot as usize % SEMAPHORES;
                array.set(index, values[index]).unwrap();
                Call::Impose(index, values[index])
            }),
        }
    }

    fn with_permit(&mut self, ops: Vec<Op>, timeout: Option<Duration>) {
        let how = if timeout.is_some() { How::For } else { How::Try };
        let (span, permit) = self.clock.time(|| match timeout {
            Some(timeout) => self.array.acquire_for(&ops[..], timeout),
            None => self.array.try_acquire(&ops[..]),
        });
        let result = permit.as_ref().map(|_| ()).map_err(|error| *error);
        self.log.push(Record {
            span,
            thread: self.thread,
            call: Call::Set { ops: ops.clone(), how, result },
        });
        let Ok(permit) = permit else { return };
        if self.below(4) == 0 {
            permit.forget();
        } else {
            self.note(|_| {
                drop(permit);
                Call::GiveBack(ops)
            });
        }
    }

    /// Leads to random values, so that every set that is possible is served.
    fn feed(&mut self) {
        let aim = self.values();
        let now = self.array.values();
        let set: Set = (0..SEMAPHORES)
            .map(|index| match aim[index].checked_sub(now[index]) {
                Some(missing) => Op::add(index, missing),
                None => Op::sub(index, now[index] - aim[index]),
            })
            .collect();
        let ops = set.to_vec();
        self.note(|array| Call::Set { result: array.try_apply(&ops), ops, how: How::Try });
    }

    fn look(&mut self) {
        if self.below(2) == 0 {
            self.note(|array| Call::Values(array.values()));
        } else {
            let index = self.below(SEMAPHORES as u32) as usize;
            self.note(|array| Call::Value(index, array.value(index).unwrap()));
        }
    }
}

/// The results of the sets of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    sets: usize,
    performed: usize,
    would_block: usize,
    timed_out: usize,
    interrupted: usize,
    out_of_range: usize,
    /// What was added, less what was taken, given back included.
    net: i64,
}

fn ends(history: &[Record<Call>]) -> Ends {
    let mut ends = Ends::default();
    for record in history {
        match &record.call {
            Call::Set { result, ops, .. } => {
                ends.sets += 1;
                match result {
                    Ok(()) => {
                        ends.performed += 1;
                        ends.net += net(ops).iter().sum::<i64>();
                    }
                    Err(Error::WouldBlock) => ends.would_block += 1,
                    Err(Error::TimedOut) => ends.timed_out += 1,
                    Err(Error::Interrupted) => ends.interrupted += 1,
                    Err(_) => ends.out_of_range += 1,
                }
            }
            Call::GiveBack(ops) => ends.net -= net(ops).iter().sum::<i64>(),
            Call::Values(_) | Call::Value(..) | Call::Impose(..) | Call::ImposeAll(_) => {}
        }
    }
    ends
}

/// What is run.
#[derive(Clone, Copy, Debug)]
struct Load {
    name: &'static str,
    /// Where the threads' random numbers begin.
    seed: usize,
    sets: usize,
    limit: u32,
    fairness: Fairness,
    /// Whether there are signals all the time, which some want to know of.
    stormy: bool,
}

impl Default for Load {
    fn default() -> Self {
        let (limit, fairness) = (Builder::LIMIT, Fairness::Barging);
        Self { name: "every set", seed: 1, sets: 50_000, limit, fairness, stormy: false }
    }
}

const START: Values = [2, 0, 1, 3];

/// Runs a load, and explains what came of it.
fn explain<P: InOneProcess>(load: Load) -> Ends {
    let Load { name, seed, sets, limit, fairness, stormy } = load;
    let array: SemArrayWith<P> = Builder::with_values(START).limit(limit).fairness(fairness).build().unwrap();
    let array = Arc::new(array);
    let _watchdog = {
        let array = Arc::clone(&array);
        watch(name, move || {
            let waiters: Vec<_> = (0..SEMAPHORES).map(|index| array.waiters(index).unwrap()).collect();
            format!("seed {seed}, values {:?}, {waiters:?}", array.values())
        })
    };
    let spec = Arc::new(Sets { limit, defers: fairness != Fairness::Barging });
    let clock = Arc::new(Clock::default());
    let logs = {
        let (array, spec, clock) = (Arc::clone(&array), Arc::clone(&spec), Arc::clone(&clock));
        let busy = AtomicUsize::new(THREADS - 1);
        let storm = stormy.then(Storm::new);
        together(THREADS, move |thread| {
            let _target = storm.as_ref().map(Storm::strike_me);
            let random = Random::new(seed * THREADS + thread);
            let log = Vec::with_capacity(sets / THREADS * 5 / 4);
            let mut worker =
                Worker { array: &array, clock: &clock, spec: &spec, load, random, thread, sets: 0, log };
            while worker.sets < sets / THREADS {
                match worker.below(64) {
                    0 => worker.look(),
                    1 if !worker.adds_up() => worker.set_values(),
                    2..24 if thread == 0 => worker.feed(),
                    _ => {}
                }
                worker.set();
            }
            if thread != 0 {
                busy.fetch_sub(1, Relaxed);
            } else {
                while busy.load(Relaxed) != 0 {
                    worker.feed();
                }
            }
            worker.log
        })
    };
    let mut history: Vec<_> = logs.into_iter().flatten().collect();
    let (last, values) = clock.time(|| array.values());
    let sum: i64 = values.iter().copied().map(i64::from).sum();
    history.push(Record { span: last, thread: THREADS, call: Call::Values(values) });
    let ends = ends(&history);
    let found = check(&*spec, START, &history).unwrap_or_else(|error| panic!("{load:?}: {error}"));
    println!("{load:?}: {ends:?}, {found:?}");
    assert!(ends.sets >= sets && found.calls >= sets);
    for index in 0..SEMAPHORES {
        assert_eq!(array.waiters(index), Ok(Default::default()), "all have left");
    }
    if limit == Builder::LIMIT {
        let before: i64 = START.into_iter().map(i64::from).sum();
        assert_eq!(before + ends.net, sum, "values were lost or made: {load:?}");
    }
    ends
}

#[test]
fn every_set_is_explained() {
    let ends = explain::<Private<NoSpin>>(Load { sets: 500_000, ..Load::default() });
    assert!(ends.performed > 0 && ends.would_block > 0 && ends.timed_out > 0, "{ends:?}");
}

#[test]
fn every_set_is_explained_below_a_limit() {
    let ends =
        explain::<Private<NoSpin>>(Load { name: "below a limit", seed: 2, limit: 5, ..Load::default() });
    assert!(ends.timed_out > 0 && ends.out_of_range > 0, "{ends:?}");
}

#[test]
fn every_set_of_spinning_waiters_is_explained() {
    explain::<Private<Patience<20_000>>>(Load { name: "with patience", seed: 3, ..Load::default() });
}

#[test]
fn every_set_in_a_storm_of_signals_is_explained() {
    let ends =
        explain::<Private<NoSpin>>(Load { name: "in a storm", seed: 4, stormy: true, ..Load::default() });
    assert!(ends.interrupted > 0, "{ends:?}");
}

#[test]
fn every_set_beside_aged_sets_is_explained() {
    for (after, seed) in [(0, 5), (50, 6)] {
        let fairness = Fairness::Strict { after: Duration::from_micros(after) };
        let sets = 25_000;
        explain::<Private<NoSpin>>(Load {
            name: "beside aged sets",
            seed,
            sets,
            fairness,
            ..Load::default()
        });
    }
}
