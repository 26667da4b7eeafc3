//! The name of a type for people: `Mutex<u64>`.

use super::entry::{NAME_BYTES, Text};

/// The name of `T` without the paths of its parts, at most 64 bytes of it.
pub(super) fn type_name<T>() -> Text {
    let name = shortened(core::any::type_name::<T>());
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Text::new(&name[..end]).unwrap_or(Text::EMPTY)
}

/// `name` with the last segment of each path only, and without what the alias of a lock leaves out.
fn shortened(name: &str) -> String {
    let is_path = |char: char| char.is_alphanumeric() || char == '_' || char == ':';
    let mut short = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|char| !is_path(char)).unwrap_or(rest.len());
        if end == 0 {
            short.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let (path, behind) = rest.split_at(end);
            short.push_str(path.rsplit("::").next().unwrap_or(path));
            rest = behind;
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_left_out() {
        for (long, short) in [
            ("u64", "u64"),
            ("a::b::Lock<c::D, [e::F; 3]>", "Lock<D, [F; 3]>"),
            ("(a::B, &c::D)", "(B, &D)"),
            ("", ""),
        ] {
            assert_eq!(shortened(long), short);
        }
    }

    #[test]
    fn a_long_name_is_cut_off() {
        struct ATypeWithAVeryLongNameThatHasMoreThanSixtyFourBytesAndGoesOnForEver;
        let name = type_name::<ATypeWithAVeryLongNameThatHasMoreThanSixtyFourBytesAndGoesOnForEver>();
        assert_eq!(name.read().unwrap(), "ATypeWithAVeryLongNameThatHasMoreThanSixtyFourBytesAndGoesOnForE");
    }
}
