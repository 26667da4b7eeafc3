//! Servers with a client of their own: redis, nginx and mariadb.

use super::process::{Job, run};
use super::programs::{Bench, GUARD, Outcome, number_after, path, plain};
use anyhow::{Context, bail};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub fn redis(bench: &Bench) -> anyhow::Result<Outcome> {
    let socket = bench.dir.join("s");
    _ = fs::remove_file(&socket);
    let mut command = bench.subject("redis-server");
    command.args(["--port", "0", "--save", "", "--appendonly", "no", "--io-threads", "2"]);
    command.args(["--io-threads-do-reads", "yes", "--unixsocket", &path(&socket)]);
    let server = Job::start(command, &bench.dir)?;
    server.until_accepts(&socket, GUARD)?;
    let requests = 2_000 * bench.seconds;
    let mut client = plain("redis-benchmark");
    client.args(["-s", &path(&socket), "-t", "set,get", "-n", &requests.to_string(), "-c", "16", "--csv"]);
    let begin = Instant::now();
    let output = run(client, &bench.dir, bench.guard())?.output;
    let seconds = begin.elapsed().as_secs_f64();
    let cpu = server.stop()?.cpu;
    // "GET","rps","avg_latency_ms","min","p50","p95","p99","max"
    let get =
        output.lines().find(|line| line.starts_with("\"GET\"")).context("redis-benchmark prints no GET")?;
    let p99 = get.split(',').nth(6).and_then(|word| word.trim_matches('"').parse::<f64>().ok());
    Ok(Outcome { p99_us: p99.map(|ms| ms * 1000.0), ..Outcome::of((2 * requests) as f64, seconds, cpu) })
}

/// The size of the file: more than the cache of open files and one buffer.
const FILE: usize = 200_000;

pub fn nginx(bench: &Bench) -> anyhow::Result<Outcome> {
    let dir = path(&bench.dir);
    // Nobody else has the number now, and it is not given to others at once.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let text: String = "0123456789".chars().cycle().take(FILE).collect();
    fs::write(bench.dir.join("file"), text)?;
    let configuration = format!(
        "daemon off; master_process on; worker_processes 2; error_log stderr; pid {dir}/pid;\n\
         user root; thread_pool default threads=4;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; aio threads; sendfile off; directio 4k;\n\
         client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir};\n\
         uwsgi_temp_path {dir}; scgi_temp_path {dir};\n\
         server {{ listen 127.0.0.1:{port}; root {dir}; }} }}\n"
    );
    let configured = bench.dir.join("nginx.conf");
    fs::write(&configured, configuration)?;
    let mut command = bench.subject("nginx");
    command.args(["-p", &dir, "-e", "stderr", "-c", &path(&configured)]);
    let server = Job::start(command, &bench.dir)?;
    server.until_exists(&bench.dir.join("pid"), GUARD)?;
    let requests = 400 * bench.seconds;
    let mut client = plain("ab");
    client.args(["-q", "-c", "16", "-n", &requests.to_string(), &format!("http://127.0.0.1:{port}/file")]);
    let output = run(client, &bench.dir, bench.guard())?.output;
    let cpu = server.stop()?.cpu;
    // `ab` counts answers of another length, and those that are no success.
    let sent = number_after(&output, "HTML transferred:")?;
    if number_after(&output, "Failed requests:")? > 0.0 || output.contains("Non-2xx responses") {
        bail!("requests failed:\n{output}");
    }
    let p99 = number_after(&output, "99%").ok().map(|ms| ms * 1000.0);
    let outcome = Outcome::of(requests as f64, number_after(&output, "Time taken for tests:")?, cpu);
    let answer = Some(format!("{} bytes for each request\n", sent / requests as f64));
    Ok(Outcome { p99_us: p99, answer, ..outcome })
}

const TABLES: [&str; 2] = ["--tables=2", "--table-size=2000"];

pub fn mariadb(bench: &Bench) -> anyhow::Result<Outcome> {
    let data = bench.dir.join("data");
    let socket = bench.dir.join("s");
    if !data.exists()
        && let Err(error) = make_database(bench, &data, &socket)
    {
        _ = fs::remove_dir_all(&data);
        return Err(error.context("cannot make a database"));
    }
    _ = fs::remove_file(&socket);
    let server = start(bench.subject("mariadbd"), bench, &data, &socket)?;
    let mut load = sysbench(&socket, "run");
    load.args(["--threads=8", "--percentile=99", &format!("--time={}", bench.seconds)]);
    let output = run(load, &bench.dir, bench.guard())?.output;
    let cpu = server.stop()?.cpu;
    let transactions = number_after(&output, "transactions:")?;
    let seconds = number_after(&output, "total time:")?;
    let p99 = number_after(&output, "99th percentile:")? * 1000.0;
    Ok(Outcome { p99_us: Some(p99), ..Outcome::of(transactions, seconds, cpu) })
}

fn start(
    mut server: std::process::Command,
    bench: &Bench,
    data: &Path,
    socket: &Path,
) -> anyhow::Result<Job> {
    server.args(["--no-defaults", "--skip-networking", "--user=root", "--skip-grant-tables"]);
    server.args(["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]);
    server.args([format!("--datadir={}", data.display()), format!("--socket={}", socket.display())]);
    server.arg(format!("--pid-file={}", bench.dir.join("pid").display()));
    let server = Job::start(server, &bench.dir)?;
    server.until_accepts(socket, GUARD)?;
    // The socket is there a little before the server answers.
    let begin = Instant::now();
    while query(bench, socket, "select 1").is_err() && begin.elapsed() < GUARD {
        sleep(Duration::from_millis(50));
    }
    Ok(server)
}

fn query(bench: &Bench, socket: &Path, text: &str) -> anyhow::Result<()> {
    let mut client = plain("mariadb");
    client.args(["--no-defaults", "-uroot", &format!("--socket={}", socket.display()), "-e", text]);
    run(client, &bench.dir, GUARD).map(drop)
}

fn sysbench(socket: &Path, what: &str) -> std::process::Command {
    let mut command = plain("sysbench");
    command.args(["oltp_read_write", "--db-driver=mysql", "--mysql-user=root", "--mysql-db=ulocks"]);
    command.arg(format!("--mysql-socket={}", socket.display())).args(TABLES).arg(what);
    command
}

/// Once, on glibc.
fn make_database(bench: &Bench, data: &Path, socket: &Path) -> anyhow::Result<()> {
    let mut install = plain("mariadb-install-db");
    install.args([
        "--no-defaults",
        "--skip-test-db",
        "--user=root",
        "--auth-root-authentication-method=normal",
    ]);
    install.arg(format!("--datadir={}", data.display()));
    run(install, &bench.dir, GUARD)?;
    let server = start(plain("mariadbd"), bench, data, socket)?;
    query(bench, socket, "create database ulocks")?;
    run(sysbench(socket, "prepare"), &bench.dir, GUARD)?;
    server.stop().map(drop)
}
