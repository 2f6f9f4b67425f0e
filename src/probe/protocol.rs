//! What parent and child say to each other: one request in, lines of JSON out.
//!
//! In: typed requests and replies. Out: lines, and replies found in whatever a child printed. A kernel's own `printf` and
//! a driver's assert text share the child's standard output, so a reply is found by its opening and not by its line.

use serde::{Deserialize, Serialize};

/// Every reply opens with this.
pub const OPENING: &str = "{\"warpfault_probe\":1,";

/// Longest request that a child reads, in bytes.
pub const REQUEST_LIMIT_BYTES: u64 = 16 << 20;

/// What a child is asked to do. It does one thing and ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Say what the driver and the GPU are. Creates no context.
    Describe {
        /// The device's number as the driver counts.
        device: u32,
    },
    /// Compile CUDA C++ with NVRTC.
    Compile(Compile),
    /// Launch a kernel once.
    Trial(Box<Trial>),
}

/// A source to compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compile {
    /// The CUDA C++ file.
    pub source: String,
    /// Where the PTX goes.
    pub output: String,
    /// Compute capability as one number (90).
    pub architecture: u32,
}

/// One launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The device's number as the driver counts.
    pub device: u32,
    /// Code, the best first: the next one is tried where one has no code for this GPU.
    pub images: Vec<Image>,
    /// The kernel's symbol.
    pub entry: String,
    /// Blocks by axis.
    pub grid: [u32; 3],
    /// Threads of a block by axis.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// Arguments in the kernel's order.
    pub arguments: Vec<Argument>,
    /// Most physical device memory that buffers may take, in bytes.
    pub memory_limit_bytes: u64,
    /// Device memory in use before any probe came, where known.
    pub used_before_bytes: Option<u64>,
}

/// A file with code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// What it holds.
    pub kind: ImageKind,
    /// Where it lies.
    pub path: String,
}

/// What a file with code holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// Machine code.
    Cubin,
    /// PTX text, which the driver compiles.
    Ptx,
}

/// One argument of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Argument {
    /// Bytes as they stand, little endian.
    Scalar {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A pointer to a buffer that is made for this launch.
    Buffer(Buffer),
    /// A pointer as it stands; 0 is null.
    Address {
        /// The address.
        address: u64,
    },
    /// A pointer to ordinary memory of the process, which a kernel must not touch.
    Host {
        /// Its size.
        bytes: u64,
    },
    /// A pointer to device memory that was given back.
    Freed {
        /// Its size.
        bytes: u64,
        /// Whether it was handed out anew since, as a caching allocator does.
        reused: bool,
    },
}

/// A buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// The parameter's name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What its address must be a multiple of, a power of two.
    pub align: u64,
    /// What lies under it.
    pub backing: Backing,
    /// Which of its ends touches unmapped addresses.
    pub placement: Placement,
    /// What it holds.
    pub fill: Fill,
}

/// The memory under a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    /// One small piece, mapped again and again, with guards on both sides: addresses count, contents repeat.
    Aliased,
    /// Memory of its own with guards on both sides: contents count too.
    Whole,
    /// An ordinary allocation: no guard.
    Plain,
}

/// Which end of a buffer touches unmapped addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Its end: one element past it faults.
    End,
    /// Its start: one element before it faults.
    Start,
}

/// What a buffer holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Fill {
    /// Zeros.
    Zero,
    /// One number in every element.
    Value {
        /// Size of an element: 1, 2, 4 or 8.
        element_bytes: u32,
        /// The number.
        value: i64,
    },
    /// 0, 1, 2, ….
    Iota {
        /// Size of an element: 1, 2, 4 or 8.
        element_bytes: u32,
    },
    /// Numbers from `low` up to and without `high`, the same in every run.
    Random {
        /// Size of an element: 1, 2, 4 or 8.
        element_bytes: u32,
        /// Smallest.
        low: i64,
        /// One past the largest.
        high: i64,
    },
    /// The bytes of a file; zeros after its end.
    File {
        /// Where it lies.
        path: String,
    },
}

/// How far a child has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Opening the driver's library.
    Library,
    /// Starting the driver.
    Init,
    /// Creating a context.
    Context,
    /// Loading code.
    Module,
    /// Making buffers.
    Memory,
    /// Handing the launch to the driver.
    Launch,
    /// The kernel runs.
    Run,
    /// Compiling.
    Compile,
}

impl Stage {
    /// For sentences: "while …".
    #[must_use]
    pub fn doing(self) -> &'static str {
        match self {
            Self::Library => "opening the driver's library",
            Self::Init => "starting the driver",
            Self::Context => "creating a context",
            Self::Module => "loading the code",
            Self::Memory => "making buffers",
            Self::Launch => "launching",
            Self::Run => "running the kernel",
            Self::Compile => "compiling",
        }
    }
}

/// What a child says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// It has come this far.
    Stage {
        /// What it does now.
        stage: Stage,
    },
    /// The device.
    Device(Device),
    /// The source was compiled.
    Compiled {
        /// The compiler's remarks.
        log: String,
    },
    /// The launch happened.
    Trial(TrialReply),
    /// It could not do it.
    Failed(Failure),
}

