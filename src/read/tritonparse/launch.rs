//! One `launch` record: the kernel, its grid and its arguments.
//!
//! In: a decoded line. Out: [`Launch`]. A tensor's `data_ptr` already stands at its storage offset; strides and shape say
//! how far a kernel can reach from there.

use crate::read::event::Place;
use crate::read::loose_json::Json;
use crate::read::plain::{Plain, Value};

use super::At;

/// Longest name or text that is kept.
const TEXT_LIMIT: usize = 200;
/// Most arguments of one launch that are kept; real kernels have tens.
const ARGUMENT_LIMIT: usize = 256;
/// Most dimensions of a tensor; PyTorch allows 64.
const DIMENSION_LIMIT: usize = 64;

/// A launch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    /// Line of the record, counted from 1.
    pub line: u64,
    /// Offset of the record.
    pub byte: usize,
    /// Process.
    pub pid: Option<u32>,
    /// Kernel.
    pub kernel: String,
    /// Hash of the compilation that ran.
    pub hash: Option<String>,
    /// Blocks by axis; axes that the record leaves out have one.
    pub grid: Option<[u64; 3]>,
    /// Stream handle.
    pub stream: Option<i64>,
    /// CUDA device ordinal that the tensors lie on.
    pub device: Option<u32>,
    /// Arguments, in the order of the kernel's signature.
    pub arguments: Vec<(String, Argument)>,
    /// The innermost line of the program, no library's, that launched it.
    pub launched_from: Option<Place>,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A tensor.
    Tensor(Tensor),
    /// An integer or truth value.
    Integer(i64),
    /// Anything else, as text.
    Other(String),
}

/// A tensor, as PyTorch described it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tensor {
    /// Sizes in elements.
    pub shape: Vec<u64>,
    /// Strides in elements; empty where not recorded.
    pub strides: Vec<i64>,
    /// Element type, without `torch.`.
    pub dtype: Option<String>,
    /// Elements between the storage's start and the first one.
    pub storage_offset: Option<u64>,
    /// Address of the first element.
    pub data_ptr: Option<u64>,
    /// Bytes of an element.
    pub element_bytes: Option<u64>,
}

impl Launch {
    /// Whether both launch the same code with the same arguments; addresses may differ.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same = |(left, right): (&(String, Argument), &(String, Argument))| {
            left.0 == right.0
                && match (&left.1, &right.1) {
                    (Argument::Tensor(a), Argument::Tensor(b)) => {
                        a.shape == b.shape && a.strides == b.strides
                    }
                    (a, b) => a == b,
                }
        };
        self.kernel == other.kernel
            && self.hash == other.hash
            && self.grid == other.grid
            && self.arguments.len() == other.arguments.len()
            && self.arguments.iter().zip(&other.arguments).all(same)
    }

    /// Its integers, by name.
    pub fn integers(&self) -> impl Iterator<Item = (&str, i64)> {
        self.arguments.iter().filter_map(|(name, value)| match value {
            Argument::Integer(number) => Some((name.as_str(), *number)),
            _ => None,
        })
    }

    /// Its tensors, by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.arguments.iter().filter_map(|(name, value)| match value {
            Argument::Tensor(tensor) => Some((name.as_str(), tensor)),
            _ => None,
        })
    }
}

/// Reads a record; none where it names no kernel.
pub(super) fn read(json: &Json<'_>, at: At) -> Option<Launch> {
    let (plain, root) = (&json.plain, json.root);
    let get = |key: &str| plain.get(root, key);
    let metadata = get("compilation_metadata");
    let of_metadata = |key: &str| metadata.and_then(|metadata| plain.get(metadata, key));
    let kernel = text(plain, get("name").or_else(|| of_metadata("name"))?)?;
    let arguments = arguments(plain, get("extracted_args"));
    let device = get("extracted_args").and_then(|args| device(plain, args));
    Some(Launch {
        line: at.line,
        byte: at.byte,
        pid: get("pid").and_then(|pid| u32::try_from(plain.integer(pid)?).ok()),
        kernel,
        hash: of_metadata("hash").and_then(|hash| text(plain, hash)),
        grid: get("grid").and_then(|grid| dims(plain, grid)),
        stream: get("stream").and_then(|stream| plain.integer(stream)),
        device,
        arguments,
        launched_from: get("stack").and_then(|stack| innermost(plain, stack)),
    })
}

/// A text of bounded length.
pub(super) fn text(plain: &Plain<'_>, value: Value) -> Option<String> {
    plain.text(value).map(shortened)
}

/// At most [`TEXT_LIMIT`] characters.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(TEXT_LIMIT).collect()
}

