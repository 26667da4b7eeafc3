//! The runs, and the threads of each: the seed's six, the two properties, and the mask.
//!
//! | run | threads | where |
//! |---|---|---|
//! | writer | one writer, 100 us of work between | alone |
//! | try-writer | one, up to 100 attempts, 1 ms of work between | alone |
//! | bulk, urgent, nested | one reader that does nothing else | alone |
//! | readers | 2 Bulk, 2 Urgent, nothing else | dealt to the CPUs in turn |
//! | contention | 2 writers (100 us between), a try-writer (1 ms), 2 Bulk, 2 Urgent, a try-reader, all busy; as asked, each writer and reader struck by a timer | dealt in that order |
//! | invariance | a Bulk reader that holds for so long, over and over, 50 us apart; a writer every millisecond; the probe | probe on a CPU of its own |
//! | queue | so many writers, each holding 10 us, one behind the other; the probe | probe on a CPU of its own |
//! | behind | a Bulk reader that holds 3 ms, 50 us apart; a writer every millisecond, struck by a timer | writer on a CPU of its own |
//!
//! The probe asks for the lock every 50 us or so, as a thread, or in a handler that a timer runs;
//! it is what is measured. It does not ask all the time, or nearly all its delays would be those of
//! an idle lock and no percentile would show what happens when the writer comes.
//!
//! The 50 us are for peers that wake a writer and let it race with readers that run already:
//! without them the reader is back before the writer has woken up, and it starves. That is another
//! property, which `contention` shows.
//!
//! On one CPU there is no CPU of its own, and delays are time slices.

use crate::subjects::rwlocks::Rank;
use serde::{Deserialize, Serialize};

/// The reader that asks for the lock to see how long that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// A reader of class `Urgent`.
    Urgent,
    /// A reader in a signal handler.
    Handler,
}

/// Readers in signal handlers, on each writer and reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Handlers {
    /// How often, in microseconds.
    pub every_us: u32,
    /// Whether they only try.
    pub tries: bool,
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Run {
    /// One writer.
    Writer,
    /// One writer that tries.
    TryWriter,
    /// One reader.
    Reader(Rank),
    /// Two of class `Bulk` and two of class `Urgent`, and no writer.
    Readers,
    /// All threads.
    Contention(Option<Handlers>),
    /// Readers of class `Bulk` that hold so long, and a writer now and then.
    Invariance {
        /// In microseconds.
        hold_us: u32,
        /// The reader that is looked at.
        probe: Probe,
    },
    /// Writers that queue.
    Queue {
        /// How many.
        writers: u32,
        /// The reader that is looked at.
        probe: Probe,
    },
    /// A writer behind a long reader, struck by signals.
    Behind,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes.
    Write,
    /// Writes if it gets the lock within so many attempts.
    TryWrite(u32),
    /// Reads.
    Read(Rank),
    /// Reads if it gets the lock at once.
    TryRead,
    /// Nothing; its timer is what it is there for.
    Idle,
}

/// A thread of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duty {
    /// What it is called; threads of one name are reported together.
    pub name: &'static str,
    /// What it does.
    pub kind: Kind,
    /// How long it works with the lock held, beside looking at the variables.
    pub hold_ns: u64,
    /// How long it works without it.
    pub work_ns: u64,
    /// How long it sleeps without it.
    pub sleep_ns: u64,
    /// How often its timer strikes, in nanoseconds, if it has one.
    pub timer_ns: Option<u64>,
    /// Whether the handler only tries.
    pub handler_tries: bool,
    /// Whether it has a CPU of its own, where there are two.
    pub apart: bool,
}

/// Between two writes of the seed's writers.
const WRITER_DELAY_NS: u64 = 100_000;
/// Between two of its writers that try.
const TRY_WRITER_DELAY_NS: u64 = 1_000_000;
/// And so often they try.
const TRY_WRITER_ATTEMPTS: u32 = 100;
/// Between two holds of a reader that a thread waits for.
const BULK_GAP_NS: u64 = 50_000;
/// Between two writes where a reader is looked at.
const PERIOD_NS: u64 = 1_000_000;
/// Between two looks.
const PROBE_NS: u64 = 50_000;
/// Between two handlers that are looked at: what a signal takes must not fill the CPU.
const PROBE_TIMER_NS: u64 = 100_000;
/// How long queued writers hold.
const QUEUED_HOLD_NS: u64 = 10_000;
/// How long the reader holds that the writer is behind.
const BEHIND_HOLD_NS: u64 = 3_000_000;

