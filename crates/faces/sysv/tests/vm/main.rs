//! Models of an array on the virtual machine: sets, single operations, adjustments, deaths at each
//! step, removal. A process has one thread.
#![cfg(all(ulocks_vm, feature = "vm"))]

mod protected;

use std::sync::Arc;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, yield_now};
use ulocks_sysv::array::{Array, make};
use ulocks_sysv::op::{Change, NO_WAIT, UNDO};
use ulocks_sysv::section::{Actor, Section};
use ulocks_sysv::world::sys::{Answer, LOOKS};
use ulocks_sysv::world::{process, registry};
use ulocks_sysv::{Op, perform};
use ulocks_testkit::thread::with;

const SLOTS: usize = 4;

/// An array of two semaphores, and which thread has taken each.
struct Place {
    array: &'static Array,
    /// Not 0 if there may be more than one permit of each.
    has_more: AtomicU32,
    inside: [AtomicU32; 2],
}

fn op(num: u16, op: i16, flags: i16) -> Op {
    Op { num, op, flags }
}

/// The set that adds `by` to each of these semaphores.
fn of_each(nums: &[u16], by: i16, flags: i16) -> Vec<Op> {
    nums.iter().map(|&num| op(num, by, flags)).collect()
}

/// What a thread does once.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// Takes a permit of each of these semaphores in one set, and gives them back.
    Takes(&'static [u16]),
    /// The same, with adjustments.
    Undoes(&'static [u16]),
    /// The same, but ends with the permits.
    Owes(&'static [u16]),
    /// The same, if it need not wait.
    Tries(&'static [u16]),
    /// The same, until a deadline.
    Soon(&'static [u16]),
    /// Waits until both are zero.
    AwaitsZero,
    /// Takes one permit of the first semaphore, and never gives it back.
    Keeps,
    /// Takes one of each, and never gives it back.
    KeepsBoth,
    /// Adds so many permits to the first.
    Posts(i16),
    /// Sets the first semaphore.
    Sets(u16),
    /// Takes the array lock, as GETALL.
    Reads,
    /// Removes the array.
    Removes,
}
use Role::*;

const BOTH: &[u16] = &[0, 1];
const FIRST: &[u16] = &[0];
const SECOND: &[u16] = &[1];

impl Place {
    fn new(values: [i16; 2]) -> Arc<Self> {
        let array = make(2, SLOTS);
        for (num, value) in (0..).zip(values) {
            if value != 0 {
                perform::set(array, &[op(num, value, 0), op(num, 0, 0)][..1], None).unwrap();
            }
        }
        Arc::new(Self { array, has_more: AtomicU32::new(0), inside: [AtomicU32::new(0), AtomicU32::new(0)] })
    }

    /// As `semop`.
    fn semop(&self, ops: &[Op], timeout: Option<u64>) -> Answer {
        if let [op] = ops
            && op.flags & UNDO == 0
            && let Some(answer) = perform::single(self.array, process::number(), *op)
        {
            return answer;
        }
        perform::set(self.array, ops, timeout)
    }

    fn takes(&self, nums: &[u16], flags: i16, timeout: Option<u64>) -> bool {
        let name = process::number();
        match self.semop(&of_each(nums, -1, flags), timeout) {
            Ok(_) => {}
            Err(libc::EAGAIN) if timeout.is_some() || flags & NO_WAIT != 0 => return false,
            Err(libc::EIDRM | libc::EINVAL) if self.array.is_gone() => return false,
            Err(error) => panic!("errno {error}"),
        }
        for &num in nums {
            self.inside[num as usize].store(name, Relaxed);
        }
        for &num in nums {
            let seen = self.inside[num as usize].load(Relaxed);
            assert!(seen == name || self.has_more.load(Relaxed) != 0, "{seen} has semaphore {num}, too");
        }
        match self.semop(&of_each(nums, 1, flags & UNDO), None) {
            Ok(_) => true,
            Err(libc::EINVAL) if self.array.is_gone() => false,
            Err(error) => panic!("errno {error}"),
        }
    }

    fn plays(&self, role: Role) {
        match role {
            Takes(nums) => _ = self.takes(nums, 0, None),
            Undoes(nums) => _ = self.takes(nums, UNDO, None),
            Owes(nums) => {
                self.semop(&of_each(nums, -1, UNDO), None).unwrap();
                process::end();
            }
            Tries(nums) => _ = self.takes(nums, NO_WAIT, None),
            Soon(nums) => _ = self.takes(nums, 0, Some(1)),
            AwaitsZero => _ = self.semop(&[op(0, 0, 0), op(1, 0, 0)], None).unwrap(),
            Keeps => _ = self.semop(&[op(0, -1, 0)], None).unwrap(),
            KeepsBoth => _ = self.semop(&[op(0, -1, 0), op(1, -1, 0)], None).unwrap(),
            Posts(by) => _ = self.semop(&[op(0, by, 0)], None).unwrap(),
            Sets(value) => self.sets(value),
            Reads => Section::enter(self.array).unwrap().leave(),
            Removes => {
                let mut section = Section::enter(self.array).unwrap();
                section.end();
                section.leave();
            }
        }
    }

    /// As SETVAL of the first semaphore.
    fn sets(&self, value: u16) {
        let mut section = Section::enter(self.array).unwrap();
        section.mark_one(0);
        self.array.entry(0).unwrap().store(Change { num: 0, value, adjustment: None }.pack(), Relaxed);
        let process = process::number();
        section.commit(1, Actor { process, row: None, slot: None, sets: true });
        section.settle(None);
        section.unmark_one(0);
        section.leave();
    }

    fn spawn(self: &Arc<Self>, role: Role) -> thread::JoinHandle<()> {
        with(self, move |place| place.plays(role))
    }

    /// A thread that performs `ops` when others have had the time to fall asleep.
    fn posts_late(self: &Arc<Self>, ops: Vec<Op>) -> thread::JoinHandle<()> {
        with(self, move |place| {
            (0..60).for_each(|_| yield_now());
            place.semop(&ops, None).unwrap();
        })
    }

    /// The values, once all that the dead owe is back, and no set sleeps.
    fn values(&self) -> [i32; 2] {
        let section = Section::enter(self.array).unwrap();
        section.leave();
        assert_eq!(self.array.head().queued.load(Relaxed), 0, "a set is left in the queue");
        [0, 1].map(|num| self.array.load(num).value())
    }
}

/// Threads that play these roles, on semaphores with these values; which are so at the end, too.
fn play<const N: usize>(values: [i16; 2], roles: [Role; N], after: [i32; 2]) -> impl Fn() + Clone + 'static {
    move || {
        let place = Place::new(values);
        let threads: Vec<_> = roles.into_iter().map(|role| place.spawn(role)).collect();
        threads.into_iter().for_each(|thread| _ = thread.join());
        assert_eq!(place.values(), after);
    }
}

/// The same behind a thread that has both semaphores first, and never dies.
fn behind<const N: usize>(roles: [Role; N], looks: bool) -> impl Fn() + Clone + 'static {
    move || {
        LOOKS.set(looks);
        let place = Place::new([0, 0]);
        let threads: Vec<_> = roles.into_iter().map(|role| place.spawn(role)).collect();
        (0..40 * N).for_each(|_| yield_now()); // So many steps that all others are asleep, mostly.
        place.semop(&[op(0, 1, 0), op(1, 1, 0)], None).unwrap();
        threads.into_iter().for_each(|thread| _ = thread.join());
        assert_eq!(place.values(), [1, 1]);
    }
}

/// `executions` by chance, half of them under each kernel. The kernels differ in some deaths only,
/// so each has executions of its own.
fn under(kernel: Kernel, executions: u64) -> Config {
    Config { timeouts: false, kernel, seed: kernel as u64, ..Config::sampled(executions.div_ceil(2)) }
}

fn sampled(threads: u64, kernel: Kernel) -> Config {
    under(kernel, 6_000 / threads)
}

/// Sleepers do not look, and no thread dies: each wake-up comes.
#[test]
fn sets_are_performed_whole_and_no_thread_sleeps_for_ever() {
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), play([1, 1], [Takes(BOTH), Takes(BOTH)], [1, 1]));
        explore(sampled(3, kernel), play([1, 1], [Takes(FIRST), Takes(SECOND), Takes(BOTH)], [1, 1]));
        explore(sampled(3, kernel), play([1, 1], [Undoes(BOTH), Tries(FIRST), Takes(BOTH)], [1, 1]));
        explore(sampled(3, kernel), behind([Takes(BOTH), Takes(FIRST), Undoes(SECOND)], false));
        explore(sampled(4, kernel), behind([Takes(FIRST), Takes(BOTH), Takes(FIRST), Takes(SECOND)], false));
    }
}

