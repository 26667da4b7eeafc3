//! The source of a crate in one piece, with its own macros expanded, which `cbindgen` does not do.
//!
//! It expands what the C face uses: macros of one arm, whose parameters are attributes at the start
//! and fragments that end at the next token of the pattern. The doc comments that a macro makes are
//! filled to the width of the header. A line break in one stays.

use anyhow::{Context, bail, ensure};
use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The most characters of a line of a doc comment.
const WIDTH: usize = 96;

type Tokens = Vec<TokenTree>;

/// The pattern and the body of each macro.
#[derive(Default)]
pub struct Expander(BTreeMap<String, (Tokens, Tokens)>);

impl Expander {
    /// The items of the file `name` of `dir`, with those of its modules in their places.
    /// `cbindgen` would put the functions of an inner module behind those of the outer one.
    pub fn file(&mut self, dir: &Path, name: &str) -> anyhow::Result<TokenStream> {
        let path = dir.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let tokens = text.parse::<TokenStream>().map_err(|error| anyhow::anyhow!("{error}"));
        self.items(tokens.with_context(|| path.display().to_string())?, dir)
    }

    fn items(&mut self, tokens: TokenStream, dir: &Path) -> anyhow::Result<TokenStream> {
        let tokens: Tokens = tokens.into_iter().collect();
        let mut out = Tokens::new();
        let mut rest = tokens.as_slice();
        loop {
            rest = match rest {
                [] => return Ok(out.into_iter().collect()),
                [word, mark, name, TokenTree::Group(arms), rest @ ..]
                    if is(word, "macro_rules") && is(mark, "!") =>
                {
                    self.define(&name.to_string(), arms.stream()).with_context(|| name.to_string())?;
                    drop_attributes(&mut out);
                    rest
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), end, rest @ ..]
                    if word == "mod" && is(end, ";") =>
                {
                    let (file, inner) = (format!("{name}.rs"), dir.join(name.to_string()));
                    let items = if dir.join(&file).exists() {
                        self.file(dir, &file)?
                    } else {
                        self.file(&inner, "mod.rs")?
                    };
                    drop_attributes(&mut out);
                    out.extend(items);
                    rest
                }
                [word, TokenTree::Ident(_), TokenTree::Group(inner), rest @ ..] if is(word, "mod") => {
                    drop_attributes(&mut out);
                    out.extend(self.items(inner.stream(), dir)?);
                    rest
                }
                [first, mark, TokenTree::Group(_), rest @ ..] if is(first, "#") && is(mark, "!") => rest,
                [TokenTree::Ident(name), mark, TokenTree::Group(call), rest @ ..]
                    if is(mark, "!") && self.0.contains_key(&name.to_string()) =>
                {
                    let expansion = self.expand(&name.to_string(), call.stream())?;
                    out.extend(self.items(filled(expansion)?, dir)?);
                    rest
                }
                [TokenTree::Group(group), rest @ ..] => {
                    let inner = self.items(group.stream(), dir)?;
                    out.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
                    rest
                }
                [token, rest @ ..] => {
                    out.extend([token.clone()]);
                    rest
                }
            }
        }
    }

    fn define(&mut self, name: &str, arms: TokenStream) -> anyhow::Result<()> {
        let arms: Tokens = arms.into_iter().collect();
        let [TokenTree::Group(pattern), _, _, TokenTree::Group(body), _] = arms.as_slice() else {
            bail!("a macro has one arm here, with a `;` at its end");
        };
        let of = |group: &Group| group.stream().into_iter().collect();
        self.0.insert(name.to_owned(), (of(pattern), of(body)));
        Ok(())
    }

    fn expand(&self, name: &str, call: TokenStream) -> anyhow::Result<TokenStream> {
        let (pattern, body) = &self.0[name];
        let call: Tokens = call.into_iter().collect();
        let mut bound = BTreeMap::new();
        bind(pattern, &call, &mut bound).with_context(|| format!("`{name}!` does not take this"))?;
        Ok(with(body, &bound))
    }
}

/// Drops the attributes at the end, which are those of something that is not written.
fn drop_attributes(out: &mut Tokens) {
    while let [.., mark, TokenTree::Group(_)] = out.as_slice()
        && is(mark, "#")
    {
        out.truncate(out.len() - 2);
    }
}

/// What stands for each parameter. The attributes have no name.
type Bound = BTreeMap<String, TokenStream>;

