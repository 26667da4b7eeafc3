//! A lock on its way from a thread that lets go to a thread that waits, and back: one round trip is two hand-overs.
//!
//! Two threads pass four locks around so that each acquisition finds its lock held by the other thread, which releases
//! it next. Nobody can barge, nobody polls: what is measured is the release, the wake-up if the waiter sleeps, and the
//! return of the acquisition. The threads run on CPUs as far apart as possible, if there are two.
//!
//! A lock that spins has two steady states here: both threads spin and a trip takes less than a microsecond, or both
//! sleep, because a wake-up takes longer than the other is patient. A wide interval says that it saw both.
//!
//! ```text
//!   A holds 0 2                                    B holds 1 3
//!   release 0 ───────────────────────────────────▶ acquire 0
//!   acquire 1 ◀─────────────────────────────────── release 1
//!   release 2 ───────────────────────────────────▶ acquire 2
//!   acquire 3 ◀─────────────────────────────────── release 3
//!   A holds 1 3: the same again the other way round B holds 0 2
//!   release 1 ───────────────────────────────────▶ acquire 1
//!   acquire 0 ◀─────────────────────────────────── release 0
//!   release 3 ───────────────────────────────────▶ acquire 3
//!   acquire 2 ◀─────────────────────────────────── release 2
//! ```

mod common;

use criterion::Criterion;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use ulocks_benches::locks::{self, Entry, Lock, Row, Scope, Visitor};
use ulocks_benches::options;
use ulocks_benches::pin::{self, Pin};

/// Round trips in the figure above.
const ROUND_TRIPS: u64 = 4;

struct PingPong<'a> {
    criterion: &'a mut Criterion,
    cpus: &'a [usize],
}

impl Visitor for PingPong<'_> {
    type Output = anyhow::Result<()>;

    fn visit<L: Lock>(self, entry: &'static Entry) -> Self::Output {
        let row = Row::<L>::new(Scope::Threads, 4)?;
        let name = format!("handoff/{}", entry.name);
        self.criterion
            .bench_function(&name, |b| b.iter_custom(|iterations| measure(&row, self.cpus, iterations)));
        Ok(())
    }
}

/// The time `round_trips` take.
fn measure<L: Lock>(row: &Row<L>, cpus: &[usize], round_trips: u64) -> Duration {
    let turns = round_trips.div_ceil(ROUND_TRIPS);
    let ready = Barrier::new(2);
    let bind = |cpu: usize| pin::bind(cpus[cpu % cpus.len()]).unwrap_or_else(|error| options::refuse(&error));
    let [zero, one, two, three] = [0, 1, 2, 3].map(|index| row.get(index));
    let elapsed = thread::scope(|s| {
        let a = s.spawn(|| {
            bind(0);
            let (mut at_zero, mut at_two) = (zero.acquire(), two.acquire());
            ready.wait();
            let start = Instant::now();
            for _ in 0..turns {
                drop(at_zero);
                let at_one = one.acquire();
                drop(at_two);
                let at_three = three.acquire();
                drop(at_one);
                at_zero = zero.acquire();
                drop(at_three);
                at_two = two.acquire();
            }
            start.elapsed()
        });
        s.spawn(|| {
            bind(1);
            let (mut at_one, mut at_three) = (one.acquire(), three.acquire());
            ready.wait();
            for _ in 0..turns {
                let at_zero = zero.acquire();
                drop(at_one);
                let at_two = two.acquire();
                drop(at_three);
                at_one = one.acquire();
                drop(at_zero);
                at_three = three.acquire();
                drop(at_two);
            }
        });
        a.join().expect("a lock that can be acquired")
    });
    // What was asked for, of what was done.
    elapsed.mul_f64(round_trips as f64 / (turns * ROUND_TRIPS) as f64)
}

fn main() {
    let (mut criterion, options) = common::start(Duration::from_millis(400));
    let cpus = pin::order(Pin::Scatter).unwrap_or_else(|error| options::refuse(&error));
    // Without exclusion nobody waits for anybody.
    for entry in options.locks().into_iter().filter(|entry| entry.excludes) {
        let bench = PingPong { criterion: &mut criterion, cpus: &cpus };
        let done = locks::visit(entry, Scope::Threads, bench).and_then(|done| done);
        done.unwrap_or_else(|error| options::refuse(&error));
    }
    criterion.final_summary();
}
