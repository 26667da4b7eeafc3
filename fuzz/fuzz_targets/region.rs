//! A fuzzer writes into a region as a hostile process can: into its file while no process has it
//! open, or into its slots and locks while a thread uses them.
//!
//! No call panics, hangs, or leaves the region's memory. An error is allowed, and so is wrong data.
//! Two things are kept from the fuzzer, because the documentation says that they hang. It makes no
//! other slot look alive. And it stops no thread.
//!
//! To see it fail, remove the check of a slot's number in `Member::token` by hand.
#![no_main]

#[cfg(ulocks_vm)]
compile_error!("compiled with `--cfg ulocks_vm`: run it with `cargo xtask fuzz`");

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use ulocks_semarray::{Op, Set};
use ulocks_shm::robust::RawRobust;
use ulocks_shm::{
    Condvar, Directory, DirectoryError, FairMutex, LockError, Member, Mutex, MutexGuard, Region, RwLock,
    SemArray, Semaphore, SharedSafe, inspect, layout,
};

const SLOTS: usize = 8;
const SEMS: usize = 3;
/// More than this is no wait for the locks' own sake.
const SOON: Duration = Duration::from_micros(20);
const HEADER: usize = 128;
/// Where the slots begin, and how far they are from each other.
const PAGE: usize = 4096;
const SLOT: usize = 64;
/// Of a token's word: the thread that has it.
const THREAD: u32 = (1 << 30) - 1;

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    mutex: Mutex<u64>,
    fair: FairMutex<u64>,
    rwlock: RwLock<u64, SLOTS>,
    array: SemArray<SEMS, SLOTS, 4>,
    semaphore: Semaphore<SLOTS>,
    condvar: Condvar,
    names: Directory<NAMES, 256>,
}

/// How many names the directory has room for.
const NAMES: usize = 4;

struct Scratch(PathBuf);

/// The bytes of a region that was left in peace, and a file for them.
static SOUND: LazyLock<(Scratch, Vec<u8>)> = LazyLock::new(|| {
    let directory =
        if fs::exists("/dev/shm").unwrap_or(false) { "/dev/shm".into() } else { std::env::temp_dir() };
    let path = directory.join(format!("ulocks-fuzz-{}", std::process::id()));
    {
        let region = options().create(&path, 0o600).expect("a region");
        let named = region.with_member(|me| {
            region.names.find_or_create::<Mutex<u64>>(me, "a").expect("room");
            region.names.find_or_create::<AtomicU32>(me, "b").expect("room");
        });
        named.expect("a slot");
    }
    let bytes = fs::read(&path).expect("its file");
    fs::remove_file(&path).expect("its file");
    (Scratch(path), bytes)
});

fn options() -> ulocks_shm::Options<Root> {
    Region::options().participants(SLOTS as u32).wait(Duration::ZERO)
}

/// A number that a check might miss.
fn number(input: &mut Unstructured<'_>) -> Result<u32> {
    let owner = |slot: u32, generation: u32, flags: u32| 1 << 29 | generation << 12 | slot | flags;
    Ok(match input.int_in_range(0..=5_u8)? {
        0 => input.arbitrary()?,
        1 => u32::from(input.arbitrary::<u8>()?),
        2 => 1 << input.int_in_range(0..=31)?,
        3 => u32::MAX - u32::from(input.arbitrary::<u8>()?),
        4 => owner(input.int_in_range(0..=9)?, input.int_in_range(0..=3)?, 0),
        _ => owner(
            input.int_in_range(0..=9)?,
            input.int_in_range(0..=3)?,
            input.arbitrary::<u32>()? & 0xd000_0000,
        ),
    })
}

