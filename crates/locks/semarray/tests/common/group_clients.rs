//! Clients of the groups: each is the body of one execution of a model.

use core::time::Duration;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, spin_until};
use ulocks_core::time::Deadline;
use ulocks_semarray::groups::{PER_CPU, SEATS, Seat, Slept, Wakes, claimed};
use ulocks_testkit::thread::{Arc, JoinHandle, spawn, with};

/// Seats that have one owner each. In a model there is one CPU.
const OWN: usize = (PER_CPU - 1) * SEATS as usize;

const WAITING: u32 = 0;
const COMPLETED: u32 = 1;
const LEFT: u32 = 2;

/// A waiter: its status, and a letter that comes with it.
struct Node {
    status: AtomicU32,
    letter: UnsafeCell<u32>,
    seat: UnsafeCell<Option<Seat>>,
    /// Whether the seat is there.
    ready: AtomicU32,
}

// SAFETY: the letter is written before the status and read after it, the seat before and after
// `ready`; that nothing else happens is what the clients test.
unsafe impl Sync for Node {}
// SAFETY: as above.
unsafe impl Send for Node {}

impl Node {
    fn new() -> Self {
        Self {
            status: AtomicU32::new(WAITING),
            letter: UnsafeCell::new(0),
            seat: UnsafeCell::new(None),
            ready: AtomicU32::new(0),
        }
    }

    /// Completes the waiter, if it has not left. What the array's locks decide is decided by an
    /// exchange here.
    fn complete(&self, seat: Seat, wakes: &mut Wakes) -> bool {
        // SAFETY: the waiter reads it after it was completed.
        self.letter.with_mut(|letter| unsafe { *letter = 7 });
        let completed = self.status.compare_exchange(WAITING, COMPLETED, Release, Relaxed).is_ok();
        if completed {
            wakes.add(seat);
        }
        completed
    }

    fn is_completed(&self) -> bool {
        self.status.load(Acquire) == COMPLETED
    }

    fn read(&self) {
        // SAFETY: the waiter was completed, and the letter is not written after that.
        assert_eq!(self.letter.with(|letter| unsafe { *letter }), 7);
    }

    /// A thread that sleeps in `seat` until it is completed, and reads its letter.
    fn sleeper(self: &Arc<Self>, seat: Seat) -> JoinHandle<()> {
        with(self, move |node| node.sleeps(seat))
    }

    fn sleeps(&self, seat: Seat) {
        assert_eq!(seat.sleep(|| self.is_completed(), None, false), Slept::Completed);
        self.read();
    }

    fn post(&self, seat: Seat) {
        // SAFETY: no thread reads before `ready`.
        self.seat.with_mut(|place| unsafe { *place = Some(seat) });
        self.ready.store(1, Release);
    }

    fn posted(&self) -> Seat {
        spin_until(|| self.ready.load(Acquire) == 1);
        // SAFETY: it is there, and not written again.
        self.seat.with(|place| unsafe { *place }).expect("it was posted")
    }
}

/// Waiters with a seat each, all completed in one list: one call a group. Only they have seats.
pub fn a_group_is_woken_by_one_call(sleepers: usize) {
    let nodes: Vec<_> = (0..sleepers).map(|_| (Arc::new(Node::new()), Seat::claim())).collect();
    let asleep: Vec<_> = nodes.iter().map(|(node, seat)| node.sleeper(*seat)).collect();
    let mut wakes = Wakes::new();
    for (node, seat) in &nodes {
        assert!(node.complete(*seat, &mut wakes));
    }
    wakes.flush();
    asleep.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    assert_eq!(claimed(), 0, "a seat was not given back");
    assert_eq!(wakes.made(), (sleepers as u32).div_ceil(SEATS));
}

/// One waiter in each group of the CPU: more groups than the list has room for.
pub fn a_full_list_forgets_no_waiter() {
    let sleepers: Vec<_> = (0..PER_CPU)
        .map(|_| {
            let seat = Seat::claim();
            // The rest of its group is taken.
            for _ in 1..SEATS {
                let _ = Seat::claim();
            }
            let node = Arc::new(Node::new());
            let thread = node.sleeper(seat);
            (node, seat, thread)
        })
        .collect();
    let mut wakes = Wakes::new();
    for (node, seat, _) in &sleepers {
        assert!(node.complete(*seat, &mut wakes));
    }
    drop(wakes);
    for (_, _, thread) in sleepers {
        thread.join().unwrap();
    }
}

