//! Which synchronisation was missing between the two sides of a race.
//!
//! The execution has a graph: the order of each thread's steps, starts and ends of threads, and
//! *reads from*. If a way leads along it from the one side to the other, each read on this way
//! could have synchronised, and would have ordered the two: so C++20 defines happens-before. Of
//! the ways with the fewest reads one is taken, and each read on it that did not synchronise is
//! named, with the side that lacked the ordering. If there is no way, no ordering of any access
//! would have helped in this execution.
//!
//! The writer's side releases by its own ordering, or by a fence before it, on the way. The
//! reader's side acquires likewise, by a fence after it. A read-modify-write continues a release
//! sequence, so the reader reads also from what that one has read.

use super::story::{Line, Said, Story};
use crate::memory::{Access, Fault, Loc, MsgId, What};
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Release, SeqCst};
use std::collections::{HashMap, VecDeque};

/// A read of a message, as a step of the way.
#[derive(Clone, Copy)]
struct Hop {
    /// The line from which the way comes, and whether it reads there what that wrote.
    from: usize,
    reads: bool,
}

pub(super) fn of(story: &Story, fault: &Fault) -> Option<String> {
    let (first, second) = match fault {
        Fault::Race { first, second } => (first, second),
        Fault::Unpublished { access, created } => (created, access),
        Fault::Dead { .. } | Fault::Freed { .. } => return None,
    };
    let lines = &story.lines;
    // The second side is what its thread did last, or was about to do.
    let end = lines.iter().rposition(|line| line.thread == second.thread)?;
    let begin = lines[..=end].iter().rposition(|line| is_of(line, first, &lines[end].said))?;
    // A kernel orders more than its callers' accesses say, and the graph does not have it.
    let is_known = !lines.iter().any(|line| matches!(line.said, Said::Membarrier));
    match way(lines, begin, end) {
        Some(way) => said(story, &way),
        None if is_known => Some(format!(
            "; thread {} has read nothing, directly or through others, that thread {} wrote after it",
            second.thread, first.thread
        )),
        None => None,
    }
}

/// Whether `line` is the first side of a race whose second side is `second`.
fn is_of(line: &Line, first: &Access, second: &Said) -> bool {
    let overlaps = |address: usize, size: usize| match *second {
        Said::Plain { address: other, size: len, .. } => address < other + len && other < address + size,
        _ => true,
    };
    let fits = match line.said {
        Said::Plain { address, size, write } => {
            first.what == (if write { What::PlainWrite } else { What::PlainRead }) && overlaps(address, size)
        }
        Said::Made { .. } => first.what == What::Create,
        Said::Load { .. } | Said::Store { .. } | Said::Update { .. } => first.what == What::Atomic,
        _ => false,
    };
    fits && line.thread == first.thread && line.at == Some(first.at)
}

/// A way from the line `begin` to the line `end`, with as few reads as there can be: each line on
/// it, and whether it was come to by a read.
fn way(lines: &[Line], begin: usize, end: usize) -> Option<Vec<(usize, bool)>> {
    let next = |from: usize, thread: usize| (from + 1..=end).find(|&line| lines[line].thread == thread);
    let readers = readers(&lines[..=end]);
    let mut came: HashMap<usize, Hop> = HashMap::new();
    let mut queue = VecDeque::from([(begin, Hop { from: begin, reads: false })]);
    while let Some((line, hop)) = queue.pop_front() {
        if came.contains_key(&line) {
            continue;
        }
        came.insert(line, hop);
        if line == end {
            break;
        }
        let at_once = Hop { from: line, reads: false };
        let Line { thread, said, .. } = &lines[line];
        match next(line, *thread) {
            Some(later) => queue.push_front((later, at_once)),
            None => {
                let joined =
                    |other: &Line| matches!(other.said, Said::Joined { thread: ended } if ended == *thread);
                let join = (line + 1..=end).find(|&later| joined(&lines[later]));
                queue.extend(join.into_iter().map(|later| (later, at_once)));
            }
        }
        if let Said::Starts { thread: child, .. } = said
            && let Some(first) = next(line, *child)
        {
            queue.push_front((first, at_once));
        }
        for &reader in readers.get(&line).into_iter().flatten() {
            queue.push_back((reader, Hop { from: line, reads: true }));
        }
    }
    let mut way = Vec::new();
    let mut line = end;
    while line != begin {
        let hop = came.get(&line)?;
        way.push((line, hop.reads));
        line = hop.from;
    }
    way.push((begin, false));
    way.reverse();
    Some(way)
}

