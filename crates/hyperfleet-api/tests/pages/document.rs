//! A strict HTML parser: it accepts only well-formed markup with the elements and attributes of these pages.

use std::collections::BTreeMap;

/// An element with its children, or text.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Element { name: String, attributes: BTreeMap<String, String>, children: Vec<Self> },
    Text(String),
}

/// The elements of the pages; any other one comes from hostile text.
const ELEMENTS: &[&str] = &[
    "html", "head", "meta", "link", "title", "style", "body", "header", "nav", "main", "section", "footer", "h1", "h2",
    "h3", "p", "a", "b", "i", "span", "small", "code", "pre", "ul", "ol", "li", "dl", "dt", "dd", "div", "table",
    "caption", "thead", "tbody", "tr", "th", "td", "time", "details", "summary", "form", "label", "input", "button",
    "wbr",
];
const ATTRIBUTES: &[&str] = &[
    "action",
    "aria-current",
    "aria-describedby",
    "aria-hidden",
    "aria-invalid",
    "aria-label",
    "aria-labelledby",
    "autocapitalize",
    "autocomplete",
    "charset",
    "class",
    "content",
    "data-head",
    "datetime",
    "for",
    "href",
    "http-equiv",
    "id",
    "lang",
    "method",
    "name",
    "placeholder",
    "rel",
    "role",
    "scope",
    "spellcheck",
    "tabindex",
    "title",
    "type",
    "value",
];
const VOID: [&str; 4] = ["input", "link", "meta", "wbr"];

struct Parser<'a>(&'a str);

impl Node {
    /// The root of a document.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parser = Parser(text.strip_prefix("<!DOCTYPE html>\n").expect("a doctype"));
        let root = parser.element();
        assert_eq!(parser.0, "", "text after the document");
        for link in root.all("a").iter().chain(&root.all("form")) {
            let target = link.attr("href").or_else(|| link.attr("action")).expect("a link target");
            let local = target.starts_with('/') && !target.starts_with("//") || target.starts_with('#');
            assert!(local, "a link to another site: {target}");
        }
        root
    }

    pub(crate) fn attr(&self, attribute: &str) -> Option<&str> {
        match self {
            Self::Element { attributes, .. } => attributes.get(attribute).map(String::as_str),
            Self::Text(_) => None,
        }
    }

    /// Every element of that name, in the order of the document.
    pub(crate) fn all(&self, expected: &str) -> Vec<&Self> {
        self.select(&|node| matches!(node, Self::Element { name, .. } if name == expected))
    }

    /// Every element that has that class.
    pub(crate) fn class(&self, class: &str) -> Vec<&Self> {
        self.select(&|node| node.attr("class").is_some_and(|classes| classes.split(' ').any(|one| one == class)))
    }

    /// The element with that id.
    pub(crate) fn id(&self, id: &str) -> &Self {
        self.select(&|node| node.attr("id") == Some(id)).first().copied().unwrap_or_else(|| panic!("no #{id}"))
    }

    fn select(&self, matches: &dyn Fn(&Self) -> bool) -> Vec<&Self> {
        let below = match self {
            Self::Element { children, .. } => children.iter().flat_map(|child| child.select(matches)).collect(),
            Self::Text(_) => Vec::new(),
        };
        matches(self).then_some(self).into_iter().chain(below).collect()
    }

    /// All text inside, with its white space.
    pub(crate) fn raw_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Element { name, .. } if name == "style" => String::new(),
            Self::Element { children, .. } => children.iter().map(Self::raw_text).collect(),
        }
    }

    /// All text inside, with white space collapsed.
    pub(crate) fn text(&self) -> String {
        self.raw_text().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The cells of the row with that header, by column.
    pub(crate) fn row(&self, name: &str) -> BTreeMap<String, String> {
        let rows = self.all("tr");
        let row = rows.iter().find(|row| row.all("th").first().is_some_and(|first| first.text() == name));
        let row = row.unwrap_or_else(|| panic!("no row {name}"));
        let cells = row.all("td").into_iter();
        cells.map(|cell| (cell.attr("data-head").unwrap().to_owned(), cell.text())).collect()
    }

    /// The row headers, from top to bottom; of an overview those of the list of resources.
    pub(crate) fn row_names(&self) -> Vec<String> {
        let list = self.select(&|node| node.attr("id") == Some("list"));
        let table = list.first().copied().unwrap_or(self);
        table.all("th").into_iter().filter(|head| head.attr("scope") == Some("row")).map(Self::text).collect()
    }

    /// Checks the structure that screen readers rely on.
    pub(crate) fn check_accessibility(&self) {
        assert_eq!(self.attr("lang"), Some("en"));
        assert_eq!(self.all("h1").len(), 1, "exactly one h1");
        assert_eq!(self.all("main").len(), 1);
        assert!(!self.all("title")[0].text().is_empty());
        for table in self.all("table") {
            assert!(!table.all("caption")[0].text().is_empty(), "a table without a caption");
            let heads = table.all("th");
            assert!(heads.iter().all(|head| head.attr("scope").is_some()), "a header cell without a scope");
        }
        for input in self.all("input").iter().filter(|input| input.attr("type") != Some("hidden")) {
            let labels = self.all("label");
            assert!(labels.iter().any(|label| label.attr("for") == input.attr("id")), "an input without a label");
        }
        for badge in self.class("badge") {
            let symbol = badge.select(&|node| node.attr("aria-hidden") == Some("true"));
            let symbol: String = symbol.iter().map(|symbol| symbol.text()).collect();
            assert!(!badge.text().replace(&symbol, "").trim().is_empty(), "a badge without a word");
        }
        let mut ids: Vec<_> = self.select(&|node| node.attr("id").is_some()).iter().map(|n| n.attr("id")).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count, "a duplicate id");
        for named in self.select(&|node| node.attr("aria-labelledby").is_some()) {
            let id = named.attr("aria-labelledby").unwrap();
            assert!(!self.id(id).text().is_empty());
        }
    }
}

