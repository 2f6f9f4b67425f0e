//! Markup that outside text cannot become.
//!
//! In: markup that stands in this program's source, and text from anywhere. Out: HTML. Only `&'static str` gets in as markup;
//! whatever was made at run time is escaped, in content and in attributes.

/// A page being written.
#[derive(Debug, Default)]
pub struct Page {
    out: String,
    /// Open elements of [`Page::open`] that [`Page::close`] ends.
    ids: usize,
}

impl Page {
    /// An empty page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Markup from the source of this program.
    pub fn tag(&mut self, markup: &'static str) -> &mut Self {
        self.out.push_str(markup);
        self
    }

    /// Text, escaped.
    pub fn text(&mut self, text: &str) -> &mut Self {
        escape_into(text, &mut self.out);
        self
    }

    /// A start tag; the values of its attributes are escaped.
    pub fn open(&mut self, name: &'static str, attributes: &[(&'static str, &str)]) -> &mut Self {
        self.out.push('<');
        self.out.push_str(name);
        for (key, value) in attributes {
            self.out.push(' ');
            self.out.push_str(key);
            self.out.push_str("=\"");
            escape_into(value, &mut self.out);
            self.out.push('"');
        }
        self.out.push('>');
        self
    }

    /// An end tag.
    pub fn close(&mut self, name: &'static str) -> &mut Self {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
        self
    }

    /// An element that holds nothing but text.
    pub fn element(
        &mut self,
        name: &'static str,
        attributes: &[(&'static str, &str)],
        text: &str,
    ) -> &mut Self {
        self.open(name, attributes).text(text).close(name)
    }

    /// A number that no other element of the page has.
    pub fn fresh_id(&mut self) -> usize {
        self.ids += 1;
        self.ids
    }

    /// The finished page.
    pub fn finish(self) -> String {
        self.out
    }
}

fn escape_into(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_an_element_or_an_attribute() {
        let mut page = Page::new();
        page.element("p", &[("title", "\" onclick='x'")], "</p><script>alert(1)</script> & co");
        let want = "<p title=\"&quot; onclick=&#39;x&#39;\">&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; co</p>";
        assert_eq!(page.finish(), want);
    }
}
