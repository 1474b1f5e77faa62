//! Compiles and evaluates one CEL expression within bounds, and turns panics of the library into errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cel::parser::Expression as Tree;
use cel::{Context, Env, ExecutionError, ParseErrors, Value};

use super::meter::Meter;
use super::stack::DeepStack;
use super::{fence, functions};

/// A compiled expression.
pub(super) struct Expression(Tree);

impl Expression {
    /// Parses a source that keeps within the bounds of [`fence`].
    pub(super) fn compile(env: &Env, source: &str, _deep: &DeepStack) -> Result<Self, String> {
        fence::check_source(source)?;
        let parsed = catch_unwind(AssertUnwindSafe(|| env.parser().parse(source)));
        let mut tree = parsed.map_err(|_| "the CEL parser panicked on it")?.map_err(|errors| first_error(&errors))?;
        fence::secure(env, &mut tree)?;
        Ok(Self(tree))
    }
}

/// Returns the parser's first error; the others mostly follow from it, and each quotes the whole source.
fn first_error(errors: &ParseErrors) -> String {
    errors.errors.first().map_or_else(
        || "it is not CEL".to_owned(),
        |error| format!("line {}, column {}: {}", error.pos.0, error.pos.1, error.msg),
    )
}

/// The variables and functions that expressions are evaluated with.
pub(super) struct Evaluation<'v> {
    context: Context<'v, 'v>,
    meter: Arc<Meter>,
}

impl Evaluation<'_> {
    /// Returns an evaluation in which `statuses` and `resource` have these values.
    pub(super) fn new(env: &Arc<Env>, statuses: Value, resource: Value) -> Self {
        let meter = Arc::new(Meter::default());
        let mut context = Context::with_env(Arc::clone(env));
        context.add_variable_from_value(fence::STATUSES, statuses);
        context.add_variable_from_value(fence::RESOURCE, resource);
        functions::add(&mut context, &meter);
        Self { context, meter }
    }

    /// Evaluates an expression; the error is a text without data.
    pub(super) fn run(&self, expression: &Expression, _deep: &DeepStack) -> Result<Value, &'static str> {
        self.meter.reset();
        let value = catch_unwind(AssertUnwindSafe(|| Value::resolve(&expression.0, &self.context)));
        // Logical operators swallow errors, also those of the meter.
        if self.meter.is_exhausted() {
            return Err("it takes too many steps or handles too much text");
        }
        value.map_err(|_| "the CEL evaluator panicked on it")?.map_err(|error| cause(&error))
    }
}

/// Returns the cause of an error without data: CEL's own messages quote values.
fn cause(error: &ExecutionError) -> &'static str {
    match error {
        ExecutionError::NoSuchKey(_) => "a key is missing",
        ExecutionError::IndexOutOfBounds(_) => "an index is out of bounds",
        ExecutionError::UndeclaredReference(_) => "it uses an unknown variable or function",
        ExecutionError::InvalidArgumentCount { .. } | ExecutionError::MissingArgumentOrTarget => {
            "a function got a wrong number of arguments"
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) | ExecutionError::Overflow(..) => {
            "its arithmetic has no result"
        }
        ExecutionError::FunctionError { .. } => "a function refused its arguments",
        ExecutionError::InternalError(_) => "the CEL evaluator failed",
        _ => "the types of values do not fit together",
    }
}
