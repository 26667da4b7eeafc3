//! The mails that the family grew from: what each measured, and which programs measure it today.

/// A mail with figures.
pub(super) struct Mail {
    pub title: &'static str,
    /// What was measured then: a header, and rows.
    pub then: &'static [&'static [&'static str]],
    pub note: &'static str,
    /// The section of BENCHMARKS.md that says how it is today.
    pub heading: Option<&'static str>,
    /// Programs of today, by name.
    pub programs: &'static [&'static str],
    /// What is not measured yet, if anything.
    pub missing: Option<&'static str>,
}

/// All of them, by year.
pub(super) const MAILS: &[Mail] = &[
    Mail {
        title: "Franke, 2002: ulockflex",
        then: &[],
        note: "His ratios stand beside those of today in the tables of the program.",
        heading: Some("The table of 2002"),
        programs: &["convoy"],
        missing: None,
    },
    Mail {
        title: "Molnar, 2005: test-mutex",
        then: &[
            &["machine", "semaphores, loops/s", "CPU", "mutexes, loops/s", "CPU"],
            &["8-way x86, 16 tasks", "34713", "63 %", "84153", "22 %"],
            &["2-way P4 HT, 16 tasks", "127659", "100 %", "181082", "34 %"],
        ],
        note: "16 tasks create, unlink and close files of their own in /tmp. The locks are those of the kernel.",
        heading: None,
        programs: &[],
        missing: Some("not measured yet: there is no program of this load"),
    },
    Mail {
        title: "Desnoyers, 2008: readers and writers",
        then: &[],
        note: "What is compared is the order of delays: how long each class of readers and writers waits.",
        heading: Some("The priority-sifting lock, measured"),
        programs: &["psrw"],
        missing: None,
    },
    Mail {
        title: "Mason, 2010: sembench",
        then: &[
            &["what", "then"],
            &["post/wait cycles of semtimedop by those of futexes, before his patch", "about 1"],
            &["the same, after it", "about 2"],
        ],
        note: "Ratios compare, rates do not.",
        heading: Some("Semaphore arrays, measured"),
        programs: &["sembench", "semscale"],
        missing: None,
    },
    Mail {
        title: "Long, 2016: tofutex",
        then: &[],
        note: "The columns 2016 of the program are his ratios.",
        heading: None,
        programs: &["tofutex"],
        missing: None,
    },
];

/// The claim that the section called `heading` of BENCHMARKS.md begins with, or nothing.
pub(super) fn today(heading: &str) -> String {
    let text = include_str!("../../../../BENCHMARKS.md");
    let section = text.split_once(&format!("\n## {heading}\n\n")).map_or("", |(_, section)| section);
    let claim = section.split("\n\n").next().unwrap_or_default();
    claim.replace("**", "").replace('\n', " ")
}
