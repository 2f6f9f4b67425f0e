//! The rules. Each sees what names stand for: a program id, a range of lanes, a value that was widened.
//!
//! In: a kernel. Out: issues. The table that they follow stands in the Triton review playbook.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::super::analyze::FindingKind;
use super::Issue;
use super::source::{Call, KernelSource, Source};

const ACCESSES: [&str; 8] =
    ["load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas", "atomic_or"];
const REDUCTIONS: [&str; 10] =
    ["sum", "max", "min", "argmax", "argmin", "dot", "reduce", "xor_sum", "cumsum", "softmax"];

/// What is known of a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Facts {
    /// Depends on a program id.
    program: bool,
    /// Is a program id, nothing added or multiplied.
    bare_program: bool,
    /// Depends on `arange`.
    lanes: bool,
    /// Is 64 bits wide.
    wide: bool,
    /// Was reduced by a remainder, so it stays inside.
    bounded: bool,
    /// Starts from a pointer parameter.
    pointer: bool,
}

impl Facts {
    fn join(self, other: Self) -> Self {
        Self {
            program: self.program || other.program,
            bare_program: false,
            lanes: self.lanes || other.lanes,
            wide: self.wide || other.wide,
            bounded: self.bounded || other.bounded,
            pointer: self.pointer || other.pointer,
        }
    }
}

struct Scope<'s, 't, 'n> {
    source: &'s Source<'t>,
    kernel: &'s KernelSource<'n>,
    nodes: Vec<Node<'n>>,
    calls: Vec<Call<'n>>,
    names: BTreeMap<String, Facts>,
    /// The values that a name was given.
    values: BTreeMap<String, Vec<Node<'n>>>,
}

/// Every issue of a kernel.
pub(super) fn all(source: &Source<'_>, kernel: &KernelSource<'_>) -> Vec<Issue> {
    let scope = Scope::new(source, kernel);
    let mut out = Vec::new();
    for call in &scope.calls {
        if ACCESSES.contains(&call.name.as_str()) && scope.is_triton(call) {
            out.extend(scope.narrow_product(call));
            out.extend(scope.missing_stride(call));
            out.extend(scope.unmasked(call));
            out.extend(scope.shared_address(call));
        }
        if call.name == "arange" {
            out.extend(scope.odd_block(call));
        }
    }
    out.extend(scope.missing_other());
    out.extend(scope.launches());
    out
}