fn is(token: &TokenTree, text: &str) -> bool {
    token.to_string() == text
}

/// Finds the parameters of `pattern` in `call`.
fn bind(mut pattern: &[TokenTree], mut call: &[TokenTree], bound: &mut Bound) -> anyhow::Result<()> {
    while let [first, after @ ..] = pattern {
        match after {
            [TokenTree::Group(_), _, after @ ..] if is(first, "$") => {
                let mut attributes = TokenStream::new();
                while let [mark, attribute, rest @ ..] = call
                    && is(mark, "#")
                {
                    attributes.extend([mark.clone(), attribute.clone()]);
                    call = rest;
                }
                bound.insert(String::new(), attributes);
                pattern = after;
            }
            [name, _, _, after @ ..] if is(first, "$") => {
                let mut depth = 0;
                let end = call.iter().position(|token| {
                    depth += i32::from(is(token, "<")) - i32::from(is(token, ">"));
                    depth == 0 && after.first().is_some_and(|next| same(token, next))
                });
                let (fragment, rest) = call.split_at(end.unwrap_or(call.len()));
                ensure!(!fragment.is_empty(), "there is nothing for `${name}`");
                bound.insert(name.to_string(), fragment.iter().cloned().collect());
                (pattern, call) = (after, rest);
            }
            _ => {
                let [token, rest @ ..] = call else { bail!("`{first}` is missing") };
                ensure!(same(token, first), "`{token}` stands for `{first}`");
                if let (TokenTree::Group(inner), TokenTree::Group(given)) = (first, token) {
                    let of = |group: &Group| group.stream().into_iter().collect::<Tokens>();
                    bind(&of(inner), &of(given), bound)?;
                }
                (pattern, call) = (after, rest);
            }
        }
    }
    ensure!(call.is_empty(), "there is more than the pattern");
    Ok(())
}

/// Whether the tokens are the same, or groups of the same kind.
fn same(a: &TokenTree, b: &TokenTree) -> bool {
    match (a, b) {
        (TokenTree::Group(a), TokenTree::Group(b)) => a.delimiter() == b.delimiter(),
        _ => a.to_string() == b.to_string(),
    }
}

/// The body with what stands for the parameters.
fn with(body: &[TokenTree], bound: &Bound) -> TokenStream {
    let mut out = TokenStream::new();
    let mut rest = body;
    loop {
        rest = match rest {
            [] => return out,
            [mark, TokenTree::Group(_), _, rest @ ..] if is(mark, "$") => {
                out.extend(bound[""].clone());
                rest
            }
            [mark, name, rest @ ..] if is(mark, "$") => {
                out.extend(bound[&name.to_string()].clone());
                rest
            }
            [TokenTree::Group(group), rest @ ..] => {
                let inner: Tokens = group.stream().into_iter().collect();
                out.extend([TokenTree::Group(Group::new(group.delimiter(), with(&inner, bound)))]);
                rest
            }
            [token, rest @ ..] => {
                out.extend([token.clone()]);
                rest
            }
        }
    }
}

/// The attribute `name = "text"`.
fn attribute(name: &str, text: &str) -> [TokenTree; 2] {
    let name = TokenTree::Ident(Ident::new(name, Span::call_site()));
    let mark = |mark| TokenTree::Punct(Punct::new(mark, Spacing::Alone));
    let inner = [name, mark('='), TokenTree::Literal(Literal::string(text))].into_iter().collect();
    [mark('#'), TokenTree::Group(Group::new(Delimiter::Bracket, inner))]
}

/// Writes out the texts of the attributes, and fills the doc comments.
fn filled(tokens: TokenStream) -> anyhow::Result<TokenStream> {
    let tokens: Tokens = tokens.into_iter().collect();
    let (mut out, mut doc) = (TokenStream::new(), Vec::new());
    let mut rest = tokens.as_slice();
    while let [first, after @ ..] = rest {
        let inner = match after {
            [TokenTree::Group(group), ..] if is(first, "#") => group.stream().into_iter().collect(),
            _ => Tokens::new(),
        };
        if let [name, _, value @ ..] = inner.as_slice()
            && is(name, "doc")
        {
            doc.push(text(value)?);
            rest = &after[1..];
            continue;
        }
        for line in lines(&doc) {
            out.extend(attribute("doc", &line));
        }
        doc.clear();
        rest = after;
        if let [word, TokenTree::Group(group)] = inner.as_slice()
            && is(word, "unsafe")
        {
            let inner: Tokens = group.stream().into_iter().collect();
            if let [name, _, value @ ..] = inner.as_slice() {
                out.extend(attribute(&name.to_string(), &text(value)?));
                rest = &after[1..];
                continue;
            }
        }
        out.extend([match first {
            TokenTree::Group(group) => {
                TokenTree::Group(Group::new(group.delimiter(), filled(group.stream())?))
            }
            token => token.clone(),
        }]);
    }
    Ok(out)
}

