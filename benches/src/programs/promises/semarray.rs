//! What is promised of `SemArray`: little where no thread waits, as much as the kernel's where
//! every thread does, and a position in the queue for each thread that wants several semaphores at
//! once.

use super::promise::{Bound, Claim, Promise, Subject, at_most, versus};
use crate::programs::semaphores::semscale::counts;
use crate::subjects::semaphores::{FLOOR, FUTEX, GROUPS, KERNEL, POSIX, SEMARRAY, STRICT};
use crate::workloads::cell::Cell;
use crate::workloads::figure::Figure;
use crate::workloads::semaphores::{Order, Run};

/// Threads and wakes a round of `sembench`.
const SIZES: [(u32, u32); 2] = [(256, 200), (1000, 900)];

/// All of them, on a machine with so many CPUs.
pub(super) fn all(cpus: u32) -> Vec<Promise> {
    [uncontended(), wakes(), orders(), own(cpus), manager()].into_iter().flatten().collect()
}

fn of(lock: &'static str, cell: Cell) -> Subject {
    Subject { lock, cell }
}

/// A figure of ours and of another in the same cell.
fn against(
    other: &'static str,
    cell: Cell,
    figure: Figure,
    bound: Bound,
    name: &str,
    what: String,
) -> Promise {
    versus(of(SEMARRAY, cell), of(other, cell), figure, bound, name, what)
}

/// Semaphores in a row: an operation on one of them does not wait for the one before it.
const ROW: u32 = 64;

/// No thread stands in the way: no system call. Beside it what a compare-exchange for each
/// operation comes to by itself.
fn uncontended() -> Vec<Promise> {
    let row = |cell, words: &str, other, bound| {
        let what = format!("uncontended {words} and its opposite: time by that of {other}");
        let name = format!("uncontended/{words}/{other}");
        let row = against(other, cell, Figure::PairNs, Bound::AtMost(bound), &name, what);
        Promise { quick: true, ..row }
    };
    let floor = |cell, words: &str| {
        let [floor, kernel] = [FLOOR, KERNEL].map(|lock| of(lock, cell));
        // A set of ours needs fewer, if it comes again and again.
        let beat = if matches!(cell, Cell::Sets(2..)) { "" } else { ", which no array can beat," };
        let what = format!("uncontended {words}: time of bare compare-exchanges{beat} by that of {KERNEL}");
        let name = format!("uncontended/{words}");
        shown(floor, kernel, Figure::PairNs, &name, what)
    };
    let (singles, again) = (Cell::Singles(ROW), Cell::Sets(1));
    let (words, at_once) = ("single operation", "single operation on one semaphore");
    let mut list = vec![
        row(singles, words, KERNEL, 1.0 / 20.0),
        floor(singles, words),
        row(singles, words, POSIX, 1.3),
        row(again, at_once, KERNEL, 1.0 / 20.0),
        floor(again, at_once),
        row(again, at_once, POSIX, 1.3),
    ];
    for (ops, bound) in [(8, 1.0 / 5.0), (64, 1.0 / 5.0)] {
        let (cell, words) = (Cell::Sets(ops), format!("set of {ops}"));
        list.extend([row(cell, &words, KERNEL, bound), floor(cell, &words)]);
    }
    list
}

fn posts((threads, wakes): (u32, u32), order: Order) -> Cell {
    Cell::Sem(Run::Wakes { threads, wakes, order })
}

