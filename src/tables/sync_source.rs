//! Which call on a line of Python source is the one that noticed an earlier GPU error.
//!
//! In: the source line of the innermost frame and, from Python 3.11 on, the part above the carets. Out: the sync point
//! and the call's text. It leaves alone frames whose failing call is no sync point: the next inner frame tells.

use super::sync_points::{ENQUEUES, SyncPoint, python_point};

/// A sync point on a source line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncCall {
    /// The row of the table.
    pub point: &'static SyncPoint,
    /// The call as written, owner excluded, arguments included (`to(device="cpu")`).
    pub call: String,
    /// Name as reports print it: the last component for methods, the dotted path for functions of modules.
    pub name: String,
}

/// A call in a source text.
#[derive(Debug, Clone)]
struct Call<'a> {
    /// Owner: everything of the chain before the last dot; empty for a plain function.
    owner: &'a str,
    /// Name.
    name: &'a str,
    /// Arguments with their parentheses.
    arguments: &'a str,
    /// Where the name begins.
    start: usize,
    /// Where the closing parenthesis stands.
    end: usize,
}

/// Longest source line that is looked at: a minified line says nothing.
const SOURCE_LIMIT_BYTES: usize = 4_096;

/// The sync point on `source`, where the carets mark `marked` (none before Python 3.11).
///
/// With a mark, the marked expression's outermost call failed: all calls inside it had succeeded. If that call works on a
/// value that an earlier call of the same chain had already copied to the host (`x.to("cpu").tolist()`), that earlier one
/// is the sync point. Without a mark, the first sync point in order of evaluation is taken.
#[must_use]
pub fn sync_in_source(source: &str, marked: Option<&str>) -> Option<SyncCall> {
    let source = source.trim().get(..SOURCE_LIMIT_BYTES).unwrap_or(source.trim());
    match marked.map(str::trim).filter(|marked| !marked.is_empty()) {
        Some(marked) => in_marked(source, marked),
        None => in_unmarked(source),
    }
}

fn in_marked(source: &str, marked: &str) -> Option<SyncCall> {
    let expression = expression_of(source, marked);
    let calls = calls_in(expression);
    let whole = calls
        .iter()
        .filter(|call| call.end + 1 >= expression.trim_end().len())
        .min_by_key(|call| start_of(call));
    if let Some(outer) = whole {
        let earlier = calls
            .iter()
            .filter(|call| call.end < outer.start && start_of(call) <= start_of(outer))
            .find_map(|call| sync_of(call).filter(|sync| leaves_the_gpu(sync, call)));
        if let Some(sync) = earlier.or_else(|| sync_of(outer)) {
            return Some(sync);
        }
    }
    truth_of(source, expression, &calls)
}

fn in_unmarked(source: &str) -> Option<SyncCall> {
    let calls = calls_in(source);
    calls.iter().find_map(sync_of).or_else(|| truth_of(source, condition_of(source)?, &calls))
}

/// The name of the call that is made first on a line of source; a built-in that prints or converts is made last.
#[must_use]
pub fn first_call(source: &str) -> Option<String> {
    let source = source.trim().get(..SOURCE_LIMIT_BYTES).unwrap_or(source.trim());
    calls_in(source).first().map(|call| call.name.to_owned())
}

/// Whether what failed on the line only starts work of the GPU, so that it is known not to wait: the launch of a kernel, an
/// operator between tensors under the carets, or nothing but calls of the table. A call that no table knows is not known.
#[must_use]
pub fn only_enqueues(source: &str, marked: Option<&str>) -> bool {
    let source = source.trim().get(..SOURCE_LIMIT_BYTES).unwrap_or(source.trim());
    let enqueues = |call: &Call<'_>| ENQUEUES.contains(&call.name) && !call.owner.is_empty();
    let Some(marked) = marked.map(str::trim).filter(|marked| !marked.is_empty()) else {
        let calls = calls_in(source);
        return launches_a_kernel(source) || !calls.is_empty() && calls.iter().all(enqueues);
    };
    let expression = expression_of(source, marked);
    let calls = calls_in(expression);
    let end = expression.trim_end().len();
    match calls.iter().filter(|call| call.end + 1 >= end).min_by_key(|call| start_of(call)) {
        Some(outer) => launches_a_kernel(expression) || enqueues(outer),
        None => launches_a_kernel(expression) || is_operator(expression),
    }
}