/// A semaphore that is zero only between two calls, or within a set's settling, is seen.
#[test]
fn whoever_waits_for_zero_sees_each_zero() {
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), play([1, 0], [AwaitsZero, Keeps], [0, 0]));
        explore(sampled(4, kernel), play([1, 0], [AwaitsZero, Keeps, Posts(1), Keeps], [0, 0]));
        explore(sampled(3, kernel), play([0, 1], [AwaitsZero, KeepsBoth, Posts(1)], [0, 0]));
        explore(sampled(3, kernel), play([2, 0], [AwaitsZero, Sets(0), AwaitsZero], [0, 0]));
    }
}

#[test]
fn one_post_and_one_value_complete_several_sleepers() {
    for kernel in Kernel::ALL {
        explore(sampled(4, kernel), play([0, 0], [Keeps, Keeps, Keeps, Posts(3)], [0, 0]));
        explore(sampled(4, kernel), play([0, 0], [Keeps, Keeps, Posts(1), Posts(1)], [0, 0]));
        explore(sampled(3, kernel), play([0, 0], [Takes(FIRST), Takes(FIRST), Sets(1)], [1, 0]));
    }
}

#[test]
fn a_deadline_takes_no_permit_along() {
    for kernel in Kernel::ALL {
        let config = |threads| Config { timeouts: true, ..sampled(threads, kernel) };
        explore(config(3), behind([Soon(BOTH), Takes(FIRST), Soon(FIRST)], false));
        explore(config(3), play([1, 1], [Soon(BOTH), Takes(BOTH), Soon(FIRST)], [1, 1]));
    }
}

