//! What a repro is made from, and where each of it stands.
//!
//! In: case, verdict, inputs, what the engineer gives. Out: [`Facts`] with the questions that every kind asks. It decides
//! nothing about kinds.

use std::collections::BTreeMap;

use super::recipe::{Expect, Origin, Value};
use crate::case::{Case, EvidenceId, Fact};
use crate::error::{Error, ErrorKind, Result};
use crate::probe::host::Program;
use crate::read::event::{Data, Event};
use crate::source::{Input, InputKind};
use crate::tables::class::FailureClass;
use crate::verdict::Verdict;

/// A program's source that the engineer gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFile {
    /// Its name, without folders.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// What a repro is made from.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The evidence.
    pub case: &'a Case,
    /// The verdict.
    pub verdict: &'a Verdict,
    /// The inputs.
    pub inputs: &'a [Input],
    /// `--set NAME=VALUE`.
    pub given: &'a BTreeMap<String, String>,
    /// The kernel's name or cache key.
    pub entry: Option<&'a str>,
    /// The user's own file.
    pub source: Option<&'a UserFile>,
    /// This very program, which compiles sources for the probe.
    pub program: &'a Program,
}

/// Something is missing: what, and which option gives it.
pub(super) fn missing(what: impl Into<String>, option: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, what).hint(option)
}

/// A path's last part.
pub(super) fn base(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

impl<'a> Facts<'a> {
    /// Where an event stands: `run.log:2`.
    pub fn place(&self, event: &Event) -> String {
        let Some(input) = self.case.inputs().get(event.span.input.0 as usize) else {
            return "given on the command line".to_owned();
        };
        match event.span.line {
            0 => base(&input.path).to_owned(),
            line => format!("{}:{line}", base(&input.path)),
        }
    }

    /// The same for a piece of evidence.
    pub fn place_of(&self, id: EvidenceId) -> String {
        match self.case.get(id).map(|evidence| &evidence.fact) {
            Some(Fact::Event(event)) => self.place(event),
            _ => "derived".to_owned(),
        }
    }

    /// The first event of which `pick` makes something, with where it stands.
    pub fn first<T: 'a>(&self, pick: impl Fn(&'a Data) -> Option<T> + 'a) -> Option<(String, T)> {
        self.case.pick(pick).next().map(|(_, event, found)| (self.place(event), found))
    }

    /// A size that the engineer gave.
    ///
    /// # Errors
    /// `Usage` for what is no positive number.
    pub fn given_size(&self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.given.get(name) else { return Ok(None) };
        let number = text.replace(['_', ','], "").parse::<u64>().ok().filter(|number| *number > 0);
        number.map(Some).ok_or_else(|| {
            missing(format!("--set {name}={text}: expected a positive number"), "as in --set rows=1000")
        })
    }

    /// A size: given, else read, else assumed; and its provenance.
    ///
    /// # Errors
    /// `Usage` for a given one that can't be read.
    pub fn size(
        &self,
        name: &str,
        read: Option<(u64, String)>,
        assumed: (u64, &str),
    ) -> Result<(u64, Value)> {
        if let Some(size) = self.given_size(name)? {
            return Ok((size, Value::new(name, size, Origin::Given, format!("--set {name}={size}"))));
        }
        Ok(match read {
            Some((size, place)) => (size, Value::new(name, size, Origin::Read, place)),
            None => (assumed.0, Value::new(name, assumed.0, Origin::Assumed, assumed.1)),
        })
    }

    /// Switches of the failing run that change how memory or ranks behave: name, value, place.
    pub fn switches(&self) -> Vec<(String, String, String)> {
        const NAMES: [&str; 10] = [
            "CUDA_LAUNCH_BLOCKING",
            "PYTORCH_CUDA_ALLOC_CONF",
            "PYTORCH_ALLOC_CONF",
            "PYTORCH_NO_CUDA_MEMORY_CACHING",
            "CUDA_MODULE_LOADING",
            "NCCL_P2P_DISABLE",
            "NCCL_IB_DISABLE",
            "NCCL_ALGO",
            "NCCL_PROTO",
            "TORCH_NCCL_BLOCKING_WAIT",
        ];
        let mut found: Vec<(String, String, String)> = Vec::new();
        for (_, event) in self.case.events() {
            let pairs: Vec<(&String, &String)> = match &event.data {
                Data::Environment(fact) => vec![(&fact.name, &fact.value)],
                Data::Command(command) => {
                    command.environment.iter().map(|(name, value)| (name, value)).collect()
                }
                _ => Vec::new(),
            };
            for (name, value) in pairs {
                if NAMES.contains(&name.as_str()) && !found.iter().any(|(known, ..)| known == name) {
                    found.push((name.clone(), value.clone(), self.place(event)));
                }
            }
        }
        found
    }

    /// Versions that the inputs name.
    pub fn versions(&self) -> BTreeMap<String, String> {
        const NAMES: [&str; 10] = [
            "torch",
            "torch_cuda",
            "triton",
            "cuda",
            "driver",
            "nccl",
            "python",
            "gpu",
            "compute_capability",
            "vllm",
        ];
        self.case
            .pick(|data| match data {
                Data::Environment(fact) if NAMES.contains(&fact.name.as_str()) => Some(fact),
                _ => None,
            })
            .map(|(_, _, fact)| (fact.name.clone(), fact.value.clone()))
            .collect()
    }

    /// The Triton cache among the inputs.
    pub fn cache(&self) -> Option<&'a Input> {
        self.inputs.iter().find(|input| input.kind == InputKind::TritonCache && input.file.is_some())
    }

    /// What must come out: the verdict's class and status, and texts that say so.
    pub fn expect(&self) -> Expect {
        let class = self.verdict.class;
        let code =
            self.verdict.code.as_ref().and_then(|code| Some(format!("{}:{}", code.domain, code.number?)));
        Expect {
            class: class.name().to_owned(),
            code,
            kernel: None,
            collective: None,
            text: texts(class).iter().map(|text| (*text).to_owned()).collect(),
        }
    }
}

/// What a program prints when it fails in this class: extended regular expressions.
fn texts(class: FailureClass) -> &'static [&'static str] {
    match class {
        FailureClass::IllegalAddress => &[
            "an illegal memory access was encountered",
            "operation not supported on global/shared address space",
        ],
        FailureClass::MisalignedAddress => &["misaligned address"],
        FailureClass::DeviceAssert => &["device-side assert triggered"],
        FailureClass::Segfault => &["Segmentation fault", "Bus error"],
        FailureClass::Nccl => &["Watchdog caught collective operation timeout"],
        _ => &[],
    }
}