/// Many wait, one posts to many at a time.
fn wakes() -> Vec<Promise> {
    let rows = |size: (u32, u32)| {
        let (cell, (threads, wakes)) = (posts(size, Order::Fifo), size);
        let row = |other, figure, bound, name: &str, what: &str| {
            let what = format!("sembench, {threads} threads, {wakes} wakes a round: {what} by {other}");
            let row =
                against(other, cell, figure, bound, &format!("sembench/{threads}/{wakes}/{name}"), what);
            Promise { quick: size == SIZES[0], ..row }
        };
        let [groups, futex] = [GROUPS, FUTEX].map(|lock| of(lock, cell));
        let what = format!(
            "sembench, {threads} threads, {wakes} wakes a round: posts of {GROUPS}, the fewest wake calls possible, by {FUTEX}"
        );
        let name = format!("sembench/{threads}/{wakes}");
        let possible = shown(groups, futex, Figure::PerSecond, &name, what);
        [
            row(KERNEL, Figure::PerSecond, Bound::AtLeast(1.0), KERNEL, "posts"),
            row(KERNEL, Figure::CpuPerOp, Bound::AtMost(1.0), "cpu", "CPU time a post"),
            row(FUTEX, Figure::PerSecond, Bound::AtLeast(2.0), FUTEX, "posts"),
            possible,
        ]
    };
    SIZES.into_iter().flat_map(rows).collect()
}

/// In whichever order they are posted to.
fn orders() -> Vec<Promise> {
    let rows = |size: (u32, u32)| {
        let pairs = [(Order::Lifo, Order::Fifo), (Order::Random, Order::Fifo), (Order::Random, Order::Lifo)];
        pairs.map(|(mine, other)| {
            let ((threads, wakes), names) = (size, [mine, other].map(Order::name));
            let what = format!(
                "sembench, {threads} threads, {wakes} wakes a round: posts {} by {}",
                names[0], names[1]
            );
            let name = format!("sembench/{threads}/{wakes}/{}-{}", names[0], names[1]);
            let [mine, other] = [mine, other].map(|order| of(SEMARRAY, posts(size, order)));
            versus(mine, other, Figure::PerSecond, Bound::Within(1.15), &name, what)
        })
    };
    SIZES.into_iter().flat_map(rows).collect()
}

/// Threads on semaphores of their own do not notice that these lie in one array.
fn own(cpus: u32) -> Vec<Promise> {
    let mut list = Vec::new();
    for poster in [false, true] {
        for threads in counts(cpus) {
            let run = Run::Own { threads, poster };
            let (cell, name) = (Cell::Sem(run), run.name());
            let what = format!("{run}: turns by {POSIX}");
            let (figure, bound) = (Figure::PerSecond, Bound::AtLeast(0.9));
            let row = against(POSIX, cell, figure, bound, &name, what);
            list.push(Promise { quick: poster && threads == 4, ..row });
            let [kernel, posix] = [KERNEL, POSIX].map(|lock| of(lock, cell));
            let what = format!("{KERNEL}, to compare: {run}: turns by {POSIX}");
            list.push(shown(kernel, posix, figure, &name, what));
        }
    }
    list
}

/// Beside a promise, under the name of the lock that gave it.
fn shown(mine: Subject, other: Subject, figure: Figure, name: &str, what: String) -> Promise {
    let lock = mine.lock;
    let row = versus(mine, other, figure, Bound::Shown, name, what);
    Promise { lock: SEMARRAY, name: format!("{SEMARRAY}/{name}/{lock}"), ..row }
}

/// A thread that wants both semaphores makes progress beside threads that want one.
fn manager() -> Vec<Promise> {
    let rows = |hold_us| {
        let run = Run::Manager { workers: 8, hold_us };
        let row = |lock, bound, name: &str| {
            let mine = of(lock, Cell::Sem(run));
            let what = format!("{run}: turns of the manager by those of a worker, {lock}");
            let row = at_most(mine.clone(), Figure::Share, 0.0, name, what);
            Promise {
                lock: SEMARRAY,
                name: format!("{SEMARRAY}/{name}"),
                claim: Claim::Value(mine),
                bound,
                ..row
            }
        };
        let compared = |lock| {
            let row = row(lock, Bound::Shown, &format!("{}/{lock}", run.name()));
            Promise { what: format!("to compare: {}", row.what), ..row }
        };
        let promised = Promise { quick: true, ..row(STRICT, Bound::AtLeast(0.2), &run.name()) };
        [promised, compared(SEMARRAY), compared(KERNEL)]
    };
    [0, 10].into_iter().flat_map(rows).collect()
}
