//! The answer of a run: which lock for which workload, what it costs, and which is ahead.
//!
//! # The rule
//! For a workload, a section of `scaling`, count the cells from two threads up to as many as there
//! are CPUs. There are two answers, since one rule cannot serve both wishes:
//! - the lock of the family with the greatest rate, and
//! - that with the greatest rate of those with which **everybody runs**: in each of these cells no
//!   thread has less than a tenth of the mean of all.
//!
//! What happens with the most threads stands beside it, for the answers and for the best peer.

use super::kept::row_of;
use super::tables::{Table, WIDTH, cut, wrapped};
use super::units;
use crate::engine::cell::{Kind, Subject};
use crate::engine::record::{Ended, Measured, Mode, Record};
use crate::statistics::geometric_mean;
use std::cmp::Ordering;

/// Lines of the screen; the paths of files stand below it, and all is shorter than 40 lines.
pub const HEIGHT: usize = 35;
/// The row that answers.
const ROW: &str = "scaling";
/// To whose CPU time that of others is compared.
pub(super) const STD: &str = "std";
/// What `ulocks::Mutex` is among the subjects.
const MUTEX: &str = "throughput";
/// A thread with less of the mean than this hardly ran.
const TENTH: f64 = 0.1;

/// A workload of the record, its numbers of threads, and the locks that are named for it.
struct Workload<'a> {
    record: &'a Record,
    section: &'a str,
    /// Numbers of threads from two up to the CPUs, or all from two if there are none such.
    span: Vec<f64>,
    /// The greatest number of threads.
    most: f64,
    /// The fastest with which everybody runs.
    even: Option<&'a str>,
    /// The fastest.
    fast: &'a str,
    /// The fastest peer.
    peer: &'a str,
}

/// The first cell of a section with so many threads in which a subject has a figure. The same
/// number of threads may have two: one with a clock around each acquisition, and one without.
pub(crate) fn cell_at(record: &Record, section: &str, x: f64, subject: &str, figure: &str) -> Option<usize> {
    let here = |cell: &usize| record.cells[*cell].x == Some(x);
    let known = |cell: &usize| record.measured(*cell, subject, figure).is_some();
    record.cells_of(section).filter(here).find(known)
}

