//! `cargo lab machines`: runs the native tests of every crate in virtual machines.
//!
//! The test programs are built here. They are packed with the libraries that they need and a small
//! first process into an image (`image.rs`). A Debian kernel of the asked suite (`kernel.rs`) boots
//! with that image in QEMU (`guest.rs`). Each test runs in a process of its own, and the serial
//! line tells how it ends (`serial.rs`). `skips.toml` lists the tests that some machines cannot
//! run, with the reasons (`plan.rs`). `machines.toml` lists the machines (`spec.rs`).
//!
//! The processor runs the guest's instructions if KVM can boot it. Else QEMU translates them, and
//! the guest is many times slower than this machine. Times in a guest say nothing; orders,
//! counts and states do.
//!
//! A machine all of whose tests pass leaves a line in `machines.jsonl`. `--table` makes a table of
//! them.

mod guest;
mod image;
mod kernel;
mod plan;
pub mod records;
mod serial;
mod spec;

use crate::flags;
use anyhow::{Context, bail, ensure};
use guest::Accel;
use kernel::Kernel;
use plan::{Facts, Plan, Suite};
use records::{Record, Records};
use serial::{Ended, Serial};
use spec::{Libc, Machine, Under};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use xtask::programs::{self, How, Program};
use xtask::steps::Steps;
use xtask::tools::{Missing, commit, need};
use xtask::workspace::{LIB, Package, Workspace};

/// Packages that run in no guest. The tests of the first two build and run programs with a
/// compiler or cargo, which a guest has not. Those of the virtual machine compute, and ask the
/// kernel for nothing; translated, they take hours. A procedural macro is built for the compiler's
/// machine.
const NOT_HERE: [&str; 5] =
    ["ulocks-capi", "ulocks-pthread", "ulocks-vm", "ulocks-vm-cost", "ulocks-shm-derive"];
/// After so long without a line the machine counts as hung, beyond the limit of a test.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a guest may take to boot in order to show that KVM works.
const KVM_BOOT: Duration = Duration::from_secs(30);

/// Runs the machines that `flags` ask for.
pub fn run(flags: &flags::Machines, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    if flags.table {
        return Records::load(workspace)?.write_table(workspace);
    }
    let machines = Machine::chosen(&flags.only)?;
    let jobs = flags.jobs.unwrap_or(1);
    ensure!(jobs > 0, "--jobs 0: give at least 1");
    for machine in &machines {
        needs(machine)?;
    }
    let skips = plan::skips()?;
    let mut kernels = Vec::new();
    for machine in &machines {
        kernels.push(kernel::get(machine)?);
    }

    let mut built = BTreeMap::<&str, Built>::new();
    for machine in &machines {
        let target = machine.arch().target(machine.libc);
        if built.contains_key(target) {
            continue;
        }
        steps.check(&format!("build for {target}"), &machine.command(), || {
            built.insert(target, Built::new(machine, target, workspace)?);
            Ok(true)
        })?;
    }
    let built = |machine: &Machine| &built[machine.arch().target(machine.libc)];

    let kvm = match machines.iter().zip(&kernels).next() {
        Some((machine, kernel)) => {
            let log = workspace.target().join("machines/kvm.log");
            let (built, plan) = (built(machine), Plan::default());
            kvm_boots(&Work { machine, kernel, built, plan, passed: Vec::new(), later: 0, log }, workspace)?
        }
        None => false,
    };
    let mut works = VecDeque::new();
    for (machine, kernel) in machines.iter().zip(&kernels) {
        let is_run = kvm && Accel::kvm_is_there(machine.arch());
        let facts = Facts { machine, kernel: kernel.version, is_translated: !flags.slow && !is_run };
        let built = built(machine);
        let mut plan = Plan::new(facts, &built.suites, &skips, &flags.filter)?;
        let log = workspace.target().join("machines").join(format!("{}.log", machine.file()));
        let (passed, later) = match fs::read_to_string(&log) {
            Ok(log) if flags.rest => plan.leave_out_passed(&log),
            _ => (Vec::new(), 0),
        };
        works.push_back(Work { machine, kernel, built, plan, passed, later, log });
    }
    let all = run_all(works, kvm, jobs, workspace);
    let is_whole = flags.filter.is_empty();
    report(all, is_whole, workspace, steps)
}

