//! What the names of a kernel stand for: a program id, a range of lanes, a block of a tensor, a value that was widened.
//!
//! In: a kernel's tree. Out: [`Facts`] of any expression, an address's terms, the pointer it starts from. Names are read
//! without following branches: what a name is anywhere counts everywhere, in the way that makes fewer findings.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use tree_sitter::Node;

use super::super::finding::FindingKind;
use super::Issue;
use super::source::{Call, KernelSource, Source};

/// Deepest expression that is followed.
const MAX_DEPTH: usize = 60;
/// Most terms of one address.
const MAX_TERMS: usize = 256;

/// Calls whose result is made of their arguments and nothing else.
const TRANSPARENT: [&str; 22] = [
    "cdiv",
    "min",
    "max",
    "minimum",
    "maximum",
    "where",
    "multiple_of",
    "max_contiguous",
    "max_constancy",
    "expand_dims",
    "broadcast_to",
    "broadcast",
    "reshape",
    "view",
    "ravel",
    "trans",
    "range",
    "static_range",
    "abs",
    "int",
    "arange",
    "program_id",
];

/// What is known of a value. Every flag says "somewhere", none says "always".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Depends on a program id by arithmetic alone.
    pub program: bool,
    /// Is a program id, nothing added or multiplied.
    pub bare_program: bool,
    /// Depends on a program id only through its remainder: a head, a group.
    pub remainder: bool,
    /// Depends on `arange`.
    pub lanes: bool,
    /// Is 64 bits wide.
    pub wide: bool,
    /// Was kept inside by a remainder or a minimum.
    pub bounded: bool,
    /// Holds `program * BLOCK + arange(0, BLOCK)`.
    pub tile: bool,
    /// Holds a loaded value, or what another function returned.
    pub opaque: bool,
}

impl Facts {
    pub(super) fn join(self, other: Self) -> Self {
        let program = self.program || other.program;
        Self {
            program,
            bare_program: false,
            remainder: program && (self.remainder || !self.program) && (other.remainder || !other.program),
            lanes: self.lanes || other.lanes,
            wide: self.wide || other.wide,
            bounded: self.bounded || other.bounded,
            tile: self.tile || other.tile,
            opaque: self.opaque || other.opaque,
        }
    }
}

/// A kernel and what its names stand for.
pub(super) struct Scope<'s, 't, 'n> {
    pub source: &'s Source<'t>,
    pub kernel: &'s KernelSource<'n>,
    pub nodes: Vec<Node<'n>>,
    parents: BTreeMap<usize, Node<'n>>,
    pub calls: Vec<Call<'n>>,
    /// The first `return` statements.
    pub returns: Vec<Node<'n>>,
    names: BTreeMap<String, Facts>,
    /// What is known of expressions as long as no name changes: a tile asks for its start's facts, which may hold a tile.
    known: RefCell<HashMap<usize, Facts>>,
    /// The values that a name was given.
    pub values: BTreeMap<String, Vec<Node<'n>>>,
    /// Parameters, and names made of them, that an address starts from.
    pointers: BTreeSet<String>,
    /// Names whose value differs between programs, in whatever way.
    varying: BTreeSet<String>,
}

