//! Handlers that read, and strike anywhere: readers and writers, inside and in line, asleep and on
//! their way out.
//!
//! What is promised, and asserted in the handlers: on a thread that reads, and on the only thread
//! that writes, a handler gets in at once, whatever writers wait for. On others it may find the
//! lock being written, and fails.

use crate::place::{Of, Place, Role, soon};
use crate::{FOUR, Sleeps, sampled};
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::atomic::AtomicUsize;
use ulocks_core::Private;
use ulocks_core::model::signal::{self, Signal};
use ulocks_core::model::{Config, explore, thread};
use ulocks_core::raw::RawRwLock;
use ulocks_core::signal::{Context, Hard, Mask, Soft, dispatch};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{self, interruption_point, spin_until};
use ulocks_psrwlock::{
    ByClass, Central, Configuration, Eager, Nested, Partial, PhaseFair, PsRwLockUpgradableReadGuard,
    PsRwLockWith, Sifted, Unchecked,
};
use ulocks_testkit::thread::{Arc, spawn, together, with};

/// A lock of all classes, by its mask.
type Masked<M, P = Sleeps, R = Central> = Sifted<FOUR, P, PhaseFair, R, M, Unchecked>;

const USR1: Signal = Signal::new(10);
const USR2: Signal = Signal::new(12);

