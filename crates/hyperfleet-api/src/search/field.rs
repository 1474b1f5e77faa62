//! The fields that can be searched: columns, labels, values of the spec, conditions.

use fleet_model::Condition;

use crate::resource::Resource;

use super::literal::{self, Literal, Time};
use super::scalar::Scalar;

/// HyperFleet's message for an unknown field.
pub(super) const INVALID: &str = "invalid field in search or order query";

/// Maximum number of segments of a path into a spec.
const MAX_DEPTH: usize = 32;

/// The left side of a comparison.
#[derive(Clone, Debug)]
pub(super) enum Field {
    Column(&'static Column),
    /// `labels.<key>`.
    Label(String),
    /// `spec.<a>.<b>`, the path to a value.
    Spec(Vec<String>),
    /// `status.conditions.<Type>`.
    Status(String),
    /// `status.conditions.<Type>.<part>`; the reason is this project's own.
    Part(String, &'static Part),
}

/// A column of the table of resources.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) value: fn(&Resource) -> Option<Scalar<'_>>,
}

/// A column of the table of conditions.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) value: fn(&Condition) -> Option<Scalar<'_>>,
}

/// The type of a field, which decides the literals that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Time,
    /// A time of a condition, which is not compared with dates.
    Instant,
    Status,
    Json,
}

const fn column(name: &'static str, kind: Kind, value: fn(&Resource) -> Option<Scalar<'_>>) -> Column {
    Column { name, kind, nullable: false, value }
}

const fn nullable(name: &'static str, kind: Kind, value: fn(&Resource) -> Option<Scalar<'_>>) -> Column {
    Column { name, kind, nullable: true, value }
}

const fn part(name: &'static str, kind: Kind, value: fn(&Condition) -> Option<Scalar<'_>>) -> Part {
    Part { name, kind, nullable: false, value }
}

/// Every column that can be searched and ordered by. Only these names get into SQL.
pub(super) const COLUMNS: &[Column] = &[
    column("id", Kind::Text, |r| Some(Scalar::text(&r.id))),
    column("kind", Kind::Text, |r| Some(Scalar::text(&r.kind))),
    column("name", Kind::Text, |r| Some(Scalar::text(&r.name))),
    column("href", Kind::Text, |r| Some(Scalar::text(&r.href))),
    column("generation", Kind::Number, |r| Some(Scalar::Number(r.generation.into()))),
    column("created_time", Kind::Time, |r| Some(Scalar::Number(r.created_time.as_microsecond()))),
    column("created_by", Kind::Text, |r| Some(Scalar::text(&r.created_by))),
    column("updated_time", Kind::Time, |r| Some(Scalar::Number(r.updated_time.as_microsecond()))),
    column("updated_by", Kind::Text, |r| Some(Scalar::text(&r.updated_by))),
    nullable("deleted_time", Kind::Time, |r| Some(Scalar::Number(r.deleted_time?.as_microsecond()))),
    nullable("deleted_by", Kind::Text, |r| r.deleted_by.as_deref().map(Scalar::text)),
    nullable("owner_id", Kind::Text, |r| r.owner.as_ref().map(|owner| Scalar::text(&owner.id))),
    nullable("owner_href", Kind::Text, |r| r.owner.as_ref().map(|owner| Scalar::text(&owner.href))),
    nullable("owner_kind", Kind::Text, |r| r.owner.as_ref().map(|owner| Scalar::text(&owner.kind))),
];

const PARTS: &[Part] = &[
    part("observed_generation", Kind::Number, |c| Some(Scalar::Number(c.observed_generation.into()))),
    part("last_updated_time", Kind::Instant, |c| Some(Scalar::Number(c.last_updated_time.as_microsecond()))),
    part("last_transition_time", Kind::Instant, |c| Some(Scalar::Number(c.last_transition_time.as_microsecond()))),
    Part { nullable: true, ..part("reason", Kind::Text, |c| c.reason.as_deref().map(Scalar::text)) },
];

/// The column with that name.
pub(super) fn find_column(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|column| column.name == name)
}

/// The names of all columns, for error messages.
pub(super) fn column_names() -> String {
    COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}

// === impl Field ===

impl Field {
    /// The field with that name; `None` if there is none.
    pub(super) fn parse(name: &str) -> Option<Self> {
        if let Some(key) = name.strip_prefix("labels.") {
            return (!key.is_empty()).then(|| Self::Label(key.to_owned()));
        }
        if let Some(path) = name.strip_prefix("spec.") {
            return spec(path);
        }
        if let Some(condition) = name.strip_prefix("status.conditions.") {
            return conditions(condition);
        }
        find_column(name).map(Self::Column)
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Column(column) => column.kind,
            Self::Label(_) => Kind::Text,
            Self::Spec(_) => Kind::Json,
            Self::Status(_) => Kind::Status,
            Self::Part(_, part) => part.kind,
        }
    }
}

/// A path of names in lower case, as in HyperFleet's API.
fn spec(path: &str) -> Option<Field> {
    let segments: Vec<_> = path.split('.').map(str::to_owned).collect();
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let known = |segment: &String| !segment.is_empty() && segment.bytes().all(is_lower);
    (segments.len() <= MAX_DEPTH && segments.iter().all(known)).then_some(Field::Spec(segments))
}

fn conditions(condition: &str) -> Option<Field> {
    let (kind, part) = match condition.split_once('.') {
        Some((kind, part)) => (kind, Some(part)),
        None => (condition, None),
    };
    let is_pascal = kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.chars().all(|character| character.is_ascii_alphanumeric());
    match part {
        _ if !is_pascal => None,
        None => Some(Field::Status(kind.to_owned())),
        Some(name) => PARTS.iter().find(|part| part.name == name).map(|part| Field::Part(kind.to_owned(), part)),
    }
}

// === impl Kind ===

impl Kind {
    /// The literal as a value of this kind; `None` if the kind does not allow it.
    pub(super) fn scalar(self, literal: Literal) -> Option<Scalar<'static>> {
        match (self, literal) {
            (Self::Text | Self::Json, Literal::Text(text)) => Some(Scalar::Text(text.into())),
            (Self::Status, Literal::Text(text)) => {
                matches!(text.as_str(), "True" | "False" | "Unknown").then(|| Scalar::Text(text.into()))
            }
            (Self::Time | Self::Instant, Literal::Text(text)) => self.time(literal::time(&text)?),
            (Self::Time | Self::Instant, Literal::Time(time)) => self.time(time),
            (Self::Number, Literal::Number(number)) => {
                number.whole.filter(|whole| i32::try_from(*whole).is_ok()).map(Scalar::Number)
            }
            (Self::Json, Literal::Number(number)) => Some(Scalar::Real(number.real)),
            (Self::Json, Literal::Bool(value)) => Some(Scalar::Bool(value)),
            _ => None,
        }
    }

    fn time(self, time: Time) -> Option<Scalar<'static>> {
        (self == Self::Time || !time.is_date).then_some(Scalar::Number(time.microsecond))
    }

    /// The literals that this kind allows, for error messages.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Text => "a text in quotes",
            Self::Number => "a whole number of at most 32 bits without quotes",
            Self::Time => "a time such as '2026-01-31T12:00:00Z' or '2026-01-31'",
            Self::Instant => "a time such as '2026-01-31T12:00:00Z'",
            Self::Status => "'True', 'False' or 'Unknown'",
            Self::Json => "a text in quotes, a number, true or false",
        }
    }
}
