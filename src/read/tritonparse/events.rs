//! A trace as events: the launches that it mentions, and the last one's arguments.
//!
//! In: a trace. Out: [`Data::LaunchMention`] for each kept launch, the last first; shapes and values of the last one. No
//! event says that a launch failed.

use crate::read::event::{
    Data, EnvironmentFact, Event, InputId, LaunchMention, NamedValue, Origin, ShapeForm, ShapeMention, Span,
};

use super::launch::{Argument, Launch, Tensor};
use super::{At, Trace};

/// The events of a trace.
#[must_use]
pub fn events(trace: &Trace, input: InputId) -> Vec<Event> {
    let mut events = Vec::new();
    for (at, launch) in trace.launches.iter().enumerate() {
        events.push(event(input, launch, mention(trace, launch, at == 0), words(launch, at == 0)));
    }
    if let Some(last) = trace.launches.first() {
        for (name, tensor) in last.tensors() {
            events.push(event(
                input,
                last,
                Data::Shape(shape(name, tensor)),
                shape_words(last, name, tensor),
            ));
        }
        for (name, number) in last.integers() {
            let value = NamedValue { name: name.to_owned(), value: number.to_string() };
            let text = format!("{name}={number} (argument of {})", last.kernel);
            events.push(event(input, last, Data::Value(value), text));
        }
    }
    events.extend(version(trace, input));
    events
}

fn event(input: InputId, launch: &Launch, data: Data, text: String) -> Event {
    let at = At { line: launch.line, byte: launch.byte };
    let origin = Origin { pid: launch.pid, device: launch.device, ..Origin::default() };
    Event { span: span(input, at), origin, data, text: clipped(text) }
}

fn span(input: InputId, at: At) -> Span {
    Span { input, line: at.line, byte: at.byte as u64, lines: 1 }
}

fn clipped(text: String) -> String {
    match text.char_indices().nth(Event::TEXT_LIMIT_BYTES / 4) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}

fn mention(trace: &Trace, launch: &Launch, last: bool) -> Data {
    let source = trace
        .compilations
        .iter()
        .find(|compilation| compilation.hash.is_some() && compilation.hash == launch.hash)
        .and_then(|compilation| compilation.place.clone());
    Data::LaunchMention(LaunchMention {
        kernel: launch.kernel.clone(),
        grid: launch.grid,
        block_dim: None,
        place: source,
        launched_from: launch.launched_from.clone(),
        arguments: launch
            .arguments
            .iter()
            .map(|(name, value)| (name.clone(), argument_words(value)))
            .collect(),
        compilation: launch.hash.clone(),
        last_of_trace: last,
    })
}

fn argument_words(value: &Argument) -> String {
    match value {
        Argument::Integer(number) => number.to_string(),
        Argument::Other(text) => text.clone(),
        Argument::Tensor(tensor) => tensor_words(tensor),
    }
}

/// `tensor [234624, 9216] of bfloat16, strides [9216, 1]`
fn tensor_words(tensor: &Tensor) -> String {
    let mut text = format!("tensor {:?}", tensor.shape);
    if let Some(dtype) = &tensor.dtype {
        text.push_str(&format!(" of {dtype}"));
    }
    if !tensor.strides.is_empty() {
        text.push_str(&format!(", strides {:?}", tensor.strides));
    }
    if let Some(offset) = tensor.storage_offset.filter(|offset| *offset > 0) {
        text.push_str(&format!(", storage offset {offset}"));
    }
    if let Some(address) = tensor.data_ptr {
        text.push_str(&format!(" at {address:#x}"));
    }
    text
}

fn shape(name: &str, tensor: &Tensor) -> ShapeMention {
    ShapeMention {
        dims: tensor.shape.clone(),
        names: Vec::new(),
        strides: tensor.strides.clone(),
        dtype: tensor.dtype.clone(),
        label: Some(name.to_owned()),
        form: ShapeForm::Argument,
        address: tensor.data_ptr,
        ..ShapeMention::default()
    }
}

fn shape_words(launch: &Launch, name: &str, tensor: &Tensor) -> String {
    format!("{name}: {} (argument of {})", tensor_words(tensor), launch.kernel)
}

/// `launch of fused_lora_xw_kernel, grid 1833 × 72 × 1, from triton_cases.py:49 in xw; the last one traced`
fn words(launch: &Launch, last: bool) -> String {
    let mut text = format!("launch of {}", launch.kernel);
    if let Some([x, y, z]) = launch.grid {
        text.push_str(&format!(", grid {x} × {y} × {z}"));
    }
    if let Some(place) = &launch.launched_from {
        let line = place.line.map(|line| format!(":{line}")).unwrap_or_default();
        text.push_str(&format!(", from {}{line}", place.file));
    }
    if last {
        text.push_str("; the last one traced");
    }
    text
}

fn version(trace: &Trace, input: InputId) -> Option<Event> {
    let compilation = trace.compilations.iter().find(|compilation| compilation.triton_version.is_some())?;
    let value = compilation.triton_version.clone()?;
    let at = At { line: compilation.line, byte: compilation.byte };
    let text = format!("triton: {value}");
    let data = Data::Environment(EnvironmentFact { name: "triton".to_owned(), value });
    Some(Event { span: span(input, at), origin: Origin::default(), data, text })
}
