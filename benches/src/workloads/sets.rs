//! Sets of operations that no other thread stands in the way of, taken and given back.
//!
//! One thread, all subjects in one process, as [uncontended locks](super::pairs) are.

use super::pairs::in_turns;
use super::*;
use crate::subjects::locks::Scope;
use crate::subjects::semaphores::{Block, Entry};

/// Sets of operations that no other thread stands in the way of, taken and given back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sets {
    /// Operations of a set, or semaphores.
    pub ops: u32,
    /// Whether they are single operations on so many semaphores, one after the other.
    pub one_by_one: bool,
}

impl Sets {
    /// Carries it out in this process.
    pub fn carry_out(self, subjects: &[String], conditions: &Conditions) -> Result<Vec<Outcome>> {
        ensure!((1..=500).contains(&self.ops), "sets of {}; allowed: 1 to 500 operations", self.ops);
        let blocks = subjects.iter().map(|name| self.block(name)).collect::<Result<Vec<_>>>()?;
        let medians = in_turns(subjects.len(), conditions, &|index: usize| blocks[index]())?;
        Ok(medians.into_iter().map(|ns| Outcome::from([("pair".into(), ns)])).collect())
    }

    fn block(self, name: &str) -> Result<Block> {
        let semaphores = (Entry::find(name)?.make)(&vec![1; self.ops as usize], Scope::Threads)?;
        let block = semaphores.block(self.ops, self.one_by_one);
        block.with_context(|| format!("'{name}' does not take sets"))
    }
}
