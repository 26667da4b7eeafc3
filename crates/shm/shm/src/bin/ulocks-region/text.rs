//! A report for people. Names and the names of processes come from others: they are escaped.

use std::io::{self, Write};
use std::path::Path;
use ulocks_shm::inspect::{
    FoundDirectory, FoundLock, FoundName, FoundSlot, Health, Holder, Life, Process, Repaired, Report, Waiters,
};

/// Writes all of it.
pub fn report(report: &Report, path: &Path, out: &mut impl Write) -> io::Result<()> {
    let Report { version, size, epoch, participants, identity, .. } = report;
    let path = path.display().to_string();
    writeln!(out, "{}: a region of {size} bytes, format {version}, epoch {epoch}", path.escape_debug())?;
    writeln!(out, "  root: {} bytes at {:#x}, layout {identity:#018x}", report.root.1, report.root.0)?;
    let attached = if report.is_attached { "processes are attached" } else { "no process is attached" };
    writeln!(out, "  {attached}")?;
    match report.is_of_this_boot {
        Some(false) if report.is_attached => {
            writeln!(out, "  reset under another id of the boot: in another container, perhaps")?;
        }
        Some(false) => {
            writeln!(
                out,
                "  last used before the machine booted, or in a container with another id of the boot"
            )?;
        }
        _ => {}
    }
    if report.is_resetting {
        let what = if report.is_attached { "a reset goes on" } else { "a reset was cut off" };
        writeln!(out, "  {what}: the next program that opens it resets it")?;
    }
    if let Some(unsound) = &report.unsound {
        writeln!(out, "  DAMAGED: {unsound}; or repair it, if no process is attached")?;
    }
    writeln!(out, "  {} of {participants} slots are taken", report.slots.len())?;
    for slot in &report.slots {
        writeln!(out, "    {}", of_slot(slot))?;
    }
    if report.directories.is_empty() {
        writeln!(
            out,
            "  no directory with names: only a program that knows the type of the root can tell its locks"
        )?;
    }
    report.directories.iter().try_for_each(|directory| of_directory(directory, report, out))
}

fn of_slot(found: &FoundSlot) -> String {
    let FoundSlot { slot, generation, process_id, thread_id, .. } = found;
    let slot = format!("slot {slot}, generation {generation}");
    match (&found.process, found.life) {
        (_, Life::Dead) => format!("{slot}: dead, was process {process_id}"),
        (_, Life::Between) => format!("{slot}: thread {thread_id} is claiming it, or leaves it"),
        (Ok(Process { name, is_verified: false, .. }), _) => format!(
            "{slot}: process {process_id}, thread {thread_id} (not verified: {} here, if it is of this \
             namespace)",
            name.escape_debug()
        ),
        (Ok(process), _) => {
            let name = process.name.escape_debug();
            let since = process.seconds.map(|seconds| format!(", thread began {seconds} s ago"));
            format!("{slot}: process {process_id} ({name}), thread {thread_id}{}", since.unwrap_or_default())
        }
        (Err(why), _) => format!("{slot}: process {process_id}, thread {thread_id} ({why})"),
    }
}

fn of_directory(directory: &FoundDirectory, report: &Report, out: &mut impl Write) -> io::Result<()> {
    let FoundDirectory { offset, entries, used, room, names, lock, damage, .. } = directory;
    let number = names.len();
    writeln!(out, "  directory at {offset:#x}: {number} of {entries} names, {used} of {room} bytes")?;
    if !lock.holders.is_empty() {
        writeln!(out, "    its own lock: {}", of_lock(lock, report))?;
    }
    for name in names {
        writeln!(out, "    {}", of_name(name, report))?;
    }
    damage.iter().try_for_each(|damage| writeln!(out, "    DAMAGED: {damage}"))
}

