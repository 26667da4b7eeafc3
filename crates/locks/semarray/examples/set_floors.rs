//! What a set costs at least: bare instructions, the kernel's `semop` and [`SemArray`], by turns in
//! one process. One thread, whose semaphores lie 128 bytes apart.
//!
//! ```sh
//! cargo run --release -p ulocks-semarray --example set_floors
//! ```
//!
//! Each figure is the time of a set and its opposite in nanoseconds: the median of the rounds. Then
//! follow two figures that decide when cells follow a leader (`src/pass.rs`), and what two threads
//! do at once.

use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::{Duration, Instant};
use std::{io, process, thread};
use ulocks_semarray::{Op, SemArray};

const LENGTHS: [usize; 5] = [1, 2, 8, 64, 256];
const ROUNDS: usize = 41;
/// Operations of a block.
const BLOCK: usize = 16_000;

const LOCK: u32 = 1;
const ONE: u32 = 2;

/// A semaphore of the floors.
#[repr(align(128))]
#[derive(Default)]
struct Cell {
    word: AtomicU32,
    /// Its leader, or its lock.
    other: AtomicU32,
    /// Two values in one word.
    pair: AtomicU64,
}

/// The word of the array that sets announce themselves in.
#[repr(align(128))]
#[derive(Default)]
struct Mode(AtomicU32);

struct Floors {
    cells: Vec<Cell>,
    mode: Mode,
    waiting: Mode,
}

/// A change of one value by `change`, if there is enough.
fn changed(word: u32, change: u32) -> Option<u32> {
    let next = word.wrapping_add(change);
    (word & LOCK == 0 && next < u32::MAX / 2).then_some(next)
}

impl Floors {
    /// A compare-exchange for each: not a set, since others see it half done.
    fn one_by_one(&self, change: u32, len: usize) -> bool {
        self.cells[..len].iter().all(|cell| {
            let word = cell.word.load(Relaxed);
            changed(word, change)
                .is_some_and(|next| cell.word.compare_exchange(word, next, AcqRel, Relaxed).is_ok())
        })
    }

    /// Two neighbours in one word, so that threads on neighbours meet.
    fn by_pairs(&self, change: u32, len: usize) -> bool {
        let both = i64::from(change as i32) * (1 + (1 << 32));
        self.cells[..len.div_ceil(2)].iter().all(|cell| {
            let word = cell.pair.load(Relaxed);
            let next = word.wrapping_add(both as u64);
            changed(word as u32, change).is_some()
                && cell.pair.compare_exchange(word, next, AcqRel, Relaxed).is_ok()
        })
    }

    /// Two-phase locking: a compare-exchange that locks, and a store, for each; a fence.
    fn locked(&self, change: u32, len: usize) -> bool {
        let done = self.cells[..len].iter().all(|cell| {
            let word = cell.word.load(Relaxed);
            changed(word, change)
                .is_some_and(|next| cell.word.compare_exchange(word, next | LOCK, Acquire, Relaxed).is_ok())
        });
        for cell in &self.cells[..len] {
            cell.word.store(cell.word.load(Relaxed) & !LOCK, Release);
        }
        fence(SeqCst);
        done && self.waiting.0.load(Relaxed) == 0
    }

    /// A set under the kernel's mode word: an exchange, which is a full fence; a look at each lock;
    /// stores.
    fn in_a_mode(&self, change: u32, len: usize) -> bool {
        if self.mode.0.compare_exchange(0, 1, SeqCst, Relaxed).is_err() {
            return false;
        }
        let done = self.cells[..len].iter().all(|cell| {
            let next = changed(cell.word.load(Relaxed), change);
            cell.other.load(Acquire) == 0 && next.inspect(|next| cell.word.store(*next, Relaxed)).is_some()
        });
        self.mode.0.store(0, Release);
        fence(SeqCst);
        done && self.waiting.0.load(Relaxed) == 0
    }

