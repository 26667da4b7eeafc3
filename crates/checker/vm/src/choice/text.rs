//! Input strings as text that people copy, paste and put into tests: `v1_s3hi1x1f_27cd`.
//!
//! A word of small letters, digits and `_`, so that a double click selects it and a shell leaves it
//! alone: the version, the bytes, and a checksum. White space, as from a line that was wrapped,
//! does not matter.
//!
//! | text | bytes |
//! |---|---|
//! | `1` to `9`, `a` to `f` | that byte |
//! | `x` and two hexadecimal digits | that byte, 10 to ff |
//! | `g` to `v`, as many as stand together | so many zeros, written to base 16 with `g` as 0 |
//!
//! Most answers are 0 and most others small, so most surprises take one letter and the tame stretch
//! between two of them one or two.
//!
//! Each string of bytes has one text. The checksum is CRC-16/CCITT-FALSE of the part in the middle:
//! every single wrong character and every exchange of two neighbours is noticed, and other mistakes
//! but for one in 65,536.

use std::fmt;

const VERSION: &str = "v1_";
/// Far more choices than an execution makes; a few letters can ask for any number of zeros.
const MAX_BYTES: usize = 1 << 24;

/// Why a text is not an input string. One line, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseReplayError(Wrong);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wrong {
    Empty,
    Version(String),
    Character { character: char, position: usize },
    NoChecksum,
    Checksum { given: String, expected: String },
    TooLong,
    NotOurs,
}

impl fmt::Display for ParseReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a replay string: ")?;
        match &self.0 {
            Wrong::Empty => write!(f, "it is empty; the least there is is `{}`", encode(&[])),
            Wrong::Version(start) => {
                write!(f, "it begins with `{start}`; this version reads those with `{VERSION}`")
            }
            Wrong::Character { character, position } => {
                write!(f, "{character:?} at position {position}; small letters, digits and `_` are used")
            }
            Wrong::NoChecksum => {
                f.write_str("it is cut off: at the end stand `_` and four hexadecimal digits")
            }
            Wrong::Checksum { given, expected } => write!(
                f,
                "mistyped, or a part is missing: the checksum at the end is `{given}`, and the rest would have `{expected}`"
            ),
            Wrong::TooLong => write!(f, "it stands for more than {MAX_BYTES} bytes"),
            Wrong::NotOurs => f.write_str("the checksum is right, but it was not written by this program"),
        }
    }
}

impl std::error::Error for ParseReplayError {}

/// The text of `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut body = String::new();
    let mut rest = bytes;
    while let Some(&byte) = rest.first() {
        let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
        rest = &rest[zeros.max(1)..];
        match byte {
            0 => body.extend(format!("{zeros:x}").chars().map(letter)),
            1..16 => body += &format!("{byte:x}"),
            _ => body += &format!("x{byte:02x}"),
        }
    }
    format!("{VERSION}{body}_{:04x}", checksum(&body))
}

/// The bytes of `text`.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, ParseReplayError> {
    read(text).map_err(ParseReplayError)
}

fn read(text: &str) -> Result<Vec<u8>, Wrong> {
    let word: String = text.split_ascii_whitespace().collect();
    if word.is_empty() {
        return Err(Wrong::Empty);
    }
    let Some(rest) = word.strip_prefix(VERSION) else {
        return Err(Wrong::Version(word.chars().take(VERSION.len()).collect()));
    };
    let is_used = |c: char| c == '_' || c.is_ascii_digit() || c.is_ascii_lowercase();
    if let Some((position, character)) =
        text.chars().enumerate().find(|&(_, c)| !is_used(c) && !c.is_ascii_whitespace())
    {
        return Err(Wrong::Character { character, position: position + 1 });
    }
    let Some((body, given)) = rest.split_once('_') else { return Err(Wrong::NoChecksum) };
    if given.len() < 4 {
        return Err(Wrong::NoChecksum);
    }
    let expected = format!("{:04x}", checksum(body));
    if given != expected {
        return Err(Wrong::Checksum { given: given.into(), expected });
    }
    let bytes = expand(body)?;
    if encode(&bytes) == word { Ok(bytes) } else { Err(Wrong::NotOurs) }
}

/// The bytes of the part in the middle, if it has the right form.
fn expand(body: &str) -> Result<Vec<u8>, Wrong> {
    let mut bytes = Vec::new();
    let mut zeros = 0_usize;
    let mut rest = body.chars();
    while let Some(next) = rest.next() {
        if let 'g'..='v' = next {
            let digit = next as usize - 'g' as usize;
            zeros = zeros.saturating_mul(16).saturating_add(digit);
            if bytes.len().saturating_add(zeros) > MAX_BYTES {
                return Err(Wrong::TooLong);
            }
            continue;
        }
        bytes.resize(bytes.len() + zeros, 0);
        zeros = 0;
        let mut digit = || rest.next().and_then(|c| c.to_digit(16));
        let byte = match next {
            'x' => digit().zip(digit()).map(|(high, low)| high << 4 | low),
            _ => next.to_digit(16),
        };
        bytes.push(byte.ok_or(Wrong::NotOurs)? as u8);
    }
    bytes.resize(bytes.len() + zeros, 0);
    if bytes.len() > MAX_BYTES { Err(Wrong::TooLong) } else { Ok(bytes) }
}

/// The letter for a hexadecimal digit of a number of zeros.
fn letter(digit: char) -> char {
    let value = digit.to_digit(16).expect("formatted as hexadecimal") as u8;
    (b'g' + value) as char
}

