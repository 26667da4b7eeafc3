//! Reports that a program accepts, and the environment variable `ULOCKS_CHECKED`.

use super::deliver::print;
use super::{current, fork};
use crate::seen::policy::{Policy, fix_policy, set_strict};
use crate::seen::report::{LockName, Place, Report};
use crate::seen::thread::is_in_handler;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use ulocks_core::sync::{AtomicBool, Ordering::Relaxed};
use ulocks_profile::counting::{ForkMutex, Once};

/// `fork` holds it, too.
pub(super) static ACCEPTED: ForkMutex<Vec<[String; 2]>> = ForkMutex::new(Vec::new());
/// Whether anything was ever accepted.
static EVER: AtomicBool = AtomicBool::new(false);

/// Accepts the reports in which a thread held `before` and asked for `here`. They are not reported
/// from now on, in whatever way the policy says.
///
/// Each of the two is a line, as in `src/bank.rs:27`, or the name of a class. A line is that of an
/// acquisition. Of its path, the last parts are enough. A report has such a pair in its last line
/// but one, which the file of `ULOCKS_CHECKED=accept=FILE` takes as it is.
///
/// Of a circle, any of its steps is enough.
///
/// # Examples
/// ```
/// use ulocks_debug::{Class, Mutex, accept};
///
/// static ACCOUNTS: Class = Class::new("accounts");
/// static JOURNAL: Class = Class::new("journal");
///
/// // The audit runs when no transfer does.
/// accept("journal", "accounts");
/// let (account, journal) = (Mutex::new_in(&ACCOUNTS, 0), Mutex::new_in(&JOURNAL, 0));
/// drop((account.lock(), journal.lock()));
/// drop((journal.lock(), account.lock()));
/// ```
pub fn accept(before: &str, here: &str) {
    fork::watch();
    ACCEPTED.lock().push([before, here].map(|text| text.trim().to_owned()));
    EVER.store(true, Relaxed);
}

/// Whether the program has accepted this.
pub(crate) fn is_accepted(report: &Report) -> bool {
    if !EVER.load(Relaxed) {
        return false;
    }
    // All that allocates comes before the list is locked.
    let steps = report.steps.iter();
    let steps =
        steps.map(|step| [Side::new(step.since, Some(&step.held)), Side::new(step.at, Some(&step.asked))]);
    let pair = report.before.zip(report.here);
    let held = report.held_lock.as_ref();
    let pair = pair.map(|(before, here)| [Side::new(before, held), Side::new(here, Some(&report.lock))]);
    let pairs: Vec<[Side<'_>; 2]> = steps.chain(pair).collect();
    // A handler may have interrupted a thread that has the list.
    let accepted = if is_in_handler() { ACCEPTED.try_lock() } else { Some(ACCEPTED.lock()) };
    let Some(accepted) = accepted else { return false };
    let is_one = |[before, here]: &[String; 2]| {
        pairs.iter().any(|[held, asked]| held.fits(before) && asked.fits(here))
    };
    accepted.iter().any(is_one)
}

/// One of the two acquisitions of a pair.
struct Side<'a> {
    line: String,
    lock: Option<&'a LockName>,
}

impl<'a> Side<'a> {
    fn new(place: Place, lock: Option<&'a LockName>) -> Self {
        Self { line: format!("{}:{}", place.file(), place.line()), lock }
    }

    /// Whether `text` is the line of the acquisition, or the class of its lock.
    fn fits(&self, text: &str) -> bool {
        let is_line = self.line.strip_suffix(text).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        is_line || self.lock.is_some_and(|lock| lock.name == text)
    }
}

/// Reads the environment, once.
pub(crate) fn look_at_environment() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let words = std::env::var_os("ULOCKS_CHECKED").unwrap_or_default();
        words.as_bytes().split(|&byte| byte == b',').map(OsStr::from_bytes).for_each(obey);
    });
}

fn obey(word: &OsStr) {
    match word.as_bytes() {
        b"" => {}
        b"panic" => fix_policy(Policy::Panic),
        b"abort" => fix_policy(Policy::Abort),
        b"warn" => fix_policy(Policy::Warn),
        b"off" => current::stop(),
        b"strict" => set_strict(true),
        other => match other.strip_prefix(b"accept=") {
            Some(file) => read(Path::new(OsStr::from_bytes(file))),
            None => print(format_args!(
                "ulocks-debug: ULOCKS_CHECKED has no word `{}`: its words are panic, abort, warn, off, strict and \
                 accept=FILE, with commas between them",
                word.display()
            )),
        },
    }
}

fn read(file: &Path) {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            let file = file.display();
            return print(format_args!("ulocks-debug: cannot read `{file}` of ULOCKS_CHECKED: {error}"));
        }
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_once("->") {
            Some((before, here)) => {
                // The word of a report's line. A class may have a name that begins so.
                let rest = before.strip_prefix("accept");
                let rest = rest.filter(|rest| rest.starts_with(char::is_whitespace));
                accept(rest.unwrap_or(before), here);
            }
            None => {
                let file = file.display();
                print(format_args!("ulocks-debug: `{file}` has a line without `->`: {line}"));
            }
        }
    }
}
