//! The list filter language: restrictions such as `labels.team=fleet`, `name:pull` or `state:ENABLED`, joined by AND, OR, NOT.

use std::cmp::Ordering;

use jiff::Timestamp;

use crate::secret_manager::status::Status;
use crate::secret_manager::wire::values::instant;
use crate::secret_manager::wire::{Secret, SecretVersion, VersionState};

/// A filter; the empty text matches everything.
///
/// As in Google's other filters OR binds more tightly than AND, and terms that only stand beside each other are joined by AND.
#[derive(Debug, PartialEq)]
pub(super) struct Filter(Option<Term>);

#[derive(Debug, PartialEq)]
enum Term {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Compare { field: String, comparator: Comparator, value: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparator {
    Has,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Open,
    Close,
    Comparator(Comparator),
    Word(String),
    Quoted(String),
}

/// The fields that a filter can use.
pub(super) trait Filtered {
    /// The value of a field; none where the resource has no such field at all.
    fn field(&self, path: &str) -> Option<Value>;
}

/// The value of a field.
pub(super) enum Value {
    Text(String),
    Time(Option<Timestamp>),
    /// An entry of a map that may not be there.
    Entry(Option<String>),
    Keys(Vec<String>),
}

/// Maximum nesting of parentheses and NOT.
const DEPTH_MAXIMUM: usize = 50;

/// Longest first, so that `<=` is not read as `<`.
const COMPARATORS: [(&str, Comparator); 7] = [
    ("!=", Comparator::NotEqual),
    ("<=", Comparator::LessOrEqual),
    (">=", Comparator::GreaterOrEqual),
    ("<", Comparator::Less),
    (">", Comparator::Greater),
    ("=", Comparator::Equal),
    (":", Comparator::Has),
];

impl Filter {
    pub(super) fn parse(text: &str) -> Result<Self, Status> {
        let wrong = |why: &str| Status::bad_field("filter", format!("The filter [{text}] is invalid: {why}."));
        let tokens = tokens(text).map_err(wrong)?;
        if tokens.is_empty() {
            return Ok(Self(None));
        }
        let mut parser = Parser { tokens: tokens.into_iter().rev().collect(), depth: 0 };
        let term = parser.all().map_err(wrong)?;
        if !parser.tokens.is_empty() {
            return Err(wrong("a closing parenthesis has no opening one"));
        }
        if let Some(field) = term.unknown_field() {
            return Err(wrong(&format!("there is no field '{field}'")));
        }
        Ok(Self(Some(term)))
    }

    pub(super) fn matches(&self, resource: &impl Filtered) -> bool {
        self.0.as_ref().is_none_or(|term| term.matches(resource))
    }
}

impl Term {
    fn matches(&self, resource: &impl Filtered) -> bool {
        match self {
            Self::All(terms) => terms.iter().all(|term| term.matches(resource)),
            Self::Any(terms) => terms.iter().any(|term| term.matches(resource)),
            Self::Not(term) => !term.matches(resource),
            Self::Compare { field, comparator, value } => {
                resource.field(field).is_some_and(|found| found.matches(*comparator, value))
            }
        }
    }

    /// A field that neither secrets nor versions have.
    fn unknown_field(&self) -> Option<&str> {
        match self {
            Self::All(terms) | Self::Any(terms) => terms.iter().find_map(Self::unknown_field),
            Self::Not(term) => term.unknown_field(),
            Self::Compare { field, .. } => {
                let known = Secret::default().field(field).is_some() || SecretVersion::default().field(field).is_some();
                (!known).then_some(field)
            }
        }
    }
}

impl Value {
    fn matches(&self, comparator: Comparator, wanted: &str) -> bool {
        let contains = |text: &str| wanted == "*" || text.to_lowercase().contains(&wanted.to_lowercase());
        match (self, comparator) {
            (Self::Text(text) | Self::Entry(Some(text)), Comparator::Has) => contains(text),
            (Self::Keys(keys), _) => keys.iter().any(|key| wanted == "*" || key == wanted),
            (Self::Entry(None), comparator) => comparator == Comparator::NotEqual,
            (Self::Time(time), Comparator::Has) if wanted == "*" => time.is_some(),
            (Self::Time(time), comparator) => {
                let order = time.zip(wanted.parse().ok()).map(|(time, wanted)| time.cmp(&wanted));
                order.is_some_and(|order| comparator.accepts(order))
            }
            // A full name is also meant by its last part.
            (Self::Text(text) | Self::Entry(Some(text)), comparator) => {
                let last = text.rsplit('/').next().unwrap_or_default();
                let whole = if last == wanted { Ordering::Equal } else { text.as_str().cmp(wanted) };
                comparator.accepts(whole)
            }
        }
    }
}

impl Comparator {
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Has | Self::Equal => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual => order != Ordering::Less,
        }
    }
}