/// How a handler of that mask is installed: wrapped for the soft one, bare for the real one. They
/// keep each other out.
trait Installs: Mask {
    fn install(signal: Signal, handler: impl Fn(&Context<'_>) + Clone + 'static);
}

impl Installs for Soft {
    fn install(signal: Signal, handler: impl Fn(&Context<'_>) + Clone + 'static) {
        signal::install(signal, u32::MAX, move || dispatch(signal.number().into(), handler.clone()));
    }
}

impl Installs for Hard {
    fn install(signal: Signal, handler: impl Fn(&Context<'_>) + Clone + 'static) {
        signal::install(signal, u32::MAX, move || {
            // SAFETY: this is the handler; the lock's mask is `Hard`, of all signals; the handlers
            // mask each other.
            handler(&unsafe { Context::assume(signal.number().into()) });
        });
    }
}

/// What the handlers of an execution know beside what they see. No part of what is explored: of
/// real atomics.
#[derive(Default)]
struct Known {
    /// By thread: whether its handler has to get in.
    gets_in: [AtomicBool; 20],
    handled: AtomicUsize,
    /// Whether a handler inside has seen its class shut.
    shut: AtomicBool,
}

impl Known {
    /// From here on, or until here, a handler on the calling thread gets in.
    fn handlers_get_in(&self, is_so: bool) {
        self.gets_in[thread::current()].store(is_so, SeqCst);
    }
}

/// A handler: reads if it can, and looks.
fn handle<D: Configuration>(place: &Place<D>, known: &Known, context: &Context<'_>) {
    known.handled.fetch_add(1, SeqCst);
    match place.lock.read_in_handler(context) {
        Some(token) => _ = place.leave(token),
        None => {
            let me = thread::current();
            assert!(
                !known.gets_in[me].load(SeqCst),
                "a handler is shut out by the thread that it interrupts"
            );
        }
    }
}

/// Reads, and knows when its handlers have to get in.
fn read<D: Configuration>(place: &Place<D>, known: &Known, class: Of) {
    let token = place.read_of(class);
    known.handlers_get_in(true);
    let seen = place.look();
    interruption_point();
    assert_eq!(place.look(), seen, "somebody wrote beside a reader");
    known.handlers_get_in(false);
    place.leave(token);
}

/// Threads that play `roles`, the first the only writer among them, each struck up to twice by two
/// signals.
fn struck<D: Configuration<Mask: Installs>>(roles: &'static [Role], times: u8) {
    let (place, known) = (Place::<D>::new(), Arc::new(Known::default()));
    for signal in [USR1, USR2] {
        let (place, known) = (Arc::clone(&place), Arc::clone(&known));
        let handler = move |context: &Context<'_>| handle(&place, &known, context);
        <D::Mask as Installs>::install(signal, handler);
    }
    let shared = Arc::clone(&place);
    let counts = together(roles.len(), move |me| {
        signal::arm(USR1, times);
        signal::arm(USR2, 1);
        let count = match roles[me] {
            Role::Read(class) => {
                read(&shared, &known, class);
                0
            }
            role if me == 0 => {
                known.handlers_get_in(true);
                shared.play(role) + shared.play(role)
            }
            role => shared.play(role),
        };
        known.handlers_get_in(false);
        signal::mask(u32::MAX);
        count
    });
    place.check_at_rest(counts.into_iter().sum());
}

const BULK_READ: Role = Role::Read(Of::Bulk);
const URGENT_READ: Role = Role::Read(Of::Urgent);
const NESTED_READ: Role = Role::Read(Of::Nested);
/// Each way to write, beside readers of each class.
fn one_writer<D: Configuration<Mask: Installs>>(seed: u64) {
    macro_rules! beside {
        ($($role:ident)*) => {$({
            const FEW: &[Role] = &[Role::$role, BULK_READ];
            const MANY: &[Role] =
                &[Role::$role, BULK_READ, URGENT_READ, NESTED_READ, Role::TimedRead(Of::Bulk), Role::Nest];
            explore(sampled(4, seed), || struck::<D>(FEW, 2));
            explore(sampled(12, seed), || struck::<D>(MANY, 1));
        })*};
    }
    beside!(Write TimedWrite TryWrite FairWrite Downgrade Upgrade TimedUpgrade TryUpgrade FairUpgradable UpAndDown);
}

#[test]
fn handlers_read_wherever_they_strike() {
    one_writer::<Masked<Soft>>(1);
    one_writer::<Masked<Hard>>(2);
    one_writer::<Masked<Soft, Private, Eager>>(3);
    one_writer::<Sifted<FOUR, Sleeps, PhaseFair, Eager, Hard, Unchecked>>(4);
}

/// Several writers, which wait for each other in all ways, and are struck meanwhile.
#[test]
fn handlers_strike_those_who_wait_for_each_other() {
    const ROLES: &[Role] = &[
        Role::Write,
        Role::TimedWrite,
        BULK_READ,
        Role::Upgrade,
        Role::FairWrite,
        Role::TimedUpgrade,
        Role::TimedRead(Of::Urgent),
        NESTED_READ,
    ];
    fn crowd<D: Configuration<Mask: Installs>>() {
        let (place, known) = (Place::<D>::new(), Arc::new(Known::default()));
        let handled = Arc::clone(&place);
        D::Mask::install(USR1, move |context| handle(&handled, &known, context));
        let shared = Arc::clone(&place);
        let counts = together(ROLES.len(), move |me| {
            signal::arm(USR1, 1);
            let count = shared.play(ROLES[me]);
            signal::mask(u32::MAX);
            count
        });
        place.check_at_rest(counts.into_iter().sum());
    }
    explore(sampled(4, 1), crowd::<Masked<Soft>>);
    explore(sampled(4, 2), crowd::<Masked<Hard>>);
}

/// A handler is inside on one thread while another thread's write gives up in its last stage, and
/// that one is struck too.
fn gives_up_in_the_last_stage<D: Configuration<Mask: Installs>>(in_the_last: &AtomicUsize) {
    let (place, known) = (Place::<D>::new(), Arc::new(Known::default()));
    let gave_up = Arc::new(sync::AtomicBool::new(false));
    let (in_handler, given_up, shut) = (Arc::clone(&place), Arc::clone(&gave_up), Arc::clone(&known));
    D::Mask::install(USR1, move |context| {
        let token = in_handler.lock.read_in_handler(context).expect("nobody else writes");
        // The last class is shut for this one, or the writer has given up on the way.
        spin_until(|| {
            let is_shut = in_handler.lock.state().level() == 4;
            shut.shut.fetch_or(is_shut, SeqCst);
            is_shut || given_up.load(Relaxed)
        });
        spin_until(|| in_handler.lock.state().level() == 0);
        in_handler.leave(token);
    });
    let (beside, known_to_it) = (Arc::clone(&place), Arc::clone(&known));
    D::Mask::install(USR2, move |context| handle(&beside, &known_to_it, context));
    let writer = {
        let (place, known) = (Arc::clone(&place), Arc::clone(&known));
        spawn(move || {
            signal::arm(USR2, 2);
            known.handlers_get_in(true);
            spin_until(|| !place.lock.state().has_no_readers());
            let written = place.lock.write_until(soon()).is_some();
            if written {
                place.count_and_leave();
            }
            gave_up.store(true, Relaxed);
            let token = place.read_of(Of::Bulk);
            place.leave(token);
            signal::mask(u32::MAX);
            usize::from(written)
        })
    };
    signal::send(0, USR1);
    let written = writer.join().expect("the writer panicked");
    place.check_at_rest(written);
    if known.shut.load(SeqCst) && written == 0 {
        in_the_last.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_write_gives_up_although_a_handler_stays() {
    let in_the_last = Arc::new(AtomicUsize::new(0));
    let (soft, hard) = (Arc::clone(&in_the_last), Arc::clone(&in_the_last));
    let before = explore(sampled(2, 1), move || gives_up_in_the_last_stage::<Masked<Soft>>(&soft)).executions;
    let after = explore(sampled(2, 2), move || gives_up_in_the_last_stage::<Masked<Hard>>(&hard)).executions;
    let (often, all) = (in_the_last.load(SeqCst) as u64, before + after);
    assert!(often > all / 4, "only {often} of {all} executions come to the last stage");
}

/// A thread holds a lock of a lower class, and its handler comes in however long a writer waits for
/// that thread: the writer has shut no class above.
#[test]
fn a_handler_gets_in_beside_a_writer_that_waits_for_its_thread() {
    fn client<D: Configuration<Mask: Installs>>(class: Of) {
        let (place, known) = (Place::<D>::new(), Arc::new(Known::default()));
        let handled = Arc::clone(&place);
        let seen = Arc::clone(&known);
        D::Mask::install(USR1, move |context| handle(&handled, &seen, context));
        let token = place.read_of(class);
        let writer = with(&place, |place| place.play(Role::Write));
        known.handlers_get_in(true);
        // All below are shut, and the writer waits for this thread.
        spin_until(|| place.lock.state().level() == class as u32 + 1);
        signal::send(0, USR1);
        assert_eq!(known.handled.load(SeqCst), 1, "the signal was not delivered");
        known.handlers_get_in(false);
        place.leave(token);
        assert_eq!(writer.join().expect("the writer panicked"), 1);
        place.check_at_rest(1);
    }
    for class in [Of::Bulk, Of::Urgent, Of::Nested] {
        explore(sampled(2, 1), move || client::<Masked<Soft>>(class));
        explore(sampled(2, 2), move || client::<Masked<Hard>>(class));
    }
}

/// A synchronous signal strikes in the midst of what its thread writes: it cannot wait, and its
/// handler fails at once.
#[test]
fn the_handler_of_a_fault_fails_where_its_thread_writes() {
    const SEGV: Signal = Signal::new(11);
    explore(sampled(2, 1), || {
        let place = Place::<Masked<Soft>>::new();
        let handled = Arc::clone(&place);
        <Soft as Installs>::install(SEGV, move |context| {
            assert!(context.is_synchronous());
            assert!(handled.lock.read_in_handler(context).is_none(), "a reader beside the writer");
        });
        place.lock.write();
        place.count();
        signal::send(0, SEGV);
        place.count_and_leave();
        place.check_at_rest(2);
    });
}

/// The first is the only writer.
#[test]
fn a_handler_beside_one_writer_gets_in_and_is_waited_for() {
    const ROLES: &[Role] = &[Role::Write, BULK_READ];
    explore(Config::sampled(2_000), || struck::<Masked<Soft>>(ROLES, 2));
    explore(Config::sampled(2_000), || struck::<Masked<Soft, Sleeps, Eager>>(ROLES, 2));
    explore(Config::sampled(2_000), || struck::<Masked<Soft>>(ROLES, 1));
}

/// A write in two phases beside readers, with all threads struck: it shuts out all classes of
/// threads, and then upgrades. With a deadline they may be let in again.
fn two_phases<D: Configuration<Mask: Installs>>(in_time: bool) {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let known = Arc::new(Known::default());
    let (handled, knows) = (Arc::clone(&lock), Arc::clone(&known));
    D::Mask::install(USR1, move |context| match handled.read_handler(context) {
        Some(guard) => assert!(*guard <= 1),
        None => {
            let me = thread::current();
            assert!(
                !knows.gets_in[me].load(SeqCst),
                "a handler is shut out by the thread that it interrupts"
            );
        }
    });
    let readers: Vec<_> = (0..2)
        .map(|me| {
            with(&lock, move |lock| {
                signal::arm(USR1, 1);
                let guard = if me == 0 { lock.read() } else { lock.read_in::<Nested>() };
                interruption_point();
                assert!(*guard <= 1);
                drop(guard);
                signal::mask(u32::MAX);
            })
        })
        .collect();
    signal::arm(USR1, 3);
    known.handlers_get_in(true);
    let mut guard = lock.upgradable_read();
    Partial::exclude::<Nested>(&mut guard);
    interruption_point();
    assert!(lock.try_read_in::<Nested>().is_none(), "a class that is shut lets readers in");
    let upgraded = if in_time {
        PsRwLockUpgradableReadGuard::try_upgrade_for(guard, core::time::Duration::from_millis(1))
    } else {
        Ok(PsRwLockUpgradableReadGuard::upgrade(guard))
    };
    let written = usize::from(upgraded.map(|mut guard| *guard += 1).is_ok());
    // Whatever was put aside has been handled, and nothing is masked any more.
    interruption_point();
    known.handlers_get_in(false);
    signal::mask(u32::MAX);
    readers.into_iter().for_each(|reader| reader.join().expect("a reader panicked"));
    let guard = lock.try_write().expect("try_write failed on a lock that nobody holds");
    assert_eq!(*guard, written, "updates were lost");
}

#[test]
fn handlers_get_in_between_the_phases_of_a_write() {
    fn check<D: Configuration<Mask: Installs>>(seed: u64) {
        for in_time in [false, true] {
            explore(sampled(3, seed), move || two_phases::<D>(in_time));
        }
    }
    check::<Masked<Soft>>(1);
    check::<Masked<Hard>>(2);
    check::<Masked<Soft, Private, Eager>>(3);
}
