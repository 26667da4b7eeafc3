//! The checkers.

use crate::worlds;
use std::io::Read as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use ulocks_vm::explore::{Config, run};

const LIMIT: Duration = Duration::from_secs(10);
/// Miri has it for all seeds together, its own compilation included.
const MIRI_LIMIT: Duration = Duration::from_secs(30);
/// Executions of the tools that sample.
const SAMPLES: usize = 10_000;
/// Seeds of Miri, which interprets, and so is slower by orders of magnitude.
pub const SEEDS: u32 = 16;

pub const TOOLS: [&str; 4] = ["ulocks-vm", "ulocks-vm sampled", "loom", "shuttle"];
/// As Miri is called here.
pub const MIRI: &str = "Miri";

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// Runs one program under one tool, and says what came of it.
pub fn one(tool: &str, program: &str) -> ExitCode {
    macro_rules! find {
        ($world:ident) => {{
            let mut all = worlds::$world::programs::ALL.iter().chain(worlds::$world::families::all());
            let Some(found) = all.find(|one| one.name == program) else {
                eprintln!("there is no program `{program}`");
                return ExitCode::from(2);
            };
            let run = found.run;
            move || {
                EXECUTIONS.fetch_add(1, Relaxed);
                run();
            }
        }};
    }
    std::panic::set_hook(Box::new(|info| {
        println!("found, {}", EXECUTIONS.load(Relaxed));
        eprintln!("{info}");
    }));
    match tool {
        "ulocks-vm" | "ulocks-vm sampled" => {
            let config = match tool {
                "ulocks-vm" => Config { executions: u64::MAX, ..Config::exhaustive() },
                _ => Config::sampled(SAMPLES as u64),
            };
            match run(&config, find!(vm)) {
                Ok(report) => {
                    let all = if report.complete { "all " } else { "" };
                    let bounds = if report.bounds.is_hit() { ", within bounds" } else { "" };
                    println!("passes, {all}{}{bounds}", report.executions);
                }
                Err(failure) => {
                    println!("found, {}", failure.execution);
                    eprintln!("{failure}");
                }
            }
        }
        "loom" => {
            let mut loom = loom::model::Builder::new();
            (loom.max_permutations, loom.max_duration, loom.preemption_bound) = (None, None, None);
            loom.check(find!(loom));
            println!("passes, {}", EXECUTIONS.load(Relaxed));
        }
        "shuttle" => {
            shuttle::check_random(find!(shuttle), SAMPLES);
            println!("passes, {}", EXECUTIONS.load(Relaxed));
        }
        // What Miri interprets: it is told the seed from outside.
        "std" => find!(std)(),
        _ => {
            eprintln!("there is no tool `{tool}`: {}", TOOLS.join(", "));
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// What a tool has said of a program, and in which time.
pub struct Cell {
    pub said: Said,
    pub time: Duration,
}

pub enum Said {
    /// With the number of executions, and what else there is to say.
    Passes(String),
    Found(String),
    NoEnd,
}

/// Runs one program under one tool, in a process of its own.
pub fn cell(tool: &str, program: &str) -> Cell {
    if tool == MIRI {
        return miri(program);
    }
    let itself = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(itself);
    command.args([tool, program]).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("a process");
    let has_ended = ends(&mut child, LIMIT);
    let time = start.elapsed();
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    let said = match text.lines().next().and_then(|line| line.split_once(", ")) {
        Some(("found", count)) => Said::Found(count.into()),
        _ if !has_ended => Said::NoEnd,
        Some((_, count)) => Said::Passes(count.into()),
        None => Said::Found("died".into()),
    };
    Cell { said, time }
}

/// Whether the process ends within the limit. It is killed if not.
fn ends(child: &mut Child, limit: Duration) -> bool {
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > limit {
            child.kill().expect("a child");
            child.wait().expect("a child");
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Builds what Miri interprets. False if there is no Miri.
pub fn has_miri() -> bool {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri", "setup"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// One process for all seeds. Miri says which seed fails, not how many came before it.
fn miri(program: &str) -> Cell {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri", "run", "-q", "--", "std", program]);
    command.env("MIRIFLAGS", format!("-Zmiri-many-seeds=0..{SEEDS}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("a process");
    let said = if !ends(&mut child, MIRI_LIMIT) {
        Said::NoEnd
    } else if child.wait().expect("a child").success() {
        Said::Passes(String::new())
    } else {
        Said::Found(String::new())
    };
    Cell { said, time: start.elapsed() }
}
