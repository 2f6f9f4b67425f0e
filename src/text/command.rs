//! A command as a person copies it: words quoted for a POSIX shell.
//!
//! In: words. Out: one line. Names and values of settings stay readable (`NAME=value`), everything else is quoted where a
//! shell would read it as more than itself. It runs nothing.

use std::borrow::Cow;

/// The words as one shell line. Control characters cannot be in it: a word that holds one is shown escaped and quoted, so
/// that pasting it runs nothing else.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let visible = super::escape(word).to_string();
    if let Some((name, value)) = visible.split_once('=')
        && is_name(name)
    {
        return format!("{name}={}", quote(value));
    }
    quote(&visible).into_owned()
}

/// A word that shells take as it stands, else the word in quotes.
fn quote(word: &str) -> Cow<'_, str> {
    let plain = !word.is_empty()
        && word.bytes().all(|byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'-' | b'.' | b'/' | b',' | b':' | b'+' | b'@' | b'%' | b'=')
        });
    if plain && !word.starts_with('=') {
        return Cow::Borrowed(word);
    }
    shlex::try_quote(word).unwrap_or(Cow::Borrowed("''"))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::command_line;

    fn line(words: &[&str]) -> String {
        command_line(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn settings_stay_readable() {
        assert_eq!(
            line(&["env", "CUDA_LAUNCH_BLOCKING=1", "python3", "a.py"]),
            "env CUDA_LAUNCH_BLOCKING=1 python3 a.py"
        );
    }

    #[test]
    fn hostile_words_stay_words() {
        let text = line(&["python3", "$(touch /tmp/x); rm -rf ~", "a\nb", "X=$(id)"]);
        let words = shlex::split(&text).unwrap();
        assert_eq!(words, ["python3", "$(touch /tmp/x); rm -rf ~", "a\\nb", "X=$(id)"]);
        assert!(!text.contains('\n'));
    }
}
