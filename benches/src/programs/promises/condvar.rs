//! What is promised of the condition variables: a bounded buffer moves as many items as with the
//! better of std and parking_lot, at the price of that one.
//!
//! A mutex that hands over puts a thread to sleep where others barge, so it is held to peers that
//! hand over, too: strictly in order, and with priority inheritance. parking_lot's fair mutex has
//! no condition variable, and none of the peers that serve strictly in order has one of its own, so
//! [`mcs-park`](crate::subjects::condvars::all) gets a sequence word. The slowest of them, `sysv`,
//! is left out here.

use super::promise::{Bound, Claim, Promise, Subject, at_most, versus_best};
use crate::programs::condvar::{CAPACITIES, CREWS, usual_places};
use crate::subjects::condvars::PEERS;
use crate::workloads::cell::Cell;
use crate::workloads::condvars::{Load, Notify, Run};
use crate::workloads::figure::Figure;

/// Mutexes that barge.
const BARGING: [&str; 4] = ["unfair", "throughput", "asym", "calock"];
/// Mutexes that hand over, with the name of their pair, and the peers of that.
const HANDING_OVER: [(&str, &str, &[&str]); 3] = [
    ("fair", "fair", &["mcs-park", "pthread-pi"]),
    ("pi", "pi", &["pthread-pi"]),
    ("pi", "pi-generic", &["pthread-pi"]),
];
/// Of the better peer's items a second.
const RATE: f64 = 0.95;
/// Of the same peer's CPU time an item.
const CPU: f64 = 1.1;
/// CPU time of an item that is handed over.
const HANDED_OVER_NS: f64 = 10_000.0;
/// What is also run with one condition variable for both sides.
const OF_ONE: [(u32, u32); 2] = [(4, 4), (1, 8)];

/// All of them.
pub(super) fn all() -> Vec<Promise> {
    let runs = runs();
    let barging = BARGING.into_iter().flat_map(|lock| runs.iter().flat_map(move |&run| barging(lock, run)));
    let handing_over = HANDING_OVER.into_iter().flat_map(|(lock, pair, peers)| {
        runs.iter().flat_map(move |&run| handing_over(lock, pair, peers, run))
    });
    barging.chain(handing_over).collect()
}

fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for (producers, consumers) in CREWS {
        for capacity in CAPACITIES {
            for notify in Notify::ALL {
                let load = Load::Buffer { producers, consumers, capacity, notify, one: false };
                let places = usual_places(producers + consumers);
                runs.extend(places.iter().map(|&place| Run { load, place }));
            }
        }
    }
    for (producers, consumers) in OF_ONE {
        let load = Load::Buffer { producers, consumers, capacity: 2, notify: Notify::After, one: true };
        runs.extend(usual_places(producers + consumers).iter().map(|&place| Run { load, place }));
    }
    runs
}

/// Whether a quick look has it: the buffer of the middle.
fn is_quick(run: Run) -> bool {
    let load = Load::Buffer { producers: 4, consumers: 4, capacity: 2, notify: Notify::After, one: false };
    run.load == load
}

fn of(lock: &'static str, run: Run) -> Subject {
    Subject { lock, cell: Cell::BriefCondvar(run) }
}

fn barging(lock: &'static str, run: Run) -> [Promise; 2] {
    let peers = || PEERS.map(|peer| of(peer, run)).to_vec();
    let those = PEERS.join(", ");
    let name = |figure: &str| format!("condvar/{}/{figure}", run.name());
    let what = format!("buffer {run}: items by the better of {those}");
    let bound = Bound::AtLeast(RATE);
    let rate = versus_best(of(lock, run), peers(), Figure::PerSecond, bound, &name("rate"), what);
    let what = format!("buffer {run}: CPU time an item by that of the one with more items of {those}");
    let bound = Bound::AtMost(CPU);
    let cpu = versus_best(of(lock, run), peers(), Figure::CpuPerOp, bound, &name("cpu"), what);
    let claim = Claim::ByBestIn { mine: of(lock, run), others: peers(), best_in: Figure::PerSecond };
    let quick = is_quick(run) && lock == "unfair";
    [Promise { quick, ..rate }, Promise { quick, claim, ..cpu }]
}

fn handing_over(lock: &'static str, pair: &'static str, peers: &[&'static str], run: Run) -> [Promise; 2] {
    // A lock may have two pairs: the second is named as such.
    let name = |figure: &str| match pair == lock {
        true => format!("condvar/{}/{figure}", run.name()),
        false => format!("condvar/{}/{pair}/{figure}", run.name()),
    };
    let words = if pair == lock { String::new() } else { format!("{pair}, ") };
    let those = if peers.len() > 1 { format!("the better of {}", peers.join(", ")) } else { peers.concat() };
    let others = peers.iter().map(|&peer| of(peer, run)).collect();
    let what = format!("{words}buffer {run}: items by {those}");
    let (mine, bound) = (of(pair, run), Bound::AtLeast(RATE));
    let rate = versus_best(mine.clone(), others, Figure::PerSecond, bound, &name("rate"), what);
    let what = format!("{words}buffer {run}: CPU time an item");
    let cpu = at_most(mine, Figure::CpuPerOp, HANDED_OVER_NS, &name("cpu"), what);
    let quick = is_quick(run) && pair == "fair";
    let rename =
        |row: Promise, figure| Promise { lock, name: format!("{lock}/{}", name(figure)), quick, ..row };
    [rename(rate, "rate"), rename(cpu, "cpu")]
}