/// The places of the cells of a section on its axis, each once.
pub(crate) fn places(record: &Record, section: &str) -> Vec<f64> {
    let mut places: Vec<f64> = record.cells_of(section).filter_map(|cell| record.cells[cell].x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

impl<'a> Workload<'a> {
    /// Nothing without two threads, a peer and two locks of the family.
    fn of(record: &'a Record, section: &'a str) -> Option<Self> {
        let mut span = places(record, section);
        span.retain(|&x| x >= 2.0);
        let (&least, &most) = (span.first()?, span.last()?);
        let cpus = record.machine.cpus() as f64;
        span.retain(|&x| x <= cpus || cpus < least);
        let mut this = Self { record, section, span, most, even: None, fast: "", peer: "" };
        let by_rate = |kind: Kind| {
            let subjects = record.subjects.iter().filter(move |subject| subject.kind == kind);
            let rate = |of: &'a Subject| Some((of.name.as_str(), this.rate(&of.name)?));
            let mut rates: Vec<(&'a str, f64)> = subjects.filter_map(rate).collect();
            rates.sort_by(|a, b| b.1.total_cmp(&a.1));
            rates.into_iter().map(|lock| lock.0).collect::<Vec<_>>()
        };
        let (family, peers) = (by_rate(Kind::Family), by_rate(Kind::Peer));
        (this.fast, this.peer) = (family.first().filter(|_| family.len() > 1)?, peers.first()?);
        this.even = family.into_iter().find(|lock| this.everybody_runs(lock));
        Some(this)
    }

    /// The lock that is named first.
    fn first(&self) -> &'a str {
        self.even.unwrap_or(self.fast)
    }

    fn cell(&self, x: f64, subject: &str, figure: &str) -> Option<usize> {
        cell_at(self.record, self.section, x, subject, figure)
    }

    fn measured(&self, x: f64, subject: &str, figure: &str) -> Option<Measured> {
        self.record.measured(self.cell(x, subject, figure)?, subject, figure)
    }

    /// The mean of the rates over the span; nothing if a cell is unknown.
    fn rate(&self, subject: &str) -> Option<f64> {
        let rates: Option<Vec<f64>> =
            self.span.iter().map(|&x| Some(self.measured(x, subject, "rate")?.value)).collect();
        Some(geometric_mean(&rates?))
    }

    fn everybody_runs(&self, subject: &str) -> bool {
        let runs = |&x: &f64| {
            let of = |figure| Some(self.measured(x, subject, figure)?.value);
            of("starved").is_some_and(|part| part == 0.0) && of("least").is_some_and(|part| part >= TENTH)
        };
        self.span.iter().all(runs)
    }

    /// Figures of a subject by those of the best peer of each cell, or of another subject.
    fn ratios(&self, subject: &str, other: Option<&str>, figure: &str) -> Vec<f64> {
        let ratio = |&x: &f64| {
            let cell = self.cell(x, subject, figure)?;
            let other = other.or_else(|| self.record.best_peer(cell, figure))?;
            Some(self.record.ratio((cell, subject), (cell, other), figure)?.value)
        };
        self.span.iter().filter_map(ratio).collect()
    }

    /// The lines of the table: the locks to take and the best peer.
    fn rows(&self) -> Vec<Vec<String>> {
        let words = if self.even == Some(self.fast) { ["both", ""] } else { ["all run", "fastest"] };
        let locks = [(self.even, words[0]), (Some(self.fast), words[1]), (Some(self.peer), "best peer")];
        let known = locks.into_iter().filter(|(_, what)| !what.is_empty());
        let mut rows: Vec<Vec<String>> =
            known.filter_map(|(lock, what)| Some(self.row(lock?, what))).collect();
        rows[0][0] = self.section.into();
        rows
    }

    fn row(&self, subject: &str, what: &str) -> Vec<String> {
        let rates = || self.span.iter().filter_map(|&x| Some(self.measured(x, subject, "rate")?.value));
        let rate = match self.record.kind(subject) {
            Some(Kind::Peer) => range(&rates().collect::<Vec<_>>(), |rate| units::rate(rate) + "/s"),
            _ => range(&self.ratios(subject, None, "rate"), units::fixed),
        };
        let last = self.span.last().copied().filter(|&last| last < self.most);
        let ends: Vec<f64> = last.into_iter().chain([self.most]).collect();
        let both = |figure: &str, show: fn(f64) -> String| {
            let one = |&x: &f64| self.measured(x, subject, figure).map_or("-".into(), |of| show(of.value));
            ends.iter().map(one).collect::<Vec<_>>().join(" | ")
        };
        let cpu = || range(&self.ratios(subject, Some(STD), "cpu"), units::fixed);
        vec![
            String::new(),
            subject.into(),
            what.into(),
            size(subject).map_or("-".into(), |bytes| format!("{bytes} B")),
            rate,
            if subject == STD { "1".into() } else { cpu() },
            both("starved", units::share),
            both("wait-max", units::time),
        ]
    }
}

fn range(values: &[f64], show: impl Fn(f64) -> String) -> String {
    let low = values.iter().copied().reduce(f64::min).map(&show);
    match low.zip(values.iter().copied().reduce(f64::max).map(&show)) {
        None => "-".into(),
        Some((low, high)) if low == high => low,
        Some((low, high)) => format!("{low}..{high}"),
    }
}

/// How many bytes a lock of the family has.
fn size(subject: &str) -> Option<usize> {
    Some(match subject {
        "unfair" => size_of::<ulocks_unfair::RawBargingMutex>(),
        "throughput" => size_of::<ulocks_unfair::RawThroughputMutex>(),
        "asym" => size_of::<ulocks_unfair::RawAsymMutex>(),
        "byte" => size_of::<ulocks_unfair::RawByteMutex>(),
        "calock" => size_of::<ulocks_calock::RawCalock>(),
        "fair" => size_of::<ulocks_fair::RawFairMutex>(),
        "pi" => size_of::<ulocks_pi::RawPiMutex>(),
        _ => return None,
    })
}

/// What a reader must know before quoting a figure of these records, each once.
pub fn caveats(records: &[Record]) -> Vec<String> {
    let mut lines = Vec::new();
    let modes = [
        (Mode::Smoke, "This is a smoke run: it shows that the program works, and measures nothing."),
        (Mode::Quick, "This is a quick look: short windows, few rounds. Quote full runs only."),
    ];
    let is_known = |mode: Mode| records.iter().any(|record| record.mode == mode);
    lines.extend(modes.into_iter().filter(|of| is_known(of.0)).map(|of| of.1.to_owned()));
    lines.extend(records.iter().find_map(|record| record.machine.translated()));
    let rounds = |of: &Record| format!("in round {} of {}", of.rounds_done(), of.rounds);
    let ended = |of: &Record, how| (of.ended == how).then(|| rounds(of));
    let mut say = |what: &str, words: &dyn Fn(&Record) -> Option<String>| {
        let words = records.iter().filter_map(|of| Some(format!("{} {}", of.row, words(of)?)));
        let line = format!("{what}: {}.", words.collect::<Vec<_>>().join("; "));
        lines.extend((!line.ends_with(": .")).then(|| cut(&line, 3 * WIDTH)));
    };
    say("Interrupted", &|of| ended(of, Ended::Interrupted));
    say("The time was over", &|of| ended(of, Ended::Budget));
    say("Not all was measured", &|of| (!of.left_out.is_empty()).then(|| of.left_out.join(", ")));
    lines
}

/// The record that answers, and its answer or why there is none.
pub(crate) fn answered(records: &[Record]) -> Option<Result<Answer, String>> {
    records.iter().find(|record| record.row == ROW).map(answer)
}

/// The last screen of a run: what a reader must know first, the answer, and what other rows say.
pub fn screen(records: &[Record]) -> String {
    let mut out: String = caveats(records).iter().map(|caveat| wrapped(caveat, 4)).collect();
    let room = HEIGHT.saturating_sub(height(&out) + 1);
    match answered(records) {
        Some(Ok(answer)) => out = out + "\n" + &answer.text(room),
        Some(Err(why)) => out = out + "\n" + &wrapped(&why, 4),
        None => {}
    }
    let others: Vec<(&str, Vec<String>)> =
        records.iter().map(|record| (record.row.as_str(), sentences_of(record))).collect();
    let room = HEIGHT.saturating_sub(height(&out));
    out + &sentences(&others, room)
}

/// What the row of a record says of it; nothing of half a round.
pub(crate) fn sentences_of(record: &Record) -> Vec<String> {
    let is_cut = record.ended == Ended::Interrupted && record.rounds_done() < 2;
    row_of(&record.row).filter(|_| !is_cut).map_or(Vec::new(), |row| (row.sentences)(record))
}

/// The first sentence of each row, then the second ones, as far as there is room.
fn sentences(of_rows: &[(&str, Vec<String>)], room: usize) -> String {
    let rows = || of_rows.iter().enumerate();
    let deepest = rows().map(|(_, row)| row.1.len()).max().unwrap_or(0);
    // The first line is empty, and the last says what is left out.
    let (mut shown, mut used, mut left_out) = (Vec::new(), 1, 0);
    for (depth, (at, (name, sentences))) in (0..deepest).flat_map(|depth| rows().map(move |row| (depth, row)))
    {
        let Some(sentence) = sentences.get(depth) else { continue };
        let sentence = sentence.strip_prefix(&format!("{name}: ")).unwrap_or(sentence);
        let text = wrapped(&format!("{name}: {sentence}"), 4);
        used += height(&text);
        if used < room { shown.push((at, text)) } else { left_out += 1 }
    }
    shown.sort_by_key(|sentence| sentence.0);
    let mut out: String = shown.into_iter().map(|sentence| sentence.1).collect();
    if !out.is_empty() {
        out.insert(0, '\n');
    }
    if left_out > 0 && room > 0 {
        out += &format!("And {left_out} sentences more, in the tables of the rows.\n");
    }
    out
}

fn height(text: &str) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(WIDTH).max(1)).sum()
}

