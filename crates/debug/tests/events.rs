//! Events for `tracing`, with a subscriber that takes a checked lock itself.

#![cfg(all(feature = "tracing", not(any(ulocks_loom, ulocks_vm))))]

use std::{collections::BTreeMap, fmt::Debug, mem::take, thread, time::Duration};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use ulocks_debug::{Class, Mutex, Policy, RwLock, held, set_policy};

static SUBSCRIBER: Class = Class::new("subscriber");
static USER: Class = Class::new("user");
/// What the subscriber has got. It takes this lock for each event.
static EVENTS: Mutex<Vec<Fields>> = Mutex::new_in(&SUBSCRIBER, Vec::new());

#[derive(Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

struct Collect;

impl<S: Subscriber> Layer<S> for Collect {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        assert_eq!(event.metadata().target(), "ulocks_debug");
        let mut fields = Fields::default();
        event.record(&mut fields);
        fields.0.insert("level", event.metadata().level().to_string());
        EVENTS.lock().push(fields);
    }
}

#[test]
fn contended_acquisitions_and_reports_are_events() {
    let (lock, outer, rw) = (Mutex::new_in(&USER, ()), Mutex::new(()), RwLock::new_in(&USER, ()));
    let locks: Vec<_> = (0..65).map(|_| Mutex::new(())).collect();
    let in_another = || {
        let in_outer = outer.lock();
        drop(lock.lock());
        assert!(EVENTS.lock().is_empty(), "an event of a thread that holds a lock");
        drop(in_outer);
    };
    let a_subscriber_waits = || {
        let in_subscriber = EVENTS.lock();
        contend(
            "user",
            lock.lock(),
            || [(); 2].map(|()| drop(lock.lock())),
            || {
                await_waiter("subscriber");
                drop(in_subscriber);
            },
        );
    };
    let eighteen_under_a_lock = || {
        let _in_lock = lock.lock();
        let wait = || lock.try_lock_for(Duration::from_millis(1)).is_none();
        let all = || Some(outer.lock()).is_some_and(|_in_outer| (0..18).all(|_| wait()));
        assert!(thread::scope(|scope| scope.spawn(all).join().unwrap()));
    };
    let an_inversion = || {
        drop((outer.lock(), lock.lock()));
        let _in_lock = lock.lock();
        drop(outer.lock());
    };
    let a_self_deadlock_of_the_subscriber = || {
        set_policy(Policy::Call(|report| std::panic::resume_unwind(Box::new(report.rule()))));
        let twice = || (EVENTS.lock(), EVENTS.lock()).0.len();
        assert!(thread::scope(|scope| scope.spawn(twice).join().is_err()));
    };
    let of_subscriber = || contend("subscriber", EVENTS.lock(), || EVENTS.lock().clear(), || {});
    let too_many = || drop(locks.iter().map(|lock| lock.lock()).collect::<Vec<_>>());
    let (wait, missed) = ((Level::DEBUG, "lock", "\"user\""), (Level::DEBUG, "missed", "2"));
    let subscriber = (Level::DEBUG, "lock", "\"subscriber\"");
    let (order, at_most) = ((Level::ERROR, "rule", "Order"), (Level::WARN, "rule", "AtMost64"));
    // How many waits for the user's locks are events, and what follows them.
    let cases: [(_, &dyn Fn(), _, &[_]); _] = [
        ("in another lock", &|| contend("user", lock.lock(), in_another, || {}), 1, &[]),
        ("a reader", &|| contend("user", rw.write(), || drop(rw.read()), || {}), 1, &[]),
        ("a writer", &|| contend("user", rw.read(), || drop(rw.write()), || {}), 1, &[]),
        ("the lock of the subscriber", &of_subscriber, 0, &[subscriber]),
        ("an event of an event", &a_subscriber_waits, 1, &[]),
        ("more than 16", &eighteen_under_a_lock, 16, &[missed]),
        ("a fault", &an_inversion, 0, &[order]),
        ("a warning", &too_many, 0, &[at_most]),
        ("a fault of the subscriber", &a_self_deadlock_of_the_subscriber, 0, &[]),
    ];
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Collect)).unwrap();
    set_policy(Policy::Call(|_| {}));
    for (name, run, waits, others) in cases {
        run();
        let events = take(&mut *EVENTS.lock());
        assert_eq!(events.len(), waits + others.len(), "{name}: {events:#?}");
        let wanted = std::iter::repeat_n(&wait, waits).chain(others);
        for (Fields(event), (level, field, value)) in events.iter().zip(wanted) {
            assert!(event["level"] == level.as_str() && event[field] == *value, "{name}: {event:?}");
            let place = event.get(if *field == "rule" { "here" } else { "at" });
            assert!(*field == "missed" || place.unwrap().starts_with(file!()), "{name}: {event:?}");
            assert!(*field != "lock" || event["waited_ns"] != "0", "{name}: {event:?}");
        }
    }
}

/// Drops `guard` when a thread waits for a lock of this class, and goes on with `then`.
fn contend<G, T: Send>(class: &str, guard: G, waits: impl FnOnce() -> T + Send, then: impl FnOnce()) {
    thread::scope(|scope| {
        scope.spawn(waits);
        await_waiter(class);
        drop(guard);
        then();
    });
}

fn await_waiter(class: &str) {
    let is_so = || held().locks().iter().any(|held| held.lock.name == class && held.waiters > 0);
    ulocks_testkit::limit::until(&format!("a thread waits for `{class}`"), is_so);
}
