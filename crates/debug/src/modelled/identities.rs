//! Clients of what a lock knows of itself, and of the keys that are known to all threads.

use super::{joined, place};
use crate::seen::class::{Origin, all};
use crate::seen::identity::Identity;
use crate::seen::known::{is_known, remember};
use crate::seen::thread::Record;
use std::sync::Arc;
use ulocks_core::model::thread::spawn;

/// Threads acquire a lock for the first time, all at once, and each enters itself as the one that
/// has it alone: there is no raw lock. It has one class and one number for all of them, and the
/// type of its data is in the class.
pub fn a_lock_has_one_number(threads: usize) {
    let lock = Arc::new(Identity::new(Origin::made::<u8>(place(0))));
    let acquires = move |lock: Arc<Identity>| {
        let me = Record::leak();
        // As an acquisition does: it has read the class before it is the holder.
        let (class, number) = lock.find::<u16>(place(1));
        lock.set_alone(me);
        assert!(class.has_data(), "the type of the data is lost");
        (class.id(), number)
    };
    let others: Vec<_> = (1..threads)
        .map(|_| {
            let lock = lock.clone();
            spawn(move || acquires(lock))
        })
        .collect();
    let mine = acquires(lock.clone());
    for other in others {
        assert_eq!(joined(other), mine, "a lock has two numbers");
    }
    assert!(all().all(|class| class.has_data()), "a class was made without the type of the data");
    let second = Identity::new(Origin::made::<u8>(place(0)));
    let (class, number) = second.find::<u16>(place(2));
    assert_eq!(class.id(), mine.0, "a place has two classes");
    assert_ne!(number, mine.1, "two locks have one number");
}

/// Threads remember a key each. A thread that looks finds those only, also in a table that is full.
pub fn a_known_key_was_remembered(before: u64) {
    let key = |number: u64| 1 << (number + 20);
    (0..before).for_each(|number| remember(key(number)));
    let threads = [8, 9].map(|number| spawn(move || remember(key(number))));
    let other = key(8) | key(9);
    assert!(!is_known(other), "a key is known that none has remembered");
    threads.into_iter().for_each(joined);
    assert!(!is_known(other), "a key is known that none has remembered");
    assert!(is_known(key(8)) || is_known(key(9)), "the last key is forgotten");
}
