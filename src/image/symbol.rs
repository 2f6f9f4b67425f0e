//! Names of GPU functions: mangled C++ names made readable.
//!
//! In: a symbol (`_Z6gatherPKfPKiPfi`). Out: its name (`gather`), its signature, the types of its parameters. Names
//! that aren't mangled (Triton's, `extern "C"`) stay as they are.

use std::fmt;

use cpp_demangle::{DemangleOptions, Symbol};

/// Longest readable name: a short symbol can spell an enormous one through its substitutions.
const LIMIT_BYTES: usize = 32 << 10;

/// The name alone: namespaces and template arguments kept, parameters and return type left out.
#[must_use]
pub fn name(symbol: &str) -> String {
    demangled(symbol, DemangleOptions::new().no_params().no_return_type())
        .unwrap_or_else(|| symbol.to_owned())
}

/// The name with its parameters: `gather(float const*, int const*, float*, int)`.
#[must_use]
pub fn signature(symbol: &str) -> String {
    demangled(symbol, DemangleOptions::new().no_return_type()).unwrap_or_else(|| symbol.to_owned())
}

/// Types of the parameters, in order; empty where the symbol isn't mangled.
#[must_use]
pub fn param_types(symbol: &str) -> Vec<String> {
    let options = DemangleOptions::new().no_return_type();
    let (Some(whole), Some(name)) = (demangled(symbol, options), demangled(symbol, options.no_params()))
    else {
        return Vec::new();
    };
    let list = whole.strip_prefix(&name).and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
    list.map_or_else(Vec::new, split_list)
}

/// Splits at the commas that stand in no bracket.
#[must_use]
pub fn split_list(list: &str) -> Vec<String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0_usize);
    for (at, letter) in list.char_indices() {
        match letter {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list.get(start..at).unwrap_or("").trim().to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = list.get(start..).unwrap_or("").trim();
    if !last.is_empty() {
        parts.push(last.to_owned());
    }
    parts
}

fn demangled(symbol: &str, options: DemangleOptions) -> Option<String> {
    // ptxas writes a device function inside a kernel's section as `$kernel$function`.
    let symbol =
        symbol.strip_prefix('$').and_then(|rest| rest.split_once('$')).map_or(symbol, |(_, inner)| inner);
    if !symbol.starts_with("_Z") {
        return None;
    }
    let options = options.hide_expression_literal_types();
    let mut out = Limited(String::new());
    Symbol::new(symbol).ok()?.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// Text that refuses to grow past [`LIMIT_BYTES`].
struct Limited(String);

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len().saturating_add(text.len()) > LIMIT_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_kernel() {
        assert_eq!(name("_Z6gatherPKfPKiPfi"), "gather");
        assert_eq!(signature("_Z6gatherPKfPKiPfi"), "gather(float const*, int const*, float*, int)");
        assert_eq!(param_types("_Z6gatherPKfPKiPfi"), ["float const*", "int const*", "float*", "int"]);
        assert_eq!(param_types("_Z6gatherv"), Vec::<String>::new());
    }

    #[test]
    fn a_device_function_inside_a_kernel() {
        assert_eq!(name("$_Z4deepPii$_Z7recursei"), "recurse");
    }

    #[test]
    fn a_template_keeps_its_arguments() {
        let symbol = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
        assert_eq!(
            name(symbol),
            "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1> >"
        );
        assert_eq!(param_types(symbol), ["int", "at::native::FillFunctor<float>", "std::array<char*, 1>"]);
    }

    #[test]
    fn names_without_mangling_stay() {
        assert_eq!(name("scatter_rows"), "scatter_rows");
        assert_eq!(name("_Zbroken"), "_Zbroken");
        assert_eq!(name("$"), "$");
    }

    #[test]
    fn a_name_that_doubles_itself_is_refused() {
        let doubling = format!(
            "_Z1f{}",
            (0..64).fold("1aIiE".to_owned(), |inner, _| format!("1bI{inner}{inner}E")
                .chars()
                .take(4_000)
                .collect())
        );
        assert!(signature(&doubling).len() <= LIMIT_BYTES);
    }
}
