//! Conditions that the configuration computes from the reports, by CEL expressions.

mod expression;
mod fence;
mod functions;
mod meter;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use cel::{Env, Value};

use self::expression::{Evaluation, Expression};
use super::aggregate::{Finding, LAST_KNOWN_RECONCILED, RECONCILED};
use crate::entity::ConditionMapping;
use crate::resource::{Condition, Report, Resource, Status};

/// The most characters of a mapped condition's type (`api.md` §5.4).
const LONGEST_TYPE: usize = 100;
/// A condition whose reason has more characters is left out (`api.md` §5.4).
const LONGEST_REASON: usize = 256;
/// A message is cut after as many characters (`api.md` §5.4).
const LONGEST_MESSAGE: usize = 2048;

/// The condition mappings of one kind, ready to be applied (`api.md` §5.4).
pub struct Mapper {
    env: Arc<Env>,
    /// Sorted by type, as the conditions are shown.
    mappings: Vec<Mapping>,
}

/// One mapping, compiled.
struct Mapping {
    kind: String,
    status: Expression,
    reason: Option<Expression>,
    message: Option<Expression>,
}

/// What the expressions of a mapping say.
struct Content {
    status: Status,
    reason: Option<String>,
    message: Option<String>,
}

/// Which expression of a mapping is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The one for the condition's status.
    Status,
    /// The one for its reason.
    Reason,
    /// The one for its message.
    Message,
}

/// Mappings could not be applied. The error says where, and never quotes the data that it happened on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// An expression has no value, or not one of the right type.
    #[error(
        "cannot compute the {part} of the mapped condition {condition}: {cause}; \
         correct its expression in entities[].conditions[]"
    )]
    Expression {
        /// The type of the condition.
        condition: String,
        /// Which of its expressions failed.
        part: Part,
        /// What went wrong, in the expression's terms.
        cause: &'static str,
    },
    /// No expression is to blame.
    #[error("cannot compute the mapped conditions: {0}; try again")]
    Stack(String),
}

// === impl Mapper ===

impl Mapper {
    /// Checks and parses mappings; the error names the mapping, its expression and what is wrong with it.
    pub fn compile(mappings: &[ConditionMapping]) -> Result<Self, String> {
        let env = Arc::new(Env::stdlib());
        let mut seen = BTreeSet::new();
        for mapping in mappings {
            check_type(&mapping.kind)?;
            if !seen.insert(&mapping.kind) {
                return Err(format!("conditions[{}]: there are two of this type", mapping.kind));
            }
        }
        let compile_all =
            || mappings.iter().map(|mapping| Mapping::compile(&env, mapping)).collect::<Result<Vec<_>, _>>();
        let mut mappings = expression::with_deep_stack(compile_all)??;
        mappings.sort_by(|one, other| one.kind.cmp(&other.kind));
        Ok(Self { env, mappings })
    }

    /// The mapped conditions of a resource, sorted by type; `previous` gives them their history.
    pub fn map(&self, resource: &Resource, previous: &[Condition]) -> Result<Vec<Condition>, MappingError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        expression::with_deep_stack(|| self.map_here(resource, previous)).map_err(MappingError::Stack)?
    }

    fn map_here(&self, resource: &Resource, previous: &[Condition]) -> Result<Vec<Condition>, MappingError> {
        let reports = considered(resource);
        let observed = reports.iter().map(|report| report.last_report_time).max().unwrap_or(resource.updated_time);
        let evaluation = Evaluation::new(&self.env, values::statuses(&reports), values::resource(resource));
        let mut conditions = Vec::new();
        for mapping in &self.mappings {
            let Some(Content { status, reason, message }) = mapping.evaluate(&evaluation)? else { continue };
            let finding = Finding {
                kind: mapping.kind.clone(),
                status,
                reason,
                message,
                observed_generation: resource.generation,
                last_updated_time: observed,
            };
            conditions.push(finding.after(previous, observed));
        }
        Ok(conditions)
    }

    /// Whether there is nothing to map.
    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }
}

impl fmt::Debug for Mapper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.mappings.iter().map(|mapping| &mapping.kind)).finish()
    }
}

/// The reports that expressions see: those of adapters that are sure of everything they say.
fn considered(resource: &Resource) -> Vec<&Report> {
    let sure = |report: &&Report| report.conditions.iter().all(|condition| condition.status != Status::Unknown);
    resource.state.reports.values().filter(sure).collect()
}

fn check_type(kind: &str) -> Result<(), String> {
    if kind.is_empty() {
        Err("conditions[]: a type is empty".to_owned())
    } else if kind.chars().count() > LONGEST_TYPE {
        Err(format!("conditions[{kind}]: the type has more than {LONGEST_TYPE} characters"))
    } else if [RECONCILED, LAST_KNOWN_RECONCILED].contains(&kind) {
        Err(format!("conditions[{kind}]: the type is the API's own; choose another one"))
    } else {
        Ok(())
    }
}

// === impl Mapping ===

impl Mapping {
    fn compile(env: &Env, mapping: &ConditionMapping) -> Result<Self, String> {
        let compile = |part: Part, source: &str| {
            Expression::compile(env, source).map_err(|wrong| format!("conditions[{}].{part}: {wrong}", mapping.kind))
        };
        Ok(Self {
            kind: mapping.kind.clone(),
            status: compile(Part::Status, &mapping.status)?,
            reason: mapping.reason.as_deref().map(|source| compile(Part::Reason, source)).transpose()?,
            message: mapping.message.as_deref().map(|source| compile(Part::Message, source)).transpose()?,
        })
    }

    /// The condition's content; nothing if the reason is too long for a condition.
    fn evaluate(&self, evaluation: &Evaluation<'_>) -> Result<Option<Content>, MappingError> {
        let failed = |part: Part| {
            move |cause: &'static str| MappingError::Expression { condition: self.kind.clone(), part, cause }
        };
        let text = |expression: &Option<Expression>, part: Part| {
            let value = expression.as_ref().map(|expression| evaluation.run(expression)).transpose();
            value.and_then(|value| value.map_or(Ok(None), text_of)).map_err(failed(part))
        };
        let status = evaluation.run(&self.status).and_then(status_of).map_err(failed(Part::Status))?;
        let reason = text(&self.reason, Part::Reason)?;
        let message = text(&self.message, Part::Message)?;
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > LONGEST_REASON) {
            return Ok(None);
        }
        let message = message.map(|message| message.chars().take(LONGEST_MESSAGE).collect());
        Ok(Some(Content { status, reason, message }))
    }
}

fn status_of(value: Value) -> Result<Status, &'static str> {
    match value {
        Value::Bool(true) => Ok(Status::True),
        Value::Bool(false) => Ok(Status::False),
        Value::String(text) if *text == "True" => Ok(Status::True),
        Value::String(text) if *text == "False" => Ok(Status::False),
        _ => Err("its value is neither true nor false, nor one of the texts True and False"),
    }
}

/// A text; an empty one, like null, is none.
fn text_of(value: Value) -> Result<Option<String>, &'static str> {
    match value {
        Value::String(text) => Ok(Some(Arc::unwrap_or_clone(text)).filter(|text| !text.is_empty())),
        Value::Null => Ok(None),
        _ => Err("its value is not a text"),
    }
}

// === impl Part ===

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Status => "status",
            Self::Reason => "reason",
            Self::Message => "message",
        })
    }
}
