//! Writes HTML and SVG. All text except our own literals is escaped, so nothing from outside can become
//! markup.

use std::fmt::{self, Display, Write};

/// A piece of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Html {
    out: String,
}

/// An element's name and attributes.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    name: &'static str,
    attributes: String,
}

impl Html {
    /// An empty piece.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Markup of ours.
    pub(crate) fn verbatim(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    pub(crate) fn text(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(Escaper(&mut self.out), "{text}");
    }

    /// Writes an element and its contents.
    pub(crate) fn element(&mut self, tag: impl Into<Tag>, inside: impl FnOnce(&mut Self)) {
        let tag = tag.into();
        let _ = write!(self.out, "<{}{}>", tag.name, tag.attributes);
        inside(self);
        let _ = write!(self.out, "</{}>", tag.name);
    }

    /// Writes an element that contains text.
    pub(crate) fn leaf(&mut self, tag: impl Into<Tag>, text: impl Display) {
        self.element(tag, |html| html.text(text));
    }

    /// Writes an empty element.
    pub(crate) fn lone(&mut self, tag: impl Into<Tag>) {
        let tag = tag.into();
        let _ = write!(self.out, "<{}{}/>", tag.name, tag.attributes);
    }

    /// Writes a line break, for readers of the source.
    pub(crate) fn line(&mut self) {
        self.out.push('\n');
    }

    /// The text of the page.
    pub(crate) fn into_string(self) -> String {
        self.out
    }
}

/// A tag without attributes.
pub(crate) const fn tag(name: &'static str) -> Tag {
    Tag { name, attributes: String::new() }
}

impl Tag {
    /// Adds an attribute.
    pub(crate) fn with(mut self, name: &'static str, value: impl Display) -> Self {
        let _ = write!(self.attributes, " {name}=\"");
        let _ = write!(Escaper(&mut self.attributes), "{value}");
        self.attributes.push('"');
        self
    }
}

impl From<&'static str> for Tag {
    fn from(name: &'static str) -> Self {
        tag(name)
    }
}

/// Escapes text and attributes in double quotes. Control characters, which HTML does not allow, become the
/// replacement character.
struct Escaper<'s>(&'s mut String);

impl Write for Escaper<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(c),
                c if c.is_control() => self.0.push(char::REPLACEMENT_CHARACTER),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_stays_text() {
        let evil = "</td><script>alert('1')</script>&\"\u{0}";
        let mut html = Html::new();
        html.leaf(tag("td").with("title", evil), evil);
        let safe = "&lt;/td&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}";
        assert_eq!(html.into_string(), format!("<td title=\"{safe}\">{safe}</td>"));
    }
}
