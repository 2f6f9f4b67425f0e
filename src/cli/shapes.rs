//! `warpfault shapes`: overflow arithmetic for the shapes on the command line.
//!
//! In: shape texts and options. Out: one page of text a shape, or the JSON that the contract fixes. It runs nothing
//! and reads one file at most, the model's configuration.

use std::ffi::OsStr;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::arith::parse::{ParsedShape, parse_shape, parse_strides};
use crate::arith::{DType, Shape, Strides, TensorLayout};
use crate::error::{Error, ErrorKind, Result};
use crate::read::model_config::{self, CONFIG_LIMIT_BYTES};
use crate::report::model_extents::ModelView;
use crate::report::number_line::Glyphs;
use crate::report::shapes::{ShapeView, ShapesView};
use crate::report::shapes_text;

/// Arguments of `warpfault shapes`.
#[derive(Debug, Clone, Default, Args)]
pub struct ShapesArgs {
    /// Shapes: 234624x9216, M=234624,N=9216, `[1600,16,729,72]`, `torch.Size([4, 128])`
    #[arg(value_name = "SHAPE", required_unless_present = "model")]
    pub shapes: Vec<String>,
    /// Element type (bfloat16, fp32, int8, ...); adds bytes and the limit of 32-bit byte offsets
    #[arg(long)]
    pub dtype: Option<String>,
    /// Strides in elements, one a dimension, as in 8192,1; row-major when left out
    #[arg(long, allow_hyphen_values = true)]
    pub strides: Option<String>,
    /// Elements before the first one
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub storage_offset: i64,
    /// Dimension to find the boundary of, by name or number from 0; the first one larger than 1 when left out
    #[arg(long, value_name = "DIM", allow_negative_numbers = true)]
    pub sweep: Option<String>,
    /// Multiple that sizes come in; read off the reported size when left out
    #[arg(long, value_name = "N")]
    pub multiple: Option<u64>,
    /// A model's config.json: its projections, logits, KV cache and attention at --tokens
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Packed tokens that one rank sees at once
    #[arg(long, value_name = "N", requires = "model")]
    pub tokens: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: ShapesFormat,
    /// Short for --format json
    #[arg(long)]
    pub json: bool,
    /// Draw the number line in plain ASCII
    #[arg(long)]
    pub ascii: bool,
}

impl ShapesArgs {
    /// Falls back to ASCII on a terminal that calls itself dumb; `term` is the value of `TERM`.
    #[must_use]
    pub fn for_terminal(mut self, term: Option<&OsStr>) -> Self {
        self.ascii |= term.is_some_and(|term| term == "dumb");
        self
    }
}

/// Output formats of `warpfault shapes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ShapesFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Prints the arithmetic of every shape in `args` to `out`.
///
/// # Errors
/// `Usage` for a shape, element type, stride or dimension that can't be read; `Input` or `Format` for the model file;
/// `Limit` where a number leaves 128 bits; `Output` when `out` can't be written (a closed pipe is no error).
pub fn run(args: &ShapesArgs, out: &mut dyn Write) -> Result<()> {
    let shapes =
        read_shapes(&args.shapes)?.into_iter().map(|parsed| view(args, parsed)).collect::<Result<_>>()?;
    let model = match &args.model {
        None => None,
        Some(path) => {
            let found = model_config::read(&read_capped(path)?).map_err(|error| error.at(path, None))?;
            Some(ModelView::of(&found.config, args.tokens)?.with_notes(found.notes))
        }
    };
    let all = ShapesView { schema: ShapesView::SCHEMA, shapes, model };
    let page = if args.json || args.format == ShapesFormat::Json {
        let json = serde_json::to_string_pretty(&all);
        json.map_err(|error| {
            Error::new(ErrorKind::Output, "the answer can't be written as JSON").because(error)
        })? + "\n"
    } else {
        text(&all, if args.ascii { Glyphs::Ascii } else { Glyphs::Unicode })
    };
    match out.write_all(page.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Output, "the answer can't be written").because(error))
        }
        _ => Ok(()),
    }
}

fn text(all: &ShapesView, glyphs: Glyphs) -> String {
    let mut pages: Vec<String> = all.shapes.iter().map(|shape| shapes_text::text(shape, glyphs)).collect();
    pages.extend(all.model.as_ref().map(ModelView::text));
    let page = pages.join("\n");
    if glyphs == Glyphs::Ascii { page.replace('×', "x") } else { page }
}

/// Reads the shapes. `M=234624 N=9216` arrives as two arguments; when every argument names one size, they are one shape.
pub(super) fn read_shapes(texts: &[String]) -> Result<Vec<ParsedShape>> {
    let parsed: Vec<ParsedShape> = texts.iter().map(|text| parse_shape(text)).collect::<Result<_>>()?;
    let names: Vec<&str> = parsed.iter().filter_map(|one| single_name(&one.shape)).collect();
    let distinct =
        names.iter().enumerate().all(|(at, name)| names.iter().take(at).all(|other| other != name));
    if parsed.len() < 2 || names.len() != parsed.len() || !distinct {
        return Ok(parsed);
    }
    let dims = parsed.iter().flat_map(|one| one.shape.dims().to_vec()).collect();
    let names = parsed.iter().flat_map(|one| one.shape.names().to_vec()).collect();
    Ok(vec![ParsedShape { shape: Shape::named(dims, names)?, dtype: None }])
}