/// `kernel[grid](x)`, `add_kernel[(n,)](x)`; `layers[i](x)` is a call of whatever stands in a list.
fn launches_a_kernel(text: &str) -> bool {
    let mut open = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => open.push(at),
            b']' => {
                let Some(start) = open.pop() else { continue };
                let (name, inside) = (text.get(..start).unwrap_or(""), text.get(start + 1..at).unwrap_or(""));
                let name = name.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
                let is_called = text.as_bytes().get(at + 1) == Some(&b'(');
                let is_grid = name.ends_with("kernel") || inside.contains("grid") || inside.starts_with('(');
                if is_called && !name.is_empty() && is_grid {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// `h * 2`, `a @ a`: an operator between two names or values.
fn is_operator(expression: &str) -> bool {
    let is_operand = |part: &str| {
        !part.trim().is_empty()
            && part.trim().chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']'))
    };
    [" @ ", " * ", " + ", " - ", " / "].iter().any(|operator| {
        expression.split_once(operator).is_some_and(|(left, right)| is_operand(left) && is_operand(right))
    })
}

/// The marked text; where only the argument list is marked (Python 3.13 underlines the function with `~`), the call that
/// it belongs to.
fn expression_of<'a>(source: &'a str, marked: &'a str) -> &'a str {
    if !marked.starts_with('(') {
        return marked;
    }
    let Some(at) = source.find(marked) else { return marked };
    let head = source.get(..at).unwrap_or("");
    let start = chain_start(head, head.len());
    source.get(start..at + marked.len()).unwrap_or(marked)
}

fn start_of(call: &Call<'_>) -> usize {
    call.start.saturating_sub(if call.owner.is_empty() { 0 } else { call.owner.len() + 1 })
}

/// The sync point that a call is.
fn sync_of(call: &Call<'_>) -> Option<SyncCall> {
    if call.owner.ends_with("time") || call.owner == "np.random" {
        return None;
    }
    let point = python_point(call.name, !call.owner.is_empty(), call.arguments)?;
    let plain_print = matches!(point.name, "print" | "str" | "repr" | "int" | "float" | "format")
        && call.arguments.trim_matches(['(', ')']).trim_start().starts_with(['"', '\'']);
    if plain_print {
        return None;
    }
    let is_path = !call.owner.is_empty()
        && call
            .owner
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '.'));
    let of_module = is_path
        && ["torch", "jax", "cupy", "cp", "np", "numpy", "cuda", "dist"]
            .contains(&call.owner.split('.').next().unwrap_or(""));
    let name = if of_module { format!("{}.{}", call.owner, call.name) } else { call.name.to_owned() };
    Some(SyncCall { point, call: format!("{}{}", call.name, call.arguments), name })
}

/// Whether what the call returns lives on the host, so that later calls of the chain can't touch the GPU.
fn leaves_the_gpu(sync: &SyncCall, call: &Call<'_>) -> bool {
    match sync.point.name {
        "cpu" | "numpy" | "item" | "tolist" | "asnumpy" | "device_get" => true,
        "to" => call.arguments.contains("cpu"),
        _ => false,
    }
}

/// A tensor used as a condition: `if torch.isnan(x).any():`.
fn truth_of(source: &str, expression: &str, calls: &[Call<'_>]) -> Option<SyncCall> {
    let condition = condition_of(source)?;
    if !condition.contains(expression) {
        return None;
    }
    let is_tensor = calls.iter().any(|call| {
        matches!(
            call.name,
            "any"
                | "all"
                | "isnan"
                | "isinf"
                | "isfinite"
                | "max"
                | "min"
                | "sum"
                | "norm"
                | "eq"
                | "gt"
                | "lt"
        ) && (!call.owner.is_empty())
    });
    if !is_tensor {
        return None;
    }
    let point = python_point("bool", false, "")?;
    Some(SyncCall { point, call: format!("bool({expression})"), name: "bool".to_owned() })
}

/// The condition of an `if`, `elif`, `while` or `assert`.
fn condition_of(source: &str) -> Option<&str> {
    let rest = ["if ", "elif ", "while ", "assert "].iter().find_map(|word| source.strip_prefix(word))?;
    Some(rest.strip_suffix(':').unwrap_or(rest))
}

/// The calls of a source text in order of evaluation: that of their closing parentheses.
fn calls_in(source: &str) -> Vec<Call<'_>> {
    let mut open: Vec<usize> = Vec::new();
    let mut calls = Vec::new();
    let mut quote: Option<u8> = None;
    let mut previous = 0;
    for (at, byte) in source.bytes().enumerate() {
        match (quote, byte) {
            (Some(mark), _) if byte == mark && previous != b'\\' => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'#') => break,
            (None, b'(' | b'[' | b'{') => open.push(at),
            (None, b')' | b']' | b'}') => {
                if let Some(start) = open.pop()
                    && byte == b')'
                    && let Some(call) = call_at(source, start, at)
                {
                    calls.push(call);
                }
            }
            _ => {}
        }
        previous = byte;
    }
    calls
}

/// The call whose parentheses stand at `open` and `close`; none for plain grouping and for `def`.
fn call_at(source: &str, open: usize, close: usize) -> Option<Call<'_>> {
    let head = source.get(..open)?;
    let name_len =
        head.bytes().rev().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let name = head.get(open - name_len..)?;
    let before = head.get(..open - name_len)?;
    let keyword =
        ["if", "in", "and", "or", "not", "return", "assert", "while", "yield", "lambda"].contains(&name);
    if name.is_empty() || keyword || before.trim_end().ends_with("def") {
        return None;
    }
    let owner = match before.strip_suffix('.') {
        Some(owner) => owner.get(chain_start(owner, owner.len())..).unwrap_or(""),
        None => "",
    };
    Some(Call { owner, name, arguments: source.get(open..=close)?, start: open - name_len, end: close })
}

