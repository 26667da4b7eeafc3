//! Processes move money between two accounts in a region. One of them is killed in the middle of a
//! transfer, while it holds the mutex. The next holder is told, and repairs the accounts.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::{env, fs, io, thread};
use ulocks_shm::robust::mutex::{LockError, RobustGuard, RobustMutex};
use ulocks_shm::{Joined, Region, SharedSafe};

const TOTAL: u64 = 1_000;
const TRANSFERS: u64 = 20_000;
const WORKERS: usize = 3;

#[derive(SharedSafe)]
#[repr(C)]
struct Bank {
    accounts: RobustMutex<[u64; 2]>,
}

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().collect::<Vec<_>>().as_slice() {
        [_] => parent(),
        [_, role, path] if role == "work" => work(path),
        [_, role, path] if role == "hang" => hang(path),
        _ => Err("usage: killed_holder".into()),
    }
}

fn parent() -> Result<(), Box<dyn Error>> {
    let path = env::temp_dir().join(format!("ulocks-killed-holder-{}", std::process::id()));
    let path = path.to_str().ok_or("the temporary directory has no plain name")?;
    let bank = Region::<Bank>::options().create(path, 0o600)?;
    let me = bank.join()?;
    repaired(&bank, &me)?[0] = TOTAL;

    let mut holder = start("hang", path)?;
    let output = holder.stdout.take().ok_or("the output of the holder is a pipe")?;
    // It prints a line when it holds the mutex and has taken money from the first account.
    BufReader::new(output).read_line(&mut String::new())?;
    let workers = (0..WORKERS).map(|_| start("work", path)).collect::<io::Result<Vec<_>>>()?;
    holder.kill()?;
    holder.wait()?;
    for mut worker in workers {
        assert!(worker.wait()?.success(), "a worker failed");
    }

    let accounts = *repaired(&bank, &me)?;
    fs::remove_file(path)?;
    assert_eq!(accounts.iter().sum::<u64>(), TOTAL);
    println!("{WORKERS} processes have gone on after a holder was killed: {accounts:?}");
    Ok(())
}

fn start(role: &str, path: &str) -> io::Result<Child> {
    Command::new(env::current_exe()?).args([role, path]).stdout(Stdio::piped()).spawn()
}

fn work(path: &str) -> Result<(), Box<dyn Error>> {
    let bank = Region::<Bank>::options().open(path)?;
    let me = bank.join()?;
    for turn in 0..TRANSFERS {
        let mut accounts = repaired(&bank, &me)?;
        let from = usize::from(turn % 2 == 1);
        if accounts[from] > 0 {
            accounts[from] -= 1;
            accounts[1 - from] += 1;
        }
    }
    Ok(())
}

/// Does half of a transfer, and then holds the mutex until the process is killed.
fn hang(path: &str) -> Result<(), Box<dyn Error>> {
    let bank = Region::<Bank>::options().open(path)?;
    let me = bank.join()?;
    let mut accounts = repaired(&bank, &me)?;
    accounts[0] -= 1;
    println!("holding");
    loop {
        thread::park();
    }
}

/// The accounts, locked. If the last holder died, the first account says what the second one has.
fn repaired<'a>(
    bank: &'a Region<Bank>,
    me: &'a Joined<'_>,
) -> Result<RobustGuard<'a, [u64; 2]>, Box<dyn Error>> {
    match bank.accounts.lock(me) {
        Ok(accounts) => Ok(accounts),
        Err(LockError::OwnerDied(mut accounts)) => {
            accounts[1] = TOTAL - accounts[0];
            accounts.mark_consistent();
            Ok(accounts)
        }
        Err(error) => Err(error.to_string().into()),
    }
}
