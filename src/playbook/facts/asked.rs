//! Answers by the name of their step. An asked shape is measured like one of the log, and counts before it.

use crate::arith::parse::parse_shape;
use crate::arith::{IndexLimit, TensorLayout, boundary};
use crate::text::number::grouped;

use super::super::known::Known;
use super::super::record::{Answer, Happened, Record};
use super::super::schema::name_of;
use super::shape::{Measured, measured};

/// Adds every answer that still counts.
pub fn answers(known: &mut Known, record: &Record) {
    for entry in &record.history {
        let Some(Happened::Answered(answer)) = record.last(&entry.step) else { continue };
        let path = format!("answers.{}", name_of(&entry.step.step));
        known.put(&path, value(answer));
        if let Answer::Shape(text) = answer
            && let Some(shape) = shape(text)
        {
            known.put("shapes.first", shape);
        }
    }
}

fn value(answer: &Answer) -> Known {
    match answer {
        Answer::Number(number) => Known::from(*number),
        Answer::Choice(text) | Answer::Text(text) => Known::from(text.as_str()),
        Answer::Shape(text) => shape(text).unwrap_or_else(|| Known::from(text.as_str())),
    }
}

fn shape(text: &str) -> Option<Known> {
    let parsed = parse_shape(text).ok()?;
    let sweep = parsed.shape.default_sweep();
    let words =
        parsed.shape.dims().iter().map(|dim| grouped(u128::from(*dim))).collect::<Vec<_>>().join(" × ");
    let name = parsed.shape.name(sweep).map(str::to_owned);
    let layout = TensorLayout::contiguous(parsed.shape, parsed.dtype).ok()?;
    let extent = layout.extent().ok()?;
    let boundary = boundary::boundary(&layout, sweep, IndexLimit::INT32, None).ok()?;
    let mut tree = measured(&Measured {
        words,
        layout: &layout,
        extent: &extent,
        dtype: parsed.dtype,
        boundary: &boundary,
    });
    tree.put("from", "answer");
    tree.put("near", true);
    tree.put_some("sweep", name);
    Some(tree)
}
