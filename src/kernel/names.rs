//! Parameter names out of source text, for compiled text that keeps none.
//!
//! In: Python or CUDA C++ source and a function's name. Out: its parameters' names in order. It reads one signature and
//! nothing else.

/// Longest signature that is read, in bytes.
const MAX_SIGNATURE: usize = 64 << 10;

/// The parameters of `def name(…)` that are no `constexpr`.
#[must_use]
pub fn python_parameters(source: &str, name: &str) -> Option<Vec<String>> {
    let list = signature(source, name, &|before| before.trim_end().ends_with("def"), '#')?;
    let names = split(&list).into_iter().filter_map(|param| {
        let (head, annotation) = param.split_once(':').map_or((param.as_str(), ""), |(h, a)| (h, a));
        let head = head.split('=').next().unwrap_or("").trim().trim_start_matches('*');
        let constant = annotation.split('=').next().unwrap_or("").contains("constexpr");
        (!constant && is_name(head)).then(|| head.to_owned())
    });
    Some(names.collect())
}

/// The parameters of `__global__ void name(…)`.
#[must_use]
pub fn cuda_parameters(source: &str, name: &str) -> Option<Vec<String>> {
    let list =
        signature(source, name, &|before| before.ends_with(|c: char| c.is_whitespace() || c == '*'), '/')?;
    let names = split(&list).into_iter().filter_map(|param| {
        let head = param.split('=').next().unwrap_or("").split('[').next().unwrap_or("").trim().to_owned();
        let start = head.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        head.get(start..).filter(|name| is_name(name)).map(str::to_owned)
    });
    Some(names.collect())
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// What stands between the parentheses after `name`, comments taken out.
fn signature(source: &str, name: &str, before: &dyn Fn(&str) -> bool, comment: char) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    for (at, _) in source.match_indices(name) {
        let (head, rest) = (source.get(..at)?, source.get(at + name.len()..)?);
        let after = rest.trim_start();
        if !after.starts_with('(') || !before(head) {
            continue;
        }
        let mut depth = 0usize;
        let mut out = String::new();
        let mut chars = after.chars().take(MAX_SIGNATURE).peekable();
        while let Some(c) = chars.next() {
            let starts_comment = c == comment && (comment == '#' || chars.peek() == Some(&'/'));
            if starts_comment {
                while chars.next_if(|&c| c != '\n').is_some() {}
                continue;
            }
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            match (depth, c) {
                (0, _) => return Some(out),
                (1, '(') if out.is_empty() => {}
                _ => out.push(c),
            }
        }
    }
    None
}

/// At commas outside brackets.
fn split(list: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut depth = 0usize;
    for c in list.chars() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 {
            out.push(String::new());
        } else if let Some(last) = out.last_mut() {
            last.push(c);
        }
    }
    out.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python() {
        let source = "import x\n@triton.jit\ndef my_kernel(a):\n  pass\ndef kernel(\n    x_ptr,  # a, comment\n    M: int, eps=1e-5, BLOCK: tl.constexpr = 128, *args,\n):\n";
        assert_eq!(python_parameters(source, "kernel").unwrap(), ["x_ptr", "M", "eps", "args"]);
        assert_eq!(python_parameters(source, "absent"), None);
    }

    #[test]
    fn cuda() {
        let source = "fill_rows<<<1, 2>>>(x);\n__global__ void fill_rows(float *out, int rows, const int cols, // why\n int stride[4]) {}";
        assert_eq!(cuda_parameters(source, "fill_rows").unwrap(), ["out", "rows", "cols", "stride"]);
    }
}
