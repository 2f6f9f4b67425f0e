//! A condition cut at its own `and`, `or` and `not`, so that each part between them is judged by itself.
//!
//! In: the text. Out: [`Parts`]. Precedence is the language's: `or` binds least, then `and`, then `not`. A part with
//! an inline `if` is left whole. What a part means is left to the language.
//!
//! ```text
//! or   = and ("or" and)*
//! and  = not ("and" not)*
//! not  = "not" not | "(" or ")" | text
//! ```

/// A condition, cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parts {
    /// Text for the expression language.
    Leaf(String),
    /// `not …`
    Not(Box<Parts>),
    /// `… and …`
    And(Vec<Parts>),
    /// `… or …`
    Or(Vec<Parts>),
}

impl Parts {
    /// Every leaf, in order.
    pub fn leaves(&self, found: &mut Vec<String>) {
        match self {
            Self::Leaf(text) => found.push(text.clone()),
            Self::Not(part) => part.leaves(found),
            Self::And(all) | Self::Or(all) => all.iter().for_each(|part| part.leaves(found)),
        }
    }
}

/// Brackets and `not`s that a condition may nest.
const DEPTH_LIMIT: usize = 32;

/// Cuts a condition.
pub fn split(text: &str) -> Result<Parts, String> {
    if text.trim().is_empty() {
        return Err("the condition is empty".to_owned());
    }
    or(text, DEPTH_LIMIT)
}

fn or(text: &str, depth: usize) -> Result<Parts, String> {
    let depth = depth.checked_sub(1).ok_or_else(|| format!("nests deeper than {DEPTH_LIMIT}"))?;
    let words = words(text)?;
    if words.iter().any(|word| matches!(word.text, "if" | "else")) {
        return Ok(Parts::Leaf(text.to_owned()));
    }
    let all = pieces(text, &words, "or")
        .into_iter()
        .map(|piece| and(piece, depth))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(one_or(all, Parts::Or))
}

fn and(text: &str, depth: usize) -> Result<Parts, String> {
    let words = words(text)?;
    let all = pieces(text, &words, "and")
        .into_iter()
        .map(|piece| not(piece, depth))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(one_or(all, Parts::And))
}

fn not(text: &str, depth: usize) -> Result<Parts, String> {
    let trimmed = text.trim();
    let words = words(trimmed)?;
    if let Some(first) = words.first()
        && first.text == "not"
        && first.at == 0
    {
        let depth = depth.checked_sub(1).ok_or_else(|| format!("nests deeper than {DEPTH_LIMIT}"))?;
        return Ok(Parts::Not(Box::new(not(trimmed.get(3..).unwrap_or(""), depth)?)));
    }
    match inside_brackets(trimmed) {
        Some(inner) => or(inner, depth),
        None if trimmed.is_empty() => Err("a part of the condition is empty".to_owned()),
        None => Ok(Parts::Leaf(trimmed.to_owned())),
    }
}

fn one_or(mut all: Vec<Parts>, many: fn(Vec<Parts>) -> Parts) -> Parts {
    match (all.len(), all.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            all.push(last);
            many(all)
        }
        (_, None) => many(all),
    }
}

/// A word outside brackets and strings.
struct Word<'a> {
    at: usize,
    text: &'a str,
}

/// The pieces between the words `connective`.
fn pieces<'a>(text: &'a str, words: &[Word<'_>], connective: &str) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for word in words.iter().filter(|word| word.text == connective) {
        pieces.push(text.get(from..word.at).unwrap_or(""));
        from = word.at + connective.len();
    }
    pieces.push(text.get(from..).unwrap_or(""));
    pieces
}

/// Words outside brackets and strings; an attribute (`.or`) is none.
fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let mut words = Vec::new();
    let mut depth = 0_usize;
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' | '"' => skip_string(&mut chars, c)?,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1).ok_or_else(|| format!("`{c}` closes nothing"))?;
            }
            _ if is_word(c) => {
                let mut end = at + c.len_utf8();
                while let Some(&(next, c)) = chars.peek().filter(|(_, c)| is_word(*c)) {
                    end = next + c.len_utf8();
                    chars.next();
                }
                if depth == 0 && before != '.' {
                    words.push(Word { at, text: text.get(at..end).unwrap_or("") });
                }
            }
            _ => {}
        }
        if !c.is_whitespace() {
            before = c;
        }
    }
    if depth == 0 { Ok(words) } else { Err("a bracket is not closed".to_owned()) }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn skip_string(
    chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    quote: char,
) -> Result<(), String> {
    while let Some((_, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            return Ok(());
        }
    }
    Err("a string is not closed".to_owned())
}

/// The text inside one pair of brackets that holds all of `text`.
fn inside_brackets(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    // In `(a) or (b)` the first bracket closes early: its inside is no balanced text.
    words(inner).ok().map(|_| inner).filter(|inner| !has_top_level_comma(inner))
}

/// `(1, 2)` is a tuple of the language, not a bracketed condition.
fn has_top_level_comma(text: &str) -> bool {
    let mut depth = 0_i32;
    let mut chars = text.char_indices().peekable();
    while let Some((_, c)) = chars.next() {
        match c {
            '\'' | '"' if skip_string(&mut chars, c).is_err() => return true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// The arguments of `known("…")`.
pub fn asked_for(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("known(") {
        rest = rest.get(at + "known(".len()..).unwrap_or("");
        let body = rest.trim_start();
        if let Some(quote) = body.chars().next().filter(|c| matches!(c, '\'' | '"'))
            && let Some((name, _)) = body.get(1..).and_then(|body| body.split_once(quote))
        {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(text: &str) -> Parts {
        Parts::Leaf(text.to_owned())
    }

    #[test]
    fn precedence_is_the_languages() {
        assert_eq!(
            split("a or b and not c").unwrap(),
            Parts::Or(vec![leaf("a"), Parts::And(vec![leaf("b"), Parts::Not(Box::new(leaf("c")))])])
        );
        assert_eq!(
            split("(a or b) and c").unwrap(),
            Parts::And(vec![Parts::Or(vec![leaf("a"), leaf("b")]), leaf("c")])
        );
        assert_eq!(split("(a) or (b)").unwrap(), Parts::Or(vec![leaf("a"), leaf("b")]));
    }

    #[test]
    fn attributes_and_longer_words_are_no_connectives() {
        assert_eq!(split("x.or == 1").unwrap(), leaf("x.or == 1"));
        assert_eq!(split("order and android").unwrap(), Parts::And(vec![leaf("order"), leaf("android")]));
        assert_eq!(split("x in (1, 2)").unwrap(), leaf("x in (1, 2)"));
    }

    #[test]
    fn names_asked_for() {
        assert_eq!(asked_for("known('a.b') or not known( \"c\" )"), ["a.b", "c"]);
    }
}
