//! PTX that a cubin carries in `.nv_debug_ptx_txt`.
//!
//! In: the section, whose lines end with NUL. Out: the text with ordinary line ends, and the types in a kernel's
//! parameter list. It leaves alone what the instructions do; the kernel room reads the text for that.

/// Longest text that is taken.
const LIMIT_BYTES: usize = 16 << 20;

/// Parameters of one kernel that are listed.
const PARAM_LIMIT: usize = 8_192;

/// The text of the section, at most 16 MiB, lines ended by `\n`.
#[must_use]
pub fn text(section: &[u8]) -> Vec<u8> {
    let kept = section.get(..LIMIT_BYTES).unwrap_or(section);
    kept.iter().map(|byte| if *byte == 0 { b'\n' } else { *byte }).collect()
}

/// A parameter as the PTX declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtxParam {
    /// Name (`scatter_rows_param_1`).
    pub name: String,
    /// Type without the dot (`u64`, `f32`, `b8`).
    pub kind: String,
    /// True where the declaration says `.ptr`.
    pub pointer: bool,
    /// Element count of an array parameter (`[16]`); 1 otherwise.
    pub count: u32,
}

/// Parameters of the kernel `entry`, in order; empty where the text doesn't declare it.
#[must_use]
pub fn entry_params(text: &[u8], entry: &str) -> Vec<PtxParam> {
    declaration(text, entry)
        .map_or_else(Vec::new, |list| list.split(',').take(PARAM_LIMIT).filter_map(param).collect())
}

/// What stands between the parentheses after `.entry NAME`.
fn declaration<'a>(text: &'a [u8], entry: &str) -> Option<&'a str> {
    memchr::memmem::find_iter(text, b".entry").find_map(|at| {
        let rest = text.get(at + 6..)?.trim_ascii_start().strip_prefix(entry.as_bytes())?.trim_ascii_start();
        let rest = rest.strip_prefix(b"(")?;
        let end = memchr::memchr(b')', rest)?;
        std::str::from_utf8(rest.get(..end)?).ok()
    })
}

fn param(declaration: &str) -> Option<PtxParam> {
    let mut words = declaration.split_whitespace();
    if words.next()? != ".param" {
        return None;
    }
    let mut param = PtxParam { name: String::new(), kind: String::new(), pointer: false, count: 1 };
    for word in words {
        match word.strip_prefix('.') {
            Some("ptr") => param.pointer = true,
            Some(kind) if is_type(kind) => param.kind = kind.to_owned(),
            Some(_) => {}
            None => {
                let (name, count) = word.split_once('[').unwrap_or((word, "1"));
                param.count = count.trim_end_matches(']').parse().unwrap_or(1);
                name.clone_into(&mut param.name);
            }
        }
    }
    (!param.kind.is_empty()).then_some(param)
}

fn is_type(word: &str) -> bool {
    matches!(word.as_bytes().first(), Some(b'u' | b's' | b'f' | b'b'))
        && word
            .get(1..)
            .is_some_and(|bits| !bits.is_empty() && bits.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_integers_and_arrays() {
        let section =
            b".version 8.7\0.visible .entry scatter(\0.param .u64 .ptr .global .align 1 scatter_param_0,\0\
            .param .u32 scatter_param_1,\0.param .align 8 .b8 scatter_param_2[16]\0)\0.reqntid 128\0{\0}\0";
        let params = entry_params(&text(section), "scatter");
        let facts: Vec<_> =
            params.iter().map(|p| (p.name.as_str(), p.kind.as_str(), p.pointer, p.count)).collect();
        assert_eq!(
            facts,
            [
                ("scatter_param_0", "u64", true, 1),
                ("scatter_param_1", "u32", false, 1),
                ("scatter_param_2", "b8", false, 16)
            ]
        );
        assert!(entry_params(&text(section), "scat").is_empty());
    }
}