fn single_name(shape: &Shape) -> Option<&str> {
    if shape.dims().len() == 1 { shape.name(0) } else { None }
}

fn view(args: &ShapesArgs, parsed: ParsedShape) -> Result<ShapeView> {
    let dtype = args.dtype.as_deref().map(DType::from_name).transpose()?.or(parsed.dtype);
    let layout = match &args.strides {
        None => TensorLayout::contiguous(parsed.shape, dtype)?,
        Some(strides) => TensorLayout::strided(parsed.shape, Strides(parse_strides(strides)?), dtype)?,
    };
    let layout = layout.with_offset(i128::from(args.storage_offset));
    let sweep = match &args.sweep {
        None => layout.shape().default_sweep(),
        Some(wanted) => layout.shape().find_dim(wanted)?,
    };
    ShapeView::of(&layout, sweep, args.multiple)
}

/// Reads a model's configuration, a little past its limit at most.
pub(super) fn read_capped(path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Error::new(ErrorKind::Input, "can't be read").at(path, None).because(error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(CONFIG_LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::Value;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: ShapesArgs,
    }

    fn output(arguments: &[&str]) -> Result<String> {
        let command = Command::try_parse_from([&["shapes"], arguments].concat());
        let mut out = Vec::new();
        run(&command.map_err(|error| Error::new(ErrorKind::Usage, error.to_string()))?.args, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn json(arguments: &[&str]) -> Value {
        serde_json::from_str(&output(&[arguments, &["--json"]].concat()).unwrap()).unwrap()
    }

    #[test]
    fn the_case_as_text_and_as_json() {
        let text = output(&["234624x9216", "--dtype", "bf16"]).unwrap();
        assert!(text.starts_with("234,624 × 9,216 = 2,162,294,784 elements\n"), "{text}");
        let json = json(&["234624x9216"]);
        assert_eq!(
            (json["schema"].as_str(), json["shapes"][0]["safe"].as_u64()),
            (Some("warpfault/shapes/1"), Some(233_016))
        );
        assert_eq!(json["model"], Value::Null);
    }

    #[test]
    fn ascii_means_every_character() {
        let text = output(&["M=234624,N=9216", "--ascii", "--dtype", "bf16"]).unwrap();
        assert!(text.is_ascii(), "{text}");
        assert!(text.starts_with("M x N = 234,624 x 9,216"), "{text}");
    }

    #[test]
    fn options_reach_the_arithmetic() {
        let found = json(&["M=234624,N=9216", "--sweep", "N", "--multiple", "64"]);
        let shape = &found["shapes"][0];
        assert_eq!((shape["sweep"].as_str(), shape["safe"].as_u64()), (Some("N"), Some((1 << 31) / 234_624)));
        assert_eq!(shape["granularity"], 64);
        let view = json(&["300000x4096", "--strides", "-8192,1", "--storage-offset", "5"]);
        assert_eq!(view["shapes"][0]["strides"], serde_json::json!([-8_192, 1]));
        assert_eq!(view["shapes"][0]["max_index"], 4_100);
    }

    #[test]
    fn named_sizes_in_arguments_of_their_own_are_one_shape() {
        let both = json(&["M=234624", "N=9216"]);
        assert_eq!(both["shapes"].as_array().unwrap().len(), 1);
        assert_eq!(both["shapes"][0]["numel"], 2_162_294_784_u64);
        assert_eq!(json(&["M=4", "M=5"])["shapes"].as_array().unwrap().len(), 2);
        assert_eq!(json(&["4x5", "6"])["shapes"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_a_usage_error() {
        let wrong: [&[&str]; 8] = [
            &["x"],
            &[],
            &["4x4", "--dtype", "bf17"],
            &["4x4", "--strides", "1"],
            &["4x4", "--sweep", "K"],
            &["4x4", "--multiple", "0"],
            &["4x4", "--tokens", "5"],
            &["[-1,4]"],
        ];
        for arguments in wrong {
            assert_eq!(output(arguments).unwrap_err().kind(), ErrorKind::Usage, "{arguments:?}");
        }
        let huge = "18446744073709551615x18446744073709551615x2";
        assert_eq!(output(&[huge]).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(output(&["--model", "/nonexistent/config.json"]).unwrap_err().kind(), ErrorKind::Input);
    }

    #[test]
    fn a_model_needs_no_shape() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        std::fs::write(&path, r#"{"hidden_size": 3584, "vocab_size": 151936}"#).unwrap();
        let path = path.to_str().unwrap();
        let found = json(&["--model", path, "--tokens", "20000"]);
        let extents = found["model"]["extents"].as_array().unwrap();
        let logits = extents.iter().find(|one| one["name"] == "logits").unwrap();
        assert_eq!(
            (logits["fits_int32"].as_bool(), logits["safe_tokens"].as_u64()),
            (Some(false), Some(14_134))
        );
        assert!(output(&["4x4", "--model", path]).unwrap().contains("give --tokens N"));
    }
}
