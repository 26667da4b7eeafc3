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

const ASKS: [Ask; 5] =
    [Ask::Write, Ask::TryWrite, Ask::Read(Rank::Bulk), Ask::Read(Rank::Urgent), Ask::TryRead];

/// Which holders may have a lock together, by all functions.
#[test]
fn locks_exclude_whom_they_should() {
    for entry in Entry::all() {
        let lock = (entry.place)().unwrap();
        // Whether another thread could write, and read.
        let elsewhere = || {
            let had = |ask| lock.once(ask, &mut || ()).is_some();
            std::thread::scope(|s| s.spawn(|| [Ask::TryWrite, Ask::TryRead].map(had)).join().unwrap())
        };
        let nested = entry.nested.then_some(Ask::Read(Rank::Nested));
        for ask in ASKS.into_iter().chain(nested) {
            let readers_beside = matches!(ask, Ask::Read(_) | Ask::TryRead);
            let mut seen = None;
            assert!(lock.once(ask, &mut || seen = Some(elsewhere())).is_some(), "{}: {ask:?}", entry.name);
            assert_eq!(seen, Some([false, readers_beside]), "{}: {ask:?}", entry.name);
            assert_eq!(elsewhere(), [true; 2], "{}: after {ask:?}", entry.name);
        }
        if entry.nested {
            let mut seen = None;
            lock.once(Ask::Read(Rank::Bulk), &mut || {
                lock.once(Ask::Read(Rank::Nested), &mut || seen = Some(elsewhere()));
                assert_eq!(elsewhere(), [false, true], "{}: still read", entry.name);
            });
            assert_eq!(seen, Some([false, true]), "{}: read twice", entry.name);
        }
    }
}

/// A writer gets the lock when the reader has let go.
#[test]
fn a_writer_waits() {
    for entry in Entry::all() {
        let lock = (entry.place)().unwrap();
        let (say, hear) = channel();
        std::thread::scope(|s| {
            lock.once(Ask::Read(Rank::Bulk), &mut || {
                let first = say.clone();
                s.spawn(move || lock.once(Ask::Write, &mut || first.send("writer").unwrap()));
                // Long enough that the writer sleeps more often than not; the order must hold
                // either way.
                std::thread::sleep(std::time::Duration::from_millis(2));
                say.send("reader").unwrap();
            });
        });
        drop(say);
        assert_eq!(hear.iter().collect::<Vec<_>>(), ["reader", "writer"], "{}", entry.name);
    }
}

#[test]
fn pairs_leave_the_lock_free() {
    for entry in Entry::all() {
        let lock = (entry.place)().unwrap();
        for ask in ASKS {
            assert!(lock.pairs(ask, 10) > 0, "{}: {ask:?}", entry.name);
            assert!(lock.once(Ask::TryWrite, &mut || ()).is_some(), "{}: {ask:?}", entry.name);
        }
    }
}
