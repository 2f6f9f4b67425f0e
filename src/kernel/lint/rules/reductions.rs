//! A masked load without `other` whose undefined lanes go into a reduction.
//!
//! The mask has to vary along the axis that is reduced: a mask of rows does no harm to a sum over columns. A value counts as
//! mended where `tl.where` or a product with a value that is zero in those lanes stands on the way.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use tree_sitter::Node;

use super::super::super::finding::FindingKind;
use super::super::Issue;
use super::super::scope::Scope;
use super::super::source::{Call, Source};

const REDUCTIONS: [&str; 8] = ["sum", "max", "min", "argmax", "argmin", "xor_sum", "softmax", "dot"];
/// Functions of one lane each: what is undefined before is undefined after.
const ELEMENTWISE: [&str; 14] = [
    "to", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "abs", "sigmoid", "cast", "fma", "maximum",
    "minimum", "sin",
];
/// Most nodes that are looked at in one kernel.
const MAX_LOOKS: usize = 2_000_000;
/// Deepest expression that is followed.
const MAX_DEPTH: usize = 60;
/// Names that are followed from one load.
const MAX_STEPS: usize = 64;

/// The axes along which a mask varies: a bit each, [`FLAT`] for lanes that have no axis yet.
type Axes = u8;
const FLAT: Axes = 1 << 7;

pub(super) fn missing_other(scope: &Scope<'_, '_, '_>) -> Vec<Issue> {
    let follow = Follow::new(scope);
    let mut out = Vec::new();
    for load in scope.calls.iter().filter(|c| c.name == "load" && scope.is_triton(c)) {
        let Some(mask) = load.argument(1, "mask") else { continue };
        if load.argument(2, "other").is_some() || load.keyword("boundary_check").is_some() {
            continue;
        }
        let axes = follow.axes(mask, 0);
        let Some(reduction) = (axes != 0).then(|| follow.reduced(load.node, axes)).flatten() else {
            continue;
        };
        let mut issue = scope.issue(FindingKind::MissingOther, load.node, Some(load));
        issue.detail = format!("masked lanes are undefined and go into `{reduction}`");
        let neutral = match reduction.as_str() {
            "max" | "argmax" | "softmax" => "-float(\"inf\")",
            "min" | "argmin" => "float(\"inf\")",
            _ => "0.0",
        };
        let body = issue
            .before
            .strip_suffix(')')
            .unwrap_or(&issue.before)
            .trim_end()
            .trim_end_matches(',')
            .to_owned();
        issue.after = format!("{body}, other={neutral})");
        out.push(issue);
    }
    out
}

/// A value on its way: from `start` the name holds it, up to `end`.
struct Taint {
    name: String,
    axes: Axes,
    start: usize,
    end: usize,
}

enum Met {
    Reduction(String),
    Named(String, Axes, usize),
    Nothing,
}

struct Follow<'f, 's, 't, 'n> {
    scope: &'f Scope<'s, 't, 'n>,
    /// Where each name is used and where it is given a value, in the order of the text.
    uses: BTreeMap<&'t str, Vec<Node<'n>>>,
    given: BTreeMap<String, Vec<usize>>,
    /// Names that are zero, or chosen, in masked lanes.
    mended: BTreeSet<String>,
    /// Axes of the nodes that were asked for: names lead to values that hold names.
    known_axes: RefCell<HashMap<usize, Axes>>,
    /// Nodes that may still be looked at: a hostile source could ask for their square.
    fuel: Cell<usize>,
}

impl<'f, 's, 't, 'n> Follow<'f, 's, 't, 'n> {
    fn new(scope: &'f Scope<'s, 't, 'n>) -> Self {
        let mut uses: BTreeMap<&'t str, Vec<Node<'n>>> = BTreeMap::new();
        let mut given: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for &node in &scope.nodes {
            if node.kind() == "identifier" {
                uses.entry(scope.source.text(node)).or_default().push(node);
            }
            for (name, _) in scope.source.assignments(node) {
                given.entry(name).or_default().push(node.end_byte());
            }
        }
        let mut follow = Self {
            scope,
            uses,
            given,
            mended: BTreeSet::new(),
            known_axes: RefCell::default(),
            fuel: Cell::new(MAX_LOOKS),
        };
        for _ in 0..3 {
            let found: Vec<String> = scope
                .values
                .iter()
                .filter(|(_, values)| values.iter().any(|&value| follow.is_mended(value)))
                .map(|(name, _)| name.clone())
                .collect();
            follow.mended.extend(found);
        }
        follow
    }

