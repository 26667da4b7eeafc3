//! Cache lines, and the CPUs that have them: a directory knows for each line its owner or its
//! sharers. Each CPU has a cache of its own. A CPU has one access under way at a time, so no other
//! access of it finds a line that it owns and that has not arrived.
//!
//! # State of a line
//!
//! | owner | sharers | MESI | reads that hit | writes that hit |
//! |---|---|---|---|---|
//! | none | none | invalid | no CPU's | no CPU's |
//! | none | S | shared | those of S | no CPU's |
//! | c | none | exclusive, or modified (`modified`) | those of c | those of c |
//!
//! The first reader of a line that no cache holds becomes its owner (exclusive), so that its first
//! write is silent. A modified line that another CPU reads is shared by both; on a `migratory`
//! machine the reader becomes its owner.
//!
//! # What a miss costs
//!
//! A miss is a *transfer*: a remote memory reference of the cache-coherent model, whether it moves
//! data or only the right to write. A transfer takes as long as its way: from the owner; for a
//! read, from the nearest sharer; for a write, to the farthest sharer, whose copy has to go; or
//! from memory.
//!
//! The first part of that time (`request_share`) the request travels, and the owner goes on using
//! the line. Then it waits for those that arrived before it: a line serves one request after the
//! other. A write keeps the line until its data has arrived and the instruction is done; a read
//! only for `read_occupancy`.
//!
//! # What is not there
//!
//! Capacity (what was cached stays so), prefetching, a home node with its own distance, and any
//! unfairness other than that near requests arrive earlier.
//!
//! # Versions
//!
//! The version of a line changes twice when a CPU takes it for itself: when the request arrives,
//! which is when the copies of others are gone, and when the access takes effect. A spinner that is
//! asleep on lines is one whose copies stayed valid. It is woken at the first change, whatever is
//! written, because its next look will miss and wait behind the writer; the second change is for a
//! look that hit its copy just before it went, and saw the old value.

use super::machine::{Distance, MOST_CPUS, Machine};
use super::units::{Costs, CpuSet, Ps};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a line.
pub(super) const LINE: usize = 64;

/// Whether an access needs the line for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// A thread asleep on a line, and the number of that sleep.
pub(super) type Watcher = (usize, u64);

#[derive(Debug, Default)]
struct Line {
    owner: Option<usize>,
    modified: bool,
    sharers: CpuSet,
    /// Until when it serves no other CPU.
    busy: Ps,
    version: u64,
    watchers: Vec<Watcher>,
}

/// What went over the wires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Accesses of threads to lines, hits included. What a spinner sees in its own cache while it
    /// waits is not counted.
    pub accesses: u64,
    /// Misses: remote memory references, exactly. What the kernel reads of futex words is among
    /// them; its own data is not.
    pub transfers: u64,
    /// Those served, or the farthest copy destroyed, within the core complex.
    pub within_complex: u64,
    /// The same within the socket, between complexes.
    pub within_socket: u64,
    /// The same between sockets.
    pub between_sockets: u64,
    /// Those that no cache could serve.
    pub from_memory: u64,
    /// Copies that a write destroyed.
    pub invalidations: u64,
}

/// The lines of a run, in the order of their first use.
#[derive(Debug)]
pub(super) struct Directory {
    machine: Machine,
    costs: Costs,
    /// By address over [`LINE`]. Never iterated: addresses differ between runs.
    index: HashMap<usize, usize, BuildHasherDefault<LineHasher>>,
    lines: Vec<Line>,
    pub(super) traffic: Traffic,
}

impl Directory {
    pub(super) fn new(machine: &Machine) -> Self {
        Self {
            machine: machine.clone(),
            costs: Costs::of(machine),
            index: HashMap::default(),
            lines: Vec::new(),
            traffic: Traffic::default(),
        }
    }

    /// The number of the line at `address`.
    pub(super) fn line(&mut self, address: usize) -> usize {
        let Self { index, lines, .. } = self;
        *index.entry(address / LINE).or_insert_with(|| {
            lines.push(Line::default());
            lines.len() - 1
        })
    }

    /// Whether `cpu` needs no other CPU for its access.
    pub(super) fn is_hit(&self, line: usize, cpu: usize, access: Access) -> bool {
        let line = &self.lines[line];
        line.owner == Some(cpu) || access == Access::Read && line.sharers.contains(cpu)
    }

    /// How long the request of a miss travels, as far as its sender can know.
    pub(super) fn request(&self, line: usize, cpu: usize, access: Access) -> Ps {
        self.costs.request(self.way(line, cpu, access).1)
    }

