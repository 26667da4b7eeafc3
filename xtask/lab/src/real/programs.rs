//! The programs: what they need, how they run, and what their output says.

use super::memcache;
use super::process::{Ended, Job, installed, run};
use super::servers;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Beyond the time that a run is meant to take.
pub const GUARD: Duration = Duration::from_secs(120);

/// Which library a program is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// `libulocks_pthread.so`.
    Pthread,
    /// `libulocks_sysv.so`.
    Sysv,
}

/// A program that is measured.
pub struct Real {
    pub name: &'static str,
    /// What it does, for the reader of the table.
    pub what: &'static str,
    pub face: Face,
    /// The packages of Debian that have it.
    pub packages: &'static str,
    /// Programs that must be installed.
    pub needs: &'static [&'static str],
    pub unit: &'static str,
    pub run: fn(&Bench) -> anyhow::Result<Outcome>,
}

/// What a run is given.
pub struct Bench {
    /// A directory for this program, kept between its runs.
    pub dir: PathBuf,
    /// The variables of the subject, with `LD_PRELOAD`.
    pub variables: Vec<(&'static str, String)>,
    /// How long the load should last.
    pub seconds: u64,
}

impl Bench {
    /// A program that gets the locks of the subject.
    pub fn subject(&self, program: &str) -> Command {
        let mut command = plain(program);
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        command
    }

    pub fn guard(&self) -> Duration {
        GUARD + Duration::from_secs(self.seconds * 10)
    }

