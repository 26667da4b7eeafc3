use super::*;
use std::collections::HashSet;
use std::sync::mpsc::channel;

#[test]
fn names_are_unique() {
    let names: HashSet<&str> = Entry::all().iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), Entry::all().len());
    let error = Entry::find("rwlock").unwrap_err().to_string();
    assert!(error.starts_with("unknown reader-writer lock 'rwlock'; allowed: std-rw, "), "{error}");
}

/// What the registry says of a lock is what its type says.
struct Agrees;

impl Visitor for Agrees {
    type Output = ();

    fn visit<L: RwLock>(self, entry: &'static Entry) {
        let said = (entry.urgent, entry.nested, entry.handler, entry.timed_mask);
        assert_eq!(said, (L::URGENT, L::NESTED, L::HANDLER, L::TIMED_MASK), "{}", entry.name);
    }
}

/// Which holders may have the lock together, by all functions.
struct Excludes;

impl Visitor for Excludes {
    type Output = ();

    fn visit<L: RwLock>(self, entry: &'static Entry) {
        let placed = Placed::<L>::new().unwrap();
        let lock = placed.lock();
        let elsewhere = || {
            // One at a time: a guard in an array would be held until the array is complete.
            let look = || {
                let alone = lock.try_write().is_some();
                let shared = lock.try_read::<Bulk>().is_some();
                let urgent = lock.try_read::<Urgent>().is_some();
                [alone, shared, urgent]
            };
            std::thread::scope(|s| s.spawn(look).join().unwrap())
        };
        let name = entry.name;
        assert_eq!(elsewhere(), [true; 3], "{name}: free");
        {
            let _held = lock.write();
            assert_eq!(elsewhere(), [false; 3], "{name}: written");
        }
        {
            let _held = lock.try_write().unwrap();
            assert_eq!(elsewhere(), [false; 3], "{name}: written after a try");
        }
        {
            let _held = lock.read::<Bulk>();
            assert_eq!(elsewhere(), [false, true, true], "{name}: read");
        }
        {
            let _held = lock.try_read::<Urgent>().unwrap();
            assert_eq!(elsewhere(), [false, true, true], "{name}: read in a hurry");
        }
        if L::NESTED {
            let _below = lock.read::<Bulk>();
            let _held = lock.read::<Nested>();
            assert_eq!(elsewhere(), [false, true, true], "{name}: read twice");
        }
        assert_eq!(elsewhere(), [true; 3], "{name}: free again");
    }
}

/// A writer gets the lock when the reader has let go.
struct Waits;

impl Visitor for Waits {
    type Output = ();

    fn visit<L: RwLock>(self, entry: &'static Entry) {
        let placed = Placed::<L>::new().unwrap();
        let lock = placed.lock();
        let (say, hear) = channel();
        std::thread::scope(|s| {
            let held = lock.read::<Bulk>();
            let first = say.clone();
            s.spawn(move || {
                let _held = lock.write();
                say.send("writer").unwrap();
            });
            // Long enough that the writer sleeps more often than not; the order must hold either
            // way.
            std::thread::sleep(std::time::Duration::from_millis(2));
            first.send("reader").unwrap();
            drop(held);
        });
        assert_eq!(hear.iter().collect::<Vec<_>>(), ["reader", "writer"], "{}", entry.name);
    }
}

#[test]
fn locks_are_what_they_are_said_to_be() {
    for entry in Entry::all() {
        visit(entry, Agrees);
        visit(entry, Excludes);
        visit(entry, Waits);
    }
}
