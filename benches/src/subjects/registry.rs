//! The registry: subjects of every kind by name.

use anyhow::{Result, anyhow};
use std::ops::Deref;

/// A subject in the registry.
#[derive(Clone, Copy, Debug)]
pub struct Entry<K: 'static> {
    /// What it is called; unique among subjects of its kind.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Whether it belongs to this family, and is not a peer.
    pub family: bool,
    /// What is known of it beyond that.
    pub kind: K,
}

/// What is known of subjects of one kind.
pub trait Kind: Sized + 'static {
    /// What errors call such a subject.
    const WHAT: &'static str;
    /// Every subject of this kind, peers first.
    fn entries() -> &'static [Entry<Self>];
    /// Other names for them, which no list has.
    fn aliases() -> &'static [Entry<Self>] {
        &[]
    }
}

impl<K: Kind> Entry<K> {
    /// Every subject of this kind, peers first.
    pub fn all() -> &'static [Self] {
        K::entries()
    }

    /// The subject called `name`.
    pub fn find(name: &str) -> Result<&'static Self> {
        let unknown = || anyhow!("unknown {} '{name}'; allowed: {}", K::WHAT, Self::names(|_| true));
        let mut all = Self::all().iter().chain(K::aliases());
        all.find(|entry| entry.name == name).ok_or_else(unknown)
    }

    /// The names of those that are `wanted`, for an error.
    pub fn names(wanted: impl Fn(&Self) -> bool) -> String {
        let names: Vec<_> = Self::all().iter().filter(|e| wanted(e)).map(|entry| entry.name).collect();
        names.join(", ")
    }
}

impl<K> Deref for Entry<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.kind
    }
}