impl Filtered for Secret {
    fn field(&self, path: &str) -> Option<Value> {
        if let Some(key) = path.strip_prefix("labels.") {
            return Some(Value::Entry(self.labels.get(key).cloned()));
        }
        if let Some(key) = path.strip_prefix("annotations.") {
            return Some(Value::Entry(self.annotations.get(key).cloned()));
        }
        Some(match path {
            "name" => Value::Text(self.name.clone()),
            "etag" => Value::Text(self.etag.clone()),
            "labels" => Value::Keys(self.labels.keys().cloned().collect()),
            "annotations" => Value::Keys(self.annotations.keys().cloned().collect()),
            "version_aliases" | "versionAliases" => Value::Keys(self.version_aliases.keys().cloned().collect()),
            "topics" | "topics.name" => Value::Keys(self.topics.iter().map(|topic| topic.name.clone()).collect()),
            "create_time" | "createTime" => Value::Time(instant(self.create_time.as_ref())),
            "expire_time" | "expireTime" => Value::Time(instant(self.expire_time.as_ref())),
            _ => return None,
        })
    }
}

impl Filtered for SecretVersion {
    fn field(&self, path: &str) -> Option<Value> {
        Some(match path {
            "name" => Value::Text(self.name.clone()),
            "etag" => Value::Text(self.etag.clone()),
            "state" => {
                Value::Text(VersionState::try_from(self.state).unwrap_or(VersionState::Unspecified).name().to_owned())
            }
            "create_time" | "createTime" => Value::Time(instant(self.create_time.as_ref())),
            "destroy_time" | "destroyTime" => Value::Time(instant(self.destroy_time.as_ref())),
            "scheduled_destroy_time" | "scheduledDestroyTime" => {
                Value::Time(instant(self.scheduled_destroy_time.as_ref()))
            }
            _ => return None,
        })
    }
}

/// Reads terms off the end of its tokens, which are in reverse.
struct Parser {
    tokens: Vec<Token>,
    depth: usize,
}

impl Parser {
    fn all(&mut self) -> Result<Term, &'static str> {
        let mut terms = vec![self.any()?];
        loop {
            match self.tokens.last() {
                None | Some(Token::Close) => break,
                Some(Token::Word(word)) if word == "AND" => {
                    self.tokens.pop();
                }
                Some(_) => {}
            }
            terms.push(self.any()?);
        }
        Ok(one_or(terms, Term::All))
    }

    fn any(&mut self) -> Result<Term, &'static str> {
        let mut terms = vec![self.one()?];
        while self.tokens.last() == Some(&Token::Word("OR".to_owned())) {
            self.tokens.pop();
            terms.push(self.one()?);
        }
        Ok(one_or(terms, Term::Any))
    }

    fn one(&mut self) -> Result<Term, &'static str> {
        self.depth += 1;
        if self.depth > DEPTH_MAXIMUM {
            return Err("it is nested too deeply");
        }
        let term = match self.tokens.pop().ok_or("a term is missing at its end")? {
            Token::Word(word) if word == "NOT" => Term::Not(Box::new(self.one()?)),
            Token::Word(word) if word.starts_with('-') && word.len() > 1 => {
                self.tokens.push(Token::Word(word.chars().skip(1).collect()));
                Term::Not(Box::new(self.one()?))
            }
            Token::Open => {
                let term = self.all()?;
                if self.tokens.pop() != Some(Token::Close) {
                    return Err("an opening parenthesis has no closing one");
                }
                term
            }
            Token::Word(word) => self.comparison(word)?,
            // A bare text is looked for in names.
            Token::Quoted(value) => Term::Compare { field: "name".to_owned(), comparator: Comparator::Has, value },
            Token::Close | Token::Comparator(_) => return Err("a term is missing"),
        };
        self.depth -= 1;
        Ok(term)
    }

    fn comparison(&mut self, word: String) -> Result<Term, &'static str> {
        let Some(Token::Comparator(comparator)) = self.tokens.last().cloned() else {
            return Ok(Term::Compare { field: "name".to_owned(), comparator: Comparator::Has, value: word });
        };
        self.tokens.pop();
        match self.tokens.pop() {
            Some(Token::Word(value) | Token::Quoted(value)) => Ok(Term::Compare { field: word, comparator, value }),
            _ => Err("a value is missing behind a comparison"),
        }
    }
}

