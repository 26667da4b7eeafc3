//! Readers at slots.

use crate::clients::place::{Held, behind, together_with};
use crate::{At, Plain, exact, timed};
use ulocks_core::Shared;
use ulocks_core::model::explore;
use ulocks_core::signal::Soft;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{BULK, Bulk, Distributed, PhaseFair, Sifted, URGENT, Unchecked, Urgent};

type Slots<const N: usize> = Plain<{ BULK | URGENT }, PhaseFair, Distributed<N>>;
/// Both sides of the fence pay.
type Symmetric = Sifted<{ BULK | URGENT }, Shared<NoSpin>, PhaseFair, Distributed<1>, Soft, Unchecked>;

#[test]
fn a_writer_is_alone() {
    explore(exact(4), || together_with([At::<Slots<1>>::writes, At::<Slots<1>>::reads::<Bulk>]));
    explore(exact(4), || together_with([At::<Symmetric>::writes, At::<Symmetric>::reads::<Bulk>]));
    explore(exact(2), || {
        together_with([At::<Slots<1>>::writes, At::<Slots<1>>::reads::<Bulk>, At::<Slots<1>>::reads::<Bulk>])
    });
    explore(exact(2), || {
        together_with([At::<Slots<2>>::writes, At::<Slots<2>>::reads::<Bulk>, At::<Slots<2>>::reads::<Bulk>])
    });
    explore(exact(2), || {
        together_with([
            At::<Slots<2>>::writes,
            At::<Slots<2>>::reads::<Bulk>,
            At::<Slots<2>>::reads::<Urgent>,
        ])
    });
    explore(exact(2), || {
        together_with([At::<Slots<1>>::writes, At::<Slots<1>>::writes, At::<Slots<1>>::reads::<Bulk>])
    });
    explore(exact(2), || behind(Held::Bulk, [At::<Slots<1>>::writes, At::<Slots<1>>::reads::<Bulk>]));
    explore(exact(2), || behind(Held::Written, [At::<Slots<2>>::writes, At::<Slots<2>>::reads::<Bulk>]));
}

#[test]
fn attempts_and_upgrades_see_the_slots() {
    explore(exact(3), || {
        together_with([At::<Slots<1>>::tries_to_write, At::<Slots<1>>::tries_to_read::<Bulk>])
    });
    explore(exact(3), || together_with([At::<Slots<2>>::upgrades, At::<Slots<2>>::reads::<Bulk>]));
    explore(exact(3), || {
        together_with([At::<Slots<1>>::tries_to_upgrade, At::<Slots<1>>::reads_twice::<Bulk>])
    });
    explore(exact(3), || {
        together_with([At::<Slots<1>>::goes_up_and_down, At::<Slots<1>>::reads_twice::<Bulk>])
    });
    explore(timed(3, 2), || {
        together_with([At::<Slots<1>>::writes_in_time, At::<Slots<1>>::reads_twice::<Bulk>])
    });
    explore(timed(3, 2), || {
        together_with([At::<Slots<1>>::upgrades_in_time, At::<Slots<1>>::reads_in_time::<Bulk>])
    });
}
