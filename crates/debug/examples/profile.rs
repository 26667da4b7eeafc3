//! A slow program, and its profile: where does its time go?
//!
//! Four workers serve requests. Each request looks into a table and notes itself in a journal. Four
//! workers are no faster than one. The profile names the lock and the line that they wait for.
//! `cargo run --release -p ulocks-debug --example profile` prints what the guide shows.

// Model worlds have no checked locks.
#![cfg_attr(any(ulocks_loom, ulocks_vm), no_main)]
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::thread;
use std::time::Duration;
use ulocks_debug::{Class, Mutex, profile};

static TABLE: Class = Class::new("table");
static JOURNAL: Class = Class::new("journal");

const WORKERS: usize = 4;
const REQUESTS: usize = 50;

struct Server {
    table: Mutex<Vec<u64>>,
    journal: Mutex<Vec<String>>,
}

impl Server {
    fn serve(&self, request: usize) {
        let row = self.look_up(request);
        self.note(request, row);
    }

    fn look_up(&self, request: usize) -> u64 {
        let mut table = self.table.lock();
        let row = request % table.len();
        table[row] += 1;
        table[row]
    }

    /// The write to the disk is under the lock. That is the mistake.
    fn note(&self, request: usize, row: u64) {
        let mut journal = self.journal.lock();
        thread::sleep(Duration::from_micros(300)); // `write` and `fsync`
        journal.push(format!("{request} {row}"));
    }
}

fn main() {
    let server =
        Server { table: Mutex::new_in(&TABLE, vec![0; 16]), journal: Mutex::new_in(&JOURNAL, Vec::new()) };
    profile::start();
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let server = &server;
            let work = move || (0..REQUESTS).for_each(|request| server.serve(request));
            thread::Builder::new()
                .name(format!("worker-{worker}"))
                .spawn_scoped(scope, work)
                .expect("a thread");
        }
    });
    profile::stop();

    let profile = profile::snapshot();
    println!("{}", profile.top(5));
    println!("The waits, as folded stacks:\n{}", profile.folded_waits());

    let worst = &profile.classes()[0];
    assert_eq!(worst.lock.name, "journal");
    assert_eq!(worst.sums.acquired as usize, WORKERS * REQUESTS);
    // The threads have waited longer than the program has run: most of them, most of the time.
    let waiting = worst.sums.waited.as_secs_f64() / profile.ran().as_secs_f64();
    println!("On average {waiting:.1} of {WORKERS} workers wait for the journal.");
}