    /// A single operation beside such sets: a lock of the semaphore, a look at the mode, stores.
    fn beside_a_mode(&self, change: u32, len: usize) -> bool {
        self.cells[..len].iter().all(|cell| {
            if cell.other.compare_exchange(0, 1, SeqCst, Relaxed).is_err() || self.mode.0.load(Relaxed) != 0 {
                return false;
            }
            let next = changed(cell.word.load(Relaxed), change);
            next.into_iter().for_each(|next| cell.word.store(next, Relaxed));
            cell.other.store(0, Release);
            next.is_some() && self.waiting.0.load(Relaxed) == 0
        })
    }

    /// The others stay locked for the first: a compare-exchange, and for each a look at its leader
    /// and a store; a fence.
    fn led(&self, change: u32, len: usize) -> bool {
        let Some((first, others)) = self.cells[..len].split_first() else { return false };
        let word = first.word.load(Relaxed);
        let Some(next) = changed(word, change) else { return false };
        if first.word.compare_exchange(word, next | LOCK, Acquire, Relaxed).is_err() {
            return false;
        }
        let done = others.iter().all(|cell| {
            let next = changed(cell.word.load(Relaxed), change);
            cell.other.load(Relaxed) == 0 && next.inspect(|next| cell.word.store(*next, Relaxed)).is_some()
        });
        first.word.store(next, Release);
        fence(SeqCst);
        done && self.waiting.0.load(Relaxed) == 0
    }

    fn new() -> Self {
        let cells: Vec<Cell> = (0..256).map(|_| Cell::default()).collect();
        cells.iter().for_each(|cell| {
            cell.word.store(ONE, Relaxed);
            cell.pair.store(u64::from(ONE) << 32 | u64::from(ONE), Relaxed);
        });
        Self { cells, mode: Mode::default(), waiting: Mode::default() }
    }
}

/// The kernel's array, removed when it is dropped.
struct Kernel(libc::c_int);

impl Kernel {
    fn new() -> Self {
        // SAFETY: no pointers are involved.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 256, 0o600) };
        assert!(id >= 0, "semget: {}", io::Error::last_os_error());
        let kernel = Self(id);
        assert!(kernel.apply(&kernel_ops(256, 1)), "a new semaphore is zero");
        kernel
    }

    fn apply(&self, ops: &[libc::sembuf]) -> bool {
        // SAFETY: `semop` only reads the operations, as many as there are.
        unsafe { libc::semop(self.0, ops.as_ptr().cast_mut(), ops.len()) == 0 }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: no pointers are involved.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

fn kernel_ops(len: usize, change: i16) -> Vec<libc::sembuf> {
    (0..len).map(|index| libc::sembuf { sem_num: index as u16, sem_op: change, sem_flg: 0 }).collect()
}

/// The time of a set and its opposite.
fn timed(len: usize, mut pair: impl FnMut() -> bool) -> f64 {
    let pairs = (BLOCK / 2 / len).max(1);
    let start = Instant::now();
    for _ in 0..pairs {
        if !pair() {
            eprintln!("a set that nobody stands in the way of was refused");
            process::exit(1);
        }
    }
    start.elapsed().as_nanos() as f64 / pairs as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ops(range: Range<usize>, op: fn(usize, u32) -> Op) -> Vec<Op> {
    range.map(|index| op(index, 1)).collect()
}

/// The time of a single operation on a semaphore that follows another, and on one that does not.
fn parting() -> [f64; 2] {
    let array = SemArray::with_values([1; 64]);
    let sets = [ops(0..64, Op::sub), ops(0..64, Op::add)];
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        for set in sets.iter().cycle().take(200) {
            array.apply(set).expect("nobody is in the way");
        }
        for (times, op) in times.iter_mut().zip([Op::sub, Op::add]) {
            let start = Instant::now();
            for index in 1..64 {
                array.apply(black_box(&[op(index, 1)])).expect("nobody is in the way");
            }
            times.push(start.elapsed().as_nanos() as f64 / 63.0);
        }
    }
    times.map(median)
}

/// How many pairs a second, in millions, each of two threads does, of these sets and their
/// opposites.
fn two_threads(ranges: [Range<usize>; 2]) -> [f64; 2] {
    let array = SemArray::with_values([2; 128]);
    let trial = || {
        let ends = AtomicU32::new(0);
        let worker = |range: Range<usize>| {
            let [take, give] = [ops(range.clone(), Op::sub), ops(range, Op::add)];
            let (start, mut pairs) = (Instant::now(), 0_u32);
            while ends.load(Relaxed) == 0 {
                array.apply(&take).expect("two are enough for two threads");
                array.apply(&give).expect("two is not the limit");
                pairs += 1;
                if start.elapsed() > Duration::from_millis(50) {
                    ends.store(1, Relaxed);
                }
            }
            f64::from(pairs) / start.elapsed().as_secs_f64() / 1e6
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| worker(ranges[1].clone()));
            [worker(ranges[0].clone()), other.join().expect("a worker does not panic")]
        })
    };
    let trials: Vec<[f64; 2]> = (0..11).map(|_| trial()).collect();
    [0, 1].map(|nth| median(trials.iter().map(|trial| trial[nth]).collect()))
}

