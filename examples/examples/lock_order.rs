//! Checked locks find an inversion before it deadlocks: a bank with accounts and a journal.
//!
//! A transfer locks an account and then the journal. An audit locks the journal and then an
//! account. If both run at the same moment, each may have its first lock and wait for its second.
//! A test meets that moment once in a thousand runs. Here the two run one after the other, so they
//! cannot deadlock. The checked locks report the inversion all the same, with the four lines.
//!
//! # Which lock, and why
//! `ulocks::debug::Mutex` is the lock of `ulocks::Mutex` with a checker around it. A program takes
//! its locks from `ulocks::checked`, and has the checked ones in debug builds only.
//!
//! # What would go wrong with another
//! A detector of deadlocks, as parking_lot has, finds a deadlock once it has happened. This run has
//! none.

use std::sync::Mutex as StdMutex;
use std::thread;
use ulocks::debug::{Class, Mutex, Policy, Report, Rule, held, set_policy};

static ACCOUNTS: Class = Class::new("accounts");

static ACCOUNT: Mutex<i64> = Mutex::new_in(&ACCOUNTS, 100);
// Without a name, the line that makes it is its class.
static JOURNAL: Mutex<Vec<i64>> = Mutex::new(Vec::new());

fn transfer(amount: i64) {
    let mut account = ACCOUNT.lock();
    *account += amount;
    JOURNAL.lock().push(amount);
}

fn audit() -> bool {
    let journal = JOURNAL.lock();
    let sum: i64 = journal.iter().sum();
    *ACCOUNT.lock() == 100 + sum
}

static REPORTS: StdMutex<Vec<Report>> = StdMutex::new(Vec::new());

fn main() {
    // Without this line the audit would panic with the report as its message.
    set_policy(Policy::Call(|report| {
        eprintln!("{report}");
        REPORTS.lock().unwrap().push(report.clone());
    }));

    thread::Builder::new().name("teller".to_owned()).spawn(|| transfer(20)).unwrap().join().unwrap();
    assert!(REPORTS.lock().unwrap().is_empty(), "one order alone is no fault");
    let auditor = thread::Builder::new().name("auditor".to_owned()).spawn(audit).unwrap();
    assert!(auditor.join().unwrap(), "the books are right, and nothing has deadlocked");

    let reports = REPORTS.lock().unwrap();
    let [report] = &reports[..] else { panic!("one inversion is reported, once") };
    assert_eq!(report.rule(), Rule::Order);
    let [audit, transfer] = report.steps() else { panic!("a circle of two") };
    assert_eq!((audit.thread.name.as_str(), transfer.thread.name.as_str()), ("auditor", "teller"));
    // The audit asks on the third line of its body, the transfer on the third of its own.
    assert_eq!(audit.at.line() - audit.since.line(), 2);
    assert_eq!(transfer.at.line() - transfer.since.line(), 2);
    println!("an inversion of {} and {} was found", audit.held.name, audit.asked.name);

    let _account = ACCOUNT.lock();
    print!("held now: {}", held());
    assert_eq!(held().locks().len(), 1);
}
