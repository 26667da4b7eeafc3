//! The program.

use std::io;
use std::process::ExitCode;
use ulocks_sysv::{find, list, semctl};

const USAGE: &str = "\
Removes semaphore arrays of the directory ULOCKS_SYSV_DIR (default: the user's own).

usage: ulocks-ipcrm [-s ID]... [-S KEY]...     these arrays; a key may begin with 0x
       ulocks-ipcrm -a                         all arrays that the user may remove
";

/// What an argument names.
enum Target {
    Id(i32),
    Key(u32),
    All,
}

pub fn main() -> ExitCode {
    let mut targets = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let target = match argument.as_str() {
            "-h" | "--help" => {
                print!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            "-a" | "--all" => Some(Target::All),
            "-s" | "--semaphore-id" => {
                arguments.next().and_then(|id| id.parse().ok()).filter(|&id| id >= 0).map(Target::Id)
            }
            "-S" | "--semaphore-key" => arguments.next().and_then(|key| number(&key)).map(Target::Key),
            other => return misused(&format!("there is no option `{other}`")),
        };
        match target {
            Some(target) => targets.push(target),
            None => return misused(&format!("{argument} needs a number")),
        }
    }
    if targets.is_empty() {
        return misused("nothing to remove was named");
    }
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        if !remove(&target) {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn misused(what: &str) -> ExitCode {
    eprint!("ulocks-ipcrm: {what}\n{USAGE}");
    ExitCode::from(2)
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Whether it worked.
fn remove(target: &Target) -> bool {
    match target {
        Target::Id(id) => said(&format!("id {id}"), remove_id(*id)),
        Target::Key(0) => said("key 0", Err(libc::ENOENT)),
        Target::Key(key) => said(&format!("key 0x{key:08x}"), find(*key).and_then(remove_id)),
        Target::All => match list() {
            Ok(arrays) => {
                let ids: Vec<_> = arrays.map(|array| array.id).collect();
                ids.into_iter().filter(|&id| !said(&format!("id {id}"), remove_id(id))).count() == 0
            }
            Err(error) => said("all arrays", Err(error)),
        },
    }
}

fn remove_id(id: i32) -> Result<(), i32> {
    // SAFETY: the command takes no pointer.
    unsafe { semctl(id, 0, libc::IPC_RMID, 0) }.map(drop)
}

fn said(what: &str, answer: Result<(), i32>) -> bool {
    if let Err(error) = answer {
        // With ENOSYS, the library has said which setting is bad.
        eprintln!("ulocks-ipcrm: {what}: {}", io::Error::from_raw_os_error(error));
    }
    answer.is_ok()
}