/// Demands the tools that build for `machine` and boot it.
fn needs(machine: &Machine) -> Result<(), Missing> {
    let (arch, target) = (machine.arch(), machine.arch().target(machine.libc));
    let (emulator, package) = arch.qemu;
    image::needs(arch)?;
    need("QEMU", format!("apt-get install {package}"), &[emulator, "--version"])?;
    if !arch.is_host() {
        need("QEMU for programs", "apt-get install qemu-user", &[arch.user, "--version"])?;
    }
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let library = format!("{}/lib/rustlib/{target}/lib", sysroot.unwrap_or_default());
    need("Rust's library for the machine", format!("rustup target add {target}"), &["test", "-d", &library])
}

/// The test programs for a processor and a C library.
struct Built {
    /// The commit that they are built from.
    commit: String,
    suites: Vec<Suite>,
    image: PathBuf,
}

impl Built {
    fn new(machine: &Machine, target: &str, workspace: &Workspace) -> anyhow::Result<Self> {
        let commit = commit(&workspace.root)?;
        let suites = Self::tests(machine, workspace)?;
        let programs: Vec<_> = suites.iter().map(|suite| suite.program.clone()).collect();
        let image = image::programs((machine.arch(), target), &programs, workspace)?;
        Ok(Self { commit, suites, image })
    }

    /// The native tests.
    fn tests(machine: &Machine, workspace: &Workspace) -> anyhow::Result<Vec<Suite>> {
        let (arch, libc) = (machine.arch(), machine.libc);
        let how = match (arch.is_host(), libc) {
            (true, Libc::Gnu | Libc::Suite) => How::Optimised,
            _ => How::For(arch.target(libc)),
        };
        let crates = workspace.root.join("crates");
        let is_native = |package: &Package| {
            package.dir.starts_with(&crates) && !NOT_HERE.contains(&package.name.as_str())
        };
        let packages = workspace.select(&[], "native tests", is_native)?;
        let mut tests: BTreeSet<String> = packages.iter().flat_map(|package| package.tests("")).collect();
        // They are empty outside of their worlds.
        tests.retain(|test| !test.starts_with("loom") && !test.starts_with("vm"));
        let targets = tests.iter().map(String::as_str).chain([LIB]).collect();
        let built = programs::build(workspace, how, &packages, &targets, Duration::MAX)?;
        let mut suites = Vec::new();
        for program in built.context("the build has no limit")? {
            let tests = tests_of(&program, machine)?;
            suites.push(Suite { program, tests });
        }
        suites.retain(|suite| !suite.tests.is_empty());
        Ok(suites)
    }
}

/// The tests of a program, which may be for another processor.
fn tests_of(program: &Program, machine: &Machine) -> anyhow::Result<Vec<String>> {
    if machine.arch().is_host() {
        return program.tests();
    }
    let launch = machine.launch();
    let mut command = Command::new(&launch[0]);
    let printed =
        command.args(&launch[1..]).arg(&program.path).args(["--list", "--format", "terse"]).output()?;
    ensure!(printed.status.success(), "{command:?}: {}", String::from_utf8_lossy(&printed.stderr));
    Ok(programs::listed(&printed.stdout))
}

/// A machine with what it runs.
struct Work<'a> {
    machine: &'a Machine,
    kernel: &'a Kernel,
    built: &'a Built,
    plan: Plan,
    /// What has passed before, and is not run again.
    passed: Vec<Ended>,
    /// How many of these did not pass in the machine's first run.
    later: usize,
    /// Where its lines are kept.
    log: PathBuf,
}

