//! Plain data out of a self-describing file: what a pickle or a JSON text holds once it is decoded.
//!
//! In: pushes from a decoder. Out: [`Plain`], an arena of values whose lists and dicts may be shared, and the checks that
//! make it safe to walk (`Plain::check`). It leaves alone what the values mean.
//!
//! Values are 16 bytes and refer to texts and containers by number, so a value that a file mentions ten thousand times
//! exists once.

use std::borrow::Cow;

use crate::error::{Error, ErrorKind, Result};

/// Most values that one file may make: 256 MiB of them. A flight-recorder dump of 2,000 entries makes about 120,000.
pub const VALUE_LIMIT: usize = 1 << 24;

/// Deepest nesting. A flight-recorder dump has five levels, an RAS answer six.
pub const DEPTH_LIMIT: u32 = 64;

/// Most values that a walk without memory of shared parts would visit.
pub const UNFOLDED_LIMIT: u64 = 1 << 28;

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// `None`, `null`.
    Null,
    /// `True`, `False`.
    Bool(bool),
    /// An integer that fits 64 bits.
    Int(i64),
    /// A float, or an integer beyond 64 bits.
    Float(f64),
    /// A text: see [`Plain::text`].
    Text(u32),
    /// A list, tuple or set: see [`Plain::items`].
    List(u32),
    /// A dict: see [`Plain::pairs`].
    Dict(u32),
}

#[derive(Debug, Clone, Copy, Default)]
struct Container {
    start: usize,
    len: usize,
    capacity: usize,
    unfinished: bool,
}

/// Decoded values. `'a` is the file's bytes: texts that need no change are borrowed.
#[derive(Debug, Default)]
pub struct Plain<'a> {
    texts: Vec<Cow<'a, str>>,
    containers: Vec<Container>,
    pool: Vec<Value>,
}

