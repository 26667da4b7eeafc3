//! Events for `tracing`, with a subscriber that takes a checked lock itself.

#![cfg(all(feature = "tracing", not(any(ulocks_loom, ulocks_vm))))]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use ulocks_debug::{Class, Mutex, Policy, Report, Rule, RwLock, held, set_policy};
use ulocks_testkit as _;

type Fields = BTreeMap<&'static str, String>;

static SUBSCRIBER: Class = Class::new("subscriber");
/// What the subscriber has got. It takes this lock for each event.
static EVENTS: Mutex<Vec<(Level, Fields)>> = Mutex::new_in(&SUBSCRIBER, Vec::new());
static REPORTS: AtomicUsize = AtomicUsize::new(0);

struct Collect;

struct Read<'a>(&'a mut Fields);

impl Visit for Read<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber> Layer<S> for Collect {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        assert_eq!(event.metadata().target(), "ulocks_debug");
        let mut fields = Fields::new();
        event.record(&mut Read(&mut fields));
        EVENTS.lock().push((*event.metadata().level(), fields));
    }
}

fn count(report: &Report) {
    REPORTS.fetch_add(1, Relaxed);
    println!("{report}");
}

/// Waits until a thread waits for the lock of this name.
fn await_waiter(name: &str) {
    let is_so = || held().locks().iter().any(|held| held.lock.name == name && held.waiters > 0);
    ulocks_testkit::limit::until(&format!("a thread waits for `{name}`"), is_so);
}

#[test]
fn contended_acquisitions_and_reports_are_events() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Collect)).unwrap();
    set_policy(Policy::Call(count));
    a_contended_acquisition();
    a_contended_read();
    the_lock_of_the_subscriber();
    an_event_that_has_to_wait();
    many_threads();
    assert_eq!(REPORTS.load(Relaxed), 0);
    a_report();
    a_report_under_the_lock_of_the_subscriber();
}

/// The event has the places, and comes when the thread holds nothing.
fn a_contended_acquisition() {
    static NAME: Class = Class::new("plain");
    let (lock, outer) = (Mutex::new_in(&NAME, ()), Mutex::new(()));
    let guard = lock.lock();
    let mut line = 0;
    thread::scope(|scope| {
        let line = &mut line;
        let (lock, outer) = (&lock, &outer);
        scope.spawn(move || {
            let in_outer = outer.lock();
            *line = line!() + 1;
            drop(lock.lock());
            assert!(EVENTS.lock().is_empty(), "an event of a thread that holds a lock");
            drop(in_outer);
        });
        await_waiter("plain");
        drop(guard);
    });
    let events = std::mem::take(&mut *EVENTS.lock());
    let [(Level::DEBUG, fields)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(fields["lock"], "\"plain\"");
    assert!(fields["at"].starts_with(&format!("{}:{line}:", file!())), "{fields:?}");
    assert!(fields["made"].starts_with(file!()), "{fields:?}");
    assert!(fields["waited_ns"].parse::<u64>().unwrap() > 0, "{fields:?}");
    assert_eq!(fields["message"], "a contended acquisition");
}

/// The release of a reader-writer lock makes the events that wait, for a reader and a writer.
fn a_contended_read() {
    static NAME: Class = Class::new("shared");
    let lock = RwLock::new_in(&NAME, ());
    let guard = lock.write();
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.read()));
        await_waiter("shared");
        drop(guard);
    });
    let guard = lock.read();
    thread::scope(|scope| {
        scope.spawn(|| drop(lock.write()));
        await_waiter("shared");
        drop(guard);
    });
    let events = std::mem::take(&mut *EVENTS.lock());
    let names: Vec<&str> = events.iter().map(|(_, fields)| fields["lock"].as_str()).collect();
    assert_eq!(names, ["\"shared\""; 2], "{events:?}");
}

/// The user takes the lock that the subscriber takes, with contention.
fn the_lock_of_the_subscriber() {
    let guard = EVENTS.lock();
    thread::scope(|scope| {
        scope.spawn(|| EVENTS.lock().clear());
        await_waiter("subscriber");
        drop(guard);
    });
    let events = std::mem::take(&mut *EVENTS.lock());
    let [(Level::DEBUG, fields)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(fields["lock"], "\"subscriber\"");
}

/// The subscriber finds its lock taken, while the checker runs it. That wait is no event.
fn an_event_that_has_to_wait() {
    static NAME: Class = Class::new("awaited");
    let lock = Mutex::new_in(&NAME, ());
    let guard = lock.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            drop(lock.lock());
            drop(lock.lock()); // would make the events that are still on their way
        });
        await_waiter("awaited");
        let in_subscriber = EVENTS.lock();
        drop(guard);
        await_waiter("subscriber");
        drop(in_subscriber);
    });
    let events = std::mem::take(&mut *EVENTS.lock());
    let names: Vec<&str> = events.iter().map(|(_, fields)| fields["lock"].as_str()).collect();
    assert_eq!(names, ["\"awaited\""], "an event of an event: {events:?}");
}

/// Events of many threads, which contend for the subscriber's lock, too. No thread makes an event
/// of that inside of an event: there is one for each contended acquisition of the user at most.
fn many_threads() {
    const ROUNDS: usize = 300;
    const THREADS: usize = 4;
    let lock = Mutex::new(0);
    // On a slow machine one thread would be through before the next one has begun.
    let begin = std::sync::Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                begin.wait();
                for _ in 0..ROUNDS {
                    let mut guard = lock.lock();
                    thread::yield_now();
                    *guard += 1;
                }
            });
        }
    });
    let events = std::mem::take(&mut *EVENTS.lock());
    assert!((1..=THREADS * ROUNDS).contains(&events.len()), "{} events", events.len());
    let is_own = |fields: &Fields| fields["lock"] == "\"subscriber\"";
    assert!(!events.iter().any(|(_, fields)| is_own(fields)), "an event of an event");
    println!("{} events", events.len());
}

fn a_report() {
    let (first, second) = (Mutex::new(()), Mutex::new(()));
    drop((first.lock(), second.lock()));
    let in_second = second.lock();
    drop(first.lock());
    drop(in_second);
    assert_eq!(REPORTS.swap(0, Relaxed), 1);
    let events = std::mem::take(&mut *EVENTS.lock());
    let [(Level::ERROR, fields)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(fields["rule"], format!("{:?}", Rule::Order));
    assert!(fields["here"].starts_with(file!()) && fields["before"].starts_with(file!()), "{fields:?}");
    assert!(fields["message"].contains("inversion"), "{fields:?}");
}

/// The subscriber then asks for a lock that its thread holds. That is a report, and no event.
fn a_report_under_the_lock_of_the_subscriber() {
    fn panics(report: &Report) {
        REPORTS.fetch_add(1, Relaxed);
        std::panic::resume_unwind(Box::new(report.rule()));
    }
    set_policy(Policy::Call(panics));
    let result = thread::spawn(|| {
        let _held = EVENTS.lock();
        drop(EVENTS.lock());
    });
    let rule = *result.join().unwrap_err().downcast::<Rule>().unwrap();
    assert_eq!(rule, Rule::NoRecursion);
    assert_eq!(REPORTS.swap(0, Relaxed), 1);
    assert!(EVENTS.lock().is_empty());
}