impl Duty {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            hold_ns: 0,
            work_ns: 0,
            sleep_ns: 0,
            timer_ns: None,
            handler_tries: false,
            apart: false,
        }
    }

    const fn working(self, work_ns: u64) -> Self {
        Self { work_ns, ..self }
    }

    const fn holding(self, hold_ns: u64) -> Self {
        Self { hold_ns, ..self }
    }
}

const WRITER: Duty = Duty::new("writer", Kind::Write).working(WRITER_DELAY_NS);
const TRY_WRITER: Duty =
    Duty::new("try-writer", Kind::TryWrite(TRY_WRITER_ATTEMPTS)).working(TRY_WRITER_DELAY_NS);
const BULK: Duty = Duty::new("bulk", Kind::Read(Rank::Bulk));
const URGENT: Duty = Duty::new("urgent", Kind::Read(Rank::Urgent));
const NESTED: Duty = Duty::new("nested", Kind::Read(Rank::Nested));
const TRY_READER: Duty = Duty::new("try-reader", Kind::TryRead);
/// Sleeps, and does not work, so that it wakes up while the reader is at it on the same CPU.
const PERIODIC: Duty = Duty { sleep_ns: PERIOD_NS, work_ns: 0, ..WRITER };

impl Probe {
    fn duty(self) -> Duty {
        match self {
            Self::Urgent => Duty { apart: true, ..URGENT.working(PROBE_NS) },
            Self::Handler => Duty {
                apart: true,
                timer_ns: Some(PROBE_TIMER_NS),
                ..Duty::new("idle", Kind::Idle).working(PROBE_NS)
            },
        }
    }
}

impl Run {
    /// Its threads.
    pub fn duties(self) -> Vec<Duty> {
        match self {
            Self::Writer => vec![WRITER],
            Self::TryWriter => vec![TRY_WRITER],
            Self::Reader(Rank::Bulk) => vec![BULK],
            Self::Reader(Rank::Urgent) => vec![URGENT],
            Self::Reader(Rank::Nested) => vec![NESTED],
            Self::Readers => vec![BULK, BULK, URGENT, URGENT],
            Self::Contention(handlers) => {
                let all = [WRITER, WRITER, TRY_WRITER, BULK, BULK, URGENT, URGENT, TRY_READER];
                let mut all = all.to_vec();
                if let Some(Handlers { every_us, tries }) = handlers {
                    let struck = |duty: &&mut Duty| matches!(duty.kind, Kind::Write | Kind::Read(_));
                    for duty in all.iter_mut().filter(struck) {
                        duty.timer_ns = Some(u64::from(every_us) * 1000);
                        duty.handler_tries = tries;
                    }
                }
                all
            }
            Self::Invariance { hold_us, probe } => {
                let bulk = BULK.holding(u64::from(hold_us) * 1000).working(BULK_GAP_NS);
                vec![probe.duty(), bulk, PERIODIC]
            }
            Self::Queue { writers, probe } => {
                let writer = WRITER.working(0).holding(QUEUED_HOLD_NS);
                let mut all = vec![probe.duty()];
                all.extend((0..writers).map(|_| writer));
                all
            }
            Self::Behind => {
                let writer = Duty { apart: true, timer_ns: Some(PROBE_TIMER_NS), ..PERIODIC };
                vec![writer, BULK.holding(BEHIND_HOLD_NS).working(BULK_GAP_NS)]
            }
        }
    }

    /// Whether some of its readers are signal handlers.
    pub fn has_handlers(self) -> bool {
        self.duties().iter().any(|duty| duty.timer_ns.is_some())
    }

    /// As `--only` knows it.
    pub fn name(self) -> String {
        let of = |probe| match probe {
            Probe::Urgent => "urgent",
            Probe::Handler => "handler",
        };
        match self {
            Self::Writer => "writer".into(),
            Self::TryWriter => "try-writer".into(),
            Self::Reader(Rank::Bulk) => "bulk".into(),
            Self::Reader(Rank::Urgent) => "urgent".into(),
            Self::Reader(Rank::Nested) => "nested".into(),
            Self::Readers => "readers".into(),
            Self::Contention(None) => "contention".into(),
            Self::Contention(Some(Handlers { every_us, tries })) => {
                format!("contention+{every_us}us{}", if tries { "-try" } else { "" })
            }
            Self::Invariance { hold_us, probe } => format!("invariance/{}/{hold_us}us", of(probe)),
            Self::Queue { writers, probe } => format!("queue/{}/{writers}", of(probe)),
            Self::Behind => "behind".into(),
        }
    }
}
