//! A small machine of views.

use super::{Answer, Candidate, Footprint, Kind, Outcome, Rng, System, mix};

/// Operations of [`Weak`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::choice::exhaustive::tests) enum Access {
    Load {
        word: u32,
        acquire: bool,
    },
    Store {
        word: u32,
        release: bool,
    },
    /// Always writes.
    Add {
        word: u32,
        acq_rel: bool,
    },
    /// Writes if the value is even.
    Exchange {
        word: u32,
        acq_rel: bool,
    },
}

impl Access {
    fn footprint(self) -> Footprint {
        match self {
            Self::Load { word, .. } => Footprint::Read(word),
            Self::Store { word, .. } => Footprint::Write(word),
            Self::Add { word, .. } | Self::Exchange { word, .. } => Footprint::Update(word),
        }
    }
}

/// A message is named by its author; 0 is the first one of each word.
type Name = u64;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Message {
    name: Name,
    value: u64,
    view: Vec<Name>,
    /// The next one was written by a read-modify-write that read this one.
    is_updated: bool,
}

/// A small machine of views: each word a history, in its order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::choice::exhaustive::tests) struct Weak {
    programs: Vec<Vec<Access>>,
    counters: Vec<usize>,
    registers: Vec<u64>,
    /// Of each thread, by word: the oldest message it may read.
    views: Vec<Vec<Name>>,
    words: Vec<Vec<Message>>,
    surprises: Option<u32>,
}

impl Weak {
    pub(in crate::choice::exhaustive::tests) fn new(programs: Vec<Vec<Access>>) -> Self {
        let first = Message { name: 0, value: 0, view: vec![0; 2], is_updated: false };
        let threads = programs.len();
        Self {
            programs,
            counters: vec![0; threads],
            registers: vec![0; threads],
            views: vec![vec![0; 2]; threads],
            words: vec![vec![first]; 2],
            surprises: None,
        }
    }

    /// Two or three threads with up to `length` operations each.
    pub(in crate::choice::exhaustive::tests) fn random(rng: &mut Rng, length: usize) -> Self {
        let access = |rng: &mut Rng| {
            let (word, strong) = (rng.below(2) as u32, rng.below(2) == 0);
            match rng.below(8) {
                0..=2 => Access::Load { word, acquire: strong },
                3..=5 => Access::Store { word, release: strong },
                6 => Access::Add { word, acq_rel: strong },
                _ => Access::Exchange { word, acq_rel: strong },
            }
        };
        let threads = 2 + rng.below(2);
        Self::new((0..threads).map(|_| (0..1 + rng.below(length)).map(|_| access(rng)).collect()).collect())
    }

    fn position(&self, word: usize, name: Name) -> usize {
        self.words[word].iter().position(|message| message.name == name).expect("a message that exists")
    }

    fn join(&self, a: &[Name], b: &[Name]) -> Vec<Name> {
        let later = |word| if self.position(word, a[word]) >= self.position(word, b[word]) { a } else { b };
        (0..a.len()).map(|word| later(word)[word]).collect()
    }

    /// The places from the newest message back to the oldest `thread` may see, those that `allowed`
    /// refuses left out.
    fn places(&self, thread: usize, word: usize, allowed: impl Fn(&Message) -> bool) -> Vec<usize> {
        let floor = self.position(word, self.views[thread][word]);
        (floor..self.words[word].len()).rev().filter(|&place| allowed(&self.words[word][place])).collect()
    }

    fn read(&mut self, thread: usize, word: usize, place: usize, acquire: bool) {
        let message = self.words[word][place].clone();
        self.registers[thread] = mix(self.registers[thread], message.value);
        self.views[thread][word] = message.name;
        if acquire {
            self.views[thread] = self.join(&self.views[thread], &message.view);
        }
    }

    /// Writes behind `place`; `with` is the view of a release sequence it continues.
    fn write(&mut self, thread: usize, word: usize, place: usize, release: bool, with: Option<Vec<Name>>) {
        let name = 100 * (1 + thread as u64) + self.counters[thread] as u64;
        let value = mix(name, if with.is_some() { self.words[word][place].value } else { 0 });
        let message = Message { name, value, view: vec![0; self.words.len()], is_updated: false };
        self.words[word].insert(place + 1, message);
        self.views[thread][word] = name;
        let mut view = with.unwrap_or_else(|| vec![0; self.words.len()]);
        if release {
            view = self.join(&view, &self.views[thread]);
        }
        view[word] = name;
        self.words[word][place + 1].view = view;
    }
}

impl System for Weak {
    fn enabled(&self) -> Vec<Candidate> {
        let next = |thread: usize| self.programs[thread].get(self.counters[thread]);
        let candidate = |thread| Some(Candidate { thread, footprint: next(thread)?.footprint() });
        (0..self.programs.len()).filter_map(candidate).collect()
    }

    fn surprises(&mut self) -> &mut Option<u32> {
        &mut self.surprises
    }

    fn step(&mut self, thread: usize, answer: Answer<'_>) {
        let access = self.programs[thread][self.counters[thread]];
        self.counters[thread] += 1;
        let mut left = self.surprises;
        let mut one_of = |kind, mut places: Vec<usize>| {
            places.truncate(if left == Some(0) { 1 } else { usize::MAX });
            let chosen = answer(kind, places.len());
            left = left.map(|left| left - u32::from(chosen > 0));
            places[chosen]
        };
        match access {
            Access::Load { word, acquire } => {
                let place = one_of(Kind::Message, self.places(thread, word as usize, |_| true));
                self.read(thread, word as usize, place, acquire);
            }
            Access::Store { word, release } => {
                let place = one_of(Kind::Place, self.places(thread, word as usize, |m| !m.is_updated));
                self.write(thread, word as usize, place, release, None);
            }
            Access::Add { word, acq_rel } | Access::Exchange { word, acq_rel } => {
                let word = word as usize;
                let writes = |m: &Message| matches!(access, Access::Add { .. }) || m.value & 1 == 0;
                let places = self.places(thread, word, |m| !writes(m) || !m.is_updated);
                let place = one_of(Kind::Message, places);
                self.read(thread, word, place, acq_rel);
                if writes(&self.words[word][place]) {
                    let view = self.words[word][place].view.clone();
                    self.words[word][place].is_updated = true;
                    self.write(thread, word, place, acq_rel, Some(view));
                }
            }
        }
        self.surprises = left;
    }

    fn outcome(&self) -> Outcome {
        let histories = self
            .words
            .iter()
            .flat_map(|word| word.iter().flat_map(|message| [message.name, message.value]).chain([u64::MAX]));
        histories.chain(self.registers.iter().copied()).collect()
    }
}
