//! The built-in reference kernel: one thread a column strip, one block a row, the index in 32 bits.
//!
//! In: a shape's element size. Out: PTX. It writes `out[row * stride + column]` with a 32-bit index, as the arithmetic of a
//! shape alone assumes. It proves that arithmetic, never the user's kernel.

use std::path::Path;
use std::sync::Arc;

use super::load;
use super::spec::Spec;
use super::target::{SourceKind, Target};
use crate::arith::parse::parse_shape;
use crate::arith::{DType, Shape};
use crate::error::{Error, ErrorKind, Result};

/// The kernel's name.
pub const ENTRY: &str = "warpfault_reference";

/// The parameters' names, in order.
const PARAMETERS: [&str; 4] = ["out", "rows", "cols", "stride"];

/// PTX of the kernel for elements of 1, 2, 4 or 8 bytes.
#[must_use]
pub fn ptx(element_bytes: u64) -> String {
    let (store, register) = match element_bytes {
        1 => ("st.global.u8", "%h1"),
        2 => ("st.global.u16", "%h1"),
        8 => ("st.global.u64", "%w0"),
        _ => ("st.global.u32", "%r0"),
    };
    format!(
        ".version 6.0\n.target sm_50\n.address_size 64\n\
         .visible .entry {ENTRY}(\n\
         \t.param .u64 {ENTRY}_param_0,\n\t.param .u32 {ENTRY}_param_1,\n\
         \t.param .u32 {ENTRY}_param_2,\n\t.param .u32 {ENTRY}_param_3\n)\n{{\n\
         \t.reg .pred %p<3>;\n\t.reg .b16 %h<2>;\n\t.reg .b32 %r<12>;\n\t.reg .b64 %w<6>;\n\
         \tld.param.u64 %w1, [{ENTRY}_param_0];\n\
         \tld.param.u32 %r2, [{ENTRY}_param_2];\n\
         \tld.param.u32 %r3, [{ENTRY}_param_3];\n\
         \tmov.u32 %r4, %tid.x;\n\
         \tsetp.ge.s32 %p1, %r4, %r2;\n\
         \t@%p1 bra $done;\n\
         \tmov.u32 %r5, %ctaid.x;\n\
         \tmul.lo.s32 %r6, %r5, %r3;\n\
         \tmov.u32 %r7, %ntid.x;\n\
         \tcvta.to.global.u64 %w2, %w1;\n\
         \tmov.u32 %r0, 0;\n\tmov.u16 %h1, 0;\n\tmov.u64 %w0, 0;\n\
         $next:\n\
         \tadd.s32 %r8, %r4, %r6;\n\
         \tmul.wide.s32 %w3, %r8, {element_bytes};\n\
         \tadd.s64 %w4, %w2, %w3;\n\
         \t{store} [%w4], {register};\n\
         \tadd.s32 %r4, %r4, %r7;\n\
         \tsetp.lt.s32 %p2, %r4, %r2;\n\
         \t@%p2 bra $next;\n\
         $done:\n\tret;\n}}\n"
    )
}

/// The target for a shape, and the settings that go with it: rows are swept, columns are everything after the first
/// dimension.
///
/// # Errors
/// `Usage` for a shape or element type that can't be read, `Output` where the PTX can't be written to a temporary file.
pub fn target(shape: &str, spec: &Spec) -> Result<(Target, Spec)> {
    let parsed = parse_shape(shape)?;
    let dtype = match &spec.dtype {
        Some(name) => Some(DType::from_name(name)?),
        None => parsed.dtype,
    };
    let element_bytes = dtype.map_or(4, DType::element_bytes);
    if !matches!(element_bytes, 1 | 2 | 4 | 8) {
        let message = format!("the reference kernel has no elements of {element_bytes} bytes");
        return Err(Error::new(ErrorKind::Usage, message));
    }
    let (rows, columns) = sizes(&parsed.shape)?;
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Output, "the reference kernel can't be written to a temporary file")
            .because(error)
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("reference.ptx");
    std::fs::write(&path, ptx(element_bytes)).map_err(failed)?;
    let mut target = load::load(&path, Some(ENTRY))?;
    load::rename(&mut target, &PARAMETERS.map(str::to_owned));
    target.source = SourceKind::Reference;
    target.path = Path::new(shape).to_path_buf();
    target.keep = Some(Arc::new(folder));
    target.notes.push(format!(
        "the built-in kernel with elements of {element_bytes} bytes, which forms row * stride + column in 32 bits: it \
         proves the arithmetic of the shape, not your kernel"
    ));
    let mut spec = spec.clone();
    let mut default = |name: &str, value: String| {
        spec.set.entry(name.to_owned()).or_insert(value);
    };
    default("rows", rows.to_string());
    default("cols", columns.to_string());
    default("stride", "cols".to_owned());
    default("out", "rows*stride".to_owned());
    spec.sweep.get_or_insert_with(|| "rows".to_owned());
    spec.grid.get_or_insert_with(|| "rows".to_owned());
    spec.block.get_or_insert_with(|| "256".to_owned());
    Ok((target, spec))
}

fn sizes(shape: &Shape) -> Result<(u64, u128)> {
    let (&rows, rest) =
        shape.dims().split_first().ok_or_else(|| Error::new(ErrorKind::Usage, "the shape is empty"))?;
    let columns = rest.iter().try_fold(1_u128, |product, &size| product.checked_mul(u128::from(size)));
    let columns = columns.filter(|columns| *columns <= u128::from(i32::MAX.unsigned_abs()));
    columns.map(|columns| (rows, columns)).ok_or_else(|| {
        Error::new(ErrorKind::Usage, "a row of the shape has more than 2^31-1 elements")
            .hint("split the shape so that the first dimension is the one that grows")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Bindings, ask};

    #[test]
    fn its_boundary_is_that_of_the_arithmetic() {
        let (target, spec) =
            target("234624x9216", &Spec { dtype: Some("bf16".into()), ..Spec::default() }).unwrap();
        assert_eq!((target.source, spec.sweep.as_deref()), (SourceKind::Reference, Some("rows")));
        let mut bindings = Bindings::default();
        for text in ["cols=9216", "stride=9216"] {
            bindings.set(text).unwrap();
        }
        bindings.set_grid("rows").unwrap();
        bindings.set_block("256").unwrap();
        let analysis = ask(target.kernel.as_deref().unwrap(), &bindings, Some("rows"));
        let sweep = analysis.findings.first().and_then(|finding| finding.sweep.clone()).unwrap();
        assert_eq!((sweep.safe, sweep.first_unsafe), (233_016, Some(233_017)));
    }

    #[test]
    fn every_element_size_is_a_kernel() {
        for (bytes, store) in
            [(1, "st.global.u8"), (2, "st.global.u16"), (4, "st.global.u32"), (8, "st.global.u64")]
        {
            assert!(ptx(bytes).contains(store));
        }
    }
}
