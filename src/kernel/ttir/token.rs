//! The words of TTIR.
//!
//! In: text. Out: tokens with their lines; types, `dense<…>` and other bracketed matter stay one token. A character that
//! starts no token is skipped and counted.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{anychar, char, line_ending, not_line_ending, one_of};
use nom::combinator::{map, opt, recognize};
use nom::sequence::{pair, preceded};
use nom::{IResult, Parser};

/// Most tokens of one file.
const MAX_TOKENS: usize = 4_000_000;
/// Deepest `<` inside `<`.
const MAX_DEPTH: usize = 64;

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `%name`, and `%name#2`.
    Value(String, usize),
    /// `@name`.
    Symbol(String),
    /// `^name`.
    Label(String),
    /// `#name`.
    Alias(String),
    /// A word, dots included.
    Word(String),
    /// An integer.
    Int(i128),
    /// Another number.
    Number(String),
    /// A text in quotes.
    Text(String),
    /// `tensor<…>`, `!tt.ptr<…>`, `dense<…>`, `<…>`: one token.
    Angled(String),
    /// A single sign; `->` is `>`.
    Sign(char),
    /// The end of a line.
    Line,
}

/// A token and its line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its line.
    pub line: u32,
}

fn name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-')
}

fn word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// value = "%" name [ "#" digits ]
fn value(input: &str) -> IResult<&str, Kind> {
    let index = opt(preceded(char('#'), take_while1(|c: char| c.is_ascii_digit())));
    map(preceded(char('%'), pair(take_while1(name_char), index)), |(name, index): (&str, Option<&str>)| {
        Kind::Value(name.to_owned(), index.and_then(|i| i.parse().ok()).unwrap_or(0))
    })
    .parse(input)
}

/// integer = [ "-" ] ( "0x" hex | digits ), not followed by "." or a letter
fn integer(input: &str) -> IResult<&str, Kind> {
    let (rest, text) =
        recognize((opt(char('-')), take_while1(|c: char| c.is_ascii_alphanumeric()))).parse(input)?;
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |d| (true, d));
    let parsed = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    let fail = || nom::Err::Error(nom::error::Error::new(input, nom::error::ErrorKind::Digit));
    if rest.starts_with('.') {
        return Err(fail());
    }
    let value: i128 = parsed.ok_or_else(fail)?;
    Ok((rest, Kind::Int(if negative { -value } else { value })))
}

/// number = anything that starts like one and is no integer
fn number(input: &str) -> IResult<&str, Kind> {
    let body = take_while(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+'));
    let exponent = opt(recognize((one_of("-"), take_while1(|c: char| c.is_ascii_digit()))));
    map(recognize((opt(char('-')), one_of("0123456789"), body, exponent)), |t: &str| {
        Kind::Number(t.to_owned())
    })
    .parse(input)
}

/// text = '"' … '"', with backslash escapes
fn text(input: &str) -> IResult<&str, Kind> {
    let (rest, _) = char('"').parse(input)?;
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                let (body, tail) = rest.split_at(at);
                return Ok((tail.get(1..).unwrap_or(""), Kind::Text(body.to_owned())));
            }
            '\n' => break,
            _ => {}
        }
    }
    Err(nom::Err::Error(nom::error::Error::new(input, nom::error::ErrorKind::Char)))
}

/// `angled = [ "!" ] [ word ] "<" … ">" with nesting, on one line`
fn angled(input: &str) -> IResult<&str, Kind> {
    let (start, _) = (opt(one_of("!#")), take_while(word_char)).parse(input)?;
    let fail = || nom::Err::Error(nom::error::Error::new(input, nom::error::ErrorKind::Char));
    if !start.starts_with('<') {
        return Err(fail());
    }
    let head = input.len() - start.len();
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in start.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => {
                depth -= 1;
                if depth == 0 {
                    let (body, rest) = input.split_at(head + at + 1);
                    return Ok((rest, Kind::Angled(body.to_owned())));
                }
            }
            '\n' => break,
            _ => {}
        }
        if depth > MAX_DEPTH {
            break;
        }
        before = c;
    }
    Err(fail())
}

