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

use std::fmt;
use std::sync::Arc;

use cel::{Env, Value};
use fleet_model::Status;

use self::expression::{Evaluation, Expression};
use self::stack::DeepStack;
use crate::decide::mapped::{MappedCondition, considered};
use crate::entity::{ConditionMapping, MappingExpression};
use crate::excerpt::excerpt;
use crate::resource::Resource;

pub use evaluator::Evaluator;
#[cfg(test)]
pub(crate) use evaluator::Task;

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
    when: Expression,
    status: Expression,
    reason: Expression,
    message: Expression,
}

/// One expression of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The expression that says whether the condition is there.
    When,
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
        "cannot compute {part} of the mapped condition {condition}: {cause}; \
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
        let compile_all = |stack: &DeepStack| {
            let compiled = mappings.iter().enumerate().map(|(index, mapping)| {
                let compiled = Mapping::compile(&env, mapping, stack);
                compiled.map_err(|error| format!("conditions[{index}].{error}"))
            });
            compiled.collect::<Result<Vec<_>, _>>()
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

// === impl Mapping ===

impl Mapping {
    fn compile(env: &Env, mapping: &ConditionMapping, stack: &DeepStack) -> Result<Self, String> {
        let compile = |part: Part, source: &MappingExpression| {
            let compiled = Expression::compile(env, &source.expression, stack);
            compiled.map_err(|error| format!("{part}.expression: '{}': {error}", excerpt(&source.expression)))
        };
        let ConditionMapping { kind, when, output } = mapping;
        Ok(Self {
            kind: kind.clone(),
            when: compile(Part::When, when)?,
            status: compile(Part::Status, &output.status)?,
            reason: compile(Part::Reason, &output.reason)?,
            message: compile(Part::Message, &output.message)?,
        })
    }

    /// Evaluates the condition; `None` if it is not there, or its reason is too long for a condition.
    fn evaluate(
        &self,
        evaluation: &Evaluation<'_>,
        stack: &DeepStack,
    ) -> Result<Option<MappedCondition>, MappingError> {
        let run = |part: Part, expression: &Expression| {
            let failed = move |cause| MappingError::Expression { condition: self.kind.clone(), part, cause };
            evaluation.run(expression, stack).map_err(failed)
        };
        let failed = |part: Part, cause| MappingError::Expression { condition: self.kind.clone(), part, cause };
        match run(Part::When, &self.when)? {
            Value::Bool(true) => {}
            Value::Bool(false) => return Ok(None),
            _ => return Err(failed(Part::When, "its value is neither true nor false")),
        }
        let status = text_of(&run(Part::Status, &self.status)?).and_then(|text| status_of(&text));
        let status = status.map_err(|cause| failed(Part::Status, cause))?;
        let reason = text_of(&run(Part::Reason, &self.reason)?).map_err(|cause| failed(Part::Reason, cause))?;
        let message = text_of(&run(Part::Message, &self.message)?).map_err(|cause| failed(Part::Message, cause))?;
        if reason.chars().count() > MAX_REASON {
            return Ok(None);
        }
        let message = message.chars().take(MAX_MESSAGE).collect();
        Ok(Some(MappedCondition { kind: self.kind.clone(), status, reason: Some(reason), message: Some(message) }))
    }
}

fn status_of(text: &str) -> Result<Status, &'static str> {
    let is = |status: &Status| status.as_str().eq_ignore_ascii_case(text);
    [Status::True, Status::False].into_iter().find(is).ok_or("its value is neither True nor False")
}

/// Returns the text of a value, as in HyperFleet's API: that of null is empty, that of a boolean `True` or `False`.
fn text_of(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text.to_string()),
        Value::Null => Ok(String::new()),
        Value::Bool(holds) => Ok(Status::from(*holds).as_str().to_owned()),
        Value::Int(number) => Ok(number.to_string()),
        Value::UInt(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err("its value is not a text"),
    }
}

// === impl Part ===

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::When => "when",
            Self::Status => "output.status",
            Self::Reason => "output.reason",
            Self::Message => "output.message",
        })
    }
}
