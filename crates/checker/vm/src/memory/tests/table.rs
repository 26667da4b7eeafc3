//! The litmus tests of the literature, each with all its outcomes.
//!
//! A program is written thread by thread, `|` between. Words are `x` to `w` and begin as zero.
//!
//! | written | is |
//! |---|---|
//! | `Wx1` | `x.store(1)` |
//! | `Rx` | `x.load()` |
//! | `Sx2` | `x.swap(2)` |
//! | `Ax1` | `x.fetch_add(1)` |
//! | `Cx01` | `x.compare_exchange(0, 1)`; `Vx01` is the weak one |
//! | `F` | `fence` |
//! | `Wx$0` | `x.store(..)` of what the first operation of the thread that returns something read |
//! | `?01` | the rest of the thread, if the first of these has read 1 |
//! | `Wx&y` | `x.store(..)` of the address of `y` |
//! | `R*0`, `W*01` | a load, and a store of 1, where the first of these points; else the end |
//!
//! each relaxed unless `.acq`, `.rel`, `.ar` or `.sc` follows; after an exchange `.acq/acq` gives
//! the failure ordering, which is relaxed else. An outcome is what the operations return, thread
//! by thread, with `!` after what a failed exchange read, and the name of a word for its address.
//! Where the modification order is of interest, it follows after `/`, as the last values of all
//! words.
//!
//! The names are those of Alglave, Maranget, Tautschnig, "Herding Cats", TOPLAS 2014, and of the
//! RC11 paper (Lahav et al., PLDI 2017), from which `IRIW-acq-sc`, `Z6.U`, `RWC+fscs` and `W+RWC`
//! are taken: the two that C++11 forbids and RC11 allows, since compilers for Power do not keep
//! them, and the two that C++11 allows and RC11 forbids, since fences should restore sequential
//! consistency. Release sequences are those of C++20 (P0982).

use super::op::{ADDRESS, FAILED, Op, Outcome, Program, pointee};
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::collections::BTreeSet;

