//! Where the functions of a source file are, as ranges of bytes.
//!
//! The scan reads tokens, not syntax: `fn NAME .. { .. }` is a function wherever an item may be. It
//! skips the bodies of functions. It also skips the arguments of macros, since it does not know
//! what a macro makes of them.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::ops::Range;

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its body, with the braces.
    pub body: Range<usize>,
    /// Whether two bodies can stand side by side in it, and why not if they cannot.
    pub choice: Result<(), &'static str>,
}

/// Why a `const fn` cannot choose.
pub const IS_CONST: &str = "it changes a `const fn`";
const IS_OPAQUE: &str = "it changes a function that returns `impl Trait`";

/// The tokens of `text`.
pub fn tokens(text: &str) -> Result<TokenStream, String> {
    text.parse::<TokenStream>().map_err(|error| format!("its tokens cannot be read: {error}"))
}

/// The outermost functions, in order.
pub fn functions(tokens: TokenStream) -> Vec<Function> {
    let mut found = Vec::new();
    scan(tokens, &mut found);
    found
}

fn scan(tokens: TokenStream, found: &mut Vec<Function>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        if is_word(&trees[at], "fn")
            && let Some((function, end)) = function(&trees, at)
        {
            found.extend(function);
            at = end;
        } else {
            if let TokenTree::Group(group) = &trees[at]
                && !is_of_macro(&trees[..at])
            {
                scan(group.stream(), found);
            }
            at += 1;
        }
    }
}

/// The function whose `fn` is at `at`, if it has a body, and the place behind it. None if this is
/// the type of a function pointer.
pub fn function(trees: &[TokenTree], at: usize) -> Option<(Option<Function>, usize)> {
    let TokenTree::Ident(_) = trees.get(at + 1)? else { return None };
    let (mut depth, mut opaque, mut returns) = (0_i32, false, false);
    for (end, tree) in trees.iter().enumerate().skip(at + 2) {
        match tree {
            TokenTree::Punct(punct) => match punct.as_char() {
                ';' if depth == 0 => return Some((None, end + 1)),
                '<' => depth += 1,
                '>' if is_punct(&trees[end - 1], '-') => returns = true,
                '>' => depth -= 1,
                _ => {}
            },
            TokenTree::Ident(word) if word == "where" => returns = false,
            TokenTree::Ident(word) => opaque |= returns && word == "impl",
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && depth == 0 => {
                let choice = match (is_const(&trees[..at]), opaque) {
                    (true, _) => Err(IS_CONST),
                    (_, true) => Err(IS_OPAQUE),
                    _ => Ok(()),
                };
                return Some((Some(Function { body: range(group), choice }), end + 1));
            }
            TokenTree::Group(group) => opaque |= returns && has_word(group.stream(), "impl"),
            TokenTree::Literal(_) => {}
        }
    }
    Some((None, trees.len()))
}

/// Whether the qualifiers of a function, at the end of `before`, contain `const`.
fn is_const(before: &[TokenTree]) -> bool {
    let qualifiers = ["unsafe", "extern", "async", "safe", "default"];
    for tree in before.iter().rev() {
        match tree {
            TokenTree::Ident(word) if word == "const" => return true,
            TokenTree::Ident(word) if qualifiers.iter().any(|qualifier| word == qualifier) => {}
            // The ABI.
            TokenTree::Literal(_) => {}
            _ => return false,
        }
    }
    false
}

/// Whether a group behind `before` holds the arguments of a macro: `NAME!` or `macro_rules! NAME`.
pub fn is_of_macro(before: &[TokenTree]) -> bool {
    match before {
        [.., TokenTree::Ident(_), bang] if is_punct(bang, '!') => true,
        [.., TokenTree::Ident(_), bang, TokenTree::Ident(_)] => is_punct(bang, '!'),
        _ => false,
    }
}

/// Whether `tree` is this word.
pub fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == word)
}

/// Whether `tree` is this character.
pub fn is_punct(tree: &TokenTree, character: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|tree| match &tree {
        TokenTree::Group(group) => has_word(group.stream(), word),
        _ => is_word(&tree, word),
    })
}

fn range(group: &Group) -> Range<usize> {
    group.span_open().byte_range().start..group.span_close().byte_range().end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, bool)> {
        let functions = functions(tokens(text).unwrap());
        functions.into_iter().map(|function| (&text[function.body], function.choice.is_ok())).collect()
    }

    #[test]
    fn functions_and_methods_are_found_in_all_kinds_of_blocks() {
        let text = "/// é: more bytes than characters\nfn a() -> u8 { 1 }\nimpl<T> X<{ N }> for Y where T: Z { \
                    pub(crate) unsafe extern \"C\" fn b<const M: usize>(x: [u8; { M }]) -> Foo<{ M }> where T: Q { { 2 } } }\n\
                    mod m { trait T { fn none(); fn c(&self) { fn inner() {} } } }";
        assert_eq!(found(text), [("{ 1 }", true), ("{ { 2 } }", true), ("{ fn inner() {} }", true)]);
    }

    #[test]
    fn pointers_to_functions_and_what_macros_get_are_left_alone() {
        let text = "struct S { f: fn(u8) -> u8 }\nconst_fn! { pub fn new() -> Self { 1 } }\n\
                    macro_rules! m { () => { fn x() {} } }\nfn y(f: impl Fn(fn() -> u8)) { 2 }";
        assert_eq!(found(text), [("{ 2 }", true)]);
    }

    #[test]
    fn a_const_fn_and_one_with_an_opaque_type_cannot_choose() {
        let text = "pub const unsafe fn a() { 1 }\nconst X: u8 = 1; fn b() { 2 }\nfn c() -> impl Fn() { 3 }\n\
                    fn d() -> Option<(impl Fn(), u8)> { 4 }\nfn e<T>() -> u8 where X: Y { 5 }";
        let expected =
            [("{ 1 }", false), ("{ 2 }", true), ("{ 3 }", false), ("{ 4 }", false), ("{ 5 }", true)];
        assert_eq!(found(text), expected);
    }
}