/// What a machine did.
struct Did<'a> {
    work: Work<'a>,
    accel: Accel,
    serial: Serial,
    faults: Vec<String>,
    took: Duration,
}

/// Whether KVM boots the machine of `work`, which has no tests.
fn kvm_boots(work: &Work<'_>, workspace: &Workspace) -> anyhow::Result<bool> {
    if !Accel::kvm_is_there(work.machine.arch()) {
        return Ok(false);
    }
    println!("-- trying KVM");
    let (serial, _) = work.boot(Accel::Kvm, KVM_BOOT, workspace)?;
    if !serial.done {
        println!("/dev/kvm is there, but no guest boots with it; QEMU translates the guest");
    }
    Ok(serial.done)
}

/// Runs `jobs` machines at once.
fn run_all<'a>(works: VecDeque<Work<'a>>, kvm: bool, jobs: usize, workspace: &Workspace) -> Vec<Did<'a>> {
    let (works, all) = (Mutex::new(works), Mutex::new(Vec::new()));
    let next = || works.lock().ok()?.pop_front();
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(work) = next() {
                    let did = work.run(kvm, workspace);
                    all.lock().expect("no machine panics").push(did);
                }
            });
        }
    });
    all.into_inner().expect("no machine panics")
}

impl<'a> Work<'a> {
    fn boot(
        &self,
        accel: Accel,
        patience: Duration,
        workspace: &Workspace,
    ) -> anyhow::Result<(Serial, Option<String>)> {
        let dir = workspace.target().join("machines").join(self.machine.file());
        _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir)?;
        let goes_on = !self.passed.is_empty();
        let mut log = OpenOptions::new();
        let log = log.create(true).write(true).append(goes_on).truncate(!goes_on).open(&self.log)?;
        let all = self.plan.len();
        let mut nth = 0;
        let told = |ended: &Ended| {
            nth += 1;
            if ended.code != 0 {
                println!("[{}] {} {} FAILED: {}", self.machine, ended.program, ended.test, ended.why());
                ended.output.iter().for_each(|line| println!("    | {line}"));
            } else if nth % 100 == 0 {
                println!("[{}] {nth} of {all}", self.machine);
            }
        };
        let image = image::machine(self.machine, &self.plan, &self.built.image, self.kernel, &dir)?;
        let ran = guest::run((self.machine, accel), (&self.kernel.image, &image), patience, log, told);
        fs::remove_dir_all(&dir)?;
        ran
    }

    fn run(self, kvm: bool, workspace: &Workspace) -> Did<'a> {
        let is_run = kvm && Accel::kvm_is_there(self.machine.arch());
        let accel = if is_run { Accel::Kvm } else { Accel::Tcg };
        let start = Instant::now();
        println!("[{}] {} tests, {}", self.machine, self.plan.len(), accel.name());
        let patience = Duration::from_secs(self.plan.limit) + SILENCE;
        let (serial, faults) = match self.boot(accel, patience, workspace) {
            Ok((serial, fault)) => {
                let mut faults = self.faults(&serial);
                faults.extend(fault);
                (serial, faults)
            }
            Err(error) => (Serial::default(), vec![format!("{error:#}")]),
        };
        faults.iter().for_each(|fault| println!("[{}] {fault}", self.machine));
        Did { work: self, accel, serial, faults, took: start.elapsed() }
    }

    /// What the guest should have done and has not.
    fn faults(&self, serial: &Serial) -> Vec<String> {
        let mut faults = Vec::new();
        let Machine { cpus, nodes, under, .. } = *self.machine;
        let expected = (cpus, nodes);
        match &serial.boot {
            Some((release, cpus, nodes)) if (*cpus, *nodes) != expected => {
                faults.push(format!("{release} has {cpus} CPUs on {nodes} nodes, not {expected:?}"));
            }
            Some((release, ..)) if !release.contains("-rt-") && self.machine.is_rt() => {
                faults.push(format!("{release} is no PREEMPT_RT kernel"));
            }
            _ => {}
        }
        if serial.done && serial.ended.len() != self.plan.len() {
            faults.push(format!("{} of {} tests have ended", serial.ended.len(), self.plan.len()));
        }
        if serial.done && under != Under::Nothing && serial.struck.unwrap_or(0) == 0 {
            faults.push(format!("the load `{}` never struck", under.name()));
        }
        faults
    }
}