    fn run(&self, command: Command) -> anyhow::Result<Ended> {
        run(command, &self.dir, self.guard())
    }
}

/// A program with the locks of glibc.
pub fn plain(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["LD_PRELOAD", "ULOCKS_MUTEX", "ULOCKS_RWLOCK", "ULOCKS_STATS"] {
        command.env_remove(name);
    }
    command
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Operations per second.
    pub rate: f64,
    pub p99_us: Option<f64>,
    /// CPU time of the program under test for each million operations, in seconds.
    pub cpu_per_million: f64,
    /// What the program computed, if it does not depend on the schedule.
    pub answer: Option<String>,
}

impl Outcome {
    /// Of a program that did `operations` in `seconds` and used `cpu` seconds of CPU time.
    pub fn of(operations: f64, seconds: f64, cpu: f64) -> Self {
        Self { rate: operations / seconds, cpu_per_million: cpu / operations * 1e6, ..Self::default() }
    }
}

#[rustfmt::skip]
pub const REAL: &[Real] = &[
    Real { name: "memcached", what: "a cache with 4 threads; 8 connections read and write 500 keys, and check the values", face: Face::Pthread, packages: "memcached", needs: &["memcached"], unit: "requests/s", run: memcached },
    Real { name: "redis", what: "a store with 2 threads for input and output; redis-benchmark sets and gets", face: Face::Pthread, packages: "redis-server redis-tools", needs: &["redis-server", "redis-benchmark"], unit: "requests/s", run: servers::redis },
    Real { name: "mariadb", what: "sysbench oltp_read_write with 8 connections on a small table", face: Face::Pthread, packages: "mariadb-server sysbench", needs: &["mariadbd", "mariadb", "mariadb-install-db", "sysbench"], unit: "transactions/s", run: servers::mariadb },
    Real { name: "nginx", what: "a server whose pool of 4 threads reads a file for each request; ab has 16 connections", face: Face::Pthread, packages: "nginx-light apache2-utils", needs: &["nginx", "ab"], unit: "requests/s", run: servers::nginx },
    Real { name: "rocksdb", what: "db_bench: 8 threads fill and read a database", face: Face::Pthread, packages: "rocksdb-tools", needs: &["db_bench"], unit: "reads/s", run: rocksdb },
    Real { name: "rocksdb-writing", what: "db_bench: 4 threads read while one writes", face: Face::Pthread, packages: "rocksdb-tools", needs: &["db_bench"], unit: "reads/s", run: rocksdb_writing },
    Real { name: "kyotocabinet", what: "kccachetest wicked: 4 threads do everything to a cache of records", face: Face::Pthread, packages: "kyotocabinet-utils", needs: &["kccachetest"], unit: "operations/s", run: kyotocabinet },
    Real { name: "sysbench-threads", what: "sysbench threads: 8 threads, 4 mutexes, yields inside", face: Face::Pthread, packages: "sysbench", needs: &["sysbench"], unit: "events/s", run: sysbench_threads },
    Real { name: "sysbench-mutex", what: "sysbench mutex: 8 threads, 4 mutexes, short regions", face: Face::Pthread, packages: "sysbench", needs: &["sysbench"], unit: "locks/s", run: sysbench_mutex },
    Real { name: "stress-mutex", what: "stress-ng --mutex: threads of different priorities on one mutex", face: Face::Pthread, packages: "stress-ng", needs: &["stress-ng"], unit: "operations/s", run: |bench| stress(bench, "mutex") },
    Real { name: "python", what: "python3: 8 threads with a queue, locks and a condition variable", face: Face::Pthread, packages: "python3", needs: &["python3"], unit: "items/s", run: python },
    Real { name: "java", what: "a sample: the JVM, with 4 threads that share monitors, locks and a map, and collect garbage", face: Face::Pthread, packages: "default-jdk-headless", needs: &["java", "javac"], unit: "rounds/s", run: java },
    Real { name: "openmp", what: "a sample: OpenMP loops, locks and tasks beside a pthread mutex", face: Face::Pthread, packages: "gcc", needs: &["cc"], unit: "rounds/s", run: openmp },
    Real { name: "tbb", what: "a sample: a oneTBB pipeline beside std::mutex and std::shared_mutex", face: Face::Pthread, packages: "g++ libtbb-dev", needs: &["c++"], unit: "items/s", run: tbb },
    Real { name: "perl", what: "IPC::Shareable: 4 processes count in a shared variable, under its semaphores", face: Face::Sysv, packages: "libipc-shareable-perl", needs: &["perl", "/usr/share/perl5/IPC/Shareable.pm"], unit: "rounds/s", run: perl },
    Real { name: "php", what: "sysvsem: 4 processes count in shared memory, under a semaphore", face: Face::Sysv, packages: "php-cli", needs: &["php"], unit: "rounds/s", run: php },
    Real { name: "fakeroot", what: "fakeroot-sysv: chown of many files, each guarded by a System V semaphore", face: Face::Sysv, packages: "fakeroot", needs: &["fakeroot-sysv"], unit: "files/s", run: fakeroot },
];

impl Real {
    /// What this machine lacks to run it.
    pub fn missing(&self) -> Option<String> {
        let missing: Vec<_> = self.needs.iter().copied().filter(|name| installed(name).is_none()).collect();
        (!missing.is_empty())
            .then(|| format!("no `{}`; get it with: apt-get install {}", missing.join("`, `"), self.packages))
    }
}

/// The number after `label` in the first line that has it.
pub fn number_after(output: &str, label: &str) -> anyhow::Result<f64> {
    let rest = output.lines().find_map(|line| Some(line.split_once(label)?.1));
    let digits = |rest: &str| {
        let start = rest.trim_start_matches([' ', ':', '=', '(']);
        let end = start.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(start.len());
        start[..end].parse().ok()
    };
    rest.and_then(digits).with_context(|| format!("no number after `{label}` in:\n{output}"))
}

fn memcached(bench: &Bench) -> anyhow::Result<Outcome> {
    let socket = bench.dir.join("s");
    _ = std::fs::remove_file(&socket);
    let mut command = bench.subject("memcached");
    command.args(["-t", "4", "-m", "64", "-u", "root", "-s"]).arg(&socket);
    let server = Job::start(command, &bench.dir)?;
    server.until_accepts(&socket, GUARD)?;
    let begin = Instant::now();
    let load = memcache::load(&socket, bench.seconds)?;
    let seconds = begin.elapsed().as_secs_f64();
    let cpu = server.stop()?.cpu;
    let requests = load.requests_per_second * seconds;
    Ok(Outcome { p99_us: Some(load.p99_us), ..Outcome::of(requests, seconds, cpu) })
}

fn rocksdb(bench: &Bench) -> anyhow::Result<Outcome> {
    let db = bench.dir.join("db");
    _ = std::fs::remove_dir_all(&db);
    let number = 10_000 * bench.seconds;
    let mut command = bench.subject("db_bench");
    command.args(["--benchmarks=fillrandom,readrandom", "--threads=8", "--histogram=1", "--seed=7"]);
    command.arg(format!("--num={number}")).arg(format!("--db={}", db.display()));
    let ended = bench.run(command)?;
    let reads = ended.output.split("readrandom").nth(1).context("db_bench says nothing of readrandom")?;
    let rate = number_after(reads, "micros/op")?;
    let p99 = number_after(reads, "P99:")?;
    let operations = (2 * 8 * number) as f64;
    Ok(Outcome { rate, p99_us: Some(p99), cpu_per_million: ended.cpu / operations * 1e6, answer: None })
}

fn rocksdb_writing(bench: &Bench) -> anyhow::Result<Outcome> {
    let db = bench.dir.join("db");
    _ = std::fs::remove_dir_all(&db);
    let mut command = bench.subject("db_bench");
    command.args(["--benchmarks=fillrandom,readwhilewriting", "--threads=4", "--histogram=1", "--seed=7"]);
    command.args(["--num=10000", &format!("--duration={}", bench.seconds)]);
    command.arg(format!("--db={}", db.display()));
    let ended = bench.run(command)?;
    let reads = ended.output.split("readwhilewriting").nth(1);
    let reads = reads.context("db_bench says nothing of readwhilewriting")?;
    let rate = number_after(reads, "micros/op")?;
    let p99 = number_after(reads, "P99:")?;
    let cpu_per_million = ended.cpu / (rate * bench.seconds as f64) * 1e6;
    Ok(Outcome { rate, p99_us: Some(p99), cpu_per_million, answer: None })
}

fn kyotocabinet(bench: &Bench) -> anyhow::Result<Outcome> {
    let number = 100_000 * bench.seconds;
    let mut command = bench.subject("kccachetest");
    command.args(["wicked", "-th", "4", &number.to_string()]);
    let ended = bench.run(command)?;
    if ended.output.trim_end().lines().last() != Some("ok") {
        bail!("kccachetest is not content:\n{}", ended.output);
    }
    Ok(Outcome::of((4 * number) as f64, number_after(&ended.output, "time:")?, ended.cpu))
}

fn sysbench_threads(bench: &Bench) -> anyhow::Result<Outcome> {
    let mut command = bench.subject("sysbench");
    command.args(["threads", "--threads=8", "--thread-yields=100", "--thread-locks=4", "--percentile=99"]);
    command.args([format!("--time={}", bench.seconds), "run".into()]);
    let ended = bench.run(command)?;
    let events = number_after(&ended.output, "total number of events:")?;
    let p99 = number_after(&ended.output, "99th percentile:")? * 1000.0;
    let seconds = number_after(&ended.output, "total time:")?;
    Ok(Outcome { p99_us: Some(p99), ..Outcome::of(events, seconds, ended.cpu) })
}

fn sysbench_mutex(bench: &Bench) -> anyhow::Result<Outcome> {
    let locks = 300_000 * bench.seconds;
    let mut command = bench.subject("sysbench");
    command.args(["mutex", "--threads=8", "--mutex-num=4", "--mutex-loops=100"]);
    command.args([format!("--mutex-locks={locks}"), "run".into()]);
    let ended = bench.run(command)?;
    Ok(Outcome::of((8 * locks) as f64, number_after(&ended.output, "total time:")?, ended.cpu))
}

/// Two processes of one stressor. Its line of metrics has, after the name: operations, real time,
/// user time, system time.
fn stress(bench: &Bench, stressor: &str) -> anyhow::Result<Outcome> {
    let mut command = bench.subject("stress-ng");
    command.args([&format!("--{stressor}"), "2", "--metrics-brief", "--verify"]);
    command.args(["--timeout", &format!("{}s", bench.seconds)]);
    let ended = bench.run(command)?;
    let numbers = ended.output.lines().find_map(|line| {
        let mut words = line.split("] ").nth(1)?.split_whitespace();
        let is_it = words.next()? == stressor;
        is_it.then(|| words.map_while(|word| word.parse().ok()).collect::<Vec<f64>>())
    });
    match numbers.as_deref() {
        Some(&[operations, real, user, system, ..]) => Ok(Outcome::of(operations, real, user + system)),
        _ => bail!("stress-ng prints no metrics of {stressor}:\n{}", ended.output),
    }
}

const PYTHON: &str = r"
import sys, threading, queue
items = int(sys.argv[1])
waiting, done = queue.Queue(100), []
lock, condition, left = threading.Lock(), threading.Condition(), [4]
def produce(first):
    for item in range(first, items, 4):
        waiting.put(item)
    with condition:
        left[0] -= 1
        condition.notify_all()
def consume():
    total = 0
    while (item := waiting.get()) is not None:
        total += item * item % 1009
    with lock:
        done.append(total)
consumers = [threading.Thread(target=consume) for _ in range(4)]
producers = [threading.Thread(target=produce, args=(first,)) for first in range(4)]
for thread in consumers + producers:
    thread.start()
with condition:
    condition.wait_for(lambda: left[0] == 0)
for _ in consumers:
    waiting.put(None)
for thread in consumers + producers:
    thread.join()
print(sum(done))
";

fn python(bench: &Bench) -> anyhow::Result<Outcome> {
    let items = 200_000 * bench.seconds;
    let mut command = bench.subject("python3");
    command.args(["-c", PYTHON, &items.to_string()]);
    with_answer(bench, command, items)
}

/// Runs a program whose output is its answer.
fn with_answer(bench: &Bench, command: Command, operations: u64) -> anyhow::Result<Outcome> {
    let begin = Instant::now();
    let ended = bench.run(command)?;
    let outcome = Outcome::of(operations as f64, begin.elapsed().as_secs_f64(), ended.cpu);
    Ok(Outcome { answer: Some(ended.output), ..outcome })
}

const PERL: &str = include_str!("samples/counter.pl");
const PHP: &str = include_str!("samples/counter.php");

fn perl(bench: &Bench) -> anyhow::Result<Outcome> {
    let rounds = 1_000 * bench.seconds;
    let mut command = bench.subject("perl");
    command.args(["-e", PERL, &rounds.to_string()]);
    with_answer(bench, command, 4 * rounds)
}

fn php(bench: &Bench) -> anyhow::Result<Outcome> {
    let rounds = 40_000 * bench.seconds;
    let mut command = bench.subject("php");
    command.args(["-r", PHP, &rounds.to_string()]);
    with_answer(bench, command, 4 * rounds)
}

const JAVA: &str = include_str!("samples/Threads.java");

fn java(bench: &Bench) -> anyhow::Result<Outcome> {
    let source = bench.dir.join("Threads.java");
    std::fs::write(&source, JAVA)?;
    let rounds = 400_000 * bench.seconds;
    let mut command = bench.subject("java");
    // The virtual machine compiles the file first, in the same process.
    command.arg(&source).arg(rounds.to_string());
    with_answer(bench, command, 4 * rounds)
}

const TASKS: &str = include_str!("samples/tasks.c");
const PIPELINE: &str = include_str!("samples/pipeline.cpp");

fn openmp(bench: &Bench) -> anyhow::Result<Outcome> {
    let sample = sample(bench, "tasks.c", TASKS, &["cc", "-O2", "-fopenmp"], &[])?;
    let rounds = 2_000_000 * bench.seconds;
    let mut command = bench.subject(&sample);
    command.arg(rounds.to_string());
    with_answer(bench, command, rounds)
}

fn tbb(bench: &Bench) -> anyhow::Result<Outcome> {
    let sample =
        sample(bench, "pipeline.cpp", PIPELINE, &["c++", "-O2", "-std=c++17", "-pthread"], &["-ltbb"])?;
    let items = 1_000_000 * bench.seconds;
    let mut command = bench.subject(&sample);
    command.arg(items.to_string());
    with_answer(bench, command, items)
}

/// Compiles a source of this command, once.
fn sample(
    bench: &Bench,
    name: &str,
    text: &str,
    compiler: &[&str],
    libraries: &[&str],
) -> anyhow::Result<String> {
    let binary = bench.dir.join("sample");
    if !binary.exists() {
        let source = bench.dir.join(name);
        std::fs::write(&source, text)?;
        let mut command = plain(compiler[0]);
        command.args(&compiler[1..]).arg(&source).arg("-o").arg(&binary).args(libraries);
        run(command, &bench.dir, GUARD).context("a sample does not compile; its package may be missing")?;
    }
    Ok(path(&binary))
}

/// A path as an argument.
pub fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn fakeroot(bench: &Bench) -> anyhow::Result<Outcome> {
    let files = 2_000 * bench.seconds;
    let script = format!(
        "rm -rf tree && mkdir tree && cd tree && seq -f 'f%06.0f' {files} | xargs touch \
         && seq -f 'f%06.0f' {files} | xargs -n 50 -P 4 chown 12:34 && stat -c %u:%g f* | sort | uniq -c"
    );
    let mut command = bench.subject("fakeroot-sysv");
    command.args(["sh", "-c", &script]);
    with_answer(bench, command, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_after_their_labels() {
        let output = "    total number of events:              2468\n  99th percentile:     10.84\nP99: 2.98 P99.9: 931.43";
        assert_eq!(number_after(output, "events:").unwrap(), 2468.0);
        assert_eq!(number_after(output, "99th percentile:").unwrap(), 10.84);
        assert_eq!(number_after(output, "P99:").unwrap(), 2.98);
        assert!(number_after(output, "time:").unwrap_err().to_string().contains("time:"));
        let rocks = "readrandom   :      26.703 micros/op 273662 ops/sec 0.585 seconds";
        assert_eq!(number_after(rocks, "micros/op").unwrap(), 273_662.0);
    }

    #[test]
    fn a_missing_program_says_how_to_get_it() {
        let real = Real { needs: &["no-such-program-here", "sh"], packages: "some-package", ..REAL[0] };
        let missing = real.missing().unwrap();
        assert!(
            missing.contains("no-such-program-here") && missing.contains("apt-get install some-package"),
            "{missing}"
        );
        assert!(!missing.contains("`sh`"), "{missing}");
        assert_eq!(Real { needs: &["sh"], ..REAL[0] }.missing(), None);
    }

    #[test]
    fn names_are_different() {
        let mut names: Vec<_> = REAL.iter().map(|real| real.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REAL.len());
    }
}
