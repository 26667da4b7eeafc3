//! A load for memcached: connections that read and write keys, and check what they read.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const CONNECTIONS: u64 = 8;
const KEYS: u64 = 500;
/// One request in so many writes.
const WRITES: u64 = 10;
const GUARD: Duration = Duration::from_secs(30);

/// What the load did.
pub struct Load {
    pub requests_per_second: f64,
    pub p99_us: f64,
}

/// Loads the server for some seconds.
pub fn load(socket: &Path, seconds: u64) -> anyhow::Result<Load> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let threads: Vec<_> = (0..CONNECTIONS)
        .map(|nth| {
            let socket = socket.to_owned();
            thread::spawn(move || connection(&socket, nth + 1, end))
        })
        .collect();
    let begin = Instant::now();
    let mut delays = Vec::new();
    for thread in threads {
        delays.extend(thread.join().expect("a connection does not panic")?);
    }
    let elapsed = begin.elapsed().as_secs_f64();
    delays.sort_unstable();
    let Some(&p99) = delays.get(delays.len() * 99 / 100) else { bail!("memcached answered nothing") };
    Ok(Load { requests_per_second: delays.len() as f64 / elapsed, p99_us: f64::from(p99) / 1000.0 })
}

/// The delays of one connection's requests, in nanoseconds.
fn connection(socket: &Path, seed: u64, end: Instant) -> anyhow::Result<Vec<u32>> {
    let stream = UnixStream::connect(socket).context("cannot reach memcached")?;
    stream.set_read_timeout(Some(GUARD))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut delays = Vec::new();
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut line = String::new();
    while Instant::now() < end {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let key = random % KEYS;
        let begin = Instant::now();
        if (random / KEYS).is_multiple_of(WRITES) {
            let value = value(key, random % 200);
            writer.write_all(format!("set k{key} 0 0 {}\r\n{value}\r\n", value.len()).as_bytes())?;
            line.clear();
            reader.read_line(&mut line).context("memcached does not answer a set")?;
            if line != "STORED\r\n" {
                bail!("memcached answers a set with {line:?}");
            }
        } else {
            writer.write_all(format!("get k{key}\r\n").as_bytes())?;
            read_value(&mut reader, &mut line, key)?;
        }
        delays.push(u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX));
    }
    Ok(delays)
}

fn value(key: u64, length: u64) -> String {
    format!("{key}:").repeat(1 + usize::try_from(length).unwrap_or_default() / 4)
}

/// Reads `VALUE k1 0 LENGTH`, the value, and `END`; or `END` alone.
fn read_value(reader: &mut BufReader<UnixStream>, line: &mut String, key: u64) -> anyhow::Result<()> {
    line.clear();
    reader.read_line(line).context("memcached does not answer a get")?;
    if line == "END\r\n" {
        return Ok(());
    }
    let length =
        line.strip_prefix(&format!("VALUE k{key} 0 ")).and_then(|rest| rest.trim().parse::<usize>().ok());
    let Some(length) = length else { bail!("memcached answers a get with {line:?}") };
    let mut bytes = vec![0; length + 7];
    reader.read_exact(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.strip_suffix("\r\nEND\r\n").context("memcached sent a value without its end")?;
    let one = format!("{key}:");
    if whole.is_empty() || !whole.replace(&one, "").is_empty() {
        bail!("memcached has a wrong value for key {key}: {whole:?}");
    }
    Ok(())
}
