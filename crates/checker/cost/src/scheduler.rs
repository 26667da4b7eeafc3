//! CPUs: which threads run, which wait for one, and which CPUs are idle.
//!
//! Each CPU has a queue, first in, first out. A thread keeps its CPU until it sleeps, ends, or has
//! had its time slice while another waits; then it goes to the end of the queue. A thread that
//! wakes up takes an idle CPU: the one it ran on last, or the nearest; if none is idle it queues
//! where it ran last. A CPU that runs out of threads takes the first of the longest queue. There
//! are no priorities. Where `wake_preemption` is set, a thread that wakes up with no CPU idle goes
//! to the head of its queue and takes the place of the running one, if that has had more CPU time.

use super::machine::Machine;
use super::units::{CpuSet, Ps};
use std::collections::VecDeque;

/// One CPU.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    pub(super) running: Option<usize>,
    queue: VecDeque<usize>,
    /// The slice of the running thread counts from here.
    pub(super) slice_from: Ps,
    /// Whether an event is on its way that ends the slice, and which slice that is.
    pub(super) armed: bool,
    pub(super) slice: u64,
    /// The most CPU time that a thread had when it got this CPU: a thread that slept long is not
    /// owed all of it.
    pub(super) pace: Ps,
    /// The slice is over, but the running thread is in the middle of an instruction or a system
    /// call.
    pub(super) switch_soon: bool,
}

/// All CPUs of a run.
#[derive(Debug)]
pub(super) struct Cpus {
    cpus: Vec<Cpu>,
    idle: CpuSet,
    queued: usize,
    complex: usize,
    socket: usize,
}

impl Cpus {
    /// `count` idle CPUs.
    pub(super) fn new(machine: &Machine, count: usize) -> Self {
        let mut idle = CpuSet::default();
        (0..count).for_each(|cpu| idle.insert(cpu));
        Self {
            cpus: (0..count).map(|_| Cpu::default()).collect(),
            idle,
            queued: 0,
            complex: machine.topology.cpus,
            socket: machine.topology.cpus * machine.topology.complexes,
        }
    }

    /// How many CPUs there are.
    pub(super) fn count(&self) -> usize {
        self.cpus.len()
    }

    pub(super) fn get(&mut self, cpu: usize) -> &mut Cpu {
        &mut self.cpus[cpu]
    }

    /// The idle CPU nearest to `cpu`, which is the best itself.
    pub(super) fn idle_near(&self, cpu: usize) -> Option<usize> {
        if self.idle.contains(cpu) {
            return Some(cpu);
        }
        [self.complex, self.socket, self.cpus.len()].into_iter().find_map(|size| {
            let start = cpu / size * size;
            self.idle.first_in(start..(start + size).min(self.cpus.len()))
        })
    }

    /// How many CPUs run a thread.
    pub(super) fn busy(&self) -> usize {
        self.cpus.iter().filter(|cpu| cpu.running.is_some()).count()
    }

    /// Gives an idle CPU to a thread.
    pub(super) fn occupy(&mut self, cpu: usize, thread: usize) {
        debug_assert!(self.idle.contains(cpu));
        self.idle.remove(cpu);
        self.cpus[cpu].running = Some(thread);
    }

    pub(super) fn enqueue(&mut self, cpu: usize, thread: usize) {
        self.cpus[cpu].queue.push_back(thread);
        self.queued += 1;
    }

    /// As `enqueue`, before all others.
    pub(super) fn enqueue_first(&mut self, cpu: usize, thread: usize) {
        self.cpus[cpu].queue.push_front(thread);
        self.queued += 1;
    }

    pub(super) fn has_queue(&self, cpu: usize) -> bool {
        !self.cpus[cpu].queue.is_empty()
    }

    /// The running thread has left: the next one runs. If no thread waits anywhere, the CPU is
    /// idle.
    pub(super) fn next(&mut self, cpu: usize) -> Option<usize> {
        let from = if self.has_queue(cpu) {
            Some(cpu)
        } else if self.queued > 0 {
            // The last of the longest queues would do as well; the first is as good and always the
            // same.
            (0..self.cpus.len()).rev().max_by_key(|&other| self.cpus[other].queue.len())
        } else {
            None
        };
        let next = from.and_then(|from| self.cpus[from].queue.pop_front());
        self.cpus[cpu].running = next;
        match next {
            Some(_) => self.queued -= 1,
            None => self.idle.insert(cpu),
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::Topology;
    use super::*;

    #[test]
    fn the_nearest_idle_cpu_is_found() {
        let mut machine = Machine::example();
        machine.topology = Topology { sockets: 2, complexes: 8, cpus: 8 };
        let mut cpus = Cpus::new(&machine, 128);
        assert_eq!(cpus.idle_near(70), Some(70));
        cpus.occupy(70, 0);
        assert_eq!(cpus.idle_near(70), Some(64));
        for cpu in 64..72 {
            if cpu != 70 {
                cpus.occupy(cpu, 0);
            }
        }
        assert_eq!(cpus.idle_near(70), Some(72));
        for cpu in 72..128 {
            cpus.occupy(cpu, 0);
        }
        assert_eq!(cpus.idle_near(70), Some(0));
        for cpu in 0..64 {
            cpus.occupy(cpu, 0);
        }
        assert_eq!(cpus.idle_near(70), None);
    }

    #[test]
    fn an_empty_cpu_takes_from_the_longest_queue() {
        let mut cpus = Cpus::new(&Machine::example(), 3);
        (0..3).for_each(|cpu| cpus.occupy(cpu, cpu));
        for (cpu, thread) in [(0, 10), (1, 11), (1, 12), (2, 13)] {
            cpus.enqueue(cpu, thread);
        }
        assert_eq!(cpus.next(0), Some(10), "its own first");
        assert_eq!(cpus.next(0), Some(11), "then the longest queue's");
        assert_eq!(cpus.next(0), Some(12), "on a tie the first CPU's");
        assert_eq!(cpus.next(0), Some(13));
        assert_eq!(cpus.next(0), None);
        assert_eq!(cpus.idle_near(2), Some(0));
    }
}
