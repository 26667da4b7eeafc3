//! Readers at slots, in memory that shows old values.

use crate::place::{Of, Role, play};
use crate::{Lock, Sleeps, SleepsShared, THREE, TWO, sampled};
use ulocks_core::model::{Config, explore};
use ulocks_core::signal::Soft;
use ulocks_psrwlock::{Distributed, PhaseFair, Sifted, Unchecked};
use ulocks_testkit::model::rw::{
    self,
    Role::{Read, TryWrite, Write},
};

type Slots<const N: usize, P = Sleeps> = Lock<TWO, P, PhaseFair, Distributed<N>>;

/// Threads share slots.
#[test]
fn readers_at_slots_are_seen() {
    const MANY: &[rw::Role] = &[Read, Read, Write, Read, Read, Write, Read, TryWrite, Read, Read];
    for seed in 1..=4 {
        let old = |threads| Config { stale: 32, ..sampled(threads, seed) };
        explore(old(2), || rw::exclusion::<Slots<1>>(&[Read, Write]));
        explore(old(3), || rw::exclusion::<Slots<1>>(&[Read, Read, Write]));
        explore(old(3), || rw::exclusion::<Slots<2>>(&[Read, Read, Write]));
        explore(old(3), || rw::exclusion::<Slots<2, SleepsShared>>(&[Read, Read, Write]));
        explore(old(10), || rw::exclusion::<Slots<2>>(MANY));
        explore(old(10), || rw::exclusion::<Slots<4, SleepsShared>>(MANY));
        explore(old(10), || rw::no_lost_wake::<Slots<4>>(MANY, 3));
    }
}

/// Readers of higher classes are counted in the state, and so are `Bulk` readers that found their
/// class shut.
#[test]
fn slots_and_classes_do_not_mix_up() {
    type All<const N: usize, P> = Sifted<THREE, P, PhaseFair, Distributed<N>, Soft, Unchecked>;
    const ROLES: &[Role] = &[
        Role::Nest,
        Role::Write,
        Role::Nest,
        Role::TimedWrite,
        Role::Read(Of::Bulk),
        Role::TryRead(Of::Bulk),
        Role::Upgrade,
        Role::TryUpgrade,
    ];
    for seed in 1..=3 {
        explore(sampled(8, seed), || play::<All<2, Sleeps>>(ROLES, 2));
        explore(sampled(8, seed), || play::<All<4, SleepsShared>>(ROLES, 2));
    }
}

/// Where loads read the newest value and stores go last, nothing needs the fence.
#[test]
fn readers_at_slots_are_seen_where_nothing_is_old() {
    let newest = Config { stale: 0, ..sampled(2, 1) };
    explore(newest, || rw::exclusion::<Slots<2, SleepsShared>>(&[Read, Write]));
}
