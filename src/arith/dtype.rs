//! Element types: how many bytes an element takes, under every name that a log or a user writes.
//!
//! In: a name (`torch.bfloat16`, `bf16`, `<f4`, `*fp32`, `!tt.ptr<f16>`, `__nv_bfloat16`, `F8_E4M3`). Out: a
//! [`DType`] with its size and its PyTorch and Triton names. It leaves values and rounding alone.

use crate::error::{Error, ErrorKind, Result};

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident, $bytes:literal, $torch:literal, $triton:literal, [$($alias:literal),*];)*) => {
        /// An element type. Sizes are PyTorch's `itemsize`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType { $($(#[$doc])* $variant),* }

        const ROWS: &[Row] = &[$(Row {
            dtype: DType::$variant, bytes: $bytes, torch: $torch, triton: $triton, aliases: &[$($alias),*],
        }),*];
    };
}

struct Row {
    dtype: DType,
    bytes: u64,
    torch: &'static str,
    triton: &'static str,
    aliases: &'static [&'static str],
}

// Where a name means two things (`float` is 64 bits to NumPy, `f8` is a double to NumPy and a byte to MLIR), the
// PyTorch and C meaning stands here; NumPy's codes are read only with their byte-order mark.
dtypes! {
    /// One byte, true or false.
    Bool, 1, "bool", "int1", ["i1", "bool_"];
    /// Unsigned, 8 bits.
    UInt8, 1, "uint8", "uint8", ["u8", "ui8", "byte", "uchar", "unsigned char", "uint8_t", "|u1"];
    /// Signed, 8 bits.
    Int8, 1, "int8", "int8", ["i8", "si8", "s8", "char", "signed char", "int8_t", "|i1", "qint8"];
    /// Unsigned, 16 bits.
    UInt16, 2, "uint16", "uint16", ["u16", "ui16", "ushort", "unsigned short", "uint16_t", "<u2"];
    /// Signed, 16 bits.
    Int16, 2, "int16", "int16", ["i16", "si16", "s16", "short", "int16_t", "<i2"];
    /// Unsigned, 32 bits.
    UInt32, 4, "uint32", "uint32", ["u32", "ui32", "uint", "unsigned", "unsigned int", "uint32_t", "<u4"];
    /// Signed, 32 bits.
    Int32, 4, "int32", "int32", ["i32", "si32", "s32", "int", "int32_t", "<i4", "qint32"];
    /// Unsigned, 64 bits.
    UInt64, 8, "uint64", "uint64", ["u64", "ui64", "ulong", "unsigned long", "unsigned long long", "uint64_t", "<u8"];
    /// Signed, 64 bits.
    Int64, 8, "int64", "int64", ["i64", "si64", "s64", "long", "long long", "int64_t", "<i8"];
    /// IEEE half.
    Float16, 2, "float16", "fp16", ["f16", "half", "__half", "<f2"];
    /// Brain float.
    BFloat16, 2, "bfloat16", "bf16", ["__nv_bfloat16", "nv_bfloat16"];
    /// IEEE single.
    Float32, 4, "float32", "fp32", ["f32", "float", "single", "tf32", "<f4"];
    /// IEEE double.
    Float64, 8, "float64", "fp64", ["f64", "double", "<f8"];
    /// Two halves.
    Complex32, 4, "complex32", "complex32", ["chalf", "complexhalf", "half2", "__half2"];
    /// Two singles.
    Complex64, 8, "complex64", "complex64", ["cfloat", "complexfloat", "c64", "<c8", "float2"];
    /// Two doubles.
    Complex128, 16, "complex128", "complex128", ["cdouble", "complexdouble", "c128", "<c16", "double2"];
    /// 8-bit float, 4 exponent bits, no infinities.
    Float8E4M3Fn, 1, "float8_e4m3fn", "fp8e4nv", ["f8e4m3fn", "f8_e4m3", "e4m3", "e4m3fn", "__nv_fp8_e4m3", "fp8"];
    /// 8-bit float, 4 exponent bits, AMD's bias.
    Float8E4M3Fnuz, 1, "float8_e4m3fnuz", "fp8e4b8", ["f8e4m3fnuz", "fp8e4b15"];
    /// 8-bit float, 5 exponent bits.
    Float8E5M2, 1, "float8_e5m2", "fp8e5", ["f8e5m2", "f8_e5m2", "e5m2", "__nv_fp8_e5m2"];
    /// 8-bit float, 5 exponent bits, AMD's bias.
    Float8E5M2Fnuz, 1, "float8_e5m2fnuz", "fp8e5b16", ["f8e5m2fnuz"];
    /// 8-bit scale of exponents alone.
    Float8E8M0Fnu, 1, "float8_e8m0fnu", "fp8e8m0", ["f8e8m0fnu", "f8_e8m0", "e8m0"];
    /// Two 4-bit floats in one byte: sizes in a shape count bytes.
    Float4E2M1FnX2, 1, "float4_e2m1fn_x2", "fp4x2", ["f4e2m1fnx2", "f4"];
}

