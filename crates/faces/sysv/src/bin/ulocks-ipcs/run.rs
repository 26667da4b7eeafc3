//! The program.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use ulocks_sysv::{Listed, Status, list, semctl, stat};

const USAGE: &str = "\
Shows the semaphore arrays of the directory ULOCKS_SYSV_DIR (default: the user's own).

usage: ulocks-ipcs [-s] [--json]      all arrays
       ulocks-ipcs [-s] -i ID         one array, with its semaphores
";

const GETPID: i32 = 11;
const GETVAL: i32 = 12;
const GETNCNT: i32 = 14;
const GETZCNT: i32 = 15;

pub fn main() -> ExitCode {
    let mut json = false;
    let mut one = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-s" | "--semaphores" => {}
            "--json" => json = true,
            "-h" | "--help" => {
                print!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            "-i" | "--id" => match arguments.next().and_then(|id| id.parse::<i32>().ok()) {
                Some(id) => one = Some(id),
                None => return misused("-i needs the id of an array"),
            },
            other => return misused(&format!("there is no option `{other}`")),
        }
    }
    let text = match one {
        Some(_) if json => return misused("--json shows all arrays: it does not go with -i"),
        Some(id) => details(id),
        None => all(json),
    };
    match text {
        // A reader that has gone, as `head`, is no error.
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => failed(&error.to_string()),
            _ => ExitCode::SUCCESS,
        },
        Err(libc::ENOSYS) => ExitCode::FAILURE, // The library has said which setting is bad.
        Err(error) => failed(&io::Error::from_raw_os_error(error).to_string()),
    }
}

fn misused(what: &str) -> ExitCode {
    eprint!("ulocks-ipcs: {what}\n{USAGE}");
    ExitCode::from(2)
}

fn failed(what: &str) -> ExitCode {
    eprintln!("ulocks-ipcs: {what}");
    ExitCode::FAILURE
}

fn all(json: bool) -> Result<String, i32> {
    let arrays = list()?;
    let mut text = String::new();
    if json {
        let arrays: Vec<_> = arrays.map(|array| as_json(&array)).collect();
        let separator = if arrays.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "[{separator}{}{separator}]", arrays.join(",\n"));
    } else {
        text.push_str("\n------ Semaphore Arrays --------\n");
        text.push_str("key        semid      owner      perms      nsems     \n");
        for Listed { id, key, status } in arrays {
            let _ = match status {
                Ok(status) => {
                    let (owner, mode) = (status.perm.uid, status.perm.mode & 0o777);
                    let nsems = status.nsems;
                    writeln!(text, "0x{key:08x} {id:<10} {owner:<10} {mode:<10o} {nsems:<10}")
                }
                Err(error) => {
                    let error = io::Error::from_raw_os_error(error);
                    writeln!(text, "0x{key:08x} {id:<10} {error}")
                }
            };
        }
        text.push('\n');
    }
    Ok(text)
}

fn as_json(array: &Listed) -> String {
    let Listed { id, key, status } = array;
    match status {
        Ok(Status { perm, otime, ctime, nsems, .. }) => format!(
            "  {{\"key\": \"0x{key:08x}\", \"id\": {id}, \"uid\": {}, \"gid\": {}, \"cuid\": {}, \"cgid\": {}, \
             \"mode\": \"{:04o}\", \"nsems\": {nsems}, \"otime\": {otime}, \"ctime\": {ctime}}}",
            perm.uid, perm.gid, perm.cuid, perm.cgid, perm.mode
        ),
        Err(error) => format!("  {{\"key\": \"0x{key:08x}\", \"id\": {id}, \"errno\": {error}}}"),
    }
}

fn details(id: i32) -> Result<String, i32> {
    let (status, _) = stat(id, libc::IPC_STAT)?;
    let perm = status.perm;
    let mut text = format!("\nSemaphore Array semid={id}\n");
    let _ = writeln!(text, "uid={}\t gid={}\t cuid={}\t cgid={}", perm.uid, perm.gid, perm.cuid, perm.cgid);
    let _ = writeln!(text, "mode={:#o}, access_perms={:#o}", perm.mode, perm.mode & 0o777);
    let _ = writeln!(text, "nsems = {}\notime = {}\nctime = {}", status.nsems, status.otime, status.ctime);
    text.push_str("semnum     value      ncount     zcount     pid       \n");
    for num in 0..status.nsems as i32 {
        let mut row = [0; 4];
        for (place, command) in row.iter_mut().zip([GETVAL, GETNCNT, GETZCNT, GETPID]) {
            // SAFETY: these commands take no pointer.
            *place = unsafe { semctl(id, num, command, 0) }?;
        }
        let [value, ncount, zcount, process] = row;
        let _ = writeln!(text, "{num:<10} {value:<10} {ncount:<10} {zcount:<10} {process:<10}");
    }
    text.push('\n');
    Ok(text)
}
