//! Slots of processes: which process has adjustments or sleeps, and whether it lives.
//!
//! # State
//! A slot names a process by its number, the time of its start, and an *identity*, which is never
//! used again in the directory. Its *token* is on the robust list of one of its threads.
//!
//! | transition | by | label |
//! |---|---|---|
//! | free or dead to the new identity | a process that needs a slot, under the registry's lock | (claim) |
//! | the epoch increases | the same process after an `execve` | (renew) |
//! | dead to free | a process that has applied its adjustments | (free) |
//! | a token without its thread marked | the process, after (claim) or (renew) | (mark dead) |
//!
//! # Invariants
//! 1. While the token is unmarked and names the first thread, that one lives, and so does the
//!    process: a token that a slot has when it is claimed is marked, whoever it names. Of another
//!    thread the kernel is asked whether the process has it. For `execve` gives it the number of
//!    the first thread before the kernel walks its list, and so leaves its token.
//! 2. If the token is marked, or the process has not its thread, `/proc` decides. A process is gone
//!    if there is none of that number and start, or if its only thread is dead or is exiting.
//! 3. A slot with adjustments becomes another process's only after these were applied in all
//!    arrays. The slot counts the rows, so that no process need look through the arrays.
//!
//! The page [`Me`] is wiped in a child of fork, so a child has no slot and no adjustments.

use crate::layout::PROCESSES;
use crate::lock::OWNER_DIED;
use crate::registry::{self, Registry};
use crate::signal::HeldBack;
use crate::sys::{self, Answer, File};
use crate::undo;
use core::ptr::null_mut;
use ulocks_core::robust::Token;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicPtr, AtomicU32, AtomicU64};

/// A slot, in the registry. All zero is free.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Process {
    token: Token,
    /// 0 is free.
    identity: AtomicU64,
    start: AtomicU64,
    number: AtomicU32,
    epoch: AtomicU32,
    /// In how many arrays it has a row. It is never too small; a death can leave it too great.
    rows: AtomicU32,
}

/// What the process knows of itself, in a page that fork wipes.
#[derive(Debug)]
#[repr(C)]
pub struct Me {
    number: AtomicU32,
    /// The slot, and 1.
    slot: AtomicU32,
    epoch: AtomicU32,
    /// 1 while a thread claims the slot.
    claiming: AtomicU32,
    identity: AtomicU64,
}

/// The bits of a token's word that name its thread.
const THREAD: u32 = OWNER_DIED - 1;

static ME: AtomicPtr<Me> = AtomicPtr::new(null_mut());

/// A process with its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The index of the slot.
    pub index: usize,
    /// The identity.
    pub identity: u64,
    /// How often the process has called `execve`, with a slot.
    pub epoch: u32,
}

/// The calling process, if it is known without a system call.
#[inline]
pub fn known() -> Option<u32> {
    let me = ME.load(Acquire);
    if me.is_null() {
        return None;
    }
    // SAFETY: what ME points to is mapped for ever, and all zero is valid.
    Some(unsafe { &*me }.number.load(Relaxed)).filter(|&number| number != 0)
}

fn page() -> Answer<&'static Me> {
    let known = ME.load(Acquire);
    if !known.is_null() {
        // SAFETY: as in `known`.
        return Ok(unsafe { &*known });
    }
    let new = sys::anonymous(4_096)?;
    // SAFETY: the mapping is new, private, and of no file. In a child it should be all zero.
    let is_wiped = unsafe { ulocks_core::wipe_on_fork(new, 4_096) };
    let page = match ME.compare_exchange(null_mut(), new.cast(), AcqRel, Acquire) {
        Ok(_) => new.cast(),
        Err(first) => {
            // SAFETY: no other thread has seen the page.
            unsafe { sys::unmap(new, 4_096) };
            first
        }
    };
    if !is_wiped {
        // SAFETY: the function has the type that is needed.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    }
    // SAFETY: as in `known`.
    Ok(unsafe { &*page })
}

