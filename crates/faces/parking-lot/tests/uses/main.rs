//! The same uses, compiled against parking_lot and against this crate: every item of the README's
//! table. What compiles against one and not against the other is a gap.

use ulocks_testkit as _;
macro_rules! against {
    ($module:ident, $lot:path, $lock_api:path, $file:literal) => {
        mod $module {
            use $lock_api as lock_api;
            use $lot as lot;
            include!("both.inc");
            mod version {
                use super::{lock_api, lot};
                include!($file);
            }
        }
    };
}

against!(theirs, ::parking_lot, ::parking_lot::lock_api, "only_0_13.inc");
against!(ours, ::ulocks_parking_lot, ::ulocks_parking_lot::lock_api, "only_0_13.inc");
against!(theirs_0_12, ::parking_lot_012, ::parking_lot_012::lock_api, "only_0_12.inc");
#[cfg(feature = "v0_12")]
against!(ours_0_12, ::ulocks_parking_lot::v0_12, ::ulocks_parking_lot::v0_12::lock_api, "only_0_12.inc");
