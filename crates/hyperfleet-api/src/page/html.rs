//! HTML that is well-formed and escaped by construction.

/// An element under construction. Names are ours; whatever anybody else wrote goes through [`escape`].
#[derive(Clone, Debug)]
#[must_use]
pub(super) struct Element {
    name: &'static str,
    attributes: String,
    inside: String,
}

/// Elements that hold nothing and are not closed.
const VOID: [&str; 4] = ["input", "link", "meta", "wbr"];

/// An element of that name.
pub(super) fn el(name: &'static str) -> Element {
    Element { name, attributes: String::new(), inside: String::new() }
}

/// Contents without an element around them.
pub(super) fn fragment() -> Element {
    el("")
}

/// An element of that name and class.
pub(super) fn classed(name: &'static str, class: &str) -> Element {
    el(name).attr("class", class)
}

/// A link within these pages.
pub(super) fn link(href: &str, text: &str) -> Element {
    el("a").attr("href", href).text(text)
}

/// A word such as `ReconciledMissingAdapters`, which may be broken before a capital letter where there is little room.
pub(super) fn reason(word: &str) -> Element {
    let mut whole = fragment();
    let mut rest = word;
    while let Some(at) = rest.char_indices().skip(1).find(|(_, letter)| letter.is_uppercase()).map(|(at, _)| at) {
        let (part, behind) = rest.split_at(at);
        whole = whole.text(part).child(el("wbr"));
        rest = behind;
    }
    whole.text(rest)
}

/// Text as HTML shows it: nothing in it is markup, within quotes or outside.
///
/// Control characters and those that turn the direction of writing become `�`: who reads must see what is there.
fn escape(text: &str, into: &mut String) {
    for character in text.chars() {
        match character {
            '&' => into.push_str("&amp;"),
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            '"' => into.push_str("&quot;"),
            '\'' => into.push_str("&#39;"),
            '\n' | '\t' => into.push(character),
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                into.push(char::REPLACEMENT_CHARACTER);
            }
            _ if character.is_control() => into.push(char::REPLACEMENT_CHARACTER),
            _ => into.push(character),
        }
    }
}

// === impl Element ===

impl Element {
    /// With an attribute.
    pub(super) fn attr(mut self, name: &'static str, value: &str) -> Self {
        self.attributes.push(' ');
        self.attributes.push_str(name);
        self.attributes.push_str("=\"");
        escape(value, &mut self.attributes);
        self.attributes.push('"');
        self
    }

    /// With more text inside.
    pub(super) fn text(mut self, text: &str) -> Self {
        escape(text, &mut self.inside);
        self
    }

    /// With one more element inside.
    pub(super) fn child(mut self, child: Self) -> Self {
        child.write(&mut self.inside);
        self
    }

    /// With more elements inside.
    pub(super) fn children(self, children: impl IntoIterator<Item = Self>) -> Self {
        children.into_iter().fold(self, Self::child)
    }

    /// With a style sheet of ours inside.
    pub(super) fn sheet(mut self, sheet: &'static str) -> Self {
        self.inside.push_str(sheet);
        self
    }

    /// A whole document with this as its root.
    pub(super) fn document(self) -> String {
        let mut text = "<!DOCTYPE html>\n".to_owned();
        self.write(&mut text);
        text
    }

    fn write(self, into: &mut String) {
        let Self { name, attributes, inside } = self;
        if name.is_empty() {
            into.push_str(&inside);
        } else if VOID.contains(&name) {
            into.extend(["<", name, &attributes, ">"]);
        } else {
            into.extend(["<", name, &attributes, ">", &inside, "</", name, ">"]);
        }
    }
}