fn dims(plain: &Plain<'_>, grid: Value) -> Option<[u64; 3]> {
    let size = |value: &Value| plain.integer(*value).and_then(|size| u64::try_from(size).ok());
    match plain.items(grid) {
        [x] => Some([size(x)?, 1, 1]),
        [x, y] => Some([size(x)?, size(y)?, 1]),
        [x, y, z] => Some([size(x)?, size(y)?, size(z)?]),
        _ => None,
    }
}

fn arguments(plain: &Plain<'_>, args: Option<Value>) -> Vec<(String, Argument)> {
    let pairs = args.into_iter().flat_map(|args| plain.pairs(args).collect::<Vec<_>>());
    pairs
        .take(ARGUMENT_LIMIT)
        .filter_map(|(name, value)| Some((text(plain, name)?, argument(plain, value)?)))
        .collect()
}

fn argument(plain: &Plain<'_>, value: Value) -> Option<Argument> {
    let get = |key: &str| plain.get(value, key);
    // triton_kernels nests a tensor as storage → data; a tensor descriptor has a base.
    let inner = get("base")
        .or_else(|| get("storage").and_then(|storage| plain.get(storage, "data")))
        .or_else(|| get("data"));
    if let Some(tensor) = tensor(plain, value).or_else(|| tensor(plain, inner?)) {
        return Some(Argument::Tensor(tensor));
    }
    match get("value") {
        Some(Value::Int(number)) => Some(Argument::Integer(number)),
        Some(Value::Bool(flag)) => Some(Argument::Integer(i64::from(flag))),
        Some(other) => plain.shown(other).map(|text| Argument::Other(shortened(&text))),
        None => text(plain, get("repr")?).map(Argument::Other),
    }
}

fn tensor(plain: &Plain<'_>, value: Value) -> Option<Tensor> {
    let get = |key: &str| plain.get(value, key);
    let dims = plain.items(get("shape")?);
    // A description without an address, a stride or a type is no tensor's.
    get("data_ptr").or_else(|| get("stride")).or_else(|| get("numel"))?;
    if dims.len() > DIMENSION_LIMIT {
        return None;
    }
    let shape: Option<Vec<u64>> =
        dims.iter().map(|size| plain.integer(*size).and_then(|size| u64::try_from(size).ok())).collect();
    let shape = shape?;
    let strides: Option<Vec<i64>> = get("stride")
        .map(|list| plain.items(list))
        .unwrap_or(&[])
        .iter()
        .map(|stride| plain.integer(*stride))
        .collect();
    Some(Tensor {
        strides: strides.filter(|strides| strides.len() == shape.len()).unwrap_or_default(),
        shape,
        dtype: get("dtype")
            .and_then(|dtype| text(plain, dtype))
            .map(|dtype| dtype.trim_start_matches("torch.").to_owned()),
        storage_offset: get("storage_offset")
            .and_then(|offset| plain.integer(offset))
            .and_then(|offset| u64::try_from(offset).ok()),
        data_ptr: get("data_ptr").and_then(|address| pointer(plain, address)).filter(|address| *address != 0),
        element_bytes: get("element_size")
            .and_then(|size| plain.integer(size))
            .and_then(|size| u64::try_from(size).ok()),
    })
}

/// `"0x7f48c0000000"`, or a number.
fn pointer(plain: &Plain<'_>, value: Value) -> Option<u64> {
    match plain.text(value) {
        Some(text) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        None => plain.integer(value).and_then(|address| u64::try_from(address).ok()),
    }
}

/// The ordinal of `"cuda:3"` on the first tensor that names one.
fn device(plain: &Plain<'_>, args: Value) -> Option<u32> {
    plain
        .pairs(args)
        .take(ARGUMENT_LIMIT)
        .find_map(|(_, value)| plain.text(plain.get(value, "device")?)?.strip_prefix("cuda:")?.parse().ok())
}

/// Parts of the paths of libraries. A checkout of Triton is told by its own folders: people call theirs `triton`, too.
const LIBRARIES: [&str; 9] = [
    "site-packages",
    "dist-packages",
    "/lib/python3",
    "/tritonparse/",
    "/triton/runtime/",
    "/triton/compiler/",
    "/triton/backends/",
    "/triton/knobs.py",
    "/torch/_inductor/",
];

/// The innermost frame that is the program's own: the stack ends in the launcher's and the tracer's frames.
fn innermost(plain: &Plain<'_>, stack: Value) -> Option<Place> {
    let frames = plain.items(stack);
    frames.iter().rev().find_map(|frame| {
        let file = text(plain, plain.get(*frame, "filename")?)?;
        let library = file.starts_with('<') || LIBRARIES.iter().any(|part| file.contains(part));
        if library || file.is_empty() {
            return None;
        }
        Some(Place {
            file,
            line: plain.get(*frame, "line").and_then(|line| u32::try_from(plain.integer(line)?).ok()),
            function: plain.get(*frame, "name").and_then(|name| text(plain, name)),
        })
    })
}
