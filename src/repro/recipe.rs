//! What a repro is made of: program, sizes, sides, what must come out, and where each value came from.
//!
//! In: nothing; plain types. Out: [`Recipe`], which is also `case.json`: the program reads it, and so does `--verify`.
//! Everything in it is data. A folder may come from somebody else, so what is read back is checked by [`Recipe::read`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::probe::protocol::Fill;
use crate::tables::class::FailureClass;

/// Name of this format.
pub const SCHEMA: &str = "warpfault/repro/1";

/// Longest `case.json` that is read, in bytes.
pub const LIMIT_BYTES: usize = 1 << 20;

/// A kind of repro.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A Triton kernel at sizes around its boundary.
    Triton,
    /// A host segmentation fault under faulthandler.
    Segfault,
    /// A PyTorch operator call.
    Operator,
    /// One CUDA C++ file.
    Cuda,
    /// A captured CUDA graph whose input is freed before the replay.
    Graph,
    /// Ranks that disagree about a collective.
    Collective,
}

impl Kind {
    /// As on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Triton => "triton",
            Self::Segfault => "segfault",
            Self::Operator => "operator",
            Self::Cuda => "cuda",
            Self::Graph => "graph",
            Self::Collective => "collective",
        }
    }
}

/// A side of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Must pass.
    Pass,
    /// Must fail.
    Fail,
}

impl Side {
    /// `pass` or `fail`: also the argument of `run.sh`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
        }
    }
}

/// A repro.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// [`SCHEMA`].
    pub schema: String,
    /// One sentence: what it shows.
    pub shows: String,
    /// What must come out of the failing side.
    pub expect: Expect,
    /// The rows of the table that `run.sh` prints, by rising size.
    pub rows: Vec<Row>,
    /// Why more than one size is called safe, where more than one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<String>,
    /// Which row is run by `run.sh pass` and which by `run.sh fail`.
    pub sides: Sides,
    /// Rows nearer to the boundary that `--verify` tries in their place.
    pub closer: Option<Sides>,
    /// Sizes that `--verify` may make smaller.
    pub sizes: BTreeMap<String, Size>,
    /// The program's own part.
    pub program: Program,
    /// Variables that `run.sh` sets.
    pub environment: BTreeMap<String, String>,
    /// Most seconds of one row.
    pub deadline_s: u64,
    /// Values with where each came from.
    pub values: Vec<Value>,
    /// Versions, as far as the inputs tell them.
    pub versions: BTreeMap<String, String>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// What `--verify` tried, once it has.
    pub tried: Vec<String>,
}

/// What must come out of the failing side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// The class.
    pub class: String,
    /// The status as `domain:number`, where the evidence has one.
    pub code: Option<String>,
    /// The kernel at fault, where the evidence names one that the repro runs too.
    pub kernel: Option<String>,
    /// The collective that must not finish.
    pub collective: Option<String>,
    /// Texts of which the failing side prints one: extended regular expressions.
    pub text: Vec<String>,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What the program is given.
    pub key: String,
    /// For people.
    pub label: String,
    /// What must happen; none where nothing tells: the row is shown and not judged.
    pub expect: Option<Side>,
}

/// One row of either side, by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sides {
    /// The one that must pass.
    pub pass: String,
    /// The one that must fail.
    pub fail: String,
}

/// A size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Its value.
    pub value: u64,
    /// The least that makes sense.
    pub least: u64,
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// Its name.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
    /// The line, file or reason.
    pub from: String,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It stands in an input.
    Read,
    /// The engineer gave it.
    Given,
    /// It follows from others.
    Computed,
    /// Nobody said it.
    Assumed,
}

impl Value {
    /// A value.
    pub fn new(
        name: impl Into<String>,
        value: impl ToString,
        origin: Origin,
        from: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), value: value.to_string(), origin, from: from.into() }
    }
}

