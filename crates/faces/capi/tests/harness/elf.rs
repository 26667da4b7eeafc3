//! What a shared library of 64 bits says of itself to the loader.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names in a library.
#[derive(Debug)]
pub struct Library {
    /// Of the library, for programs that are linked with it.
    pub soname: Option<String>,
    /// Of what it defines for others.
    pub exported: BTreeSet<String>,
}

/// A part of the file: `sh_type`, `sh_offset`, `sh_size`, `sh_link` of a section.
struct Section {
    kind: u64,
    offset: usize,
    size: usize,
    link: usize,
}

/// Reads a library. See elf(5) for the numbers.
pub fn read(path: &Path) -> Library {
    const DYNAMIC: u64 = 6;
    const DYNAMIC_SYMBOLS: u64 = 11;
    const SONAME: u64 = 14;
    let file = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(file[..5], *b"\x7fELF\x02", "{} is no ELF file of 64 bits", path.display());
    let number = |offset: usize, size: usize| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&file[offset..offset + size]);
        u64::from_le_bytes(bytes)
    };
    let place = |offset, size| number(offset, size) as usize;
    let text = |offset: usize| {
        let end = file[offset..].iter().position(|&byte| byte == 0).expect("the end of a name");
        String::from_utf8_lossy(&file[offset..offset + end]).into_owned()
    };
    let (table, size, count) = (place(0x28, 8), place(0x3a, 2), place(0x3c, 2));
    let section = |nth: usize| {
        let at = table + nth * size;
        Section {
            kind: number(at + 4, 4),
            offset: place(at + 0x18, 8),
            size: place(at + 0x20, 8),
            link: place(at + 0x28, 4),
        }
    };
    let mut library = Library { soname: None, exported: BTreeSet::new() };
    for Section { kind, offset, size, link } in (0..count).map(section) {
        let entries = |of: usize| (offset..offset + size).step_by(of);
        match kind {
            DYNAMIC => {
                let entry = entries(16).find(|&entry| number(entry, 8) == SONAME);
                library.soname = entry.map(|entry| text(section(link).offset + place(entry + 8, 8)));
            }
            DYNAMIC_SYMBOLS => {
                // Defined, in a section: the first one is none.
                let defined = entries(24).filter(|&symbol| number(symbol + 6, 2) != 0);
                library.exported.extend(defined.map(|symbol| text(section(link).offset + place(symbol, 4))));
            }
            _ => {}
        }
    }
    library
}