impl<'s, 't, 'n> Scope<'s, 't, 'n> {
    pub(super) fn new(source: &'s Source<'t>, kernel: &'s KernelSource<'n>) -> Self {
        let (nodes, parents) = Source::family(kernel.body);
        let calls = nodes.iter().filter_map(|&node| source.call(node)).collect();
        let returns = nodes.iter().copied().filter(|n| n.kind() == "return_statement").take(64).collect();
        let mut scope = Self {
            source,
            parents,
            returns,
            kernel,
            nodes,
            calls,
            names: BTreeMap::new(),
            known: RefCell::default(),
            values: BTreeMap::new(),
            pointers: BTreeSet::new(),
            varying: BTreeSet::new(),
        };
        let assignments: Vec<(String, Node<'n>)> =
            scope.nodes.iter().flat_map(|&node| source.assignments(node)).collect();
        for (name, value) in &assignments {
            scope.values.entry(name.clone()).or_default().push(*value);
        }
        for param in kernel.params.iter().filter(|p| p.annotation.contains("int64")) {
            scope.names.insert(param.name.clone(), Facts { wide: true, ..Facts::default() });
        }
        // Twice, so that a name used above its assignment in a loop is known too.
        for _ in 0..2 {
            for (name, value) in &assignments {
                let facts = scope.facts(*value);
                let known = scope.names.get(name).copied();
                let joined = known.map_or(facts, |k| if k == facts { k } else { k.join(facts) });
                if known != Some(joined) {
                    scope.names.insert(name.clone(), joined);
                    scope.known.borrow_mut().clear();
                }
            }
        }
        scope.find_pointers();
        scope.find_varying(&assignments);
        scope
    }

    /// `tl.load` and its kin, not a method or a function of somebody else's.
    pub(super) fn is_triton(&self, call: &Call<'n>) -> bool {
        let object = call.node.child_by_field_name("function").and_then(|f| f.child_by_field_name("object"));
        object.is_some_and(|o| matches!(self.source.text(o), "tl" | "triton.language" | "language"))
    }

    /// The loads, stores and atomic updates, the first of a hostile source.
    pub(super) fn accesses(&self) -> impl Iterator<Item = &Call<'n>> {
        self.calls.iter().filter(|call| super::rules::is_access(call) && self.is_triton(call)).take(2_000)
    }

