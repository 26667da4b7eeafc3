//! A kernel that refuses the futex calls of an array: the process aborts, because other threads
//! depend on the sleeper.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::sync::mpsc;
use std::thread;
use ulocks_semarray::{Op, SemArray};
use ulocks_testkit::{refusal, task};

/// The array names the node, which is on the stack that would unwind.
#[test]
fn a_sleeper_that_is_refused_does_not_free_its_node() {
    refusal::aborts("a_sleeper_that_is_refused_does_not_free_its_node", &refusal::WAIT, || {
        let array = SemArray::with_values([0, 0]);
        refusal::wait_refused(|| _ = array.apply(&[Op::sub(0, 1)]));
    });
}

/// Nor the watches of a set that has got beyond its first operation.
#[test]
fn a_set_that_is_refused_does_not_free_its_watches() {
    refusal::aborts("a_set_that_is_refused_does_not_free_its_watches", &refusal::WAIT, || {
        let array = SemArray::with_values([1, 0]);
        refusal::wait_refused(|| _ = array.apply(&[Op::sub(0, 1), Op::sub(1, 1)]));
    });
}

/// Runs `read` in a thread that may not sleep, while another session has locked the one semaphore.
fn refused(test: &str, read: impl FnOnce(&SemArray) + Send) {
    refusal::aborts(test, &refusal::WAIT, || {
        let array = SemArray::with_values([0]);
        array.raw().keep_locked(0);
        refusal::wait_refused(|| read(&array));
    });
}

#[test]
fn a_read_of_all_values_that_is_refused_does_not_keep_the_array_locked() {
    let test = "a_read_of_all_values_that_is_refused_does_not_keep_the_array_locked";
    refused(test, |array| _ = array.values());
}

#[test]
fn a_count_of_waiters_that_is_refused_does_not_keep_the_array_locked() {
    let test = "a_count_of_waiters_that_is_refused_does_not_keep_the_array_locked";
    refused(test, |array| _ = array.waiters(0));
}

/// The thread has no cell locked, but is counted in the parking slot.
#[test]
fn a_read_of_a_value_that_is_refused_does_not_stay_counted_in_the_slot() {
    let test = "a_read_of_a_value_that_is_refused_does_not_stay_counted_in_the_slot";
    refused(test, |array| _ = array.value(0));
}

/// Another thread has the mutex of the array, and waits for a semaphore that stays locked.
#[test]
fn a_read_that_is_refused_the_wait_for_another_does_not_panic() {
    refusal::aborts("a_read_that_is_refused_the_wait_for_another_does_not_panic", &refusal::WAIT, || {
        let array: &SemArray = Box::leak(Box::new(SemArray::with_values([0])));
        array.raw().keep_locked(0);
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            tell.send(task::id()).expect("the other thread listens");
            array.values()
        });
        task::until_asleep(&[told.recv().expect("the thread tells its id")]);
        refusal::wait_refused(|| _ = array.values());
    });
}
