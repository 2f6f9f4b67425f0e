//! Templates of generated files, filled with typed literals only.
//!
//! In: a template and values. Out: text. A text value reaches the file through a filter that makes it a literal of the
//! file's language (`py`, `cpp`, `sh`, `code`, `prose`, `ident`, `variable`); one without a filter is an error, so that nothing from a
//! log can be spliced in raw by oversight.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, ErrorKind as Fault, UndefinedBehavior, Value};
use serde::Serialize;

use super::literal;
use crate::error::{Error, ErrorKind, Result};
use crate::text::number::grouped_signed;

static LANGUAGE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut language = Environment::new();
    language.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax =
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
    if let Ok(syntax) = syntax {
        language.set_syntax(syntax);
    }
    language.add_filter("py", |text: String| safe(literal::python(&text)));
    language.add_filter("cpp", |text: String| safe(literal::cpp(&text)));
    language.add_filter("sh", |text: String| safe(literal::shell(&text)));
    language.add_filter("code", |text: String| safe(literal::code(&text)));
    language.add_filter("prose", |text: String| safe(literal::prose(&text)));
    language.add_filter("ident", |text: String, fallback: String| {
        safe(literal::identifier(&text, &fallback).to_owned())
    });
    language.add_filter("variable", |text: String| safe(literal::variable(&text)));
    language.add_filter("n", |number: i128| safe(grouped_signed(number)));
    language.set_formatter(|out, _, value| {
        let plain = value.is_safe() || value.is_number() || value.kind() == ValueKind::Bool;
        if plain {
            return out.write_str(&value.to_string()).map_err(minijinja::Error::from);
        }
        Err(minijinja::Error::new(Fault::InvalidOperation, "a text without a filter that makes it a literal"))
    });
    language
});

fn safe(text: String) -> Value {
    Value::from_safe_string(text)
}

/// Fills a template in.
///
/// # Errors
/// `Output`, where the template asks for a value that isn't there or takes one without a literal's filter.
pub fn render(template: &str, values: impl Serialize) -> Result<String> {
    LANGUAGE.render_str(template, Value::from(Serde(&values))).map_err(|error| {
        Error::new(ErrorKind::Output, "a file of the repro could not be made").because(error)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_text_needs_a_filter() {
        let values = BTreeMap::from([("name", "a'b")]);
        assert!(render("{{ name }}", &values).is_err());
        assert_eq!(render("{{ name | sh }} {{ name | py }}", &values).unwrap(), "'a'\\''b' \"a'b\"");
        assert!(render("{{ absent | sh }}", &values).is_err());
    }

    #[test]
    fn numbers_stand_as_they_are() {
        let values = BTreeMap::from([("rows", 234_624_u64)]);
        assert_eq!(render("{{ rows }} {{ rows | n }}", &values).unwrap(), "234624 234,624");
    }
}
