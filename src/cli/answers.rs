//! What the engineer knows and the input doesn't say: `--shape`, `--dtype`, `--set`, `--model`.
//!
//! In: arguments. Out: answers for the engine, or a usage error that names the argument. It reads one file at most, the
//! model's configuration, and leaves what follows from an answer to the engine.

use std::path::PathBuf;

use clap::Args;

use crate::arith::DType;
use crate::case::Answer;
use crate::error::{Error, ErrorKind, Result};
use crate::read::model_config;

use super::shapes::{read_capped, read_shapes};

/// Flags that answer questions.
#[derive(Debug, Clone, Default, Args)]
pub struct AnswerArgs {
    /// Shape of an operand of the failing launch: 234624x9216, M=234624,N=9216, `[1600,16,729,72]`; repeatable.
    #[arg(long = "shape", value_name = "SHAPE")]
    pub shapes: Vec<String>,
    /// Element type of those shapes (bfloat16, fp32, int8, ...).
    #[arg(long, value_name = "TYPE")]
    pub dtype: Option<String>,
    /// A size, setting or version of the failing run: tokens=16384, M=234624, CUDA_LAUNCH_BLOCKING=1, torch=2.8.0;
    /// repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub values: Vec<String>,
    /// The model's config.json; with a token count it tells which tensors cross.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
}

impl AnswerArgs {
    /// The answers, in the order in which the engine needs them.
    ///
    /// # Errors
    /// `Usage` for a shape, element type or setting that can't be read; `Input`, `Format` or `Limit` for the model's file.
    pub fn answers(&self) -> Result<Vec<Answer>> {
        let dtype = self.dtype.as_deref().map(DType::from_name).transpose()?;
        let mut answers: Vec<Answer> =
            dtype.iter().map(|dtype| Answer::value("dtype", dtype.name())).collect();
        for parsed in read_shapes(&self.shapes)? {
            answers.push(Answer::shape(&parsed.shape, parsed.dtype.or(dtype)));
        }
        for text in &self.values {
            let (name, value) = setting(text)?;
            answers.push(Answer::value(name, value));
        }
        if let Some(path) = &self.model {
            let found = model_config::read(&read_capped(path)?).map_err(|error| error.at(path, None))?;
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            answers.push(Answer::Model { path: name, facts: Box::new(found.facts()) });
        }
        Ok(answers)
    }
}

fn setting(text: &str) -> Result<(&str, &str)> {
    let wrong = || {
        Error::new(ErrorKind::Usage, format!("--set {text}: expected NAME=VALUE"))
            .hint("as in --set tokens=16384 or --set CUDA_LAUNCH_BLOCKING=1")
    };
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let (name, value) = (name.trim(), value.trim());
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if !named || value.is_empty() {
        return Err(wrong());
    }
    if let Some(why) = no_size(value) {
        return Err(Error::new(ErrorKind::Usage, format!("--set {text}: {why}"))
            .hint("a size is a whole number, as in --set tokens=16384"));
    }
    Ok((name, value))
}

/// Why a value that is a number is none that a size or a switch has. A version (`2.8.0`, `2.8`) and a word are none of these.
fn no_size(value: &str) -> Option<&'static str> {
    let lower = value.to_ascii_lowercase();
    let digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if matches!(lower.as_str(), "nan" | "inf" | "+inf" | "-inf" | "infinity" | "-infinity") {
        return Some("is not a number that a size can be");
    }
    if lower.strip_prefix('-').is_some_and(digits) {
        return Some("a size is not negative");
    }
    if lower
        .split_once('e')
        .is_some_and(|(head, tail)| digits(head) && digits(tail.trim_start_matches(['+', '-'])))
    {
        return Some("write the number out");
    }
    let whole = value.bytes().all(|byte| byte.is_ascii_digit());
    (whole && value.parse::<i64>().is_err()).then_some("is past 9,223,372,036,854,775,807, the largest size")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(shapes: &[&str], values: &[&str], dtype: Option<&str>) -> AnswerArgs {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        AnswerArgs {
            shapes: owned(shapes),
            values: owned(values),
            dtype: dtype.map(str::to_owned),
            model: None,
        }
    }

    #[test]
    fn shapes_take_the_type_unless_they_have_their_own() {
        let answers = args(&["4x5", "bf16[2,3]"], &["tokens=7"], Some("fp32")).answers().unwrap();
        let types: Vec<Option<&str>> = answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Shape(mention) => Some(mention.dtype.as_deref()),
                _ => None,
            })
            .collect();
        assert_eq!(types, [Some("float32"), Some("bfloat16")]);
        assert_eq!(answers.first(), Some(&Answer::value("dtype", "float32")));
        assert_eq!(answers.last(), Some(&Answer::value("tokens", "7")));
        let others =
            ["torch=2.8.0", "cuda=13.0", "CUDA_LAUNCH_BLOCKING=1", "M=9223372036854775807", "gpu=H200"];
        assert_eq!(args(&[], &others, None).answers().unwrap().len(), 5);
    }

    #[test]
    fn what_cannot_be_read_is_a_usage_error() {
        for wrong in [
            args(&["x"], &[], None),
            args(&[], &["tokens"], None),
            args(&[], &["=5"], None),
            args(&[], &["a b=5"], None),
            args(&[], &["tokens="], None),
            args(&[], &["tokens=NaN"], None),
            args(&[], &["tokens=-4"], None),
            args(&[], &["tokens=1e9"], None),
            args(&[], &["M=99999999999999999999999"], None),
            args(&["4x4"], &[], Some("bf17")),
        ] {
            assert_eq!(wrong.answers().unwrap_err().kind(), ErrorKind::Usage, "{wrong:?}");
        }
        let missing =
            AnswerArgs { model: Some(PathBuf::from("/nonexistent/config.json")), ..AnswerArgs::default() };
        assert_eq!(missing.answers().unwrap_err().kind(), ErrorKind::Input);
    }
}