/// Where the chain of names, calls and subscripts that ends at `end` begins.
fn chain_start(source: &str, end: usize) -> usize {
    let bytes = source.as_bytes();
    let mut at = end;
    let mut depth = 0_u32;
    while at > 0 {
        let Some(&byte) = bytes.get(at - 1) else { break };
        match byte {
            b')' | b']' => depth += 1,
            b'(' | b'[' if depth == 0 => break,
            b'(' | b'[' => depth -= 1,
            _ if depth > 0 => {}
            b'.' | b'_' => {}
            _ if byte.is_ascii_alphanumeric() || byte >= 0x80 => {}
            _ => break,
        }
        at -= 1;
    }
    while !source.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(source: &str, marked: Option<&str>) -> Option<String> {
        sync_in_source(source, marked).map(|sync| sync.name)
    }

    #[test]
    fn the_carets_decide_which_call_of_a_chain() {
        let source = "def forward(self, x, cu_seq_lens): h = self.gate_proj(x); return h, cu_seq_lens.detach().to(device=\"cpu\", dtype=torch.int64).tolist()";
        let marked = "cu_seq_lens.detach().to(device=\"cpu\", dtype=torch.int64)";
        assert_eq!(name(source, Some(marked)).as_deref(), Some("to"));
        assert_eq!(name(source, None).as_deref(), Some("to"));
        assert_eq!(name("ids.tolist()", Some("ids.tolist()")).as_deref(), Some("tolist"));
        let chain = "x.to(device=\"cpu\").tolist()";
        assert_eq!(name(chain, Some(chain)).as_deref(), Some("to"));
    }

    #[test]
    fn a_marked_call_that_is_no_sync_point_stays_silent() {
        let source = "h, lens = layer(x, cu.item())";
        assert_eq!(name(source, Some("layer(x, cu.item())")), None);
        assert_eq!(name(source, None).as_deref(), Some("item"));
        assert_eq!(name("a = torch.randn(512); print((a @ a).sum().item())", Some("a @ a")), None);
    }

    #[test]
    fn functions_of_modules_keep_their_path() {
        let source = "g.replay(); torch.cuda.synchronize(); print(y.sum().item())";
        let marked = Some("torch.cuda.synchronize()");
        assert_eq!(name(source, marked).as_deref(), Some("torch.cuda.synchronize"));
        let only_arguments = name("torch.cuda.synchronize()", Some("()"));
        assert_eq!(only_arguments.as_deref(), Some("torch.cuda.synchronize"));
        assert_eq!(
            name("return torch._C._cuda_synchronize()", None).as_deref(),
            Some("torch._C._cuda_synchronize")
        );
        assert_eq!(name("torch.cuda.current_stream().synchronize()", None).as_deref(), Some("synchronize"));
    }

    #[test]
    fn conditions_and_prints_of_tensors_copy() {
        assert_eq!(name("if torch.isnan(x).any():", None).as_deref(), Some("bool"));
        assert_eq!(name("if torch.isnan(x).any():", Some("torch.isnan(x).any()")).as_deref(), Some("bool"));
        assert_eq!(name("print(loss)", None).as_deref(), Some("print"));
        assert_eq!(name("print(\"done\")", None), None);
        assert_eq!(name("if flag:", None), None);
    }

    #[test]
    fn what_only_starts_work_is_told_from_what_nobody_knows() {
        let known = |source: &str, marked: Option<&str>| only_enqueues(source, marked);
        assert!(known("print((a @ a).sum().item())", Some("a @ a")));
        assert!(known("xw_kernel[grid](x, y, M)", None));
        assert!(known("scatter[(cdiv(n, 128),)](x)", Some("scatter[(cdiv(n, 128),)](x)")));
        assert!(known("return torch.embedding(weight, input, padding_idx)", None));
        assert!(known("y = (x * 2).sum()", Some("(x * 2).sum()")));
        for unknown in [
            "ids = self._to_list(sampled)",
            "logger.log(loss)",
            "y = layers[i](x)",
            "out = model(batch)",
            "x = a - b",
        ] {
            assert!(!known(unknown, None), "{unknown}");
        }
        assert!(!known("h = torch.relu(model(x))", Some("model(x)")));
    }

    #[test]
    fn types_lists_and_clocks_are_no_sync_points() {
        assert_eq!(name("x = x.to(torch.bfloat16)", None), None);
        assert_eq!(name("x = np.array([1, 2])", None), None);
        assert_eq!(name("y = model(x)", None), None);
        assert_eq!(name("host = np.asarray(y)", None).as_deref(), Some("np.asarray"));
    }
}