#[test]
fn a_removal_ends_all_sleepers() {
    let model = || {
        let place = Place::new([0, 0]);
        let threads: Vec<_> = [Takes(BOTH), Takes(FIRST), Removes].map(|role| place.spawn(role)).into();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(Section::enter(place.array).err(), Some(libc::EINVAL));
    };
    for kernel in Kernel::ALL {
        explore(sampled(3, kernel), model);
    }
}

/// Explores `model` with a death of `thread` at each of its steps.
fn dies_at_each_step(thread: usize, kernel: Kernel, executions: u64, model: impl Fn() + Clone + 'static) {
    let mut last = 0; // The last step that any execution has reached.
    for step in 0.. {
        let deaths = Deaths::At { thread, step };
        let half = under(kernel, executions);
        let config = Config {
            deaths,
            timeouts: true,
            spurious: 0,
            // Sleepers look often.
            max_steps: 60_000,
            // Other executions for each step.
            seed: 2 * step as u64 + half.seed,
            ..half
        };
        let died = explore(config, model.clone()).deaths != 0;
        last = if died { step } else { last };
        if step > last + 9 {
            assert!(last > 60, "{last} steps are too few");
            break;
        }
    }
}

/// What a dead process took with adjustments comes back, its sets are whole, and it strands nobody:
/// sleepers look now and then.
#[test]
fn a_death_at_any_step_loses_nothing_that_is_to_be_undone() {
    for kernel in Kernel::ALL {
        let first_dies = |roles: [Role; 3]| {
            move || {
                LOOKS.set(true);
                play([1, 1], roles, [1, 1])();
            }
        };
        dies_at_each_step(1, kernel, 3, first_dies([Undoes(BOTH), Takes(FIRST), Undoes(BOTH)]));
        dies_at_each_step(1, kernel, 3, first_dies([Undoes(FIRST), Undoes(BOTH), Takes(SECOND)]));
        dies_at_each_step(1, kernel, 3, behind([Undoes(BOTH), Takes(BOTH), Undoes(FIRST)], true));
    }
}

/// A thread that sleeps looks more often once another process has adjustments. So it is woken then.
#[test]
fn a_sleeper_is_told_when_another_process_has_adjustments() {
    let model = || {
        let place = Place::new([1, 0]);
        let sleeper = place.spawn(KeepsBoth);
        (0..200).for_each(|_| yield_now()); // So many steps that it is asleep, mostly.
        let queued = place.array.head().queued.load(Relaxed);
        let bell = || place.array.sleeper(0).unwrap().bell.load(Relaxed);
        let before = bell();
        place.semop(&[op(0, -1, UNDO)], None).unwrap();
        assert!(queued == 0 || bell() != before, "it looks each second, as before");
        place.semop(&[op(0, 1, UNDO), op(1, 1, 0)], None).unwrap();
        sleeper.join().unwrap();
        assert_eq!(place.values(), [0, 0]);
    };
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), model);
    }
}

