//! The sets of held locks that are known to break no rule, as a thread remembers them.

use super::{GROUP, REMEMBERED, Record};
use core::cell::Cell;
use core::ptr;

impl Record {
    /// Whether an acquisition with this key is known to break no rule, at the first look.
    #[inline(always)]
    pub fn is_validated_at_once(&self, key: u64) -> bool {
        self.validated[key as usize % REMEMBERED].get() == key
    }

    /// Whether an acquisition with this key has been found to break no rule. It is found at the
    /// first look from then on.
    pub fn is_validated(&self, key: u64) -> bool {
        let found = self.group(key).iter().find(|entry| entry.get() == key);
        found.inspect(|entry| entry.swap(&self.validated[key as usize % REMEMBERED])).is_some()
    }

    /// An acquisition with this key breaks no rule.
    pub fn validate(&self, key: u64) {
        // Its own place is found fastest. If another key has that, it moves to one that is free.
        let own = &self.validated[key as usize % REMEMBERED];
        let free = self.group(key).iter().find(|entry| entry.get() == 0);
        let before = own.replace(key);
        if let Some(free) = free.filter(|free| !ptr::eq(*free, own)) {
            free.set(before);
        }
    }

    /// The places of a key: those of a line.
    fn group(&self, key: u64) -> &[Cell<u64>] {
        let first = key as usize % REMEMBERED / GROUP * GROUP;
        &self.validated[first..first + GROUP]
    }
}