impl<'a> Plain<'a> {
    /// Number of texts; text numbers are below it.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.texts.len()
    }

    /// The text of a [`Value::Text`].
    #[must_use]
    pub fn text(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(id) => self.texts.get(id as usize).map(AsRef::as_ref),
            _ => None,
        }
    }

    /// The values of a list, or the keys and values in turn of a dict; empty for anything else.
    #[must_use]
    pub fn items(&self, value: Value) -> &[Value] {
        let (Value::List(id) | Value::Dict(id)) = value else { return &[] };
        let Some(container) = self.containers.get(id as usize) else { return &[] };
        self.pool.get(container.start..container.start + container.len).unwrap_or(&[])
    }

    /// The pairs of a dict, in the order in which the file sets them; empty for anything else.
    pub fn pairs(&self, value: Value) -> impl Iterator<Item = (Value, Value)> + '_ {
        let items = if matches!(value, Value::Dict(_)) { self.items(value) } else { &[] };
        items.as_chunks::<2>().0.iter().map(|&[key, value]| (key, value))
    }

    /// The last value that a dict holds under `key`.
    #[must_use]
    pub fn get(&self, dict: Value, key: &str) -> Option<Value> {
        let mut found = None;
        for (name, value) in self.pairs(dict) {
            if self.text(name) == Some(key) {
                found = Some(value);
            }
        }
        found
    }

    /// True for a container that the file's end cut: what it holds is a beginning.
    #[must_use]
    pub fn is_unfinished(&self, value: Value) -> bool {
        let (Value::List(id) | Value::Dict(id)) = value else { return false };
        self.containers.get(id as usize).is_some_and(|container| container.unfinished)
    }

    /// An integer, also where the file wrote it as text (`"7"`), float or bool.
    #[must_use]
    pub fn integer(&self, value: Value) -> Option<i64> {
        match value {
            Value::Int(number) => Some(number),
            Value::Bool(flag) => Some(i64::from(flag)),
            // A longer text is no number, and may be asked for a million times.
            Value::Text(_) => self.text(value).filter(|text| text.len() <= 24)?.trim().parse().ok(),
            Value::Float(float) if float.fract() == 0.0 && float.abs() < 9.0e15 =>
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "whole and far inside 64 bits, as just tested"
                )]
                Some(float as i64)
            }
            _ => None,
        }
    }

    /// A text or number as text.
    #[must_use]
    pub fn shown(&self, value: Value) -> Option<String> {
        match value {
            Value::Text(_) => self.text(value).map(str::to_owned),
            Value::Int(number) => Some(number.to_string()),
            Value::Float(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    pub(crate) fn add_text(&mut self, text: Cow<'a, str>) -> Result<Value> {
        let id = self.texts.len();
        self.room(1)?;
        self.texts.push(text);
        Ok(Value::Text(number(id)))
    }

    pub(crate) fn add_list(&mut self) -> Result<Value> {
        Ok(Value::List(self.add_container()?))
    }

    pub(crate) fn add_dict(&mut self) -> Result<Value> {
        Ok(Value::Dict(self.add_container()?))
    }

    fn add_container(&mut self) -> Result<u32> {
        let id = self.containers.len();
        self.room(1)?;
        self.containers.push(Container::default());
        Ok(number(id))
    }

    pub(crate) fn mark_unfinished(&mut self, value: Value) {
        if let Value::List(id) | Value::Dict(id) = value
            && let Some(container) = self.containers.get_mut(id as usize)
        {
            container.unfinished = true;
        }
    }

    /// Appends `values` to a list, or keys and values in turn to a dict.
    pub(crate) fn extend(
        &mut self,
        target: Value,
        values: impl ExactSizeIterator<Item = Value>,
    ) -> Result<()> {
        let (Value::List(id) | Value::Dict(id)) = target else { return Ok(()) };
        self.room(values.len())?;
        let Some(container) = self.containers.get_mut(id as usize) else { return Ok(()) };
        let wanted = container.len + values.len();
        if wanted <= container.capacity {
            for value in values {
                if let Some(slot) = self.pool.get_mut(container.start + container.len) {
                    *slot = value;
                    container.len += 1;
                }
            }
            return Ok(());
        }
        if container.start + container.len != self.pool.len() {
            // Moved to the pool's end. Doubling its room keeps a list that grows one by one linear in time.
            let from = container.start..container.start + container.len;
            container.start = self.pool.len();
            self.pool.extend_from_within(from);
            self.pool.extend(values);
            container.len = wanted;
            let room = if container.capacity == 0 { wanted } else { wanted.saturating_mul(2) };
            if container.start + room > VALUE_LIMIT {
                return Err(too_many());
            }
            self.pool.resize(container.start + room, Value::Null);
            container.capacity = room;
        } else {
            self.pool.extend(values);
            container.len = wanted;
            container.capacity = wanted;
        }
        Ok(())
    }

    fn room(&self, more: usize) -> Result<()> {
        if self.pool.len() + self.texts.len() + self.containers.len() + more <= VALUE_LIMIT {
            return Ok(());
        }
        Err(too_many())
    }

    /// Refuses data that holds itself, nests deeper than [`DEPTH_LIMIT`] or unfolds to more than [`UNFOLDED_LIMIT`] values.
    /// Linear in the values that exist, however often they are shared.
    pub(crate) fn check(&self, root: Value) -> Result<()> {
        let (Value::List(root) | Value::Dict(root)) = root else { return Ok(()) };
        let mut seen = vec![Seen::default(); self.containers.len()];
        let mut path: Vec<(u32, usize)> = vec![(root, 0)];
        while let Some((id, next)) = path.last_mut() {
            let id = *id;
            let Some(&child) = self.items(Value::List(id)).get(*next) else {
                self.close(id, &mut seen)?;
                path.pop();
                continue;
            };
            *next += 1;
            let (Value::List(child) | Value::Dict(child)) = child else { continue };
            match seen.get(child as usize).map(|seen| seen.stage) {
                Some(Stage::Open) => {
                    return Err(Error::new(
                        ErrorKind::Format,
                        "the data holds itself (a cycle); no dump does",
                    ));
                }
                Some(Stage::New) if path.len() >= DEPTH_LIMIT as usize => return Err(too_deep()),
                Some(Stage::New) => {
                    if let Some(seen) = seen.get_mut(child as usize) {
                        seen.stage = Stage::Open;
                    }
                    path.push((child, 0));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sums up a container whose children are all summed up.
    fn close(&self, id: u32, seen: &mut [Seen]) -> Result<()> {
        let items = self.items(Value::List(id));
        let mut sum = Seen { stage: Stage::Done, depth: 0, unfolded: items.len() as u64 };
        for item in items {
            if let Value::List(child) | Value::Dict(child) = item
                && let Some(child) = seen.get(*child as usize)
            {
                sum.depth = sum.depth.max(child.depth + 1);
                sum.unfolded = sum.unfolded.saturating_add(child.unfolded);
            }
        }
        if sum.depth > DEPTH_LIMIT {
            return Err(too_deep());
        }
        if sum.unfolded > UNFOLDED_LIMIT {
            return Err(Error::new(
                ErrorKind::Limit,
                format!(
                    "shared parts unfold to more than {UNFOLDED_LIMIT} values (a memo bomb); the file was not used"
                ),
            ));
        }
        if let Some(seen) = seen.get_mut(id as usize) {
            *seen = sum;
        }
        Ok(())
    }
}

fn too_many() -> Error {
    Error::new(ErrorKind::Limit, format!("the file makes more than {VALUE_LIMIT} values; it was not used"))
}

fn too_deep() -> Error {
    Error::new(
        ErrorKind::Limit,
        format!("the data nests deeper than {DEPTH_LIMIT} levels; the file was not used"),
    )
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    New,
    Open,
    Done,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    stage: Stage,
    depth: u32,
    unfolded: u64,
}
