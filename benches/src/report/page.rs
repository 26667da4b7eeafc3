//! Stub: the page of a folder of records.

use std::path::{Path, PathBuf};

/// Writes the page of all records in `folder`, and says where.
pub fn write(folder: &Path) -> anyhow::Result<PathBuf> {
    let page = folder.join("index.html");
    std::fs::write(&page, "")?;
    Ok(page)
}
