//! The files of a repro.
//!
//! In: a plan. Out: [`File`]s: `case.json`, the program, `run.sh`, `README.md`, and the files that go along as they are.
//! It writes nothing.

use serde_json::{Value as Json, json};

use super::CASE_FILE;
use super::recipe::{Asset, Origin, Plan, Program, Recipe};
use super::template;
use crate::error::{Error, ErrorKind, Result};

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path below the folder; ASCII, of our own making.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it is a program.
    pub executable: bool,
}

/// The template of a program, and its name in the folder.
fn program(recipe: &Recipe) -> (&'static str, &'static str) {
    match &recipe.program {
        Program::TritonReplay(_) => ("repro.py", include_str!("templates/triton_replay.py")),
        Program::TritonSource(_) => ("repro.py", include_str!("templates/triton_source.py")),
        Program::SegfaultCall { .. } => ("repro.py", include_str!("templates/segfault_call.py")),
        Program::SegfaultScript { .. } => ("repro.py", include_str!("templates/segfault_script.py")),
        Program::Operator { .. } => ("repro.py", include_str!("templates/operator.py")),
        Program::CudaRows { .. } => ("repro.cu", include_str!("templates/cuda_rows.cu")),
        Program::CudaGather { .. } => ("repro.cu", include_str!("templates/cuda_gather.cu")),
        Program::Graph => ("repro.py", include_str!("templates/graph.py")),
        Program::Collective(_) => ("repro.py", include_str!("templates/collective.py")),
        Program::Symmetric { .. } => ("repro.py", include_str!("templates/symmetric.py")),
    }
}

/// Every file of a plan.
///
/// # Errors
/// `Output`, where a template can't be filled in.
pub fn files(plan: &Plan) -> Result<Vec<File>> {
    let recipe = &plan.recipe;
    let (name, source) = program(recipe);
    let values = values(recipe, &plan.assets)?;
    let mut case = plain_json(&serde_json::to_string_pretty(recipe).map_err(failed)?);
    case.push('\n');
    let text = |path: &str, text: String, executable| File {
        path: path.to_owned(),
        bytes: text.into_bytes(),
        executable,
    };
    let mut files = vec![
        text(CASE_FILE, case, false),
        text(name, template::render(source, &values)?, false),
        text("run.sh", template::render(include_str!("templates/run.sh"), &values)?, true),
        text("README.md", template::render(include_str!("templates/README.md"), &values)?, false),
    ];
    let copied = plan.assets.iter();
    files.extend(copied.map(|asset| File {
        path: asset.path.clone(),
        bytes: asset.bytes.clone(),
        executable: false,
    }));
    Ok(files)
}

/// JSON in which nothing moves a terminal or turns a line round: only ASCII stands as it is.
fn plain_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && c != '\x7f' {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

fn failed(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Output, "the recipe can't be written as JSON").because(error)
}

/// What templates see: the recipe, and what follows from it.
fn values(recipe: &Recipe, assets: &[Asset]) -> Result<Json> {
    let mut values = serde_json::to_value(recipe).map_err(failed)?;
    let label = |key: &str| {
        let row = recipe.rows.iter().find(|row| row.key == key);
        row.map_or_else(|| key.to_owned(), |row| row.label.clone())
    };
    let origin = |origin: Origin| match origin {
        Origin::Read => "read",
        Origin::Given => "given",
        Origin::Computed => "computed",
        Origin::Assumed => "ASSUMED",
    };
    if let Json::Object(map) = &mut values {
        map.insert("kind".to_owned(), json!(recipe.kind().name()));
        map.insert("pattern".to_owned(), json!(recipe.expect.text.join("|")));
        map.insert("pass_label".to_owned(), json!(label(&recipe.sides.pass)));
        map.insert("fail_label".to_owned(), json!(label(&recipe.sides.fail)));
        map.insert(
            "origins".to_owned(),
            json!(recipe.values.iter().map(|value| origin(value.origin)).collect::<Vec<_>>()),
        );
        map.insert("has_probe".to_owned(), json!(assets.iter().any(|asset| asset.path == "probe.toml")));
        map.insert("has_open".to_owned(), json!(recipe.rows.iter().any(|row| row.expect.is_none())));
        map.entry("numbers").or_insert(Json::Null);
        map.insert("is_cuda".to_owned(), json!(program(recipe).0.ends_with(".cu")));
        map.insert("ranks".to_owned(), json!(recipe.size("ranks").unwrap_or(0)));
        map.insert("tool".to_owned(), json!(env!("CARGO_PKG_VERSION")));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_holds_nothing_that_moves_a_terminal() {
        let hostile = json!({ "kernel": "a\u{9b}2J\u{202e}b\u{1f680}\x7f" });
        let text = plain_json(&hostile.to_string());
        assert!(text.is_ascii() && !text.contains('\x7f'), "{text}");
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), hostile);
    }
}
