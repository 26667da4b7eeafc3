//! Compiles a program once, runs it with a choice of locks, and compares what it prints.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use ulocks_testkit::cdylib;
use ulocks_testkit::limit::output;

/// The library under test.
pub fn library() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = cdylib::build("ulocks-pthread", env!("CARGO_TARGET_TMPDIR"), None);
        folder.join("libulocks_pthread.so")
    });
    &BUILT
}

/// A source file of `tests/programs`.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    name: &'static str,
    /// The source file's name and extension.
    source: (&'static str, &'static str),
    compiler: &'static str,
    options: &'static [&'static str],
    /// A library that the program loads from its own directory.
    plugin: Option<&'static str>,
}

impl Program {
    /// A program in C.
    pub const fn c(name: &'static str) -> Self {
        let options = &["-std=c11", "-ldl", "-lrt"];
        Self { name, source: (name, "c"), compiler: "cc", options, plugin: None }
    }

    /// The program in C of that source, under another name, with handlers of cancellation that the
    /// unwinder runs, as in C++.
    pub const fn c_with_exceptions(name: &'static str, source: &'static str) -> Self {
        let options = &["-std=c11", "-ldl", "-lrt", "-fexceptions"];
        Self { name, source: (source, "c"), compiler: "cc", options, plugin: None }
    }

    /// The program in C of that source, under another name, linked statically.
    pub const fn c_static(name: &'static str, source: &'static str) -> Self {
        let options = &["-std=c11", "-static"];
        Self { name, source: (source, "c"), compiler: "cc", options, plugin: None }
    }

    /// A program in C++.
    pub const fn cpp(name: &'static str) -> Self {
        Self { name, source: (name, "cpp"), compiler: "c++", options: &["-std=c++17"], plugin: None }
    }

    /// The same program, with a library that it loads while it runs.
    pub const fn with_plugin(self, name: &'static str) -> Self {
        Self { plugin: Some(name), ..self }
    }
}

/// The locks that the library puts behind `pthread.h`; `None` leaves the choice to the library.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice {
    pub mutex: Option<&'static str>,
    pub rwlock: Option<&'static str>,
}

impl Choice {
    /// This mutex, with the default of the library for everything else.
    pub const fn mutex(name: &'static str) -> Self {
        Self { mutex: Some(name), rwlock: None }
    }

    fn variables(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = [("ULOCKS_MUTEX", self.mutex), ("ULOCKS_RWLOCK", self.rwlock)];
        all.into_iter().filter_map(|(variable, name)| Some((variable, name?)))
    }
}

const OPTIONS: [&str; 6] = ["-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"];

/// Variables that choose locks. A run inherits none of them.
const VARIABLES: [&str; 4] = ["ULOCKS_MUTEX", "ULOCKS_RWLOCK", "ULOCKS_STATS", "LD_PRELOAD"];

/// What is found out once for each program, by its name.
type Memory<T> = LazyLock<Mutex<HashMap<&'static str, Arc<OnceLock<T>>>>>;

/// What a run printed, and how it ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub stdout: String,
    pub stderr: String,
    pub status: ExitStatus,
}

