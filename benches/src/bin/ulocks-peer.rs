//! `ulocks-shm` on the programs of `benches/peers`; `cargo xtask peers` runs it beside the others.

#[path = "../../peers/src/measure.rs"]
mod measure;

use measure::{MESSAGES, PAIRS, PLACES, ROOM, TRIPS, beside, die, tell, time};
use std::hint::black_box;
use std::time::Duration;
use ulocks_shm::{Condvar, LockError, Member, Mutex, Queue, Region, RegionError, SharedSafe};

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    pair: Mutex<u64>,
    /// Whose turn it is: the parity is the process.
    turn: Mutex<u64>,
    turned: Condvar,
    messages: Queue<[u64; 8], ROOM>,
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
    let sends = |me: &Member<'_>| {
        (0..MESSAGES).for_each(|nth| root.messages.push(me, [u64::from(nth); 8]).expect("an open queue"));
    };
    let receives = |me: &Member<'_>| {
        let all = || (0..MESSAGES).for_each(|nth| assert_eq!(root.messages.pop(me), Ok([u64::from(nth); 8])));
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
