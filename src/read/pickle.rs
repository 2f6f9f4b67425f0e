//! Python pickles as data: an allow-list decoder that runs nothing.
//!
//! In: bytes of a pickle, protocols 0 to 5. Out: [`Pickle`]: its values ([`Plain`]), and where it stopped if the bytes end
//! early or hold something that no pickle holds. It leaves alone what the values mean.
//!
//! Dicts, lists, tuples, sets, texts, numbers, booleans and `None` are data. An opcode that names or calls code is refused
//! with that name; `torch.jit._pickle.build_intlist` alone is known, and is read as the list that it wraps. Refusing means
//! that the decoder stops: nothing is looked up, imported or called.
//!
//! Bounds: time is linear in the bytes; values, nesting and shared parts are capped (see [`crate::read::plain`]).

mod machine;
mod opcode;

use crate::error::{Error, ErrorKind, Result};
use crate::read::plain::{Plain, Value};

/// A decoded pickle.
#[derive(Debug)]
pub struct Pickle<'a> {
    /// The values.
    pub plain: Plain<'a>,
    /// The outermost value.
    pub root: Value,
    /// Why decoding ended before the pickle did; `None` for a whole pickle. What was complete by then is kept, and the
    /// containers that were still open are marked ([`Plain::is_unfinished`]).
    pub stopped: Option<String>,
}

/// Decodes a pickle.
///
/// # Errors
/// [`ErrorKind::Refused`] where it names or calls code, [`ErrorKind::Limit`] past a bound, [`ErrorKind::Format`] for a cycle
/// or where nothing could be decoded.
pub fn decode(bytes: &[u8]) -> Result<Pickle<'_>> {
    let mut machine = machine::Machine::new(bytes);
    let stopped = machine.run()?;
    let (plain, root) = machine.finish(stopped.is_none())?;
    let Some(root) = root else {
        let why = stopped.unwrap_or_else(|| "it is empty".to_owned());
        return Err(Error::new(ErrorKind::Format, format!("no value in this pickle: {why}")));
    };
    plain.check(root)?;
    Ok(Pickle { plain, root, stopped })
}

/// True where `bytes` begin like a pickle, a hostile one included: a protocol mark with a known opcode after it, or the
/// textual head of an old protocol.
#[must_use]
pub fn looks_like_pickle(bytes: &[u8]) -> bool {
    match bytes {
        [0x80, 0..=5, next, ..] => opcode::is_known(*next),
        [b'(', b'd' | b'l' | b't', b'p' | b'0'..=b'9', ..] | [b'}' | b']', b'q', _, b'(', ..] => true,
        [b'c', rest @ ..] => {
            let mut lines = rest.get(..rest.len().min(400)).unwrap_or(rest).split(|&byte| byte == b'\n');
            let mut name = || lines.next().is_some_and(is_dotted_name);
            name() && name() && lines.next().is_some()
        }
        _ => false,
    }
}

fn is_dotted_name(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

#[cfg(test)]
mod tests;