impl Outcome {
    /// The exit code; `None` if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

/// What the program prints under the library and not on glibc, with the command that shows it.
pub fn compare(program: Program, choice: &Choice) -> Result<(), String> {
    let Some(expected) = on_glibc(program) else {
        println!("not tested: {}, since this machine has no `{}`", program.name, program.compiler);
        return Ok(());
    };
    let found = run_under(program, choice);
    let Some(difference) = difference(&expected, &found) else { return Ok(()) };
    let variables: Vec<_> = choice.variables().map(|(name, value)| format!("{name}={value} ")).collect();
    Err(format!(
        "{} under the library: {}\nrepeat: {}LD_PRELOAD={} {}\n{difference}\nits errors: {}\n",
        program.name,
        found.status,
        variables.concat(),
        library().display(),
        built(program).expect("it ran before").display(),
        found.stderr.trim_end(),
    ))
}

/// The first line that differs, with the line before it.
fn difference(expected: &Outcome, found: &Outcome) -> Option<String> {
    let (mut theirs, mut ours) = (expected.stdout.lines(), found.stdout.lines());
    let mut before = "";
    for number in 1.. {
        match (theirs.next(), ours.next()) {
            (None, None) => break,
            (line, same) if line == same => before = line.unwrap_or_default(),
            (line, other) => {
                let shown = |line: Option<&str>| line.unwrap_or("(nothing)").to_owned();
                return Some(format!(
                    "line {number}, after `{before}`:\n  glibc:   {}\n  library: {}",
                    shown(line),
                    shown(other)
                ));
            }
        }
    }
    (expected.status != found.status).then(|| format!("glibc: {}", expected.status))
}

/// The lines of glibc, from one run for the whole test program. `None` without a compiler.
fn on_glibc(program: Program) -> Option<Outcome> {
    static KNOWN: Memory<Outcome> = Memory::new(Mutex::default);
    let binary = built(program)?;
    let cell = Arc::clone(KNOWN.lock().unwrap().entry(program.name).or_default());
    let outcome = cell.get_or_init(|| {
        let outcome = run(Command::new(&binary));
        let whole = outcome.stdout.lines().last() == Some("end");
        assert!(
            whole && outcome.status.success(),
            "{} on glibc: {}, without the last line `end`:\n{}\nits errors: {}",
            program.name,
            outcome.status,
            outcome.stdout,
            outcome.stderr
        );
        outcome
    });
    Some(outcome.clone())
}

/// Runs the program under the library.
fn run_under(program: Program, choice: &Choice) -> Outcome {
    run_with(program, choice, &[])
}

/// The same with more variables.
pub fn run_with(program: Program, choice: &Choice, variables: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new(built(program).expect("a compiler"));
    command.env("LD_PRELOAD", library()).envs(choice.variables()).envs(variables.iter().copied());
    run(command)
}

/// A file that no other test has.
pub fn scratch_file(name: &str) -> PathBuf {
    let path = directory().join(format!("{name}-{}", std::process::id()));
    _ = fs::remove_file(&path);
    path
}

/// A command whose variables other than those set on it choose no lock.
fn with_defaults(mut command: Command) -> Command {
    let set: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    for variable in VARIABLES {
        if !set.iter().any(|name| name == variable) {
            command.env_remove(variable);
        }
    }
    command
}

fn run(command: Command) -> Outcome {
    let ran = output(with_defaults(command).current_dir(directory()));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome { stdout: text(ran.stdout), stderr: text(ran.stderr), status: ran.status }
}

/// Where programs are built and run.
fn directory() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("programs");
        fs::create_dir_all(&dir).expect("a directory for programs");
        dir
    });
    made.clone()
}

/// The file that a program was compiled to. `None` without a compiler.
fn built(program: Program) -> Option<PathBuf> {
    static KNOWN: Memory<Option<PathBuf>> = Memory::new(Mutex::default);
    if let Some(name) = program.plugin {
        let options = &["-std=c11", "-shared", "-fPIC"];
        built(Program { name, source: (name, "c"), options, plugin: None, ..program })?;
    }
    let cell = Arc::clone(KNOWN.lock().unwrap().entry(program.name).or_default());
    cell.get_or_init(|| compile(program)).clone()
}

fn compile(program: Program) -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = sources.join(program.source.0).with_extension(program.source.1);
    // Test programs of one package may run at once, in several processes.
    let binary = directory().join(format!("{}-{}", program.name, std::process::id()));
    let mut command = Command::new(program.compiler);
    command.args(OPTIONS).arg(&source).arg("-o").arg(&binary);
    command.args(program.options);
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("cannot run {}: {error}", program.compiler),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "cannot compile {}:\n{errors}", source.display());
            let plain = directory().join(program.name);
            fs::rename(&binary, &plain).expect("one directory");
            Some(plain)
        }
    }
}