/// A file that others have written: it is opened or refused.
fn opens(input: &mut Unstructured<'_>) -> Result<()> {
    let (scratch, sound) = &*SOUND;
    let mut bytes = sound.clone();
    for _ in 0..input.int_in_range(1..=6)? {
        let words = if input.ratio(3, 4)? { HEADER } else { bytes.len() } / 4;
        let at = input.choose_index(words)? * 4;
        bytes[at..at + 4].copy_from_slice(&number(input)?.to_ne_bytes());
    }
    if input.arbitrary()? {
        let words: Vec<u64> = bytes[8..72]
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("eight")))
            .collect();
        bytes[72..80].copy_from_slice(&layout(&words).to_ne_bytes());
    }
    if input.ratio(1, 8)? {
        bytes.resize(input.int_in_range(0..=2 * sound.len())?, 0);
    }
    fs::write(&scratch.0, &bytes).expect("a file");
    let _ = inspect::look(&scratch.0);
    assert_eq!(fs::read(&scratch.0).expect("the file"), bytes, "a look has changed the file");
    if input.ratio(1, 4)? && inspect::repair(&scratch.0).is_ok() {
        bytes = fs::read(&scratch.0).expect("the file");
    }
    match options().open(&scratch.0) {
        Ok(region) => uses(input, &region)?,
        Err(_) => assert_eq!(fs::read(&scratch.0).expect("the file"), bytes, "a refused file was changed"),
    }
    Ok(())
}

/// A region whose memory changes while a thread uses it.
fn is_overwritten(input: &mut Unstructured<'_>) -> Result<()> {
    let (scratch, sound) = &*SOUND;
    fs::write(&scratch.0, sound).expect("a file");
    // The second one finds the region in use, so it does not reset what is written between.
    let first = options().open(&scratch.0).expect("a sound region");
    let words = overwritten(&first, sound.len());
    for _ in 0..input.int_in_range(0..=8)? {
        overwrites(input, words, None)?;
    }
    if input.arbitrary()? {
        seals(words);
    }
    let region = options().open(&scratch.0).expect("the header is sound");
    uses(input, &region)
}

/// The words of the slots and of the root.
fn overwritten(region: &Region<Root>, size: usize) -> &[AtomicU32] {
    let first = region.slots().cast::<AtomicU32>();
    // SAFETY: the mapping has `size` bytes, of which a page is before the slots. They are words
    // that change by atomics here, and by all sorts of atomics in the locks.
    unsafe { std::slice::from_raw_parts(first.as_ptr(), (size - PAGE) / 4) }
}

/// One store of another process. `mine` is the slot of the thread.
fn overwrites(input: &mut Unstructured<'_>, words: &[AtomicU32], mine: Option<usize>) -> Result<()> {
    let root = PAGE / 4;
    let word = match input.int_in_range(0..=3_u8)? {
        0 => input.choose_index(SLOTS * SLOT / 4)?,
        _ => root + input.choose_index(size_of::<Root>() / 4)?,
    };
    let value = number(input)?;
    let (slot, part) = (word * 4 / SLOT, word * 4 % SLOT);
    if slot < SLOTS && part < 40 && mine == Some(slot) {
        // The kernel, and the C library, have put the token of a living thread into a list.
        return Ok(());
    }
    let value = if slot < SLOTS && part < 8 { value & !THREAD } else { value };
    words[word].store(value, Relaxed);
    Ok(())
}

/// Makes the checksums of the directory's entries right, as a process can that means harm.
fn seals(words: &[AtomicU32]) {
    // Behind the slots, and behind the words of the directory itself.
    let first = (PAGE + std::mem::offset_of!(Root, names) + 64) / 4;
    for entry in words[first..first + NAMES * 48].chunks_exact(48) {
        let long = |at: usize| {
            let half = |at: usize| u64::from(entry[at].load(Relaxed));
            half(at * 2) | half(at * 2 + 1) << 32
        };
        let parts: Vec<_> = (2..6).chain(8..24).map(long).collect();
        let checksum = layout(&parts);
        entry[12].store(checksum as u32, Relaxed);
        entry[13].store((checksum >> 32) as u32, Relaxed);
    }
}

/// Uses the locks of a region, and writes into it between the calls.
fn uses(input: &mut Unstructured<'_>, region: &Region<Root>) -> Result<()> {
    let words = overwritten(region, SOUND.1.len());
    let used = region.with_member(|me| {
        for _ in 0..input.int_in_range(1..=12)? {
            if input.ratio(1, 3)? {
                overwrites(input, words, Some(me.slot()))?;
            } else {
                call(input, region, me)?;
            }
        }
        Ok(())
    });
    used.unwrap_or(Ok(()))
}