/// A program's own part of the recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Program {
    /// A compiled Triton kernel, launched through the driver.
    TritonReplay(TritonReplay),
    /// The user's Triton kernel, compiled anew.
    TritonSource(TritonSource),
    /// The call of the innermost Python frame.
    SegfaultCall {
        /// A function of `ctypes`.
        function: String,
        /// The address that it is given.
        address: u64,
    },
    /// The user's own script.
    SegfaultScript {
        /// Its name in the folder.
        script: String,
        /// Its arguments on the failing side.
        fail_arguments: Vec<String>,
        /// Its arguments on the passing side.
        pass_arguments: Vec<String>,
    },
    /// A PyTorch operator with one index outside its table.
    Operator {
        /// Which.
        operator: Operator,
        /// The value that is wrong, and its position among the indices.
        bad_index: i64,
        /// Its position, counted over all indices.
        position: u64,
    },
    /// A CUDA C++ kernel that forms `row * stride + column` in 32 bits.
    CudaRows {
        /// The kernel's name, as the evidence has it.
        kernel: String,
        /// Columns of a row.
        columns: u64,
        /// Bytes of an element: 1, 2, 4 or 8.
        element_bytes: u32,
    },
    /// A CUDA C++ gather with one index far outside its table.
    CudaGather {
        /// The kernel's name, as the evidence has it.
        kernel: String,
        /// Threads of a block.
        threads: u64,
        /// The thread, counted over the grid, whose index is wrong.
        position: u64,
        /// That index.
        bad_index: u64,
    },
    /// A captured graph.
    Graph,
    /// Ranks and their collectives.
    Collective(Collective),
    /// Ranks and their windows of symmetric memory.
    Symmetric {
        /// What is wrong.
        fault: WindowFault,
        /// The rank that differs.
        odd_rank: u32,
    },
}

/// A compiled Triton kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TritonReplay {
    /// The kernel's symbol.
    pub entry: String,
    /// The swept argument.
    pub sweep: String,
    /// Files with its code, the best first.
    pub images: Vec<String>,
    /// Launches by key.
    pub launches: BTreeMap<String, Launch>,
    /// Backward kernels that run at the same sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backward: Vec<Replayed>,
}

/// A further compiled kernel, under keys of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// The kernel's symbol.
    pub entry: String,
    /// Files with its code, the best first.
    pub images: Vec<String>,
    /// Launches by key.
    pub launches: BTreeMap<String, Launch>,
}

/// The user's Triton kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TritonSource {
    /// The kernel's name.
    pub entry: String,
    /// The swept argument.
    pub sweep: String,
    /// The user's file in the folder.
    pub source: String,
    /// Values of compile-time parameters.
    pub constants: BTreeMap<String, i64>,
    /// Warps of a block.
    pub warps: u32,
    /// Launches by key.
    pub launches: BTreeMap<String, Launch>,
    /// Backward kernels of the same file that run at the same sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backward: Vec<Compiled>,
}

/// A further kernel of the user's file, under keys of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// The kernel's name.
    pub entry: String,
    /// Values of compile-time parameters.
    pub constants: BTreeMap<String, i64>,
    /// Warps of a block.
    pub warps: u32,
    /// Launches by key.
    pub launches: BTreeMap<String, Launch>,
}

/// A launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Blocks by axis.
    pub grid: [u32; 3],
    /// Threads of a block by axis.
    pub block: [u32; 3],
    /// Dynamic shared memory.
    pub shared_bytes: u32,
    /// Arguments in the kernel's order.
    pub arguments: Vec<Argument>,
}

/// An argument of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// The parameter's name.
    pub name: String,
    /// What is passed.
    #[serde(flatten)]
    pub value: ArgumentValue,
}

/// What is passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ArgumentValue {
    /// A buffer on the GPU.
    Buffer {
        /// Its size.
        bytes: u64,
        /// PyTorch's name of its element type, where known.
        dtype: Option<String>,
        /// What it holds.
        fill: Fill,
    },
    /// A number.
    Number {
        /// Its bytes, little endian, in hexadecimal.
        hex: String,
        /// The number as text.
        shown: String,
    },
    /// A null pointer.
    Null,
}

/// An operator of PyTorch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// `torch.nn.functional.embedding(indices, table)`
    Embedding,
    /// `table[indices]`
    Index,
    /// `torch.gather(table, 0, indices)`
    Gather,
    /// `torch.nn.functional.cross_entropy(logits, labels)`
    CrossEntropy,
}