impl Parser<'_> {
    fn take(&mut self, expected: &str) {
        let rest = self.0.strip_prefix(expected);
        self.0 = rest.unwrap_or_else(|| panic!("expected {expected:?} at {:?}", self.near()));
    }

    fn near(&self) -> String {
        self.0.chars().take(80).collect()
    }

    fn until(&mut self, end: &[char]) -> String {
        let at = self.0.find(end).unwrap_or_else(|| panic!("no {end:?} after {:?}", self.near()));
        let (taken, rest) = self.0.split_at(at);
        self.0 = rest;
        taken.to_owned()
    }

    fn element(&mut self) -> Node {
        self.take("<");
        let name = self.until(&[' ', '>']);
        assert!(ELEMENTS.contains(&name.as_str()), "an element {name:?} at {:?}", self.near());
        let mut attributes = BTreeMap::new();
        while self.0.starts_with(' ') {
            self.take(" ");
            let attribute = self.until(&['=']);
            assert!(ATTRIBUTES.contains(&attribute.as_str()), "an attribute {attribute:?} of {name}");
            self.take("=\"");
            let value = unescape(&self.until(&['"']));
            self.take("\"");
            assert!(attributes.insert(attribute, value).is_none(), "a duplicate attribute");
        }
        self.take(">");
        let mut children = Vec::new();
        if VOID.contains(&name.as_str()) {
            return Node::Element { name, attributes, children };
        }
        let end = format!("</{name}>");
        while !self.0.starts_with(&end) {
            if self.0.starts_with('<') {
                children.push(self.element());
            } else {
                let text = self.until(&['<']);
                // The style sheet is a constant and is not escaped.
                children.push(Node::Text(if name == "style" { text } else { unescape(&text) }));
            }
        }
        self.take(&end);
        Node::Element { name, attributes, children }
    }
}

fn unescape(text: &str) -> String {
    let known = [("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&#39;", '\''), ("&amp;", '&')];
    let (mut rest, mut plain) = (text, String::new());
    while let Some(first) = rest.chars().next() {
        assert!(!['<', '>', '"', '\''].contains(&first), "not escaped: {rest:?}");
        let (taken, length) = match first {
            '&' => {
                let (name, taken) = known.iter().find(|(name, _)| rest.starts_with(name)).expect("a known reference");
                (*taken, name.len())
            }
            _ => (first, first.len_utf8()),
        };
        plain.push(taken);
        rest = &rest[length..];
    }
    plain
}