    /// Takes fuel; false where none is left.
    fn spend(&self, nodes: usize) -> bool {
        let left = self.fuel.get();
        self.fuel.set(left.saturating_sub(nodes));
        left > nodes
    }

    /// Whether a value is defined in every lane because somebody saw to it.
    fn is_mended(&self, value: Node<'n>) -> bool {
        if !self.spend(0) {
            return true;
        }
        let parts = Source::below(value);
        self.spend(parts.len());
        parts.into_iter().any(|part| match part.kind() {
            "identifier" => self.mended.contains(self.scope.source.text(part)),
            "call" => self.scope.source.call(part).is_some_and(|c| {
                c.name == "where"
                    || c.name == "zeros"
                    || (c.name == "load" && c.argument(2, "other").is_some())
            }),
            _ => false,
        })
    }

    /// The axes along which a mask varies. A name that leads back to itself adds none.
    fn axes(&self, node: Node<'n>, depth: usize) -> Axes {
        if let Some(&known) = self.known_axes.borrow().get(&node.id()) {
            return known;
        }
        if depth > MAX_DEPTH || !self.spend(1) {
            return 0;
        }
        self.known_axes.borrow_mut().insert(node.id(), 0);
        let axes = self.axes_of(node, depth);
        self.known_axes.borrow_mut().insert(node.id(), axes);
        axes
    }

    fn axes_of(&self, node: Node<'n>, depth: usize) -> Axes {
        match node.kind() {
            "identifier" => {
                let values = self.scope.values.get(self.scope.source.text(node));
                values.into_iter().flatten().take(8).fold(0, |all, &v| all | self.axes(v, depth + 1))
            }
            "subscript" => {
                let inner = node.child_by_field_name("value").map_or(0, |v| self.axes(v, depth + 1));
                placed(self.scope.source, node, inner)
            }
            "call" => match self.scope.source.call(node) {
                Some(call) if call.name == "arange" => FLAT,
                Some(call) if call.name == "load" => 0,
                Some(call) => call.positional.iter().fold(0, |all, &a| all | self.axes(a, depth + 1)),
                None => 0,
            },
            _ => {
                let mut cursor = node.walk();
                let children: Vec<Node<'n>> = node.named_children(&mut cursor).collect();
                children.into_iter().fold(0, |all, c| all | self.axes(c, depth + 1))
            }
        }
    }

    /// The reduction that a value reaches, directly or through names.
    fn reduced(&self, load: Node<'n>, axes: Axes) -> Option<String> {
        let mut todo = Vec::new();
        match self.climb(load, axes) {
            Met::Reduction(name) => return Some(name),
            Met::Named(name, axes, start) => todo.push(self.taint(name, axes, start)),
            Met::Nothing => {}
        }
        let mut seen = BTreeSet::new();
        while let Some(taint) = todo.pop() {
            if seen.len() > MAX_STEPS || !seen.insert((taint.name.clone(), taint.start)) {
                continue;
            }
            for &node in self.uses.get(taint.name.as_str()).into_iter().flatten() {
                if node.start_byte() < taint.start || node.start_byte() > taint.end {
                    continue;
                }
                match self.climb(node, taint.axes) {
                    Met::Reduction(name) => return Some(name),
                    Met::Named(name, axes, start) => todo.push(self.taint(name, axes, start)),
                    Met::Nothing => {}
                }
            }
        }
        None
    }

