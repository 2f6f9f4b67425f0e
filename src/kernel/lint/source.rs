//! A Python file as kernels, assignments and calls.
//!
//! In: text. Out: a tree and the parts of it that rules ask for. A file with errors in it is read as far as it goes.

use std::collections::BTreeMap;

use tree_sitter::{Node, Parser, Tree};

/// Most nodes of a file or function that are looked at.
const MAX_NODES: usize = 1_000_000;
/// Most terms, factors and names of one expression that are looked at.
const MAX_PARTS: usize = 512;

/// A parsed file.
#[derive(Debug)]
pub(super) struct Source<'t> {
    text: &'t str,
    tree: Tree,
    /// Per line, counted from 1: which lints are silenced; an empty list means all.
    silenced: BTreeMap<u32, Vec<String>>,
}

/// A parameter of a kernel.
#[derive(Debug, Clone)]
pub(super) struct KernelParam {
    pub name: String,
    pub annotation: String,
    pub default: Option<String>,
    pub constexpr: bool,
}

/// A `@triton.jit` function.
#[derive(Debug)]
pub(super) struct KernelSource<'n> {
    pub name: String,
    pub params: Vec<KernelParam>,
    pub body: Node<'n>,
    /// Whether `@triton.autotune` chooses its options.
    pub autotuned: bool,
}

/// A launch of a kernel.
#[derive(Debug, Clone)]
pub(super) struct Launch<'n> {
    pub call: Call<'n>,
    /// Whether its grid is one program, in so many words.
    pub single_program: bool,
    /// Whether the function around it asserts that a size is a multiple.
    pub asserts_multiple: bool,
}

/// A call with its arguments.
#[derive(Debug, Clone)]
pub(super) struct Call<'n> {
    pub node: Node<'n>,
    /// The last part of the function's name: `load` of `tl.load`.
    pub name: String,
    pub positional: Vec<Node<'n>>,
    pub keywords: Vec<(String, Node<'n>)>,
}

impl<'n> Call<'n> {
    pub(super) fn keyword(&self, name: &str) -> Option<Node<'n>> {
        self.keywords.iter().find(|(key, _)| key == name).map(|(_, node)| *node)
    }

    pub(super) fn argument(&self, position: usize, name: &str) -> Option<Node<'n>> {
        self.positional.get(position).copied().or_else(|| self.keyword(name))
    }
}

