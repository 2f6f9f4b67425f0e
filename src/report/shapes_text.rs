//! The overflow arithmetic of a shape for a person who has never met the bug.
//!
//! In: a [`ShapeView`]. Out: text of about 80 columns: the multiplication, the limit, a number line, the shapes to
//! run, the stop-gap and the fix. The numbers are the view's; this page only words them.

use super::number_line::{self, Glyphs, Mark};
use super::shapes::{ExpectView, LimitView, ShapeView};
use crate::arith::limits::wrap_to_int32;
use crate::text::number::{binary_size, grouped, grouped_signed, percent};

/// The whole page for one shape, ended by a line break.
#[must_use]
pub fn text(view: &ShapeView, glyphs: Glyphs) -> String {
    let mut page = String::new();
    heading(&mut page, view);
    verdict(&mut page, view);
    limits(&mut page, view);
    if !view.boundary_shapes.is_empty() {
        boundary(&mut page, view, glyphs);
    }
    if !view.limits.int32.fits_by_index {
        fix(&mut page, view);
    }
    page
}

/// `M × N = 234,624 × 9,216 = 2,162,294,784 elements`.
fn heading(page: &mut String, view: &ShapeView) {
    let sizes: Vec<String> = view.dims.iter().map(|&size| grouped(u128::from(size))).collect();
    let names: Option<Vec<&str>> =
        view.names.as_ref().and_then(|names| names.iter().map(Option::as_deref).collect());
    let names = names.map_or_else(String::new, |names| format!("{} = ", names.join(" × ")));
    let product = if sizes.len() > 1 { format!("{} = ", sizes.join(" × ")) } else { String::new() };
    say(page, &format!("{names}{product}{} elements", grouped(view.numel)));
    if let Some((bytes, dtype)) = view.bytes.zip(view.dtype) {
        say(page, &format!("  {dtype}: {} bytes, {}", grouped(bytes), binary_size(bytes)));
    }
    let row_major = view.max_index.is_none_or(|max| max.unsigned_abs().checked_add(1) == Some(view.numel));
    if !row_major {
        let strides: Vec<String> = view.strides.iter().map(|&stride| grouped_signed(stride)).collect();
        let offset = grouped_signed(view.storage_offset);
        say(page, &format!("  strides ({}), storage offset {offset}", strides.join(", ")));
    }
}

fn verdict(page: &mut String, view: &ShapeView) {
    match view.max_index {
        None => say(page, "\n  EMPTY: a size of 0 leaves no element, so no index can overflow."),
        Some(_) if view.limits.int32.fits_by_index => fits(page, view),
        Some(max) => overflows(page, view, max),
    }
}

fn overflows(page: &mut String, view: &ShapeView, max: i128) {
    let int32 = &view.limits.int32;
    let (excess, what) = match int32.excess_by_count {
        0 => (int32.excess_by_index, "its last index"),
        by_count => (by_count, "it"),
    };
    let over =
        if int32.over_percent > 0.0 { format!(" ({})", percent(int32.over_percent)) } else { String::new() };
    let count = if excess == 1 { "element" } else { "elements" };
    let excess = grouped(excess);
    say(
        page,
        &format!("\n  OVERFLOWS a signed 32-bit index: {what} passes 2^31-1 by {excess} {count}{over}."),
    );
    let (limit, needed) = (grouped(int32.limit), grouped_signed(max));
    let held = i128::from(wrap_to_int32(max));
    let missed = max.abs_diff(held);
    let bytes = view.element_bytes().and_then(|element| missed.checked_mul(element));
    let bytes = bytes.map_or_else(String::new, |bytes| format!(" ({} bytes)", grouped(bytes)));
    say(page, &format!("\n  A 32-bit integer counts up to 2^31-1 = {limit}. A kernel that forms"));
    say(page, &format!("  row × stride + column in 32 bits needs {needed} for the last element."));
    say(
        page,
        &format!("  The register then holds {}, and the access misses its element by", grouped_signed(held)),
    );
    say(page, &format!("  {} elements{bytes}. Usually nothing is mapped there: an", grouped(missed)));
    say(page, "  illegal memory access. Sometimes another tensor is: silent garbage.");
    if view.dims.len() > 1 {
        say(page, "  Each size fits by itself; only the product does not. Smaller inputs always pass.");
    }
}