    /// From the end of an assignment to the end of the next one to the same name.
    fn taint(&self, name: String, axes: Axes, start: usize) -> Taint {
        let next = self.given.get(&name).and_then(|ends| ends.iter().find(|&&end| end > start));
        let end = next.copied().unwrap_or(usize::MAX);
        Taint { name, axes, start, end }
    }

    /// Walks up from a value: to a reduction around it, to the name that it is given to, or to where it ends.
    fn climb(&self, from: Node<'n>, mut axes: Axes) -> Met {
        let source = self.scope.source;
        let mut node = from;
        let mut argument = from;
        while self.spend(1)
            && let Some(around) = self.scope.parent(node)
        {
            match around.kind() {
                "subscript" if around.child_by_field_name("value") == Some(node) => {
                    axes = placed(source, around, axes)
                }
                "argument_list" => argument = node,
                "parenthesized_expression" | "unary_operator" | "attribute" => {}
                "binary_operator" => {
                    let operator = around.child_by_field_name("operator").map_or("", |o| source.text(o));
                    let mut sides =
                        ["left", "right"].into_iter().filter_map(|f| around.child_by_field_name(f));
                    let other = sides.find(|s| s.id() != node.id());
                    if operator == "*" && other.is_some_and(|o| self.is_mended(o)) {
                        return Met::Nothing;
                    }
                }
                "call" => {
                    let Some(call) = source.call(around) else { return Met::Nothing };
                    let function = around.child_by_field_name("function");
                    // `max(a, b)` of Python compares two values, lane by lane.
                    let is_builtin = function.is_some_and(|f| f.kind() == "identifier")
                        && matches!(call.name.as_str(), "max" | "min" | "sum");
                    if REDUCTIONS.contains(&call.name.as_str()) && !is_builtin {
                        return self.reduction(&call, argument, function == Some(node), axes);
                    }
                    if !is_builtin && !ELEMENTWISE.contains(&call.name.as_str()) {
                        return Met::Nothing;
                    }
                }
                "assignment" | "augmented_assignment" => {
                    let mut given = source.assignments(around).into_iter();
                    let mine = given.find(|(_, value)| {
                        // `x += 1` keeps what x was.
                        around.kind() == "augmented_assignment"
                            || value.start_byte() <= from.start_byte() && from.end_byte() <= value.end_byte()
                    });
                    return match mine {
                        Some((name, _)) => Met::Named(name, axes, around.end_byte()),
                        None => Met::Nothing,
                    };
                }
                _ => return Met::Nothing,
            }
            node = around;
        }
        Met::Nothing
    }

    /// Whether a reduction goes over an axis along which lanes are undefined. A method's first argument is the axis.
    fn reduction(&self, call: &Call<'n>, argument: Node<'n>, is_method: bool, axes: Axes) -> Met {
        let undefined = if call.name == "dot" {
            // The first operand is summed over its columns, the second over its rows; zeros there make the other harmless.
            let [first, second] = [0, 1].map(|at| call.positional.get(at).copied());
            let (axis, other) = if first == Some(argument) { (1, second) } else { (0, first) };
            axes & (1 << axis) != 0 && !other.is_some_and(|o| self.is_mended(o))
        } else {
            match call.argument(usize::from(!is_method), "axis").map(|a| self.scope.source.text(a)) {
                None | Some("None") => true,
                Some(number) => {
                    number.parse::<u32>().is_ok_and(|axis| axis < 7 && axes & (FLAT | 1 << axis) != 0)
                }
            }
        };
        if undefined { Met::Reduction(call.name.clone()) } else { Met::Nothing }
    }
}

/// The axes of `value[:, None]`: flat lanes get the place of the colon.
fn placed(source: &Source<'_>, subscript: Node<'_>, inner: Axes) -> Axes {
    if inner & FLAT == 0 {
        return inner;
    }
    let mut cursor = subscript.walk();
    let places = subscript.children_by_field_name("subscript", &mut cursor).take(7);
    let colon = places.enumerate().find(|(_, part)| source.text(*part) == ":").map(|(at, _)| at);
    colon.map_or(inner, |at| (inner & !FLAT) | (1 << at))
}
