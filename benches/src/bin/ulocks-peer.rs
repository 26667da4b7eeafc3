//! `ulocks-shm` on the programs of `benches/peers`; `cargo xtask peers` runs it beside the others.

#[path = "../../peers/src/measure.rs"]
mod measure;

use measure::{MESSAGES, PAIRS, PLACES, ROOM, TRIPS, beside, die, tell, time};
use std::hint::black_box;
use std::time::Duration;
use ulocks_shm::{Condvar, LockError, Member, Mutex, Region, RegionError, SharedSafe};

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    pair: Mutex<u64>,
    /// Whose turn it is: the parity is the process.
    turn: Mutex<u64>,
    turned: Condvar,
    ring: Mutex<Ring>,
    filled: Condvar,
    emptied: Condvar,
}

/// Messages from `read` to `written`.
#[derive(SharedSafe)]
#[repr(C)]
struct Ring {
    read: u64,
    written: u64,
    messages: [[u64; 8]; ROOM],
}

impl Root {
    fn turns(&self, me: &Member<'_>, parity: u64) {
        for _ in 0..TRIPS {
            let mut turn = self.turn.lock(me).expect("nobody has died");
            self.turned.wait_while(&mut turn, |turn| *turn % 2 != parity).expect("nobody has died");
            *turn += 1;
            self.turned.notify_one(me);
        }
    }

    // Place for the queue: `send` and `receive` are those of `shm::Queue` once the crate has one.
    fn send(&self, me: &Member<'_>, message: [u64; 8]) {
        let mut ring = self.ring.lock(me).expect("nobody has died");
        let full = |ring: &mut Ring| ring.written - ring.read == ROOM as u64;
        self.emptied.wait_while(&mut ring, full).expect("nobody has died");
        let place = ring.written as usize % ROOM;
        ring.messages[place] = message;
        ring.written += 1;
        drop(ring);
        self.filled.notify_one(me);
    }

    fn receive(&self, me: &Member<'_>) -> [u64; 8] {
        let mut ring = self.ring.lock(me).expect("nobody has died");
        let empty = |ring: &mut Ring| ring.written == ring.read;
        self.filled.wait_while(&mut ring, empty).expect("nobody has died");
        let message = ring.messages[ring.read as usize % ROOM];
        ring.read += 1;
        drop(ring);
        self.emptied.notify_one(me);
        message
    }
}

fn main() {
    let root = Region::<Root>::options().anonymous().expect("a region");
    let with = |run: &dyn Fn(&Member<'_>)| root.with_member(run).expect("a slot");
    with(&|me| {
        let took = time(|| (0..PAIRS).for_each(|_| drop(black_box(&root.pair).lock(me))));
        tell("ours", "pair", PAIRS, took);
    });
    for (cpus, figure) in PLACES {
        let answers = || with(&|me| root.turns(me, 1));
        beside(cpus, answers, || with(&|me| tell("ours", figure, TRIPS, time(|| root.turns(me, 0)))));
    }
    let sends = |me: &Member<'_>| (0..MESSAGES).for_each(|nth| root.send(me, [u64::from(nth); 8]));
    let receives = |me: &Member<'_>| {
        let all = || (0..MESSAGES).for_each(|nth| assert_eq!(root.receive(me), [u64::from(nth); 8]));
        tell("ours", "message", MESSAGES, time(all));
    };
    beside([0, 1], || with(&sends), || with(&receives));
    let takes = |me: &Member<'_>| {
        let _guard = root.pair.lock(me);
        die()
    };
    beside([0, 1], || with(&takes), || ());
    with(&|me| match root.pair.try_lock_for(me, Duration::from_secs(1)) {
        Err(LockError::OwnerDied(_)) => println!("ours death the next one gets the mutex, and is told"),
        other => println!("ours death the next one gets {other:?}"),
    });
    if let Err(RegionError::WrongLayout { .. }) = Region::<Mutex<f64>>::options().from_fd(root.fd()) {
        println!("ours layout a region of another type is refused");
    }
}
