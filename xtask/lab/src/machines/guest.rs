//! Boots a machine in QEMU, and reads its serial line until it ends or hangs.

use super::serial::{End, Ended, Serial};
use super::spec::{Arch, Machine};
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use xtask::exec::reaper;

/// How the guest's instructions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// By the processor.
    Kvm,
    /// By QEMU's translator, all CPUs on one thread.
    Tcg,
}

impl Accel {
    /// QEMU's option. With a thread for each CPU, QEMU 7.2 has crashed guests of 16 CPUs.
    fn option(self) -> &'static str {
        if self == Self::Kvm { "kvm" } else { "tcg,thread=single" }
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
        }
    }

    /// Whether the device for KVM can be opened, and fits the processor `arch`.
    pub fn kvm_is_there(arch: &Arch) -> bool {
        arch.is_host() && OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok()
    }
}

/// Boots `machine`. Its lines go to `log`, and each test that has ended to `told`. The machine is
/// ended if it says nothing for `patience`. Returns what it said, and what went wrong with it.
pub fn run(
    (machine, accel): (&Machine, Accel),
    (kernel, image): (&Path, &Path),
    patience: Duration,
    log: File,
    mut told: impl FnMut(&Ended),
) -> anyhow::Result<(Serial, Option<String>)> {
    let mut command = Command::new(machine.arch().qemu.0);
    command.args(["-accel", accel.option()]).args(machine.qemu(kernel, image));
    follow(command, patience, log, &mut told)
}

fn follow(
    command: Command,
    patience: Duration,
    mut log: File,
    told: &mut dyn FnMut(&Ended),
) -> anyhow::Result<(Serial, Option<String>)> {
    writeln!(log, "$ {command:?}")?;
    read(command, patience, |line, serial| {
        // The log is for people: a full disk must not end the run.
        _ = writeln!(log, "{line}");
        if let Some(ended) = serial.read(line) {
            told(ended);
        }
    })
}

/// A process whose group ends when this is dropped, or when this process is killed.
struct Ends {
    child: Child,
    reaper: Child,
}

impl Drop for Ends {
    fn drop(&mut self) {
        drop(self.reaper.stdin.take());
        _ = self.reaper.wait();
        _ = self.child.wait();
    }
}

/// Runs `command`, and gives each line of its output to `each`.
fn read(
    mut command: Command,
    patience: Duration,
    mut each: impl FnMut(&str, &mut Serial),
) -> anyhow::Result<(Serial, Option<String>)> {
    use std::os::unix::process::CommandExt;
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    let errors = errors_of(&mut command)?;
    let child = command.spawn().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let mut child = Ends { reaper: reaper(&child)?, child };
    let output = child.child.stdout.take().context("its output is piped")?;
    let (lines, arriving) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n') {
            let Ok(line) = line else { break };
            if lines.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                break;
            }
        }
    });
    let mut serial = Serial::default();
    let end = loop {
        match arriving.recv_timeout(patience) {
            Ok(line) => {
                each(&line, &mut serial);
                // A kernel without ACPI cannot power off.
                if serial.done {
                    break End::Closed;
                }
            }
            Err(RecvTimeoutError::Timeout) => break End::Silent(patience),
            Err(RecvTimeoutError::Disconnected) => break End::Closed,
        }
    };
    drop(child);
    let fault = serial.fault(end).map(|fault| fault + &errors());
    Ok((serial, fault))
}

/// Keeps the errors of `command` in a file without a name, and returns what reads them.
fn errors_of(command: &mut Command) -> anyhow::Result<impl FnOnce() -> String + use<>> {
    let mut file = tempfile::tempfile()?;
    command.stderr(file.try_clone()?);
    Ok(move || {
        let mut bytes = Vec::new();
        _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).lines().map(|line| format!("\n    | {line}")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// A guest that is a shell script.
    fn guest(script: &str, patience: Duration) -> (Serial, Option<String>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        read(command, patience, |line, serial| _ = serial.read(line)).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_guest_that_ends_as_it_should_has_no_fault() {
        let (serial, fault) = guest("echo @boot 1 2 1; echo @start 0 p t; echo @end 0 0; echo @done", LONG);
        assert_eq!((serial.ended.len(), fault), (1, None));
    }

    #[test]
    fn a_guest_leaves_no_file_with_its_errors() {
        let mut command = Command::new("sh");
        command.args(["-c", "readlink /proc/$$/fd/2; echo @done"]);
        let mut lines = Vec::new();
        read(command, LONG, |line, serial| {
            lines.push(line.to_owned());
            serial.read(line);
        })
        .unwrap();
        assert!(lines[0].ends_with(" (deleted)"), "{lines:?}");
    }

    #[test]
    fn a_guest_that_hangs_is_ended_and_the_test_is_named() {
        let start = Instant::now();
        let script = "echo @boot 1 2 1; echo @start 0 p slow; sleep 1000";
        let (_, fault) = guest(script, Duration::from_millis(300));
        assert!(fault.unwrap().contains("while these tests ran: p slow"));
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn a_guest_that_crashes_is_reported_with_the_errors_of_qemu() {
        let script = "echo @boot 1 2 1; echo @start 0 p t; echo 'Kernel panic - not syncing: x'; \
                      echo 'qemu: no' >&2; exit 1";
        let (_, fault) = guest(script, LONG);
        let fault = fault.unwrap();
        assert!(fault.contains("not syncing: x") && fault.contains("while these tests ran: p t"), "{fault}");
        assert!(fault.contains("| qemu: no"), "{fault}");
    }
}
