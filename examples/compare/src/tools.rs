//! The checkers, and the table.

use crate::worlds;
use std::io::Read as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use ulocks_vm::explore::{Config, run};

const LIMIT: Duration = Duration::from_secs(20);
/// Miri has it for all seeds together, its own compilation included.
const MIRI_LIMIT: Duration = Duration::from_secs(120);
/// Executions of the tools that sample.
const SAMPLES: usize = 10_000;
/// Seeds of Miri, which interprets, and so is slower by orders of magnitude.
const SEEDS: u32 = 64;

const TOOLS: [&str; 4] = ["ulocks-vm", "ulocks-vm sampled", "loom", "shuttle"];

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// Runs one program under one tool, and says what came of it.
pub fn one(tool: &str, program: &str) -> ExitCode {
    macro_rules! find {
        ($world:ident) => {{
            let all = worlds::$world::programs::ALL;
            let Some(found) = all.iter().find(|one| one.name == program) else {
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
                Err(failure) => println!("found, {}", failure.execution),
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

/// Prints the table.
pub fn table() {
    let has_miri = has_miri();
    println!("| program | | {} | Miri, {SEEDS} seeds |", TOOLS.join(" | "));
    println!("|---|---|{}---|", "---|".repeat(TOOLS.len()));
    for program in worlds::std::programs::ALL {
        let kind = if program.is_wrong { "wrong" } else { "right" };
        print!("| {} | {kind} |", program.name);
        for tool in TOOLS {
            print!(" {} |", cell(tool, program.name));
        }
        println!(" {} |", if has_miri { miri(program.name) } else { "not installed".into() });
    }
}

fn cell(tool: &str, program: &str) -> String {
    let itself = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(itself);
    command.args([tool, program]).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("a process");
    if !ends(&mut child, LIMIT) {
        return format!("no end in {} s", LIMIT.as_secs());
    }
    let time = start.elapsed();
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    match said.lines().next() {
        Some(line) => format!("{line}, {}", seconds(time)),
        None => "died".into(),
    }
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
fn has_miri() -> bool {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri", "setup"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// One process for all seeds. Miri says which seed fails, not how many came before it.
fn miri(program: &str) -> String {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri", "run", "-q", "--", "std", program]);
    command.env("MIRIFLAGS", format!("-Zmiri-many-seeds=0..{SEEDS}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("a process");
    if !ends(&mut child, MIRI_LIMIT) {
        return format!("no end in {} s", MIRI_LIMIT.as_secs());
    }
    let says = if child.wait().expect("a child").success() { "passes" } else { "found" };
    format!("{says}, {}", seconds(start.elapsed()))
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
