//! What the programs show of a directory.

use crate::registry;
use crate::semctl::{Status, stat};
use crate::sys::Answer;

const SEM_STAT_ANY: i32 = 20;

/// An array of the directory.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// Its id.
    pub id: i32,
    /// Its key.
    pub key: u32,
    /// Its state, or why that cannot be read.
    pub status: Answer<Status>,
}

/// The arrays of the directory, by index.
///
/// # Errors
/// ENOSYS if a setting of the environment is bad; otherwise why the directory cannot be used.
pub fn list() -> Answer<impl Iterator<Item = Listed>> {
    let registry = registry::get()?;
    Ok((0..registry.high()).filter_map(move |index| {
        let (id, key, _) = registry.at(index)?;
        let status = stat(index as i32, SEM_STAT_ANY).map(|(status, _)| status);
        (status.err() != Some(libc::EINVAL)).then_some(Listed { id: id as i32, key, status })
    }))
}

/// The id of the array with this key.
///
/// # Errors
/// ENOENT if there is none; otherwise why the directory cannot be used.
pub fn find(key: u32) -> Answer<i32> {
    list()?.find(|array| array.key == key && key != 0).map(|array| array.id).ok_or(libc::ENOENT)
}
