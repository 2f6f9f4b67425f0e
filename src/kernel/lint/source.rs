//! A Python file as kernels, assignments and calls.
//!
//! In: text. Out: a tree and the parts of it that rules ask for. A file with errors in it is read as far as it goes.

use std::collections::BTreeMap;

use tree_sitter::{Node, Parser, Tree};

/// Most nodes that are looked at in one function.
const MAX_NODES: usize = 200_000;

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
        for (at, line) in self.text.lines().enumerate() {
            let Some((code, comment)) = line.split_once('#') else { continue };
            let Some(rest) = comment.trim().strip_prefix("warpfault:").map(str::trim) else { continue };
            let Some(rest) = rest.strip_prefix("ignore") else { continue };
            let names =
                rest.trim().strip_prefix('[').and_then(|r| r.split_once(']')).map_or("", |(list, _)| list);
            let names: Vec<String> =
                names.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
            // Alone on its line it speaks of the next one.
            let own = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let line = if code.trim().is_empty() { own.saturating_add(1) } else { own };
            self.silenced.insert(line, names);
        }
    }

    pub(super) fn silences(&self, line: u32, name: &str) -> bool {
        self.silenced.get(&line).is_some_and(|names| names.is_empty() || names.iter().any(|n| n == name))
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    /// On one line, blanks squeezed.
    pub(super) fn short(&self, node: Node<'_>) -> String {
        let words: Vec<&str> = self.text(node).split_whitespace().collect();
        words.join(" ").chars().take(160).collect()
    }

    pub(super) fn place(node: Node<'_>) -> (u32, u32) {
        let at = node.start_position();
        let number = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        (number(at.row), number(at.column))
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
                .map(|child| {
                    self.text(child).trim_start_matches('@').split('(').next().unwrap_or("").trim().to_owned()
                })
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
                    autotuned: decorators
                        .iter()
                        .any(|d| matches!(last(d).as_str(), "autotune" | "heuristics")),
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

    /// `name = value`, `name: type = value` and `name += value`, as the name and the value.
    pub(super) fn assignment<'n>(&self, node: Node<'n>) -> Option<(String, Node<'n>)> {
        if !matches!(node.kind(), "assignment" | "augmented_assignment") {
            return None;
        }
        let (left, right) = (node.child_by_field_name("left")?, node.child_by_field_name("right")?);
        (left.kind() == "identifier").then(|| (self.text(left).to_owned(), right))
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
            if out.len() + todo.len() > MAX_NODES {
                break;
            }
        }
        out
    }

    /// The identifiers in an expression, names of attributes and keywords left out.
    pub(super) fn names<'n>(&self, node: Node<'n>) -> Vec<(String, Node<'n>)> {
        let skip = |n: &Node<'n>| {
            n.parent().is_some_and(|p| {
                (p.kind() == "attribute"
                    && p.child_by_field_name("attribute").map(|a| a.id()) == Some(n.id()))
                    || (p.kind() == "keyword_argument"
                        && p.child_by_field_name("name").map(|a| a.id()) == Some(n.id()))
            })
        };
        Self::below(node)
            .into_iter()
            .filter(|n| n.kind() == "identifier" && !skip(n))
            .map(|n| (self.text(n).to_owned(), n))
            .collect()
    }
}
