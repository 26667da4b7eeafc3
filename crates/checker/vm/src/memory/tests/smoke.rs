//! What is not a question of outcomes: faults, names, and what reports are told.

use super::super::{Fault, Memory, Why};
use core::panic::Location;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

fn newest(_: crate::choice::Kind, _: usize) -> usize {
    0
}

#[test]
fn plain_data_that_a_release_orders_is_no_race_and_without_it_is() {
    for (order, races) in [(Release, false), (Relaxed, true)] {
        let at = Location::caller();
        let mut memory = Memory::new();
        let parent = memory.spawn(None);
        let child = memory.spawn(Some(parent));
        let flag = memory.create_zeroed();
        memory.plain_write(parent, 0x1000, 8, at).unwrap();
        memory.store(parent, flag, 1, order, at, &mut newest).unwrap();
        assert_eq!(memory.load(child, flag, Acquire, at, &mut newest).unwrap().value, 1);
        let read = memory.plain_read(child, 0x1004, 1, at);
        assert_eq!(matches!(read, Err(Fault::Race { .. })), races, "{order:?}: {read:?}");
        memory.plain_read(child, 0x1008, 8, at).unwrap();
    }
}

#[test]
fn an_atomic_must_be_published_and_may_not_be_used_after_its_end() {
    let at = Location::caller();
    let mut memory = Memory::new();
    let (first, stranger) = (memory.spawn(None), memory.spawn(None));
    let loc = memory.create(first, 7, at);
    let fault = memory.load(stranger, loc, Acquire, at, &mut newest).unwrap_err();
    assert!(matches!(fault, Fault::Unpublished { .. }), "{fault}");
    let child = memory.spawn(Some(first));
    assert_eq!(memory.load(child, loc, Relaxed, at, &mut newest).unwrap().value, 7);
    let fault = memory.retire(first, loc, true, at).unwrap_err();
    assert!(matches!(fault, Fault::Race { .. }), "{fault}");
    memory.join(first, child);
    memory.retire(first, loc, true, at).unwrap();
    let fault = memory.store(first, loc, 1, Relaxed, at, &mut newest).unwrap_err();
    assert!(matches!(fault, Fault::Dead { ended: Some(_), .. }), "{fault}");
}

#[test]
fn a_place_is_used_again_and_old_names_stay_dead() {
    let at = Location::caller();
    let mut memory = Memory::new();
    let thread = memory.spawn(None);
    let first = memory.create(thread, 1, at);
    memory.retire(thread, first, true, at).unwrap();
    let mut others = Vec::new();
    for value in 0..1000 {
        let loc = memory.create(thread, value, at);
        assert_eq!(memory.load(thread, loc, Relaxed, at, &mut newest).unwrap().value, value);
        assert!(loc.index() < 70, "slots are not used again");
        memory.retire(thread, loc, true, at).unwrap();
        others.push(loc);
    }
    let fault = memory.load(thread, first, Relaxed, at, &mut newest).unwrap_err();
    assert!(matches!(fault, Fault::Dead { ended: None, .. }), "{fault}");
}

#[test]
fn a_stale_read_says_what_it_overlooked_and_a_wait_ends_it() {
    let at = Location::caller();
    let mut memory = Memory::new();
    let (writer, reader) = (memory.spawn(None), memory.spawn(None));
    let loc = memory.create_zeroed();
    memory.store(writer, loc, 1, Relaxed, at, &mut newest).unwrap();
    let read = memory.load(reader, loc, Relaxed, at, &mut |_, n| n - 1).unwrap();
    assert_eq!((read.value, read.newer, read.writer), (0, 1, None));
    assert_eq!(read.why, Why::Unordered { writer, written_at: at });
    assert!(memory.has_other(loc, read.message, read.value));
    memory.raise(reader, loc, read.message, read.value, &mut newest);
    let read = memory.load(reader, loc, Relaxed, at, &mut |_, n| n - 1).unwrap();
    assert_eq!((read.value, read.newer, read.why), (1, 0, Why::Newest));
    assert!(!memory.has_other(loc, read.message, read.value));
}

#[test]
fn store_buffering_is_seen_and_a_fence_forbids_it() {
    use super::program::{Op, explore};
    use core::sync::atomic::Ordering::SeqCst;
    for (fence, n) in [(false, 4), (true, 3)] {
        let thread = |mine, other| {
            let mut ops = vec![Op::Store(mine, 1, Relaxed), Op::Load(other, Relaxed)];
            if fence {
                ops.insert(1, Op::Fence(SeqCst));
            }
            ops
        };
        let (found, _) = explore(&vec![thread(0, 1), thread(1, 0)], Memory::new, false);
        assert_eq!(found.len(), n, "{found:?}");
    }
}
