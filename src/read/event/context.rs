//! What stands around a failure: advice, commands, settings, shapes, and lines that nobody knows better.
//!
//! In: nothing; plain types. Out: the types that readers fill. Each says what was printed, never why.

use crate::arith::model::ModelConfig;
use serde::Serialize;

/// Advice under an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// `CUDA kernel errors might be asynchronously reported at some other API call`.
    MayBeAsynchronous,
    /// `For debugging consider passing CUDA_LAUNCH_BLOCKING=1`.
    LaunchBlocking,
    /// `Compile with TORCH_USE_CUDA_DSA`.
    DeviceAssertions,
    /// `Search for cudaErrorX in https://docs…`.
    Search,
}

/// A command line at the head of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// Words, as the shell would split them.
    pub words: Vec<String>,
    /// `NAME=VALUE` settings before the program.
    pub environment: Vec<(String, String)>,
}

/// A fact about the machine or the job: `("CUDA_LAUNCH_BLOCKING", "1")`, `("torch", "2.11.0")`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFact {
    /// Name: an environment variable in upper case, else a lower-case key (`torch`, `driver`, `cuda`, `gpu`, `compute_capability`, `nccl`).
    pub name: String,
    /// Value as printed.
    pub value: String,
}

/// A value with its name: a token count near a failure, or what the engineer sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedValue {
    /// Name as printed or given.
    pub name: String,
    /// Value as printed or given.
    pub value: String,
}

impl NamedValue {
    /// The value as a size.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.value.trim().replace(['_', ','], "").parse().ok().filter(|size| *size > 0)
    }
}

/// What a model's `config.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelFacts {
    /// `model_type`.
    pub model_type: Option<String>,
    /// The sizes.
    pub config: ModelConfig,
    /// Element type as PyTorch names it.
    pub dtype: Option<String>,
}

/// A shape, size or count in the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShapeMention {
    /// Dimensions in elements, outermost first.
    pub dims: Vec<u64>,
    /// Names, where the log gives them; as long as `dims` or empty.
    pub names: Vec<String>,
    /// Strides in elements, where given.
    pub strides: Vec<i64>,
    /// Element type as printed (`torch.bfloat16` → `bfloat16`).
    pub dtype: Option<String>,
    /// What the log calls it (`hidden`, `feat`, `input`).
    pub label: Option<String>,
    /// How it was printed.
    pub form: ShapeForm,
    /// Address of the first element, where given.
    pub address: Option<u64>,
    /// Steps that the log shows after it and before the next failure; none where it shows none, or the shape is small.
    pub passed: Option<Passed>,
    /// Whether it is a weight, a cache, a file or the like, whose size a program prints whatever fails later.
    pub stored: bool,
    /// Line of the same text that shows a kernel with 64-bit indices; none where it shows none, or the shape is small.
    pub wide: Option<u64>,
}

impl ShapeMention {
    /// Whether its dimensions make more elements than 2³¹−1.
    #[must_use]
    pub fn passes_int32(&self) -> bool {
        self.dims
            .iter()
            .try_fold(1_u64, |product, dim| product.checked_mul(*dim))
            .is_none_or(|count| count > i32::MAX as u64)
    }
}

/// How far a program came with a shape before it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Passed {
    /// Steps that it got through at least.
    pub steps: u64,
    /// Steps at which the log prints the shape.
    pub shown: u64,
    /// Line that tells of the last of the steps.
    pub line: u64,
    /// Number of the step that stands there.
    pub last_step: Option<u64>,
}

/// How a shape was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapeForm {
    /// `torch.Size([4, 128])`, `shape=(4, 128)`.
    #[default]
    Shape,
    /// `M=234624 N=9216` or other named single values: each dimension one name.
    Named,
    /// NumelIn/NumelOut, `elements=…`.
    Numel,
    /// A launch's grid or block.
    Launch,
    /// A tensor of a model at a number of tokens: computed, printed by nobody.
    Model,
    /// A tensor argument of the last launch in a trace.
    Argument,
}

/// A line that says that something failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnknownFailure {
    /// The text.
    pub message: String,
}

/// A site's own signature (playbooks) matched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignatureMatch {
    /// Signature id.
    pub id: String,
    /// Class that the signature names.
    pub class: String,
    /// Named captures.
    pub fields: Vec<(String, String)>,
}
