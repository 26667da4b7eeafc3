//! Clients of the groups: each is the body of one execution of a model.

use core::time::Duration;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, spin_until};
use ulocks_core::time::Deadline;
use ulocks_semarray::groups::{BERTHS, Berth, PER_SLOT, Slept, Wakes, claimed};
use ulocks_testkit::thread::{Arc, spawn};

/// Berths that are somebody's alone. In a model there is one CPU.
const OWN: usize = (PER_SLOT - 1) * BERTHS as usize;

const WAITING: u32 = 0;
const TOLD: u32 = 1;
const LEFT: u32 = 2;

/// What a sleeper is told, and by which word.
struct Node {
    status: AtomicU32,
    letter: UnsafeCell<u32>,
    berth: UnsafeCell<Option<Berth>>,
    /// Whether the berth is there.
    ready: AtomicU32,
}

// SAFETY: the letter is written before the status and read after it, the berth before and after
// `ready`; that nothing else happens is what the clients test.
unsafe impl Sync for Node {}
// SAFETY: as above.
unsafe impl Send for Node {}

impl Node {
    fn new() -> Self {
        Self {
            status: AtomicU32::new(WAITING),
            letter: UnsafeCell::new(0),
            berth: UnsafeCell::new(None),
            ready: AtomicU32::new(0),
        }
    }

    /// Tells it, if it has not left. What the array's locks decide is decided by an exchange here.
    fn tell(&self, berth: Berth, wakes: &mut Wakes) -> bool {
        // SAFETY: the sleeper reads it when it was told.
        self.letter.with_mut(|letter| unsafe { *letter = 7 });
        let told = self.status.compare_exchange(WAITING, TOLD, Release, Relaxed).is_ok();
        if told {
            wakes.add(berth);
        }
        told
    }

    fn is_told(&self) -> bool {
        self.status.load(Acquire) == TOLD
    }

    fn read(&self) {
        // SAFETY: it was told, and nobody writes after that.
        assert_eq!(self.letter.with(|letter| unsafe { *letter }), 7);
    }

    fn post(&self, berth: Berth) {
        // SAFETY: nobody reads before `ready`.
        self.berth.with_mut(|place| unsafe { *place = Some(berth) });
        self.ready.store(1, Release);
    }

    fn posted(&self) -> Berth {
        spin_until(|| self.ready.load(Acquire) == 1);
        // SAFETY: it is there, and not written again.
        self.berth.with(|place| unsafe { *place }).expect("it was posted")
    }
}

/// Sleepers in berths that are given, each told once, all in one list. `before` berths are taken by
/// others, so that groups and bits are of all kinds. Returns how many calls it took.
fn tell_all(sleepers: usize, before: usize) -> u32 {
    let others: Vec<_> = (0..before).map(|_| Berth::claim()).collect();
    let nodes: Vec<_> = (0..sleepers).map(|_| (Arc::new(Node::new()), Berth::claim())).collect();
    let asleep: Vec<_> = nodes
        .iter()
        .map(|(node, berth)| {
            let (node, berth) = (Arc::clone(node), *berth);
            spawn(move || {
                assert_eq!(berth.sleep(|| node.is_told(), None, false), Slept::Told);
                node.read();
            })
        })
        .collect();
    let mut wakes = Wakes::new();
    for (node, berth) in &nodes {
        assert!(node.tell(*berth, &mut wakes));
    }
    wakes.flush();
    asleep.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    others.into_iter().for_each(Berth::give_up);
    assert_eq!(claimed(), 0, "a berth was not given back");
    wakes.made()
}

/// Sleepers who have the first group, and what is beside it, to themselves.
pub fn a_group_is_woken_by_one_call(sleepers: usize) {
    assert_eq!(tell_all(sleepers, 0), (sleepers as u32).div_ceil(BERTHS));
}

/// One sleeper in each group of the CPU: more groups than the list has room for.
pub fn a_full_list_forgets_nobody() {
    let sleepers: Vec<_> = (0..PER_SLOT)
        .map(|_| {
            let berth = Berth::claim();
            // The rest of its group is taken.
            for _ in 1..BERTHS {
                let _ = Berth::claim();
            }
            let node = Arc::new(Node::new());
            let asleep = Arc::clone(&node);
            let thread = spawn(move || {
                assert_eq!(berth.sleep(|| asleep.is_told(), None, false), Slept::Told);
            });
            (node, berth, thread)
        })
        .collect();
    let mut wakes = Wakes::new();
    for (node, berth, _) in &sleepers {
        assert!(node.tell(*berth, &mut wakes));
    }
    drop(wakes);
    for (_, _, thread) in sleepers {
        thread.join().unwrap();
    }
}

