//! Children use a queue and a map, and are killed: at random, and after each instruction.

use crate::joined::joined;
use crate::traced::{step, stops, wait};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use ulocks_core::sync::{AtomicU8, AtomicU32, AtomicU64};
use ulocks_shm::{HashMap, Member, PopError, Queue, Region, SharedSafe};
use ulocks_testkit::Child;
use ulocks_testkit::watchdog::watch;

const LANES: usize = 3;
/// So many messages of each lane: more than a long test needs. Unused pages take no room.
const MOST: usize = 1 << 24;
const KEYS: u64 = 24;

const PUSHED: u8 = 1;
const POPPED: u8 = 2;

/// A lane, a number, and six words that follow from them.
type Message = [u64; 8];

fn message(lane: usize, number: usize) -> Message {
    let first = (lane as u64) << 32 | number as u64;
    std::array::from_fn(|word| first.wrapping_mul(word as u64 + 1))
}

/// A number, four times.
type Value = [u64; 4];

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    queue: Queue<Message, 16>,
    map: HashMap<u64, Value, 32>,
    /// What is known of each message.
    states: [[AtomicU8; MOST]; LANES],
    /// The next message of each lane.
    next: [AtomicU32; LANES],
    /// The number that each key has at least.
    noted: [AtomicU64; KEYS as usize],
    /// The most messages that each child may have popped, and not noted.
    in_hands: [AtomicU32; 2 * LANES],
    used: AtomicU32,
    violations: AtomicU32,
}

impl Root {
    fn demand(&self, holds: bool) {
        if !holds {
            self.violations.fetch_add(1, Relaxed);
        }
    }

    fn pushes(&self, me: &Member<'_>, lane: usize) {
        let number = self.next[lane].fetch_add(1, Relaxed) as usize;
        if number >= MOST {
            return;
        }
        self.queue.push(me, message(lane, number)).expect("an open queue");
        self.states[lane][number].fetch_or(PUSHED, Relaxed);
    }

    /// `last` has the number of the next message that may come of each lane.
    fn has_popped(&self, popped: Message, last: &mut [usize; LANES]) {
        let (lane, number) = ((popped[0] >> 32) as usize, popped[0] as u32 as usize);
        let whole = lane < LANES && number < MOST && popped == message(lane, number);
        self.demand(whole && self.states[lane][number].fetch_or(POPPED, Relaxed) & POPPED == 0);
        if whole {
            self.demand(number >= std::mem::replace(&mut last[lane], number + 1));
        }
    }

    /// The keys of a lane: a thread of it that was killed may have counted, and not noted that.
    fn begins(&self, me: &Member<'_>, lane: usize) {
        for key in (lane..KEYS as usize).step_by(LANES) {
            let value = self.map.get(me, &(key as u64)).expect("a whole map").unwrap_or_default();
            let noted = self.noted[key].swap(value[0], Relaxed);
            self.demand(value == [value[0]; 4] && (0..2).contains(&value[0].wrapping_sub(noted)));
        }
    }

    /// A key of its own is counted up; another one comes and goes.
    fn changes(&self, me: &Member<'_>, lane: usize, round: u64) {
        let key = round % (KEYS / LANES as u64) * LANES as u64 + lane as u64;
        let noted = &self.noted[key as usize];
        let old = self.map.update(me, key, |old| Some([old.map_or(1, |old| old[0] + 1); 4])).expect("room");
        let old = old.unwrap_or_default();
        self.demand(old == [noted.load(Relaxed); 4]);
        noted.store(old[0] + 1, Relaxed);
        if round.is_multiple_of(2) {
            let there = self.map.remove(me, &(100 + lane as u64)).expect("a whole map");
            self.demand(there.is_none_or(|there| there == [7; 4]));
        } else {
            self.map.insert(me, 100 + lane as u64, [7; 4]).expect("room");
        }
    }

    fn looks(&self, me: &Member<'_>, round: u64) {
        let key = round % KEYS;
        let noted = self.noted[key as usize].load(Relaxed);
        let value = self.map.get(me, &key).expect("a whole map").unwrap_or_default();
        self.demand(value == [value[0]; 4] && value[0] >= noted);
    }
}

