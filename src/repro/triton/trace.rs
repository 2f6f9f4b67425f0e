//! A tritonparse trace as the source of a repro: the code that was compiled and the exact launch.
//!
//! In: the traced launch that the verdict leads to, and the trace's bytes. Out: [`Traced`]: the launch with its tensors,
//! and the compiler's texts of its kernel as a cache entry in a temporary folder, which is what the probe loads from. A
//! trace carries PTX and no machine code: the driver compiles it for the GPU that is there.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::super::facts::{Facts, missing};
use crate::case::{EvidenceId, Fact};
use crate::error::{Error, ErrorKind, Result};
use crate::read::tritonparse::{self, Argument, Tensor};
use crate::source::InputKind;
use crate::verdict::cause::traced::culprit;

/// Longest record that is read, in bytes.
const RECORD_LIMIT_BYTES: usize = 32 << 20;

/// A traced launch with its code.
pub(in crate::repro) struct Traced {
    /// The launch.
    pub launch: tritonparse::Launch,
    /// Where the launch stands: `trace.ndjson:2`.
    pub place: String,
    /// The folder that holds its code.
    folder: tempfile::TempDir,
}

/// The traced launch that the evidence leads to and that wraps for certain, where one of the inputs holds it.
///
/// # Errors
/// `Format` where the record of its compilation holds no PTX; `Output` where its texts can't be put down.
pub(super) fn find(facts: &Facts<'_>) -> Result<Option<Traced>> {
    let Some(view) = facts.verdict.view(facts.case) else { return Ok(None) };
    let Some((traced, _)) = culprit(&view) else { return Ok(None) };
    if facts.entry.is_some_and(|entry| entry != traced.launch.kernel) {
        return Ok(None);
    }
    let span = traced.event.span;
    let Some(input) = facts.inputs.get(span.input.0 as usize) else { return Ok(None) };
    let trace = tritonparse::read(&input.bytes);
    let Some(launch) = trace.launches.into_iter().find(|launch| launch.line == span.line) else {
        return Ok(None);
    };
    let folder = unpacked(facts, traced.kernel_evidence)?;
    Ok(Some(Traced { launch, place: facts.place(traced.event), folder }))
}

impl Traced {
    /// The folder that holds its code.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A tensor by its argument's name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.launch.tensors().find(|(known, _)| *known == name).map(|(_, tensor)| tensor)
    }

    /// An argument that is neither a tensor nor an integer, as a number.
    pub fn other(&self, name: &str) -> Option<&str> {
        self.launch.arguments.iter().find_map(|(known, value)| match value {
            Argument::Other(text) if known == name && text.parse::<f64>().is_ok() => Some(text.as_str()),
            _ => None,
        })
    }

    /// Its grid as the driver takes it.
    pub fn grid(&self) -> Option<[u32; 3]> {
        let [x, y, z] = self.launch.grid?.map(|size| u32::try_from(size).ok().filter(|size| *size > 0));
        Some([x?, y?, z?])
    }
}

/// Bytes from a tensor's first element to the end of its last, when the size `from` of a dimension is `to`.
pub(super) fn bytes(tensor: &Tensor, from: u64, to: u64) -> Option<u64> {
    let element = tensor.element_bytes.filter(|bytes| (1..=16).contains(bytes))?;
    let sizes: Vec<u64> = tensor.shape.iter().map(|size| if *size == from { to } else { *size }).collect();
    if sizes.contains(&0) {
        return Some(0);
    }
    let last = match tensor.strides.len() == sizes.len() {
        true => sizes.iter().zip(&tensor.strides).try_fold(0_u64, |sum, (size, stride)| {
            sum.checked_add((size - 1).checked_mul(u64::try_from(*stride).ok()?)?)
        })?,
        // Strides that were not recorded: elements end to end.
        false => sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))?.checked_sub(1)?,
    };
    last.checked_add(1)?.checked_mul(element)
}

/// The texts of a compilation that a trace recorded, as a cache entry.
pub(super) fn unpacked(facts: &Facts<'_>, kernel: EvidenceId) -> Result<tempfile::TempDir> {
    let event = match facts.case.get(kernel).map(|evidence| &evidence.fact) {
        Some(Fact::Event(event)) => event,
        _ => return Err(missing("the traced kernel has no record", "add the Triton cache folder")),
    };
    let record = facts
        .inputs
        .get(event.span.input.0 as usize)
        .filter(|input| input.kind == InputKind::Tritonparse)
        .and_then(|input| input.bytes.get(usize::try_from(event.span.byte).ok()?..))
        .and_then(|rest| rest.split(|byte| *byte == b'\n').next())
        .filter(|record| record.len() <= RECORD_LIMIT_BYTES)
        .and_then(|record| serde_json::from_slice::<Json>(record).ok());
    let payload = record.as_ref().and_then(|record| record.get("payload"));
    let text = |ending: &str| {
        let files = payload?.get("file_content")?.as_object()?;
        files.iter().find(|(name, _)| name.ends_with(ending))?.1.as_str()
    };
    let (Some(metadata), Some(ptx)) = (payload.and_then(|payload| payload.get("metadata")), text(".ptx"))
    else {
        return Err(missing(
            format!("{}: the record of the traced kernel holds no PTX", facts.place(event)),
            "add the Triton cache folder to the inputs, and leave the trace out",
        ));
    };
    let folder = tempfile::tempdir().map_err(cannot_write)?;
    let write = |ending: &str, text: &str| {
        let path: PathBuf = folder.path().join(format!("kernel.{ending}"));
        std::fs::write(path, text).map_err(cannot_write)
    };
    write("json", &metadata.to_string())?;
    write("ptx", ptx)?;
    if let Some(ttir) = text(".ttir") {
        write("ttir", ttir)?;
    }
    Ok(folder)
}

fn cannot_write(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Output, "a temporary folder can't be used").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[u64], strides: &[i64], element_bytes: u64) -> Tensor {
        Tensor {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            element_bytes: Some(element_bytes),
            ..Tensor::default()
        }
    }

    #[test]
    fn a_tensor_reaches_as_far_as_its_strides_say() {
        let rows = tensor(&[234_624, 9_216], &[9_216, 1], 2);
        assert_eq!(bytes(&rows, 234_624, 234_624), Some(234_624 * 9_216 * 2));
        assert_eq!(bytes(&rows, 234_624, 233_008), Some(233_008 * 9_216 * 2));
        assert_eq!(
            bytes(&rows, 7, 8),
            Some(234_624 * 9_216 * 2),
            "a size that is no dimension changes nothing"
        );
        // The last row of a view into a wider parent ends with its own last element.
        assert_eq!(bytes(&tensor(&[3, 4], &[10, 1], 4), 0, 0), Some(96));
        assert_eq!(bytes(&tensor(&[3, 4], &[], 4), 0, 0), Some(48));
        assert_eq!(bytes(&tensor(&[], &[], 8), 0, 0), Some(8));
        assert_eq!(bytes(&tensor(&[0, 4], &[4, 1], 4), 9, 9), Some(0));
        assert_eq!(bytes(&tensor(&[3], &[-1], 4), 0, 0), None);
        assert_eq!(bytes(&tensor(&[u64::MAX, 9], &[9, 1], 4), 0, 0), None);
    }
}