    /// The request of a miss arrives at `now`. When the instruction, which keeps the line for
    /// `hold`, is done, and whether others have lost their copies by it.
    pub(super) fn fetch(&mut self, line: usize, cpu: usize, access: Access, hold: Ps, now: Ps) -> (Ps, bool) {
        let (distance, transfer) = self.way(line, cpu, access);
        self.traffic.transfers += 1;
        *match distance {
            Some(Distance::Complex) => &mut self.traffic.within_complex,
            Some(Distance::Socket) => &mut self.traffic.within_socket,
            Some(Distance::Machine) => &mut self.traffic.between_sockets,
            None => &mut self.traffic.from_memory,
        } += 1;
        let rest = transfer - self.costs.request(transfer);
        let line = &mut self.lines[line];
        let start = now.max(line.busy);
        let done = start + rest + hold;
        match access {
            Access::Read if line.modified && self.costs.migratory => {
                line.busy = done;
                self.traffic.invalidations += 1;
                line.owner = Some(cpu);
                line.modified = false;
                (done, true)
            }
            Access::Read => {
                line.busy = start + self.costs.read_occupancy;
                line.modified = false;
                if let Some(owner) = line.owner.take() {
                    line.sharers.insert(owner);
                }
                if line.sharers == CpuSet::default() {
                    line.owner = Some(cpu);
                } else {
                    line.sharers.insert(cpu);
                }
                (done, false)
            }
            Access::Write => {
                line.busy = done;
                line.sharers.remove(cpu);
                let owned = u64::from(line.owner.is_some_and(|owner| owner != cpu));
                self.traffic.invalidations += line.sharers.len() + owned;
                line.owner = Some(cpu);
                line.modified = true;
                line.sharers = CpuSet::default();
                (done, true)
            }
        }
    }

    /// The owner writes, and its instruction keeps the line to itself until `done`.
    pub(super) fn write_hit(&mut self, line: usize, done: Ps) {
        let line = &mut self.lines[line];
        line.modified = true;
        line.busy = line.busy.max(done);
    }

    /// The distance, if another cache takes part, and the time of a miss.
    fn way(&self, line: usize, cpu: usize, access: Access) -> (Option<Distance>, Ps) {
        let line = &self.lines[line];
        let distance = match line.owner {
            Some(owner) => Some(self.machine.distance(owner, cpu)),
            None if access == Access::Read => self.nearest(&line.sharers, cpu),
            None => self.farthest(&line.sharers, cpu),
        };
        match distance {
            Some(distance) => (Some(distance), self.costs.transfer[distance as usize]),
            None => (None, self.costs.memory),
        }
    }

    fn nearest(&self, sharers: &CpuSet, cpu: usize) -> Option<Distance> {
        let first = sharers.first_in(0..MOST_CPUS)?;
        let complex = self.machine.topology.cpus;
        let socket = complex * self.machine.topology.complexes;
        let within = |size: usize| {
            let start = cpu / size * size;
            sharers.first_in(start..(start + size).min(MOST_CPUS)).is_some()
        };
        Some(if within(complex) {
            Distance::Complex
        } else if within(socket) {
            Distance::Socket
        } else {
            self.machine.distance(first, cpu)
        })
    }

    /// The farthest copy but one's own; a copy that is one's own alone still has to ask.
    fn farthest(&self, sharers: &CpuSet, cpu: usize) -> Option<Distance> {
        let socket = self.machine.topology.cpus * self.machine.topology.complexes;
        let start = cpu / socket * socket;
        let end = start + socket;
        let outside = sharers.first_in(0..start).or_else(|| sharers.first_in(end.min(MOST_CPUS)..MOST_CPUS));
        if let Some(other) = outside {
            return Some(self.machine.distance(other, cpu));
        }
        let mut farthest = sharers.contains(cpu).then_some(Distance::Complex);
        let mut from = start;
        while let Some(other) = sharers.first_in(from..end.min(MOST_CPUS)) {
            farthest = farthest.max(Some(self.machine.distance(other, cpu)));
            // On to the next complex: all CPUs of one are equally far.
            from = (other / self.machine.topology.cpus + 1) * self.machine.topology.cpus;
        }
        farthest
    }

    pub(super) fn version(&self, line: usize) -> u64 {
        self.lines[line].version
    }

    /// A CPU has taken the line for itself, or done its access. Returns the threads that were
    /// asleep on it.
    pub(super) fn taken(&mut self, line: usize) -> Vec<Watcher> {
        self.lines[line].version += 1;
        std::mem::take(&mut self.lines[line].watchers)
    }

    pub(super) fn watch(&mut self, line: usize, watcher: Watcher) {
        self.lines[line].watchers.push(watcher);
    }

    pub(super) fn unwatch(&mut self, line: usize, watcher: Watcher) {
        self.lines[line].watchers.retain(|other| *other != watcher);
    }
}

/// For line numbers, of which the low bits vary: one multiplication.
#[derive(Default)]
struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are usize")
    }

    fn write_usize(&mut self, key: usize) {
        let mixed = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
