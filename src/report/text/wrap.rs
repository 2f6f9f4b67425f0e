//! Word wrap by terminal columns.
//!
//! In: a text without line ends, a width and an indent. Out: lines, each ended. Words longer than the width stay whole.

use unicode_width::UnicodeWidthStr;

/// `text` wrapped to `width` columns, each line after `indent`.
pub fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut out = String::new();
    let room = width.saturating_sub(indent.len()).max(20);
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let columns = word.width();
        if used > 0 && used + 1 + columns > room {
            push_line(&mut out, indent, &line);
            line.clear();
            used = 0;
        }
        if used > 0 || !line.is_empty() {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += columns;
    }
    push_line(&mut out, indent, &line);
    out
}

fn push_line(out: &mut String, indent: &str, line: &str) {
    out.push_str(indent);
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn words_stay_whole_and_lines_fit() {
        let text = wrapped("one two three four five six seven eight nine ten", 24, "  ");
        assert_eq!(text, "  one two three four\n  five six seven eight\n  nine ten\n");
    }
}
