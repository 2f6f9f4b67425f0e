//! The user's own kernel, compiled anew by Triton.
//!
//! In: the user's file, the launches of the cache entry. Out: the program's part of the recipe. Compile-time parameters are
//! no arguments of the compiled kernel: they are given, or read off the file where every place in it agrees.

use std::collections::{BTreeMap, BTreeSet};

use super::super::facts::{Facts, UserFile, missing};
use super::super::recipe::{ArgumentValue, Asset, Launch, Origin, Program, TritonSource, Value};
use super::bind::Prepared;
use crate::error::Result;

/// The user's file in the folder.
const FILE: &str = "user_kernels.py";

/// The program's part, values with provenance, and the user's file.
pub(super) fn program(
    facts: &Facts<'_>,
    user: &UserFile,
    prepared: &Prepared,
    mut launches: BTreeMap<String, Launch>,
) -> Result<(Program, Vec<Value>, Asset)> {
    let target = &prepared.job.target;
    let parameters = parameters(&user.text, &target.name).ok_or_else(|| {
        missing(
            format!("{} defines no kernel {}", user.name, target.name),
            "give the file that does, or name the kernel with --entry",
        )
    })?;
    let known: BTreeSet<&str> = target.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    let mut constants = BTreeMap::new();
    let mut values = vec![Value::new("source", &user.name, Origin::Given, "an input")];
    for name in parameters.iter().filter(|name| !known.contains(name.as_str())) {
        if let Some(size) = facts.given_size(name)? {
            constants.insert(name.clone(), i64::try_from(size).unwrap_or(i64::MAX));
            values.push(Value::new(name, size, Origin::Given, format!("--set {name}={size}")));
            continue;
        }
        let found: BTreeSet<i64> = settings(&user.text, name).collect();
        match found.iter().copied().collect::<Vec<_>>().as_slice() {
            [only] => {
                constants.insert(name.clone(), *only);
                values.push(Value::new(
                    name,
                    only,
                    Origin::Assumed,
                    format!("the only {name}= in {}", user.name),
                ));
            }
            several => {
                let listed: Vec<String> = several.iter().map(i64::to_string).collect();
                let said = if listed.is_empty() { "no number".to_owned() } else { listed.join(", ") };
                let what = format!("{name} of {} is compiled in; {} sets {said}", target.name, user.name);
                return Err(missing(what, format!("say which: --set {name}=128")));
            }
        }
    }
    let types = pointer_types(prepared);
    for argument in launches.values_mut().flat_map(|launch| &mut launch.arguments) {
        if let ArgumentValue::Buffer { dtype, .. } = &mut argument.value {
            *dtype = types.get(&argument.name).cloned();
        }
    }
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
    });
    Ok((program, values, Asset { path: FILE.to_owned(), bytes: user.text.clone().into_bytes() }))
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
fn pointer_types(prepared: &Prepared) -> BTreeMap<String, String> {
    let Some(image) = prepared.job.target.images.first() else { return BTreeMap::new() };
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
    fn compile_time_parameters_count() {
        let found = parameters("def k(x_ptr, M, BLOCK: tl.constexpr):\n  pass\n", "k").unwrap();
        assert_eq!(found, ["x_ptr", "M", "BLOCK"]);
    }
}
