//! Shapes as people type and libraries print them, read into a [`Shape`].
//!
//! In: one text such as `234624x9216`, `M=234624,N=9216`, `[1600,16,729,72]`, `torch.Size([4, 128])`,
//! `bf16[8,128]`, `tensor<4x128xf16>`. Out: sizes, names and an element type where the text has one, or an error that
//! says what was expected and where. It finds nothing inside longer texts; reading logs belongs elsewhere.
//!
//! ```text
//! text   = [ word ] [ open ] item { sep item } [ sep ] [ close ]      brackets must match
//! item   = [ name ( "=" | ":" ) ] number | dtype                      dtype last, after an x
//! sep    = "x" | "X" | "×" | "*" | "," | ";" | blanks                  one kind in a text
//! number = digits { [ "_" | "," ] digits }                            "," only where it can't be a separator
//! ```

#[cfg(test)]
mod tests;

use super::dtype::DType;
use super::shape::Shape;
use crate::error::{Error, ErrorKind, Result};

/// Longest text that is read as a shape.
const TEXT_LIMIT_CHARS: usize = 4_000;

/// What a text said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedShape {
    /// Sizes and names.
    pub shape: Shape,
    /// The element type, where the text names one.
    pub dtype: Option<DType>,
}

/// Reads one shape.
///
/// # Errors
/// `Usage`, naming what was expected and the position (in characters, from 1); `Limit` for too many dimensions.
pub fn parse_shape(text: &str) -> Result<ParsedShape> {
    let mut cursor = Cursor::new(text)?;
    let mut dtype = cursor.prefix()?;
    let close = cursor.open();
    let commas_separate = cursor.commas_separate(close.is_some());
    let (mut dims, mut names) = (Vec::new(), Vec::new());
    loop {
        cursor.blanks();
        if cursor.at_end_or(close) && !dims.is_empty() {
            break;
        }
        if let Some(found) = cursor.trailing_dtype().filter(|_| !dims.is_empty()) {
            dtype = Some(found);
            break;
        }
        names.push(cursor.name());
        dims.push(cursor.size(dims.len() + 1, commas_separate)?);
        if !cursor.separator(close)? {
            break;
        }
    }
    cursor.finish(close)?;
    Ok(ParsedShape { shape: Shape::named(dims, names)?, dtype })
}

/// Reads strides: signed numbers separated by commas or blanks, with or without brackets.
///
/// # Errors
/// `Usage`, naming what was expected and the position (in characters, from 1).
pub fn parse_strides(text: &str) -> Result<Vec<i128>> {
    let mut cursor = Cursor::new(text)?;
    let close = cursor.open();
    let mut strides = Vec::new();
    loop {
        cursor.blanks();
        if cursor.at_end_or(close) && !strides.is_empty() {
            break;
        }
        let negative = cursor.eat('-');
        let size = i128::from(cursor.size(strides.len() + 1, true)?);
        strides.push(if negative { -size } else { size });
        if !cursor.separator(close)? {
            break;
        }
    }
    cursor.finish(close)?;
    Ok(strides)
}

/// A place in the text. Characters, not bytes, so that positions are what a person counts.
struct Cursor {
    chars: Vec<char>,
    at: usize,
}