/// For each line that writes: the lines that read from it, or from a release sequence that it
/// heads.
fn readers(lines: &[Line]) -> HashMap<usize, Vec<usize>> {
    let mut writers: HashMap<MsgId, usize> = HashMap::new();
    let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
    for (reader, line) in lines.iter().enumerate() {
        let mut source = line.reads();
        while let Some(&writer) = source.and_then(|message| writers.get(&message)) {
            if lines[writer].thread != line.thread {
                readers.entry(writer).or_default().push(reader);
            }
            source = lines[writer].reads();
        }
        if let Some(message) = line.writes() {
            writers.insert(message, reader);
        }
    }
    readers
}

/// The reads on the way that did not synchronise.
fn said(story: &Story, way: &[(usize, bool)]) -> Option<String> {
    let places = story.places();
    let lines = &story.lines;
    let mut text = String::new();
    let reads: Vec<usize> = (0..way.len()).filter(|&step| way[step].1).collect();
    for (nth, &step) in reads.iter().enumerate() {
        let before = if nth == 0 { 0 } else { reads[nth - 1] };
        let after = reads.get(nth + 1).map_or(way.len(), |&next| next - 1);
        let (writer, reader) = (&lines[way[step - 1].0], &lines[way[step].0]);
        let fences = |steps: &[(usize, bool)], does: fn(Ordering) -> bool| {
            steps.iter().any(|&(line, _)| matches!(lines[line].said, Said::Fence { order } if does(order)))
        };
        let (wrote, read) = (writer.order()?, reader.order()?);
        let released = releases(wrote) || fences(&way[before..step - 1], releases);
        let acquired = acquires(read) || fences(&way[step + 1..after.max(step + 1)], acquires);
        let lacks = match (released, acquired) {
            (true, true) => continue,
            (false, true) => format!("the {} is {wrote:?} and does not release", writer.verb()),
            (true, false) => format!("the {} is {read:?} and does not acquire", reader.verb()),
            (false, false) => format!(
                "the {} is {wrote:?} and does not release, and the {} is {read:?} and does not acquire",
                writer.verb(),
                reader.verb()
            ),
        };
        text += &format!(
            "; thread {} reads {} at {} from thread {} at {}: {lacks}",
            reader.thread,
            story.name_of(reader.loc()?),
            places.of(reader.at?),
            writer.thread,
            places.of(writer.at?),
        );
    }
    // The parts fit, and do not work together: a fence that releases before one that acquires.
    (!text.is_empty()).then_some(text)
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Acquire | AcqRel | SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Release | AcqRel | SeqCst)
}

impl Line {
    /// The message that the step has read.
    fn reads(&self) -> Option<MsgId> {
        match &self.said {
            Said::Load { seen, .. } | Said::Update { seen, .. } => Some(seen.message),
            _ => None,
        }
    }

    /// The message that the step has written.
    fn writes(&self) -> Option<MsgId> {
        match self.said {
            Said::Store { message, .. } | Said::Update { after: Some((message, _)), .. } => Some(message),
            _ => None,
        }
    }

    fn order(&self) -> Option<Ordering> {
        match self.said {
            Said::Load { order, .. } | Said::Store { order, .. } | Said::Update { order, .. } => Some(order),
            _ => None,
        }
    }

    fn loc(&self) -> Option<Loc> {
        match self.said {
            Said::Load { loc, .. } | Said::Store { loc, .. } | Said::Update { loc, .. } => Some(loc),
            _ => None,
        }
    }

    fn verb(&self) -> &'static str {
        match self.said {
            Said::Load { .. } => "load",
            Said::Update { name, .. } => name,
            _ => "store",
        }
    }
}