/// In a child of fork, on a kernel that does not wipe pages, or only says so.
extern "C" fn forget() {
    let me = ME.load(Acquire);
    if !me.is_null() {
        // SAFETY: the page is ours, and the child has one thread.
        unsafe { me.write_bytes(0, 1) };
    }
}

/// The calling process.
pub fn number() -> u32 {
    match known() {
        Some(number) => number,
        None => {
            let number = sys::process();
            if let Ok(me) = page() {
                me.number.store(number, Relaxed);
            }
            number
        }
    }
}

/// The slot of the calling process, if it has one.
pub fn mine() -> Option<Slot> {
    let me = page().ok()?;
    let index = me.slot.load(Acquire).checked_sub(1)? as usize;
    Some(Slot { index, identity: me.identity.load(Relaxed), epoch: me.epoch.load(Relaxed) })
}

/// The slot of the calling process, claimed if need be. No lock is held.
pub fn claim(registry: &'static Registry) -> Answer<Slot> {
    if let Some(slot) = mine() {
        let process = &registry.processes[slot.index];
        if !Token::is_alive(process.token.word().load(Relaxed)) {
            attach(process); // Its thread has ended.
        }
        return Ok(slot);
    }
    number();
    let me = page()?;
    let held_back = HeldBack::new();
    while me.claiming.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
        let _ = sys::wait(&me.claiming, 1, sys::monotonic() + 1_000_000);
    }
    let answer = match mine() {
        Some(slot) => Ok(slot),
        None => claim_new(registry, me),
    };
    me.claiming.store(0, Release);
    sys::wake(&me.claiming, 1);
    drop(held_back);
    answer
}

fn attach(process: &'static Process) {
    let held_back = HeldBack::new();
    let _errno = ulocks_core::errno::Guard::new();
    // SAFETY: the registry is mapped for ever.
    if let Ok(Some(registration)) = unsafe { process.token.claim() } {
        core::mem::forget(registration); // The kernel marks the token when the thread ends.
    }
    drop(held_back);
}

fn claim_new(registry: &'static Registry, me: &'static Me) -> Answer<Slot> {
    let (number, start) = (me.number.load(Relaxed), start_of(me.number.load(Relaxed)));
    let mut found = reserve(registry, number, start)?;
    if found.is_none() {
        scavenge(registry);
        found = reserve(registry, number, start)?;
    }
    let slot = found.ok_or(libc::ENOMEM)?;
    me.identity.store(slot.identity, Relaxed);
    me.epoch.store(slot.epoch, Relaxed);
    let process = &registry.processes[slot.index];
    let word = process.token.word();
    let seen = word.load(Relaxed);
    me.slot.store(slot.index as u32 + 1, Release);
    // Loaded before the slot is known to other threads of the process, which could claim it.
    if Token::is_alive(seen) && (slot.epoch == 0 || !has_token_of_a_thread(process, || true)) {
        let _ = word.compare_exchange(seen, OWNER_DIED, Relaxed, Relaxed); // (mark dead)
    }
    attach(process);
    Ok(slot)
}

/// (claim) or (renew).
fn reserve(registry: &'static Registry, number: u32, start: u64) -> Answer<Option<Slot>> {
    let section = registry.enter()?;
    let high = (registry.process_high.load(Relaxed) as usize).min(PROCESSES);
    let own = registry.processes[..high].iter().position(|process| {
        process.identity.load(Relaxed) != 0
            && process.number.load(Relaxed) == number
            && start != 0
            && process.start.load(Relaxed) == start
    });
    let slot = if let Some(index) = own {
        let process = &registry.processes[index];
        let epoch = process.epoch.load(Relaxed).wrapping_add(1);
        process.epoch.store(epoch, Relaxed); // (renew)
        Some(Slot { index, identity: process.identity.load(Relaxed), epoch })
    } else {
        let free = (0..PROCESSES).find(|&index| {
            let process = &registry.processes[index];
            let identity = process.identity.load(Relaxed);
            identity == 0 || (process.rows.load(Relaxed) == 0 && is_gone(registry, index, identity, || true))
        });
        free.map(|index| {
            let process = &registry.processes[index];
            let identity = registry.next_identity();
            process.identity.store(0, Relaxed);
            process.number.store(number, Relaxed);
            process.start.store(start, Relaxed);
            process.epoch.store(0, Relaxed);
            process.rows.store(0, Relaxed);
            process.identity.store(identity, Release); // (claim)
            registry.process_high.store((high.max(index + 1)) as u32, Relaxed);
            Slot { index, identity, epoch: 0 }
        })
    };
    section.leave();
    Ok(slot)
}

