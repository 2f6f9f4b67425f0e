//! The indented lines of a sanitizer record: where, by which thread, which address, which allocation, which frames.
//!
//! In: one line after the report's prefix. Out: fields of the record. It leaves the head to [`super::head`].

use crate::read::event::{
    Dim3, NativeFrame, NearestAllocation, Place, SanitizerFinding, SanitizerRecord, Side,
};

/// Host frames kept of a record: innermost first, the rest is the interpreter's own.
const HOST_FRAMES: usize = 64;
/// Device frames kept.
const DEVICE_FRAMES: usize = 32;

/// Kernel, offset and source place of an access.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AccessPlace {
    /// Kernel with its parameter list.
    pub kernel: Option<String>,
    /// Offset in the kernel.
    pub offset: Option<u64>,
    /// Source place.
    pub place: Option<Place>,
}

/// Reads `kernel(args)+0xf0 in crash.cu:20`, `kernel(args):0xf0 in …`, `0xf0 in crash.cu:20:kernel(args)` and the forms
/// without a source place.
#[must_use]
pub fn access_place(text: &str) -> AccessPlace {
    let text = text.trim();
    let text =
        text.rsplit_once(" [").filter(|(_, rest)| rest.ends_with("hazards]")).map_or(text, |(head, _)| head);
    if text.starts_with("0x") {
        return pc_first(text);
    }
    let Some(at) = text.rfind("+0x").or_else(|| text.rfind(":0x")) else {
        let (kernel, place) =
            text.rsplit_once(" in ").map_or((text, None), |(kernel, place)| (kernel, file_line(place)));
        return AccessPlace { kernel: named(kernel), offset: None, place };
    };
    let (kernel, rest) = text.split_at(at);
    let offset = hex(rest);
    let place = rest.split_once(" in ").and_then(|(_, place)| file_line(place));
    AccessPlace { kernel: named(kernel), offset, place }
}

/// cuda-memcheck's order: `0x000000d0 in /src/crash.cu:12:kernel(int*)`.
fn pc_first(text: &str) -> AccessPlace {
    let offset = hex(text);
    let Some((_, rest)) = text.split_once(" in ") else {
        return AccessPlace { offset, ..AccessPlace::default() };
    };
    // `file:line:kernel` — the kernel itself holds `::`, so the line number decides where the file ends.
    let mut from = 0;
    while let Some(colon) = rest.get(from..).and_then(|tail| tail.find(':')) {
        let colon = from + colon;
        let tail = rest.get(colon + 1..).unwrap_or("");
        let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && tail.as_bytes().get(digits) == Some(&b':') {
            let place = rest.get(..colon + 1 + digits).and_then(file_line);
            return AccessPlace { kernel: tail.get(digits + 1..).and_then(named), offset, place };
        }
        from = colon + 1;
    }
    AccessPlace { kernel: named(rest), offset, place: None }
}

fn named(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches(':').trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// `crash.cu:20`.
#[must_use]
pub fn file_line(text: &str) -> Option<Place> {
    let (file, line) = text.trim().rsplit_once(':')?;
    let line = line.trim().parse().ok()?;
    (!file.is_empty()).then(|| Place { file: file.to_owned(), line: Some(line), function: None })
}

/// The first hexadecimal number, `0x…`.
#[must_use]
pub fn hex(text: &str) -> Option<u64> {
    let digits = text.get(text.find("0x")? + 2..)?;
    let len = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    u64::from_str_radix(digits.get(..len)?, 16).ok()
}

/// The decimal number that the text begins with; thousands may be parted by commas.
#[must_use]
pub fn count(text: &str) -> Option<u64> {
    let mut value: Option<u64> = None;
    for byte in text.trim_start().bytes() {
        match byte {
            b'0'..=b'9' => {
                value = Some(value.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(byte - b'0'))?);
            }
            b',' if value.is_some() => {}
            _ => break,
        }
    }
    value
}