/// What is said of the workloads of a record.
pub(crate) struct Answer {
    /// Of which machine and run it is.
    pub title: String,
    /// The lines of each workload.
    pub table: Table,
    /// What the words mean, which lock is ahead, and what to take for any workload.
    pub lines: Vec<String>,
}

impl Answer {
    /// As text in at most so many lines, with one workload at least.
    fn text(&self, room: usize) -> String {
        let tail: String = self.lines.iter().map(|line| wrapped(line, 4)).collect();
        let begins = |at: &usize| !self.table.rows[*at][0].is_empty();
        let starts: Vec<usize> = (0..self.table.rows.len()).filter(begins).collect();
        let text = |shown: usize| {
            let (mut table, mut more) = (self.table.clone(), String::new());
            if let Some(end) = starts.get(shown) {
                table.rows.truncate(*end);
                more = format!("And {} workloads more, in the tables.\n", starts.len() - shown);
            }
            let lines: String = table.text().lines().map(|line| cut(line, WIDTH) + "\n").collect();
            wrapped(&self.title, 4) + "\n" + &lines + &more + &tail
        };
        let fitting = (1..=starts.len()).rev().map(text).find(|text| height(text) <= room);
        fitting.unwrap_or_else(|| text(1))
    }
}

/// The answer of a record, or why there is none.
fn answer(record: &Record) -> Result<Answer, String> {
    if record.ended == Ended::Interrupted && record.rounds_done() < 2 {
        return Err(format!("No answer: {ROW} was interrupted before a whole round had ended."));
    }
    let sections = record.sections().into_iter();
    let workloads: Vec<Workload<'_>> = sections.filter_map(|name| Workload::of(record, name)).collect();
    let Some(first) = workloads.first() else {
        let lacks = "a peer and two locks of the family, with two threads and more";
        return Err(format!("No answer: it takes {lacks}."));
    };
    let names = ["in, out", "take", "", "size", "rate by peer", "CPU by std", "hardly ran", "longest wait"];
    let mut table = Table::new(3, names);
    table.rows = workloads.iter().flat_map(Workload::rows).collect();
    let lines = vec![
        "(in, out): time inside and outside the lock. all run: the fastest with which no thread hardly ran, \
         up to as many threads as CPUs. both: the fastest of all, too. A peer has its rate itself."
            .into(),
        format!(
            "hardly ran: threads with less than a tenth of the mean, in a window of {} ms; `-` is unknown.",
            record.window_ms
        ),
        ahead(&workloads),
        overall(record, &workloads),
    ];
    Ok(Answer { title: title(first), table, lines })
}