/// What a user does who has been told of a death.
fn whole<'a, L: RawRobust>(
    result: std::result::Result<MutexGuard<'a, u64, L>, LockError<MutexGuard<'a, u64, L>>>,
) -> Option<MutexGuard<'a, u64, L>> {
    match result {
        Ok(guard) => Some(guard),
        Err(LockError::OwnerDied(mut guard)) => {
            guard.mark_consistent();
            Some(guard)
        }
        Err(_) => None,
    }
}

/// Finds or creates a value by name, and uses it: it is in the directory.
fn named<T: SharedSafe>(
    input: &mut Unstructured<'_>,
    root: &Root,
    me: &Member<'_>,
    uses: impl FnOnce(&T),
) -> Result<()> {
    let name = ["a", "b", "c", "d", "a longer name"][input.choose_index(NAMES + 1)?];
    let found = match input.arbitrary()? {
        true => root.names.find_or_create::<T>(me, name),
        false => root.names.find::<T>(me, name),
    };
    match found {
        Ok(value) => {
            let inside =
                std::ptr::from_ref(value).addr().wrapping_sub(std::ptr::from_ref(&root.names).addr());
            assert!(inside <= size_of_val(&root.names) - size_of::<T>(), "outside of the directory");
            uses(value);
        }
        Err(DirectoryError::Name { .. }) => panic!("the names are good"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

/// One use of a lock, which holds it for no other call.
fn call(input: &mut Unstructured<'_>, root: &Root, me: &Member<'_>) -> Result<()> {
    let index = input.int_in_range(0..=SEMS)?;
    match input.int_in_range(0..=24_u8)? {
        0 => drop(whole(root.mutex.try_lock(me))),
        1 => drop(whole(root.mutex.try_lock_for(me, SOON))),
        2 => drop(root.mutex.try_lock(me)),
        3 => drop(root.mutex.reset(me)),
        4 => drop(whole(root.fair.try_lock(me))),
        5 => drop(whole(root.fair.try_lock_for(me, SOON))),
        6 => drop(root.fair.try_lock(me)),
        7 => drop(root.fair.reset(me)),
        8 => drop(root.rwlock.try_read(me)),
        9 => drop(root.rwlock.try_read_for(me, SOON)),
        10 => drop(root.rwlock.try_write(me)),
        11 => drop(root.rwlock.try_write_for(me, SOON).map(|guard| guard.downgrade())),
        12 => drop(root.rwlock.reset(me)),
        13 => _ = root.array.try_apply(me, &[Op::sub(index, 1), Op::add((index + 1) % SEMS, 1)]),
        14 => _ = root.array.apply_for(me, &[Op::wait_zero(index), Op::add(index, 2)], SOON),
        15 => drop(root.array.acquire_for(me, Set::new().sub(index, 1), SOON)),
        16 => _ = root.array.set(me, index, input.int_in_range(0..=40_000)?),
        17 => _ = root.array.reclaim(me),
        18 => {
            let _ = root.semaphore.add_permits(me, 1);
            drop(root.semaphore.try_acquire_many(me, 1));
        }
        19 => {
            if let Some(mut guard) = whole(root.mutex.try_lock(me)) {
                let _ = root.condvar.wait_for(&mut guard, SOON);
            }
        }
        20 => named(input, root, me, |lock: &Mutex<u64>| drop(whole(lock.try_lock(me))))?,
        21 => named(input, root, me, |lock: &FairMutex<u64>| drop(whole(lock.try_lock(me))))?,
        22 => named(input, root, me, |word: &AtomicU32| _ = word.fetch_add(1, Relaxed))?,
        23 => _ = root.names.entries().filter(|entry| entry.is_ok()).count(),
        _ => {
            root.condvar.notify_one(me);
            root.condvar.notify_all(me);
            _ = root.condvar.waiters(me);
            _ = root.array.waiters(me);
            _ = root.array.values();
        }
    }
    Ok(())
}

fuzz_target!(|input: &[u8]| {
    let mut input = Unstructured::new(input);
    // An input that ends early is a short script.
    let _ = if input.ratio(1, 4).unwrap_or(false) { opens(&mut input) } else { is_overwritten(&mut input) };
    let _ = fs::remove_file(&SOUND.0.0);
});
