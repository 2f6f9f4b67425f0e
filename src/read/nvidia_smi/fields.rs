//! Both forms of a page as one list of fields.
//!
//! In: indented text or XML. Out: [`Field`]s with one spelling of the path: `ecc_errors/volatile/dram_uncorrectable`. It
//! leaves alone what a field means.

use quick_xml::Reader;
use quick_xml::events::Event as Xml;

/// Deepest nesting that is followed.
const DEPTH_LIMIT: usize = 16;
/// Fields that are kept: sixteen GPUs have some thousands.
const FIELD_LIMIT: usize = 100_000;
/// Longest line that is a field.
const LINE_LIMIT_BYTES: usize = 1_000;

/// A value with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// Bus id of the GPU that it belongs to.
    pub gpu: Option<String>,
    /// Names of the sections and of the field, in lower case with underscores, joined by `/`; without the GPU's.
    pub path: String,
    /// Value, trimmed.
    pub value: String,
    /// Line, counted from 1.
    pub line: u64,
    /// Offset of the line or element.
    pub byte: usize,
}

/// The fields of indented text.
pub(super) fn of_text(bytes: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut gpu: Option<String> = None;
    let mut sections: Vec<(usize, String)> = Vec::new();
    let mut byte = 0;
    for (at, raw) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let start = byte;
        byte += raw.len() + 1;
        if raw.len() > LINE_LIMIT_BYTES || fields.len() >= FIELD_LIMIT {
            continue;
        }
        let text = String::from_utf8_lossy(raw);
        let body = text.trim();
        let indent = text.len() - text.trim_start().len();
        if body.is_empty() {
            continue;
        }
        if indent == 0 {
            sections.clear();
            if let Some(id) = body.strip_prefix("GPU ").filter(|id| is_bus_id(id)) {
                gpu = Some(id.to_owned());
                continue;
            }
        }
        sections.retain(|(depth, _)| *depth < indent);
        match body.split_once(" : ").or_else(|| body.strip_suffix(" :").map(|name| (name, ""))) {
            Some((name, value)) => {
                let mut path: Vec<&str> = sections.iter().map(|(_, name)| name.as_str()).collect();
                let name = spelled(name);
                path.push(&name);
                // Facts about the machine stand before the first GPU.
                let gpu = gpu.clone().filter(|_| indent > 0);
                let line = at as u64 + 1;
                fields.push(Field {
                    gpu,
                    path: path.join("/"),
                    value: value.trim().to_owned(),
                    line,
                    byte: start,
                });
            }
            None if sections.len() < DEPTH_LIMIT && indent > 0 => sections.push((indent, spelled(body))),
            None => {}
        }
    }
    fields
}

/// `00000000:00:06.0`
fn is_bus_id(text: &str) -> bool {
    text.len() <= 20
        && text.matches(':').count() == 2
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'))
}

fn spelled(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace([' ', '-'], "_")
}

/// The fields of XML, and a sentence where it is damaged.
pub(super) fn of_xml(bytes: &[u8]) -> (Vec<Field>, Vec<String>) {
    let mut reader = Reader::from_reader(bytes);
    let mut fields = Vec::new();
    let mut diagnostics = Vec::new();
    let mut page = Page::default();
    let (mut counted, mut line) = (0, 1_u64);
    loop {
        let before = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        match reader.read_event() {
            Ok(Xml::Start(start)) => {
                if page.path.len() >= DEPTH_LIMIT || fields.len() >= FIELD_LIMIT {
                    diagnostics.push(
                        "the XML page is deeper or longer than any known one: the rest was not read"
                            .to_owned(),
                    );
                    break;
                }
                let passed = bytes.get(counted..before).unwrap_or_default();
                line += memchr::memchr_iter(b'\n', passed).count() as u64;
                counted = counted.max(before);
                let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                if page.path.len() == 1 && name == "gpu" {
                    let id = start.attributes().flatten().find(|attribute| attribute.key.as_ref() == b"id");
                    page.gpu = id.map(|id| String::from_utf8_lossy(&id.value).chars().take(40).collect());
                }
                page.path.push(name);
                page.text.clear();
                page.at = (line, before);
            }
            Ok(Xml::Text(text)) => {
                let text = text.decode().map(|text| text.into_owned()).unwrap_or_default();
                page.text.extend(text.chars().take(LINE_LIMIT_BYTES));
            }
            Ok(Xml::End(_)) => {
                fields.extend(page.close());
            }
            Ok(Xml::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                diagnostics.push(format!("the XML page can't be read past byte {before}: {error}"));
                break;
            }
        }
    }
    if !page.path.is_empty() && diagnostics.is_empty() {
        diagnostics.push("the XML page ends in the middle".to_owned());
    }
    (fields, diagnostics)
}

/// What is open.
#[derive(Default)]
struct Page {
    path: Vec<String>,
    gpu: Option<String>,
    text: String,
    at: (u64, usize),
}

impl Page {
    /// The element that ends, where it holds a value; a GPU's path begins below it.
    fn close(&mut self) -> Option<Field> {
        let value = std::mem::take(&mut self.text).trim().to_owned();
        let in_gpu = self.path.get(1).is_some_and(|name| name == "gpu");
        let path: Vec<&str> = self.path.iter().skip(if in_gpu { 2 } else { 1 }).map(String::as_str).collect();
        let path = path.join("/");
        self.path.pop();
        if value.is_empty() || path.is_empty() {
            return None;
        }
        let gpu = self.gpu.clone().filter(|_| in_gpu);
        Some(Field { gpu, path, value, line: self.at.0, byte: self.at.1 })
    }
}