/// The next `(x,y,z)`.
#[must_use]
pub fn dims(text: &str) -> Option<Dim3> {
    let inner = text.get(text.find('(')? + 1..)?;
    let mut parts = inner.get(..inner.find(')')?)?.split(',').map(|part| part.trim().parse::<u64>().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// `by thread (9,0,0) in block (3,0,0)`: thread and block.
#[must_use]
pub fn by_thread(text: &str) -> (Option<Dim3>, Option<Dim3>) {
    let (thread, block) =
        text.split_once("in block").map_or((text, None), |(thread, block)| (thread, Some(block)));
    (dims(thread), block.and_then(dims))
}

/// Adds a detail line to a record. Lines that tell nothing are passed over.
pub fn add(text: &str, record: &mut SanitizerRecord) {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("at ") {
        let found = access_place(rest);
        (record.kernel, record.offset, record.place) = (found.kernel, found.offset, found.place);
    } else if text.starts_with("by thread") {
        (record.thread, record.block) = by_thread(text);
    } else if text.starts_with("Address ") || text.starts_with("Access ") {
        record.address = hex(text).or(record.address);
        if record.finding == SanitizerFinding::InvalidAccess {
            record.finding = kind_of(text);
        }
    } else if let Some(rest) = text.strip_prefix("and is ") {
        record.nearest = nearest(rest);
    } else if text.contains(" access at ") && record.finding == SanitizerFinding::Race {
        let text = text.strip_prefix("and ").unwrap_or(text);
        record.detail = Some(text.to_owned());
        record.other_place = text.split_once(" access at ").and_then(|(_, at)| access_place(at).place);
    } else if text.contains(" Thread (") && record.finding == SanitizerFinding::Race {
        hazard_thread(text, record);
    } else if let Some(rest) = text.strip_prefix("Device Frame:") {
        if record.device_frames.len() < DEVICE_FRAMES {
            record.device_frames.push(device_frame(rest));
        }
    } else if let Some(rest) = text.strip_prefix("Host Frame:") {
        if record.host.len() < HOST_FRAMES {
            record.host.push(host_frame(rest));
        }
    } else if let Some(object) = text.strip_prefix("in ") {
        // The second generation puts the object of a host frame on a line of its own.
        if let Some(frame) = record.host.last_mut().filter(|frame| frame.library.is_none()) {
            frame.library = Some(object.trim().trim_matches(['[', ']']).to_owned());
        }
    } else if is_freed(text)
        && matches!(record.finding, SanitizerFinding::InvalidAccess | SanitizerFinding::OutOfBounds)
    {
        record.finding = SanitizerFinding::FreedMemory;
    }
}

fn kind_of(text: &str) -> SanitizerFinding {
    if text.contains("misaligned") {
        SanitizerFinding::Misaligned
    } else if is_freed(text) {
        SanitizerFinding::FreedMemory
    } else if text.contains("out of bounds") {
        SanitizerFinding::OutOfBounds
    } else {
        SanitizerFinding::InvalidAccess
    }
}

fn is_freed(text: &str) -> bool {
    [
        "freed",
        "deallocated",
        "before being allocated",
        "not yet allocated",
        "use-after-free",
        "stream-ordered",
    ]
    .iter()
    .any(|word| text.contains(word))
}

/// `4,156,554,753 bytes after the nearest allocation at 0x7f98eac00000 of size 512 bytes`; `inside` has no distance.
#[must_use]
pub fn nearest(text: &str) -> Option<NearestAllocation> {
    let side = [("before", Side::Before), ("after", Side::After), ("inside", Side::Inside)]
        .into_iter()
        .find(|(word, _)| text.split(' ').any(|part| part == *word))?
        .1;
    let size = text.split_once("of size ").and_then(|(_, rest)| count(rest))?;
    Some(NearestAllocation {
        distance_bytes: count(text).unwrap_or(0),
        side,
        base: text.split_once(" at ").and_then(|(_, rest)| hex(rest))?,
        size_bytes: size,
    })
}

/// `Write Thread (10, 0, 0) at 0x60 in a.cu:19:kernel(int*)`: the first is the record's place, the second the other one.
fn hazard_thread(text: &str, record: &mut SanitizerRecord) {
    let found = text.split_once(" at ").map(|(_, at)| access_place(at)).unwrap_or_default();
    if record.thread.is_none() {
        record.thread = dims(text);
        record.access = text.split(' ').next().map(str::to_ascii_lowercase);
        (record.kernel, record.offset, record.place) = (found.kernel, found.offset, found.place);
    } else {
        record.other_place = found.place;
    }
}

/// `kernel(int*)+0x90 in a.cu:12`, `path (sym : 0x90)`.
fn device_frame(text: &str) -> NativeFrame {
    if let Some((_, inner)) = text.rsplit_once(" (")
        && let Some((symbol, offset)) = inner.trim_end_matches(')').rsplit_once(" : ")
    {
        return NativeFrame { function: named(symbol), address: named(offset), ..NativeFrame::default() };
    }
    let found = access_place(text);
    NativeFrame {
        function: found.kernel,
        library: None,
        address: found.offset.map(|offset| format!("{offset:#x}")),
        place: found.place,
    }
}

/// `main [0x9810] in crash`, `sym in a.cc:3 [0x1] in lib.so`, `/usr/lib/libcuda.so.1 (cuLaunchKernel + 0x2cd) [0x24cc4d]`.
fn host_frame(text: &str) -> NativeFrame {
    let text = text.trim();
    let (head, tail) = text.split_once('[').map_or((text, ""), |(head, tail)| (head.trim(), tail));
    let (address, object) = tail.split_once(']').unwrap_or((tail, ""));
    let address = named(address).filter(|address| address.starts_with("0x"));
    let library = object.trim().strip_prefix("in ").and_then(named);
    if library.is_none()
        && let Some((object, symbol)) = head.rsplit_once(" (")
    {
        let symbol = symbol.trim_end_matches(')');
        let symbol = symbol.rsplit_once(" + ").map_or(symbol, |(symbol, _)| symbol);
        return NativeFrame { function: named(symbol), library: named(object), address, place: None };
    }
    let (function, place) =
        head.rsplit_once(" in ").map_or((head, None), |(function, place)| (function, file_line(place)));
    let function = if place.is_some() { function } else { head };
    NativeFrame { function: named(function), library, address, place }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> (Option<String>, Option<u64>, Option<(String, u32)>) {
        let found = access_place(text);
        (found.kernel, found.offset, found.place.and_then(|place| Some((place.file, place.line?))))
    }

    #[test]
    fn all_generations_place_the_access() {
        let kernel = || Some("ns::gather(const float *, int)".to_owned());
        let place = || Some(("crash.cu".to_owned(), 20));
        assert_eq!(at("ns::gather(const float *, int)+0xf0 in crash.cu:20"), (kernel(), Some(0xf0), place()));
        assert_eq!(at("ns::gather(const float *, int):0xf0 in crash.cu:20"), (kernel(), Some(0xf0), place()));
        assert_eq!(
            at("0x000000f0 in crash.cu:20:ns::gather(const float *, int)"),
            (kernel(), Some(0xf0), place())
        );
        assert_eq!(at("0xf0 in ns::gather(const float *, int)"), (kernel(), Some(0xf0), None));
        assert_eq!(at("ns::gather(const float *, int)+0xf0"), (kernel(), Some(0xf0), None));
        assert_eq!(
            at("racy(int *)+0xb0 in crash.cu:32 [256 hazards]"),
            (Some("racy(int *)".to_owned()), Some(0xb0), Some(("crash.cu".to_owned(), 32)))
        );
    }

    #[test]
    fn distances_come_with_or_without_commas() {
        let expected = NearestAllocation {
            distance_bytes: 4_156_554_753,
            side: Side::After,
            base: 0x7f98_eac0_0000,
            size_bytes: 512,
        };
        assert_eq!(
            nearest("4,156,554,753 bytes after the nearest allocation at 0x7f98eac00000 of size 512 bytes"),
            Some(expected)
        );
        assert_eq!(
            nearest("4156554753 bytes after the nearest allocation at 0x7f98eac00000 of size 512 bytes"),
            Some(expected)
        );
        let inside = nearest("inside the nearest allocation at 0x7fb11e800000 of size 4,096 bytes").unwrap();
        assert_eq!((inside.side, inside.distance_bytes, inside.size_bytes), (Side::Inside, 0, 4096));
    }

    #[test]
    fn frames_of_all_generations_are_read() {
        let frame = |function: &str, library: Option<&str>, address: &str| NativeFrame {
            function: named(function),
            library: library.map(str::to_owned),
            address: named(address),
            place: None,
        };
        assert_eq!(host_frame(" main [0x9810] in crash"), frame("main", Some("crash"), "0x9810"));
        assert_eq!(host_frame("  [0x18218f] in python3"), frame("", Some("python3"), "0x18218f"));
        assert_eq!(
            host_frame("/usr/lib/libcuda.so.1 (cuLaunchKernel + 0x2cd) [0x24cc4d]"),
            frame("cuLaunchKernel", Some("/usr/lib/libcuda.so.1"), "0x24cc4d")
        );
        assert_eq!(
            device_frame("/src/a.cu (ns::gather(int*) : 0x90)").function.as_deref(),
            Some("ns::gather(int*)")
        );
        let with_place = host_frame(" run(int) in a.cc:3 [0x1] in lib.so");
        assert_eq!(with_place.function.as_deref(), Some("run(int)"));
        assert_eq!(with_place.place.and_then(|place| place.line), Some(3));
    }

    #[test]
    fn huge_numbers_are_no_numbers() {
        assert_eq!(count("99999999999999999999999"), None);
        assert_eq!(hex("0xfffffffffffffffffff"), None);
        assert_eq!(dims("(1,2)"), None);
    }
}
