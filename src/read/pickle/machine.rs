//! The pickle machine: a stack, a memo and an arena.
//!
//! In: the bytes. Out: the arena and the outermost value. It leaves alone every opcode that is not data.

mod literal;

use std::collections::HashMap;

use self::literal::parse;
use super::opcode::{op, refused};
use crate::error::{Error, ErrorKind, Result};
use crate::read::plain::{Plain, VALUE_LIMIT, Value};

/// What stands on the stack.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Value(Value),
    Mark,
    /// `torch.jit._pickle.build_intlist`: a name that only makes the list after it a list.
    IntList,
}

/// Memo numbers up to here sit in a vector; real pickles count up from 0.
const DENSE_MEMO: usize = 1 << 20;

pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Slot>,
    /// Where marks were pushed; some may be gone by now (see `mark`).
    marks: Vec<usize>,
    dense: Vec<Option<Slot>>,
    sparse: HashMap<u32, Slot>,
    memoized: u32,
    plain: Plain<'a>,
}

/// How one step ended the run.
enum End {
    Stop,
    /// Not followed further: the sentence says why.
    Cut(String),
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Step<T> = std::result::Result<T, End>;

fn cut(what: impl Into<String>) -> End {
    End::Cut(what.into())
}

impl<'a> Machine<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            dense: Vec::new(),
            sparse: HashMap::new(),
            memoized: 0,
            plain: Plain::default(),
        }
    }

    /// Runs to the end. Says why where it had to stop before the pickle's own end.
    pub(super) fn run(&mut self) -> Result<Option<String>> {
        loop {
            let start = self.at;
            match self.step() {
                Ok(()) => {}
                Err(End::Stop) => return Ok(None),
                Err(End::Failed(error)) => return Err(error),
                Err(End::Cut(why)) => {
                    return Ok(Some(format!("{why} at byte {start} of {}", self.bytes.len())));
                }
            }
        }
    }

    /// Hands out the arena with the outermost value. Where the bytes ended early, what is still open is closed first.
    pub(super) fn finish(mut self, whole: bool) -> Result<(Plain<'a>, Option<Value>)> {
        if whole {
            self.stack.drain(..self.stack.len().saturating_sub(1));
        }
        while let Some(mark) = self.stack.iter().rposition(|slot| matches!(slot, Slot::Mark)) {
            let items = self.stack.split_off(mark + 1);
            self.stack.pop();
            self.close_open(&items)?;
        }
        if self.stack.len() > 1 {
            let items = self.stack.split_off(1);
            self.close_open(&items)?;
        }
        let root = self.stack.first().and_then(|slot| match slot {
            Slot::Value(value) => Some(*value),
            _ => None,
        });
        Ok((self.plain, root))
    }

    /// Puts the pending `items` into the container below them, which the end of the bytes left open.
    fn close_open(&mut self, items: &[Slot]) -> Result<()> {
        let Some(&Slot::Value(target)) = self.stack.last() else { return Ok(()) };
        self.plain.mark_unfinished(target);
        let mut values = items.iter().filter_map(|slot| match slot {
            Slot::Value(value) => Some(*value),
            _ => None,
        });
        match target {
            Value::List(_) => {
                let values: Vec<Value> = values.collect();
                self.plain.extend(target, values.into_iter())
            }
            Value::Dict(_) => {
                let mut last = None;
                while let Some(key) = values.next() {
                    if !matches!(key, Value::Text(_) | Value::Int(_)) {
                        // A list that was filled one by one stands before its next item, without a mark.
                        if let Some(list @ Value::List(_)) = last {
                            self.plain.extend(list, [key].into_iter())?;
                        }
                        continue;
                    }
                    let Some(value) = values.next() else { break };
                    self.plain.extend(target, [key, value].into_iter())?;
                    last = Some(value);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self) -> Step<()> {
        let opcode = self.byte()?;
        match opcode {
            op::BINGET => {
                let id = u32::from(self.byte()?);
                self.get(id)
            }
            op::LONG_BINGET => {
                let id = self.u32()?;
                self.get(id)
            }
            op::BINPUT => {
                let id = u32::from(self.byte()?);
                self.put(id)
            }
            op::LONG_BINPUT => {
                let id = self.u32()?;
                self.put(id)
            }
            op::MEMOIZE => self.put(self.memoized),
            op::MARK => self.push(Slot::Mark),
            op::STOP => Err(End::Stop),
            op::PROTO => self.byte().map(|_| ()),
            op::FRAME => self.take(8).map(|_| ()),
            op::POP => self.pop().map(|_| ()),
            op::POP_MARK => self.marked().map(|_| ()),
            op::DUP => {
                let top = self.stack.last().copied().ok_or_else(|| cut("nothing to copy"))?;
                self.push(top)
            }
            op::NONE => self.value(Value::Null),
            op::NEWTRUE => self.value(Value::Bool(true)),
            op::NEWFALSE => self.value(Value::Bool(false)),
            op::BININT | op::BININT1 | op::BININT2 | op::LONG1 | op::LONG4 | op::BINFLOAT => {
                self.binary_number(opcode)
            }
            op::INT | op::LONG | op::FLOAT => self.text_number(opcode),
            op::BINUNICODE
            | op::SHORT_BINUNICODE
            | op::BINUNICODE8
            | op::BINBYTES
            | op::SHORT_BINBYTES
            | op::BINBYTES8
            | op::BINSTRING
            | op::SHORT_BINSTRING => self.sized_text(opcode),
            op::STRING | op::UNICODE => self.line_text(),
            op::GET | op::PUT => {
                let id = parse(self.line()?).ok_or_else(|| cut("a memo number that is no number"))?;
                if opcode == op::GET { self.get(id) } else { self.put(id) }
            }
            _ => self.container(opcode),
        }
    }

    fn container(&mut self, opcode: u8) -> Step<()> {
        match opcode {
            op::EMPTY_DICT => {
                let dict = self.plain.add_dict()?;
                self.value(dict)
            }
            op::EMPTY_LIST | op::EMPTY_TUPLE | op::EMPTY_SET => {
                let list = self.plain.add_list()?;
                self.value(list)
            }
            op::SETITEMS | op::APPENDS | op::ADDITEMS => {
                let mark = self.mark()?;
                let target = mark.checked_sub(1).and_then(|below| self.stack.get(below)).copied();
                let Some(Slot::Value(target)) = target else { return Err(cut("items without a container")) };
                self.fill(target, mark + 1)?;
                self.stack.truncate(mark);
                Ok(())
            }
            op::APPEND => self.extend_below(1),
            op::SETITEM => self.extend_below(2),
            op::TUPLE1 => self.pack(1),
            op::TUPLE2 => self.pack(2),
            op::TUPLE3 => self.pack(3),
            op::TUPLE | op::LIST | op::FROZENSET | op::DICT => {
                let mark = self.mark()?;
                let target =
                    if opcode == op::DICT { self.plain.add_dict()? } else { self.plain.add_list()? };
                self.fill(target, mark + 1)?;
                self.stack.truncate(mark);
                self.value(target)
            }
            op::GLOBAL | op::STACK_GLOBAL | op::INST | op::REDUCE => self.code(opcode),
            _ => match refused(opcode) {
                Some(name) => Err(self.refuse(name, None).into()),
                None => Err(cut(format!("byte 0x{opcode:02x} is no pickle opcode"))),
            },
        }
    }

    /// Opcodes that name or call code: the one known name passes, every other is refused by its name.
    fn code(&mut self, opcode: u8) -> Step<()> {
        let (name, called) = match opcode {
            op::GLOBAL | op::INST => {
                let module = String::from_utf8_lossy(self.line()?);
                let name = String::from_utf8_lossy(self.line()?);
                (if opcode == op::GLOBAL { "GLOBAL" } else { "INST" }, format!("{module}.{name}"))
            }
            op::STACK_GLOBAL => {
                let name = self.pop()?;
                let module = self.pop()?;
                let shown = |slot| match slot {
                    Slot::Value(value) => self.plain.text(value).unwrap_or("?").to_owned(),
                    _ => "?".to_owned(),
                };
                ("STACK_GLOBAL", format!("{}.{}", shown(module), shown(name)))
            }
            _ => {
                let arguments = self.pop()?;
                let callable = self.pop()?;
                let (Slot::IntList, Slot::Value(arguments)) = (callable, arguments) else {
                    return Err(self.refuse("REDUCE", None).into());
                };
                let list = match self.plain.items(arguments) {
                    [list @ Value::List(_)] => *list,
                    _ => arguments,
                };
                return self.value(list);
            }
        };
        if called == "torch.jit._pickle.build_intlist" && opcode != op::INST {
            return self.push(Slot::IntList);
        }
        Err(self.refuse(name, Some(&called)).into())
    }

    fn refuse(&self, opcode: &str, called: Option<&str>) -> Error {
        let at = self.at;
        let what = called.map_or_else(
            || "an object that is more than data".to_owned(),
            |name| format!("`{}`", name.chars().take(200).flat_map(char::escape_debug).collect::<String>()),
        );
        Error::new(
            ErrorKind::Refused,
            format!("this pickle asks for {what} ({opcode} before byte {at}); it was refused, and nothing in the file was run"),
        )
        .hint("a flight-recorder dump holds plain data only: find out who wrote this file, and don't load it with Python")
    }

    fn byte(&mut self) -> Step<u8> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| cut("the bytes end"))?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, len: usize) -> Step<&'a [u8]> {
        let end = self.at.checked_add(len).ok_or_else(|| cut("a size beyond memory"))?;
        let taken = self.bytes.get(self.at..end).ok_or_else(|| cut("the bytes end"))?;
        self.at = end;
        Ok(taken)
    }

    fn line(&mut self) -> Step<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let len = memchr::memchr(b'\n', rest).ok_or_else(|| cut("the bytes end"))?;
        self.at += len + 1;
        Ok(rest.get(..len).unwrap_or(&[]))
    }

    fn u32(&mut self) -> Step<u32> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte)))
    }

    fn size(&mut self, width: usize) -> Step<usize> {
        let bytes = self.take(width)?;
        let size = bytes.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        usize::try_from(size).map_err(|_| cut("a size beyond memory"))
    }

    fn push(&mut self, slot: Slot) -> Step<()> {
        if self.stack.len() >= VALUE_LIMIT {
            let message = format!("the pickle stacks more than {VALUE_LIMIT} values; it was not used");
            return Err(Error::new(ErrorKind::Limit, message).into());
        }
        if matches!(slot, Slot::Mark) {
            let at = self.stack.len();
            // Notes of marks that were popped would pile up otherwise.
            while self.marks.pop_if(|note| *note >= at).is_some() {}
            self.marks.push(at);
        }
        self.stack.push(slot);
        Ok(())
    }

    fn value(&mut self, value: Value) -> Step<()> {
        self.push(Slot::Value(value))
    }

    fn pop(&mut self) -> Step<Slot> {
        self.stack.pop().ok_or_else(|| cut("nothing on the stack"))
    }

    /// Position of the topmost mark. A mark that still stands was noted after every mark below it, so the last note that
    /// holds is the topmost; notes that don't are dropped here.
    fn mark(&mut self) -> Step<usize> {
        while let Some(&mark) = self.marks.last() {
            if matches!(self.stack.get(mark), Some(Slot::Mark)) {
                return Ok(mark);
            }
            self.marks.pop();
        }
        Err(cut("no mark on the stack"))
    }

    fn marked(&mut self) -> Step<Vec<Slot>> {
        let mark = self.mark()?;
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(items)
    }

    /// Adds the stack from `from` on to `target`; a dict takes whole pairs only.
    fn fill(&mut self, target: Value, from: usize) -> Step<()> {
        let mut items = self.stack.get(from..).unwrap_or(&[]);
        if matches!(target, Value::Dict(_)) && items.len() % 2 == 1 {
            items = items.split_last().map_or(items, |(_, whole)| whole);
        }
        let values = items.iter().map(|slot| match slot {
            Slot::Value(value) => *value,
            _ => Value::Null,
        });
        self.plain.extend(target, values)?;
        Ok(())
    }

    fn extend_below(&mut self, count: usize) -> Step<()> {
        let from = self.stack.len().checked_sub(count).ok_or_else(|| cut("nothing on the stack"))?;
        let target = from.checked_sub(1).and_then(|below| self.stack.get(below)).copied();
        let Some(Slot::Value(target)) = target else { return Err(cut("an item without a container")) };
        self.fill(target, from)?;
        self.stack.truncate(from);
        Ok(())
    }

    fn pack(&mut self, count: usize) -> Step<()> {
        let from = self.stack.len().checked_sub(count).ok_or_else(|| cut("nothing on the stack"))?;
        let tuple = self.plain.add_list()?;
        self.fill(tuple, from)?;
        self.stack.truncate(from);
        self.value(tuple)
    }

    fn get(&mut self, id: u32) -> Step<()> {
        let slot = match self.dense.get(id as usize) {
            Some(slot) => *slot,
            None => self.sparse.get(&id).copied(),
        };
        let slot = slot.ok_or_else(|| cut(format!("memo {id} was never filled")))?;
        self.push(slot)
    }

    fn put(&mut self, id: u32) -> Step<()> {
        let top = self.stack.last().copied().ok_or_else(|| cut("nothing to remember"))?;
        self.memoized = self.memoized.saturating_add(1);
        let index = id as usize;
        // Grown by doubling at most, so a lone high number costs a map entry and not a megabyte.
        if index < self.dense.len()
            || (index < DENSE_MEMO && index <= self.dense.len().saturating_mul(2) + 64)
        {
            if index >= self.dense.len() {
                self.dense.resize(index + 1, None);
            }
            if let Some(slot) = self.dense.get_mut(index) {
                *slot = Some(top);
            }
        } else {
            if self.sparse.len() >= VALUE_LIMIT / 4 {
                return Err(Error::new(
                    ErrorKind::Limit,
                    "the pickle remembers too many values; it was not used",
                )
                .into());
            }
            self.sparse.insert(id, top);
        }
        Ok(())
    }
}