/// A GPU and its driver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Marketing name.
    pub name: String,
    /// Compute capability as one number (90).
    pub compute_capability: u32,
    /// The driver's release (`580.159.04`), where NVML tells it.
    pub driver: Option<String>,
    /// The CUDA version that the driver speaks, as it tells it (13000).
    pub cuda_version: i32,
    /// Memory.
    pub memory_bytes: u64,
    /// Memory in use before the probe came, where NVML tells it.
    pub used_bytes: Option<u64>,
    /// Devices that the driver shows.
    pub devices: u32,
    /// Where it sits (`0000:00:06.0`).
    pub pci: Option<String>,
    /// Whether address ranges can be mapped by hand.
    pub guarded_memory: bool,
    /// Most dynamic shared memory of one block.
    pub shared_limit_bytes: u32,
    /// Processes that compute on it, where NVML tells them.
    pub processes: Vec<GpuProcess>,
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// Its number.
    pub pid: u32,
    /// Its memory, where known.
    pub used_bytes: Option<u64>,
}

/// A launch that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialReply {
    /// The driver's status of the launch and of the wait after it; 0 is success.
    pub code: i32,
    /// The call that returned it.
    pub call: String,
    /// From the launch to the end of the wait.
    pub ms: f64,
    /// From the start of the child to the launch.
    pub setup_ms: f64,
    /// Which of the images was used, from 0.
    pub image: u32,
    /// Bytes of all buffers as the kernel sees them.
    pub logical_bytes: u64,
    /// Physical bytes under them.
    pub physical_bytes: u64,
    /// Device memory that this process takes, its context included, where it can be told.
    pub device_bytes: Option<u64>,
    /// Where the buffers lie.
    pub buffers: Vec<Placed>,
    /// What was not as asked for.
    pub notes: Vec<String>,
}

/// Where a buffer lies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placed {
    /// The parameter's name.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Bytes between its guarded end and the first address that faults: less than its alignment.
    pub slack_bytes: u64,
    /// How often a piece was mapped.
    pub mappings: u64,
}

/// Why a child could not do it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What it did.
    pub stage: Stage,
    /// The driver's status, where a call returned one.
    pub code: Option<i32>,
    /// The call.
    pub call: Option<String>,
    /// A sentence.
    pub message: String,
}

#[derive(Serialize)]
struct Envelope<'a> {
    warpfault_probe: u32,
    #[serde(flatten)]
    reply: &'a Reply,
}

/// A reply as a line, its end included.
#[must_use]
pub fn line(reply: &Reply) -> String {
    // The types hold nothing that JSON can't; an empty line is read as no reply.
    serde_json::to_string(&Envelope { warpfault_probe: 1, reply }).unwrap_or_default() + "\n"
}

/// The reply in a line, wherever in it the reply starts.
#[must_use]
pub fn reply_in(line: &str) -> Option<Reply> {
    let text = line.get(line.find(OPENING)?..)?;
    serde_json::Deserializer::from_str(text).into_iter::<Reply>().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial() -> Reply {
        Reply::Trial(TrialReply {
            code: 700,
            call: "cuCtxSynchronize".into(),
            ms: 1.5,
            ..TrialReply::default()
        })
    }

    #[test]
    fn a_reply_survives_its_line() {
        let line = line(&trial());
        assert!(line.starts_with(OPENING) && line.ends_with("}\n"));
        assert_eq!(reply_in(&line), Some(trial()));
    }

    #[test]
    fn text_of_the_kernel_before_and_after_it_does_no_harm() {
        let line = format!("row 3 of 7{} crash.cu:22: Assertion `i < n` failed", line(&trial()).trim_end());
        assert_eq!(reply_in(&line), Some(trial()));
    }

    #[test]
    fn a_cut_reply_is_none() {
        let whole = line(&trial());
        for cut in 0..whole.len() - 2 {
            assert_eq!(reply_in(&whole[..cut]), None, "cut at {cut}");
        }
        assert_eq!(reply_in("{\"warpfault_probe\":1,\"reply\":\"sing\"}"), None);
    }

    #[test]
    fn a_request_survives_its_line() {
        let request = Request::Trial(Box::new(Trial {
            device: 0,
            images: vec![Image { kind: ImageKind::Cubin, path: "a.cubin".into() }],
            entry: "k".into(),
            grid: [1, 2, 3],
            block: [128, 1, 1],
            shared_bytes: 0,
            arguments: vec![
                Argument::Address { address: 0 },
                Argument::Scalar { bytes: vec![1, 0, 0, 0] },
                Argument::Buffer(Buffer {
                    name: "x".into(),
                    bytes: 10,
                    align: 16,
                    backing: Backing::Aliased,
                    placement: Placement::End,
                    fill: Fill::Random { element_bytes: 4, low: 0, high: 9 },
                }),
            ],
            memory_limit_bytes: 1 << 30,
            used_before_bytes: None,
        }));
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    }
}
