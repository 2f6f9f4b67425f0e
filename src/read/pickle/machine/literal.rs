//! Numbers and texts as a pickle writes them.
//!
//! In: an opcode and the machine at the bytes after it. Out: a value on its stack. It leaves containers alone.

use std::borrow::Cow;

use super::{Machine, Step, cut};
use crate::read::pickle::opcode::op;
use crate::read::plain::Value;

impl<'a> Machine<'a> {
    pub(super) fn binary_number(&mut self, opcode: u8) -> Step<()> {
        let value = match opcode {
            op::BININT1 => Value::Int(i64::from(self.byte()?)),
            op::BININT2 => {
                let bytes = self.take(2)?;
                Value::Int(bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | i64::from(byte)))
            }
            op::BININT => Value::Int(i64::from(self.u32()?.cast_signed())),
            op::BINFLOAT => {
                let bytes = self.take(8)?;
                Value::Float(f64::from_bits(bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))))
            }
            _ => {
                let width = if opcode == op::LONG1 { 1 } else { 4 };
                let len = self.size(width)?;
                long(self.take(len)?)
            }
        };
        self.value(value)
    }

    pub(super) fn text_number(&mut self, opcode: u8) -> Step<()> {
        let line = self.line()?;
        let line = if opcode == op::LONG { line.strip_suffix(b"L").unwrap_or(line) } else { line };
        let value = match (opcode, line) {
            (op::INT, b"00") => Value::Bool(false),
            (op::INT, b"01") => Value::Bool(true),
            (op::FLOAT, line) => Value::Float(parse(line).ok_or_else(|| cut("a float that is no number"))?),
            (_, line) => parse(line)
                .map(Value::Int)
                .or_else(|| parse(line).map(Value::Float))
                .ok_or_else(|| cut("an integer that is no number"))?,
        };
        self.value(value)
    }

    pub(super) fn sized_text(&mut self, opcode: u8) -> Step<()> {
        let width = match opcode {
            op::SHORT_BINUNICODE | op::SHORT_BINBYTES | op::SHORT_BINSTRING => 1,
            op::BINUNICODE8 | op::BINBYTES8 => 8,
            _ => 4,
        };
        let len = self.size(width)?;
        let bytes = self.take(len)?;
        let text = self.plain.add_text(String::from_utf8_lossy(bytes))?;
        self.value(text)
    }

    /// `STRING` and `UNICODE` of protocol 0. Quotes go; escapes stay as written, no dump needs them undone.
    pub(super) fn line_text(&mut self) -> Step<()> {
        let line = self.line()?;
        let text = match line {
            [quote @ (b'\'' | b'"'), inner @ .., last] if quote == last => inner,
            line => line,
        };
        let text: Cow<'a, str> = String::from_utf8_lossy(text);
        let text = self.plain.add_text(text)?;
        self.value(text)
    }
}

/// A little-endian two's complement integer; beyond 64 bits as the nearest float.
fn long(bytes: &[u8]) -> Value {
    let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
    let significant =
        bytes.iter().rposition(|&byte| byte != if negative { 0xff } else { 0 }).map_or(0, |last| last + 1);
    if significant <= 8 {
        let fill = if negative { -1i128 } else { 0 };
        let number = bytes.iter().take(9).rev().fold(fill, |sum, &byte| sum << 8 | i128::from(byte));
        if let Ok(number) = i64::try_from(number) {
            return Value::Int(number);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "only the order of magnitude of such a number is of use")]
    let size = 2f64.powf(significant.min(200) as f64 * 8.0);
    Value::Float(if negative { -size } else { size })
}

pub(super) fn parse<T: std::str::FromStr>(line: &[u8]) -> Option<T> {
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}