/// CRC-16/CCITT-FALSE: polynomial 0x1021, begins with 0xffff.
fn checksum(text: &str) -> u16 {
    text.bytes().fold(0xffff, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| crc << 1 ^ if crc >> 15 == 1 { 0x1021 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::*;

    fn refusal(text: &str) -> String {
        decode(text).unwrap_err().to_string()
    }

    #[test]
    fn texts_are_as_documented() {
        assert_eq!(encode(&[]), "v1__ffff");
        assert_eq!(encode(&[1, 9, 10, 15, 16, 255]), format!("v1_19afx10xff_{:04x}", checksum("19afx10xff")));
        let zeros = [vec![0; 12], vec![3], vec![0], vec![1], vec![0; 300]].concat();
        assert_eq!(encode(&zeros), format!("v1_s3h1his_{:04x}", checksum("s3h1his")));
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum("123456789"), 0x29b1);
    }

    #[test]
    fn all_short_strings_come_back() {
        let bytes = [0, 1, 9, 10, 15, 16, 255];
        let mut strings = vec![vec![]];
        for from in 0..5 {
            let longer: Vec<Vec<u8>> = strings
                .iter()
                .filter(|string| string.len() == from)
                .flat_map(|string| bytes.map(|byte| [string.as_slice(), &[byte]].concat()))
                .collect();
            strings.extend(longer);
        }
        assert_eq!(strings.len(), (7_usize.pow(6) - 1) / 6);
        let texts: std::collections::HashSet<String> = strings.iter().map(|string| encode(string)).collect();
        assert_eq!(texts.len(), strings.len(), "no two have the same text");
        for string in strings {
            assert_eq!(decode(&encode(&string)).as_ref(), Ok(&string));
        }
    }

    #[test]
    fn random_strings_with_runs_of_zeros_come_back_also_when_wrapped() {
        let mut rng = Rng::new(1);
        for _ in 0..500 {
            let mut string = Vec::new();
            for _ in 0..rng.below(20) {
                string.extend(vec![0; rng.below(5_000) >> rng.below(13)]);
                string.push(rng.next() as u8 >> rng.below(8));
            }
            let text = encode(&string);
            assert_eq!(decode(&text).as_ref(), Ok(&string));
            let (head, tail) = text.split_at(text.len() / 2);
            assert_eq!(decode(&format!("  {head}\n    {tail}\n")).as_ref(), Ok(&string));
        }
    }

    #[test]
    fn a_few_surprises_in_thousands_of_choices_are_a_short_text() {
        let mut string = vec![0; 5_000];
        (string[700], string[1_900], string[4_999]) = (1, 2, 31);
        assert_eq!(encode(&string).len(), "v1_".len() + 4 + 4 + 6 + "_ffff".len());
    }

    #[test]
    fn every_wrong_missing_or_exchanged_character_is_noticed() {
        let string = [vec![0; 12], vec![3, 200, 0, 1], vec![0; 300], vec![5]].concat();
        let text = encode(&string);
        let characters = "0123456789abcdefghijklmnopqrstuvwxyz_";
        for position in 0..text.len() {
            let (head, tail) = (&text[..position], &text[position + 1..]);
            assert!(decode(&format!("{head}{tail}")).is_err(), "without {position}");
            for character in characters.chars() {
                let mistyped = format!("{head}{character}{tail}");
                assert_eq!(decode(&mistyped).is_ok(), mistyped == text, "{mistyped}");
            }
            if let Some(next) = tail.chars().next() {
                let exchanged = format!("{head}{next}{}{}", &text[position..=position], &tail[1..]);
                assert_eq!(decode(&exchanged).is_ok(), exchanged == text, "{exchanged}");
            }
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong() {
        assert_eq!(refusal(" "), "not a replay string: it is empty; the least there is is `v1__ffff`");
        assert!(refusal("v2_12_0000").contains("begins with `v2_`; this version reads those with `v1_`"));
        assert!(refusal("v1_1é2_0000").contains("'é' at position 5; small letters, digits and `_` are used"));
        assert!(refusal("v1_1A2_0000").contains("'A' at position 5"));
        assert!(refusal("v1_12").contains("cut off: at the end stand `_` and four hexadecimal digits"));
        assert!(refusal("v1_12_00").contains("cut off"));
        let right = format!("{:04x}", checksum("12"));
        assert!(refusal("v1_12_0000").ends_with(&format!("is `0000`, and the rest would have `{right}`")));
        for text in ["", "v1_12_0000", "v1_\u{1b}[31m_0000", "v1_1\n\n!"] {
            assert_eq!(refusal(text).lines().count(), 1);
            assert!(!refusal(text).contains('\u{1b}'), "control characters are not passed on");
        }
    }

    /// A text of our form around `body`.
    fn forged(body: &str) -> String {
        format!("v1_{body}_{:04x}", checksum(body))
    }

    #[test]
    fn texts_with_a_right_checksum_that_are_not_ours_are_refused() {
        assert_eq!(refusal(&forged("vvvvvvvvvvvvvvvvvvvvvvvvvvvvvv")), refusal(&forged("hgggggh")));
        assert!(refusal(&forged("hgggggh")).contains("more than 16777216 bytes"));
        for body in ["x0f", "0", "gh", "x1", "x", "xg1", "z", "w", "y"] {
            assert!(refusal(&forged(body)).contains("was not written by this program"), "{body}");
        }
        assert_eq!(decode(&forged("hggggg")).map(|bytes| bytes.len()), Ok(1 << 20));
    }
}