impl<'t> Source<'t> {
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok()?;
        let tree = parser.parse(text, None)?;
        let mut source = Self { text, tree, silenced: BTreeMap::new() };
        source.read_comments();
        Some(source)
    }

    fn read_comments(&mut self) {
        let mut silenced: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for node in Self::below(self.root()).into_iter().filter(|node| node.kind() == "comment") {
            let comment = self.text(node).trim_start_matches('#').trim();
            let Some(rest) = comment.strip_prefix("warpfault:").map(str::trim) else { continue };
            let Some(rest) = rest.strip_prefix("ignore") else { continue };
            let names =
                rest.trim().strip_prefix('[').and_then(|r| r.split_once(']')).map_or("", |(list, _)| list);
            let names: Vec<String> =
                names.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
            let before = self.text.get(..node.start_byte()).unwrap_or("");
            let alone = before.rsplit('\n').next().unwrap_or("").trim().is_empty();
            // Alone on its line it speaks of the next one.
            let line = Self::place(node).0;
            let line = if alone { line.saturating_add(1) } else { line };
            // Two comments may speak of one line, and one without names speaks of every lint.
            match silenced.get_mut(&line) {
                Some(known) if known.is_empty() || names.is_empty() => known.clear(),
                Some(known) => known.extend(names),
                None => drop(silenced.insert(line, names)),
            }
        }
        self.silenced = silenced;
    }

    /// Whether a comment on one of these lines, or alone above them, silences a lint.
    pub(super) fn silences(&self, lines: std::ops::RangeInclusive<u32>, name: &str) -> bool {
        self.silenced.range(lines).any(|(_, names)| names.is_empty() || names.iter().any(|n| n == name))
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    /// On one line, blanks squeezed.
    pub(super) fn short(&self, node: Node<'_>) -> String {
        let text: String = self.text(node).chars().take(640).collect();
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").chars().take(160).collect()
    }

    pub(super) fn place(node: Node<'_>) -> (u32, u32) {
        let at = node.start_position();
        let number = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        (number(at.row), number(at.column))
    }

    /// The last line of a node.
    pub(super) fn last_line(node: Node<'_>) -> u32 {
        u32::try_from(node.end_position().row + 1).unwrap_or(u32::MAX)
    }

    /// The nodes below one, in the order of the text.
    pub(super) fn below<'n>(node: Node<'n>) -> Vec<Node<'n>> {
        let mut out = Vec::new();
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            if out.len() >= MAX_NODES {
                break;
            }
            out.push(node);
            let mut cursor = node.walk();
            let mut children: Vec<Node<'n>> = node.named_children(&mut cursor).collect();
            children.reverse();
            todo.append(&mut children);
        }
        out
    }

    /// The nodes below one and the parent of each: asking a node for its parent walks down from the root.
    pub(super) fn family<'n>(node: Node<'n>) -> (Vec<Node<'n>>, BTreeMap<usize, Node<'n>>) {
        let nodes = Self::below(node);
        let mut parents = BTreeMap::new();
        for &parent in &nodes {
            let mut cursor = parent.walk();
            parents.extend(parent.named_children(&mut cursor).map(|child| (child.id(), parent)));
        }
        (nodes, parents)
    }

    pub(super) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    pub(super) fn kernels(&self) -> Vec<KernelSource<'_>> {
        let mut out = Vec::new();
        for node in Self::below(self.root()) {
            if node.kind() != "decorated_definition" {
                continue;
            }
            let Some(function) = node.child_by_field_name("definition") else { continue };
            let mut cursor = node.walk();
            let decorators: Vec<String> = node
                .named_children(&mut cursor)
                .filter(|child| child.kind() == "decorator")
                .filter_map(|child| child.named_child(0))
                .map(|name| name.child_by_field_name("function").unwrap_or(name))
                .map(|name| self.text(name).to_owned())
                .collect();
            let last = |text: &str| text.rsplit('.').next().unwrap_or("").to_owned();
            let from_triton = |text: &&String| text.as_str() == "jit" || text.contains("triton");
            let is_kernel = decorators.iter().filter(from_triton).any(|d| last(d) == "jit");
            let (Some(name), Some(body)) =
                (function.child_by_field_name("name"), function.child_by_field_name("body"))
            else {
                continue;
            };
            if function.kind() == "function_definition" && is_kernel {
                out.push(KernelSource {
                    name: self.text(name).to_owned(),
                    params: function
                        .child_by_field_name("parameters")
                        .map(|p| self.params(p))
                        .unwrap_or_default(),
                    body,
                    autotuned: decorators.iter().any(|d| last(d).contains("tune") || last(d) == "heuristics"),
                });
            }
        }
        out
    }

    fn params(&self, list: Node<'_>) -> Vec<KernelParam> {
        let mut cursor = list.walk();
        let mut out = Vec::new();
        for child in list.named_children(&mut cursor) {
            let name = match child.kind() {
                "identifier" => Some(child),
                "typed_parameter" => child.named_child(0),
                "default_parameter" | "typed_default_parameter" => child.child_by_field_name("name"),
                _ => None,
            };
            let Some(name) = name else { continue };
            let annotation = child.child_by_field_name("type").map(|t| self.short(t)).unwrap_or_default();
            out.push(KernelParam {
                name: self.text(name).to_owned(),
                constexpr: annotation.contains("constexpr"),
                default: child.child_by_field_name("value").map(|v| self.short(v)),
                annotation,
            });
        }
        out
    }

    /// A call, where the node is one.
    pub(super) fn call<'n>(&self, node: Node<'n>) -> Option<Call<'n>> {
        if node.kind() != "call" {
            return None;
        }
        let function = node.child_by_field_name("function")?;
        let name = match function.kind() {
            "attribute" => self.text(function.child_by_field_name("attribute")?),
            "identifier" => self.text(function),
            _ => "",
        };
        let mut call = Call { node, name: name.to_owned(), positional: Vec::new(), keywords: Vec::new() };
        let list = node.child_by_field_name("arguments")?;
        let mut cursor = list.walk();
        for child in list.named_children(&mut cursor) {
            match child.kind() {
                "keyword_argument" => {
                    if let (Some(key), Some(value)) =
                        (child.child_by_field_name("name"), child.child_by_field_name("value"))
                    {
                        call.keywords.push((self.text(key).to_owned(), value));
                    }
                }
                "comment" => {}
                _ => call.positional.push(child),
            }
        }
        Some(call)
    }

    /// `name = value`, `name += value`, `a, b = x, y` and `for name in value`, as names and values; a name that gets a part
    /// of a value has the whole one.
    pub(super) fn assignments<'n>(&self, node: Node<'n>) -> Vec<(String, Node<'n>)> {
        if !matches!(node.kind(), "assignment" | "augmented_assignment" | "for_statement") {
            return Vec::new();
        }
        let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return Vec::new();
        };
        let parts = |list: Node<'n>| -> Vec<Node<'n>> {
            let mut cursor = list.walk();
            list.named_children(&mut cursor).filter(|part| part.kind() != "comment").collect()
        };
        match left.kind() {
            "identifier" => vec![(self.text(left).to_owned(), right)],
            "pattern_list" | "tuple_pattern" => {
                let (names, values) = (parts(left), parts(right));
                let paired =
                    matches!(right.kind(), "expression_list" | "tuple") && names.len() == values.len();
                let each = names.into_iter().enumerate().filter(|(_, name)| name.kind() == "identifier");
                each.map(|(at, name)| {
                    let value = values.get(at).copied().filter(|_| paired).unwrap_or(right);
                    (self.text(name).to_owned(), value)
                })
                .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Every launch in the file, by the kernel's name.
    pub(super) fn launches(&self) -> BTreeMap<String, Vec<Launch<'_>>> {
        let mut out: BTreeMap<String, Vec<Launch<'_>>> = BTreeMap::new();
        let mut around = vec![Function { end: usize::MAX, ..Function::default() }];
        let mut calls = Vec::new();
        let mut closed = BTreeMap::new();
        for (at, node) in Self::below(self.root()).into_iter().enumerate() {
            while around.len() > 1 && around.last().is_some_and(|f| f.end <= node.start_byte()) {
                closed.extend(around.pop().map(|f| (f.id, f.asserts_multiple)));
            }
            let Some(function) = around.last_mut() else { break };
            match node.kind() {
                "function_definition" => {
                    around.push(Function { id: at, end: node.end_byte(), ..Function::default() });
                }
                // Not its message, where a `%` formats.
                "assert_statement" => {
                    let condition = node.named_child(0).map_or("", |condition| self.text(condition));
                    function.asserts_multiple |= condition.contains('%');
                }
                "assignment" => {
                    for (name, value) in self.assignments(node) {
                        function.one_program.insert(name, self.is_ones(value));
                    }
                }
                "call" => {
                    let Some((kernel, call, grid)) = self.launch(node) else { continue };
                    let named =
                        || around.iter().rev().find_map(|f| f.one_program.get(self.text(grid)).copied());
                    let single_program = match grid.kind() {
                        "identifier" => named().unwrap_or(false),
                        _ => self.is_ones(grid),
                    };
                    calls.push((kernel, around.last().map_or(0, |f| f.id), call, single_program));
                }
                _ => {}
            }
        }
        closed.extend(around.into_iter().map(|f| (f.id, f.asserts_multiple)));
        for (kernel, function, call, single_program) in calls {
            let asserts_multiple = function != 0 && closed.get(&function).copied().unwrap_or(false);
            out.entry(kernel).or_default().push(Launch { call, single_program, asserts_multiple });
        }
        out
    }

    /// `kernel[grid](…)` as the kernel's name, the call and the grid.
    fn launch<'n>(&self, node: Node<'n>) -> Option<(String, Call<'n>, Node<'n>)> {
        let head = node.child_by_field_name("function").filter(|f| f.kind() == "subscript")?;
        let kernel = head.child_by_field_name("value").filter(|v| v.kind() == "identifier")?;
        let grid = head.child_by_field_name("subscript")?;
        Some((self.text(kernel).to_owned(), self.call(node)?, grid))
    }

    /// `(1,)`, `1` or `(1, 1, 1)`.
    fn is_ones(&self, node: Node<'_>) -> bool {
        let sizes = self.text(node).trim_matches(|c| matches!(c, '(' | ')' | '[' | ']'));
        sizes.split(',').map(str::trim).filter(|size| !size.is_empty()).all(|size| size == "1")
    }

    /// The terms of a sum and the factors of a product, parentheses and indexing looked through.
    pub(super) fn parts<'n>(&self, node: Node<'n>, operators: &[&str]) -> Vec<Node<'n>> {
        let mut out = Vec::new();
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            match node.kind() {
                "parenthesized_expression" => todo.extend(node.named_child(0)),
                // offs[:, None] is offs
                "subscript" => todo.extend(node.child_by_field_name("value")),
                "binary_operator" => {
                    let operator = node.child_by_field_name("operator").map_or("", |o| self.text(o));
                    let sides = (node.child_by_field_name("left"), node.child_by_field_name("right"));
                    match sides {
                        (Some(left), Some(right)) if operators.contains(&operator) => {
                            todo.extend([right, left])
                        }
                        _ => out.push(node),
                    }
                }
                _ => out.push(node),
            }
            if out.len() + todo.len() > MAX_PARTS {
                break;
            }
        }
        out
    }

    /// The identifiers in an expression, names of attributes and keywords left out.
    pub(super) fn names<'n>(&self, node: Node<'n>) -> Vec<(String, Node<'n>)> {
        let mut out = Vec::new();
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            match node.kind() {
                "identifier" => out.push((self.text(node).to_owned(), node)),
                "attribute" => todo.extend(node.child_by_field_name("object")),
                "keyword_argument" => todo.extend(node.child_by_field_name("value")),
                _ => {
                    let mut cursor = node.walk();
                    let mut children: Vec<Node<'n>> = node.named_children(&mut cursor).collect();
                    children.reverse();
                    todo.append(&mut children);
                }
            }
            if out.len() >= MAX_PARTS {
                break;
            }
        }
        out
    }
}

/// A function on the way down: what its launches ask about.
#[derive(Default)]
struct Function {
    id: usize,
    end: usize,
    asserts_multiple: bool,
    /// Names given so far, and whether the value is a grid of one program.
    one_program: BTreeMap<String, bool>,
}