/// Applies what dead processes have left in all arrays, and frees their slots.
pub fn scavenge(registry: &'static Registry) {
    for index in 0..(registry.process_high.load(Relaxed) as usize).min(PROCESSES) {
        let identity = registry.processes[index].identity.load(Acquire);
        if identity != 0 && is_gone(registry, index, identity, || true) {
            give_up(registry, index, identity);
        }
    }
}

/// Applies the adjustments of a slot in all arrays, then (free).
fn give_up(registry: &'static Registry, index: usize, identity: u64) {
    let process = &registry.processes[index];
    let has_undo = process.rows.load(Relaxed) != 0;
    if has_undo && !undo::apply_everywhere(registry, index, identity) {
        return; // An array that this process may not open: another process frees the slot.
    }
    let Ok(section) = registry.enter() else { return };
    if process.identity.load(Relaxed) == identity {
        process.rows.store(0, Relaxed);
        process.identity.store(0, Release); // (free)
    }
    section.leave();
}

/// At the exit of the calling process: its adjustments are applied, if it has no other thread
/// (invariant 4 of `undo.rs`). It keeps its slot, whose token is on the list of a thread that is
/// still to end, for calls in destructors that run later.
pub fn leave() {
    let me = ME.load(Acquire);
    if me.is_null() {
        return;
    }
    // SAFETY: as in `known`.
    let me = unsafe { &*me };
    let number = me.number.load(Relaxed);
    if number != sys::process() {
        return; // A child that shares the memory of its parent.
    }
    let _ = crate::sleep::end_interrupted();
    let (Some(slot), Ok(registry)) = (mine(), registry::get()) else { return };
    let owes = registry.processes[slot.index].rows.load(Relaxed) != 0;
    if owes && Stat::of(number).is_ok_and(|stat| stat.threads == 1) {
        if slot.epoch == 0 {
            crate::array::all_mapped().for_each(|array| undo::give_back(array, slot.index, slot.identity));
        } else {
            undo::apply_everywhere(registry, slot.index, slot.identity); // And what it used before `execve`.
        }
    }
}

/// Notes that the process will have a row in one array more.
pub fn will_undo(registry: &Registry, slot: Slot) {
    registry.processes[slot.index].rows.fetch_add(1, Relaxed);
}

/// Notes that a row of the process with this identity was applied.
pub fn has_undone(registry: &Registry, index: usize, identity: u64) {
    if let Some(process) = registry.processes.get(index)
        && process.identity.load(Acquire) == identity
    {
        let _ = process.rows.fetch_update(Relaxed, Relaxed, |rows| rows.checked_sub(1));
    }
}

/// Whether the token does not say that the process lives.
pub fn is_suspect(registry: &Registry, index: usize, identity: u64) -> bool {
    registry.processes.get(index).is_none_or(|process| {
        process.identity.load(Acquire) != identity || !has_token_of_a_thread(process, || true)
    })
}

/// Whether the token says that the process lives: invariant 1. A caller that does not ask the
/// kernel believes the token of another thread than the first.
fn has_token_of_a_thread(process: &Process, asks: impl FnOnce() -> bool) -> bool {
    let (word, number) = (process.token.word().load(Acquire), process.number.load(Relaxed));
    let thread = word & THREAD;
    Token::is_alive(word) && (thread == number || !asks() || sys::exists(number, thread))
}

