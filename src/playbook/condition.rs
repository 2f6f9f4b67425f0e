//! Conditions over the evidence, in three values: true, false, unknown.
//!
//! In: an expression in minijinja's language and what is known. Out: [`Judged`]. `and`, `or` and `not` follow Kleene: an
//! unknown part leaves the whole unknown unless the other part decides it alone. Each part between them is minijinja's
//! to evaluate; a part that asked for a name without a value is unknown, whatever came out. Fuel bounds the work.

mod split;

use std::sync::Arc;
use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior};

use super::known::{Known, Watched};
use split::Parts;

/// Steps of the expression machine that one part may take.
const FUEL: u64 = 2_000;

/// A truth value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It fails.
    False,
    /// A name has no value, and the rest doesn't decide.
    Unknown,
}

impl Truth {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::True, Self::True) => Self::True,
            _ => Self::Unknown,
        }
    }

    fn negate(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// The outcome of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The truth value.
    pub truth: Truth,
    /// Names without a value that keep it unknown, sorted; empty where it is known.
    pub needs: Vec<String>,
}

static LANGUAGE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut language = Environment::new();
    language.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    language.set_fuel(Some(FUEL));
    language
});

/// Judges a condition.
///
/// # Errors
/// A sentence that says why the condition can't be evaluated: its syntax, a filter that doesn't exist, a part that is no
/// yes-or-no question, or too much work.
pub fn judge(condition: &str, known: &Arc<Known>) -> Result<Judged, String> {
    let parts = split::split(condition)?;
    let mut needs = Vec::new();
    let truth = evaluate(&parts, known, &mut needs)?;
    if truth == Truth::Unknown {
        needs.sort();
        needs.dedup();
    } else {
        needs.clear();
    }
    Ok(Judged { truth, needs })
}

/// The names that a condition asks for, dotted; `known("…")` counts by its argument.
///
/// # Errors
/// A sentence about the syntax.
pub fn names(condition: &str) -> Result<Vec<String>, String> {
    let expression = LANGUAGE.compile_expression(condition).map_err(|error| reason(&error))?;
    let mut names: Vec<String> =
        expression.undeclared_variables(true).into_iter().filter(|name| name != "known").collect();
    names.extend(split::asked_for(condition));
    names.sort();
    Ok(names)
}

/// Every part of a condition that holds no `and`, `or` or `not` of its own.
///
/// # Errors
/// A sentence about the syntax.
pub fn parts(condition: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    split::split(condition)?.leaves(&mut found);
    Ok(found)
}

/// The value of an expression, where every name that it asks for has one.
///
/// # Errors
/// A sentence that says why the expression can't be evaluated.
pub fn value(expression: &str, known: &Arc<Known>) -> Result<Option<minijinja::Value>, String> {
    let (root, missing) = Watched::root(known);
    let compiled = LANGUAGE.compile_expression(expression).map_err(|error| reason(&error))?;
    let value = compiled.eval(root);
    if !missing.names().is_empty() {
        return Ok(None);
    }
    value.map(Some).map_err(|error| reason(&error))
}

fn evaluate(parts: &Parts, known: &Arc<Known>, needs: &mut Vec<String>) -> Result<Truth, String> {
    match parts {
        Parts::Leaf(text) => leaf(text, known, needs),
        Parts::Not(part) => Ok(evaluate(part, known, needs)?.negate()),
        Parts::And(all) => {
            all.iter().try_fold(Truth::True, |truth, part| Ok(truth.and(evaluate(part, known, needs)?)))
        }
        // De Morgan: a or b is not (not a and not b), in three values too.
        Parts::Or(all) => all
            .iter()
            .try_fold(Truth::True, |truth, part| Ok(truth.and(evaluate(part, known, needs)?.negate())))
            .map(Truth::negate),
    }
}

fn leaf(text: &str, known: &Arc<Known>, needs: &mut Vec<String>) -> Result<Truth, String> {
    let compiled = LANGUAGE.compile_expression(text).map_err(|error| reason(&error))?;
    let (root, missing) = Watched::root(known);
    let value = compiled.eval(root);
    let names = missing.names();
    if !names.is_empty() {
        needs.extend(names);
        return Ok(Truth::Unknown);
    }
    let value = value.map_err(|error| reason(&error))?;
    match bool::try_from(value.clone()) {
        Ok(true) if value.kind() == minijinja::value::ValueKind::Bool => Ok(Truth::True),
        Ok(false) if value.kind() == minijinja::value::ValueKind::Bool => Ok(Truth::False),
        _ => Err(format!("`{}` is no yes-or-no question: compare it with something", text.trim())),
    }
}

