//! compute-sanitizer's XML reports (`--xml --save FILE`).
//!
//! ```xml
//! <record><kind>Precise</kind><level>Error</level><who>…</who><what><text>Invalid __global__ read of size 4 bytes is out of bounds</text>…
//! ```
//!
//! In: the bytes of a report, cut short or whole. Out: [`Data::Sanitizer`], one for all records with the same finding,
//! kernel and place. The format prints no nearest allocation and no distance. It leaves text reports to
//! [`super::sanitizer`].

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::events::Event as Xml;

use super::event::{
    Data, Event, InputId, NativeFrame, Origin, Place, SanitizerFinding, SanitizerRecord, SanitizerSummary,
    Span,
};
use super::sanitizer::{empty, hex};
use crate::tables::cuda_status;

/// Most elements inside one another; a deeper report is no report.
const DEPTH_LIMIT: usize = 64;
/// Bytes of one element's text that are kept.
const TEXT_LIMIT_BYTES: usize = 4_096;
/// Host frames kept of a record.
const FRAME_LIMIT: usize = 64;

/// Whether the bytes begin like a report.
#[must_use]
pub fn looks_like(bytes: &[u8]) -> bool {
    let head = bytes.get(..bytes.len().min(1_024)).unwrap_or_default();
    memchr::memmem::find(head, b"<ComputeSanitizerOutput").is_some()
}

/// Reads a report. A damaged one yields the records before the damage, and a sentence about it.
#[must_use]
pub fn read(bytes: &[u8], input: InputId) -> (Vec<Event>, Vec<String>) {
    let mut reader = Reader::from_reader(bytes);
    let mut report = Report { input, ..Report::default() };
    let mut diagnostics = Vec::new();
    let mut path: Vec<Vec<u8>> = Vec::new();
    let mut lines = LineCounter::default();
    loop {
        let before = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        match reader.read_event() {
            Ok(Xml::Start(start)) => {
                if path.len() >= DEPTH_LIMIT {
                    diagnostics.push(
                        "the XML report nests deeper than any known one: the rest was not read".to_owned(),
                    );
                    break;
                }
                path.push(start.local_name().as_ref().to_vec());
                report.opened(&path, before, lines.at(bytes, before));
            }
            Ok(Xml::Text(text)) => {
                let text = text.decode().map(|text| text.into_owned()).unwrap_or_default();
                report.text.push_str(text.trim());
            }
            Ok(Xml::GeneralRef(name)) => report.text.push_str(entity(&name)),
            Ok(Xml::CData(text)) => report.text.push_str(&String::from_utf8_lossy(&text)),
            Ok(Xml::End(_)) => {
                report.closed(&path);
                path.pop();
            }
            Ok(Xml::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                diagnostics.push(format!("the XML report can't be read past byte {before}: {error}"));
                break;
            }
        }
    }
    if !path.is_empty() && diagnostics.is_empty() {
        diagnostics.push("the XML report ends in the middle: its last record may be missing".to_owned());
    }
    if report.total == 0 && diagnostics.is_empty() {
        // Saved reports have no summary: one without records says that nothing was found.
        let summary = SanitizerSummary { errors: Some(0), ..SanitizerSummary::default() };
        report.push(Data::SanitizerSummary(summary), 0, 1, "<ComputeSanitizerOutput>".to_owned());
    }
    (report.events, diagnostics)
}

/// The character of a predefined entity.
fn entity(name: &[u8]) -> &'static str {
    match name {
        b"lt" => "<",
        b"gt" => ">",
        b"amp" => "&",
        b"quot" => "\"",
        b"apos" => "'",
        _ => "?",
    }
}

/// Counts lines up to rising offsets.
#[derive(Debug, Default)]
struct LineCounter {
    offset: usize,
    ends: u64,
}

impl LineCounter {
    fn at(&mut self, bytes: &[u8], offset: usize) -> u64 {
        let passed = bytes.get(self.offset..offset).unwrap_or_default();
        self.ends += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.offset = offset.max(self.offset);
        self.ends + 1
    }
}

/// The report so far.
#[derive(Debug)]
struct Report {
    input: InputId,
    events: Vec<Event>,
    seen: HashMap<(SanitizerFinding, String), usize>,
    open: Option<SanitizerRecord>,
    kind: String,
    frame: NativeFrame,
    place: Place,
    func: String,
    pc: Option<u64>,
    text: String,
    byte: usize,
    line: u64,
    total: u64,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            input: InputId(0),
            events: Vec::new(),
            seen: HashMap::new(),
            open: None,
            kind: String::new(),
            frame: NativeFrame::default(),
            place: Place::default(),
            func: String::new(),
            pc: None,
            text: String::new(),
            byte: 0,
            line: 1,
            total: 0,
        }
    }
}

