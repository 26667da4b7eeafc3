//! Whether a lock lies in an object of the program, or is a static of its own.
//!
//! The statics of a wrapper or a macro lie in a row, and so equally far apart. That says nothing of
//! their purposes. The kernel's list of mappings tells: a static lies in a mapping of a file, or in
//! the one behind it that begins where it ends.

/// Whether `address` is in memory that the program has made. `false` if that is not known.
pub(super) fn is_made(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut end_of_file = 0;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let bounds = words.next().and_then(|range| range.split_once('-'));
        let Some((begin, end)) = bounds.and_then(|(begin, end)| {
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(begin)?, number(end)?))
        }) else {
            continue;
        };
        let is_of_file = words.nth(4).is_some_and(|name| name.starts_with('/')) || begin == end_of_file;
        if (begin..end).contains(&address) {
            return !is_of_file;
        }
        if is_of_file {
            end_of_file = end;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;
    use ulocks_core::sync::AtomicU64;

    #[test]
    fn statics_are_told_from_objects() {
        static ZERO: AtomicU64 = AtomicU64::new(0);
        static ONE: AtomicU64 = AtomicU64::new(1);
        let (boxed, local) = (Box::new(1), 1);
        assert!(!is_made(ptr::from_ref(&ZERO).addr()) && !is_made(ptr::from_ref(&ONE).addr()));
        assert!(is_made(ptr::from_ref(&*boxed).addr()) && is_made(ptr::from_ref(&local).addr()));
    }
}
