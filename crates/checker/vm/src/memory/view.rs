//! Views: what a thread, or the reader of a message, knows.
//!
//! A view has two halves that always travel together.
//!
//! - `labels`: per word, the newest message (by its label) that an event of the past wrote *or
//!   read*. Coherence says that no thread reads, or writes, before what it knows: the labels are
//!   floors.
//! - `clock`: per thread, how many of its events happened before. This is happens-before itself,
//!   exactly: event `n` of thread `t` happened before each thread that has `clock[t] >= n`. Data
//!   races are judged by it.
//!
//! Reading a message raises the reader's label and nothing else; only what synchronises joins whole
//! views.

/// What an event knows of the events before it. What is not listed is zero.
#[derive(Debug, Default)]
pub(super) struct View {
    labels: Vec<u64>,
    clock: Vec<u32>,
}

impl View {
    pub(super) fn label(&self, slot: usize) -> u64 {
        self.labels.get(slot).copied().unwrap_or(0)
    }

    /// Knows the message `label` of `slot`, which is no older than what was known.
    pub(super) fn raise(&mut self, slot: usize, label: u64) {
        if slot >= self.labels.len() {
            self.labels.resize(slot + 1, 0);
        }
        debug_assert!(self.labels[slot] <= label, "a thread went back in a modification order");
        self.labels[slot] = label;
    }

    pub(super) fn labels(&self) -> &[u64] {
        &self.labels
    }

    pub(super) fn label_mut(&mut self, slot: usize) -> Option<&mut u64> {
        self.labels.get_mut(slot)
    }

    pub(super) fn clock(&self) -> &[u32] {
        &self.clock
    }

    /// How many events of `thread` happened before.
    pub(super) fn epoch(&self, thread: usize) -> u32 {
        self.clock.get(thread).copied().unwrap_or(0)
    }

    /// One more event of `thread`, whose view this is; its number.
    pub(super) fn advance(&mut self, thread: usize) -> u32 {
        if thread >= self.clock.len() {
            self.clock.resize(thread + 1, 0);
        }
        self.clock[thread] += 1;
        self.clock[thread]
    }

    pub(super) fn join(&mut self, other: &Self) {
        join(&mut self.labels, &other.labels);
        join(&mut self.clock, &other.clock);
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.labels.clone_from(&other.labels);
        self.clock.clone_from(&other.clock);
    }

    pub(super) fn clear(&mut self) {
        self.labels.clear();
        self.clock.clear();
    }
}

/// The pointwise maximum, into `into`.
pub(super) fn join<T: Copy + Ord + Default>(into: &mut Vec<T>, other: &[T]) {
    if into.len() < other.len() {
        into.resize(other.len(), T::default());
    }
    for (mine, theirs) in into.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

/// A view in an [`Archive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ViewId(u32);

impl ViewId {
    /// The view that knows nothing.
    pub(super) const NOTHING: Self = Self(u32::MAX);
}

/// Views that messages carry: written once, shared by any number of messages, and reused when the
/// run is over.
#[derive(Debug, Default)]
pub(super) struct Archive {
    views: Vec<View>,
    used: usize,
}

impl Archive {
    pub(super) fn get(&self, id: ViewId) -> Option<&View> {
        (id != ViewId::NOTHING).then(|| &self.views[id.0 as usize])
    }

    /// Keeps a copy of `view`.
    pub(super) fn keep(&mut self, view: &View) -> ViewId {
        if self.used == self.views.len() {
            self.views.push(View::default());
        }
        self.views[self.used].copy_from(view);
        self.used += 1;
        ViewId(u32::try_from(self.used - 1).expect("fewer than 2^32 messages"))
    }

    /// What `first` and `second` know together.
    pub(super) fn union(&mut self, first: ViewId, second: ViewId) -> ViewId {
        if first == second || second == ViewId::NOTHING {
            return first;
        }
        if first == ViewId::NOTHING {
            return second;
        }
        if self.used == self.views.len() {
            self.views.push(View::default());
        }
        let (kept, free) = self.views.split_at_mut(self.used);
        free[0].copy_from(&kept[first.0 as usize]);
        free[0].join(&kept[second.0 as usize]);
        self.used += 1;
        ViewId(u32::try_from(self.used - 1).expect("fewer than 2^32 messages"))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut View> {
        self.views[..self.used].iter_mut()
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }
}