fn fits(page: &mut String, view: &ShapeView) {
    let int32 = &view.limits.int32;
    let spare = grouped(int32.margin_by_index);
    say(page, &format!("\n  FITS a signed 32-bit index, with {spare} elements to spare."));
    if !int32.fits_by_count {
        let excess = grouped(int32.excess_by_count);
        say(page, &format!("  Its element count does not fit an int32: it passes 2^31-1 by {excess}."));
    }
    let bytes =
        view.limits.int32_bytes.as_ref().filter(|limit| !limit.fits_by_index).map(|_| "a 32-bit byte offset");
    let doubled = (!view.limits.elements_2_30.fits_by_index).then_some("a 32-bit index that is doubled");
    let tight: Vec<&str> = bytes.into_iter().chain(doubled).collect();
    if !tight.is_empty() {
        say(page, "  A plain 32-bit element index does not overflow here. These would:");
        say(page, &format!("  {} (see the limits below).", tight.join(", ")));
    } else if view.padded.is_empty() && int32.fits_by_count {
        say(page, "  A flat 32-bit index into this tensor is not the cause of a crash.");
    }
    for padded in &view.padded {
        let (label, block) = (view.dim_label(padded.dim), padded.block);
        let (size, numel) = (grouped(u128::from(padded.size)), grouped(padded.numel));
        say(page, &format!("  Padded, it crosses: {label} rounded up to a multiple of {block} is {size},"));
        say(page, &format!("  which makes {numel} elements. A kernel that pads indexes that many."));
    }
}

fn limits(page: &mut String, view: &ShapeView) {
    say(page, &format!("\n  {:<22}{:>15}  {:<28}by count", "limit", "elements up to", "by last index"));
    let mut row = |name: &str, limit: &LimitView| {
        let stand = |excess: u128| match excess {
            0 => "fits".to_owned(),
            past => format!("PAST by {}", grouped(past)),
        };
        let (index, count) = (stand(limit.excess_by_index), stand(limit.excess_by_count));
        say(page, &format!("  {name:<22}{:>15}  {index:<28}{count}", grouped(limit.limit)));
    };
    row("int32 index", &view.limits.int32);
    row("uint32 index", &view.limits.uint32);
    if let Some(bytes) = &view.limits.int32_bytes {
        row("int32 byte offset", bytes);
    }
    row("int32 index, doubled", &view.limits.elements_2_30);
}

fn boundary(page: &mut String, view: &ShapeView, glyphs: Glyphs) {
    let label = view.dim_label(view.sweep_dim);
    say(page, &format!("\n  Where the boundary lies ({label}, all else equal)\n"));
    for line in number_line::draw(marks(view), view.safe.unwrap_or(0), glyphs) {
        say(page, &format!("    {line}"));
    }
    say(page, "\n  Shapes to run\n");
    say(page, &format!("  {label:>14}{:>20}  expect  why", "elements"));
    for shape in &view.boundary_shapes {
        let expect = if shape.expect == ExpectView::Pass { "pass" } else { "WRAP" };
        let (value, numel) = (grouped(u128::from(shape.value)), grouped(shape.numel));
        say(page, &format!("  {value:>14}{numel:>20}  {expect:<6}  {}", shape.why));
    }
}

fn marks(view: &ShapeView) -> Vec<Mark> {
    let safe = view.safe.unwrap_or(0);
    let reported = view.dims.get(view.sweep_dim).copied().map_or(0, u128::from);
    let mut marks = Vec::new();
    let mut add = |value: u128, what: String| {
        let label = format!("{}  {what}", grouped(value));
        marks.push(Mark { value, label, reported: value == reported });
    };
    let is_reported = |value: u128| if value == reported { ", as reported" } else { "" };
    if let Some(multiple) = view.safe_multiple.filter(|&multiple| multiple > 0 && multiple != safe) {
        add(multiple, format!("last multiple of {}{}", view.granularity, is_reported(multiple)));
    }
    let last = if safe == 0 { "nothing fits" } else { "last that fits, at 2^31-1" };
    add(safe, format!("{last}{}", is_reported(safe)));
    if reported != safe && Some(reported) != view.safe_multiple {
        add(reported, format!("reported: {}", if reported > safe { "wraps" } else { "fits" }));
    }
    marks
}