impl Did<'_> {
    fn failed(&self) -> usize {
        self.serial.ended.iter().filter(|ended| ended.code != 0).count()
    }

    fn is_green(&self) -> bool {
        self.faults.is_empty() && self.failed() == 0
    }

    /// What has ended well, in this run or before.
    fn passed(&self) -> impl Iterator<Item = &Ended> {
        self.work.passed.iter().chain(&self.serial.ended).filter(|ended| ended.code == 0)
    }

    /// The reasons for which something was skipped, with the number of tests: by the list, or by
    /// the tests themselves.
    fn skipped(&self) -> BTreeMap<String, usize> {
        let mut reasons = self.work.plan.skipped.clone();
        for ended in self.passed() {
            for line in &ended.output {
                *reasons.entry(format!("{} {}: {line}", ended.program, ended.test)).or_default() += 1;
            }
        }
        reasons
    }

    fn record(&self) -> Record {
        let kernel = self.serial.boot.as_ref().map_or(String::new(), |(release, ..)| release.clone());
        Record {
            machine: self.work.machine.to_string(),
            command: self.work.machine.command(),
            date: xtask::tools::today(),
            commit: self.work.built.commit.clone(),
            kernel,
            accel: self.accel.name().into(),
            passed: self.work.passed.len() + self.serial.ended.len(),
            again: if self.work.passed.is_empty() { 0 } else { self.work.later + self.serial.ended.len() },
            skipped: self.skipped(),
            seconds: self.took.as_secs(),
        }
    }
}

/// Prints the table, keeps the records, and fails if a machine has failed.
fn report(all: Vec<Did<'_>>, is_whole: bool, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    println!(
        "\n{:44} {:24} {:4} {:>6} {:>6} {:>7} {:>7}",
        "machine", "kernel", "by", "passed", "failed", "skipped", "time"
    );
    let mut records = Records::load(workspace)?;
    let mut reasons = BTreeMap::<String, Vec<String>>::new();
    for did in &all {
        let record = did.record();
        let (failed, passed) = (did.failed(), record.passed - did.failed());
        let skipped: usize = record.skipped.values().sum();
        let result = if did.is_green() { "" } else { "  FAILED" };
        println!(
            "{:44} {:24} {:4} {passed:>6} {failed:>6} {skipped:>7} {:>5} s{result}",
            record.machine, record.kernel, record.accel, record.seconds
        );
        for (why, count) in &record.skipped {
            reasons.entry(format!("{count} x {why}")).or_default().push(record.machine.clone());
        }
        if is_whole {
            records.note(record, did.is_green());
        }
    }
    for (why, machines) in reasons {
        println!("skipped: {why} ({})", machines.join("; "));
    }
    if is_whole {
        records.save(workspace)?;
        println!("written: {}", records::FILE);
        records.write_table(workspace)?;
    }
    for did in &all {
        for ended in did.serial.ended.iter().filter(|ended| ended.code != 0) {
            println!("FAILED on {}: {} {}: {}", did.work.machine, ended.program, ended.test, ended.why());
        }
        for fault in &did.faults {
            println!("FAILED on {}: {}", did.work.machine, fault.lines().next().unwrap_or_default());
        }
        steps.check(&did.work.machine.to_string(), &did.work.machine.command(), || Ok(did.is_green()))?;
    }
    if all.is_empty() {
        bail!("no machine has run");
    }
    Ok(())
}