/// Ranks and their collectives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    /// The operation: `all_reduce`, `all_gather`, `broadcast`, `reduce_scatter`.
    pub operation: String,
    /// PyTorch's name of the element type.
    pub dtype: String,
    /// What is wrong.
    pub fault: CollectiveFault,
    /// The rank that differs.
    pub odd_rank: u32,
    /// Seconds after which the watchdog ends the job.
    pub timeout_s: u64,
}

/// What is wrong between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectiveFault {
    /// One rank gives another number of elements.
    Size,
    /// One rank leaves a call out.
    Missing,
}

/// What is wrong with the windows of symmetric memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowFault {
    /// One rank's has another size.
    Size,
    /// The tensor lies in none.
    Outside,
}

/// A file of the folder that is copied as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Its path below the folder.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A recipe with the files that go with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The recipe.
    pub recipe: Recipe,
    /// Files that are copied as they are.
    pub assets: Vec<Asset>,
}

impl Recipe {
    /// A recipe with two rows, `pass` and `fail`, under these labels, and nothing else filled in.
    #[must_use]
    pub fn two_sided(shows: String, expect: Expect, program: Program, [pass, fail]: [String; 2]) -> Self {
        let row = |side: Side, label| Row { key: side.name().to_owned(), label, expect: Some(side) };
        Self {
            schema: SCHEMA.to_owned(),
            shows,
            expect,
            rows: vec![row(Side::Pass, pass), row(Side::Fail, fail)],
            numbers: None,
            sides: Sides { pass: "pass".to_owned(), fail: "fail".to_owned() },
            closer: None,
            sizes: BTreeMap::new(),
            program,
            environment: BTreeMap::new(),
            deadline_s: 120,
            values: Vec::new(),
            versions: BTreeMap::new(),
            notes: Vec::new(),
            tried: Vec::new(),
        }
    }

    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.program {
            Program::TritonReplay(_) | Program::TritonSource(_) => Kind::Triton,
            Program::SegfaultCall { .. } | Program::SegfaultScript { .. } => Kind::Segfault,
            Program::Operator { .. } => Kind::Operator,
            Program::CudaRows { .. } | Program::CudaGather { .. } => Kind::Cuda,
            Program::Graph => Kind::Graph,
            Program::Collective(_) | Program::Symmetric { .. } => Kind::Collective,
        }
    }

    /// The class that must come out.
    #[must_use]
    pub fn class(&self) -> Option<FailureClass> {
        FailureClass::ALL.into_iter().find(|class| class.name() == self.expect.class)
    }

    /// Reads `case.json`.
    ///
    /// # Errors
    /// `Limit` for more than a megabyte, `Format` for what is none of ours or doesn't hang together.
    pub fn read(text: &[u8]) -> Result<Self> {
        if text.len() > LIMIT_BYTES {
            return Err(Error::new(ErrorKind::Limit, format!("{} bytes are no case.json", text.len())));
        }
        let recipe: Self = serde_json::from_slice(text)
            .map_err(|error| Error::new(ErrorKind::Format, "is no case.json of a repro").because(error))?;
        let has = |key: &String| recipe.rows.iter().any(|row| row.key == *key) || recipe.launch(key);
        let sides = [Some(&recipe.sides), recipe.closer.as_ref()];
        let whole = sides.into_iter().flatten().all(|sides| has(&sides.pass) && has(&sides.fail));
        if recipe.schema != SCHEMA || recipe.class().is_none() || !whole {
            return Err(Error::new(ErrorKind::Format, format!("is no {SCHEMA}")));
        }
        Ok(recipe)
    }

    fn launch(&self, key: &str) -> bool {
        match &self.program {
            Program::TritonReplay(replay) => replay.launches.contains_key(key),
            Program::TritonSource(source) => source.launches.contains_key(key),
            // A row's number of rows is its key.
            Program::CudaRows { .. } => key.parse::<u64>().is_ok(),
            _ => false,
        }
    }

    /// A size's value.
    #[must_use]
    pub fn size(&self, name: &str) -> Option<u64> {
        self.sizes.get(name).map(|size| size.value)
    }
}
