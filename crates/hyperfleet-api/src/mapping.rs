//! Evaluates the condition mappings of the configuration: CEL expressions over a resource and its reports.
//!
//! Evaluation is bounded (`fence`, `meter`) and runs only on threads with deep stacks (`stack`), never on the runtime's.

mod evaluator;
mod expression;
mod fence;
mod functions;
mod meter;
mod stack;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use cel::{Env, Value};
use fleet_model::Status;
use fleet_model::names::condition::{LAST_KNOWN_RECONCILED, RECONCILED};

use self::expression::{Evaluation, Expression};
use self::stack::DeepStack;
use crate::decide::mapped::{MappedCondition, considered};
use crate::entity::ConditionMapping;
use crate::resource::Resource;

pub use evaluator::Evaluator;
#[cfg(test)]
pub(crate) use evaluator::Task;

/// Maximum number of characters of a mapped condition's type, as in HyperFleet's API.
const MAX_TYPE: usize = 100;
/// A condition whose reason has more characters is left out, as in HyperFleet's API.
const MAX_REASON: usize = 256;
/// A longer message is cut to this number of characters, as in HyperFleet's API.
const MAX_MESSAGE: usize = 2048;

/// The compiled condition mappings of one kind.
pub struct Mapper {
    env: Arc<Env>,
    /// Sorted by type, the order of the conditions.
    mappings: Vec<Mapping>,
}

/// One compiled mapping.
struct Mapping {
    kind: String,
    status: Expression,
    reason: Option<Expression>,
    message: Option<Expression>,
}

/// One expression of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The expression for the condition's status.
    Status,
    /// The expression for its reason.
    Reason,
    /// The expression for its message.
    Message,
}

/// A mapping that cannot be evaluated. The error names the expression and never quotes the data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// An expression has no value, or one of the wrong type.
    #[error(
        "cannot compute the {part} of the mapped condition {condition}: {cause}; \
         correct its expression in entities[].conditions[]"
    )]
    Expression {
        /// The type of the condition.
        condition: String,
        /// The expression that failed.
        part: Part,
        /// The cause, in the expression's terms.
        cause: &'static str,
    },
    /// The CEL library panicked.
    #[error("cannot compute the mapped conditions: the CEL library panicked; simplify entities[].conditions[]")]
    Panicked,
    /// No thread evaluates mappings any more.
    #[error("cannot compute the mapped conditions: the evaluator has stopped; restart the server")]
    Stopped,
}

// === impl Mapper ===

impl Mapper {
    /// Checks and compiles mappings; the error names the mapping, its expression and the cause.
    ///
    /// Blocks while a thread with a deep stack compiles: it is called at start-up only.
    pub fn compile(mappings: &[ConditionMapping]) -> Result<Self, String> {
        let env = Arc::new(Env::stdlib());
        let mut types = BTreeSet::new();
        for mapping in mappings {
            check_type(&mapping.kind)?;
            if !types.insert(&mapping.kind) {
                return Err(format!("conditions[{}]: there are two of this type", mapping.kind));
            }
        }
        let compile_all = |stack: &DeepStack| {
            mappings.iter().map(|mapping| Mapping::compile(&env, mapping, stack)).collect::<Result<Vec<_>, _>>()
        };
        let mut mappings = stack::run(compile_all)??;
        mappings.sort_by(|one, other| one.kind.cmp(&other.kind));
        Ok(Self { env, mappings })
    }

    /// Returns true if there are no mappings.
    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }

    /// Evaluates the mappings on a resource; returns the conditions sorted by type.
    fn evaluate(&self, resource: &Resource, stack: &DeepStack) -> Result<Vec<MappedCondition>, MappingError> {
        let reports = considered(resource);
        let evaluation = Evaluation::new(&self.env, values::statuses(&reports), values::resource(resource));
        let mut conditions = Vec::new();
        for mapping in &self.mappings {
            conditions.extend(mapping.evaluate(&evaluation, stack)?);
        }
        Ok(conditions)
    }
}

impl fmt::Debug for Mapper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.mappings.iter().map(|mapping| &mapping.kind)).finish()
    }
}

fn check_type(kind: &str) -> Result<(), String> {
    if kind.is_empty() {
        Err("conditions[]: a type is empty".to_owned())
    } else if kind.chars().count() > MAX_TYPE {
        Err(format!("conditions[{kind}]: the type has more than {MAX_TYPE} characters"))
    } else if [RECONCILED, LAST_KNOWN_RECONCILED].contains(&kind) {
        Err(format!("conditions[{kind}]: the type is the API's own; choose another one"))
    } else {
        Ok(())
    }
}

// === impl Mapping ===

impl Mapping {
    fn compile(env: &Env, mapping: &ConditionMapping, stack: &DeepStack) -> Result<Self, String> {
        let compile = |part: Part, source: &str| {
            let compiled = Expression::compile(env, source, stack);
            compiled.map_err(|error| format!("conditions[{}].{part}: {error}", mapping.kind))
        };
        Ok(Self {
            kind: mapping.kind.clone(),
            status: compile(Part::Status, &mapping.status)?,
            reason: mapping.reason.as_deref().map(|source| compile(Part::Reason, source)).transpose()?,
            message: mapping.message.as_deref().map(|source| compile(Part::Message, source)).transpose()?,
        })
    }

    /// Evaluates the condition; `None` if the reason is too long for a condition.
    fn evaluate(
        &self,
        evaluation: &Evaluation<'_>,
        stack: &DeepStack,
    ) -> Result<Option<MappedCondition>, MappingError> {
        let failed = |part: Part| {
            move |cause: &'static str| MappingError::Expression { condition: self.kind.clone(), part, cause }
        };
        let text = |expression: &Option<Expression>, part: Part| {
            let value = expression.as_ref().map(|expression| evaluation.run(expression, stack)).transpose();
            value.and_then(|value| value.map_or(Ok(None), text_of)).map_err(failed(part))
        };
        let status = evaluation.run(&self.status, stack).and_then(status_of).map_err(failed(Part::Status))?;
        let reason = text(&self.reason, Part::Reason)?;
        let message = text(&self.message, Part::Message)?;
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
            return Ok(None);
        }
        let message = message.map(|message| message.chars().take(MAX_MESSAGE).collect());
        Ok(Some(MappedCondition { kind: self.kind.clone(), status, reason, message }))
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

/// Returns the text of a value; an empty text and null are `None`.
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