    /// What stands around a node, inside the kernel's body.
    pub(super) fn parent(&self, node: Node<'n>) -> Option<Node<'n>> {
        self.parents.get(&node.id()).copied().filter(|around| around.id() != self.kernel.body.id())
    }

    pub(super) fn is_pointer(&self, name: &str) -> bool {
        self.pointers.contains(name)
    }

    /// Whether a parameter is passed at run time.
    pub(super) fn is_runtime_param(&self, name: &str) -> bool {
        self.kernel.params.iter().any(|p| p.name == name && !p.constexpr)
    }

    pub(super) fn is_constexpr(&self, name: &str) -> bool {
        self.kernel.params.iter().any(|p| p.name == name && p.constexpr)
    }

    pub(super) fn facts(&self, node: Node<'n>) -> Facts {
        self.facts_below(node, 0)
    }

    fn facts_below(&self, node: Node<'n>, depth: usize) -> Facts {
        if depth > MAX_DEPTH {
            return Facts { opaque: true, ..Facts::default() };
        }
        if let Some(&known) = self.known.borrow().get(&node.id()) {
            return known;
        }
        let facts = self.facts_of(node, depth);
        self.known.borrow_mut().insert(node.id(), facts);
        facts
    }

    fn facts_of(&self, node: Node<'n>, depth: usize) -> Facts {
        let child = |field: &str| {
            node.child_by_field_name(field).map(|c| self.facts_below(c, depth + 1)).unwrap_or_default()
        };
        match node.kind() {
            "identifier" => self.names.get(self.source.text(node)).copied().unwrap_or_default(),
            "subscript" => child("value"),
            "binary_operator" => self.operator_facts(node, child("left"), child("right")),
            "call" => self.call_facts(node, depth),
            "parenthesized_expression"
            | "unary_operator"
            | "not_operator"
            | "boolean_operator"
            | "comparison_operator"
            | "conditional_expression"
            | "tuple"
            | "expression_list"
            | "list" => {
                let mut cursor = node.walk();
                let mut parts = node.named_children(&mut cursor).map(|c| self.facts_below(c, depth + 1));
                let first = parts.next().unwrap_or_default();
                parts.fold(first, Facts::join)
            }
            _ => Facts::default(),
        }
    }

    fn operator_facts(&self, node: Node<'n>, left: Facts, right: Facts) -> Facts {
        let both = left.join(right);
        match node.child_by_field_name("operator").map_or("", |o| self.source.text(o)) {
            "%" => Facts { bounded: true, remainder: both.program && !both.lanes, ..both },
            "+" => Facts { tile: both.tile || self.is_tile(node), ..both },
            _ => both,
        }
    }

    fn call_facts(&self, node: Node<'n>, depth: usize) -> Facts {
        let Some(call) = self.source.call(node) else { return Facts::default() };
        let receiver = node.child_by_field_name("function").and_then(|f| f.child_by_field_name("object"));
        let mut arguments = call.positional.iter().map(|&arg| self.facts_below(arg, depth + 1));
        let first = arguments.next().unwrap_or_default();
        match call.name.as_str() {
            "program_id" => Facts { program: true, bare_program: true, ..Facts::default() },
            "arange" => Facts { lanes: true, ..Facts::default() },
            "num_programs" => Facts::default(),
            "to" | "cast" => {
                let on_module = receiver.is_some_and(|r| self.source.text(r) == "tl");
                let inner = match receiver {
                    Some(receiver) if !on_module => self.facts_below(receiver, depth + 1),
                    _ => first,
                };
                let wide = self.source.text(node).contains("int64");
                Facts { wide: inner.wide || wide, bare_program: inner.bare_program && !wide, ..inner }
            }
            "multiple_of" | "max_contiguous" | "max_constancy" => first,
            "minimum" | "min" | "where" => Facts { bounded: true, ..arguments.fold(first, Facts::join) },
            name if TRANSPARENT.contains(&name) => {
                Facts { bare_program: false, ..arguments.fold(first, Facts::join) }
            }
            // What was loaded has nothing of its address any more; what another function does is not looked at.
            _ => Facts { opaque: true, wide: self.source.text(node).contains("int64"), ..Facts::default() },
        }
    }

    /// `program * BLOCK + arange(0, BLOCK)`, the start perhaps under a name of its own.
    fn is_tile(&self, sum: Node<'n>) -> bool {
        let terms = self.source.parts(sum, &["+"]);
        let extents: Vec<&str> = terms.iter().filter_map(|&t| self.extent(t)).collect();
        !extents.is_empty()
            && terms.iter().any(|&t| self.resolved(t).into_iter().any(|t| self.is_block_start(t, &extents)))
    }

    fn is_block_start(&self, term: Node<'n>, extents: &[&str]) -> bool {
        match *self.source.parts(term, &["*"]) {
            [a, b] => [(a, b), (b, a)].into_iter().any(|(program, block)| {
                let size = self.source.text(block);
                names_a_block(size) && extents.contains(&size) && self.facts_of_program(program)
            }),
            _ => false,
        }
    }

    fn facts_of_program(&self, node: Node<'n>) -> bool {
        let facts = self.facts(node);
        facts.program && !facts.lanes
    }

    /// A name's values, or the node itself where it is no name with values.
    fn resolved(&self, node: Node<'n>) -> Vec<Node<'n>> {
        match self.values.get(self.source.text(node)) {
            Some(values) if node.kind() == "identifier" => values.iter().copied().take(8).collect(),
            _ => vec![node],
        }
    }

    /// The end of the `arange(0, end)` that an expression is.
    pub(super) fn extent(&self, node: Node<'n>) -> Option<&'t str> {
        let own = |node: Node<'n>| {
            let call = self.source.call(node).filter(|c| c.name == "arange")?;
            call.argument(1, "end").map(|end| self.source.text(end))
        };
        self.resolved(node).into_iter().find_map(|node| match node.kind() {
            "subscript" => node.child_by_field_name("value").and_then(own),
            _ => own(node),
        })
    }

    /// The parameters that addresses start from: the leftmost name of each, through the names that it is made of.
    fn find_pointers(&mut self) {
        let mut found = BTreeSet::new();
        for call in self.accesses() {
            let mut todo: Vec<Node<'n>> = call.argument(0, "pointer").into_iter().collect();
            let mut seen = BTreeSet::new();
            while let Some(node) = todo.pop() {
                match node.kind() {
                    "binary_operator" => todo.extend(node.child_by_field_name("left")),
                    "parenthesized_expression" => todo.extend(node.named_child(0)),
                    "subscript" => todo.extend(node.child_by_field_name("value")),
                    "identifier" => {
                        let name = self.source.text(node);
                        if !seen.insert(name) {
                            continue;
                        }
                        found.insert(name.to_owned());
                        todo.extend(self.values.get(name).into_iter().flatten().copied());
                    }
                    _ => {}
                }
            }
        }
        // `ptr += step` leads from the pointer to the step: an offset that is added is no pointer.
        found.retain(|name| {
            self.is_runtime_param(name) || !self.names.get(name).is_some_and(|f| f.bare_program)
        });
        self.pointers = found;
    }

    /// Names that depend on a program id through anything, loads and other functions too.
    fn find_varying(&mut self, assignments: &[(String, Node<'n>)]) {
        for _ in 0..8 {
            let before = self.varying.len();
            for (name, value) in assignments {
                if !self.varying.contains(name) && self.varies(*value) {
                    self.varying.insert(name.clone());
                }
            }
            if self.varying.len() == before {
                break;
            }
        }
    }

    /// Whether a value differs between programs.
    pub(super) fn varies(&self, node: Node<'n>) -> bool {
        Source::below(node).into_iter().any(|part| match part.kind() {
            "identifier" => self.varying.contains(self.source.text(part)),
            "call" => self.source.call(part).is_some_and(|c| c.name == "program_id"),
            _ => false,
        })
    }

    /// An address's terms, with those of the names that it is made of.
    pub(super) fn terms(&self, address: Node<'n>) -> Vec<Node<'n>> {
        let mut out = Vec::new();
        let mut todo = vec![address];
        let mut seen = BTreeSet::new();
        while let Some(node) = todo.pop() {
            for term in self.source.parts(node, &["+", "-"]) {
                let name = self.source.text(term);
                match self.values.get(name) {
                    Some(values) if term.kind() == "identifier" && self.is_sum(name, values) => {
                        if seen.insert(name) {
                            todo.extend(values.iter().copied());
                        }
                    }
                    _ => out.push(term),
                }
                if out.len() >= MAX_TERMS {
                    return out;
                }
            }
        }
        out
    }

    /// Whether a name is worth looking through: a pointer, a sum or a product. A block and a program id stay as they are.
    fn is_sum(&self, name: &str, values: &[Node<'n>]) -> bool {
        let facts = self.names.get(name).copied().unwrap_or_default();
        let arithmetic =
            |v: &Node<'n>| matches!(v.kind(), "binary_operator" | "parenthesized_expression" | "identifier");
        self.is_pointer(name)
            || (values.iter().all(arithmetic) && !facts.tile && !facts.bounded && !facts.bare_program)
    }

    /// The pointer that an address starts from.
    pub(super) fn base(&self, address: Node<'n>) -> String {
        let found = self.source.names(address).into_iter().map(|(name, _)| name).find(|n| self.is_pointer(n));
        found.unwrap_or_else(|| self.source.short(address))
    }

    pub(super) fn issue(&self, kind: FindingKind, node: Node<'n>, call: Option<&Call<'n>>) -> Issue {
        let (line, column) = Source::place(node);
        let reaches = call.map_or_else(String::new, |call| {
            let pointer = call.argument(0, "pointer").map(|p| self.base(p)).unwrap_or_default();
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
            last_line: Source::last_line(call.map_or(node, |c| c.node)).max(Source::last_line(node)),
            expression: self.source.short(node),
            reaches,
            detail: String::new(),
            before: self.source.short(node),
            after: String::new(),
            group: String::new(),
        }
    }
}

/// Whether a constant is a block's size by its name. `pid * HEAD_DIM + arange(0, HEAD_DIM)` is one whole row and needs no
/// mask.
fn names_a_block(name: &str) -> bool {
    let upper = name.to_uppercase();
    let width = ["DIM", "MODEL", "HEAD"].iter().any(|word| upper.contains(word));
    let short = upper.starts_with('B') && upper.len() <= 3;
    let literal = upper.bytes().all(|b| b.is_ascii_digit());
    !width && (upper.contains("BLOCK") || upper.contains("TILE") || short || literal)
}
