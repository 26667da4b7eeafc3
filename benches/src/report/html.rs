//! The page: one file, no scripts, nothing fetched. Locks are switched on and off by the check
//! boxes of the legend and a style sheet that looks at them; without `:has()` in the browser all
//! lines simply stay.

use super::svg::escape;
use super::text::{Best, caveats, verdict};
use super::{Kind, Lock, Point, Report, WaitSummary, chart, units};
use crate::statistics::rounds::{Ratio, Verdict};
use crate::workloads::Workload;
use std::fmt::Write;

/// A line's look: colour in the light scheme, dashes, colour in the dark scheme.
pub type Look = (&'static str, &'static str, &'static str);

/// Warm colours for the family, cool ones for the peers, by name, so that a lock looks the same on
/// every page. No two are alike.
const NAMED: &[(&str, Look)] = &[
    ("unfair", ("#d6246e", "none", "#ff6fa8")),
    ("throughput", ("#c2460a", "none", "#ff9a57")),
    ("asym", ("#8a6508", "none", "#f0c040")),
    ("byte", ("#d6246e", "3 3", "#ff6fa8")),
    ("calock", ("#a0281c", "none", "#ff8577")),
    ("fair", ("#c2460a", "7 3", "#ff9a57")),
    ("semaphore", ("#8a6508", "7 3", "#f0c040")),
    ("pi", ("#a0281c", "7 3", "#ff8577")),
    ("std", ("#1c64d8", "none", "#6aa5ff")),
    ("parking_lot", ("#08776a", "none", "#3fd0bd")),
    ("parking_lot-0.12", ("#08776a", "5 3", "#3fd0bd")),
    ("parking_lot-fair", ("#08776a", "2 3", "#3fd0bd")),
    ("usync", ("#7a3fd1", "none", "#b794ff")),
    ("pthread", ("#5f6b7a", "none", "#a9b4c0")),
    ("pthread-adaptive", ("#5f6b7a", "6 3", "#a9b4c0")),
    ("pthread-pi", ("#5f6b7a", "2 3", "#a9b4c0")),
    ("pthread-robust", ("#5f6b7a", "8 3 2 3", "#a9b4c0")),
    ("sem_t", ("#4c7616", "none", "#a5d65a")),
    ("sysv", ("#8a5a2b", "none", "#d6a878")),
];

/// The look and the width of each line, in the order of their classes, and the drawings.
pub(crate) type Charts = (Vec<(Look, f64)>, Vec<String>);

/// For locks that are not listed, each with each of the [`DASHES`].
const COLOURS: &[(&str, &str)] = &[
    ("#266f93", "#7cc8ee"),
    ("#8a3f8f", "#e09be6"),
    ("#4b6f44", "#a3cf99"),
    ("#6b5b00", "#d8c860"),
    ("#44546a", "#b8c8dd"),
    ("#004b49", "#5fb8b4"),
    ("#5a1e5e", "#c08ac4"),
];
const DASHES: &[&str] = &["none", "5 3", "2 2", "9 3 2 3", "9 3", "1 2", "5 3 1 3", "12 3"];

/// No lock at all.
const CEILING: Look = ("#6b7076", "1 4", "#8b8f94");

/// The look of each lock of a page. No two are alike, unless there are more than fifty.
pub fn looks<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Look> {
    let others =
        DASHES.iter().flat_map(|dashes| COLOURS.iter().map(move |&(day, night)| (day, *dashes, night)));
    let mut others = others.cycle();
    let look = |name| match NAMED.iter().find(|(known, _)| *known == name) {
        Some((_, look)) => *look,
        None => others.next().unwrap_or(CEILING),
    };
    names.into_iter().map(look).collect()
}

/// The look of each lock, in the order of the record.
fn looks_in(report: &Report) -> Vec<Look> {
    let is_lock = |lock: &&Lock| lock.kind != Kind::Baseline;
    let mut looks = looks(report.locks.iter().filter(is_lock).map(|lock| lock.name.as_str())).into_iter();
    let look = |lock: &Lock| Some(lock).filter(is_lock).and_then(|_| looks.next()).unwrap_or(CEILING);
    report.locks.iter().map(look).collect()
}

/// Draws the page of a record. All figures come from its trials, not from its stored summary.
pub fn render(report: &Report) -> String {
    let report = &Report { summary: super::summarise(report), ..report.clone() };
    let mut page = String::new();
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>ulocks scaling</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n",
        include_str!("page.css"),
        colours(report)
    )
    .unwrap();
    head(&mut page, report);
    writeln!(page, "<pre class=\"answer\">{}</pre>", escape(super::answer(report).trim())).unwrap();
    summary(&mut page, report);
    legend(&mut page, report);
    for workload in report.workloads() {
        section(&mut page, report, workload);
    }
    how_to_read(&mut page);
    foot(&mut page, report);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// The style of lines: each has its look and its width, in the order of the classes `s0`, `s1` and
/// so on. They hold inside of `scope`, which is a selector that ends with a space, or nothing.
pub(crate) fn style(scope: &str, lines: &[(Look, f64)]) -> String {
    let (mut light, mut dark) = (String::new(), String::new());
    for (index, ((day, dashes, night), width)) in lines.iter().enumerate() {
        writeln!(light, "{scope}.s{index} {{ --c: {day}; --d: {dashes}; --w: {width} }}").unwrap();
        writeln!(dark, "  {scope}.s{index} {{ --c: {night} }}").unwrap();
    }
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

/// The look and the width of the lines of each lock, in the order of the record.
pub(crate) fn lines_in(report: &Report) -> Vec<(Look, f64)> {
    let width = |lock: &Lock| if lock.kind == Kind::Family { 3.0 } else { 1.6 };
    looks_in(report).into_iter().zip(report.locks.iter().map(width)).collect()
}

fn colours(report: &Report) -> String {
    let mut rest = String::new();
    for (index, lock) in report.locks.iter().enumerate() {
        if lock.kind == Kind::Family {
            writeln!(rest, ".s{index} text.name {{ font-weight: 700 }}").unwrap();
        }
        writeln!(rest, "body:has(#l{index}:not(:checked)) figure .s{index} {{ display: none }}").unwrap();
    }
    style("", &lines_in(report)) + &rest
}

fn head(page: &mut String, report: &Report) {
    let names: Vec<&str> =
        report.locks.iter().filter(|l| l.kind == Kind::Family).map(|l| l.name.as_str()).collect();
    let family = if names.is_empty() { "the peers alone".into() } else { names.join(", ") };
    write!(
        page,
        "<h1>ulocks scaling</h1>\n<p class=\"soft\">{} against {} other locks, {} CPU{}, {} rounds of {} trials, {}, \
         {}</p>\n",
        escape(&family),
        report.locks.iter().filter(|l| l.kind == Kind::Peer).count(),
        report.cpus(),
        if report.cpus() == 1 { "" } else { "s" },
        report.rounds(),
        report.locks.len() * report.cells.len(),
        escape(&report.machine.date.replace('T', " ").replace('Z', " UTC")),
        escape(&format!("{} min", units::clock(report.took_s))),
    )
    .unwrap();
    let caveats = caveats(report);
    if !caveats.is_empty() {
        page.push_str("<div class=\"note\">");
        for line in caveats {
            write!(page, "<p>{}</p>", escape(&line)).unwrap();
        }
        page.push_str("</div>\n");
    }
}

fn summary(page: &mut String, report: &Report) {
    page.push_str(
        "<h2>All contended cells <small>two threads and more; throughput against the peer in the same round</small></h2>\n\
         <div class=\"scroll\"><table>\n<thead><tr><th class=\"l\">lock</th><th>uncontended<br/>vs std</th><th>vs std</th>\
         <th class=\"l\"><span class=\"scale\"><i>&#xbc;</i><i>1</i><i>4</i></span></th><th class=\"l\">verdict</th><th>CPU per op<br/>vs std</th><th>faster</th><th>slower</th>\
         <th>open</th><th>best peer</th><th class=\"l\">worst cell</th><th>vs<br/>parking_lot</th><th>COV<br/>up to</th>\
         <th>p99.9<br/>up to</th></tr></thead>\n<tbody>\n",
    );
    for (index, (score, lock)) in report.summary.scores.iter().zip(&report.locks).enumerate() {
        let compared = lock.kind != Kind::Baseline;
        let tally = |n: usize| if score.vs_std.is_some() { n.to_string() } else { "-".into() };
        let worst = score.worst.as_ref().filter(|_| compared).map_or("-".into(), |w| {
            format!(
                "{}<span class=\"iv\">{} threads, ({}, {}), by {}</span>",
                units::fixed(w.ratio),
                w.threads,
                units::short_time(w.workload.hold_ns),
                units::short_time(w.workload.non_hold_ns),
                escape(&w.peer)
            )
        });
        let (class, words) = match score.vs_std.map(|r| r.verdict()) {
            _ if !compared => ("soft", "ceiling, no lock"),
            Some(Verdict::Faster) if score.tally.slower == 0 => ("faster", verdict(score)),
            Some(Verdict::Slower) if score.tally.faster == 0 => ("slower", verdict(score)),
            _ => ("soft", verdict(score)),
        };
        writeln!(
            page,
            "<tr><td class=\"l\" title=\"{}\"><span class=\"chip s{index}\"></span>{}</td><td>{}</td><td>{}</td>\
             <td class=\"l s{index}\">{}</td><td class=\"l {class}\">{words}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td class=\"l\">{worst}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&lock.about),
            name(lock.kind, &lock.name),
            ratio(score.uncontended),
            ratio(score.vs_std),
            interval_bar(score.vs_std),
            ratio(score.cpu_vs_std),
            tally(score.tally.faster),
            tally(score.tally.slower),
            tally(score.tally.none),
            score.vs_best.filter(|_| compared).map_or("-".into(), units::fixed),
            ratio(score.vs_parking_lot),
            units::fixed(score.max_cov),
            score.max_p999.map_or("-".into(), units::time),
        )
        .unwrap();
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn name(kind: Kind, name: &str) -> String {
    if kind == Kind::Family { format!("<b>{}</b>", escape(name)) } else { escape(name) }
}

/// Value on the first line, interval on the second.
fn ratio(ratio: Option<Ratio>) -> String {
    let text = units::ratio(ratio);
    match text.split_once(" [") {
        Some((value, interval)) => format!("{value}<span class=\"iv\">[{interval}</span>"),
        None => text,
    }
}

/// A ratio and its interval on a logarithmic axis from 1/4 to 4.
fn interval_bar(ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else { return String::new() };
    let x = |v: f64| 75.0 + 70.0 * (v.max(1e-9).log2() / 2.0).clamp(-1.0, 1.0);
    let (low, high) = ratio.interval.unwrap_or((ratio.value, ratio.value));
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 150 20\" aria-hidden=\"true\"><path class=\"one\" d=\"M75 1V19\"/>\
         <path class=\"span\" d=\"M{:.1} 10H{:.1}\"/><circle class=\"at\" cx=\"{:.1}\" cy=\"10\" r=\"4\"/></svg>",
        x(low),
        x(high),
        x(ratio.value)
    )
}

fn legend(page: &mut String, report: &Report) {
    page.push_str("<div class=\"legend\" role=\"group\" aria-label=\"locks shown\">");
    for (index, lock) in report.locks.iter().enumerate() {
        write!(
            page,
            "<label title=\"{}\"><input type=\"checkbox\" id=\"l{index}\" checked=\"checked\"/>\
             <svg class=\"s s{index}\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"line\" d=\"M0 5H26\"/>\
             <circle class=\"dot\" cx=\"13\" cy=\"5\" r=\"3\"/></svg>{}</label>",
            escape(&lock.about),
            name(lock.kind, &lock.name)
        )
        .unwrap();
    }
    page.push_str("</div>\n");
}

fn section(page: &mut String, report: &Report, workload: Workload) {
    writeln!(page, "<section>\n<h2>{}</h2>\n<div class=\"plots\">", units::workload(workload)).unwrap();
    for plot in chart::of_workload(report, workload) {
        writeln!(page, "<figure>{plot}</figure>").unwrap();
    }
    page.push_str(
        "</div>\n<details><summary>All figures</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th>threads</th>\
         <th class=\"l\">lock</th><th>ops/s</th><th>vs std</th><th>vs parking_lot</th><th>COV</th>\
         <th>least served</th><th>most served</th><th>wait p50</th><th>p99</th><th>p99.9</th><th>max</th>\
         <th>CPU per op</th><th>sleeps per op</th></tr></thead>\n<tbody>\n",
    );
    for threads in report.threads(workload) {
        let points: Vec<&Point> =
            report.locks.iter().filter_map(|l| report.summary.point(&l.name, workload, threads)).collect();
        let best = Best::of(report, &points);
        for (index, point) in points.iter().enumerate() {
            row(page, report, point, &best, index == 0);
        }
    }
    page.push_str("</tbody>\n</table></div></details>\n</section>\n");
}

fn row(page: &mut String, report: &Report, point: &Point, best: &Best, first: bool) {
    let mark = |of: Option<&Point>, text: String| {
        if of.is_some_and(|b| std::ptr::eq(b, point)) {
            format!("<b>{text}</b>&#x202f;&#x2605;")
        } else {
            text
        }
    };
    let wait =
        |of: &dyn Fn(&WaitSummary) -> f64| point.waits.as_ref().map_or("-".into(), |w| units::time(of(w)));
    writeln!(
        page,
        "<tr{}><td>{}</td><td class=\"l\">{}</td><td>{}<span class=\"iv\">{}</span></td><td>{}</td><td>{}</td>\
         <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}{}</td><td>{}</td></tr>",
        if first { " class=\"first\"" } else { "" },
        point.threads,
        name(report.kind(&point.lock), &point.lock),
        mark(best.rate, units::throughput(point)),
        escape(&units::certainty(point).replace("+-", "\u{b1}")),
        ratio(point.vs_std),
        ratio(point.vs_parking_lot),
        units::fixed(point.cov.median),
        units::fixed(point.least.median),
        units::fixed(point.most.median),
        wait(&|w| w.p50.median),
        wait(&|w| w.p99.median),
        mark(best.p999, wait(&|w| w.p999.median)),
        wait(&|w| w.max),
        mark(best.cpu, units::time(point.cpu_ns.median)),
        point.cpu_vs_std.map_or(String::new(), |r| format!("<span class=\"iv\">{} of std</span>", units::ratio(Some(r)))),
        units::digits(point.sleeps.median),
    )
    .unwrap();
}

fn how_to_read(page: &mut String) {
    page.push_str(
        "<section>\n<h2>How to read this</h2>\n\
         <p>Every thread repeats: work outside, lock, work inside, unlock; both times are drawn evenly from half to one \
         and a half of their mean. Every trial is a process of its own. A round is every lock in every cell once, in \
         random order; ratios are taken inside a round and averaged geometrically, with a 95 % interval. Where the \
         interval contains 1 there is <i>no verdict</i>. With this many cells, one in twenty single verdicts is wrong by \
         chance: quote the table over all cells.</p>\n\
         <p>Hollow pairs of circles are <i>two modes</i>: the best round was more than twice the worst, so there is no \
         mean to give. In ratios such a cell shows the range over rounds in braces. Bands are 95 % intervals; with fewer \
         than six rounds those of waits and COV are the whole range. Only the family, std and parking_lot show theirs \
         all the time; point at a line to see its band and to dim the others, at a dot for its figures.</p>\n\
         <p>With nothing inside or outside the lock, throughput rewards a lock that lets one thread run on: look at COV \
         and waits beside it. There, throughput comes from trials without clock reads, waits from separate ones with \
         them. <i>Least</i> and <i>most served</i> are shares of the mean. CPU per operation contains the work itself. \
         Sleeps are voluntary context switches. A star marks the best lock of a thread count; <i>none</i>, the loop \
         without any lock, is a ceiling and takes no part.</p>\n</section>\n",
    );
}

fn foot(page: &mut String, report: &Report) {
    page.push_str("<section>\n<h2>Machine and options</h2>\n<dl>\n");
    let mut pair = |name: &str, value: String| {
        writeln!(page, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(&value)).unwrap();
    };
    let machine = &report.machine;
    pair("CPU", machine.cpu_model.clone());
    pair(
        "CPUs",
        format!(
            "{} online, {} for this run{}{}",
            machine.cpus_online,
            machine.cpus_allowed,
            machine.topology.map_or(String::new(), |topology| format!("; {topology}")),
            if machine.hypervisor { "; virtual" } else { "" }
        ),
    );
    pair("frequency governor", machine.governor.clone().unwrap_or_else(|| "unknown".into()));
    pair("speed during the run", speed(report));
    pair("load before the run", machine.load_average.map(|l| format!("{l:.2}")).join(", "));
    pair("software", format!("Linux {}, {}, {}", machine.kernel, machine.libc, machine.rustc));
    let options = &report.options;
    pair("pinning", options.pin.clone());
    pair("window", format!("{} ms after {} ms of warm-up", options.window_ms, options.warmup_ms));
    pair(
        "repetition",
        format!(
            "{} rounds run; {} to {}, until every cell is known to +-{:.0} %{}",
            report.rounds(),
            options.min_rounds,
            options.max_rounds,
            options.precision * 100.0,
            options.budget_s.map_or(String::new(), |s| format!(" or {} min are over", units::clock(s)))
        ),
    );
    pair("busy work", format!("{:.0} iterations per us", options.iterations_per_us));
    pair("written by", format!("ulocks-benches {}, {}", report.version, report.schema));
    page.push_str("</dl>\n</section>\n");
}

fn speed(report: &Report) -> String {
    let Some(speed) = report.summary.speed else { return "unknown".into() };
    let [median, least, most] = speed.map(units::fixed);
    format!("{median} of the calibrated one in the median, from {least} to {most}")
}

#[cfg(test)]
mod tests;