fn fix(page: &mut String, view: &ShapeView) {
    let label = view.dim_label(view.sweep_dim);
    match view.safe_multiple.filter(|&multiple| multiple > 0).or(view.safe) {
        Some(0) | None => {
            say(
                page,
                &format!("\n  Stop-gap  none along {label}: not even 1 fits; split another dimension."),
            );
        }
        Some(cap) => {
            let most = view.safe.filter(|&safe| safe != cap);
            let most = most.map_or_else(String::new, |safe| format!(" ({} at the very most)", grouped(safe)));
            say(
                page,
                &format!("\n  Stop-gap  cap {label} at {} a rank{most}. It holds for the", grouped(cap)),
            );
            say(page, "            other sizes as they are: a wider model has a lower cap.");
        }
    }
    say(page, "  Fix       widen one factor to 64 bits before multiplying, in forward and backward,");
    say(page, "            for inputs and outputs, not only where it crashed first:");
    say(page, "              Triton  row.to(tl.int64) * stride + column");
    say(page, "              CUDA    static_cast<int64_t>(row) * stride + column");
    say(page, "  Check     rerun the shapes above: the fixed kernel passes all of them.");
}

fn say(page: &mut String, line: &str) {
    page.push_str(line);
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::{DType, Strides, TensorLayout, parse};

    fn page(text_in: &str, dtype: Option<DType>, strides: Option<Vec<i128>>) -> String {
        let shape = parse::parse_shape(text_in).unwrap().shape;
        let sweep = shape.default_sweep();
        let layout = match strides {
            None => TensorLayout::contiguous(shape, dtype).unwrap(),
            Some(strides) => TensorLayout::strided(shape, Strides(strides), dtype).unwrap(),
        };
        text(&ShapeView::of(&layout, sweep, None).unwrap(), Glyphs::Unicode)
    }

    fn assert_has(page: &str, wanted: &[&str]) {
        for want in wanted {
            assert!(page.contains(want), "{want:?} is missing from\n{page}");
        }
    }

    #[test]
    fn an_overflow_shows_the_arithmetic_the_boundary_and_the_fix() {
        let page = page("M=234624,N=9216", Some(DType::BFloat16), None);
        assert_has(
            &page,
            &[
                "M × N = 234,624 × 9,216 = 2,162,294,784 elements",
                "bfloat16: 4,324,589,568 bytes, 4.03 GiB",
                "OVERFLOWS a signed 32-bit index: it passes 2^31-1 by 14,811,137 elements (0.69 %)",
                "row × stride + column in 32 bits needs 2,162,294,783",
                "The register then holds -2,132,672,513",
                "4,294,967,296 elements (8,589,934,592 bytes)",
                "└ 233,016  last that fits",
                "232,960       2,146,959,360  pass    last multiple of 128 that fits",
                "233,017       2,147,484,672  WRAP    first whose last index passes",
                "cap M at 232,960 a rank (233,016 at the very most)",
                "row.to(tl.int64) * stride",
            ],
        );
        let widest = page.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 92, "{widest} columns");
    }

    #[test]
    fn a_tensor_that_fits_is_cleared_as_plainly() {
        let fitting = page("1000x1000", Some(DType::Float32), None);
        assert_has(&fitting, &["FITS a signed 32-bit index", "not the cause of a crash"]);
        assert!(!fitting.contains("OVERFLOWS") && !fitting.contains("Fix"), "{fitting}");
    }

    #[test]
    fn what_fits_only_as_a_plain_index_is_not_cleared_of_the_rest() {
        let bytes = page("232960x9216", Some(DType::BFloat16), None);
        assert_has(
            &bytes,
            &["These would:", "a 32-bit byte offset, a 32-bit index that is doubled", "int32 byte offset"],
        );
        let padded = page("[1600,16,729,72]", None, None);
        assert_has(
            &padded,
            &["dimension 3 rounded up to a multiple of 64 is 128,", "which makes 2,388,787,200 elements"],
        );
        assert!(!padded.contains("into this tensor is not the cause"), "{padded}");
        let count = page("65536x32768", None, None);
        assert_has(&count, &["FITS", "count does not fit an int32: it passes 2^31-1 by 1."]);
    }

    #[test]
    fn a_view_shows_its_strides_and_an_empty_tensor_says_so() {
        let view = page("300000x4096", None, Some(vec![8_192, 1]));
        assert_has(
            &view,
            &["strides (8,192, 1)", "its last index passes 2^31-1", "262,144  last that fits, at 2^31-1"],
        );
        assert_has(&page("0x4096", None, None), &["EMPTY"]);
        assert_has(&page("3x1099511627776", None, None), &["not even 1 fits"]);
    }
}