fn reason(error: &minijinja::Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known() -> Arc<Known> {
        let mut known = Known::default();
        known.put("verdict.class", "illegal_address");
        known.put("shapes.first.overflows", true);
        known.put("shapes.first.rows", 234_624_u64);
        known.put("ranks.failed", vec![1_u32]);
        known.put("environment", Known::default());
        Arc::new(known)
    }

    fn truth(condition: &str) -> Truth {
        judge(condition, &known()).unwrap().truth
    }

    #[test]
    fn a_missing_name_is_unknown_and_never_false() {
        assert_eq!(truth("verdict.class == 'illegal_address'"), Truth::True);
        assert_eq!(truth("verdict.class == 'nccl'"), Truth::False);
        assert_eq!(truth("verdict.cause == 'int32_overflow'"), Truth::Unknown);
        assert_eq!(truth("verdict.cause != 'int32_overflow'"), Truth::Unknown);
        assert_eq!(truth("not verdict.cause == 'x'"), Truth::Unknown);
        assert_eq!(truth("verdict.fault.kernel == 'k'"), Truth::Unknown);
        assert_eq!(truth("verdict.fault.kernel in ['k']"), Truth::Unknown);
        assert_eq!(truth("'k' in verdict.fault.kernel"), Truth::Unknown);
        assert_eq!(truth("environment.CUDA_LAUNCH_BLOCKING == '1'"), Truth::Unknown);
        assert_eq!(truth("shapes.second.rows > 5"), Truth::Unknown);
        assert_eq!(truth("verdict.cause"), Truth::Unknown);
    }

    #[test]
    fn the_rest_may_decide_alone() {
        assert_eq!(truth("verdict.cause == 'x' or shapes.first.overflows"), Truth::True);
        assert_eq!(truth("shapes.first.overflows or verdict.cause == 'x'"), Truth::True);
        assert_eq!(truth("verdict.cause == 'x' and verdict.class == 'nccl'"), Truth::False);
        assert_eq!(truth("verdict.class == 'nccl' and verdict.cause == 'x'"), Truth::False);
        assert_eq!(truth("verdict.cause == 'x' and shapes.first.overflows"), Truth::Unknown);
        assert_eq!(truth("not (verdict.cause == 'x' and verdict.class == 'nccl')"), Truth::True);
        assert_eq!(truth("known('verdict.cause')"), Truth::False);
        assert_eq!(truth("not known('verdict.cause') and known('verdict.class')"), Truth::True);
    }

    #[test]
    fn what_is_needed_is_named() {
        let judged = judge("verdict.cause == 'x' and shapes.first.overflows", &known()).unwrap();
        assert_eq!(judged.needs, ["verdict.cause"]);
        let decided = judge("verdict.cause == 'x' or shapes.first.overflows", &known()).unwrap();
        assert!(decided.needs.is_empty());
    }

    #[test]
    fn words_inside_strings_and_brackets_are_no_connectives() {
        assert_eq!(truth("verdict.class in ['a or b', 'illegal_address']"), Truth::True);
        assert_eq!(truth("verdict.class not in ['nccl', 'segfault']"), Truth::True);
        assert_eq!(truth("verdict.class is not none"), Truth::True);
        assert_eq!(truth("(verdict.class == \"nccl\" or 1 in ranks.failed) and true"), Truth::True);
        assert_eq!(truth("true if shapes.first.rows > 5 and false else false"), Truth::False);
    }

    #[test]
    fn what_cannot_be_evaluated_says_so() {
        assert!(judge("shapes.first.rows", &known()).unwrap_err().contains("yes-or-no"));
        assert!(judge("shapes.first.rows ==", &known()).is_err());
        assert!(judge("(true", &known()).is_err());
        assert!(judge("", &known()).is_err());
        assert!(judge("verdict.class|nonsense == 'x'", &known()).is_err());
        assert!(judge(&"(".repeat(10_000), &known()).is_err());
        assert!(judge(&"not ".repeat(10_000), &known()).is_err());
        let work = format!("{}true", "1 + ".repeat(3_000));
        assert!(judge(&work, &known()).is_err());
    }

    fn expression() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("true".to_owned()),
            Just("false".to_owned()),
            Just("verdict.class == 'illegal_address'".to_owned()),
            Just("1 > 2".to_owned()),
            Just("'a or b' == 'a'".to_owned()),
            Just("1 not in [1, 2]".to_owned()),
        ];
        leaf.prop_recursive(5, 40, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} and {b}")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} or {b}")),
                inner.clone().prop_map(|a| format!("not {a}")),
                inner.prop_map(|a| format!("({a})")),
            ]
        })
    }

    proptest! {
        /// Where everything is known, the split changes nothing: minijinja judges the whole alike.
        #[test]
        fn the_split_agrees_with_the_language(text in expression()) {
            let whole = LANGUAGE.compile_expression(&text).unwrap().eval(Watched::root(&known()).0).unwrap();
            let wanted = if whole.is_true() { Truth::True } else { Truth::False };
            prop_assert_eq!(truth(&text), wanted);
        }

        #[test]
        fn any_text_ends(text in ".{0,80}") {
            let _ = judge(&text, &known());
        }
    }
}