fn main() {
    type Way = fn(&Floors, u32, usize) -> bool;
    let ways: [(&str, Way); 6] = [
        ("compare-exchanges one by one", Floors::one_by_one),
        ("compare-exchanges of pairs", Floors::by_pairs),
        ("locked, then stored, fence", Floors::locked),
        ("singles beside a mode", Floors::beside_a_mode),
        ("in a mode: exchange, stores, fence", Floors::in_a_mode),
        ("led: compare-exchange, stores, fence", Floors::led),
    ];
    let names = ways.iter().map(|way| way.0).chain(["SemArray", "semop"]).collect::<Vec<_>>();
    let floors: Vec<Floors> = ways.iter().map(|_| Floors::new()).collect();
    let (kernel, array) = (Kernel::new(), SemArray::with_values([1; 256]));
    println!("{:38}{}", "ns a pair; by semop's", LENGTHS.map(|len| format!("{len:>16}")).concat());
    let mut rows = vec![String::new(); names.len()];
    for len in LENGTHS {
        let [sub, add] = [-1, 1].map(|change| kernel_ops(len, change));
        let [take, give] = [ops(0..len, Op::sub), ops(0..len, Op::add)];
        let mut times = vec![Vec::new(); names.len()];
        for _ in 0..ROUNDS {
            for (nth, ((_, way), floors)) in ways.iter().zip(&floors).enumerate() {
                let floors = black_box(floors);
                let pair = || way(floors, ONE.wrapping_neg(), len) && way(floors, ONE, len);
                times[nth].push(timed(len, pair));
            }
            let nth = ways.len();
            let array = black_box(&array);
            times[nth].push(timed(len, || {
                array.apply(black_box(&take)).is_ok() && array.apply(black_box(&give)).is_ok()
            }));
            times[nth + 1].push(timed(len, || kernel.apply(&sub) && kernel.apply(&add)));
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        for (row, median) in rows.iter_mut().zip(&medians) {
            *row += &format!("{median:>9.1}  {:.3}", median / medians[names.len() - 1]);
        }
    }
    names.iter().zip(rows).for_each(|(name, row)| println!("{name:38}{row}"));
    let [follower, other] = parting();
    println!("ns of a single operation on a follower {follower:.1}, on another semaphore {other:.1}");
    println!("two threads, M pairs/s each:");
    for (what, ranges) in [
        ("sets of 64 of one range", [0..64, 0..64]),
        ("sets of 64 of two ranges", [0..64, 64..128]),
        ("sets of 64 of ranges that overlap", [0..64, 32..96]),
        ("sets of 64; single operations on one of these", [0..64, 9..10]),
        ("sets of 64; single operations on another", [0..64, 99..100]),
        ("sets of 8 of one range", [0..8, 0..8]),
        ("sets of 2 of one range", [0..2, 0..2]),
    ] {
        let [one, other] = two_threads(ranges);
        println!("{what:50}{one:>8.3}{other:>8.3}");
    }
}