/// Whether the process that had slot `index` with this identity is gone (invariants 1 and 2). In a
/// registry that was lost, nobody is. `asks`: whether the kernel may be asked for a thread.
pub fn is_gone(registry: &Registry, index: usize, identity: u64, asks: impl FnOnce() -> bool) -> bool {
    seems_gone(registry, index, identity, asks) && registry.check().is_ok()
}

fn seems_gone(registry: &Registry, index: usize, identity: u64, asks: impl FnOnce() -> bool) -> bool {
    let Some(process) = registry.processes.get(index) else { return true };
    if process.identity.load(Acquire) != identity {
        return true;
    }
    if has_token_of_a_thread(process, asks) {
        return false;
    }
    if mine().is_some_and(|mine| mine.index == index && mine.identity == identity) {
        return false;
    }
    let number = process.number.load(Relaxed); // It may be the caller's by now.
    match Stat::of(number) {
        Ok(stat) => {
            let start = process.start.load(Relaxed);
            (start != 0 && stat.start != start) || stat.is_ending
        }
        Err(_) => !sys::exists(number, number),
    }
}

/// Whether thread `thread` of the process in this slot is gone, as far as its number tells. The
/// number of the first thread is another one's after an `execve` of that one: see the queue.
pub fn is_thread_gone(registry: &Registry, slot: Slot, thread: u32) -> bool {
    let Some(process) = registry.processes.get(slot.index) else { return true };
    if process.identity.load(Acquire) != slot.identity || process.epoch.load(Relaxed) != slot.epoch {
        return registry.check().is_ok();
    }
    let word = process.token.word().load(Acquire);
    if Token::is_alive(word) && word & THREAD == thread {
        return false;
    }
    is_gone(registry, slot.index, slot.identity, || true)
        || !sys::exists(process.number.load(Relaxed), thread)
}

/// What /proc says of a process.
struct Stat {
    start: u64,
    threads: u64,
    is_ending: bool,
}

impl Stat {
    fn of(number: u32) -> Answer<Self> {
        let mut path = *b"/proc/0000000000/stat\0";
        let (mut rest, mut at) = (number, 16);
        let mut first = at;
        while rest != 0 && at > 6 {
            at -= 1;
            first = at;
            path[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        // The path without leading zeros: "/proc/" moves to the first digit.
        path.copy_within(0..6, first - 6);
        let file = File::open(&path[first - 6..], libc::O_RDONLY, 0)?;
        let mut text = [0_u8; 1_024];
        let len = file.read(&mut text)?;
        Self::parse(&text[..len]).ok_or(libc::EIO)
    }

    /// The command may hold any byte, so fields are counted from its last parenthesis.
    fn parse(text: &[u8]) -> Option<Self> {
        const EXITING: u64 = 4;
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let mut fields = text.get(end + 2..)?.split(|&byte| byte == b' ');
        let state = *fields.next()?.first()?;
        let mut number =
            |skipped: usize| -> Option<u64> { core::str::from_utf8(fields.nth(skipped)?).ok()?.parse().ok() };
        let flags = number(5)?; // Field 9.
        let threads = number(10)?; // Field 20.
        let start = number(1)?; // Field 22.
        let is_dead = matches!(state, b'Z' | b'X') || flags & EXITING != 0;
        Some(Self { start, threads, is_ending: threads <= 1 && is_dead })
    }
}

fn start_of(number: u32) -> u64 {
    Stat::of(number).map_or(0, |stat| stat.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_does_not_confuse() {
        let text = b"12 (a) b) (c) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 987 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.start, stat.is_ending), (987, true));
        let text = b"12 (x) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 2 0 987 0 0";
        assert!(!Stat::parse(text).unwrap().is_ending);
    }

    #[test]
    fn the_calling_process_has_a_start_and_lives() {
        let stat = Stat::of(sys::process()).unwrap();
        assert!(stat.start > 0 && !stat.is_ending);
        assert!(Stat::of(u32::MAX >> 1).is_err());
    }
}
