//! `warpfault schema`: the JSON Schemas of what the tool prints.
//!
//! In: a name. Out: the schema, made from the very types that are printed.

use crate::error::{Error, ErrorKind, Result};
use crate::report::Report;
use crate::report::kernel::KernelsView;
use crate::report::probe::ProbeView;
use crate::report::shapes::ShapesView;

use super::arguments::{SchemaArgs, SchemaName};
use super::output;

/// Runs it.
pub fn run(args: &SchemaArgs) -> Result<u8> {
    let schema = match args.name {
        SchemaName::Report => schemars::schema_for!(Report),
        SchemaName::Shapes => ShapesView::json_schema(),
        SchemaName::Kernel => KernelsView::json_schema(),
        SchemaName::Probe => ProbeView::json_schema(),
    };
    let text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Error::new(ErrorKind::Output, "the schema could not be written").because(error))?;
    output::print(&format!("{text}\n")).map(|()| 0)
}
