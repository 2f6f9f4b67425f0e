//! `probe.toml`: everything that a probe needs, written out for reuse.
//!
//! In: TOML text, or settings. Out: a [`Spec`], or TOML text. It opens no file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// Everything that a probe needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// Version of this format: 1.
    pub schema: u32,
    /// The cache folder, cubin, PTX or CUDA C++ source; or a shape, for the built-in reference kernel.
    pub path: String,
    /// The kernel's name, symbol or cache key.
    pub entry: Option<String>,
    /// The argument to sweep.
    pub sweep: Option<String>,
    /// The fixed kernel.
    pub control: Option<String>,
    /// Its name, where `control` holds several.
    pub control_entry: Option<String>,
    /// One to three expressions of arguments, as in `cdiv(M, 128), cdiv(N, 128)`.
    pub grid: Option<String>,
    /// Threads of a block, where the code doesn't fix them.
    pub block: Option<String>,
    /// Dynamic shared memory in bytes, where the code doesn't fix it.
    pub shared_bytes: Option<u32>,
    /// What lies under buffers.
    pub memory: MemoryMode,
    /// Which sides are guarded closely.
    pub guard: Guard,
    /// Further sizes to try.
    pub also: Vec<i64>,
    /// Element type, for the reference kernel.
    pub dtype: Option<String>,
    /// Compile a source with NVRTC even where nvcc is there.
    pub nvrtc: bool,
    /// The device's number.
    pub device: u32,
    /// Deadline of one run in seconds.
    pub timeout_s: u64,
    /// Most physical device memory for buffers, in MiB.
    pub memory_limit_mib: u64,
    /// Arguments by name.
    pub set: BTreeMap<String, String>,
    /// What arguments are multiples of, where the code doesn't say.
    pub lattice: BTreeMap<String, u64>,
}

/// What lies under buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    /// One small piece mapped again and again, guards on both sides: tests addresses.
    #[default]
    Guarded,
    /// Memory of its own with guards on both sides: contents count.
    Real,
    /// Ordinary allocations, no guards.
    Plain,
}

/// Which sides of buffers are guarded closely.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// The end; one small run guards the start.
    #[default]
    End,
    /// The start.
    Start,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            schema: 1,
            path: String::new(),
            entry: None,
            sweep: None,
            control: None,
            control_entry: None,
            grid: None,
            block: None,
            shared_bytes: None,
            memory: MemoryMode::Guarded,
            guard: Guard::End,
            also: Vec::new(),
            dtype: None,
            nvrtc: false,
            device: 0,
            timeout_s: 20,
            memory_limit_mib: 2_048,
            set: BTreeMap::new(),
            lattice: BTreeMap::new(),
        }
    }
}

impl Spec {
    /// Reads `probe.toml`.
    ///
    /// # Errors
    /// `Format` with the line and key at fault.
    pub fn parse(text: &str) -> Result<Self> {
        let spec: Self = toml::from_str(text)
            .map_err(|error| Error::new(ErrorKind::Format, "is no probe.toml").because(error))?;
        if spec.schema != 1 {
            let message = format!("schema {} is not 1, the only one that this release knows", spec.schema);
            return Err(Error::new(ErrorKind::Format, message));
        }
        Ok(spec)
    }

    /// Writes it.
    ///
    /// # Errors
    /// `Output`, where a value can't be written as TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| {
            Error::new(ErrorKind::Output, "the settings can't be written as TOML").because(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut spec =
            Spec { path: "cache".into(), sweep: Some("M".into()), also: vec![333_312], ..Spec::default() };
        spec.set.insert("N".into(), "9216".into());
        spec.lattice.insert("M".into(), 16);
        let text = spec.to_toml().unwrap();
        assert_eq!(Spec::parse(&text).unwrap(), spec);
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = Spec::parse("path = 'x'\ngird = '1'\n").unwrap_err();
        assert!(error.to_string().contains("gird"), "{error}");
        assert!(Spec::parse("schema = 2").is_err());
    }
}
