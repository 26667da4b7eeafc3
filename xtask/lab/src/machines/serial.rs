//! What the guest says over its serial line, and what follows from it if it stops to say anything.
//!
//! | line | what it says |
//! |---|---|
//! | `@boot RELEASE CPUS NODES` | the first process runs |
//! | `@start WORKER PROGRAM TEST` | a worker begins a test |
//! | `@out WORKER TEXT` | a line of the test's output: all of a failure, and what is `not tested:` |
//! | `@end WORKER CODE` | the test has ended, with the exit code of its process |
//! | `@under WHAT COUNT` | how often the load beside the tests has struck |
//! | `@done` | all workers have ended |
//!
//! Other lines come from the kernel. They are kept for the case that it dies.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How many of the last lines of the kernel are kept.
const KEPT: usize = 25;
/// The exit code of a process that SIGKILL has ended.
const KILLED: i32 = 137;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its program.
    pub program: String,
    /// Its name.
    pub test: String,
    /// The exit code of its process.
    pub code: i32,
    /// Its output, if it failed; else the lines by which it says what it has not tested.
    pub output: Vec<String>,
}

impl Ended {
    /// Why it failed, in a few words.
    pub fn why(&self) -> String {
        match self.code {
            KILLED => "killed, since it had not ended in time".into(),
            code if code > 128 => format!("ended by signal {}", code - 128),
            code => format!("exit code {code}"),
        }
    }
}

/// A test that has begun.
#[derive(Debug)]
struct Begun {
    program: String,
    test: String,
    output: Vec<String>,
}

/// How a machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The line is closed: QEMU has ended.
    Closed,
    /// Nothing was said for so long.
    Silent(Duration),
}

/// What the guest has said so far.
#[derive(Debug, Default)]
pub struct Serial {
    /// The release of the kernel, the number of CPUs and the number of nodes.
    pub boot: Option<(String, u32, u32)>,
    /// The tests that have ended, in this order.
    pub ended: Vec<Ended>,
    /// How often the load beside the tests has struck.
    pub struck: Option<u64>,
    /// Whether all workers have ended.
    pub done: bool,
    running: BTreeMap<String, Begun>,
    kernel: VecDeque<String>,
}

impl Serial {
    /// Reads one line. Returns the test that has ended with it.
    pub fn read(&mut self, line: &str) -> Option<&Ended> {
        let line = line.trim_end();
        let Some((word, rest)) =
            line.strip_prefix('@').map(|line| line.split_once(' ').unwrap_or((line, "")))
        else {
            self.kernel.push_back(line.to_owned());
            self.kernel.drain(..self.kernel.len().saturating_sub(KEPT));
            return None;
        };
        let fields: Vec<&str> = rest.splitn(3, ' ').collect();
        match (word, fields.as_slice()) {
            ("boot", [release, cpus, nodes]) => {
                self.boot = Some(((*release).into(), cpus.parse().unwrap_or(0), nodes.parse().unwrap_or(0)));
            }
            ("start", [worker, program, test]) => {
                let begun = Begun { program: (*program).into(), test: (*test).into(), output: Vec::new() };
                self.running.insert((*worker).into(), begun);
            }
            ("out", [worker, ..]) => {
                let text = rest.split_once(' ').map_or("", |(_, text)| text);
                if let Some(begun) = self.running.get_mut(*worker) {
                    begun.output.push(text.to_owned());
                }
            }
            ("end", [worker, code]) => {
                let Begun { program, test, output } = self.running.remove(*worker)?;
                let code = code.parse().unwrap_or(-1);
                self.ended.push(Ended { program, test, code, output });
                return self.ended.last();
            }
            ("under", [.., count]) => self.struck = count.parse().ok(),
            ("done", _) => self.done = true,
            _ => self.kernel.push_back(line.to_owned()),
        }
        None
    }

    /// The tests that have begun and not ended.
    pub fn running(&self) -> Vec<String> {
        self.running.values().map(|begun| format!("{} {}", begun.program, begun.test)).collect()
    }