/// What a literal, `stringify!` or `concat!` of these says.
fn text(value: &[TokenTree]) -> anyhow::Result<String> {
    match value {
        [TokenTree::Literal(literal)] => {
            let text = literal.to_string();
            let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            let text = text.with_context(|| format!("{literal} is no plain text"))?;
            // A line of the source that goes on.
            let mut parts = text.split("\\\n");
            let first = parts.next().into_iter();
            let text = first.chain(parts.map(str::trim_start)).collect::<String>();
            let escapes = [("\\n", "\n"), ("\\\"", "\""), ("\\'", "'"), ("\\\\", "\\")];
            Ok(escapes.into_iter().fold(text, |text, (from, to)| text.replace(from, to)))
        }
        [name, _, TokenTree::Group(of)] if is(name, "stringify") => Ok(of.stream().to_string()),
        [name, _, TokenTree::Group(of)] if is(name, "concat") => {
            let of: Tokens = of.stream().into_iter().collect();
            of.split(|token| is(token, ",")).map(text).collect()
        }
        _ => bail!("an attribute has no text"),
    }
}

/// The lines of a doc comment, filled.
fn lines(doc: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let end = |line: &mut String, lines: &mut Vec<String>| {
        if !line.is_empty() {
            lines.push(std::mem::take(line));
        }
    };
    for text in doc {
        for (nth, part) in text.split('\n').enumerate() {
            let is_row = part.trim_start().starts_with('|');
            if nth > 0 || is_row || part.trim().is_empty() {
                end(&mut line, &mut lines);
            }
            if is_row || part.trim().is_empty() {
                lines.push(part.to_owned());
                continue;
            }
            for word in part.split_whitespace() {
                if !line.is_empty() && line.len() + 1 + word.len() > WIDTH + 1 {
                    end(&mut line, &mut lines);
                }
                line.push(' ');
                line.push_str(word);
            }
        }
    }
    end(&mut line, &mut lines);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(source: &str) -> anyhow::Result<String> {
        let tokens = source.parse::<TokenStream>().unwrap();
        Expander::default().items(tokens, Path::new("")).map(|tokens| tokens.to_string())
    }

    const MACRO: &str = r#"macro_rules! lock { ($(#[$about:meta])* $name:ident { $of:ty }, $more:literal) => {
        $(#[$about])* pub struct $name { _of: $of }
        #[doc = concat!(" As ", stringify!($name), $more)]
        #[unsafe(export_name = concat!(stringify!($name), "_lock"))] pub fn lock() {}
    }; }"#;

    #[test]
    fn a_macro_is_expanded_and_its_texts_are_written_out() {
        let call = "lock! { /// First.\n it { Of<u8, u16> }, \" more.\" } struct Other;";
        let expected = r#"#[doc = " First."] pub struct it { _of: Of<u8, u16> }
            #[doc = " As it more."] #[export_name = "it_lock"] pub fn lock() {} struct Other;"#;
        let expected = expected.parse::<TokenStream>().unwrap().to_string();
        assert_eq!(expanded(&format!("{MACRO} {call}")).unwrap(), expected);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let error = |call: &str| format!("{:#}", expanded(&format!("{MACRO} {call}")).unwrap_err());
        assert_eq!(error("lock! { it { u8 } }"), "`lock!` does not take this: `,` is missing");
        assert!(error("lock! { it { u8 }; \"\" }").contains("`;` stands for `,`"));
        assert!(
            format!("{:#}", expanded("macro_rules! two { () => {}; () => {}; }").unwrap_err())
                .contains("one arm")
        );
    }

    #[test]
    fn doc_comments_are_filled_but_for_rows_and_line_breaks() {
        let long = format!(" {}", "word ".repeat(20));
        let doc = [long, " end.\n new".to_owned(), String::new(), " | row |".to_owned()];
        let words = format!("{} word", " word".repeat(18));
        assert_eq!(lines(&doc), [words.as_str(), " word end.", " new", "", " | row |"]);
    }
}
