//! Executions from an input string: a fuzzer's, or a recorded one.
//!
//! A choice among `n` takes no byte if `n` is 1, one if `n` is at most 256, and otherwise two, the
//! lower half first. The answer is what was taken modulo `n`; after the end of the string it is 0.
//! So every string is an execution, and one that is changed in one place stays the same execution
//! up to there: what a fuzzer that mutates strings needs.

use super::{Candidate, Kind, Strategy};

/// More answers than two bytes can tell apart.
const MOST: usize = 1 << 16;

/// Answers as an input string says.
#[derive(Clone, Debug)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    begun: bool,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self { rest: input, begun: false }
    }

    #[inline]
    fn take(&mut self) -> usize {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first.into()
    }

    #[inline]
    fn below(&mut self, n: usize) -> usize {
        if n == 1 {
            return 0;
        }
        check(n);
        let low = self.take();
        let value = if n <= 256 { low } else { low | self.take() << 8 };
        value % n
    }
}

#[inline]
fn check(n: usize) {
    assert!((1..=MOST).contains(&n), "a choice among {n}: at least 1 and at most {MOST}");
}

/// Appends what makes [`Bytes`] answer `answer` where there are `n` answers.
#[inline]
pub(super) fn write(answer: usize, n: usize, out: &mut Vec<u8>) {
    check(n);
    debug_assert!(answer < n);
    if n > 1 {
        out.push(answer as u8);
    }
    if n > 256 {
        out.push((answer >> 8) as u8);
    }
}

impl Strategy for Bytes<'_> {
    fn begin(&mut self) -> bool {
        !core::mem::replace(&mut self.begun, true)
    }

    #[inline]
    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        self.below(enabled.len())
    }

    #[inline]
    fn pick(&mut self, _kind: Kind, n: usize) -> usize {
        self.below(n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Footprint;
    use super::*;

    fn enabled(n: usize) -> Vec<Candidate> {
        (0..n).map(|thread| Candidate { thread, footprint: Footprint::Local }).collect()
    }

    #[test]
    fn an_answer_is_a_byte_modulo_the_number_of_answers() {
        let mut bytes = Bytes::new(&[7, 7, 255]);
        assert!(bytes.begin());
        assert_eq!(bytes.pick(Kind::Message, 5), 2);
        assert_eq!(bytes.thread(&enabled(1)), 0, "nothing to choose");
        assert_eq!(bytes.rest.len(), 2, "and nothing taken");
        assert_eq!(bytes.thread(&enabled(8)), 7);
        assert_eq!(bytes.pick(Kind::User, 256), 255);
    }

    #[test]
    fn more_than_256_answers_take_two_bytes_the_lower_half_first() {
        let mut bytes = Bytes::new(&[0x34, 0x12, 9]);
        assert_eq!(bytes.pick(Kind::User, 1 << 16), 0x1234);
        assert_eq!(bytes.pick(Kind::User, 257), 9, "a string may end within an answer");
        assert!(bytes.rest.is_empty());
    }

    #[test]
    fn after_the_end_everything_is_tame_and_there_is_one_execution() {
        let mut bytes = Bytes::new(&[]);
        assert!(bytes.begin());
        assert_eq!((bytes.pick(Kind::Die, 2), bytes.thread(&enabled(3))), (0, 0));
        assert!(!bytes.begin());
        assert!(!bytes.begin());
    }

    #[test]
    #[should_panic(expected = "a choice among 65537: at least 1 and at most 65536")]
    fn more_answers_than_two_bytes_can_tell_apart_are_refused() {
        Bytes::new(&[]).pick(Kind::User, (1 << 16) + 1);
    }
}
