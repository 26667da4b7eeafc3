//! Who holds what, on demand: the program of the guide. It sends the signal to itself.

// Model worlds have no checked locks.
#![cfg_attr(any(ulocks_loom, ulocks_vm), no_main)]
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::thread;
use ulocks_debug::{Class, Mutex, held};

static ACCOUNTS: Class = Class::new("accounts");

fn main() -> std::io::Result<()> {
    held::on_signal(libc::SIGUSR1)?;
    let accounts = Mutex::new_in(&ACCOUNTS, [100, 100]);
    let guard = accounts.lock();
    thread::scope(|scope| {
        let audit = || accounts.lock().iter().sum::<i32>();
        let auditor = thread::Builder::new().name("auditor".to_owned()).spawn_scoped(scope, audit)?;
        while !held().locks().iter().any(|held| held.waiters > 0) {
            thread::yield_now();
        }
        // SAFETY: the signal has a handler.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        drop(guard);
        assert_eq!(auditor.join().expect("the auditor"), 200);
        Ok(())
    })
}
