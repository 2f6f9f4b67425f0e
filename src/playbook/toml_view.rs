//! A TOML table as a list of keys to take, each once, with the line it stands on.
//!
//! In: a parsed document and its text. Out: values by key and type; what is missing, of another type, or not taken
//! becomes a fault. It knows nothing of playbooks.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Fault;
use super::schema::Source;

/// A file being read.
#[derive(Debug)]
pub struct Page<'a> {
    file: &'a str,
    text: &'a str,
    /// What was found wrong so far.
    pub faults: Vec<Fault>,
}

impl<'a> Page<'a> {
    /// A file with its text.
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, faults: Vec::new() }
    }

    /// The file's name.
    pub fn file(&self) -> &'a str {
        self.file
    }

    /// The line of a byte offset, counted from 1.
    pub fn line(&self, at: usize) -> u32 {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        u32::try_from(memchr::memchr_iter(b'\n', before).count() + 1).unwrap_or(u32::MAX)
    }

    /// Notes a fault.
    pub fn fault(&mut self, line: u32, key: impl Into<String>, message: impl Into<String>) {
        self.faults.push(Fault {
            file: self.file.to_owned(),
            line,
            key: key.into(),
            message: message.into(),
        });
    }
}

/// A table of the file.
#[derive(Debug)]
pub struct View<'t, 'i> {
    table: &'t DeTable<'i>,
    path: String,
    line: u32,
    taken: BTreeSet<String>,
}

impl<'t, 'i> View<'t, 'i> {
    /// The table at `span`, called `path`.
    pub fn new(page: &Page<'_>, table: &'t DeTable<'i>, path: &str, span: &Range<usize>) -> Self {
        Self { table, path: path.to_owned(), line: page.line(span.start), taken: BTreeSet::new() }
    }

    /// The line on which the table begins.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// A key of this table, dotted from the top.
    pub fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn take(&mut self, name: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.taken.insert(name.to_owned());
        self.table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
    }

    /// A text, if there is one.
    pub fn text(&mut self, page: &mut Page<'_>, name: &str) -> Option<Source> {
        let value = self.take(name)?;
        let line = page.line(value.span().start);
        match value.get_ref() {
            DeValue::String(text) => Some(Source { text: text.to_string(), line }),
            _ => {
                page.fault(line, self.key(name), "expected a text in quotes");
                None
            }
        }
    }

    /// A text that must be there and hold something.
    pub fn required(&mut self, page: &mut Page<'_>, name: &str) -> Source {
        let there = self.table.iter().any(|(key, _)| key.get_ref() == name);
        let found = self.text(page, name);
        if !there {
            page.fault(self.line, self.key(name), "is missing");
        } else if found.as_ref().is_some_and(|source| source.text.trim().is_empty()) {
            page.fault(self.line, self.key(name), "is empty");
        }
        found.unwrap_or(Source { text: String::new(), line: self.line })
    }

    /// A list of texts; empty where there is none.
    pub fn texts(&mut self, page: &mut Page<'_>, name: &str) -> Vec<Source> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let line = page.line(value.span().start);
        let DeValue::Array(items) = value.get_ref() else {
            page.fault(line, self.key(name), "expected a list of texts: [\"…\", \"…\"]");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            let line = page.line(item.span().start);
            match item.get_ref() {
                DeValue::String(text) => texts.push(Source { text: text.to_string(), line }),
                _ => page.fault(line, self.key(name), "expected a text in quotes"),
            }
        }
        texts
    }

    /// A whole number of at least 1, if there is one.
    pub fn number(&mut self, page: &mut Page<'_>, name: &str) -> Option<u64> {
        let value = self.take(name)?;
        let line = page.line(value.span().start);
        let number = match value.get_ref() {
            DeValue::Integer(integer) => {
                u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
            }
            _ => None,
        };
        if number.is_none_or(|number| number == 0) {
            page.fault(line, self.key(name), "expected a whole number of 1 or more");
            return None;
        }
        number
    }

    /// A table of texts, in the order of its names; empty where there is none.
    pub fn pairs(&mut self, page: &mut Page<'_>, name: &str) -> Vec<(String, Source)> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let line = page.line(value.span().start);
        let DeValue::Table(table) = value.get_ref() else {
            page.fault(line, self.key(name), "expected a table of texts: { NAME = \"value\" }");
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (key, value) in table {
            let line = page.line(value.span().start);
            match value.get_ref() {
                DeValue::String(text) => {
                    pairs.push((key.get_ref().to_string(), Source { text: text.to_string(), line }));
                }
                _ => page.fault(line, format!("{}.{}", self.key(name), key.get_ref()), "expected a text"),
            }
        }
        pairs
    }

    /// A table, if there is one.
    pub fn table(&mut self, page: &mut Page<'_>, name: &str) -> Option<View<'t, 'i>> {
        let value = self.take(name)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(View::new(page, table, &self.key(name), &value.span())),
            _ => {
                let line = page.line(value.span().start);
                page.fault(line, self.key(name), format!("expected a table: [{}]", self.key(name)));
                None
            }
        }
    }

    /// A list of tables; empty where there is none.
    pub fn tables(&mut self, page: &mut Page<'_>, name: &str) -> Vec<View<'t, 'i>> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let key = self.key(name);
        let line = page.line(value.span().start);
        let DeValue::Array(items) = value.get_ref() else {
            page.fault(line, key.clone(), format!("expected one or more [[{key}]]"));
            return Vec::new();
        };
        let mut views = Vec::new();
        for item in items {
            match item.get_ref() {
                DeValue::Table(table) => views.push(View::new(page, table, &key, &item.span())),
                _ => page.fault(line, key.clone(), format!("expected one or more [[{key}]]")),
            }
        }
        views
    }

    /// Faults for the keys that nobody took.
    pub fn finish(self, page: &mut Page<'_>) {
        for (key, _) in self.table {
            let name = key.get_ref();
            if self.taken.contains(name.as_ref()) {
                continue;
            }
            let line = page.line(key.span().start);
            let known: Vec<&str> = self.taken.iter().map(String::as_str).collect();
            page.fault(line, self.key(name), format!("unknown key; known here: {}", known.join(", ")));
        }
    }
}