impl Report {
    fn opened(&mut self, path: &[Vec<u8>], byte: usize, line: u64) {
        self.text.clear();
        match last(path) {
            b"record" => {
                (self.byte, self.line) = (byte, line);
                self.open = Some(empty(""));
                self.kind.clear();
            }
            b"frame" => self.frame = NativeFrame::default(),
            b"where" => (self.place, self.func, self.pc) = (Place::default(), String::new(), None),
            _ => {}
        }
    }

    /// Takes in the element that ends.
    fn closed(&mut self, path: &[Vec<u8>]) {
        let mut text = std::mem::take(&mut self.text);
        let mut end = text.len().min(TEXT_LIMIT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        let Some(record) = &mut self.open else { return };
        let parent = path.len().checked_sub(2).and_then(|at| path.get(at)).map_or(&b""[..], Vec::as_slice);
        match (parent, last(path)) {
            (b"record", b"kind") => self.kind = text,
            (b"threadIdx" | b"blockIdx", b"x" | b"y" | b"z") => {
                let slot = if parent == b"threadIdx" { &mut record.thread } else { &mut record.block };
                let axis = match last(path) {
                    b"x" => 0,
                    b"y" => 1,
                    _ => 2,
                };
                if let Some(place) = slot.get_or_insert([0; 3]).get_mut(axis) {
                    *place = text.parse().unwrap_or(0);
                }
            }
            (b"what", name) => what(name, text, record),
            (b"source" | b"destination", b"direction") => {
                if parent == b"source" {
                    record.access = Some(text.to_ascii_lowercase());
                } else {
                    record.detail = Some(format!("{text} access"));
                }
            }
            (b"destination", b"count") => {
                if let Some(detail) = &mut record.detail {
                    detail.push_str(&format!(" [{text} hazards]"));
                }
            }
            (b"where", name) => self.where_field(name, text),
            (b"source" | b"record", b"where") => {
                record.kernel = Some(std::mem::take(&mut self.func)).filter(|func| !func.is_empty());
                record.offset = self.pc;
                record.place = Some(std::mem::take(&mut self.place)).filter(|place| !place.file.is_empty());
            }
            (b"destination", b"where") => {
                record.other_place =
                    Some(std::mem::take(&mut self.place)).filter(|place| !place.file.is_empty());
            }
            (b"frame", b"func") => self.frame.function = Some(text),
            (b"frame", b"pc") => self.frame.address = Some(text),
            (b"frame", b"module") => self.frame.library = Some(text),
            (b"frame", b"path") => self.frame.place.get_or_insert_default().file = text,
            (b"frame", b"line") => self.frame.place.get_or_insert_default().line = text.parse().ok(),
            (b"hostStack", b"frame") => push_frame(&mut record.host, &mut self.frame),
            (_, b"frame") => push_frame(&mut record.device_frames, &mut self.frame),
            (_, b"record") => self.finish(),
            _ => {}
        }
    }

    fn where_field(&mut self, name: &[u8], text: String) {
        match name {
            b"func" => self.func = text,
            b"path" => self.place.file = text,
            b"line" => self.place.line = text.parse().ok(),
            b"pc" => self.pc = hex(&text),
            _ => {}
        }
    }

    /// Ends the record: a new event, or one more in the event of the same place.
    fn finish(&mut self) {
        let Some(mut record) = self.open.take() else { return };
        record.finding = finding_of(&self.kind, &record);
        self.total += 1;
        match record.finding {
            SanitizerFinding::Leak => {
                (record.leaked_bytes, record.size_bytes, record.detail) = (record.size_bytes, None, None)
            }
            SanitizerFinding::Race => record.space = Some("shared".to_owned()),
            SanitizerFinding::UninitializedRead => {
                record.access = Some("read".to_owned());
                let space = record.head.split("__").nth(1).map(str::to_owned);
                record.space = record.space.take().or(space);
            }
            SanitizerFinding::OutOfBounds | SanitizerFinding::Misaligned => record.detail = None,
            _ => {}
        }
        let place = record.place.as_ref().map(|place| format!("{}:{:?}", place.file, place.line));
        let key = format!(
            "{:?} {:?} {place:?} {:?} {:?}",
            record.kernel, record.api, record.code, record.other_place
        );
        match self.seen.get(&(record.finding, key.clone())) {
            Some(&index) => self.fold(index, &record),
            None => {
                self.seen.insert((record.finding, key), self.events.len());
                let text = if record.head.is_empty() { self.kind.clone() } else { record.head.clone() };
                let (byte, line) = (self.byte, self.line);
                self.push(Data::Sanitizer(Box::new(record)), byte, line, text);
            }
        }
    }

    fn fold(&mut self, index: usize, record: &SanitizerRecord) {
        let Some(Event { data: Data::Sanitizer(known), .. }) = self.events.get_mut(index) else { return };
        known.count += 1;
        if let (Some(block), Some(thread)) = (record.block, record.thread) {
            known.last = Some((block, thread));
        }
        if let (Some(sum), Some(bytes)) = (&mut known.leaked_bytes, record.leaked_bytes) {
            *sum = sum.saturating_add(bytes);
        }
    }

    fn push(&mut self, data: Data, byte: usize, line: u64, text: String) {
        let span = Span { input: self.input, line, byte: byte as u64, lines: 1 };
        self.events.push(Event { span, origin: Origin::default(), data, text });
    }
}

/// Fields of `<what>`.
fn what(name: &[u8], text: String, record: &mut SanitizerRecord) {
    match name {
        b"text" => record.head = text,
        b"space" => record.space = Some(text.trim_matches('_').to_owned()),
        b"size" => record.size_bytes = text.parse().ok(),
        b"direction" => record.access = Some(text.to_ascii_lowercase()),
        b"address" => record.address = hex(&text),
        b"api" | b"function" => record.api = Some(text),
        b"type" | b"error" => record.detail = Some(text),
        b"result" | b"errorCode" | b"code" => {
            record.code = text
                .parse()
                .ok()
                .or_else(|| cuda_status::by_name(text.trim()).map(|status| status.code))
                .or_else(|| cuda_status::text_in(&text).map(|found| found.status.code));
        }
        _ => {}
    }
}

/// The finding of a record, by its kind first, then by its words.
fn finding_of(kind: &str, record: &SanitizerRecord) -> SanitizerFinding {
    let head = record.head.as_str();
    let says =
        |word: &str| head.contains(word) || record.detail.as_deref().is_some_and(|text| text.contains(word));
    match kind {
        "Leak" => SanitizerFinding::Leak,
        "Initcheck" if says("nused") => SanitizerFinding::UnusedMemory,
        "Initcheck" => SanitizerFinding::UninitializedRead,
        "Synccheck" => SanitizerFinding::Barrier,
        "Analysis" | "Hazard" | "Racecheck" => SanitizerFinding::Race,
        "Api" | "API" | "ApiError" | "CudaApi" => SanitizerFinding::ApiError,
        "MallocFree" | "Malloc" | "Free" => SanitizerFinding::AllocatorError,
        _ if record.api.is_some() || says("Program hit") => SanitizerFinding::ApiError,
        _ if says("misaligned") => SanitizerFinding::Misaligned,
        _ if says("freed") => SanitizerFinding::FreedMemory,
        _ if says("out of bounds") => SanitizerFinding::OutOfBounds,
        _ if says("Invalid __") => SanitizerFinding::InvalidAccess,
        _ => SanitizerFinding::Other,
    }
}

fn push_frame(frames: &mut Vec<NativeFrame>, frame: &mut NativeFrame) {
    if frames.len() < FRAME_LIMIT {
        frames.push(std::mem::take(frame));
    }
}

fn last(path: &[Vec<u8>]) -> &[u8] {
    path.last().map_or(&b""[..], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISALIGNED: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<ComputeSanitizerOutput>
  <record>
    <kind>Precise</kind>
    <level>Error</level>
    <who>
      <threadIdx><x>0</x><y>0</y><z>0</z></threadIdx>
      <blockIdx><x>0</x><y>0</y><z>0</z></blockIdx>
    </who>
    <what>
      <text>Invalid __global__ write of size 16 bytes is misaligned</text>
      <space>__global__</space>
      <size>16</size>
      <direction>write</direction>
      <error>misaligned</error>
      <address>0x7fc25a800001</address>
    </what>
    <where>
      <func>misaligned</func>
      <path>/home/user/lora/py/crash.cu</path>
      <line>22</line>
      <pc>0x60</pc>
    </where>
    <hostStack>
      <saveLocation>kernel launch time</saveLocation>
      <frame>
        <func>cudaError cudaMalloc&lt;int&gt;</func>
        <pc>0x39fb94</pc>
        <module>/usr/lib/libcuda.so.1</module>
      </frame>
    </hostStack>
  </record>
  <record>
    <kind>Precise</kind>
    <level>Error</level>
    <who>
      <threadIdx><x>1</x><y>0</y><z>0</z></threadIdx>
      <blockIdx><x>2</x><y>0</y><z>0</z></blockIdx>
    </who>
    <what>
      <text>Invalid __global__ write of size 16 bytes is misaligned</text>
      <error>misaligned</error>
      <address>0x7fc25a800002</address>
    </what>
    <where>
      <func>misaligned</func>
      <path>/home/user/lora/py/crash.cu</path>
      <line>22</line>
      <pc>0x60</pc>
    </where>
  </record>
</ComputeSanitizerOutput>
"#;

    fn records(xml: &str) -> Vec<SanitizerRecord> {
        read(xml.as_bytes(), InputId(0))
            .0
            .into_iter()
            .filter_map(|event| match event.data {
                Data::Sanitizer(record) => Some(*record),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn records_of_one_place_fold() {
        let found = records(MISALIGNED);
        assert_eq!(found.len(), 1);
        let expected = SanitizerRecord {
            finding: SanitizerFinding::Misaligned,
            space: Some("global".to_owned()),
            access: Some("write".to_owned()),
            size_bytes: Some(16),
            kernel: Some("misaligned".to_owned()),
            offset: Some(0x60),
            place: Some(Place {
                file: "/home/user/lora/py/crash.cu".to_owned(),
                line: Some(22),
                function: None,
            }),
            thread: Some([0, 0, 0]),
            block: Some([0, 0, 0]),
            last: Some(([2, 0, 0], [1, 0, 0])),
            address: Some(0x7fc2_5a80_0001),
            host: vec![NativeFrame {
                function: Some("cudaError cudaMalloc<int>".to_owned()),
                library: Some("/usr/lib/libcuda.so.1".to_owned()),
                address: Some("0x39fb94".to_owned()),
                place: None,
            }],
            count: 2,
            ..empty("Invalid __global__ write of size 16 bytes is misaligned")
        };
        assert_eq!(found[0], expected);
        let (events, diagnostics) = read(MISALIGNED.as_bytes(), InputId(3));
        assert_eq!((events[0].span.line, diagnostics.len()), (3, 0));
        assert!(looks_like(MISALIGNED.as_bytes()));
    }

    #[test]
    fn races_barriers_and_leaks_have_their_findings() {
        let race = "<ComputeSanitizerOutput><record><kind>Analysis</kind><level>Error</level><what><text>Race condition</text>\
            <source><direction>Write</direction><where><func>racy</func><path>crash.cu</path><line>31</line><pc>0xa0</pc></where></source>\
            <destination><direction>Read</direction><where><func>racy</func><path>crash.cu</path><line>32</line><pc>0xb0</pc></where><count>256</count></destination>\
            </what></record></ComputeSanitizerOutput>";
        let found = records(race).remove(0);
        assert_eq!((found.finding, found.access.as_deref()), (SanitizerFinding::Race, Some("write")));
        assert_eq!(found.place.and_then(|place| place.line), Some(31));
        assert_eq!(found.other_place.and_then(|place| place.line), Some(32));
        assert_eq!(found.detail.as_deref(), Some("Read access [256 hazards]"));
        let barrier = "<ComputeSanitizerOutput><record><kind>Synccheck</kind><what><text>Barrier error</text><type>Divergent thread(s) in warp</type></what></record></ComputeSanitizerOutput>";
        let found = records(barrier).remove(0);
        assert_eq!(
            (found.finding, found.detail.as_deref()),
            (SanitizerFinding::Barrier, Some("Divergent thread(s) in warp"))
        );
        let leak = "<ComputeSanitizerOutput><record><kind>Leak</kind><what><text>Leaked 4096 bytes</text><address>0x7f0a90800000</address><size>4096</size><type>generic</type></what></record></ComputeSanitizerOutput>";
        let found = records(leak).remove(0);
        assert_eq!(
            (found.finding, found.leaked_bytes, found.size_bytes),
            (SanitizerFinding::Leak, Some(4096), None)
        );
    }

    #[test]
    fn damage_leaves_the_records_before_it() {
        let second = MISALIGNED.rfind("<record>").unwrap();
        for end in second..MISALIGNED.len() - 1 {
            let (events, _) = read(&MISALIGNED.as_bytes()[..end], InputId(0));
            assert_eq!(events.len(), 1);
        }
        let (events, diagnostics) = read(b"<ComputeSanitizerOutput><record></what>", InputId(0));
        assert_eq!((events.len(), diagnostics.len()), (0, 1));
        let deep = "<a>".repeat(100_000);
        assert_eq!(read(deep.as_bytes(), InputId(0)).1.len(), 1);
    }

    #[test]
    fn an_empty_report_says_that_nothing_was_found() {
        let (events, diagnostics) = read(b"<ComputeSanitizerOutput></ComputeSanitizerOutput>", InputId(0));
        assert_eq!(diagnostics, [] as [String; 0]);
        let summary = SanitizerSummary { errors: Some(0), ..SanitizerSummary::default() };
        assert_eq!(events[0].data, Data::SanitizerSummary(summary));
    }
}
