//! Sentences and command words with values of the evidence in them.
//!
//! In: a template in minijinja's language and what is known. Out: [`Rendered`]: the text, and the names that had no
//! value; such a place reads `(not known)`. A command word stays one word whatever its values hold; nothing here is
//! quoted for a shell, because nothing here reaches one.

use std::sync::{Arc, LazyLock};

use minijinja::{Environment, UndefinedBehavior, Value};

use super::known::{Known, Watched};
use crate::text::number::grouped_signed;

/// Steps of the template machine for one text.
const FUEL: u64 = 5_000;

/// What stands where a value is missing.
pub const NOT_KNOWN: &str = "(not known)";

/// Longest text that a template may become, in bytes.
const LENGTH_LIMIT: usize = 20_000;

/// A template, filled in. Not escaped yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// Names without a value, sorted.
    pub needs: Vec<String>,
}

static LANGUAGE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut language = Environment::new();
    language.set_undefined_behavior(UndefinedBehavior::Chainable);
    language.set_fuel(Some(FUEL));
    language.add_filter("n", thousands);
    language.add_filter("hex", hex);
    language.set_formatter(|out, state, value| {
        if value.is_undefined() || value.is_none() {
            out.write_str(NOT_KNOWN).map_err(minijinja::Error::from)
        } else {
            minijinja::escape_formatter(out, state, value)
        }
    });
    language
});

/// Fills a template in.
///
/// # Errors
/// A sentence that says why the template can't be used: its syntax, a filter that doesn't exist, too much work.
pub fn render(template: &str, known: &Arc<Known>) -> Result<Rendered, String> {
    let (root, missing) = Watched::root(known);
    let rendered = LANGUAGE.render_str(template, root);
    let needs = missing.names();
    let text = match rendered {
        Ok(text) => text,
        // Arithmetic on a missing value fails where printing one would not.
        Err(_) if !needs.is_empty() => NOT_KNOWN.to_owned(),
        Err(error) => {
            return Err(error
                .detail()
                .map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind())));
        }
    };
    let text = if text.len() > LENGTH_LIMIT {
        crate::read::scan::clip(&text, LENGTH_LIMIT).to_owned()
    } else {
        text
    };
    Ok(Rendered { text, needs })
}

/// The names that a template asks for, dotted.
///
/// # Errors
/// A sentence about the syntax.
pub fn names(template: &str) -> Result<Vec<String>, String> {
    let compiled = LANGUAGE
        .template_from_str(template)
        .map_err(|error| error.detail().map_or_else(|| error.kind().to_string(), str::to_owned))?;
    let mut names: Vec<String> =
        compiled.undeclared_variables(true).into_iter().filter(|name| name != "known").collect();
    names.sort();
    Ok(names)
}

/// `2162294784` as `2,162,294,784`.
fn thousands(value: Value) -> Value {
    match i128::try_from(value.clone()) {
        Ok(number) => Value::from(grouped_signed(number)),
        Err(_) => value,
    }
}

/// `4096` as `0x1000`.
fn hex(value: Value) -> Value {
    match i128::try_from(value.clone()) {
        Ok(number) => Value::from(format!("{number:#x}")),
        Err(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Arc<Known> {
        let mut known = Known::default();
        known.put("shapes.first.numel", 2_162_294_784_u64);
        known.put("launch.kernel", "$(touch /tmp/x); rm -rf ~");
        Arc::new(known)
    }

    fn text(template: &str) -> String {
        render(template, &known()).unwrap().text
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(text("{{ shapes.first.numel | n }} elements"), "2,162,294,784 elements");
        assert_eq!(text("{{ shapes.first.numel | hex }}"), "0x80e20000");
        assert_eq!(text("{{ (0 - 1234) | n }}"), "-1,234");
    }

    #[test]
    fn a_missing_value_shows_and_is_named() {
        let rendered = render("safe up to {{ shapes.first.safe | n }} of {{ a.b.c }}", &known()).unwrap();
        assert_eq!(rendered.text, "safe up to (not known) of (not known)");
        assert_eq!(rendered.needs, ["a", "shapes.first.safe"]);
        assert_eq!(render("{{ shapes.first.safe + 1 }}", &known()).unwrap().text, NOT_KNOWN);
    }

    #[test]
    fn values_are_data_and_not_templates() {
        assert_eq!(text("kernel={{ launch.kernel }}"), "kernel=$(touch /tmp/x); rm -rf ~");
        let mut hostile = Known::default();
        hostile.put("launch.kernel", "{{ 1 + 1 }}{% for x in y %}");
        let rendered = render("{{ launch.kernel }}", &Arc::new(hostile)).unwrap();
        assert_eq!(rendered.text, "{{ 1 + 1 }}{% for x in y %}");
    }

    #[test]
    fn bad_templates_say_so() {
        assert!(render("{{ a", &known()).is_err());
        assert!(render("{{ 1 | nonsense }}", &known()).is_err());
        assert!(render("{% include 'x' %}", &known()).is_err());
    }
}
