//! Arguments of a probe's launch as a recipe holds them.
//!
//! In: what the probe would pass. Out: the same as data for a program; what a plain program can't pass is refused.

use super::super::facts::missing;
use super::super::recipe::{Argument, ArgumentValue};
use crate::error::Result;
use crate::probe::protocol::{self, Fill};
use crate::probe::target::{Parameter, ParameterKind};

/// One argument; `dtype` is PyTorch's name of a buffer's elements.
pub(super) fn of(
    argument: &protocol::Argument,
    parameter: &Parameter,
    dtype: Option<&String>,
) -> Result<Argument> {
    let value = match argument {
        protocol::Argument::Scalar { bytes } => ArgumentValue::Number {
            hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            shown: shown(bytes, parameter.kind),
        },
        protocol::Argument::Buffer(buffer) => {
            if matches!(buffer.fill, Fill::File { .. }) {
                let why = format!("{}: a buffer out of a file is for the probe alone", parameter.name);
                return Err(missing(why, "use warpfault probe, or let the buffer hold zeros"));
            }
            ArgumentValue::Buffer { bytes: buffer.bytes, dtype: dtype.cloned(), fill: buffer.fill.clone() }
        }
        protocol::Argument::Address { address: 0 } => ArgumentValue::Null,
        _ => {
            let why = format!("{}: a host, freed or fixed address is for the probe alone", parameter.name);
            return Err(missing(why, "use warpfault probe"));
        }
    };
    Ok(Argument { name: parameter.name.clone(), value })
}

fn shown(bytes: &[u8], kind: ParameterKind) -> String {
    let mut wide = [0_u8; 8];
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = *from;
    }
    match (kind, bytes.len()) {
        (ParameterKind::Float, 4) => {
            f32::from_bits(u32::from_le_bytes([wide[0], wide[1], wide[2], wide[3]])).to_string()
        }
        (ParameterKind::Float, 8) => f64::from_le_bytes(wide).to_string(),
        (_, size) => {
            let unused = 64_u32.saturating_sub(u32::try_from(size.min(8)).unwrap_or(8) * 8);
            let value = i64::from_le_bytes(wide);
            value.checked_shl(unused).and_then(|value| value.checked_shr(unused)).unwrap_or(value).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_they_are_meant() {
        let integer = ParameterKind::Integer;
        assert_eq!(shown(&234_624_i32.to_le_bytes(), integer), "234624");
        assert_eq!(shown(&(-5_i32).to_le_bytes(), integer), "-5");
        assert_eq!(shown(&i64::MIN.to_le_bytes(), integer), i64::MIN.to_string());
        assert_eq!(shown(&[], integer), "0");
        assert_eq!(shown(&1.5_f32.to_le_bytes(), ParameterKind::Float), "1.5");
    }
}
