//! Messages of 64 bytes from producers to consumers, in processes that are killed at random and
//! replaced. No message is lost but those that a killed consumer had in its hands.
//!
//! # Which type, and why
//! [`Queue`]: a message is in it whole or not at all, whichever process is killed, and each is
//! popped once. A thread that waits sleeps, and is woken by the one that brings what it waits for.
//!
//! # What would go wrong with another
//! A pipe or a socket has the same order, but each message is two system calls. A ring of atomics
//! without a lock is faster still. But a producer that is killed between taking its place and
//! filling it stops all consumers there.

#![forbid(unsafe_code)]

use std::error::Error;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{array, env, fs, io, thread};
use ulocks_shm::{Member, PopError, Queue, Region, SharedSafe};

const PRODUCERS: usize = 2;
const CONSUMERS: usize = 2;
const KILLS: usize = 24;

/// What is in the file. All zero at first.
#[derive(SharedSafe)]
#[repr(C)]
struct Ring {
    queue: Queue<Message, 256>,
    /// How many messages each producer has pushed, or is about to push.
    begun: [AtomicU64; PRODUCERS],
    popped: AtomicU64,
    wrong: AtomicU32,
    ending: AtomicU32,
}

#[derive(SharedSafe, Clone, Copy, PartialEq)]
#[repr(C)]
struct Message([u64; 8]);

impl Message {
    fn new(producer: usize, number: u64) -> Self {
        Self(array::from_fn(|word| (producer as u64) << 48 ^ number.wrapping_mul(word as u64 + 1)))
    }

    fn is_whole(&self) -> bool {
        let producer = (self.0[0] >> 48) as usize;
        *self == Self::new(producer, self.0[0] & ((1 << 48) - 1))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().collect::<Vec<_>>().as_slice() {
        [_] => {
            let path = env::temp_dir().join(format!("ulocks-ring-{}", std::process::id()));
            let path = path.to_str().ok_or("the temporary directory has no plain name")?;
            let result = kills(path);
            fs::remove_file(path)?;
            result
        }
        [_, role, path] => {
            let ring = Region::<Ring>::options().open(path)?;
            let role: usize = role.parse()?;
            ring.with_member(
                |me| if role < PRODUCERS { produces(&ring, me, role) } else { consumes(&ring, me) },
            )?
        }
        _ => Err("usage: ring".into()),
    }
}

fn produces(ring: &Ring, me: &Member<'_>, producer: usize) -> Result<(), Box<dyn Error>> {
    while ring.ending.load(Relaxed) == 0 {
        let number = ring.begun[producer].fetch_add(1, Relaxed);
        ring.queue.push(me, Message::new(producer, number))?;
    }
    Ok(())
}

fn consumes(ring: &Ring, me: &Member<'_>) -> Result<(), Box<dyn Error>> {
    loop {
        match ring.queue.pop(me) {
            Ok(message) => takes(ring, message),
            Err(PopError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn takes(ring: &Ring, message: Message) {
    ring.popped.fetch_add(1, Relaxed);
    ring.wrong.fetch_add(u32::from(!message.is_whole()), Relaxed);
}

/// Starts the processes, kills one after the other, and counts.
fn kills(path: &str) -> Result<(), Box<dyn Error>> {
    let ring = Region::<Ring>::options().create_or_open(path, 0o600)?;
    let start = |role: usize| Command::new(env::current_exe()?).args([&role.to_string(), path]).spawn();
    let begin = Instant::now();
    let mut processes: Vec<Child> = (0..PRODUCERS + CONSUMERS).map(start).collect::<io::Result<_>>()?;
    for kill in 0..KILLS {
        thread::sleep(Duration::from_millis(17));
        let role = kill % processes.len();
        processes[role].kill()?;
        processes[role].wait()?;
        processes[role] = start(role)?;
    }
    // The producers end, and then the consumers, when the queue is empty.
    ring.ending.store(1, Relaxed);
    for (role, mut process) in processes.into_iter().enumerate() {
        if role == PRODUCERS {
            ring.with_member(|me| ring.queue.close(me))??;
        }
        assert!(process.wait()?.success(), "a process failed");
    }
    let begun: u64 = ring.begun.iter().map(|begun| begun.load(Relaxed)).sum();
    let popped = ring.popped.load(Relaxed);
    let rate = popped as f64 / begin.elapsed().as_secs_f64() / 1e6;
    println!("{popped} messages, {rate:.1} million in a second; {KILLS} processes were killed.");
    assert_eq!((ring.wrong.load(Relaxed), ring.queue.len()), (0, 0), "a message was torn, or is left");
    // At most one for each: the message in its hands.
    assert!(popped <= begun && begun - popped <= KILLS as u64, "{begun} were begun: messages were lost");
    println!("{} of them had a message in their hands; no other was lost.", begun - popped);
    Ok(())
}
