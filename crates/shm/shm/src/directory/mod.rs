//! `Directory`: locks of a region by name.

pub(crate) mod entry;
mod error;
#[doc(hidden)]
pub mod table;
#[cfg(regions)]
mod type_name;
#[cfg(regions)]
mod typed;

#[cfg(regions)]
pub use entry::NAME_BYTES;
pub use error::DirectoryError;
pub use table::Fresh;
#[cfg(regions)]
pub use typed::{Directory, Named};