fn one_or(mut terms: Vec<Term>, many: impl FnOnce(Vec<Term>) -> Term) -> Term {
    match terms.pop() {
        Some(only) if terms.is_empty() => only,
        last => {
            terms.extend(last);
            many(terms)
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let after_value = matches!(tokens.last(), Some(Token::Comparator(_)));
        let comparator = COMPARATORS.iter().find(|(sign, _)| rest.starts_with(sign)).filter(|_| !after_value);
        if let Some((sign, comparator)) = comparator {
            tokens.push(Token::Comparator(*comparator));
            rest = rest.strip_prefix(sign).unwrap_or_default();
        } else if let Some(inside) = rest.strip_prefix(['"', '\'']) {
            let (value, behind) = inside.split_once(first).ok_or("a quotation mark is not closed")?;
            tokens.push(Token::Quoted(value.to_owned()));
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix(['(', ')']) {
            tokens.push(if first == '(' { Token::Open } else { Token::Close });
            rest = behind;
        } else {
            // Instants hold colons, so a value ends only at a space or a parenthesis.
            let ends =
                |sign: char| sign.is_whitespace() || "()".contains(sign) || (!after_value && "!<>=:".contains(sign));
            let end = rest.char_indices().skip(1).find(|(_, sign)| ends(*sign)).map_or(rest.len(), |(at, _)| at);
            let (word, behind) = rest.split_at(end);
            tokens.push(Token::Word(word.to_owned()));
            rest = behind;
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("", true)]
    #[case("labels.managed-by=hyperfleet", true)]
    #[case("labels.managed-by:*", true)]
    #[case("labels.none:*", false)]
    #[case("labels.none!=x", true)]
    #[case("name:PULL-", true)]
    #[case("name=pull-1", true)]
    #[case("pull", true)]
    #[case("-name:other", true)]
    #[case("NOT (name:pull OR name:other)", false)]
    #[case("name:other OR name:pull labels.managed-by=x", false)]
    #[case("name:other OR name:pull AND labels.managed-by=\"hyperfleet\"", true)]
    #[case("create_time>2026-01-01T00:00:00Z", true)]
    #[case("createTime<=\"2026-01-01T00:00:00Z\"", false)]
    fn matches(#[case] filter: &str, #[case] expected: bool) {
        let secret = Secret {
            name: "projects/1/secrets/pull-1".to_owned(),
            labels: [("managed-by".to_owned(), "hyperfleet".to_owned())].into(),
            create_time: Some(prost_types::Timestamp { seconds: 1_780_000_000, nanos: 0 }),
            ..Secret::default()
        };
        assert_eq!(Filter::parse(filter).unwrap().matches(&secret), expected);
    }

    #[rstest::rstest]
    #[case("colour=red", "there is no field 'colour'")]
    #[case("name:", "a value is missing")]
    #[case("(name:a", "no closing one")]
    #[case("name:a)", "no opening one")]
    #[case("name:'a", "not closed")]
    #[case("NOT", "a term is missing at its end")]
    fn refuses(#[case] filter: &str, #[case] why: &str) {
        let status = Filter::parse(filter).unwrap_err();
        assert!(status.message.contains(why), "{}", status.message);
    }
}
