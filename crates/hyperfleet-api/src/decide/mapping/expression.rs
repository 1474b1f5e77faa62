//! One CEL expression: compiled behind fences, run behind a meter, with no way for a panic to get out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cel::parser::Expression as Tree;
use cel::{Context, Env, ExecutionError, ParseErrors, Value};

use super::meter::Meter;
use super::{fence, functions};

/// In a debug build the parser descends some 90 KiB of stack for each nested parenthesis (`crates.md` §6), and evaluation
/// more than 32 KiB for each level of the tree; this is room for what [`fence`] lets through several times over. Only
/// pages that are touched become memory.
const DEEP_STACK: usize = 64 << 20;

/// A compiled expression.
pub(super) struct Expression(Tree);

impl Expression {
    /// Parses a source that keeps within bounds. To be called within [`with_deep_stack`].
    pub(super) fn compile(env: &Env, source: &str) -> Result<Self, String> {
        fence::check_source(source)?;
        let parsed = catch_unwind(AssertUnwindSafe(|| env.parser().parse(source)));
        let mut tree = parsed.map_err(|_| "the CEL parser panicked on it")?.map_err(|errors| complaint(&errors))?;
        fence::secure(env, &mut tree)?;
        Ok(Self(tree))
    }
}

/// Runs what descends deeply on a thread of its own: the caller's stack may be a small one with much on it already, and
/// overflowing it would end the process. A thread costs some ten microseconds, and only kinds with mappings pay them.
pub(super) fn with_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("cel".to_owned()).stack_size(DEEP_STACK);
        let running = thread.spawn_scoped(scope, work).map_err(|error| format!("cannot start a thread: {error}"))?;
        running.join().map_err(|_| "the CEL library panicked".to_owned())
    })
}

/// The parser's first complaint; the rest mostly follows from it, and each quotes the whole source.
fn complaint(errors: &ParseErrors) -> String {
    errors.errors.first().map_or_else(
        || "it is not CEL".to_owned(),
        |error| format!("line {}, column {}: {}", error.pos.0, error.pos.1, error.msg),
    )
}

/// What expressions are run on.
pub(super) struct Evaluation<'v> {
    context: Context<'v, 'v>,
    meter: Arc<Meter>,
}

impl Evaluation<'_> {
    /// An evaluation in which `statuses` and `resource` have these values.
    pub(super) fn new(env: &Arc<Env>, statuses: Value, resource: Value) -> Self {
        let meter = Arc::new(Meter::default());
        let mut context = Context::with_env(Arc::clone(env));
        context.add_variable_from_value(fence::STATUSES, statuses);
        context.add_variable_from_value(fence::RESOURCE, resource);
        functions::add(&mut context, &meter);
        Self { context, meter }
    }

    /// The expression's value, or what went wrong in words that hold no data.
    pub(super) fn run(&self, expression: &Expression) -> Result<Value, &'static str> {
        self.meter.reset();
        let value = catch_unwind(AssertUnwindSafe(|| Value::resolve(&expression.0, &self.context)));
        // Logical operators swallow errors, also that of the meter: it is asked itself.
        if self.meter.is_exhausted() {
            return Err("it takes too many steps or handles too much text");
        }
        value.map_err(|_| "the CEL evaluator panicked on it")?.map_err(|error| cause(&error))
    }
}

/// CEL's own messages quote the values that they speak of.
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