impl Cursor {
    fn new(text: &str) -> Result<Self> {
        let chars: Vec<char> = text.chars().take(TEXT_LIMIT_CHARS + 1).collect();
        if chars.len() > TEXT_LIMIT_CHARS {
            let message = format!("a shape text of more than {TEXT_LIMIT_CHARS} characters");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(Self { chars, at: 0 })
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let hit = self.peek() == Some(wanted);
        self.at += usize::from(hit);
        hit
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn rest_from(&self, start: usize, end: usize) -> String {
        self.chars.get(start..end).map(|chars| chars.iter().collect()).unwrap_or_default()
    }

    fn expected(&self, what: &str) -> Error {
        let shown: String = self.chars.iter().take(80).collect();
        let found = self.peek().map_or_else(|| "the end".to_owned(), |found| format!("{found:?}"));
        let message = format!("expected {what} at position {}, found {found}, in {shown:?}", self.at + 1);
        Error::new(ErrorKind::Usage, message)
            .hint("write a shape as 234624x9216, M=234624,N=9216 or [1600,16,729,72]")
    }

    /// prefix = [ "shape" "=" | "torch.Size" | "Size" | "tensor" | "memref" | dtype ], before an opening bracket
    fn prefix(&mut self) -> Result<Option<DType>> {
        self.blanks();
        let open = self.chars.iter().position(|at| matches!(at, '(' | '[' | '<' | '{'));
        let Some(open) = open.filter(|&open| open > self.at) else { return Ok(None) };
        let word = self.rest_from(self.at, open);
        let word = word.trim().trim_end_matches(['=', ':', '(']).trim();
        let dtype = DType::find(word);
        let known = ["shape", "size", "torch.Size", "Size", "tensor", "memref", "dims", "global_shape"];
        if dtype.is_some() || known.contains(&word) {
            self.at = open;
            return Ok(dtype);
        }
        Err(self.expected("sizes, or a word such as torch.Size, shape or bf16 before the bracket"))
    }

    /// open = [ "(" ] ( "(" | "[" | "<" | "{" ); returns the bracket that must close it. `torch.Size([…])` opens two.
    fn open(&mut self) -> Option<[Option<char>; 2]> {
        let mut closers = [None, None];
        for slot in &mut closers {
            self.blanks();
            let close = match self.peek() {
                Some('(') => ')',
                Some('[') => ']',
                Some('<') => '>',
                Some('{') => '}',
                _ => break,
            };
            self.at += 1;
            *slot = Some(close);
        }
        closers.first().is_some_and(Option::is_some).then_some(closers)
    }

    /// A comma separates sizes inside brackets and where nothing else does; beside an `x`, or where every size has a
    /// name, it groups thousands.
    fn commas_separate(&self, bracketed: bool) -> bool {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let crosses =
            rest.windows(3).any(|three| matches!(three, [_, 'x' | 'X' | '×' | '*', _]) && is_cross(three));
        let named = rest.iter().any(|&at| at == '=' || at == ':');
        bracketed || !(crosses || named)
    }

    fn at_end_or(&self, close: Option<[Option<char>; 2]>) -> bool {
        let next = self.peek();
        next.is_none() || close.is_some_and(|closers| closers.contains(&next))
    }

    /// name = letter { letter | digit | "_" | "." } ( "=" | ":" )
    fn name(&mut self) -> Option<String> {
        let start = self.at;
        let mut end = start;
        while self.chars.get(end).is_some_and(|&at| at.is_alphanumeric() || matches!(at, '_' | '.')) {
            end += 1;
        }
        let starts_as_name = self.peek().is_some_and(|first| first.is_alphabetic() || first == '_');
        let mut after = end;
        while self.chars.get(after).is_some_and(|at| at.is_whitespace()) {
            after += 1;
        }
        if !starts_as_name || !matches!(self.chars.get(after), Some('=' | ':')) {
            return None;
        }
        self.at = after + 1;
        self.blanks();
        Some(self.rest_from(start, end))
    }

    /// number = digits { [ "_" | "," ] digits }
    fn size(&mut self, dimension: usize, commas_separate: bool) -> Result<u64> {
        if matches!(self.peek(), Some('-' | '−')) {
            return Err(self
                .expected(&format!("a size of 0 or more for dimension {dimension}"))
                .hint("a size is never negative; write the real size in place of a -1 that means 'infer'"));
        }
        let start = self.at;
        let mut value = Some(0_u64);
        while let Some(next) = self.peek() {
            if let Some(digit) = next.to_digit(10) {
                value = value.and_then(|value| value.checked_mul(10)?.checked_add(u64::from(digit)));
            } else if !self.at_digit_group(next, start, commas_separate) {
                break;
            }
            self.at += 1;
        }
        if self.at == start {
            return Err(self.expected(&format!("a size for dimension {dimension}")));
        }
        value.ok_or_else(|| {
            let message =
                format!("dimension {dimension} is {}", self.rest_from(start, self.at.min(start + 60)));
            Error::new(
                ErrorKind::Usage,
                format!("{message}, more than 64 bits hold (18,446,744,073,709,551,615)"),
            )
        })
    }

    /// True at a `_` between digits, or at a `,` before exactly three digits where commas don't separate.
    fn at_digit_group(&self, next: char, start: usize, commas_separate: bool) -> bool {
        let digit_at = |ahead| self.peek_at(ahead).is_some_and(|at| at.is_ascii_digit());
        let three = digit_at(1) && digit_at(2) && digit_at(3) && !digit_at(4);
        match next {
            '_' => self.at > start && digit_at(1),
            ',' => self.at > start && !commas_separate && three,
            _ => false,
        }
    }

    /// sep; false at the end of the list.
    fn separator(&mut self, close: Option<[Option<char>; 2]>) -> Result<bool> {
        let before = self.at;
        self.blanks();
        if self.at_end_or(close) {
            return Ok(false);
        }
        let crossed = matches!(self.peek(), Some('x' | 'X' | '×' | '*'));
        if crossed || matches!(self.peek(), Some(',' | ';')) {
            self.at += 1;
            self.blanks();
            // A comma may stand at the end, as in `(4,)`; a cross may not.
            if crossed && self.at_end_or(close) {
                return Err(self.expected("a size after the x"));
            }
            return Ok(true);
        }
        if self.at > before {
            return Ok(true);
        }
        Err(self.expected("x or , between sizes"))
    }

    /// dtype, after the last `x`, as in `4x128xbf16`.
    fn trailing_dtype(&mut self) -> Option<DType> {
        let mut end = self.at;
        while self.chars.get(end).is_some_and(|&at| at.is_alphanumeric() || matches!(at, '_' | '.')) {
            end += 1;
        }
        if !self.peek().is_some_and(char::is_alphabetic) {
            return None;
        }
        let dtype = DType::find(&self.rest_from(self.at, end))?;
        self.at = end;
        Some(dtype)
    }

    fn finish(&mut self, close: Option<[Option<char>; 2]>) -> Result<()> {
        for closer in close.into_iter().flatten().rev().flatten() {
            self.blanks();
            if !self.eat(closer) {
                return Err(self.expected(&format!("the closing {closer:?}")));
            }
        }
        self.blanks();
        // XLA prints a layout behind the sizes (`f32[8,128]{1,0}`); it orders dimensions and changes no count.
        if self.peek() == Some('{') && self.chars.last() == Some(&'}') {
            self.at = self.chars.len();
        }
        if self.peek().is_some() { Err(self.expected("the end of the shape")) } else { Ok(()) }
    }
}

/// An x between two sizes, not a letter of a name.
fn is_cross(three: &[char]) -> bool {
    let side = |at: Option<&char>| at.is_some_and(|at| at.is_ascii_digit() || at.is_whitespace());
    side(three.first()) && three.last().is_some_and(|at| at.is_alphanumeric() || at.is_whitespace())
}
