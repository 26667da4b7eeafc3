//! A report for programs.

use std::fmt;
use ulocks_shm::inspect::{
    FoundDirectory, FoundLock, FoundName, FoundSlot, Health, Holder, Life, Report, Waiters,
};

/// A value of JSON. Numbers of 64 bits that are no amounts are texts, as many readers would round
/// them.
pub enum Json {
    Null,
    Truth(bool),
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

use Json::{List, Null, Number, Object, Truth};

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Null => f.write_str("null"),
            Truth(truth) => write!(f, "{truth}"),
            Number(number) => write!(f, "{number}"),
            Self::Text(text) => quoted(text, f),
            List(values) => {
                f.write_str("[")?;
                for (nth, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if nth == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Object(fields) => {
                f.write_str("{")?;
                for (nth, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}\"{name}\":{value}", if nth == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for char in text.chars() {
        match char {
            '"' | '\\' => write!(f, "\\{char}")?,
            // Also those that a terminal would obey.
            char if char.is_control() => write!(f, "\\u{:04x}", u32::from(char))?,
            char => write!(f, "{char}")?,
        }
    }
    f.write_str("\"")
}

fn text(text: impl Into<String>) -> Json {
    Json::Text(text.into())
}

fn number(number: impl TryInto<i64>) -> Json {
    number.try_into().map_or(Null, Number)
}

fn hash(hash: u64) -> Json {
    text(format!("{hash:#018x}"))
}

fn list<T>(values: &[T], each: impl Fn(&T) -> Json) -> Json {
    List(values.iter().map(each).collect())
}

/// All of it.
pub fn report(report: &Report) -> Json {
    Object(vec![
        ("format", number(report.version)),
        ("size", number(report.size)),
        ("participants", number(report.participants)),
        ("root_offset", number(report.root.0)),
        ("root_size", number(report.root.1)),
        ("layout", hash(report.identity)),
        ("epoch", number(report.epoch)),
        ("boot", hash(report.boot)),
        ("this_boot", report.is_of_this_boot.map_or(Null, Truth)),
        ("state", text(if report.is_resetting { "resetting" } else { "ready" })),
        ("attached", Truth(report.is_attached)),
        ("damage", report.unsound.as_ref().map_or(Null, |damage| text(damage.to_string()))),
        ("slots", list(&report.slots, of_slot)),
        ("directories", list(&report.directories, of_directory)),
    ])
}

fn of_slot(found: &FoundSlot) -> Json {
    let process = found.process.as_ref();
    Object(vec![
        ("slot", number(found.slot)),
        ("generation", number(found.generation)),
        ("state", text(of_life(found.life))),
        ("pid", number(found.process_id)),
        ("tid", if found.thread_id == 0 { Null } else { number(found.thread_id) }),
        ("comm", process.map_or(Null, |process| text(process.name.as_str()))),
        ("verified", process.map_or(Null, |process| Truth(process.is_verified))),
        ("thread_age_s", process.ok().and_then(|process| process.seconds).map_or(Null, number)),
        ("unknown", process.err().map_or(Null, |why| text(*why))),
    ])
}

fn of_life(life: Life) -> &'static str {
    match life {
        Life::Live => "live",
        Life::Dead => "dead",
        Life::Gone => "gone",
        Life::Between => "between owners",
    }
}

fn of_directory(directory: &FoundDirectory) -> Json {
    Object(vec![
        ("offset", number(directory.offset)),
        ("entries", number(directory.entries)),
        ("bytes", number(directory.room)),
        ("bytes_used", number(directory.used)),
        ("lock", of_lock(&directory.lock)),
        ("damage", directory.damage.as_ref().map_or(Null, |damage| text(damage.as_str()))),
        ("names", list(&directory.names, of_name)),
    ])
}

fn of_name(name: &FoundName) -> Json {
    Object(vec![
        ("name", text(name.name.as_str())),
        ("kind", text(name.kind.as_str())),
        ("offset", number(name.offset)),
        ("size", number(name.size)),
        ("stale", Truth(name.is_stale)),
        ("lock", name.lock.as_ref().map_or(Null, of_lock)),
    ])
}

fn of_lock(lock: &FoundLock) -> Json {
    let waiters = match lock.waiters {
        None => Null,
        Some(Waiters::Number(waiters)) => number(waiters),
        Some(Waiters::Maybe) => text("maybe"),
    };
    let health = match lock.health {
        None => Null,
        Some(Health::Consistent) => text("consistent"),
        Some(Health::Dirty) => text("dirty"),
        Some(Health::NotRecoverable) => text("not recoverable"),
        Some(Health::Corrupt(_)) => text("corrupt"),
    };
    Object(vec![
        ("holders", list(&lock.holders, of_holder)),
        ("waiters", waiters),
        ("health", health),
        ("values", list(&lock.values, |&value| number(value))),
        ("corrupt_word", lock.corrupt.map_or(Null, number)),
    ])
}

fn of_holder(holder: &Holder) -> Json {
    let undo = |&(semaphore, change): &(usize, i32)| {
        Object(vec![("semaphore", number(semaphore)), ("change", number(change))])
    };
    Object(vec![
        ("slot", number(holder.slot)),
        ("state", holder.life.map_or(text("no such slot"), |life| text(of_life(life)))),
        ("shared", Truth(holder.is_shared)),
        ("undo", list(&holder.undo, undo)),
    ])
}
