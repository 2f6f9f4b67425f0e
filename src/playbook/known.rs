//! What is known: a tree of named values, in which a missing name is missing and not false.
//!
//! In: names and values. Out: [`Known`], which conditions and sentences look into through [`Watched`]: it notes every
//! name that was asked for and had no value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use minijinja::value::{Enumerator, Object, Value};

/// A value of the evidence.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A number with a fraction.
    Float(f64),
    /// Text, not yet escaped.
    Text(String),
    /// Several values.
    List(Vec<Known>),
    /// Named values.
    Map(BTreeMap<String, Known>),
}

impl Default for Known {
    fn default() -> Self {
        Self::Map(BTreeMap::new())
    }
}

impl From<bool> for Known {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Known {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Known {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<f64> for Known {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

macro_rules! from_integer {
    ($($integer:ty),*) => { $(
        impl From<$integer> for Known {
            fn from(value: $integer) -> Self {
                Self::Int(i128::try_from(value).unwrap_or(i128::MAX))
            }
        }
    )* };
}
from_integer!(u32, u64, u128, usize, i32, i64, i128);

impl<T: Into<Known>> From<Vec<T>> for Known {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl Known {
    /// Sets a dotted name, making the names above it; a name above it that held a plain value is replaced.
    pub fn put(&mut self, path: &str, value: impl Into<Known>) {
        let mut at = self;
        for part in path.split('.') {
            at = at.child(part);
        }
        *at = value.into();
    }

    /// Sets a dotted name where there is a value.
    pub fn put_some(&mut self, path: &str, value: Option<impl Into<Known>>) {
        if let Some(value) = value {
            self.put(path, value);
        }
    }

    /// The value of a dotted name.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Known> {
        path.split('.').try_fold(self, |at, part| match at {
            Self::Map(map) => map.get(part),
            _ => None,
        })
    }

    /// The text of a dotted name.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        match self.get(path)? {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn child(&mut self, part: &str) -> &mut Known {
        if !matches!(self, Self::Map(_)) {
            *self = Self::default();
        }
        match self {
            Self::Map(map) => map.entry(part.to_owned()).or_insert_with(Self::default),
            other => other,
        }
    }
}

/// The names that were asked for and had no value.
#[derive(Debug, Clone, Default)]
pub struct Missing(Arc<Mutex<BTreeSet<String>>>);

impl Missing {
    fn note(&self, path: String) {
        if let Ok(mut names) = self.0.lock() {
            names.insert(path);
        }
    }

    /// The names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.lock().map(|names| names.iter().cloned().collect()).unwrap_or_default()
    }
}

/// A tree as the expression language sees it.
#[derive(Debug)]
pub struct Watched {
    tree: Arc<Known>,
    path: String,
    missing: Missing,
}

impl Watched {
    /// The root of a tree, and the list in which missing names are noted.
    #[must_use]
    pub fn root(tree: &Arc<Known>) -> (Value, Missing) {
        let missing = Missing::default();
        let root = Self { tree: Arc::clone(tree), path: String::new(), missing: missing.clone() };
        (Value::from_object(root), missing)
    }

    fn value(&self, path: String, known: &Known) -> Value {
        match known {
            Known::Bool(value) => Value::from(*value),
            Known::Int(value) => Value::from(*value),
            Known::Float(value) => Value::from(*value),
            Known::Text(value) => Value::from(value.as_str()),
            Known::List(values) => {
                values.iter().map(|value| self.value(path.clone(), value)).collect::<Value>()
            }
            Known::Map(map) => {
                let tree = Arc::new(Known::Map(map.clone()));
                Value::from_object(Self { tree, path, missing: self.missing.clone() })
            }
        }
    }
}

impl Object for Watched {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        if self.path.is_empty() && name == "known" {
            let tree = Arc::clone(&self.tree);
            return Some(Value::from_function(move |path: String| tree.get(&path).is_some()));
        }
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        let Known::Map(map) = &*self.tree else { return None };
        match map.get(name) {
            Some(known) => Some(self.value(path, known)),
            None => {
                self.missing.note(path);
                None
            }
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match &*self.tree {
            Known::Map(map) => Enumerator::Values(map.keys().map(|key| Value::from(key.as_str())).collect()),
            _ => Enumerator::NonEnumerable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_names_make_a_tree() {
        let mut known = Known::default();
        known.put("shapes.first.safe", 233_016_u64);
        known.put_some("shapes.first.dtype", None::<String>);
        assert_eq!(known.get("shapes.first.safe"), Some(&Known::Int(233_016)));
        assert_eq!(known.get("shapes.first.dtype"), None);
        assert_eq!(known.get("shapes.first.safe.more"), None);
    }
}
