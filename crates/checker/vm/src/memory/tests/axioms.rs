//! RC11 as its authors write it: executions are graphs, and axioms say which are consistent.
//!
//! All graphs of a little program are enumerated: where every read reads from, and how the writes
//! of every word are ordered. A read-modify-write is two events, as in the paper. Nothing here is
//! shared with the memory, which knows no graphs, no read-modify-writes of two events, and no
//! reads-from: the two agree because they say the same.
//!
//! Lahav, Vafeiadis, Kang, Hur, Dreyer, "Repairing Sequential Consistency in C/C++11", PLDI 2017,
//! definitions 1 to 3; release sequences as C++20 has them (P0982): without the plain stores of the
//! same thread.

use super::op::{BLOCKED, FAILED, Op, Outcome, Program, pointee, words};
use super::relation::Relation;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Read,
    Write,
    Fence,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    kind: Kind,
    loc: Option<usize>,
    order: Ordering,
    /// Thread and index of the operation; none for an initial write.
    op: Option<(usize, usize)>,
}

/// The events of a program, once it is settled which exchanges succeed and which conditions hold.
struct Graph {
    events: Vec<Event>,
    sb: Relation,
    rmw: Relation,
    conditions: Vec<Condition>,
    /// The reads of waits that never end.
    blocked: Vec<usize>,
}

/// What a thread has to have read, for the operations after it to be those of the graph.
struct Condition {
    thread: usize,
    /// Of those that return something.
    read: usize,
    holds: Holds,
}

enum Holds {
    Equal(u64, bool),
    /// The address of this word, or of none.
    Address(Option<usize>),
}

impl Condition {
    fn holds(&self, reads: &[Vec<u64>]) -> bool {
        let read = || reads[self.thread][self.read] % FAILED;
        match self.holds {
            Holds::Equal(value, holds) => (read() == value) == holds,
            Holds::Address(word) => pointee(read()) == word,
        }
    }
}

/// An execution that was observed: what each operation did.
#[derive(Default)]
pub(super) struct Observed {
    /// Of each operation that reads: the operation it read from; `None` is the initial value.
    pub(super) sources: BTreeMap<(usize, usize), Option<(usize, usize)>>,
    /// By word: the operations that wrote it, in modification order.
    pub(super) orders: Vec<Vec<(usize, usize)>>,
}

/// Whether the axioms admit what was observed.
pub(super) fn admit(program: &Program, observed: &Observed) -> bool {
    let graph = Graph::new(program, |op, _| {
        usize::from(observed.orders.iter().flatten().any(|&writer| writer == op))
    });
    let find = |kind, op| graph.events.iter().position(|e| e.kind == kind && e.op == op);
    let n = graph.events.len();
    assert!(n <= 128, "too many events");
    let (mut rf, mut mo) = (Relation::empty(n), Relation::empty(n));
    for (&op, &source) in &observed.sources {
        let read = find(Kind::Read, Some(op)).expect("a read");
        // The initial writes come first, by word.
        let initial = graph.events[read].loc.expect("a word");
        let write = source.map_or(initial, |source| find(Kind::Write, Some(source)).expect("a write"));
        rf.add(write, read);
    }
    for (word, order) in observed.orders.iter().enumerate() {
        let writes = order.iter().map(|&op| find(Kind::Write, Some(op)).expect("a write"));
        let writes: Vec<usize> = core::iter::once(word).chain(writes).collect();
        for (place, &a) in writes.iter().enumerate() {
            writes[place + 1..].iter().for_each(|&b| mo.add(a, b));
        }
    }
    let hb = graph.happens_before(&rf);
    graph.sb.union(&rf).is_acyclic() && hb.is_irreflexive() && graph.is_consistent(&hb, &rf, &mo)
}

/// All consistent outcomes. All words begin as zero.
pub(super) fn outcomes(program: &Program) -> BTreeSet<Outcome> {
    let mut found = BTreeSet::new();
    // The way that each fork takes, of how many.
    let mut path: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut at = 0;
        let graph = Graph::new(program, |_, ways| {
            if at == path.len() {
                path.push((0, ways));
            }
            at += 1;
            path[at - 1].0
        });
        let reads: Vec<usize> =
            (0..graph.events.len()).filter(|&e| graph.events[e].kind == Kind::Read).collect();
        graph.choose_sources(program, &reads, &mut Relation::empty(graph.events.len()), &mut found);
        while path.pop_if(|(way, ways)| *way + 1 == *ways).is_some() {}
        match path.last_mut() {
            None => return found,
            Some((way, _)) => *way += 1,
        }
    }
}