/// 200 children are killed, or as many as `ULOCKS_KILLS` says.
#[test]
fn kills_at_random_lose_no_message_and_no_change() {
    let kills =
        std::env::var("ULOCKS_KILLS").map_or(200, |text| text.parse().expect("ULOCKS_KILLS: a number"));
    let region = Region::<Root>::options().participants(16).anonymous().expect("a region");
    let root: &Root = &region;
    let _watch = watch("kills at random", || "a child sleeps for ever".into());
    let spawn = |which: usize| {
        Child::runs(|| {
            let me = joined(&region);
            let mut last = [0; LANES];
            if which < LANES {
                root.begins(&me, which);
            }
            for round in 0.. {
                if which < LANES {
                    root.pushes(&me, which);
                    root.changes(&me, which, round);
                } else if round % 8 == 7 {
                    let mut taken = [[0; 8]; 4];
                    root.in_hands[which].store(4, Relaxed);
                    let number = root.queue.pop_slice(&me, &mut taken).expect("an open queue");
                    taken[..number].iter().for_each(|&message| root.has_popped(message, &mut last));
                    root.in_hands[which].store(0, Relaxed);
                } else {
                    root.in_hands[which].store(1, Relaxed);
                    root.has_popped(root.queue.pop(&me).expect("an open queue"), &mut last);
                    root.in_hands[which].store(0, Relaxed);
                    root.looks(&me, round);
                }
                root.used.fetch_add(1, Relaxed);
            }
        })
    };
    let mut children: Vec<_> = (0..2 * LANES).map(|which| Some(spawn(which))).collect();
    // What a thread that is killed may take with it.
    let mut most = 0;
    let mut killed = |which: usize, child: Child| {
        child.killed();
        most += root.in_hands[which].swap(0, Relaxed) as usize;
    };
    for kill in 0..kills {
        let used = root.used.load(Relaxed);
        std::thread::sleep(Duration::from_micros(kill as u64 * 7919 % 1_500));
        let which = kill % children.len();
        killed(which, children[which].take().expect("it was not waited for"));
        children[which] = Some(spawn(which));
        // From time to time, until the others have gone on: nothing is stuck.
        while kill % 16 == 0 && root.used.load(Relaxed) == used {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    children.into_iter().flatten().enumerate().for_each(|(which, child)| killed(which, child));
    let me = joined(&region);
    let mut last = [0; LANES];
    while let Ok(message) = root.queue.try_pop(&me) {
        root.has_popped(message, &mut last);
    }
    assert_eq!(
        root.violations.load(Relaxed),
        0,
        "a message is torn, came twice or late, or a value is wrong"
    );
    let ends = [0, 1, 2].map(|lane: usize| root.next[lane].load(Relaxed) as usize);
    assert!(ends.iter().all(|&end| end <= MOST), "a lane has run out of numbers");
    let states =
        || (0..LANES).flat_map(|lane| &root.states[lane][..ends[lane]]).map(|state| state.load(Relaxed));
    let lost = states().filter(|&state| state == PUSHED).count();
    assert!(
        lost <= most,
        "{lost} messages are lost, and {most} at most were popped by a thread that was killed"
    );
    (0..KEYS).for_each(|round| root.looks(&me, round));
    let mut keys = Vec::new();
    root.map.for_each(&me, |key, _| keys.push(key)).expect("a whole map");
    assert_eq!(keys.len(), root.map.len());
    assert!(keys.iter().all(|key| root.map.contains_key(&me, key).expect("a whole map")));
    for key in 0..root.map.capacity() - keys.len() {
        assert_eq!(root.map.insert(&me, 1000 + key as u64, [0; 4]), Ok(None), "room is lost");
    }
    let popped = states().filter(|&state| state & POPPED != 0).count();
    println!(
        "{kills} kills, {popped} messages, {lost} of them lost with a thread that had popped them, of {most}"
    );
}

/// What the child that is stepped through uses.
#[derive(SharedSafe)]
#[repr(C)]
struct Small {
    queue: Queue<Message, 2>,
    map: HashMap<u64, Message, 4>,
}

impl Small {
    fn begins(&self, me: &Member<'_>) {
        self.queue.push(me, message(0, 0)).expect("room");
        (0..2).for_each(|key| _ = self.map.insert(me, key, message(0, key as usize)).expect("room"));
    }

    /// Five changes, one after the other.
    fn changes(&self, me: &Member<'_>, number: usize) {
        let all: [&dyn Fn(); 5] = [
            &|| self.queue.push(me, message(1, 1)).expect("a place"),
            &|| _ = self.map.insert(me, 0, message(1, 2)).expect("room"),
            &|| _ = self.map.remove(me, &1).expect("a whole map"),
            &|| _ = self.queue.pop(me).expect("a message"),
            &|| _ = self.map.insert(me, 3, message(1, 3)).expect("room"),
        ];
        all[..number].iter().for_each(|change| change());
    }

    /// All that is there.
    fn contents(&self, me: &Member<'_>) -> (Vec<Message>, Vec<(u64, Message)>) {
        let mut map = Vec::new();
        self.map.for_each(me, |key, value| map.push((key, value))).expect("a whole map");
        map.sort_unstable();
        for key in 0..4 {
            let value = map.iter().find(|&&(other, _)| other == key).map(|&(_, value)| value);
            assert_eq!(self.map.get(me, &key), Ok(value), "what is found is not what is there");
        }
        let mut queue = Vec::new();
        let end = loop {
            match self.queue.try_pop(me) {
                Ok(message) => queue.push(message),
                Err(end) => break end,
            }
        };
        assert_eq!(end, PopError::Empty);
        (queue, map)
    }
}

/// `ULOCKS_STEPS=1` kills at each instruction, otherwise at one of many.
#[test]
fn a_death_at_any_instruction_leaves_a_queue_and_a_map_whole() {
    let stride =
        std::env::var("ULOCKS_STEPS").map_or(499, |text| text.parse().expect("ULOCKS_STEPS: a number"));
    let new = || {
        let region = Region::<Small>::options().participants(4).anonymous().expect("a region");
        let me = joined(&region);
        region.begins(&me);
        drop(me);
        region
    };
    let after = |changes| {
        let region = new();
        let me = joined(&region);
        region.changes(&me, changes);
        region.contents(&me)
    };
    let states: Vec<_> = (0..=5).map(after).collect();
    let _watch = watch("a death at an instruction", || "a thread sleeps for ever".into());
    let (mut points, mut seen) = (0, [0; 6]);
    for instruction in (0..).step_by(stride) {
        let region = new();
        let child = Child::runs(|| {
            let me = joined(&region);
            stops();
            region.changes(&me, 5);
            Child::exits();
        });
        let child = child.id();
        wait(child);
        let lives = step(child, instruction);
        if lives {
            // SAFETY: our child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            wait(child);
        }
        let me = joined(&region);
        let left = region.contents(&me);
        let which = states.iter().position(|state| *state == left);
        seen[which.unwrap_or_else(|| panic!("after {instruction} instructions: {left:?}"))] += 1;
        if !lives {
            break;
        }
        points += 1;
    }
    println!("killed at {points} instructions; left after each change: {seen:?}");
    assert!(points * stride > 500, "{points} steps of {stride} instructions are too few");
}