impl<'s, 't, 'n> Scope<'s, 't, 'n> {
    fn new(source: &'s Source<'t>, kernel: &'s KernelSource<'n>) -> Self {
        let nodes = Source::below(kernel.body);
        let calls = nodes.iter().filter_map(|&node| source.call(node)).collect();
        let mut scope =
            Self { source, kernel, nodes, calls, names: BTreeMap::new(), values: BTreeMap::new() };
        for param in kernel.params.iter().filter(|p| !p.constexpr && p.name.to_lowercase().contains("ptr")) {
            scope.names.insert(param.name.clone(), Facts { pointer: true, ..Facts::default() });
        }
        let assignments: Vec<(String, Node<'n>)> =
            scope.nodes.iter().filter_map(|&node| source.assignment(node)).collect();
        // Twice, so that a name used above its assignment in a loop is known too.
        for _ in 0..2 {
            for (name, value) in &assignments {
                let facts = scope.facts(*value, 0);
                let known = scope.names.get(name).copied();
                scope.names.insert(
                    name.clone(),
                    known.map_or(facts, |k| if k == facts { k } else { k.join(facts) }),
                );
            }
        }
        for (name, value) in assignments {
            scope.values.entry(name).or_default().push(value);
        }
        scope
    }

    fn is_triton(&self, call: &Call<'n>) -> bool {
        let function = call.node.child_by_field_name("function");
        function.is_some_and(|f| {
            f.kind() == "attribute"
                && f.child_by_field_name("object")
                    .is_some_and(|o| matches!(self.source.text(o), "tl" | "triton.language" | "language"))
        })
    }

    fn facts(&self, node: Node<'n>, depth: usize) -> Facts {
        if depth > 60 {
            return Facts::default();
        }
        let child = |field: &str| {
            node.child_by_field_name(field).map(|c| self.facts(c, depth + 1)).unwrap_or_default()
        };
        match node.kind() {
            "identifier" => self.names.get(self.source.text(node)).copied().unwrap_or_default(),
            "parenthesized_expression" => {
                node.named_child(0).map(|c| self.facts(c, depth + 1)).unwrap_or_default()
            }
            "subscript" => child("value"),
            "binary_operator" => {
                let both = child("left").join(child("right"));
                let operator = node.child_by_field_name("operator").map_or("", |o| self.source.text(o));
                Facts { bounded: both.bounded || operator == "%", ..both }
            }
            "call" => self.call_facts(node, depth),
            "unary_operator" => node.named_child(0).map(|c| self.facts(c, depth + 1)).unwrap_or_default(),
            _ => Facts::default(),
        }
    }

    fn call_facts(&self, node: Node<'n>, depth: usize) -> Facts {
        let Some(call) = self.source.call(node) else { return Facts::default() };
        let receiver = node.child_by_field_name("function").and_then(|f| f.child_by_field_name("object"));
        let arguments =
            call.positional.iter().fold(Facts::default(), |all, &arg| all.join(self.facts(arg, depth + 1)));
        match call.name.as_str() {
            "program_id" => Facts { program: true, bare_program: true, ..Facts::default() },
            "arange" => Facts { lanes: true, ..Facts::default() },
            "to" | "cast" => {
                let inner = receiver.map(|r| self.facts(r, depth + 1)).unwrap_or_default().join(arguments);
                let wide = self.source.text(node).contains("int64");
                Facts { wide: inner.wide || wide, bare_program: false, ..inner }
            }
            // What was loaded has nothing of its address any more.
            "load" => Facts::default(),
            _ => arguments,
        }
    }

    fn issue(&self, kind: FindingKind, node: Node<'n>, call: Option<&Call<'n>>) -> Issue {
        let (line, column) = Source::place(node);
        let reaches = call.map_or_else(String::new, |call| {
            let pointer = call.positional.first().map(|&p| self.base(p)).unwrap_or_default();
            let verb = match call.name.as_str() {
                "load" => "load from",
                "store" => "store to",
                _ => "atomic update of",
            };
            format!("{verb} {pointer}")
        });
        Issue {
            kind,
            line,
            column,
            expression: self.source.short(node),
            reaches,
            detail: String::new(),
            before: self.source.short(node),
            after: String::new(),
        }
    }

    /// The pointer that an address starts from.
    fn base(&self, pointer: Node<'n>) -> String {
        let is_pointer = |name: &String| self.names.get(name).is_some_and(|f| f.pointer);
        let found = self.source.names(pointer).into_iter().map(|(name, _)| name).find(is_pointer);
        found.unwrap_or_else(|| self.source.short(pointer))
    }

    /// An address's terms, with those of the names that it is made of.
    fn terms(&self, pointer: Node<'n>) -> Vec<Node<'n>> {
        let mut out = Vec::new();
        let mut todo = vec![pointer];
        let mut seen = BTreeSet::new();
        while let Some(node) = todo.pop() {
            for term in self.source.parts(node, &["+", "-"]) {
                let name = self.source.text(term);
                let is_pointer = self.names.get(name).is_some_and(|f| f.pointer);
                match self.values.get(name) {
                    Some(values)
                        if term.kind() == "identifier" && is_pointer && seen.insert(name.to_owned()) =>
                    {
                        todo.extend(values.iter().copied());
                    }
                    _ => out.push(term),
                }
            }
        }
        out
    }

    /// `row * stride` in 32 bits: a program id times what the caller passes.
    fn narrow_product(&self, call: &Call<'n>) -> Option<Issue> {
        let pointer = call.positional.first()?;
        for term in self.terms(*pointer) {
            let factors = self.source.parts(term, &["*"]);
            if factors.len() < 2 {
                continue;
            }
            let facts: Vec<Facts> = factors.iter().map(|&f| self.facts(f, 0)).collect();
            let passed = factors.iter().any(|&f| {
                let name = self.source.text(f);
                f.kind() == "identifier" && self.kernel.params.iter().any(|p| p.name == name && !p.constexpr)
            });
            let row = factors.iter().zip(&facts).find(|(_, f)| f.program);
            if let (Some((row, _)), true, false) = (row, passed, facts.iter().any(|f| f.wide)) {
                let mut issue = self.issue(FindingKind::Int32Overflow, term, Some(call));
                issue.detail =
                    "the product is formed in 32 bits and wraps on large tensors; the compiled kernel says at which size".into();
                let row = self.source.short(*row);
                issue.after = issue.before.replacen(&row, &format!("{row}.to(tl.int64)"), 1);
                return Some(issue);
            }
        }
        None
    }

    /// `ptr + row + cols`: the row is added as it is.
    fn missing_stride(&self, call: &Call<'n>) -> Option<Issue> {
        let pointer = call.positional.first()?;
        let terms = self.terms(*pointer);
        let lanes = terms.iter().any(|&t| self.facts(t, 0).lanes);
        let bare = terms.iter().find(|&&t| {
            let facts = self.facts(t, 0);
            facts.bare_program && !facts.lanes
        })?;
        if !lanes {
            return None;
        }
        let mut issue = self.issue(FindingKind::MissingStride, *pointer, Some(call));
        let row = self.source.short(*bare);
        issue.detail =
            format!("{row} is added without its stride: rows overlap and only the first elements are read");
        issue.after = issue.before.replacen(&row, &format!("{row} * stride"), 1);
        Some(issue)
    }

    /// A tile without a mask.
    fn unmasked(&self, call: &Call<'n>) -> Option<Issue> {
        let pointer = call.positional.first()?;
        let position = if call.name == "load" { 1 } else { 2 };
        if call.argument(position, "mask").is_some() || call.keyword("boundary_check").is_some() {
            return None;
        }
        let tile = self.terms(*pointer).into_iter().find(|&t| {
            let facts = self.facts(t, 0);
            facts.program && facts.lanes && !facts.bounded
        })?;
        let mut issue = self.issue(FindingKind::UnmaskedAccess, call.node, Some(call));
        let offsets =
            self.source.parts(tile, &["*"]).into_iter().find(|&f| self.facts(f, 0).lanes).unwrap_or(tile);
        let offsets = self.source.short(offsets);
        issue.expression = offsets.clone();
        issue.detail =
            "no mask: the last program leaves the buffer when the size is no multiple of the block".into();
        let body = issue.before.strip_suffix(')').unwrap_or(&issue.before).to_owned();
        issue.after = format!("{body}, mask={offsets} < n)");
        Some(issue)
    }

    /// A store to one place by every program.
    fn shared_address(&self, call: &Call<'n>) -> Option<Issue> {
        if call.name != "store" {
            return None;
        }
        let pointer = call.positional.first()?;
        let uses_programs = self.calls.iter().any(|c| c.name == "program_id");
        let own = self.terms(*pointer).into_iter().any(|t| self.facts(t, 0).program)
            || self.facts(*pointer, 0).program;
        if !uses_programs || own || !self.facts(*pointer, 0).pointer || self.is_conditional(call.node) {
            return None;
        }
        let mut issue = self.issue(FindingKind::NonAtomicStore, call.node, Some(call));
        issue.detail = "the address is the same in every program: the last writer wins".into();
        issue.after = issue.before.replacen("store", "atomic_add", 1);
        Some(issue)
    }

    /// Whether a branch or loop on a program id stands around a node.
    fn is_conditional(&self, node: Node<'n>) -> bool {
        let mut at = node.parent();
        while let Some(around) = at {
            if around.id() == self.kernel.body.id() {
                return false;
            }
            let condition =
                around.child_by_field_name("condition").or_else(|| around.child_by_field_name("right"));
            if matches!(around.kind(), "if_statement" | "while_statement" | "for_statement")
                && condition.is_some_and(|c| {
                    self.source.names(c).iter().any(|(n, _)| self.names.get(n).is_some_and(|f| f.program))
                })
            {
                return true;
            }
            at = around.parent();
        }
        false
    }

    /// Masked loads without `other` whose value goes into a reduction.
    fn missing_other(&self) -> Vec<Issue> {
        let mut out = Vec::new();
        for load in self.calls.iter().filter(|c| c.name == "load" && self.is_triton(c)) {
            if load.argument(1, "mask").is_none() || load.argument(2, "other").is_some() {
                continue;
            }
            if let Some(reduction) = self.reduced(load.node) {
                let mut issue = self.issue(FindingKind::MissingOther, load.node, Some(load));
                issue.detail = format!("masked lanes are undefined and go into `{reduction}`");
                let neutral = match reduction.as_str() {
                    "max" | "argmax" | "softmax" => "-float(\"inf\")",
                    "min" | "argmin" => "float(\"inf\")",
                    _ => "0.0",
                };
                let body = issue.before.strip_suffix(')').unwrap_or(&issue.before).to_owned();
                issue.after = format!("{body}, other={neutral})");
                out.push(issue);
            }
        }
        out
    }

    /// The reduction that a value reaches, directly or through names. `tl.where` mends undefined lanes.
    fn reduced(&self, from: Node<'n>) -> Option<String> {
        let mut tainted: BTreeSet<String> = BTreeSet::new();
        if let Some(found) = self.enclosing(from, &mut tainted) {
            return found;
        }
        for _ in 0..4 {
            let before = tainted.len();
            for &node in &self.nodes {
                if node.kind() == "identifier"
                    && tainted.contains(self.source.text(node))
                    && let Some(found) = self.enclosing(node, &mut tainted)
                {
                    return found;
                }
            }
            if tainted.len() == before {
                break;
            }
        }
        None
    }

    /// Walks up from a value: a reduction around it ends the search, an assignment adds its name. `Some(None)` means that
    /// it was mended on the way.
    #[expect(clippy::option_option, reason = "found, mended and neither are three answers")]
    fn enclosing(&self, from: Node<'n>, tainted: &mut BTreeSet<String>) -> Option<Option<String>> {
        let mut at = Some(from);
        while let Some(node) = at {
            if let Some(call) = self.source.call(node)
                && node.id() != from.id()
            {
                if REDUCTIONS.contains(&call.name.as_str()) {
                    return Some(Some(call.name));
                }
                if matches!(call.name.as_str(), "where" | "store" | "load") {
                    return None;
                }
            }
            if let Some((name, value)) = self.source.assignment(node) {
                let inside = from.start_byte() >= value.start_byte() && from.end_byte() <= value.end_byte();
                if inside {
                    tainted.insert(name);
                }
                return None;
            }
            at = node.parent().filter(|n| n.id() != self.kernel.body.id());
        }
        None
    }

    /// `tl.arange(0, 100)`, or a block's default of 100.
    fn odd_block(&self, call: &Call<'n>) -> Option<Issue> {
        let end = call.positional.get(1)?;
        let name = self.source.text(*end);
        let literal = match end.kind() {
            "integer" => name.parse::<u64>().ok(),
            _ => self
                .kernel
                .params
                .iter()
                .find(|p| p.name == name && p.constexpr)
                .and_then(|p| p.default.as_deref())
                .and_then(|d| d.parse().ok()),
        };
        let size = literal.filter(|&n| n > 0 && !n.is_power_of_two())?;
        Some(self.block_issue(*end, size))
    }

    fn block_issue(&self, node: Node<'n>, size: u64) -> Issue {
        let mut issue = self.issue(FindingKind::BlockNotPowerOfTwo, node, None);
        issue.detail = format!("{size} is no power of two: the compiler refuses it, or the code is poor");
        issue.after = format!("{} (with a mask), or triton.next_power_of_2(n)", size.next_power_of_two());
        issue
    }

    /// `kernel[grid](…, BLOCK=100, num_warps=8)`
    fn launches(&self) -> Vec<Issue> {
        let mut out = Vec::new();
        let arange_ends: BTreeSet<&str> = self
            .calls
            .iter()
            .filter(|c| c.name == "arange")
            .filter_map(|c| c.positional.get(1))
            .map(|&end| self.source.text(end))
            .collect();
        let heavy = self.calls.iter().any(|c| c.name == "dot");
        for node in Source::below(self.source_root()) {
            let Some(call) = self.source.call(node) else { continue };
            let launched = node
                .child_by_field_name("function")
                .filter(|f| f.kind() == "subscript")
                .and_then(|f| f.child_by_field_name("value"))
                .is_some_and(|v| self.source.text(v) == self.kernel.name);
            if !launched {
                continue;
            }
            for (key, value) in &call.keywords {
                let number = self.source.text(*value).parse::<u64>().ok();
                match number {
                    Some(size) if arange_ends.contains(key.as_str()) && !size.is_power_of_two() => {
                        out.push(self.block_issue(*value, size));
                    }
                    Some(warps) if key == "num_warps" && heavy && !self.kernel.autotuned => {
                        let mut issue = self.issue(FindingKind::FixedNumWarps, *value, None);
                        issue.expression = format!("num_warps={warps}");
                        issue.detail = "a fixed number of warps on a kernel with `tl.dot`: spills or low occupancy on other shapes".into();
                        issue.before = format!("num_warps={warps}");
                        issue.after = "@triton.autotune(configs=[...], key=[\"M\", \"N\", \"K\"])".into();
                        out.push(issue);
                    }
                    _ => {}
                }
            }
        }
        out
    }

    fn source_root(&self) -> Node<'n> {
        let mut at = self.kernel.body;
        while let Some(parent) = at.parent() {
            at = parent;
        }
        at
    }
}
