//! Robust locks of a region.

use ulocks_debug::*;
use ulocks_shm::{self as shm, Member, Region};

pub const TABLE: &[(&str, fn())] = &[("robust locks at the addresses of locks that are gone", || {
    let region: Region<[shm::Mutex<u32>; 2]> = Region::options().anonymous().expect("a region");
    // The handles of a region that lay here before had another order.
    for order in [[0, 1], [1, 0]] {
        let handles = [0, 1].map(|number: usize| Robust::new(&region[number]));
        let work = |me: &Member<'_>| {
            let _outer = handles[order[0]].lock(me).expect("no holder has died");
            *handles[order[1]].lock(me).expect("no holder has died") += 1;
        };
        region.with_member(work).expect("a member");
    }
})];