/// A thread that dies while it gives back what a dead one owed. A permit that is taken without the
/// lock then stays taken: the next thread does not write the value from before.
#[test]
fn a_death_at_any_step_of_giving_back_gives_no_permit_twice() {
    let model = || {
        let place = Place::new([1, 1]);
        place.spawn(Owes(BOTH)).join().unwrap();
        _ = place.spawn(Reads).join();
        let taken = perform::single(place.array, process::number(), op(0, -1, NO_WAIT)) == Some(Ok(0));
        assert_eq!(place.values(), [i32::from(!taken), 1]);
    };
    for kernel in Kernel::ALL {
        dies_at_each_step(2, kernel, 1, model);
    }
}

/// A thread that dies while it completes others' sets has completed all of one, or nothing.
#[test]
fn a_poster_that_dies_at_any_step_has_posted_or_not() {
    let model = || {
        LOOKS.set(true);
        let place = Place::new([0, 0]);
        let poster = place.posts_late(vec![op(0, 1, 0), op(1, 1, 0)]);
        let sleepers = [Takes(FIRST), Undoes(BOTH)].map(|role| place.spawn(role));
        let died = poster.join().is_err();
        if died {
            place.has_more.store(1, Relaxed);
            place.semop(&[op(0, 1, 0), op(1, 1, 0)], None).unwrap();
        }
        sleepers.into_iter().for_each(|thread| thread.join().unwrap());
        let values = place.values();
        assert!(values == [1, 1] || (died && values == [2, 2]), "a set was performed in part: {values:?}");
    };
    for kernel in Kernel::ALL {
        dies_at_each_step(1, kernel, 3, model);
    }
}

/// A thread that dies after its change, and before it has completed the set that this has made
/// possible: the sleeper finds that, though no other thread comes to the array.
#[test]
fn a_sleeper_whose_condition_came_true_does_not_wait_for_a_dead_poster() {
    let model = || {
        LOOKS.set(true);
        let place = Place::new([0, 0]);
        let poster = place.posts_late(vec![op(0, 1, 0)]);
        let sleeper = with(&place, |place| {
            place.semop(&[op(0, -1, 0)], None).unwrap();
            place.inside[0].store(1, Relaxed);
        });
        let died = poster.join().is_err();
        let head = place.array.head();
        let has_posted = head.journal.state.load(Relaxed) != 0 || place.array.load(0).value() != 0;
        // A sleeper that has taken the permit, but has not returned yet, may be given another one.
        let more = i32::from(died && !has_posted && place.inside[0].load(Relaxed) == 0);
        if more != 0 {
            place.semop(&[op(0, 1, 0)], None).unwrap();
        }
        sleeper.join().unwrap();
        let [value, other] = place.values();
        assert!(other == 0 && (0..=more).contains(&value), "value {value}, and {more} more");
    };
    for kernel in Kernel::ALL {
        dies_at_each_step(1, kernel, 3, model);
    }
}

/// A permit that comes after the death of a sleeper is not given to the dead one.
#[test]
fn a_sleeper_that_dies_at_any_step_takes_nothing_that_comes_later() {
    let model = || {
        let place = Place::new([0, 0]);
        let [dying, other] = [Keeps, Keeps].map(|role| place.spawn(role));
        // The slot of a process has the number of its thread, and the next one as its identity.
        let is_dead = || {
            let registry = registry::get().unwrap();
            registry.processes[1].identity.load(Relaxed) != 0 && process::is_suspect(registry, 1, 2)
        };
        // So many steps that both are asleep, or one is dead and the other asleep, mostly.
        (0..400).for_each(|_| yield_now());
        let permits = if is_dead() { 1 } else { 2 };
        place.semop(&[op(0, permits, 0)], None).unwrap();
        other.join().unwrap();
        if dying.join().is_ok() {
            assert_eq!(place.values(), [0, 0]);
        }
    };
    for kernel in Kernel::ALL {
        dies_at_each_step(1, kernel, 3, model);
    }
}

/// A thread that dies with the array lock, or before it has woken the next, leaves no thread that
/// waits for the lock.
#[test]
fn a_waiter_for_the_lock_does_not_wait_for_the_dead() {
    for kernel in Kernel::ALL {
        for step in 0..400 {
            let deaths = Deaths::At { thread: 1, step };
            let config = Config { deaths, ..sampled(1_000, kernel) };
            explore(config, || {
                let place = Place::new([3, 3]);
                let threads = [(); 3].map(|()| place.spawn(KeepsBoth));
                threads.into_iter().for_each(|thread| _ = thread.join());
                place.values();
            });
        }
    }
}