fn of_name(found: &FoundName, report: &Report) -> String {
    let FoundName { name, kind, size, .. } = found;
    let what = match &found.lock {
        _ if found.is_stale => "reset when a program next asks for it".to_string(),
        Some(lock) => of_lock(lock, report),
        None => "no robust lock: its holders are not recorded, or inside of a struct".to_string(),
    };
    format!("{name:?}: {} ({size} bytes): {what}", kind.escape_debug())
}

fn of_lock(lock: &FoundLock, report: &Report) -> String {
    let mut parts = Vec::new();
    if !lock.values.is_empty() {
        let values: Vec<_> = lock.values.iter().map(i32::to_string).collect();
        parts.push(format!("values {}", values.join(" ")));
    }
    if let Some(word) = lock.corrupt {
        parts.push(format!("DAMAGED: its word is {word:#x}"));
    }
    match lock.holders.as_slice() {
        [] if lock.corrupt.is_none() && lock.health.is_some() => parts.push("free".to_string()),
        holders => parts.extend(holders.iter().map(|holder| of_holder(holder, report))),
    }
    match lock.waiters {
        Some(Waiters::Number(0)) | None => {}
        Some(Waiters::Number(1)) => parts.push("1 waits".to_string()),
        Some(Waiters::Number(number)) => parts.push(format!("{number} wait")),
        Some(Waiters::Maybe) => parts.push("some may wait".to_string()),
    }
    match lock.health {
        Some(Health::Dirty) => parts.push("dirty: the next holder is told to repair the data".to_string()),
        Some(Health::NotRecoverable) => {
            parts.push("not recoverable: a program must call `reset` on it".to_string());
        }
        Some(Health::Corrupt(word)) => parts.push(format!("DAMAGED: its health is {word:#x}")),
        Some(Health::Consistent) | None => {}
    }
    parts.join(", ")
}

fn of_holder(holder: &Holder, report: &Report) -> String {
    let verb = match holder {
        Holder { undo, .. } if !undo.is_empty() => "has permits",
        Holder { is_shared: true, .. } => "reads",
        _ => "holds it",
    };
    let slot = holder.slot;
    let found = report.slots.iter().find(|found| found.slot == slot);
    let process = match (holder.life, found) {
        (None, _) => " (DAMAGED: there is no such slot)".to_string(),
        (Some(Life::Dead), _) => " (dead)".to_string(),
        (Some(Life::Gone), _) => " (dead, and its slot was claimed again)".to_string(),
        (Some(Life::Between), _) => " (it is leaving)".to_string(),
        (Some(Life::Live), Some(FoundSlot { process_id, process: Ok(process), .. }))
            if process.is_verified =>
        {
            format!(" (process {process_id}, {})", process.name.escape_debug())
        }
        (Some(Life::Live), Some(FoundSlot { process_id, .. })) => format!(" (process {process_id})"),
        (Some(Life::Live), None) => String::new(),
    };
    let undo = holder.undo.iter().map(|(index, undo)| format!(", its death adds {undo} to {index}"));
    format!("slot {slot}{process} {verb}{}", undo.collect::<String>())
}

/// Writes what a repair has done; with `None`, of a file whose creator has died.
pub fn repaired(repaired: Option<&Repaired>, path: &Path, out: &mut impl Write) -> io::Result<()> {
    let path = path.display().to_string();
    let Some(repaired) = repaired else {
        let path = path.escape_debug();
        return writeln!(out, "{path}: its creator died before the region was done; it is empty now");
    };
    let Repaired { epoch, slots, directories, .. } = repaired;
    writeln!(out, "{}: epoch {epoch} has begun", path.escape_debug())?;
    if let Some(unsound) = &repaired.unsound {
        writeln!(out, "  mended: {unsound}")?;
    }
    writeln!(out, "  freed {slots} slots, reset {directories} directories")?;
    writeln!(out, "  the next program that opens it unlocks all other locks")?;
    repaired.damage.iter().try_for_each(|damage| {
        writeln!(out, "  STILL DAMAGED: {damage}; restore the file, or remove it and create it again")
    })
}
