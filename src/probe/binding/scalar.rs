//! Arguments that are numbers.
//!
//! In: what was set. Out: values by name, and bytes. It knows no buffer.

use super::{BoundArgument, Values, Wanted, canonical};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::bind::Expr;
use crate::probe::protocol::Argument;
use crate::probe::spec::Spec;
use crate::probe::target::{Parameter, ParameterKind, SourceKind, Target};

pub(super) fn wrong(name: &str, text: &str, why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("{name}={text} {why}"))
}

/// Evaluates every integer that was set, in terms of each other.
pub(super) fn integers(
    target: &Target,
    spec: &Spec,
    swept: Option<(&str, i64)>,
    out: &mut Values,
) -> Result<()> {
    if let Some((name, value)) = swept {
        let name = canonical(target, name);
        out.bindings.values.insert(name.clone(), i128::from(value));
        out.from.insert(name, "the size that is tried".to_owned());
    }
    let mut open: Vec<(String, &str, Expr)> = Vec::new();
    for (name, text) in &spec.set {
        let name = canonical(target, name);
        let parameter = target.parameters.iter().find(|parameter| parameter.name == name);
        let number = parameter.is_none_or(|parameter| parameter.kind == ParameterKind::Integer);
        let is_swept = swept.is_some_and(|(swept, _)| canonical(target, swept) == name);
        if number && !is_swept {
            let text = text.trim();
            let expr = Expr::parse(text.strip_prefix('-').unwrap_or(text))?;
            open.push((name, text, expr));
        }
    }
    // One value may be written in terms of another: as often as there are values, then none is left or they go round.
    for _ in 0..=open.len() {
        open.retain(|(name, text, expr)| {
            let value = expr.value(&|name| out.bindings.values.get(&canonical(target, name)).copied());
            let Some(value) = value else { return true };
            let value = if text.starts_with('-') { -value } else { value };
            out.bindings.values.insert(name.clone(), value);
            out.from.insert(name.clone(), format!("set: {text}"));
            false
        });
    }
    Ok(())
}

/// Integers that have no value.
pub(super) fn missing(target: &Target, values: &Values, wanted: &mut Vec<Wanted>) {
    for parameter in target.parameters.iter().filter(|parameter| !parameter.hidden) {
        if parameter.kind == ParameterKind::Integer && !values.bindings.values.contains_key(&parameter.name) {
            wanted.push(Wanted {
                option: format!("--set {}=NUMBER", parameter.name),
                why: format!("an integer of {} bits", parameter.size_bytes * 8),
            });
        }
    }
}

/// An integer's bytes, held against its width and what the code relies on.
pub(super) fn integer(parameter: &Parameter, value: i128, target: &Target) -> Result<Argument> {
    let bits = parameter.size_bytes.min(8) * 8;
    let (low, high) = (-(1_i128 << bits.saturating_sub(1)), (1_i128 << bits) - 1);
    if value < low || value > high {
        return Err(wrong(&parameter.name, &value.to_string(), &format!("does not fit {bits} bits")));
    }
    let multiple = i128::from(parameter.divisibility.max(1));
    if value.rem_euclid(multiple) != 0 {
        let why = format!(
            "is no multiple of {multiple}: the compiled code relies on that (tt.divisibility), and off it even a correct \
             kernel faults"
        );
        let below = value - value.rem_euclid(multiple);
        return Err(wrong(&parameter.name, &value.to_string(), &why)
            .hint(format!("the nearest values are {below} and {}", below + multiple)));
    }
    if value == 1 && target.source == SourceKind::TritonCache && multiple > 1 {
        return Err(wrong(&parameter.name, "1", "can't be: Triton folds an argument of 1 into the code"));
    }
    let size = parameter.size_bytes.min(8) as usize;
    Ok(Argument::Scalar { bytes: value.to_le_bytes().get(..size).unwrap_or(&[]).to_vec() })
}

/// A floating-point number: what was set, else 1.
pub(super) fn float(parameter: &Parameter, set: Option<&str>) -> Result<BoundArgument> {
    let value: f64 = match set {
        Some(text) => text.trim().parse().map_err(|_| wrong(&parameter.name, text, "is no number"))?,
        None => 1.0,
    };
    #[expect(clippy::cast_possible_truncation, reason = "a 32-bit parameter takes the nearest value")]
    let bytes = match parameter.size_bytes {
        4 => (value as f32).to_le_bytes().to_vec(),
        8 => value.to_le_bytes().to_vec(),
        // Half precision is only ever 1 or 0 here; its bits are those of 1.0.
        2 if value == 1.0 => 0x3c00_u16.to_le_bytes().to_vec(),
        size => vec![0; size as usize],
    };
    let from = if set.is_some() { "set" } else { "a floating-point number, which reaches no address" };
    Ok(BoundArgument {
        name: parameter.name.clone(),
        argument: Argument::Scalar { bytes },
        shown: value.to_string(),
        from: from.to_owned(),
    })
}

/// Something else: bytes as hex.
pub(super) fn opaque(
    parameter: &Parameter,
    set: Option<&str>,
) -> Result<std::result::Result<BoundArgument, Option<Wanted>>> {
    let Some(text) = set else {
        return Ok(Err(Some(Wanted {
            option: format!("--set {}=HEX", parameter.name),
            why: format!("{} bytes of a structure", parameter.size_bytes),
        })));
    };
    let digits = text.trim().trim_start_matches("0x");
    let bytes: Option<Vec<u8>> = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    let bytes = bytes.filter(|bytes| bytes.len() == parameter.size_bytes as usize).ok_or_else(|| {
        wrong(&parameter.name, text, &format!("is not {} bytes as hex", parameter.size_bytes))
    })?;
    Ok(Ok(BoundArgument {
        name: parameter.name.clone(),
        shown: format!("0x{digits}"),
        argument: Argument::Scalar { bytes },
        from: "set".to_owned(),
    }))
}
