//! PTX text → statements.
//!
//! In: text. Out: one statement after another: a directive, an instruction, a label, a brace. Comments are skipped;
//! nothing is copied.

use nom::bytes::complete::{tag, take_until, take_while};
use nom::character::complete::{multispace0, not_line_ending};
use nom::multi::fold_many0;
use nom::{IResult, Parser, branch::alt};

/// A statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement<'t> {
    /// Up to `;`, or a directive that ends with its line: `.loc`, `.file`, `.version`.
    Text(&'t str),
    /// `name:`.
    Label(&'t str),
    /// What stands before an opening brace, which may be nothing.
    Open(&'t str),
    /// A closing brace.
    Close,
}

/// blank = { white space | "//" … line end | "/*" … "*/" }
fn blank(input: &str) -> IResult<&str, ()> {
    let line = (tag("//"), not_line_ending);
    let block = (tag("/*"), take_until("*/"), tag("*/"));
    let (rest, ()) = multispace0.map(|_| ()).parse(input)?;
    fold_many0((alt((line.map(|_| ()), block.map(|_| ()))), multispace0), || (), |(), _| ()).parse(rest)
}

/// Walks statements with their lines.
#[derive(Debug)]
pub struct Scanner<'t> {
    rest: &'t str,
    line: u32,
}

impl<'t> Scanner<'t> {
    /// From the start of a text.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        Self { rest: text, line: 1 }
    }

    fn advance(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line = self
            .line
            .saturating_add(u32::try_from(memchr::memchr_iter(b'\n', taken.as_bytes()).count()).unwrap_or(0));
        self.rest = rest;
        taken
    }

    /// A word that ends at the end of its line.
    fn line_directive(text: &str) -> bool {
        [".loc", ".file", ".version", ".target", ".address_size", ".section", ".pragma"]
            .iter()
            .any(|word| text.strip_prefix(word).is_some_and(|after| after.starts_with([' ', '\t'])))
    }
}

impl<'t> Iterator for Scanner<'t> {
    type Item = (Statement<'t>, u32);

    fn next(&mut self) -> Option<Self::Item> {
        let after = blank(self.rest).map_or(self.rest, |(after, ())| after);
        self.advance(self.rest.len() - after.len());
        if self.rest.is_empty() {
            return None;
        }
        let line = self.line;
        if self.rest.starts_with('}') {
            self.advance(1);
            return Some((Statement::Close, line));
        }
        if Self::line_directive(self.rest) {
            let end = memchr::memchr2(b'\n', b'{', self.rest.as_bytes()).unwrap_or(self.rest.len());
            let text = self.advance(end);
            if self.rest.starts_with('{') {
                self.advance(1);
                return Some((Statement::Open(text), line));
            }
            return Some((Statement::Text(text.trim_end_matches(';')), line));
        }
        // A label is a word with a colon right after it.
        let word: IResult<&str, &str> =
            take_while(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '%')).parse(self.rest);
        if let Ok((tail, word)) = word
            && !word.is_empty()
            && tail.trim_start_matches([' ', '\t']).starts_with(':')
            && !tail.trim_start_matches([' ', '\t']).starts_with("::")
        {
            let colon = self.rest.find(':').unwrap_or(0);
            self.advance(colon + 1);
            return Some((Statement::Label(word), line));
        }
        let mut from = 0;
        loop {
            let bytes = self.rest.as_bytes().get(from..).unwrap_or(&[]);
            let Some(found) = bytes.iter().position(|b| matches!(b, b';' | b'{' | b'}')) else {
                let text = self.advance(self.rest.len());
                return Some((Statement::Text(text), line));
            };
            let at = from + found;
            match self.rest.as_bytes().get(at) {
                Some(b';') => {
                    let text = self.advance(at);
                    self.advance(1);
                    return Some((Statement::Text(text), line));
                }
                // `{%r1, %r2}` and `= {1, 2}` are operands, a brace after anything else opens a block.
                Some(b'{') if operand_brace(self.rest, at) => {
                    match memchr::memchr(b'}', self.rest.as_bytes().get(at..).unwrap_or(&[])) {
                        Some(close) => from = at + close + 1,
                        None => {
                            let text = self.advance(self.rest.len());
                            return Some((Statement::Text(text), line));
                        }
                    }
                }
                Some(b'{') => {
                    let text = self.advance(at);
                    self.advance(1);
                    return Some((Statement::Open(text), line));
                }
                _ => {
                    let text = self.advance(at);
                    return Some((Statement::Text(text), line));
                }
            }
        }
    }
}

/// Whether a brace starts a list: something of an instruction or an initialiser stands before it, no header.
fn operand_brace(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("").trim_end();
    !before.is_empty()
        && !before.starts_with(".section")
        && (before.ends_with([',', '=', '(']) || is_instruction(before))
}

fn is_instruction(before: &str) -> bool {
    let start = before.trim_start();
    !start.starts_with('.') && start.starts_with(|c: char| c.is_ascii_lowercase() || c == '@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_a_body() {
        let text = "$L__BB0_2: // loop\n\t.loc\t1 12 3 // x.cu:12:3\n\tst.v4.b32 [ %rd1 + 0 ], { %r1, %r2 };\n\t{ // callseq\n} /* ; */ ret;";
        let all: Vec<_> = Scanner::new(text).collect();
        assert_eq!(
            all,
            [
                (Statement::Label("$L__BB0_2"), 1),
                (Statement::Text(".loc\t1 12 3 // x.cu:12:3"), 2),
                (Statement::Text("st.v4.b32 [ %rd1 + 0 ], { %r1, %r2 }"), 3),
                (Statement::Open(""), 4),
                (Statement::Close, 5),
                (Statement::Text("ret"), 5),
            ]
        );
    }

    #[test]
    fn cut_text_ends() {
        assert_eq!(Scanner::new("mov.b32 %r1, {").count(), 1);
        assert_eq!(Scanner::new("/* never closed").count(), 1);
        assert_eq!(Scanner::new("").count(), 0);
    }
}
