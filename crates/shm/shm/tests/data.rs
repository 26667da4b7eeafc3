//! The queue and the map of a region: what each call gives, and what a file keeps.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_shm::{
    Attached, HashMap, MapError, Member, PopError, PushError, Queue, Refused, Region, RegionError, SharedSafe,
};
use ulocks_testkit::watchdog::watch;

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    queue: Queue<u64, 3>,
    map: HashMap<u64, [u64; 2], 4>,
}

fn with<O>(f: impl FnOnce(&Root, &Member<'_>) -> O) -> O {
    let region = Region::<Root>::options().anonymous().expect("a region");
    region.with_member(|me| f(&region, me)).expect("a member")
}

#[test]
fn a_queue_says_full_empty_and_closed() {
    with(|Root { queue, .. }, me| {
        let soon = || Deadline::after(Duration::from_millis(2));
        assert_eq!((queue.len(), queue.is_empty(), queue.capacity()), (0, true, 3));
        assert_eq!(queue.try_pop(me), Err(PopError::Empty));
        assert_eq!(queue.pop_until(me, soon()), Err(PopError::Empty));
        assert_eq!(queue.pop_for(me, Duration::ZERO), Err(PopError::Empty));
        (0..3).for_each(|number| queue.push(me, number).expect("room"));
        assert!(queue.is_full());
        assert_eq!(queue.try_push(me, 9), Err(PushError::Full(9)));
        assert_eq!(queue.push_until(me, 9, soon()), Err(PushError::Full(9)));
        assert_eq!(queue.push_for(me, 9, Duration::ZERO).unwrap_err().into_inner(), 9);
        assert_eq!(queue.pop_for(me, Duration::MAX), Ok(0));
        queue.close(me).expect("a whole queue");
        assert!(queue.is_closed());
        assert_eq!(queue.push(me, 9), Err(PushError::Closed(9)));
        let mut taken = [0; 3];
        assert_eq!((queue.pop_slice(me, &mut taken), taken), (Ok(2), [1, 2, 0]));
        assert_eq!(queue.pop(me), Err(PopError::Closed));
        queue.reopen(me).expect("a whole queue");
        assert_eq!((queue.push_slice(me, &[5, 6]), queue.push_slice(me, &[7, 8])), (Ok(2), Ok(1)));
        assert_eq!((queue.push_slice(me, &[]), queue.pop_slice(me, &mut [])), (Ok(0), Ok(0)));
        assert_eq!((5..8).map(|_| queue.try_pop(me)).collect::<Result<Vec<_>, _>>(), Ok(vec![5, 6, 7]));
    });
}

#[test]
fn errors_say_what_to_do() {
    let full = PushError::Full(1).to_string();
    assert_eq!(full, "the queue is full: try again, wait with `push`, or give the queue a greater capacity");
    assert!(PopError::Closed.to_string().ends_with("stop popping"));
    let refused = PushError::Refused(1, Refused::Deadlock);
    assert!(refused.to_string().starts_with("the mutex of the queue: "));
    assert!(std::error::Error::source(&refused).is_some());
    let full = MapError::Full(1).to_string();
    assert_eq!(full, "the map is full: remove a key first, or give the map a greater capacity");
}

/// Also for a value that has no `Debug`.
#[test]
fn an_error_of_a_map_is_one_for_question_marks() {
    struct Plain;
    let fails = || -> Result<(), Box<dyn std::error::Error>> { Err(MapError::Full(Plain))? };
    assert_eq!(format!("{:?}", fails().expect_err("full")), "Full(..)");
    assert_eq!(MapError::Refused(1, Refused::Deadlock).into_inner(), 1);
}

#[test]
fn a_map_has_what_was_put_in() {
    with(|Root { map, .. }, me| {
        assert_eq!(map.insert(me, 1, [1, 1]), Ok(None));
        assert_eq!(map.insert(me, 1, [2, 1]), Ok(Some([1, 1])));
        (2..5).for_each(|key| assert_eq!(map.insert(me, key, [key, 0]), Ok(None)));
        assert_eq!(map.insert(me, 5, [5, 0]), Err(MapError::Full([5, 0])));
        assert_eq!(map.insert(me, 4, [9, 9]), Ok(Some([4, 0])), "a full map takes values of its keys");
        assert_eq!(map.update(me, 6, |_| Some([6, 0])), Err(MapError::Full(Some([6, 0]))));
        assert_eq!(map.update(me, 3, |_| None), Ok(Some([3, 0])));
        assert_eq!((map.contains_key(me, &3), map.len()), (Ok(false), 3));
        assert_eq!((map.remove(me, &2), map.remove(me, &2)), (Ok(Some([2, 0])), Ok(None)));
        let mut all = Vec::new();
        map.for_each(me, |key, value| all.push((key, value))).expect("a whole map");
        all.sort_unstable();
        assert_eq!(all, [(1, [2, 1]), (4, [9, 9])]);
        // A closure that uses the map is told, and changes nothing.
        let inner = map.update(me, 1, |_| {
            assert_eq!(map.get(me, &1), Err(Refused::Deadlock));
            None
        });
        assert_eq!(inner, Ok(Some([2, 1])));
        map.clear(me).expect("a whole map");
        assert!(map.is_empty());
        assert_eq!(map.get(me, &4), Ok(None));
        (0..4).for_each(|key| assert_eq!(map.insert(me, key, [0, 0]), Ok(None)));
    });
}

#[test]
fn a_closure_that_panics_changes_nothing() {
    with(|Root { map, .. }, me| {
        map.insert(me, 1, [1, 1]).expect("room");
        let panics = || map.update(me, 1, |_| panic!("by design"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!((map.get(me, &1), map.len()), (Ok(Some([1, 1])), 1));
    });
}

/// As a map does that the standard library has, whatever the order of the changes.
#[test]
fn a_map_is_one_with_the_standard_librarys() {
    let region = Region::<HashMap<u64, u64, 64>>::options().anonymous().expect("a region");
    let end = region.with_member(|me| {
        let (mut other, mut random) = (std::collections::HashMap::new(), 1_u64);
        for round in 0..20_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let key = (random >> 8) % 80;
            if random % 3 == 0 {
                assert_eq!(region.remove(me, &key), Ok(other.remove(&key)));
            } else if other.len() < 64 || other.contains_key(&key) {
                assert_eq!(region.insert(me, key, round), Ok(other.insert(key, round)));
            } else {
                assert_eq!(region.insert(me, key, round), Err(MapError::Full(round)));
            }
            assert_eq!((region.get(me, &key), region.len()), (Ok(other.get(&key).copied()), other.len()));
        }
    });
    end.expect("a member");
}

#[test]
fn a_file_keeps_messages_and_keys() {
    let path = std::env::temp_dir().join(format!("ulocks-data-{}", std::process::id()));
    let region = Region::<Root>::options().create_or_open(&path, 0o600).expect("a region");
    let end = region.with_member(|me| {
        (1..3).for_each(|number| region.queue.push(me, number).expect("room"));
        region.map.insert(me, 7, [7, 8]).expect("room");
    });
    end.expect("a member");
    drop(region);
    let region = Region::<Root>::options().create_or_open(&path, 0o600).expect("the region");
    assert_eq!(region.attached(), Attached::Reset);
    let end = region.with_member(|me| {
        assert_eq!((region.queue.pop(me), region.queue.pop(me)), (Ok(1), Ok(2)));
        assert_eq!(region.map.get(me, &7), Ok(Some([7, 8])));
    });
    end.expect("a member");
    drop(region);
    // Of another type, in the same place.
    let other = Region::<(Queue<i64, 3>, HashMap<u64, [u64; 2], 4>)>::options().open(&path);
    assert!(matches!(other, Err(RegionError::WrongLayout { .. })), "{other:?}");
    std::fs::remove_file(&path).expect("it is there");
}

/// As after a power cut, or after a program whose keys have other hashes: buckets lead nowhere, and
/// so a key was inserted twice.
#[test]
fn a_reset_makes_the_index_of_a_map_anew() {
    let path = std::env::temp_dir().join(format!("ulocks-index-{}", std::process::id()));
    let region = Region::<Root>::options().create_or_open(&path, 0o600).expect("a region");
    let end = region.with_member(|me| {
        (1..4).for_each(|key| _ = region.map.insert(me, key, [key; 2]).expect("room"));
        overwrite(&region, TABLE + 24, &[0_u64; 8]);
        assert_eq!(region.map.get(me, &1), Ok(None));
        region.map.insert(me, 2, [9; 2]).expect("room");
    });
    end.expect("a member");
    drop(region);
    let region = Region::<Root>::options().create_or_open(&path, 0o600).expect("the region");
    assert_eq!(region.attached(), Attached::Reset);
    let end = region.with_member(|me| {
        let mut keys = Vec::new();
        region.map.for_each(me, |key, _| keys.push(key)).expect("a whole map");
        assert_eq!((keys, region.map.len()), (vec![1, 2, 3], 3));
        (1..4).for_each(|key| assert_eq!(region.map.get(me, &key), Ok(Some([key; 2]))));
        assert_eq!(region.map.insert(me, 4, [4; 2]), Ok(None), "the room of the other entry");
        (1..5).for_each(|key| assert!(region.map.remove(me, &key).expect("a whole map").is_some()));
        assert!(region.map.is_empty());
    });
    end.expect("a member");
    std::fs::remove_file(&path).expect("it is there");
}

/// Where the counts of the queue are: behind its locks.
const COUNTS: usize = 48;
/// Where the state of the map's mutex is, and the table behind the mutex.
const STATE: usize = size_of::<Queue<u64, 3>>() + 8;
const TABLE: usize = STATE + 8;

/// Overwrites words of the root.
fn overwrite<W: Copy>(root: &Root, at: usize, words: &[W]) {
    assert!(at + size_of_val(words) <= size_of::<Root>());
    let place = std::ptr::from_ref(root).cast_mut().cast::<u8>();
    // SAFETY: the words are in the root. It is the test's alone, and each bit pattern is a value.
    unsafe { place.add(at).cast::<W>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
}

#[test]
fn counts_that_were_overwritten_are_no_reason_to_hang() {
    let _watch = watch("overwritten counts", || "a call does not end".into());
    let far = 1 << 63;
    for counts in [[0, u64::MAX], [u64::MAX, 0], [7, 0], [0, 7], [2, u64::MAX], [far, 1], [u64::MAX; 2]] {
        with(|root, me| {
            let queue = &root.queue;
            overwrite(root, COUNTS, &counts);
            assert!(queue.len() <= 3, "{counts:?}");
            for _ in 0..5 {
                _ = (queue.try_push(me, 1), queue.push_for(me, 2, Duration::ZERO));
                _ = (queue.try_pop(me), queue.len());
                if !queue.is_empty() {
                    let number = queue.pop_slice(me, &mut [0; 9]).expect("the mutex is whole");
                    assert!((1..=3).contains(&number), "{counts:?}: {number}");
                }
                if !queue.is_full() {
                    let number = queue.push_slice(me, &[0; 9]).expect("the mutex is whole");
                    assert!((1..=3).contains(&number), "{counts:?}: {number}");
                }
            }
        });
    }
}

/// All that a thread can do with a map.
fn uses_all(Root { map, .. }: &Root, me: &Member<'_>) {
    for key in 0..6 {
        _ = (map.insert(me, key, [0; 2]), map.get(me, &key).expect("the mutex is whole"));
        _ = map.update(me, key, |_| Some([1; 2]));
        let mut number = 0;
        map.for_each(me, |_, _| number += 1).expect("the mutex is whole");
        assert!(number <= 4 && map.len() <= 4);
        if key % 2 == 0 {
            map.remove(me, &key).expect("the mutex is whole");
        }
    }
}

/// Without and with a repair of what was overwritten: the mutex says that a thread has died.
#[test]
fn a_table_that_was_overwritten_is_no_reason_to_hang() {
    let _watch = watch("an overwritten table", || "a call does not end".into());
    let end = size_of::<Queue<u64, 3>>() + size_of::<HashMap<u64, [u64; 2], 4>>();
    let (buckets, entries) = (TABLE + 24, TABLE + 104);
    assert_eq!(entries + 4 * 40, end, "the table has another layout");
    for dirty in [0_u32, 1] {
        for byte in [0x55_u8, 0xff, 0x01] {
            with(|root, me| {
                overwrite(root, TABLE, &vec![byte; end - TABLE]);
                overwrite(root, STATE, &[dirty]);
                uses_all(root, me);
                root.map.clear(me).expect("the mutex is whole");
                uses_all(root, me);
            });
        }
        // All in range: each bucket leads to an entry, the free entries are a circle of live ones,
        // and an entry of which no bucket knows has a value ahead.
        for (upper, used) in [(0_u64, 9_u32), (0xffff_ffff, 4), (0x8000_0000, u32::MAX)] {
            with(|root, me| {
                (0..4).for_each(|key| _ = root.map.insert(me, key, [key; 2]).expect("room"));
                for bucket in 0..8 {
                    overwrite(root, buckets + 8 * bucket, &[upper << 32 | (bucket as u64 % 3 + 1)]);
                }
                (0..4).for_each(|entry| {
                    overwrite(root, entries + 40 * entry + 8, &[(entry as u32 + 1) % 4 + 1])
                });
                // `replacing`, `free`, `used`, `len`.
                overwrite(root, TABLE + 8, &[4, 1, used, 99]);
                overwrite(root, STATE, &[dirty]);
                uses_all(root, me);
            });
        }
    }
}
