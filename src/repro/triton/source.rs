//! The user's own kernel, compiled anew by Triton.
//!
//! In: the user's file, the launches of the cache entry. Out: the program's part of the recipe. Compile-time parameters are
//! no arguments of the compiled kernel: they are given, or read off the file where every place in it agrees.

use std::collections::{BTreeMap, BTreeSet};

use super::super::facts::{Facts, UserFile, missing};
use super::super::recipe::{Asset, Compiled, Launch, Origin, Program, TritonSource, Value};
use super::bind::Prepared;
use crate::error::Result;
use crate::probe::target::Target;

/// The user's file in the folder.
const FILE: &str = "user_kernels.py";

/// The program's part, values with provenance, and the user's file.
pub(super) fn program(
    facts: &Facts<'_>,
    user: &UserFile,
    prepared: &Prepared,
    mut launches: BTreeMap<String, Launch>,
    backward: Vec<Compiled>,
) -> Result<(Program, Vec<Value>, Asset)> {
    let target = &prepared.job.target;
    if parameters(&user.text, &target.name).is_none() {
        return Err(missing(
            format!("{} defines no kernel {}", user.name, target.name),
            "give the file that does, or name the kernel with --entry",
        ));
    }
    let known: Vec<String> = target.parameters.iter().map(|parameter| parameter.name.clone()).collect();
    let mut values = vec![Value::new("source", &user.name, Origin::Given, "an input")];
    let (constants, found) = constants(facts, user, &target.name, &known)?;
    values.extend(found);
    // The compiler adds scratch pointers at the end; a launch through Triton doesn't name them.
    let shown = target.parameters.iter().filter(|parameter| !parameter.hidden).count();
    for launch in launches.values_mut() {
        launch.arguments.truncate(shown);
    }
    let program = Program::TritonSource(TritonSource {
        entry: target.name.clone(),
        sweep: prepared.sweep.clone(),
        source: FILE.to_owned(),
        constants,
        warps: target.block.map_or(4, |block| (block[0] / 32).max(1)),
        launches,
        backward,
    });
    Ok((program, values, Asset { path: FILE.to_owned(), bytes: user.text.clone().into_bytes() }))
}

/// Values of the compile-time parameters of a kernel, those that are not `known`: given, or read off the file where every
/// place in it agrees.
pub(super) fn constants(
    facts: &Facts<'_>,
    user: &UserFile,
    kernel: &str,
    known: &[String],
) -> Result<(BTreeMap<String, i64>, Vec<Value>)> {
    let mut constants = BTreeMap::new();
    let mut values = Vec::new();
    for name in parameters(&user.text, kernel).unwrap_or_default() {
        if known.contains(&name) {
            continue;
        }
        if let Some(size) = facts.given_size(&name)? {
            values.push(Value::new(&name, size, Origin::Given, format!("--set {name}={size}")));
            constants.insert(name, i64::try_from(size).unwrap_or(i64::MAX));
            continue;
        }
        let found: BTreeSet<i64> = settings(&user.text, &name).collect();
        match found.iter().copied().collect::<Vec<_>>().as_slice() {
            [only] => {
                let why = format!("the only {name}= in {}", user.name);
                values.push(Value::new(&name, only, Origin::Assumed, why));
                constants.insert(name, *only);
            }
            several => {
                let listed: Vec<String> = several.iter().map(i64::to_string).collect();
                let said = if listed.is_empty() { "no number".to_owned() } else { listed.join(", ") };
                let what = format!("{name} of {kernel} is compiled in; {} sets {said}", user.name);
                return Err(missing(what, format!("say which: --set {name}=128")));
            }
        }
    }
    Ok((constants, values))
}

/// Names of the functions that a file marks with `jit`.
pub(super) fn kernels(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_marked = false;
    for line in text.lines().map(str::trim_start) {
        if let Some(rest) = line.strip_prefix("def ") {
            let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("");
            if is_marked && !name.is_empty() {
                found.push(name.to_owned());
            }
            is_marked = false;
        } else if line.starts_with('@') {
            is_marked |= line.contains("jit");
        }
    }
    found
}

/// Every parameter of `def name(…)`, compile-time ones included.
fn parameters(source: &str, name: &str) -> Option<Vec<String>> {
    let plain = source.replace("constexpr", "int");
    crate::kernel::names::python_parameters(&plain, name)
}

/// Numbers that the text sets `name` to: `BLOCK_M=128`, `"BLOCK_M": 128`, `BLOCK: tl.constexpr = 128`.
fn settings<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = i64> + 'a {
    text.match_indices(name).filter_map(move |(at, _)| {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let starts = !text.get(..at)?.ends_with(word);
        let rest = text.get(at + name.len()..)?;
        let ends = !rest.starts_with(word);
        let rest = rest.trim_start_matches(['"', '\'']).trim_start();
        let value = match rest.strip_prefix(':') {
            Some(rest) => {
                rest.trim_start().trim_start_matches("tl.constexpr").trim_start().trim_start_matches('=')
            }
            None => rest.strip_prefix('=')?,
        };
        let value = value.trim_start();
        let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
        (starts && ends).then_some(())?;
        value.get(..end)?.parse().ok()
    })
}

/// PyTorch's names of the pointers' element types, read off the entry's TTIR (`%x_ptr: !tt.ptr<bf16>`).
pub(super) fn pointer_types(target: &Target) -> BTreeMap<String, String> {
    let Some(image) = target.images.first() else { return BTreeMap::new() };
    let path = std::path::Path::new(&image.path).with_extension("ttir");
    let text =
        std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let signature =
        text.find("tt.func public").and_then(|at| text.get(at..)).and_then(|rest| rest.lines().next());
    let mut types = BTreeMap::new();
    for part in signature.unwrap_or("").split('%').skip(1) {
        let Some((name, rest)) = part.split_once(": !tt.ptr<") else { continue };
        let element = rest.split(['>', ',']).next().unwrap_or("");
        if let Some(dtype) = torch_type(element) {
            types.insert(name.to_owned(), dtype.to_owned());
        }
    }
    types
}

fn torch_type(element: &str) -> Option<&'static str> {
    Some(match element {
        "bf16" => "bfloat16",
        "f16" => "float16",
        "f32" => "float32",
        "f64" => "float64",
        "i1" => "bool",
        "i8" => "int8",
        "i16" => "int16",
        "i32" => "int32",
        "i64" => "int64",
        "f8E4M3FN" => "float8_e4m3fn",
        "f8E5M2" => "float8_e5m2",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_in_each_of_its_forms() {
        let text = "k[g](x, BLOCK=128)\nconfig = {\"BLOCK\": 64}\ndef k(x, BLOCK: tl.constexpr = 32, MY_BLOCK=5, BLOCK_M=7):\n";
        assert_eq!(settings(text, "BLOCK").collect::<Vec<_>>(), [128, 64, 32]);
    }

    #[test]
    fn only_marked_functions_are_kernels() {
        let text = "@triton.jit\ndef a(x):\n  pass\ndef b(x): pass\n@triton.autotune(configs=[],\n  key=[])\n@triton.jit(debug=True)\ndef c_bwd(\n x): pass\n@wraps\ndef d(): pass\n";
        assert_eq!(kernels(text), ["a", "c_bwd"]);
    }

    #[test]
    fn compile_time_parameters_count() {
        let found = parameters("def k(x_ptr, M, BLOCK: tl.constexpr):\n  pass\n", "k").unwrap();
        assert_eq!(found, ["x_ptr", "M", "BLOCK"]);
    }
}
