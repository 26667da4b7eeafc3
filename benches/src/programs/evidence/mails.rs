//! The mails that the family grew from: what each measured, and which programs measure it today.

/// A mail with figures.
pub(super) struct Mail {
    pub title: &'static str,
    /// What the figures are, and why today's differ.
    pub note: &'static str,
    /// The section of BENCHMARKS.md that says how it is today.
    pub heading: Option<&'static str>,
    /// Programs of today, by name. The first of them has the mail's table.
    pub programs: &'static [&'static str],
}

/// All of them, by year.
pub(super) const MAILS: &[Mail] = &[
    Mail {
        title: "Franke, 2002: ulockflex",
        note: "His factors over System V cannot come again, because the kernel has become fast. A loop of a thousand \
               processes over its semaphores took 736 us then, and 24 us now. A loop over the calock took 7.4 us \
               then, and 8 to 10 us now.",
        heading: Some("The table of 2002"),
        programs: &["convoy"],
    },
    Mail {
        title: "Molnar, 2005: test-mutex",
        note: "16 tasks create, unlink and close files of their own in /tmp. He compared two kernels, whose locks are those \
               of the directory. Today the directory is a tree in memory, and the mutex is ulocks::Mutex beside the fair \
               semaphore. Like the kernel's semaphore of then it hands over, and each hand-over costs a wake-up.",
        heading: None,
        programs: &["test-mutex"],
    },
    Mail {
        title: "Desnoyers, 2008: readers and writers",
        note: "His lock is in the kernel, on eight CPUs; the usual lock is the kernel's rwlock, and today std's. Ours is in \
               processes, where a signal handler stands for an interrupt and a holder can be preempted. So busy readers hold \
               its writers up where the CPUs are fewer than the threads.",
        heading: Some("Reader-writer locks"),
        programs: &["psrw"],
    },
    Mail {
        title: "Mason, 2010: sembench",
        note: "A cycle is a post and a wait. What he proposed, a list and a lock for each semaphore, has come into the \
               kernel since. So the row of System V is measured with it.",
        heading: Some("Semaphore arrays"),
        programs: &["sembench", "semscale"],
    },
    Mail {
        title: "Long, 2016: tofutex",
        note: "His PI and throughput-optimised futexes spin in the kernel while the holder runs, and the latter has not come \
               into it. The lock called pi is the kernel's PI futex, and throughput is ThroughputMutex, which spins in the \
               process. His mail does not say how many threads there were. On two CPUs a thread mostly runs alone, so the \
               wait-wake lock enters the kernel once in a hundred operations, where his did three times in ten. The PI \
               futex hands over in the kernel, and loses by that much more.",
        heading: None,
        programs: &["tofutex"],
    },
];

/// The claim that the section called `heading` of BENCHMARKS.md begins with, or nothing.
pub(super) fn today(heading: &str) -> String {
    let text = include_str!("../../../../BENCHMARKS.md");
    let section = text.split_once(&format!("\n## {heading}\n\n")).map_or("", |(_, section)| section);
    let claim = section.strip_prefix("**").and_then(|section| section.split_once("**"));
    claim.map_or("", |(claim, _)| claim).replace('`', "").replace('\n', " ")
}
