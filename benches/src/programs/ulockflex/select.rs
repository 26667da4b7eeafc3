//! Which locks run: those named, all of which must be able to do what is asked, or all that are
//! able to.

use super::plan::Variant;
use crate::subjects::locks::{Entry, patience_text};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeSet;
use std::time::Duration;

/// Locks of a registry.
#[derive(Debug)]
pub struct Selection {
    registry: &'static [Entry],
    locks: Vec<&'static Entry>,
    /// Whether the user asked for them by name: then what one of them cannot do is an error.
    named: bool,
}

impl Selection {
    /// These locks.
    pub fn named(registry: &'static [Entry], locks: Vec<&'static Entry>, processes: bool) -> Result<Self> {
        if let Some(unable) = locks.iter().find(|entry| processes && !entry.processes) {
            let allowed = names(registry.iter().filter(|entry| entry.processes));
            bail!(
                "lock '{}' does not work between processes; allowed with --processes: {allowed}",
                unable.name
            );
        }
        Ok(Self { registry, locks, named: true })
    }

    /// All locks, except those that count, which run where their counters are wanted, those of a
    /// fixed patience, for which `--patience` asks, and probes.
    pub fn usual(registry: &'static [Entry], processes: bool, notes: &mut Vec<String>) -> Self {
        let usual = registry.iter().filter(|entry| entry.is_usual());
        let (locks, left): (Vec<_>, Vec<_>) = usual.partition(|entry| !processes || entry.processes);
        if !left.is_empty() {
            notes.push(format!("left out, since they do not work between processes: {}", names(left)));
        }
        Self { registry, locks, named: false }
    }

    /// Replaces each lock that has patience as a parameter by its variants of these values; the
    /// others stay, and so do those that have none of the values, unless the user asked for them by
    /// name.
    pub fn with_patience(self, patience: &[Duration], notes: &mut Vec<String>) -> Result<Self> {
        let has = |lock: &&Entry| !self.variants(lock).is_empty();
        if !self.locks.iter().any(has) {
            let allowed =
                or_none_yet(names(self.registry.iter().filter(|lock| lock.is_plain() && has(lock))));
            bail!("--patience: none of the locks has it as a parameter; locks that have: {allowed}");
        }
        let mut locks = Vec::new();
        let mut left = Vec::new();
        for lock in &self.locks {
            let variants = self.variants(lock);
            let of = |wanted: &Duration| variants.iter().find(|(patience, _)| patience == wanted);
            let unknown = patience.iter().find(|wanted| of(wanted).is_none());
            match unknown {
                Some(wanted) if self.named && !variants.is_empty() => {
                    let known = variants.iter().filter_map(|(_, variant)| variant.patience_ns);
                    let known: Vec<_> = known.map(patience_text).collect();
                    bail!(
                        "lock '{}' has no patience of {wanted:?}; allowed: {}",
                        lock.name,
                        known.join(", ")
                    );
                }
                Some(_) if !variants.is_empty() => left.push(*lock),
                _ => {}
            }
            let had: Vec<_> = patience.iter().filter_map(of).map(|(_, variant)| *variant).collect();
            locks.extend(if had.is_empty() { vec![*lock] } else { had });
        }
        if left.len() == self.locks.iter().filter(|lock| has(lock)).count() {
            let known: BTreeSet<u32> =
                left.iter().flat_map(|lock| self.variants(lock)).filter_map(|(_, v)| v.patience_ns).collect();
            let known: Vec<_> = known.into_iter().map(patience_text).collect();
            bail!("--patience: no lock has all of these values; known: {}", known.join(", "));
        }
        if !left.is_empty() {
            notes.push(format!("not with each patience, since they have fewer: {}", names(left)));
        }
        Ok(Self { locks, ..self })
    }

    /// The variants of `lock` that differ from it by a fixed patience: `NAME-0`, `NAME-3us`.
    fn variants(&self, lock: &Entry) -> Vec<(Duration, &'static Entry)> {
        let (lock_of, metered, fixed) = (lock.lock, lock.metered, lock.patience_ns.is_some());
        let alike =
            self.registry.iter().filter(|entry| entry.lock == lock_of && entry.metered == metered && !fixed);
        alike.filter_map(|entry| Some((Duration::from_nanos(entry.patience_ns?.into()), entry))).collect()
    }

    /// Each lock once for each share of readers; a lock without a shared mode runs without readers
    /// or not at all.
    pub fn with_read_shares(self, shares: &[u8], notes: &mut Vec<String>) -> Result<Vec<Variant>> {
        let mut all: Vec<Variant> = Vec::new();
        let mut left = Vec::new();
        for entry in self.locks {
            let (able, unable): (Vec<u8>, Vec<u8>) =
                shares.iter().partition(|&&share| share == 0 || entry.shared_mode);
            if let Some(share) = unable.first() {
                let with_one = self.registry.iter().filter(|entry| entry.shared_mode && entry.excludes);
                let with_one = or_none_yet(names(with_one));
                ensure!(
                    !self.named,
                    "lock '{}' has no shared mode for a read share of {share} %; allowed: 0; locks with one: {with_one}",
                    entry.name,
                );
                left.push(entry);
            }
            for read_share in able {
                if !all.iter().any(|had| had.entry.name == entry.name && had.read_share == read_share) {
                    all.push(Variant { entry, read_share });
                }
            }
        }
        if !left.is_empty() {
            notes.push(format!("without readers only, since they have no shared mode: {}", names(left)));
        }
        Ok(all)
    }
}

fn names<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