    /// What went wrong with the machine itself, if it did not end as it should.
    pub fn fault(&self, end: End) -> Option<String> {
        if self.done {
            return None;
        }
        let panic = self.kernel.iter().find(|line| line.contains("Kernel panic"));
        let how = match (panic, end) {
            (Some(line), _) => format!("the kernel died ({})", line.trim()),
            (None, End::Closed) => "the machine stopped".into(),
            (None, End::Silent(time)) => format!("the machine said nothing for {} s", time.as_secs()),
        };
        let running = self.running();
        let when = match (&self.boot, running.as_slice()) {
            (None, _) => "before its first process ran".to_owned(),
            (Some(_), []) => "between two tests".into(),
            (Some(_), running) => format!("while these tests ran: {}", running.join(", ")),
        };
        let kernel: String = self.kernel.iter().map(|line| format!("\n    | {line}")).collect();
        Some(format!("{how} {when}{kernel}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &str) -> Serial {
        let mut serial = Serial::default();
        lines.lines().for_each(|line| _ = serial.read(line));
        serial
    }

    const TWO: &str = "\u{1b}[2JSeaBIOS\r\n@boot 7.2.1 4 2\r\n@start 0 core-api one::two\r\n\
                       @start 1 fair-stress three\r\n";

    #[test]
    fn the_tests_of_two_workers_are_told_apart() {
        let more =
            "@out 1 thread 'three' panicked at\r\n@end 0 0\r\n@out 1  left: 1\r\n@end 1 101\r\n@done\r\n";
        let serial = after(&format!("{TWO}{more}"));
        assert_eq!(serial.boot, Some(("7.2.1".into(), 4, 2)));
        let codes: Vec<_> = serial.ended.iter().map(|ended| (ended.test.as_str(), ended.code)).collect();
        assert_eq!(codes, [("one::two", 0), ("three", 101)]);
        assert_eq!(serial.ended[1].output, ["thread 'three' panicked at", " left: 1"]);
        assert_eq!(serial.ended[1].why(), "exit code 101");
        assert_eq!((serial.fault(End::Closed), serial.running()), (None, vec![]));
    }

    #[test]
    fn a_kernel_that_dies_is_reported_with_the_tests_that_ran() {
        let serial = after(&format!("{TWO}@end 0 0\r\n[  9.1] Kernel panic - not syncing: Fatal\r\n"));
        let fault = serial.fault(End::Closed).unwrap();
        assert!(fault.contains("the kernel died") && fault.contains("not syncing: Fatal"), "{fault}");
        assert!(fault.contains("while these tests ran: fair-stress three"), "{fault}");
        assert!(!fault.contains("one::two"), "{fault}");
    }

    #[test]
    fn a_guest_that_hangs_is_reported_with_the_tests_that_ran() {
        let fault = after(TWO).fault(End::Silent(Duration::from_secs(90))).unwrap();
        assert!(
            fault.contains("said nothing for 90 s while these tests ran: core-api one::two, "),
            "{fault}"
        );
        let fault = after(&format!("{TWO}@end 0 0\r\n@end 1 0")).fault(End::Closed).unwrap();
        assert!(fault.starts_with("the machine stopped between two tests"), "{fault}");
        let fault = after("SeaBIOS").fault(End::Silent(Duration::from_secs(9))).unwrap();
        assert!(fault.contains("before its first process ran") && fault.contains("| SeaBIOS"), "{fault}");
    }

    #[test]
    fn a_test_without_an_end_has_not_passed() {
        let serial = after(&format!("{TWO}@end 1 0\r\n@done"));
        assert_eq!(serial.running(), ["core-api one::two"]);
        assert_eq!(serial.ended.len(), 1);
    }

    #[test]
    fn the_ways_to_fail_are_named() {
        let why = |code| Ended { program: "p".into(), test: "t".into(), code, output: vec![] }.why();
        assert!(why(137).contains("in time"));
        assert_eq!(why(134), "ended by signal 6");
        assert_eq!(after("@start 0 p t\n@end 0 what").ended[0].code, -1);
        assert_eq!(after("@under nr_throttled 12").struck, Some(12));
        assert_eq!(after("@under turns ").struck, None);
    }

    #[test]
    fn the_kernel_cannot_fill_the_memory() {
        let serial = after(&"noise\n".repeat(10_000));
        assert_eq!(serial.kernel.len(), KEPT);
    }
}
