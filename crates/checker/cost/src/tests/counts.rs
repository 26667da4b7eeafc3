//! Remote memory references that can be counted by hand.

use super::super::{Outcome, Placement, Run, Topology};
use super::locks::Line;
use super::{on_plain, ran, word};
use ulocks_vm::sync::{AtomicU32, Ordering::*, UnsafeCell, spin_until, work};

fn counts(outcome: &Outcome) -> (u64, u64) {
    (outcome.traffic.transfers, outcome.traffic.invalidations)
}

#[test]
fn one_cpu_fetches_once() {
    let outcome = ran(1, word, |word, _| {
        for _ in 0..100 {
            word.fetch_add(1, Relaxed);
            word.store(word.load(Relaxed) + 1, Relaxed);
        }
    });
    assert_eq!(counts(&outcome), (1, 0));
    assert_eq!((outcome.traffic.accesses, outcome.traffic.from_memory), (300, 1));
    // From memory, then hits.
    assert_eq!(outcome.time_ns, 80.0 + 100.0 * (5.0 + 1.0 + 1.0));
}

/// Two sockets of two CPUs: in turn.
#[test]
fn spread_workers_start_on_each_socket_in_turn() {
    let mut run = Run { placement: Placement::Spread, cpus: 4, ..on_plain(5) };
    run.machine.topology = Topology { sockets: 2, complexes: 1, cpus: 2 };
    let cpus: Vec<_> = (0..5).map(|worker| run.cpu_of(worker)).collect();
    assert_eq!(cpus, [0, 2, 1, 3, 0]);
    run.cpus = 2;
    assert!(run.of(|| (), |(), _| ()).unwrap_err().to_string().contains("need all 4"));
}

/// Two CPUs write in turn: each write is one transfer, and destroys one copy.
#[test]
fn two_cpus_in_turn_transfer_each_time() {
    const TURNS: u32 = 50;
    let outcome = ran(2, word, |word, worker| {
        for turn in 0..TURNS {
            // In turn by the clock, far enough apart for every transfer.
            work(if turn == 0 { 500 * worker.index() as u64 } else { 1_000 - 86 });
            word.fetch_add(1, Relaxed);
            work(86 - 45);
        }
    });
    assert_eq!(counts(&outcome), (2 * u64::from(TURNS), 2 * u64::from(TURNS) - 1));
    assert_eq!(outcome.traffic.from_memory, 1);
}

/// The same by waiting: each turn is one read and one write that miss.
#[test]
fn a_ping_pong_is_two_transfers_a_turn() {
    const TURNS: u32 = 50;
    let outcome = ran(2, word, |word, worker| {
        for turn in 0..TURNS {
            spin_until(|| word.load(Acquire) == 2 * turn + worker.index() as u32);
            word.store(2 * turn + worker.index() as u32 + 1, Release);
        }
    });
    // And one look in vain, at the very beginning.
    assert_eq!(counts(&outcome), (4 * u64::from(TURNS) + 1, 2 * u64::from(TURNS)));
}

fn readers_fetch_once() {
    const READERS: usize = 9;
    let outcome = on_plain(READERS)
        .of(|| AtomicU32::new(7), |word, _| (0..100).for_each(|_| assert_eq!(word.load(Acquire), 7)))
        .unwrap();
    assert_eq!(counts(&outcome), (READERS as u64, 0));
    assert_eq!((outcome.traffic.from_memory, outcome.traffic.within_complex), (1, READERS as u64 - 1));
}

/// One writes, and all others have to fetch the line again.
fn a_write_costs_every_reader() {
    const READERS: u64 = 9;
    let outcome = on_plain(READERS as usize + 1)
        .of(word, |word, worker| {
            if worker.index() == 0 {
                work(10_000);
                word.store(1, Release);
            } else {
                word.load(Acquire);
                work(20_000);
                assert_eq!(word.load(Acquire), 1);
                word.load(Acquire);
            }
        })
        .unwrap();
    assert_eq!(counts(&outcome), (READERS + 1 + READERS, READERS));
}

#[test]
fn readers_share() {
    readers_fetch_once();
    a_write_costs_every_reader();
}

#[test]
fn false_sharing_costs_what_sharing_costs() {
    fn transfers<S: 'static>(make: fn() -> S, word: fn(&S, usize) -> &AtomicU32) -> u64 {
        let outcome = ran(2, make, move |words, worker| {
            for _ in 0..100 {
                word(words, worker.index()).fetch_add(1, Relaxed);
                work(500);
            }
        });
        outcome.traffic.transfers
    }
    let pair = || [AtomicU32::new(0), AtomicU32::new(0)];
    assert_eq!(transfers(pair, |words, me| &words[me]), 200);
    let apart = || [Line(AtomicU32::new(0)), Line(AtomicU32::new(0))];
    assert_eq!(transfers(apart, |words, me| &words[me].0), 2);
}

#[test]
fn plain_data_is_charged_by_the_line() {
    #[repr(align(64))]
    struct Big(UnsafeCell<[u8; 256]>);
    let outcome = ran(
        1,
        || Big(UnsafeCell::new([0; 256])),
        |big, _| {
            big.0.with(|_| ());
            big.0.with_mut(|_| ());
            UnsafeCell::new(()).with_mut(|_| ());
        },
    );
    assert_eq!((outcome.traffic.accesses, outcome.traffic.transfers), (8, 4));
}

/// A failing compare-exchange takes the line as a succeeding one does.
#[test]
fn a_failing_exchange_takes_the_line() {
    let outcome = ran(2, word, |word, worker| {
        work(1_000 * worker.index() as u64);
        for _ in 0..10 {
            assert!(word.compare_exchange(1, 2, AcqRel, Acquire).is_err());
            work(2_000);
        }
    });
    assert_eq!(outcome.traffic.transfers, 20);
}

/// The owner goes on while a request for its line is on the way, and each write waits for the one
/// before.
#[test]
fn a_line_serves_one_after_the_other() {
    let outcome = ran(4, || AtomicU32::new(0), |word, _| _ = word.swap(1, Relaxed));
    // Requests start at 0. The first: 80 from memory and 5 of execution. The others arrive at 40
    // like it, and get the line 20 after their predecessor was done.
    assert_eq!(outcome.time_ns, 85.0 + 3.0 * (20.0 + 5.0));
}

/// On a migratory machine a read of a modified line is followed by a silent write, and the second
/// reader shares.
#[test]
fn a_modified_line_migrates_to_its_reader() {
    let counted = |migratory| {
        let mut run = on_plain(3);
        run.machine.memory.migratory = migratory;
        let outcome = run
            .of(word, |word, worker| match worker.index() {
                0 => {
                    word.store(1, Release); // from memory
                    work(5_000);
                    word.load(Acquire); // a transfer if the reader has taken the line
                }
                1 => {
                    work(1_000);
                    word.load(Acquire);
                    work(1_000);
                    word.store(2, Release); // silent if it has
                }
                _ => {
                    work(3_000);
                    word.load(Acquire);
                    work(1_000);
                    word.load(Acquire);
                }
            })
            .unwrap();
        counts(&outcome)
    };
    // First write, read, write that destroys the first copy, two more readers.
    assert_eq!(counted(false), (5, 1));
    // First write, read that takes, silent write, read that takes, read that shares.
    assert_eq!(counted(true), (4, 2));
}