fn token(input: &str) -> IResult<&str, Kind> {
    alt((
        value,
        map(preceded(char('@'), alt((take_while1(name_char), quoted))), |n: &str| Kind::Symbol(n.to_owned())),
        map(preceded(char('^'), take_while1(name_char)), |n: &str| Kind::Label(n.to_owned())),
        angled,
        map(preceded(char('#'), take_while1(word_char)), |n: &str| Kind::Alias(n.to_owned())),
        map(tag("->"), |_| Kind::Sign('>')),
        text,
        integer,
        number,
        map(recognize(pair(opt(char('!')), take_while1(word_char))), |w: &str| Kind::Word(w.to_owned())),
        map(one_of("(){}[],:=*?"), Kind::Sign),
    ))
    .parse(input)
}

fn quoted(input: &str) -> IResult<&str, &str> {
    let (rest, kind) = text(input)?;
    let used = input.len() - rest.len();
    let _ = kind;
    Ok((rest, input.get(1..used.saturating_sub(1)).unwrap_or("")))
}

/// All tokens, and how many characters were skipped.
#[must_use]
pub fn tokens(text: &str) -> (Vec<Token>, usize) {
    let mut out = Vec::new();
    let mut skipped = 0;
    let mut line = 1u32;
    let mut rest = text;
    while !rest.is_empty() && out.len() < MAX_TOKENS {
        if let Ok((after, _)) = line_ending::<_, nom::error::Error<&str>>(rest) {
            out.push(Token { kind: Kind::Line, line });
            line = line.saturating_add(1);
            rest = after;
        } else if let Some(after) = rest.strip_prefix([' ', '\t', '\r']) {
            rest = after;
        } else if rest.starts_with("//") {
            rest = not_line_ending::<_, nom::error::Error<&str>>(rest).map_or("", |(after, _)| after);
        } else if let Ok((after, kind)) = token(rest) {
            out.push(Token { kind, line });
            rest = after;
        } else {
            skipped += 1;
            rest = anychar::<_, nom::error::Error<&str>>(rest).map_or("", |(after, _)| after);
        }
    }
    (out, skipped + rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_operation() {
        let line = "%c-1_i32 = arith.constant dense<-1> : tensor<32x1x!tt.ptr<i64>> loc(#loc1)";
        let kinds: Vec<Kind> = tokens(line).0.into_iter().map(|t| t.kind).collect();
        assert_eq!(
            kinds,
            [
                Kind::Value("c-1_i32".into(), 0),
                Kind::Sign('='),
                Kind::Word("arith.constant".into()),
                Kind::Angled("dense<-1>".into()),
                Kind::Sign(':'),
                Kind::Angled("tensor<32x1x!tt.ptr<i64>>".into()),
                Kind::Word("loc".into()),
                Kind::Sign('('),
                Kind::Alias("loc1".into()),
                Kind::Sign(')'),
            ]
        );
    }

    #[test]
    fn results_numbers_and_properties() {
        let kinds: Vec<Kind> =
            tokens("%65#1 -2147483648 2.0e-3 <{axis = 0 : i32}>").0.into_iter().map(|t| t.kind).collect();
        assert_eq!(kinds[0], Kind::Value("65".into(), 1));
        assert_eq!(kinds[1], Kind::Int(-2_147_483_648));
        assert_eq!(kinds[2], Kind::Number("2.0e-3".into()));
        assert_eq!(kinds[3], Kind::Angled("<{axis = 0 : i32}>".into()));
    }

    #[test]
    fn garbage_is_skipped_and_counted() {
        let (tokens, skipped) = tokens("\u{0}\u{1}~~ %x <<<<<");
        assert_eq!(tokens.len(), 1);
        assert_eq!(skipped, 9);
    }
}