/// All berths of the CPU are taken: these share a bit, and are told one after the other.
pub fn who_shares_a_bit_is_woken_too(sleepers: usize) {
    let others: Vec<_> = (0..OWN).map(|_| Berth::claim()).collect();
    let nodes: Vec<_> = (0..sleepers)
        .map(|_| {
            let berth = Berth::claim();
            for _ in 1..BERTHS {
                let _ = Berth::claim(); // as far as the same bit
            }
            (Arc::new(Node::new()), berth)
        })
        .collect();
    assert!(nodes.iter().all(|(_, berth)| *berth == nodes[0].1), "they do not share a bit");
    let asleep: Vec<_> = nodes
        .iter()
        .map(|(node, berth)| {
            let (node, berth) = (Arc::clone(node), *berth);
            spawn(move || {
                assert_eq!(berth.sleep(|| node.is_told(), None, false), Slept::Told);
            })
        })
        .collect();
    for (node, berth) in nodes.iter().rev() {
        assert!(node.tell(*berth, &mut Wakes::new()));
    }
    asleep.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    others.into_iter().for_each(Berth::give_up);
    assert_eq!(claimed(), 0, "a common berth was given back");
}

/// One berth is left. Who has it is told, while another comes for a berth and sleeps there, and is
/// told next: it has the same berth, or a common one.
pub fn a_berth_changes_hands() {
    let others: Vec<_> = (1..OWN).map(|_| Berth::claim()).collect();
    let berth = Berth::claim();
    let (first, second) = (Arc::new(Node::new()), Arc::new(Node::new()));
    let early = {
        let first = Arc::clone(&first);
        spawn(move || {
            assert_eq!(berth.sleep(|| first.is_told(), None, false), Slept::Told);
        })
    };
    let late = {
        let second = Arc::clone(&second);
        spawn(move || {
            let berth = Berth::claim();
            second.post(berth);
            assert_eq!(berth.sleep(|| second.is_told(), None, false), Slept::Told);
        })
    };
    assert!(first.tell(berth, &mut Wakes::new()));
    assert!(second.tell(second.posted(), &mut Wakes::new()));
    early.join().unwrap();
    late.join().unwrap();
    others.into_iter().for_each(Berth::give_up);
    assert_eq!(claimed(), 0, "a berth was not given back");
}

/// Two are told together. One of them is awake already, comes back for a berth, and sleeps there
/// while the call for the two is made; the other one has to wake up before that one is told again.
pub fn who_is_woken_for_another_passes_it_on() {
    let (first, other, again) = (Arc::new(Node::new()), Arc::new(Node::new()), Arc::new(Node::new()));
    let (first_berth, other_berth) = (Berth::claim(), Berth::claim());
    let twice = {
        let (first, again) = (Arc::clone(&first), Arc::clone(&again));
        spawn(move || {
            assert_eq!(first_berth.sleep(|| first.is_told(), None, false), Slept::Told);
            let berth = Berth::claim();
            again.post(berth);
            assert_eq!(berth.sleep(|| again.is_told(), None, false), Slept::Told);
        })
    };
    let once = {
        let other = Arc::clone(&other);
        spawn(move || {
            assert_eq!(other_berth.sleep(|| other.is_told(), None, false), Slept::Told);
        })
    };
    let mut wakes = Wakes::new();
    assert!(first.tell(first_berth, &mut wakes) && other.tell(other_berth, &mut wakes));
    wakes.flush();
    once.join().unwrap();
    assert!(again.tell(again.posted(), &mut wakes));
    wakes.flush();
    twice.join().unwrap();
    assert_eq!(claimed(), 0, "a berth was not given back");
}

/// Sleepers that may leave, with a deadline or when a signal comes, and a patient one, the first,
/// beside them; all are told unless they have left, after whatever is done to them `before`.
pub fn who_leaves_gives_the_berth_back(leavers: usize, timed: bool, before: impl FnOnce()) {
    let nodes: Vec<_> = (0..=leavers).map(|_| (Arc::new(Node::new()), Berth::claim())).collect();
    let asleep: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(nth, (node, berth))| {
            let (node, berth, leaves) = (Arc::clone(node), *berth, nth > 0);
            spawn(move || {
                let deadline = (leaves && timed).then(|| Deadline::after(Duration::from_millis(1)));
                let slept = berth.sleep(|| node.is_told(), deadline, leaves && !timed);
                if slept != Slept::Told {
                    assert_eq!(slept, if timed { Slept::TimedOut } else { Slept::Interrupted });
                    assert!(leaves, "a patient sleeper left");
                    if node.status.compare_exchange(WAITING, LEFT, Acquire, Acquire).is_ok() {
                        berth.give_up();
                        return false;
                    }
                    assert_eq!(berth.sleep(|| node.is_told(), None, false), Slept::Told);
                }
                node.read();
                true
            })
        })
        .collect();
    before();
    let mut wakes = Wakes::new();
    let told: Vec<_> = nodes.iter().map(|(node, berth)| node.tell(*berth, &mut wakes)).collect();
    drop(wakes);
    let stayed: Vec<_> = asleep.into_iter().map(|sleeper| sleeper.join().unwrap()).collect();
    assert_eq!(told, stayed);
    assert_eq!(claimed(), 0, "a berth was given back by nobody, or by two");
}