impl Graph {
    /// `choose` says which of its ways an operation takes: an exchange and a wait fail or succeed,
    /// and a read is the address of no word, or of one.
    fn new(program: &Program, mut choose: impl FnMut((usize, usize), usize) -> usize) -> Self {
        let initial = |x| Event { kind: Kind::Write, loc: Some(x), order: Relaxed, op: None };
        let mut events: Vec<Event> = (0..words(program)).map(initial).collect();
        let initials = events.len();
        let (mut sb, mut rmw, mut conditions, mut blocked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (t, ops) in program.iter().enumerate() {
            let mut before: Vec<usize> = (0..initials).collect();
            let mut returned = 0;
            for (i, &op) in ops.iter().enumerate() {
                let mut loc = op.loc();
                let succeeds = match op {
                    Op::Cas { .. } | Op::If(..) | Op::Await(..) => choose((t, i), 2) == 1,
                    Op::LoadAt(..) | Op::StoreAt(..) => {
                        loc = choose((t, i), 1 + initials).checked_sub(1);
                        loc.is_some()
                    }
                    _ => true,
                };
                let condition = |read, holds| Some(Condition { thread: t, read, holds });
                conditions.extend(match op {
                    Op::If(read, value) => condition(read, Holds::Equal(value, succeeds)),
                    Op::Await(_, value, _) => condition(returned, Holds::Equal(value, succeeds)),
                    Op::LoadAt(read, _) | Op::StoreAt(read, ..) => condition(read, Holds::Address(loc)),
                    _ => None,
                });
                let is_last = !succeeds && !matches!(op, Op::Cas { .. });
                let kinds: &[Kind] = match op {
                    Op::Await(..) => &[Kind::Read],
                    _ if is_last => &[],
                    Op::Load(..) | Op::LoadAt(..) => &[Kind::Read],
                    Op::Store(..) | Op::Copy(..) | Op::StoreAt(..) => &[Kind::Write],
                    Op::If(..) | Op::Yield => &[],
                    Op::Fence(_) => &[Kind::Fence],
                    Op::Cas { .. } if !succeeds => &[Kind::Read],
                    Op::Swap(..) | Op::Add(..) | Op::Cas { .. } => &[Kind::Read, Kind::Write],
                };
                returned += usize::from(op.returns());
                let order = match op {
                    Op::Load(_, order)
                    | Op::Store(_, _, order)
                    | Op::Swap(_, _, order)
                    | Op::Add(_, _, order)
                    | Op::Copy(_, _, order)
                    | Op::LoadAt(_, order)
                    | Op::StoreAt(_, _, order)
                    | Op::Await(_, _, order)
                    | Op::Fence(order) => order,
                    Op::If(..) | Op::Yield => Relaxed,
                    Op::Cas { success, failure, .. } => {
                        if succeeds {
                            success
                        } else {
                            failure
                        }
                    }
                };
                for &kind in kinds {
                    let event = events.len();
                    events.push(Event { kind, loc, order, op: Some((t, i)) });
                    sb.extend(before.iter().map(|&earlier| (earlier, event)));
                    before.push(event);
                }
                if let [_, _] = kinds {
                    rmw.push((events.len() - 2, events.len() - 1));
                }
                if is_last {
                    blocked.extend(matches!(op, Op::Await(..)).then_some(events.len() - 1));
                    break;
                }
            }
        }
        let relation = |pairs: Vec<(usize, usize)>| {
            let mut relation = Relation::empty(events.len());
            pairs.into_iter().for_each(|(a, b)| relation.add(a, b));
            relation
        };
        let (sb, rmw) = (relation(sb), relation(rmw));
        Self { events, sb, rmw, conditions, blocked }
    }

    fn choose_sources(
        &self,
        program: &Program,
        reads: &[usize],
        rf: &mut Relation,
        found: &mut BTreeSet<Outcome>,
    ) {
        let Some((&read, rest)) = reads.split_first() else {
            // NO-THIN-AIR. Values are then settled one after the other.
            if self.sb.union(rf).is_acyclic()
                && let Some((values, reads)) = self.values(program, rf)
            {
                self.choose_orders(&values, &reads, rf, found);
            }
            return;
        };
        for write in 0..self.events.len() {
            if self.events[write].kind == Kind::Write && self.events[write].loc == self.events[read].loc {
                // ATOMICITY in part: two read-modify-writes of one write could not both stand right
                // after it.
                let taken = |other: usize| rf.has(write, other) && self.rmw.0[other] != 0;
                if self.rmw.0[read] != 0 && (0..self.events.len()).any(taken) {
                    continue;
                }
                rf.add(write, read);
                self.choose_sources(program, rest, rf, found);
                rf.0[write] &= !(1 << read);
            }
        }
    }

    /// The values of all events, and what each thread reads; `None` if an exchange cannot have gone
    /// as it is said to.
    fn values(&self, program: &Program, rf: &Relation) -> Option<(Vec<u64>, Vec<Vec<u64>>)> {
        let n = self.events.len();
        let mut values: Vec<Option<u64>> = self.events.iter().map(|e| e.op.is_none().then_some(0)).collect();
        let source = rf.inverse();
        // A write of a read-modify-write needs the read's value, a read its source's: so many
        // rounds are enough.
        for _ in 0..n {
            for e in 0..n {
                let Some((t, i)) = self.events[e].op else { continue };
                values[e] = match (self.events[e].kind, program[t][i]) {
                    (Kind::Fence, _) => Some(0),
                    (Kind::Read, _) => values[source.0[e].trailing_zeros() as usize],
                    (
                        Kind::Write,
                        Op::Store(_, value, _) | Op::Swap(_, value, _) | Op::StoreAt(_, value, _),
                    ) => Some(value),
                    (Kind::Write, Op::Add(_, value, _)) => values[e - 1].map(|before| before + value),
                    (Kind::Write, Op::Cas { new, .. }) => Some(new),
                    (Kind::Write, Op::Copy(_, read, _)) => values[self.read(t, read)],
                    (Kind::Write, _) => unreachable!("not a write"),
                };
            }
        }
        let values: Vec<u64> =
            values.into_iter().collect::<Option<_>>().expect("no value comes out of a guess");
        let mut reads = vec![Vec::new(); program.len()];
        for e in (0..n).filter(|&e| self.events[e].kind == Kind::Read) {
            let (t, i) = self.events[e].op.expect("no initial reads");
            let succeeds = self.rmw.0[e] != 0;
            if let Op::Cas { expected, weak, .. } = program[t][i] {
                if succeeds != (values[e] == expected) && (succeeds || !weak) {
                    return None;
                }
                reads[t].push(values[e] | if succeeds { 0 } else { FAILED });
            } else {
                reads[t].push(values[e] | if self.blocked.contains(&e) { BLOCKED } else { 0 });
            }
        }
        self.conditions.iter().all(|condition| condition.holds(&reads)).then_some((values, reads))
    }

    /// The event of a thread's read of this number.
    fn read(&self, thread: usize, number: usize) -> usize {
        let is_read = |&e: &usize| {
            let Event { kind, op, .. } = self.events[e];
            kind == Kind::Read && op.is_some_and(|(t, _)| t == thread)
        };
        (0..self.events.len()).filter(is_read).nth(number).expect("an operation that reads")
    }

    fn choose_orders(
        &self,
        values: &[u64],
        reads: &[Vec<u64>],
        rf: &Relation,
        found: &mut BTreeSet<Outcome>,
    ) {
        let hb = self.happens_before(rf);
        if !hb.is_irreflexive() {
            return;
        }
        let words = self.events.iter().filter(|e| e.op.is_none()).count();
        let mut last = vec![0; words];
        self.order_word(
            0,
            words,
            &mut Relation::empty(self.events.len()),
            &mut last,
            &mut |mo, last| {
                let outcome =
                    Outcome { reads: reads.to_vec(), last: last.iter().map(|&e| values[e]).collect() };
                // A wait sees the newest value at last.
                let sees = |&e: &usize| {
                    let loc = self.events[e].loc.expect("a wait is for a word");
                    rf.has(last[loc], e)
                };
                if !found.contains(&outcome)
                    && self.blocked.iter().all(sees)
                    && self.is_consistent(&hb, rf, mo)
                {
                    found.insert(outcome);
                }
            },
            rf,
            &hb,
        );
    }

    /// Calls `done` with every modification order of the words from `word` on that COHERENCE and
    /// ATOMICITY do not plainly forbid: along happens-before, and with a read-modify-write right
    /// after what it read.
    #[expect(clippy::too_many_arguments, reason = "a recursion")]
    fn order_word(
        &self,
        word: usize,
        words: usize,
        mo: &mut Relation,
        last: &mut Vec<usize>,
        done: &mut dyn FnMut(&Relation, &[usize]),
        rf: &Relation,
        hb: &Relation,
    ) {
        if word == words {
            return done(mo, last);
        }
        let writes: Vec<usize> = (words..self.events.len())
            .filter(|&e| self.events[e].kind == Kind::Write && self.events[e].loc == Some(word))
            .collect();
        let mut order = vec![word];
        self.extend(&writes, &mut order, rf, hb, &mut |order| {
            let mut mo = mo.clone();
            for (place, &a) in order.iter().enumerate() {
                order[place + 1..].iter().for_each(|&b| mo.add(a, b));
            }
            last[word] = *order.last().expect("the initial write");
            self.order_word(word + 1, words, &mut mo, last, done, rf, hb);
        });
    }

    fn extend(
        &self,
        writes: &[usize],
        order: &mut Vec<usize>,
        rf: &Relation,
        hb: &Relation,
        done: &mut dyn FnMut(&[usize]),
    ) {
        if order.len() == writes.len() + 1 {
            return done(order);
        }
        let latest = *order.last().expect("the initial write");
        // The write of a read-modify-write that read the latest one, if there is such.
        let successor =
            (0..self.events.len()).find(|&e| rf.has(latest, e) && self.rmw.0[e] != 0).map(|e| e + 1);
        for &write in writes.iter().filter(|write| !order.contains(write)).collect::<Vec<_>>() {
            let is_rmw = self.rmw.has(write - 1, write);
            let fits = successor.map_or(!is_rmw, |successor| successor == write);
            if fits && writes.iter().all(|&other| order.contains(&other) || !hb.has(other, write)) {
                order.push(write);
                self.extend(writes, order, rf, hb, done);
                order.pop();
            }
        }
    }

    fn on(&self, keep: impl Fn(Event) -> bool) -> Relation {
        Relation::on(self.events.len(), |e| keep(self.events[e]))
    }

    fn same_word(&self, a: usize, b: usize) -> bool {
        self.events[a].loc.is_some() && self.events[a].loc == self.events[b].loc
    }

    fn happens_before(&self, rf: &Relation) -> Relation {
        let writes = self.on(|e| e.kind == Kind::Write);
        let fences = self.on(|e| e.kind == Kind::Fence);
        // Where an event has both kinds of order, as the two halves of a read-modify-write do, each
        // takes its own.
        let releases = self.on(|e| e.kind != Kind::Read && matches!(e.order, Release | AcqRel | SeqCst));
        let acquires = self.on(|e| e.kind != Kind::Write && matches!(e.order, Acquire | AcqRel | SeqCst));
        let rs = writes.then(&rf.then(&self.rmw).closure().maybe());
        let sw = releases
            .then(&fences.then(&self.sb).maybe())
            .then(&rs)
            .then(rf)
            .then(&self.sb.then(&fences).maybe())
            .then(&acquires);
        self.sb.union(&sw).closure()
    }

    fn is_consistent(&self, hb: &Relation, rf: &Relation, mo: &Relation) -> bool {
        let n = self.events.len();
        let rb = rf.inverse().then(mo);
        let eco = rf.union(mo).union(&rb).closure();
        // COHERENCE
        if !hb.then(&eco.maybe()).is_irreflexive() {
            return false;
        }
        // ATOMICITY
        let between = rb.then(mo);
        if (0..n).any(|e| self.rmw.0[e] & between.0[e] != 0) {
            return false;
        }
        // SC
        let sc_fences = self.on(|e| e.kind == Kind::Fence && e.order == SeqCst);
        let sc = self.on(|e| e.order == SeqCst && e.kind != Kind::Fence).union(&sc_fences);
        let sb_elsewhere = self.sb.filter(|a, b| self.events[a].loc != self.events[b].loc);
        let scb = self
            .sb
            .union(&sb_elsewhere.then(hb).then(&sb_elsewhere))
            .union(&hb.filter(|a, b| self.same_word(a, b)))
            .union(mo)
            .union(&rb);
        let psc_base =
            sc.union(&sc_fences.then(&hb.maybe())).then(&scb).then(&sc.union(&hb.maybe().then(&sc_fences)));
        let psc_fences = sc_fences.then(&hb.union(&hb.then(&eco).then(hb))).then(&sc_fences);
        psc_base.union(&psc_fences).is_acyclic()
    }
}