/// All seats of the CPU are taken. These waiters share a bit, and are completed one after the
/// other.
pub fn waiters_that_share_a_bit_are_all_woken(sleepers: usize) {
    let others: Vec<_> = (0..OWN).map(|_| Seat::claim()).collect();
    let nodes: Vec<_> = (0..sleepers)
        .map(|_| {
            let seat = Seat::claim();
            for _ in 1..SEATS {
                let _ = Seat::claim(); // as far as the same bit
            }
            (Arc::new(Node::new()), seat)
        })
        .collect();
    assert!(nodes.iter().all(|(_, seat)| *seat == nodes[0].1), "they do not share a bit");
    let asleep: Vec<_> = nodes.iter().map(|(node, seat)| node.sleeper(*seat)).collect();
    for (node, seat) in nodes.iter().rev() {
        assert!(node.complete(*seat, &mut Wakes::new()));
    }
    asleep.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    others.into_iter().for_each(Seat::give_back);
    assert_eq!(claimed(), 0, "a common seat was given back");
}

/// One seat is left. Its owner is completed while another waiter claims a seat and sleeps there.
/// That one is completed next: it has the same seat, or a common one.
pub fn a_seat_changes_hands() {
    let others: Vec<_> = (1..OWN).map(|_| Seat::claim()).collect();
    let seat = Seat::claim();
    let (first, second) = (Arc::new(Node::new()), Arc::new(Node::new()));
    let early = first.sleeper(seat);
    let late = with(&second, |second| {
        let seat = Seat::claim();
        second.post(seat);
        second.sleeps(seat);
    });
    assert!(first.complete(seat, &mut Wakes::new()));
    assert!(second.complete(second.posted(), &mut Wakes::new()));
    early.join().unwrap();
    late.join().unwrap();
    others.into_iter().for_each(Seat::give_back);
    assert_eq!(claimed(), 0, "a seat was not given back");
}

/// Two waiters are completed together. One of them is awake already, claims a seat again, and
/// sleeps there while the call for the two is made. The other one has to wake up before the first
/// is completed again.
pub fn a_wakeup_for_another_is_passed_on() {
    let (first, other, again) = (Arc::new(Node::new()), Arc::new(Node::new()), Arc::new(Node::new()));
    let (first_seat, other_seat) = (Seat::claim(), Seat::claim());
    let twice = {
        let (first, again) = (Arc::clone(&first), Arc::clone(&again));
        spawn(move || {
            first.sleeps(first_seat);
            let seat = Seat::claim();
            again.post(seat);
            again.sleeps(seat);
        })
    };
    let once = other.sleeper(other_seat);
    let mut wakes = Wakes::new();
    assert!(first.complete(first_seat, &mut wakes) && other.complete(other_seat, &mut wakes));
    wakes.flush();
    once.join().unwrap();
    assert!(again.complete(again.posted(), &mut wakes));
    wakes.flush();
    twice.join().unwrap();
    assert_eq!(claimed(), 0, "a seat was not given back");
}

/// Waiters that may leave, by a deadline or a signal, and a patient one, the first. `before` is
/// called first. Then all are completed that have not left.
pub fn a_waiter_that_leaves_gives_its_seat_back(leavers: usize, timed: bool, before: impl FnOnce()) {
    let nodes: Vec<_> = (0..=leavers).map(|_| (Arc::new(Node::new()), Seat::claim())).collect();
    let asleep: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(nth, (node, seat))| {
            let (node, seat, leaves) = (Arc::clone(node), *seat, nth > 0);
            spawn(move || {
                let deadline = (leaves && timed).then(|| Deadline::after(Duration::from_millis(1)));
                let slept = seat.sleep(|| node.is_completed(), deadline, leaves && !timed);
                if slept != Slept::Completed {
                    assert_eq!(slept, if timed { Slept::TimedOut } else { Slept::Interrupted });
                    assert!(leaves, "a patient sleeper left");
                    if node.status.compare_exchange(WAITING, LEFT, Acquire, Acquire).is_ok() {
                        seat.give_back();
                        return false;
                    }
                    assert_eq!(seat.sleep(|| node.is_completed(), None, false), Slept::Completed);
                }
                node.read();
                true
            })
        })
        .collect();
    before();
    let mut wakes = Wakes::new();
    let completed: Vec<_> = nodes.iter().map(|(node, seat)| node.complete(*seat, &mut wakes)).collect();
    drop(wakes);
    let stayed: Vec<_> = asleep.into_iter().map(|sleeper| sleeper.join().unwrap()).collect();
    assert_eq!(completed, stayed);
    assert_eq!(claimed(), 0, "a seat was not given back, or given back twice");
}
