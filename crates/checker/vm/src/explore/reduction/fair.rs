//! Programs that yield in loops that change something, with other waits beside them.

use super::*;

/// Whether each thread has come to its end, and none has given up.
fn is_over(end: &&End) -> bool {
    end.0.is_none() && !end.1.iter().flatten().any(|&known| known == GAVE_UP)
}

impl Lcg {
    /// Two or three threads, one or two of which yield in a loop that changes something.
    fn yielding(&mut self) -> Vec<Vec<Op>> {
        let spin = |lcg: &mut Self| match lcg.below(2) {
            0 => Op::Count(lcg.below(2)),
            _ => Op::Poll(lcg.below(2)),
        };
        let other = |lcg: &mut Self| match lcg.below(7) {
            0 => Op::Clear(lcg.below(2)),
            1 => Op::Load(lcg.below(2), Acquire),
            2 => Op::Add(lcg.below(2), AcqRel),
            3 => Op::Wait(lcg.below(2), [None, Some(1)][lcg.below(2)]),
            4 => Op::Fence(SeqCst),
            _ => Op::Store(lcg.below(2), Release),
        };
        let (first, word) = (spin(self), self.below(2));
        let mut threads: Vec<Vec<Op>> = vec![vec![first]];
        for _ in 0..1 + self.below(2) {
            threads.push((0..1 + self.below(2)).map(|_| other(self)).collect());
        }
        threads[1].push(Op::Store(word, Release));
        if self.below(4) == 0 {
            threads[1].push(spin(self));
        }
        threads
    }
}

/// Holds the ends of programs that yield fairly against those of a search that leaves out no order,
/// and against those of the same loops without yields: an end with as many rounds as there are free
/// yields has to be there, and none may be there that is none of those loops.
#[test]
fn yields_lose_nothing_but_unfair_rounds() {
    const PROGRAMS: u64 = 80;
    let (mut compared, mut ended, mut with, mut without, mut few, mut many) = (0, 0, 0, 0, 0, 0);
    for preemptions in [None, Some(1), Some(3)] {
        let config = Config { stale: 1, max_steps: 300, preemptions, ..Config::exhaustive() };
        for seed in 0..PROGRAMS {
            let program = Lcg(seed * 7_919 + 5).yielding();
            let ends = |relation, how| ends(&program, &config, relation, how);
            let Some((all, executions)) = ends(nothing, Loop::Bare) else { continue };
            let (some, fewer) = ends(relation(&config), Loop::Bare).expect("fewer than without");
            assert_eq!(some, all, "seed {seed}: {program:?}");
            ended += u32::from(!some.iter().any(|end| end.0 == Some("livelock")));
            (compared, with, without) = (compared + 1, with + fewer, without + executions);
            if preemptions.is_some() {
                continue;
            }
            if let Some((bounded, _)) = ends(relation(&config), Loop::Bounded(2)) {
                let lost = bounded.iter().filter(is_over).find(|end| !some.contains(end));
                assert_eq!(lost, None, "seed {seed}: {program:?}");
                few += 1;
            }
            if let Some((bounded, _)) = ends(relation(&config), Loop::Bounded(5)) {
                let ends_soon = |end: &&End| is_over(end) && end.2.iter().all(|word| word % 1_000 < 400);
                let invented = some.iter().filter(ends_soon).find(|end| !bounded.contains(end));
                assert_eq!(invented, None, "seed {seed}: {program:?}");
                many += 1;
            }
        }
    }
    println!("{compared} programs, {ended} end, {with} of {without} executions; {few} and {many} bounded");
    assert!(compared > 120 && ended > 60 && few > 40 && many > 40, "{compared}, {ended}, {few}, {many}");
}

impl Lcg {
    /// A thread that counts and yields before it stores, and others that wait for that.
    fn counting(&mut self) -> Vec<Vec<Op>> {
        let spin = |lcg: &mut Self| match lcg.below(4) {
            0 => Op::Take(lcg.below(2)),
            1 => Op::SpinOnBoth,
            2 => Op::Swap(0),
            _ => Op::Spin(0),
        };
        let other = |lcg: &mut Self| match lcg.below(5) {
            0 => Op::Load(lcg.below(2), Acquire),
            1 => Op::Add(lcg.below(2), AcqRel),
            2 => Op::Wait(0, [None, Some(1)][lcg.below(2)]),
            3 => Op::Exchange(lcg.below(2), AcqRel),
            _ => Op::Store(lcg.below(2), Release),
        };
        let rounds = 2 + self.below(2) as u32;
        let mut threads = vec![vec![Op::Rounds(1, rounds), Op::Store(0, Release)], vec![spin(self)]];
        for _ in 0..1 + self.below(2) {
            let (which, op) = (self.below(2), other(self));
            threads[which].push(op);
        }
        if self.below(3) == 0 {
            threads.push(vec![if self.below(2) == 0 { spin(self) } else { other(self) }]);
        }
        threads
    }
}

/// Looks that come too early and yields that are fair: a yield waits for a step of others, and a
/// look is one.
#[test]
fn yields_and_early_looks_together_lose_nothing() {
    const PROGRAMS: u64 = 100;
    let (mut with_machines, mut with_all, mut with_bounded) = (0, 0, 0);
    for seed in 0..PROGRAMS {
        let stale = [0, 0, 1][seed as usize % 3];
        let program = Lcg(seed * 7_919 + 29).counting();
        let config = Config { stale, max_steps: 400, ..Config::exhaustive() };
        let Some((bare, _)) = ends(&program, &config, relation(&config), Loop::Bare) else { continue };
        if let Some((machines, _)) = ends(&program, &config, relation(&config), Loop::Machines) {
            assert_eq!(machines, bare, "seed {seed}: {program:?}");
            with_machines += 1;
        }
        if let Some((all, _)) = ends(&program, &config, nothing, Loop::Bare) {
            assert_eq!(bare, all, "seed {seed}: {program:?}");
            with_all += 1;
        }
        if let Some((bounded, _)) = ends(&program, &config, relation(&config), Loop::Bounded(5)) {
            let lost = bounded.iter().filter(is_over).find(|end| !bare.contains(end));
            assert_eq!(lost, None, "seed {seed}: {program:?}");
            with_bounded += 1;
        }
    }
    println!("{with_machines} with the machine's, {with_all} with all orders, {with_bounded} bounded");
    assert!(with_machines > 70 && with_all > 50 && with_bounded > 70);
}
