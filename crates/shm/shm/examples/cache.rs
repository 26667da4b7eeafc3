//! A cache that several processes share, of which some are killed. What one of them has computed is
//! there for all others.
//!
//! # Which type, and why
//! [`HashMap`]: an insertion is there whole or not at all, whichever process is killed. The index
//! is repaired by the next process that looks, and no process has to notice.
//!
//! # What would go wrong with another
//! A map in the memory of each process computes all of it once for each process. A `Mutex` around
//! a map of one's own tells of a death, but not what of the map is half done.

#![forbid(unsafe_code)]

use std::error::Error;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{env, fs, io, thread};
use ulocks_shm::{HashMap, MapError, Member, Region, SharedSafe};

const PROCESSES: usize = 3;
const KILLS: usize = 20;
/// Numbers are asked for below this. The cache has room for a part of them.
const RANGE: u64 = 3_000;

/// What is in the file. All zero at first.
#[derive(SharedSafe)]
#[repr(C)]
struct Cache {
    steps: HashMap<u64, Answer, 1_000>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// How many steps a number takes to 1 by Collatz's rule, and the greatest number on the way.
#[derive(SharedSafe, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Answer {
    steps: u64,
    greatest: u64,
}

fn computed(mut number: u64) -> Answer {
    let mut answer = Answer { steps: 0, greatest: number };
    while number > 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        answer = Answer { steps: answer.steps + 1, greatest: answer.greatest.max(number) };
    }
    answer
}

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().collect::<Vec<_>>().as_slice() {
        [_] => {
            let path = env::temp_dir().join(format!("ulocks-cache-{}", std::process::id()));
            let path = path.to_str().ok_or("the temporary directory has no plain name")?;
            let result = kills(path);
            fs::remove_file(path)?;
            result
        }
        [_, seed, path] => {
            let cache = Region::<Cache>::options().open(path)?;
            let seed = seed.parse()?;
            cache.with_member(|me| asks(&cache, me, seed))?
        }
        _ => Err("usage: cache".into()),
    }
}

/// A process that asks until it is killed.
fn asks(cache: &Cache, me: &Member<'_>, seed: u64) -> Result<(), Box<dyn Error>> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    loop {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Small numbers more often.
        let number = (random >> 8) % ((random >> 40) % RANGE + 1) + 1;
        let answer = answer(cache, me, number)?;
        assert_eq!(answer, computed(number), "the cache has a wrong answer for {number}");
    }
}

fn answer(cache: &Cache, me: &Member<'_>, number: u64) -> Result<Answer, Box<dyn Error>> {
    if let Some(answer) = cache.steps.get(me, &number)? {
        cache.hits.fetch_add(1, Relaxed);
        return Ok(answer);
    }
    cache.misses.fetch_add(1, Relaxed);
    let answer = computed(number);
    if let Err(MapError::Full(_)) = cache.steps.insert(me, number, answer) {
        // Room for the next one: a number that follows from this one.
        cache.steps.remove(me, &(number * 7919 % RANGE + 1))?;
    }
    Ok(answer)
}

/// Starts the processes, kills one after the other, and looks at what they leave.
fn kills(path: &str) -> Result<(), Box<dyn Error>> {
    let cache = Region::<Cache>::options().create_or_open(path, 0o600)?;
    let start = |seed: usize| Command::new(env::current_exe()?).args([&seed.to_string(), path]).spawn();
    let mut processes: Vec<Child> = (0..PROCESSES).map(start).collect::<io::Result<_>>()?;
    for kill in 0..KILLS {
        thread::sleep(Duration::from_millis(13));
        let victim = &mut processes[kill % PROCESSES];
        assert!(victim.try_wait()?.is_none(), "a process failed");
        victim.kill()?;
        victim.wait()?;
        *victim = start(PROCESSES + kill)?;
    }
    for mut process in processes {
        process.kill()?;
        process.wait()?;
    }
    let (mut keys, mut wrong) = (0, 0);
    let look = |number, answer| {
        keys += 1;
        wrong += usize::from(answer != computed(number));
    };
    cache.with_member(|me| cache.steps.for_each(me, look))??;
    let (hits, misses) = (cache.hits.load(Relaxed), cache.misses.load(Relaxed));
    println!("{hits} answers were in the cache, {misses} were computed; {KILLS} processes were killed.");
    assert_eq!((wrong, keys), (0, cache.steps.len()), "an answer is wrong, or the map is not whole");
    println!("It has {keys} of {} keys, and each answer is right.", cache.steps.capacity());
    Ok(())
}