pub(super) enum Allowed {
    /// These.
    Only(&'static str),
    /// Everything, where all that is read is 0 or 1, except these.
    AllBut(&'static str),
    /// The first, except the second. `[12]` is any of these digits.
    But(&'static str, &'static str),
}
use Allowed::{AllBut, But, Only};

pub(super) struct Litmus {
    pub(super) name: &'static str,
    pub(super) program: &'static str,
    pub(super) allowed: Allowed,
    /// Why, or the source.
    pub(super) because: &'static str,
}

const fn litmus(
    name: &'static str,
    program: &'static str,
    allowed: Allowed,
    because: &'static str,
) -> Litmus {
    Litmus { name, program, allowed, because }
}

#[rustfmt::skip]
pub(super) const TABLE: &[Litmus] = &[
    // Message passing: a flag that is seen, and data that is not.
    litmus("MP", "Wx1 Wy1 | Ry Rx", AllBut(""), "nothing synchronises"),
    litmus("MP+rel+acq", "Wx1 Wy1.rel | Ry.acq Rx", AllBut("10"), "synchronises-with; COHERENCE"),
    litmus("MP+rel+rlx", "Wx1 Wy1.rel | Ry Rx", AllBut(""), "a release needs an acquire"),
    litmus("MP+rlx+acq", "Wx1 Wy1 | Ry.acq Rx", AllBut(""), "an acquire needs a release"),
    litmus("MP+sc+sc", "Wx1 Wy1.sc | Ry.sc Rx", AllBut("10"), "SC accesses release and acquire"),
    litmus("MP+frel+facq", "Wx1 F.rel Wy1 | Ry F.acq Rx", AllBut("10"), "fences synchronise by the accesses around"),
    litmus("MP+frel+acq", "Wx1 F.rel Wy1 | Ry.acq Rx", AllBut("10"), "a fence and an access synchronise"),
    litmus("MP+rel+facq", "Wx1 Wy1.rel | Ry F.acq Rx", AllBut("10"), "an access and a fence synchronise"),
    litmus("MP+fsc+fsc", "Wx1 F.sc Wy1 | Ry F.sc Rx", AllBut("10"), "SC fences release and acquire"),
    litmus("MP+facq+frel", "Wx1 F.acq Wy1 | Ry F.rel Rx", AllBut(""), "fences of the wrong kinds"),
    litmus("MP+frel-late", "Wx1 Wy1 F.rel | Ry F.acq Rx", AllBut(""), "the fence is after the flag"),
    litmus("MP+facq-early", "Wx1 F.rel Wy1 | F.acq Ry Rx", AllBut(""), "the fence is before the flag is read"),
    litmus("MP+frel-far", "Wx1 F.rel Wy1 Wz1 | Rz F.acq Rx", AllBut("10"), "a fence covers all later stores"),
    // Store buffering.
    litmus("SB", "Wx1 Ry | Wy1 Rx", AllBut(""), "rb is no order"),
    litmus("SB+rel+acq", "Wx1.rel Ry.acq | Wy1.rel Rx.acq", AllBut(""), "nor with release and acquire"),
    litmus("SB+scs", "Wx1.sc Ry.sc | Wy1.sc Rx.sc", AllBut("00"), "psc: sb and rb"),
    litmus("SB+sc+acq", "Wx1.sc Ry.acq | Wy1.sc Rx.acq", AllBut(""), "the reads are not SC"),
    litmus("SB+rel+sc", "Wx1.rel Ry.sc | Wy1.rel Rx.sc", AllBut(""), "the writes are not SC"),
    litmus("SB+fscs", "Wx1 F.sc Ry | Wy1 F.sc Rx", AllBut("00"), "psc between fences"),
    litmus("SB+fsc+po", "Wx1 F.sc Ry | Wy1 Rx", AllBut(""), "one fence orders nothing"),
    litmus("SB+fars", "Wx1 F.ar Ry | Wy1 F.ar Rx", AllBut(""), "not SC"),
    litmus("SB+fsc+scs", "Wx1 F.sc Ry | Wy1.sc Rx.sc", AllBut("00"), "psc: fences and accesses together"),
    litmus("SB+fsc+sc-rlx", "Wx1 F.sc Ry | Wy1.sc Rx", AllBut(""), "T1's read is neither SC nor after a fence"),
    litmus("SB+rmw-ars", "Sx1.ar Ry.acq | Sy1.ar Rx.acq", Only("0000 0001 0100 0101"), "read-modify-writes of two words are no fences"),
    litmus("SB+rmw-scs", "Sx1.sc Ry.sc | Sy1.sc Rx.sc", Only("0001 0100 0101"), "psc: as SB+scs"),
    litmus("SB+rmw-one-word", "Wx1 Az1.ar Ry | Wy1 Az1.ar Rx", Only("0011 0111 1100 1101"), "one of the two reads the other, and synchronises"),
    // Load buffering, which RC11 forbids (NO-THIN-AIR: sb and rf are acyclic) and C++20 does not.
    litmus("LB", "Rx Wy1 | Ry Wx1", AllBut("11"), "RC11: NO-THIN-AIR. C++20 allows 11, as do Arm and Power"),
    litmus("LB+acq+rel", "Rx.acq Wy1.rel | Ry.acq Wx1.rel", AllBut("11"), "forbidden by all: hb would be cyclic"),
    litmus("LB+fscs", "Rx F.sc Wy1 | Ry F.sc Wx1", AllBut("11"), "forbidden by all"),
    litmus("LB3", "Rx Wy1 | Ry Wz1 | Rz Wx1", AllBut("111"), "RC11: NO-THIN-AIR. C++20 allows 111"),
    litmus("LB+rmw", "Rx Sy1 | Ry Wx1", Only("000 001 100"), "RC11: NO-THIN-AIR"),
    // Coherence: one word behaves.
    litmus("CoWW", "Wx1 Wx2", Only("/2"), "hb;mo is irreflexive"),
    litmus("CoRR", "Wx1 Wx2 | Rx Rx", Only("00 01 02 11 12 22"), "hb;rb;rf"),
    litmus("CoRR2", "Wx1 | Wx2 | Rx Rx", Only("00 01 02 11 12 21 22"), "either order, but never back to 0"),
    litmus("CoRW1", "Rx Wx1", Only("0"), "hb;rf"),
    litmus("CoRW2", "Rx Wx2 | Wx1", Only("0/1 0/2 1/2"), "hb;mo;rf"),
    litmus("CoWR", "Wx1 Rx | Wx2", Only("1/1 1/2 2/2"), "hb;rb"),
    // Two writers of two words.
    litmus("2+2W", "Wx1 Wy2 | Wy1 Wx2", Only("/11 /12 /21 /22"), "mo of two words together is no order"),
    litmus("2+2W+rels", "Wx1.rel Wy2.rel | Wy1.rel Wx2.rel", Only("/11 /12 /21 /22"), "nobody acquires"),
    litmus("2+2W+scs", "Wx1.sc Wy2.sc | Wy1.sc Wx2.sc", Only("/12 /21 /22"), "psc: sb and mo"),
    litmus("2+2W+fscs", "Wx1 F.sc Wy2 | Wy1 F.sc Wx2", Only("/12 /21 /22"), "psc between fences, by mo"),
    litmus("S", "Wx2 Wy1 | Ry Wx1", Only("0/11 0/21 1/11 1/21"), "nothing synchronises"),
    litmus("S+rel+acq", "Wx2 Wy1.rel | Ry.acq Wx1", Only("0/11 0/21 1/11"), "hb;mo"),
    litmus("S+fscs", "Wx2 F.sc Wy1 | Ry F.sc Wx1", Only("0/11 0/21 1/11"), "hb;mo"),
    litmus("R", "Wx1 Wy1 | Wy2 Rx", Only("0/11 0/12 1/11 1/12"), "nothing synchronises"),
    litmus("R+rel+acq", "Wx1 Wy1.rel | Wy2 Rx.acq", Only("0/11 0/12 1/11 1/12"), "mo does not synchronise"),
    litmus("R+scs", "Wx1.sc Wy1.sc | Wy2.sc Rx.sc", Only("0/11 1/11 1/12"), "psc: mo and rb"),
    litmus("R+fscs", "Wx1 F.sc Wy1 | Wy2 F.sc Rx", Only("0/11 1/11 1/12"), "psc between fences, by mo and rb"),
    litmus("R+fsc+scs", "Wx1 F.sc Wy1 | Wy2.sc Rx.sc", Only("0/11 1/11 1/12"), "psc: fences and accesses together"),
    // Causality through third parties.
    litmus("WRC", "Wx1 | Rx Wy1 | Ry Rx", AllBut(""), "nothing synchronises"),
    litmus("WRC+rel+acq", "Wx1.rel | Rx.acq Wy1.rel | Ry.acq Rx", AllBut("110"), "hb is transitive"),
    litmus("WRC+po+rel+acq", "Wx1 | Rx Wy1.rel | Ry.acq Rx", AllBut("110"), "COHERENCE: rb;rf;hb. The middle has read x, and that is known"),
    litmus("WRC+acq+po", "Wx1.rel | Rx.acq Wy1 | Ry.acq Rx", AllBut(""), "the middle does not release"),
    litmus("ISA2", "Wx1 Wy1 | Ry Wz1 | Rz Rx", AllBut(""), "nothing synchronises"),
    litmus("ISA2+rel+acq", "Wx1 Wy1.rel | Ry.acq Wz1.rel | Rz.acq Rx", AllBut("110"), "hb is transitive"),
    litmus("ISA2+po-middle", "Wx1 Wy1.rel | Ry Wz1.rel | Rz.acq Rx", AllBut(""), "the middle does not acquire"),
    litmus("ISA2+far-middle", "Wx1 Wy1.rel | Ry F.ar Wz1 | Rz.acq Rx", AllBut("110"), "a fence acquires and releases"),
    litmus("IRIW", "Wx1 | Wy1 | Rx Ry | Ry Rx", AllBut(""), "stores need not be seen in one order"),
    litmus("IRIW+rel+acq", "Wx1.rel | Wy1.rel | Rx.acq Ry.acq | Ry.acq Rx.acq", AllBut(""), "even so"),
    litmus("IRIW+scs", "Wx1.sc | Wy1.sc | Rx.sc Ry.sc | Ry.sc Rx.sc", AllBut("1010"), "psc: sb and rb, and mo after hb|loc"),
    litmus("IRIW+fscs", "Wx1 | Wy1 | Rx F.sc Ry | Ry F.sc Rx", AllBut("1010"), "psc between fences, by rb;rf"),
    litmus("IRIW-acq-sc", "Wx1.sc | Rx.acq Ry.sc | Ry.acq Rx.sc | Wy1.sc", AllBut(""), "the RC11 paper: allowed. C++11 forbids 1010, which no compiler for Power keeps"),
    litmus("RWC", "Wx1 | Rx Ry | Wy1 Rx", AllBut(""), "nothing synchronises"),
    litmus("RWC+fscs", "Wx1 | Rx F.sc Ry | Wy1 F.sc Rx", AllBut("100"), "the RC11 paper: psc between fences, by rb;rf. C++11 allows it"),
    litmus("RWC+scs", "Wx1.sc | Rx.sc Ry.sc | Wy1.sc Rx.sc", AllBut("100"), "psc: sb, rb and hb|loc"),
    litmus("W+RWC", "Wx1 Wz1 | Rz Ry | Wy1 Rx", AllBut(""), "nothing synchronises"),
    litmus("W+RWC+rel+acq+fscs", "Wx1 Wz1.rel | Rz.acq F.sc Ry | Wy1 F.sc Rx", AllBut("100"), "the RC11 paper: psc between fences, by rb;hb"),
    litmus("W+RWC+po+fscs", "Wx1 Wz1 | Rz F.sc Ry | Wy1 F.sc Rx", AllBut(""), "T0 does not release"),
    // Sequential consistency, where RC11 differs from C++11 or from one view of all fences.
    litmus("Z6.U", "Wx1.sc Wy1.rel | Sy2.sc Ry | Wy3.sc Rx.sc", Only("010 011 020 021 030 031 120 121 130 131 310 311 320 321"), "the RC11 paper: 130 is allowed. C++11 forbids it, and no compiler for Power keeps that"),
    litmus("fences-far-apart", "Wx1 F.sc Wy1 | Ry Wz1 | Rz F.sc Rx", AllBut(""), "nothing connects the fences: rf;sb;rf is no part of psc. One view of all fences forbids 110"),
    litmus("fences-far-apart+rel+acq", "Wx1 F.sc Wy1 | Ry.acq Wz1.rel | Rz F.sc Rx", AllBut("110"), "synchronises-with, and COHERENCE"),
    litmus("fence-then-sc-read", "F.sc Wx1 | Rx.sc", AllBut(""), "rf itself is no part of psc"),
    litmus("SB+sc-rlx+scs", "Wx1.sc Ry | Wy1.sc Rx.sc", AllBut(""), "T0's read is not SC"),
    // Release sequences.
    litmus("RS+rmw", "Wx1 Wy1.rel | Sy2 | Ry.acq Rx", Only("000 001 011 020 021 100 101 111 121"), "a read-modify-write continues a release sequence, even a relaxed one"),
    litmus("RS+store", "Wx1 Wy1.rel Wy2 | Ry.acq Rx", Only("00 01 11 20 21"), "a store of the same thread does not. C++20: P0982. C++17 and RC11 as printed forbid 20"),
    litmus("RS+other-store", "Wx1 Wy1.rel | Wy2 | Ry.acq Rx", Only("00 01 11 20 21"), "nor does one of another thread"),
    litmus("RS+own-rmw", "Wx1 Wy1.rel Sy2 | Ry.acq Rx", Only("100 101 111 121"), "nor need it be another's"),
    litmus("RS+frel", "Wx1 F.rel Wy1 | Sy2 | Ry.acq Rx", Only("000 001 011 020 021 100 101 111 121"), "headed by the store after the fence"),
    litmus("RS+facq", "Wx1 Wy1.rel | Sy2 | Ry F.acq Rx", Only("000 001 011 020 021 100 101 111 121"), "read before the fence"),
    litmus("RS+chain", "Wx1 Wy1.rel | Cy12 | Cy23 | Ry.acq Rx", Only("0!0!00 0!0!01 0!0!11 0!1!00 0!1!01 0!1!11 10!00 10!01 10!11 10!21 11!00 11!01 11!11 11!21 1200 1201 1211 1221 1231"), "of any length"),
    litmus("RS+rmw-rel", "Wx1 Wy1.rel | Wz1 Sy2.rel | Ry.acq Rx Rz", Only("0000 0001 0010 0011 0110 0111 0201 0211 1000 1001 1010 1011 1110 1111 1211"), "a releasing one heads its own, and continues the other"),
    litmus("RS+rmw-acq", "Wx1 Wy1.rel | Sy2.acq Rx", Only("00 01 11"), "a read-modify-write acquires"),
    litmus("RS+rmw-rlx", "Wx1 Wy1.rel | Sy2 Rx", Only("00 01 10 11"), "a relaxed one does not"),
    litmus("RS+rmw-facq", "Wx1 Wy1.rel | Sy2 F.acq Rx", Only("00 01 11"), "until a fence"),
    litmus("RS+cas-fails-acq", "Wx1 Wy1.rel | Cy56.ar/acq Rx", Only("0!0 0!1 1!1"), "a failing exchange acquires by its failure ordering"),
    litmus("RS+cas-fails-rlx", "Wx1 Wy1.rel | Cy56.ar Rx", Only("0!0 0!1 1!0 1!1"), "not by the other"),
    litmus("RS+cas-fails-facq", "Wx1 Wy1.rel | Cy56 F.acq Rx", Only("0!0 0!1 1!1"), "until a fence"),
    // Atomicity.
    litmus("RMW+RMW", "Ax1 | Ax1", Only("01/2 10/2"), "ATOMICITY"),
    litmus("RMW3", "Sx1 | Sx2 | Sx3", Only("012/3 031/2 201/3 302/1 310/2 230/1"), "ATOMICITY"),
    litmus("RMW+W", "Sx1 | Wx2", Only("0/2 2/1"), "ATOMICITY: no store between"),
    litmus("RMW-stale", "Wx1 Wy1 | Ry Sx2", Only("00/11 01/21 10/11 11/21"), "a read-modify-write may read an old message, and stand behind it"),
    litmus("RMW-stale+rel+acq", "Wx1 Wy1.rel | Ry.acq Sx2", Only("00/11 01/21 11/21"), "COHERENCE"),
    litmus("CAS+CAS", "Cx01 | Cx02", Only("01!/1 2!0/2"), "ATOMICITY: the loser cannot have read 0"),
    litmus("CAS-stale", "Wx1 Wy1 | Ry Cx12", Only("00!/11 01/21 10!/11 11/21"), "a failing exchange is a load"),
    litmus("CAS-stale+rel+acq", "Wx1 Wy1.rel | Ry.acq Cx12", Only("00!/11 01/21 11/21"), "COHERENCE"),
    litmus("CAS-fails-no-fence", "Wx1 Cz56.ar Ry | Wy1 Cz56.ar Rx", Only("0!00!0 0!00!1 0!10!0 0!10!1"), "failing exchanges of one word are not ordered"),
    litmus("CAS-fails-sc", "Wx1.sc Cy56.rlx/sc | Wy1.sc Cx56.rlx/sc", Only("0!1! 1!0! 1!1!"), "psc: an exchange that fails is an SC load"),
    litmus("weak-CAS", "Vx01", Only("0/1 0!/0"), "may fail for no reason"),
    litmus("weak-CAS+weak-CAS", "Vx01 | Vx02", Only("01!/1 2!0/2 00!/1 0!0/2 0!0!/0"), "and then read what another has taken"),
    // Fences in every position, and orderings of one side only.
    litmus("MP+fsc+acq", "Wx1 F.sc Wy1 | Ry.acq Rx", AllBut("10"), "an SC fence releases"),
    litmus("MP+rel+fsc", "Wx1 Wy1.rel | Ry F.sc Rx", AllBut("10"), "an SC fence acquires"),
    litmus("MP+fars", "Wx1 F.ar Wy1 | Ry F.ar Rx", AllBut("10"), "a fence of both kinds is of each"),
    litmus("MP+frel+po", "Wx1 F.rel Wy1 | Ry Rx", AllBut(""), "the reader does not acquire"),
    litmus("MP+po+facq", "Wx1 Wy1 | Ry F.acq Rx", AllBut(""), "the writer does not release"),
    litmus("MP+sc+po", "Wx1 Wy1.sc | Ry Rx", AllBut(""), "an SC store alone orders nothing for a relaxed load"),
    litmus("MP+po+sc", "Wx1 Wy1 | Ry.sc Rx", AllBut(""), "nor does an SC load for a relaxed store"),
    litmus("MP+sc-data", "Wx1.sc Wy1 | Ry.sc Rx.sc", AllBut(""), "rf of a relaxed store is no part of psc"),
    litmus("MP+scs", "Wx1.sc Wy1.sc | Ry.sc Rx.sc", AllBut("10"), "synchronises-with"),
    litmus("MP+rmw-rel+acq", "Wx1 Sy1.rel | Ry.acq Rx", Only("000 001 011"), "a read-modify-write releases"),
    litmus("MP+rel+rmw-acq", "Wx1 Wy1.rel | Ay1.acq Rx", Only("00 01 11"), "and acquires"),
    litmus("MP+rel+rmw-rlx", "Wx1 Wy1.rel | Ay1 Rx", Only("00 01 10 11"), "by its ordering"),
    litmus("SB+fsc+far", "Wx1 F.sc Ry | Wy1 F.ar Rx", AllBut(""), "the other fence is not SC"),
    litmus("SB+rmw-sc+scs", "Sx1.sc Ry.sc | Wy1.sc Rx.sc", Only("001 010 011"), "psc: the write of an exchange"),
    litmus("LB+acqs", "Rx.acq Wy1 | Ry.acq Wx1", AllBut("11"), "RC11: NO-THIN-AIR. C++20 allows 11 here, too"),
    litmus("LB+rels", "Rx Wy1.rel | Ry Wx1.rel", AllBut("11"), "the same"),
    litmus("S+po+acq", "Wx2 Wy1 | Ry.acq Wx1", But("[01]/[12]1", ""), "the writer does not release"),
    litmus("S+scs", "Wx2.sc Wy1.sc | Ry.sc Wx1.sc", But("[01]/[12]1", "1/21"), "hb;mo"),
    litmus("R+fsc+po", "Wx1 F.sc Wy1 | Wy2 Rx", But("[01]/1[12]", ""), "one fence"),
    litmus("R+scs+fsc", "Wx1.sc Wy1.sc | Wy2 F.sc Rx", But("[01]/1[12]", "0/12"), "psc: mo;hb into the fence, and hb;rb out of it"),
    litmus("2+2W+fsc+po", "Wx1 F.sc Wy2 | Wy1 Wx2", But("/[12][12]", ""), "one fence"),
    litmus("2+2W+fsc+scs", "Wx1 F.sc Wy2 | Wy1.sc Wx2.sc", But("/[12][12]", "/11"), "psc: fences and accesses together"),
    // Dependencies: RC11 has none, but for what NO-THIN-AIR takes from all of sb.
    litmus("MP+rel+ctrl", "Wx1 Wy1.rel | Ry ?01 Rx", Only("0 10 11"), "a condition does not acquire"),
    litmus("MP+rel+ctrl-facq", "Wx1 Wy1.rel | Ry ?01 F.acq Rx", Only("0 11"), "with a fence it does"),
    litmus("MP+rel+acq-ctrl", "Wx1 Wy1.rel | Ry.acq ?01 Rx", Only("0 11"), "synchronises-with"),
    litmus("LB+datas", "Rx Wy$0 | Ry Wx$0", Only("00"), "forbidden by all: a value out of thin air"),
    litmus("LB+ctrls", "Rx ?01 Wy1 | Ry ?01 Wx1", Only("00"), "forbidden by all, if nothing is to come out of thin air"),
    litmus("LB+data+po", "Rx Wy$0 | Ry Wx1", Only("00 10"), "RC11: NO-THIN-AIR. C++20 allows 11, and Arm shows it"),
    litmus("LB+ctrl+po", "Rx ?01 Wy1 | Ry Wx1", Only("00 10"), "the same"),
    litmus("LB3+datas", "Rx Wy$0 | Ry Wz$0 | Rz Wx$0", Only("000"), "as LB+datas"),
    litmus("S+rel+ctrl", "Wx2 Wy1.rel | Ry ?01 Wx1", Only("0/21 1/11 1/21"), "a condition orders no store in RC11; Arm and Power forbid 1/21"),
    litmus("S+rel+data", "Wx2 Wy1.rel | Ry Wx$0", Only("0/01 0/21 1/11 1/21"), "nor does a value; Arm and Power forbid 1/21"),
    litmus("S+rel+acq-data", "Wx2 Wy1.rel | Ry.acq Wx$0", Only("0/01 0/21 1/11"), "hb;mo"),
    litmus("PPOCA", "Wx1 F.sc Wy1 | Ry ?01 Wz1 Rz ?11 Rx", Only("0 110 111"), "a store that is read early: Arm and Power allow it, too"),
    litmus("PPOCA+acq", "Wx1 F.sc Wy1 | Ry.acq ?01 Wz1 Rz ?11 Rx", Only("0 111"), "synchronises-with"),
    litmus("PPOAA", "Wx1 F.sc Wy1 | Ry Wz$0 Rz Rx", Only("000 001 110 111"), "a value orders no load in RC11"),
    litmus("WRC+data+acq", "Wx1 | Rx Wy$0 | Ry.acq Rx", Only("000 001 100 101 110 111"), "the middle does not release"),
    litmus("WRC+ctrl-rel+acq", "Wx1 | Rx ?01 Wy1.rel | Ry.acq Rx", Only("000 001 100 101 111"), "COHERENCE: the middle has read x, and that is known"),
    litmus("ISA2+rel+ctrl+acq", "Wx1 Wy1.rel | Ry ?01 Wz1.rel | Rz.acq Rx", But("[01][01][01]", "010 011"), "the middle does not acquire"),
    litmus("CAS+ctrl", "Wx1 Cy01.rel | Ry.acq ?01 Cx12", Only("00 011"), "an exchange that is seen orders the next"),
    // Addresses: RC11 orders nothing by them either, and what is read of another word is old.
    litmus("MP+rel+addr", "Wx1 Wy&x.rel | Ry R*0", Only("0 x0 x1"), "an address does not acquire; Arm and Power forbid x0"),
    litmus("MP+rel+acq-addr", "Wx1 Wy&x.rel | Ry.acq R*0", Only("0 x1"), "synchronises-with"),
    litmus("MP+rel+addr-facq", "Wx1 Wy&x.rel | Ry F.acq R*0", Only("0 x1"), "until a fence"),
    litmus("MP+po+acq-addr", "Wx1 Wy&x | Ry.acq R*0", Only("0 x0 x1"), "the writer does not release"),
    litmus("MP+rel+acq-chain", "Wx1 Wz&x Wy&z.rel | Ry.acq R*0 R*1", Only("0 zx1"), "synchronises-with, through both"),
    litmus("MP+rel+chain", "Wx1 Wz&x.rel Wy&z.rel | Ry R*0.acq R*1", Only("0 z0 zx1"), "an acquire that reads no release of y"),
    litmus("S+rel+addr", "Wx2 Wy&x.rel | Ry W*01", Only("0/2x x/1x x/2x"), "an address orders no store; Arm and Power forbid x/2x"),
    litmus("S+rel+acq-addr", "Wx2 Wy&x.rel | Ry.acq W*01", Only("0/2x x/1x"), "hb;mo"),
    // Three threads, three words.
    litmus("3.SB", "Wx1 Ry | Wy1 Rz | Wz1 Rx", AllBut(""), "nothing synchronises"),
    litmus("3.SB+fscs", "Wx1 F.sc Ry | Wy1 F.sc Rz | Wz1 F.sc Rx", AllBut("000"), "psc between fences, by rb"),
    litmus("3.SB+scs", "Wx1.sc Ry.sc | Wy1.sc Rz.sc | Wz1.sc Rx.sc", AllBut("000"), "psc: sb and rb"),
    litmus("3.2W", "Wx1 Wy2 | Wy1 Wz2 | Wz1 Wx2", But("/[12][12][12]", ""), "mo of three words is no order"),
    litmus("3.2W+scs", "Wx1.sc Wy2.sc | Wy1.sc Wz2.sc | Wz1.sc Wx2.sc", But("/[12][12][12]", "/111"), "psc: sb and mo"),
    litmus("Z6.0", "Wx1 Wy1 | Ry Wz1 | Wz2 Rx", But("[01][01]/11[12]", ""), "the cycle is rf, mo, rb; nothing synchronises"),
    litmus("Z6.0+fscs", "Wx1 F.sc Wy1 | Ry F.sc Wz1 | Wz2 F.sc Rx", But("[01][01]/11[12]", "10/112"), "psc between fences"),
    litmus("Z6.0+rel+acq+fsc", "Wx1 Wy1.rel | Ry.acq Wz1 | Wz2 F.sc Rx", But("[01][01]/11[12]", ""), "mo does not synchronise"),
    litmus("Z6.1", "Wx2 Wy1 | Wy2 Wz1 | Rz Wx1", But("[01]/[12][12]1", ""), "the cycle is mo, rf, mo"),
    litmus("Z6.1+fscs", "Wx2 F.sc Wy1 | Wy2 F.sc Wz1 | Rz F.sc Wx1", But("[01]/[12][12]1", "1/221"), "psc between fences"),
    litmus("Z6.2", "Wx2 Wy1 | Ry Wz1 | Rz Wx1", But("[01][01]/[12]11", ""), "the cycle is rf, rf, mo"),
    litmus("Z6.2+rel+acq", "Wx2 Wy1.rel | Ry.acq Wz1.rel | Rz.acq Wx1", But("[01][01]/[12]11", "11/211"), "hb is transitive"),
    litmus("Z6.3", "Wx1 Wy1 | Wy2 Wz1 | Rz Rx", But("[01][01]/1[12]1", ""), "the cycle is mo, rf, rb"),
    litmus("Z6.3+fscs", "Wx1 F.sc Wy1 | Wy2 F.sc Wz1 | Rz F.sc Rx", But("[01][01]/1[12]1", "10/121"), "psc between fences"),
    litmus("Z6.3+rels+acq", "Wx1.rel Wy1.rel | Wy2.rel Wz1.rel | Rz.acq Rx.acq", But("[01][01]/1[12]1", ""), "mo does not synchronise"),
    litmus("Z6.4", "Wx1 Wy1 | Wy2 Rz | Wz1 Rx", But("[01][01]/1[12]1", ""), "the cycle is mo, rb, rb"),
    litmus("Z6.4+scs", "Wx1.sc Wy1.sc | Wy2.sc Rz.sc | Wz1.sc Rx.sc", But("[01][01]/1[12]1", "00/121"), "psc: sb, mo and rb"),
    litmus("Z6.5", "Wx1 Wy1 | Wy2 Wz1 | Wz2 Rx", But("[01]/1[12][12]", ""), "the cycle is mo, mo, rb"),
    litmus("Z6.5+fscs", "Wx1 F.sc Wy1 | Wy2 F.sc Wz1 | Wz2 F.sc Rx", But("[01]/1[12][12]", "0/122"), "psc between fences"),
    litmus("WWC", "Wx2 | Rx Wy1 | Ry Wx1", But("[012][01]/[12]1", "11/[12]1"), "only NO-THIN-AIR"),
    litmus("WWC+rel+acq", "Wx2 | Rx Wy1.rel | Ry.acq Wx1", But("[012][01]/[12]1", "11/[12]1 21/21"), "COHERENCE: mo;rf;hb"),
    litmus("WRR+2W+fscs", "Wx2 | Rx F.sc Ry | Wy1 F.sc Wx1", But("[012][01]/[12]1", "20/21 10/[12]1"), "psc between fences; 10 is message passing"),
    litmus("RWC+rel+acq+fscs", "Wx1.rel | Rx.acq F.sc Ry | Wy1 F.sc Rx", AllBut("100"), "psc between fences, by rb;hb"),
    litmus("RWC+acq+fsc", "Wx1 | Rx.acq Ry | Wy1 F.sc Rx", AllBut(""), "one fence"),
    litmus("RWC+rlx+scs", "Wx1 | Rx.sc Ry.sc | Wy1.sc Rx.sc", AllBut(""), "the store to x is not SC, and rf is no part of psc"),
    litmus("W+RWC+scs", "Wx1.sc Wz1.sc | Rz.sc Ry.sc | Wy1.sc Rx.sc", AllBut("100"), "psc: sb, rb and hb|loc"),
    litmus("IRIW+fsc+acq", "Wx1 | Wy1 | Rx F.sc Ry | Ry.acq Rx.acq", AllBut(""), "one fence"),
    litmus("IRIW+rlx+scs", "Wx1 | Wy1 | Rx.sc Ry.sc | Ry.sc Rx.sc", AllBut(""), "the stores are not SC"),
    litmus("WRC4", "Wx1 | Rx Wy1.rel | Ry.acq Wz1.rel | Rz.acq Rx", AllBut("1110"), "hb is transitive, and COHERENCE"),
    litmus("4.LB", "Rx Wy1 | Ry Wz1 | Rz Ww1 | Rw Wx1", AllBut("1111"), "RC11: NO-THIN-AIR"),
    // More of one word.
    litmus("CoRR3", "Wx1 | Rx Rx Rx", Only("000 001 011 111"), "never back"),
    litmus("CoRR+two-readers", "Wx1 | Wx2 | Rx Rx | Rx Rx", But("[012][012][012][012]", "[12]0[012][012] [012][012][12]0 1221 2112"), "both see one order"),
    litmus("CoWW3", "Wx1 | Wx2 | Wx3", Only("/1 /2 /3"), "any order"),
    litmus("CoWR2", "Wx1 Rx | Wx2 Rx", Only("12/1 12/2 11/1 22/2"), "each sees its own store, or one that replaced it"),
    litmus("RMW+RMW+RMW", "Ax1 | Ax1 | Ax1", Only("012/3 021/3 102/3 120/3 201/3 210/3"), "ATOMICITY"),
    litmus("RMW-sc+RMW-rlx", "Ax1.sc | Ax1", Only("01/2 10/2"), "ATOMICITY, whatever the ordering"),
];

const WORDS: &str = "xyzw";

fn order_of(name: &str) -> Ordering {
    match name {
        "rlx" => Relaxed,
        "acq" => Acquire,
        "rel" => Release,
        "ar" => AcqRel,
        "sc" => SeqCst,
        _ => panic!("no such ordering: {name}"),
    }
}

fn op_of(text: &str) -> Op {
    let (what, order) = text.split_once('.').unwrap_or((text, "rlx"));
    let (order, failure) = order.split_once('/').unwrap_or((order, "rlx"));
    let (order, failure) = (order_of(order), order_of(failure));
    let characters: Vec<char> = what.chars().collect();
    let word = |name| WORDS.find(name).expect("a word");
    let x = || word(characters[1]);
    let value = |index: usize| characters[index].to_digit(10).expect("a value").into();
    match characters[0] {
        'F' => Op::Fence(order),
        'R' if characters[1] == '*' => Op::LoadAt(value(2) as usize, order),
        'R' => Op::Load(x(), order),
        'W' if characters[1] == '*' => Op::StoreAt(value(2) as usize, value(3), order),
        'W' if characters[2] == '&' => Op::Store(x(), ADDRESS + word(characters[3]) as u64, order),
        'W' if characters[2] == '$' => Op::Copy(x(), value(3) as usize, order),
        'W' => Op::Store(x(), value(2), order),
        '?' => Op::If(value(1) as usize, value(2)),
        'S' => Op::Swap(x(), value(2), order),
        'A' => Op::Add(x(), value(2), order),
        'C' | 'V' => Op::Cas {
            x: x(),
            expected: value(2),
            new: value(3),
            success: order,
            failure,
            weak: characters[0] == 'V',
        },
        other => panic!("no such operation: {other}"),
    }
}

/// The outcomes of a list, with one digit in place of each `[12]`.
fn expand(list: &str) -> BTreeSet<String> {
    let mut outcomes = BTreeSet::new();
    let mut open: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
    while let Some(outcome) = open.pop() {
        match outcome.split_once('[').map(|(before, rest)| (before, rest.split_once(']').expect("a bracket")))
        {
            None => _ = outcomes.insert(outcome),
            Some((before, (digits, after))) => {
                open.extend(digits.chars().map(|digit| format!("{before}{digit}{after}")));
            }
        }
    }
    outcomes
}

impl Litmus {
    pub(super) fn program(&self) -> Program {
        self.program.split('|').map(|thread| thread.split_whitespace().map(op_of).collect()).collect()
    }

    /// The outcomes as they are written.
    pub(super) fn allowed(&self) -> BTreeSet<String> {
        let only = |list: &str| list.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        match self.allowed {
            Only(list) => only(list),
            But(list, except) => expand(list).difference(&expand(except)).cloned().collect(),
            AllBut(list) => {
                let reads = self.program().iter().flatten().filter(|op| matches!(op, Op::Load(..))).count();
                (0..1 << reads)
                    .map(|bits: u32| format!("{bits:0reads$b}"))
                    .filter(|outcome| !only(list).contains(outcome))
                    .collect()
            }
        }
    }

    /// Outcomes, written as in the table.
    pub(super) fn written(&self, outcomes: &BTreeSet<Outcome>) -> BTreeSet<String> {
        let with_last = matches!(self.allowed, Only(list) | But(list, _) if list.contains('/'));
        let write = |outcome: &Outcome| {
            let digit = |value: &u64| {
                let digit = match pointee(value % FAILED) {
                    Some(word) => WORDS[word..=word].to_owned(),
                    None => (value % FAILED).to_string(),
                };
                digit + if *value < FAILED { "" } else { "!" }
            };
            let mut text: String = outcome.reads.iter().flatten().map(digit).collect();
            if with_last {
                text.push('/');
                text.extend(outcome.last.iter().map(digit));
            }
            text
        };
        outcomes.iter().map(write).collect()
    }
}
