//! What acquisitions are counted under.

use core::panic::Location;

/// A line of a program.
pub type Place = &'static Location<'static>;

/// The class of a checked lock, or the name of plain ones.
pub trait Subject: Sync {
    /// Its name.
    fn name(&self) -> &str;
    /// Where it was made.
    fn made(&self) -> Place;
    /// Whether it is a name of plain locks, whose holders are not recorded.
    fn is_plain(&self) -> bool;
}