impl DType {
    /// Reads a name, whatever library printed it; case does not matter.
    ///
    /// # Errors
    /// `Usage` for a name that no library uses.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::find(name).ok_or_else(|| {
            let shown: String = name.chars().take(60).collect();
            Error::new(ErrorKind::Usage, format!("no element type {shown:?}")).hint(
                "expected a name such as bfloat16, float16, float32, float8_e4m3fn, int8, int32 or int64",
            )
        })
    }

    /// As [`DType::from_name`], without the error.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let name = bare_name(name).to_ascii_lowercase();
        let hit =
            |row: &&Row| row.torch == name || row.triton == name || row.aliases.contains(&name.as_str());
        let found = ROWS.iter().find(hit).map(|row| row.dtype);
        // NumPy also marks big-endian and native order; sizes are the same.
        found.or_else(|| {
            let code = name.strip_prefix(['>', '=', '|'])?;
            ROWS.iter().find(|row| row.aliases.contains(&format!("<{code}").as_str())).map(|row| row.dtype)
        })
    }

    /// Bytes that one element takes.
    #[must_use]
    pub fn element_bytes(self) -> u64 {
        self.row().map_or(1, |row| row.bytes)
    }

    /// PyTorch's name without the `torch.`; NumPy uses the same where it has the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("uint8", |row| row.torch)
    }

    /// Triton's name, as its signatures print it after the `*`.
    #[must_use]
    pub fn triton_name(self) -> &'static str {
        self.row().map_or("uint8", |row| row.triton)
    }

    /// Every element type.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.dtype)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.dtype == self)
    }
}

/// Strips what surrounds a type's name: module paths, pointer marks, quotes, `const`.
fn bare_name(name: &str) -> &str {
    let mut name = name.trim().trim_matches(['\'', '"']);
    if let Some(inner) = name.strip_prefix("!tt.ptr<") {
        name = inner.split(['>', ',']).next().unwrap_or(inner);
    }
    name = name.trim().trim_start_matches('*').trim_end_matches(['*', '&', ' ']);
    name = name.strip_prefix("const ").unwrap_or(name).trim();
    for prefix in ["torch.", "numpy.", "np.", "jnp.", "tl.", "triton.language.", "c10::", "at::", "cutlass::"]
    {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_under_each_of_its_names() {
        for row in ROWS {
            for name in row.aliases.iter().chain([&row.torch, &row.triton]) {
                assert_eq!(DType::find(name), Some(row.dtype), "{name}");
            }
        }
    }

    #[test]
    fn names_are_read_as_each_library_prints_them() {
        let cases = [
            ("torch.bfloat16", DType::BFloat16, 2),
            ("*bf16", DType::BFloat16, 2),
            ("!tt.ptr<bf16>", DType::BFloat16, 2),
            ("!tt.ptr<f32, 1>", DType::Float32, 4),
            ("'float16'", DType::Float16, 2),
            ("const float *", DType::Float32, 4),
            ("torch.float8_e4m3fn", DType::Float8E4M3Fn, 1),
            ("BF16", DType::BFloat16, 2),
            ("F8_E4M3", DType::Float8E4M3Fn, 1),
            ("c10::BFloat16", DType::BFloat16, 2),
            ("tl.int64", DType::Int64, 8),
            ("np.float64", DType::Float64, 8),
            ("<f4", DType::Float32, 4),
            (">i8", DType::Int64, 8),
            ("i8", DType::Int8, 1),
            ("Long", DType::Int64, 8),
            ("torch.complex128", DType::Complex128, 16),
        ];
        for (name, dtype, bytes) in cases {
            assert_eq!(DType::find(name), Some(dtype), "{name}");
            assert_eq!(dtype.element_bytes(), bytes, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_examples() {
        for name in ["", "bfloat17", "*", "!tt.ptr<", "torch."] {
            let error = DType::from_name(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.hint_text().unwrap().contains("bfloat16"));
        }
    }
}