fn or_none_yet(names: String) -> String {
    if names.is_empty() { "none yet".into() } else { names }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::locks::Traits;

    const PEER: Traits = Traits {
        lock: "peer",
        letter: 'p',
        processes: false,
        timed: false,
        shared_mode: false,
        metered: false,
        excludes: true,
        patience_ns: None,
    };
    const OURS: Traits = Traits { lock: "ours", letter: 'O', processes: true, ..PEER };
    const COUNTED: Traits = Traits { letter: '#', metered: true, ..OURS };
    const ZERO: Option<u32> = Some(0);
    const THREE: Option<u32> = Some(3_000);

    const fn entry(name: &'static str, kind: Traits) -> Entry {
        Entry { name, about: "", family: kind.processes, probe: false, kind }
    }

    static REGISTRY: [Entry; 8] = [
        entry("peer", PEER),
        entry("ours", OURS),
        entry("ours-counted", COUNTED),
        entry("ours-0", Traits { letter: 'o', patience_ns: ZERO, ..OURS }),
        entry("ours-3us", Traits { patience_ns: THREE, ..OURS }),
        entry("ours-3us-counted", Traits { patience_ns: THREE, ..COUNTED }),
        entry("readers", Traits { lock: "readers", letter: 's', shared_mode: true, ..PEER }),
        Entry { probe: true, ..entry("probe", Traits { lock: "probe", letter: 'q', ..PEER }) },
    ];

    fn usual(processes: bool) -> (Selection, Vec<String>) {
        let mut notes = Vec::new();
        (Selection::usual(&REGISTRY, processes, &mut notes), notes)
    }

    fn named(names: &[&str], processes: bool) -> Result<Selection> {
        let find = |name: &&str| REGISTRY.iter().find(|entry| entry.name == *name).unwrap();
        Selection::named(&REGISTRY, names.iter().map(find).collect(), processes)
    }

    fn ran(selection: Selection) -> String {
        names(selection.locks)
    }

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn the_usual_locks_neither_count_nor_have_a_fixed_patience_nor_are_probes() {
        let (selection, notes) = usual(false);
        assert_eq!((ran(selection).as_str(), notes.len()), ("peer, ours, readers", 0));
        let (selection, notes) = usual(true);
        assert_eq!(ran(selection), "ours");
        assert_eq!(notes, ["left out, since they do not work between processes: peer, readers"]);
    }

    #[test]
    fn a_named_lock_must_work_between_processes() {
        let error = named(&["ours", "peer"], true).unwrap_err().to_string();
        let allowed = "ours, ours-counted, ours-0, ours-3us, ours-3us-counted";
        let expected =
            format!("lock 'peer' does not work between processes; allowed with --processes: {allowed}");
        assert_eq!(error, expected);
        assert!(named(&["ours", "peer"], false).is_ok());
    }

    #[test]
    fn patience_selects_variants_and_leaves_the_others() {
        let selection = usual(false).0.with_patience(&[us(0), us(3)], &mut Vec::new()).unwrap();
        assert_eq!(ran(selection), "peer, ours-0, ours-3us, readers");
        // A variant that was named stays what it is.
        let selection =
            named(&["ours-0", "ours"], true).unwrap().with_patience(&[us(3)], &mut Vec::new()).unwrap();
        assert_eq!(ran(selection), "ours-0, ours-3us");
        // So does one that counts.
        let selection =
            named(&["ours-counted"], false).unwrap().with_patience(&[us(3)], &mut Vec::new()).unwrap();
        assert_eq!(ran(selection), "ours-3us-counted");
    }

    #[test]
    fn a_patience_that_does_not_exist_is_refused() {
        let error = named(&["ours"], false)
            .unwrap()
            .with_patience(&[us(3), us(7)], &mut Vec::new())
            .unwrap_err()
            .to_string();
        assert_eq!(error, "lock 'ours' has no patience of 7µs; allowed: 0, 3us");
        let error = named(&["peer"], false)
            .unwrap()
            .with_patience(&[us(3)], &mut Vec::new())
            .unwrap_err()
            .to_string();
        assert_eq!(error, "--patience: none of the locks has it as a parameter; locks that have: ours");
    }

    #[test]
    fn a_lock_nobody_named_may_have_fewer_values() {
        const FEWER: Traits = Traits { lock: "fewer", letter: 'F', ..OURS };
        static REGISTRY: [Entry; 5] = [
            entry("peer", PEER),
            entry("ours", OURS),
            entry("ours-3us", Traits { patience_ns: THREE, ..OURS }),
            entry("fewer", FEWER),
            entry("fewer-0", Traits { letter: 'f', patience_ns: ZERO, ..FEWER }),
        ];
        let usual = || Selection::usual(&REGISTRY, false, &mut Vec::new());
        let mut notes = Vec::new();
        assert_eq!(ran(usual().with_patience(&[us(3)], &mut notes).unwrap()), "peer, ours-3us, fewer");
        assert_eq!(notes, ["not with each patience, since they have fewer: fewer"]);
        let error = usual().with_patience(&[us(7)], &mut notes).unwrap_err().to_string();
        assert_eq!(error, "--patience: no lock has all of these values; known: 0, 3us");
    }

    #[test]
    fn readers_need_a_shared_mode() {
        let mut notes = Vec::new();
        let all = usual(false).0.with_read_shares(&[0, 20, 20], &mut notes).unwrap();
        let all: Vec<_> = all.iter().map(|variant| (variant.entry.name, variant.read_share)).collect();
        assert_eq!(all, [("peer", 0), ("ours", 0), ("readers", 0), ("readers", 20)]);
        assert_eq!(notes, ["without readers only, since they have no shared mode: peer, ours"]);
        let error = named(&["peer"], false).unwrap().with_read_shares(&[0, 20], &mut notes).unwrap_err();
        let expected =
            "lock 'peer' has no shared mode for a read share of 20 %; allowed: 0; locks with one: readers";
        assert_eq!(error.to_string(), expected);
    }
}