/// The model of a CPU without what says nothing.
pub(crate) fn short_model(model: &str) -> String {
    let model = model.split('@').next().unwrap_or(model).replace("(R)", "").replace("(TM)", "");
    let idle = ["Processor", "CPU"];
    model.split_whitespace().filter(|word| !idle.contains(word)).collect::<Vec<_>>().join(" ")
}

fn title(Workload { record, span, most, .. }: &Workload<'_>) -> String {
    let [least, last] = [span.first(), span.last()].map(|end| end.unwrap_or(most));
    let span = if least < last { format!("{least} to {last}") } else { least.to_string() };
    let beside = if last < most { format!("; a | b: {last} | {most} threads") } else { String::new() };
    format!(
        "THE ANSWER: {}, {} CPUs, {} round{}; rate and CPU time with {span} threads{beside}",
        short_model(&record.machine.cpu_model),
        record.machine.cpus(),
        record.rounds_done(),
        if record.rounds_done() == 1 { "" } else { "s" }
    )
}

/// Which lock is ahead, and where.
fn ahead(workloads: &[Workload<'_>]) -> String {
    let (mut ahead, mut level, mut behind) = (0, 0, Vec::new());
    for (of, &x) in workloads.iter().flat_map(|of| of.span.iter().map(move |x| (of, x))) {
        let lock = of.first();
        let Some(cell) = of.cell(x, lock, "rate") else { continue };
        let Some(peer) = of.record.best_peer(cell, "rate") else { continue };
        let Some(ratio) = of.record.ratio((cell, lock), (cell, peer), "rate") else { continue };
        match ratio.verdict() {
            Ordering::Greater => ahead += 1,
            Ordering::Equal => level += 1,
            Ordering::Less => {
                let part = units::fixed(ratio.value);
                behind.push(format!("{} with {x} threads ({part} of {peer})", of.section));
            }
        }
    }
    let count = behind.len();
    let list = match behind.as_slice() {
        [] => String::new(),
        [first, second, _, _, ..] => format!(": {first}, {second}, and {} more", count - 2),
        few => format!(": {}", few.join(", ")),
    };
    format!(
        "The first of each workload, by the best peer of each cell: {ahead} ahead, {level} without a verdict, \
         {count} behind{list}."
    )
}

/// The lock for those who do not know their workload, and what `ulocks::Mutex` is.
fn overall(record: &Record, workloads: &[Workload<'_>]) -> String {
    let mean = |lock: &str| {
        let ratios: Vec<f64> = workloads.iter().flat_map(|of| of.ratios(lock, None, "rate")).collect();
        let cells: usize = workloads.iter().map(|of| of.span.len()).sum();
        (ratios.len() == cells).then(|| geometric_mean(&ratios))
    };
    let of_family = record.subjects.iter().filter(|subject| subject.kind == Kind::Family);
    let family = of_family.map(|subject| subject.name.as_str());
    let runs = |lock: &&str| workloads.iter().all(|workload| workload.everybody_runs(lock));
    let means = family.clone().filter(runs).filter_map(|lock| Some((lock, mean(lock)?)));
    let bytes = |lock: &str| size(lock).map_or(String::new(), |bytes| format!(" ({bytes} B)"));
    let mut line = match means.max_by(|a, b| a.1.total_cmp(&b.1)) {
        // Of one workload that is said already.
        _ if workloads.len() < 2 => String::new(),
        Some((lock, part)) => format!(
            "Any workload: {lock}{}, {} of the best peer of each cell in the mean; {}everybody runs.",
            bytes(lock),
            units::fixed(part),
            // The rest of the screen shows what more threads than CPUs do.
            workloads[0].span.last().map_or(String::new(), |most| format!("with up to {most} threads "))
        ),
        None => "Any workload: with no lock of the family everybody runs in each of them.".into(),
    };
    if let Some(part) = family.into_iter().find(|lock| *lock == MUTEX).and_then(mean) {
        line += &format!(" `ulocks::Mutex` is `{MUTEX}`{}: {}.", bytes(MUTEX), units::fixed(part));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{plain, record};

    #[test]
    fn a_workload_has_two_answers_and_its_best_peer() {
        let mut record = plain(7);
        record.machine.cpu_model = "Intel(R) Xeon(R) Processor @ 2.90GHz".into();
        let text = screen(&[record]);
        let line =
            |start: &str| text.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{text}"));
        assert!(
            line("THE ANSWER")
                .contains("Intel Xeon, 4 CPUs, 7 rounds; rate and CPU time with 2 to 4 threads")
        );
        assert!(line("all run  ").starts_with("(0, 0) us"), "{text}");
        let words: Vec<&str> = line("all run  ").split_whitespace().skip(3).collect();
        assert_eq!(words[..6], ["even", "all", "run", "-", "1.20", "0.80"], "{text}");
        assert!(line("fastest ").contains("50 % | 50 %") && line("fastest ").contains("50.0ms"), "{text}");
        assert!(line("best peer  ").contains("usync"), "{text}");
        assert!(text.contains("4 ahead, 0 without a verdict, 0 behind."), "{text}");
        assert!(text.contains("Any workload: even, 1.20 of the best peer"), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("in the mean; with up to 4 threads everybody runs."), "{text}");
    }

    #[test]
    fn a_peer_that_is_ahead_is_named_with_its_place() {
        let text = screen(&[record(7, |figure, subject, threads, round| match (figure, subject) {
            ("rate", "std") if threads == 4.0 => 200.0 + round as f64,
            ("rate", _) => 100.0 + (round % 2) as f64,
            ("starved", _) => 0.0,
            _ => 1.0,
        })]);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("2 behind: (0, 0) us with 4 threads (0.49 of std)"), "{text}");
        assert!(text.contains("both"), "{text}");
    }

    /// The plan goes by the quota, too.
    #[test]
    fn a_quota_of_fewer_cpus_ends_the_span() {
        let mut record = plain(7);
        record.machine.quota = Some(2);
        let text = screen(&[record]);
        assert!(text.contains("Xeon, 2 CPUs, 7 rounds; rate and CPU time with 2 threads; a | b: 2 | 16"));
    }

    #[test]
    fn half_a_run_or_too_few_locks_give_no_answer() {
        let refused = [
            (Ended::Interrupted, &[][..], "No answer: scaling was interrupted"),
            (Ended::Rounds, &["even"], "No answer: it takes a peer and two locks"),
            (Ended::Rounds, &["std", "usync"], "No answer: it takes a peer and two locks"),
        ];
        for (ended, lacking, why) in refused {
            let mut record = Record { ended, ..plain(1) };
            record.subjects.retain(|subject| !lacking.contains(&subject.name.as_str()));
            let text = screen(&[record]);
            assert!(!text.contains("THE ANSWER") && text.contains(why), "{text}");
        }
    }

    #[test]
    fn the_screen_is_one_screen_however_much_there_is_to_say() {
        let mut record = plain(3);
        (record.mode, record.ended) = (Mode::Quick, Ended::Budget);
        record.left_out = (0..40).map(|n| format!("lock number {n}")).collect();
        let (cells, lines) = (record.cells.clone(), record.lines.clone());
        for more in 1..8 {
            record.cells.extend(cells.clone());
            record.lines.extend(lines.clone());
            record.cells[more * cells.len()..].iter_mut().for_each(|cell| cell.section += &more.to_string());
            record.lines[more * lines.len()..].iter_mut().for_each(|line| line.cell += more * cells.len());
        }
        let text = screen(&[record]);
        assert!(height(&text) <= HEIGHT && HEIGHT + 4 < 40, "{} lines: {text}", height(&text));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("workloads more, in the tables") && text.contains("quick look"), "{text}");
    }

    #[test]
    fn sentences_are_dealt_to_all_rows_as_far_as_there_is_room() {
        let row = |name| (name, vec![format!("{name} first"), format!("{name}: second")]);
        let all = sentences(&[row("a"), row("b")], 10);
        assert_eq!(all, "\na: a first\na: second\nb: b first\nb: second\n");
        assert_eq!(
            sentences(&[row("a"), row("b")], 4),
            "\na: a first\nb: b first\nAnd 2 sentences more, in the tables of the rows.\n"
        );
    }
}
