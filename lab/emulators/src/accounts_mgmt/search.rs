//! The language of searches, as far as clients use it: comparisons of attributes with texts, joined by `and` and `or`.

use super::settings::{Credential, Registry};

/// The attributes of a row, its registry's with a dot or an underscore.
pub(super) struct Attributes<'a> {
    pub(super) id: &'a str,
    pub(super) credential: &'a Credential,
    pub(super) registry: Option<&'a Registry>,
}

/// A search that was read: alternatives of conditions that all hold.
pub(super) struct Search(Vec<Vec<Condition>>);

struct Condition {
    attribute: String,
    operator: Operator,
    value: String,
}

#[derive(Clone, Copy)]
enum Operator {
    Equal,
    Unequal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Like,
}

/// The operators, longest first.
const OPERATORS: [(&str, Operator); 9] = [
    ("!=", Operator::Unequal),
    ("<>", Operator::Unequal),
    (">=", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("like ", Operator::Like),
    ("LIKE ", Operator::Like),
];

const ATTRIBUTES: [&str; 9] = [
    "id",
    "username",
    "account_id",
    "account.id",
    "registry_id",
    "registry.id",
    "registry.url",
    "registry.name",
    "external_resource_id",
];

// === impl Search ===

impl Search {
    /// Reads a search; none if it cannot be read.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut alternatives, mut all, mut rest) = (Vec::new(), Vec::new(), text.trim());
        if rest.is_empty() {
            return Some(Self(vec![Vec::new()]));
        }
        loop {
            let (condition, after) = condition(rest)?;
            all.push(condition);
            rest = after.trim_start();
            if rest.is_empty() {
                alternatives.push(all);
                return Some(Self(alternatives));
            }
            let (word, after) = rest.split_once(' ')?;
            match word.to_ascii_lowercase().as_str() {
                "and" => {}
                "or" => alternatives.push(std::mem::take(&mut all)),
                _ => return None,
            }
            rest = after.trim_start();
        }
    }

    pub(super) fn holds(&self, of: &Attributes<'_>) -> bool {
        self.0.iter().any(|all| all.iter().all(|condition| condition.holds(of)))
    }
}

/// Reads a condition, and returns it with what follows.
fn condition(text: &str) -> Option<(Condition, &str)> {
    let end = text.find(|char: char| !(char.is_ascii_alphanumeric() || "._".contains(char)))?;
    let (attribute, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let (operator, rest) = OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, rest.strip_prefix(sign)?)))?;
    let mut rest = rest.trim_start().strip_prefix('\'')?;
    let mut value = String::new();
    // A quote in a text is doubled.
    loop {
        let (part, after) = rest.split_once('\'')?;
        value.push_str(part);
        let Some(next) = after.strip_prefix('\'') else {
            rest = after;
            break;
        };
        value.push('\'');
        rest = next;
    }
    let attribute = ATTRIBUTES.iter().find(|known| **known == attribute)?;
    Some((Condition { attribute: (*attribute).to_owned(), operator, value }, rest))
}

// === impl Condition ===

impl Condition {
    fn holds(&self, of: &Attributes<'_>) -> bool {
        let (found, value) = (of.get(&self.attribute), self.value.as_str());
        match self.operator {
            Operator::Equal => found == value,
            Operator::Unequal => found != value,
            Operator::Greater => found > value,
            Operator::GreaterOrEqual => found >= value,
            Operator::Less => found < value,
            Operator::LessOrEqual => found <= value,
            Operator::Like => like(found, value),
        }
    }
}

/// `%` stands for any text, at the beginning and the end.
fn like(found: &str, pattern: &str) -> bool {
    let middle = pattern.trim_matches('%');
    match (pattern.starts_with('%'), pattern.ends_with('%')) {
        (true, true) => found.contains(middle),
        (true, false) => found.ends_with(middle),
        (false, true) => found.starts_with(middle),
        (false, false) => found == middle,
    }
}

// === impl Attributes ===

impl Attributes<'_> {
    fn get(&self, attribute: &str) -> &str {
        let Credential { username, account, registry, resource, .. } = self.credential;
        match attribute {
            "id" => self.id,
            "username" => username,
            "account_id" | "account.id" => account,
            "registry_id" | "registry.id" => registry,
            "registry.url" | "registry.name" => self.registry.map_or("", |registry| &registry.host),
            _ => resource,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("", true)]
    #[case("id > '0'", true)]
    #[case("id > '2'", false)]
    #[case("username = 'u''s' and account_id='a'", true)]
    #[case("username = 'other' or account.id = 'a'", true)]
    #[case("username = 'other' or account.id = 'a' and registry.id = 'x'", false)]
    #[case("username like 'u%'", true)]
    #[case("external_resource_id != ''", false)]
    fn is_like_a_where_clause(#[case] text: &str, #[case] holds: bool) {
        let text_of = |text: &str| text.to_owned();
        let credential = Credential {
            username: text_of("u's"),
            token: String::new(),
            registry: text_of("r"),
            account: text_of("a"),
            resource: String::new(),
            created: 0,
        };
        let attributes = Attributes { id: "1", credential: &credential, registry: None };
        assert_eq!(Search::parse(text).unwrap().holds(&attributes), holds);
    }

    #[rstest::rstest]
    #[case("id")]
    #[case("token = 'x'")]
    #[case("id = x")]
    #[case("id = 'x' xor id = 'y'")]
    fn anything_else_is_refused(#[case] text: &str) {
        assert!(Search::parse(text).is_none());
    }
}
