//! Random expressions and documents, answered by the crate `expr-lang` as well.
//!
//! Each is written twice: fully in parentheses for both, and with `?.` for expr-lang, where a member of nil is an error.
//! Known differences are listed in the crate's documentation, and recognised here by their explanations.

use expr::{Context as TheirContext, Environment, Value as TheirValue};
use precondition::{Answer, Context, Explanation, Finding, Outcome, Precondition, Shown};
use proptest::prelude::*;
use serde_json::{Value, json};

const NAMES: &[&str] = &["a", "b", "c"];
const TEXTS: &[&str] = &["", "a", "b", "ab", "True"];
/// Reasons for which we refuse what expr-lang answers.
const STRICTER: &[&str] = &[
    // With `?.` it gives nil for members of what has none.
    "has no members",
    "is a list: use a whole number as the index",
    "is an object: its members have names",
    // Its `contains` searches lists and objects, too.
    "for a list write",
    "`contains` takes a text, but left side is an object",
    // It takes whatever is not true for no.
    "a predicate takes true or false",
];
/// Operators for which absent texts and lists are an error there, and have no content here.
const LENIENT: &[&str] = &[" in ", " contains ", " startsWith ", " endsWith "];

/// One expression in both spellings.
#[derive(Debug, Clone)]
struct Both {
    own: String,
    reference: String,
}

fn both(text: impl Into<String>) -> Both {
    let text = text.into();
    Both { own: text.clone(), reference: text }
}

fn joined<const N: usize>(parts: &[Both], pieces: [&str; N]) -> Both {
    let join = |spelling: fn(&Both) -> &str| {
        let parts = parts.iter().map(spelling).chain(std::iter::repeat(""));
        pieces.iter().copied().zip(parts).flat_map(|(piece, part)| [piece, part]).collect::<String>()
    };
    Both { own: join(|part| &part.own), reference: join(|part| &part.reference) }
}

fn literal() -> BoxedStrategy<Both> {
    let texts = prop::sample::select(TEXTS).prop_map(|text| both(format!("{text:?}")));
    let others = prop::sample::select(&["nil", "true", "false", "0", "1", "2", "0.5", "-1"][..]).prop_map(both);
    prop_oneof![texts, others].boxed()
}

fn path(in_predicate: bool) -> BoxedStrategy<Both> {
    let roots = if in_predicate { &["#", "#", "spec"][..] } else { &["spec", "status"][..] };
    let name = prop::sample::select(NAMES).prop_map(|name| (format!(".{name}"), format!("?.{name}")));
    let bare = prop::sample::select(NAMES).prop_map(|name| (format!("[{name}]"), format!("?.[{name:?}]")));
    let index = (-2..3_i32).prop_map(|index| (format!("[{index}]"), format!("?.[{index}]")));
    let step = prop_oneof![4 => name, 1 => bare, 1 => index];
    let least = usize::from(!in_predicate);
    let parts = (prop::sample::select(roots), prop::collection::vec(step, least..3));
    let written = parts.prop_map(|(root, steps)| Both {
        own: steps.iter().fold(root.to_owned(), |path, step| path + &step.0),
        reference: steps.iter().fold(root.to_owned(), |path, step| path + &step.1),
    });
    written.boxed()
}

fn list(depth: u32, in_predicate: bool) -> BoxedStrategy<Both> {
    let written = prop::collection::vec(expression(depth, in_predicate), 0..3).prop_map(|elements| {
        let join = |spelling: fn(&Both) -> &str| elements.iter().map(spelling).collect::<Vec<_>>().join(", ");
        Both { own: format!("[{}]", join(|one| &one.own)), reference: format!("[{}]", join(|one| &one.reference)) }
    });
    prop_oneof![4 => written, 1 => path(in_predicate)].boxed()
}

fn expression(depth: u32, in_predicate: bool) -> BoxedStrategy<Both> {
    if depth == 0 {
        return prop_oneof![literal(), path(in_predicate)].boxed();
    }
    let value = || expression(depth - 1, in_predicate);
    let truth = || condition(depth - 1, in_predicate);
    let lists = || list(depth - 1, in_predicate);
    let filtered = (lists(), condition(depth - 1, true));
    prop_oneof![
        4 => value(),
        4 => truth(),
        1 => lists(),
        1 => [value(), value()].prop_map(|parts| joined(&parts, ["((", ") ?? (", "))"])),
        1 => [truth(), value(), value()].prop_map(|parts| joined(&parts, ["((", ") ? (", ") : (", "))"])),
        1 => lists().prop_map(|part| joined(&[part], ["len(", ")"])),
        1 => filtered.prop_map(|(list, each)| joined(&[list, each], ["filter(", ", {", "})"])),
    ]
    .boxed()
}

/// Mostly of truth values, so that most expressions have an answer.
fn condition(depth: u32, in_predicate: bool) -> BoxedStrategy<Both> {
    if depth == 0 {
        return prop::sample::select(&["true", "false"][..]).prop_map(both).boxed();
    }
    let value = || expression(depth - 1, in_predicate);
    let truth = || condition(depth - 1, in_predicate);
    let same = (value(), prop::sample::select(vec!["==", "!="]), value());
    let orders = || prop::sample::select(vec!["<", "<=", ">", ">="]);
    let texts = || prop::sample::select(vec!["contains", "startsWith", "endsWith"]);
    let any_operands = (value(), prop_oneof![orders(), texts()], value());
    let counts = |depth| list(depth, in_predicate).prop_map(|part| joined(&[part], ["len(", ")"]));
    let numbers = (counts(depth - 1), orders(), prop::sample::select(vec!["0", "1", "1.5"]).prop_map(both));
    let text = || prop::sample::select(TEXTS).prop_map(|text| both(format!("{text:?}")));
    let written = (text(), prop_oneof![orders(), texts()], text());
    let within = (value(), prop::sample::select(vec!["in", "not in"]), list(depth - 1, in_predicate));
    let logic = (truth(), prop::sample::select(vec!["and", "or", "&&", "||"]), truth());
    let each =
        (prop::sample::select(vec!["any", "all", "none"]), list(depth - 1, in_predicate), condition(depth - 1, true));
    let counted = (list(depth - 1, in_predicate), condition(depth - 1, true));
    prop_oneof![
        24 => prop_oneof![8 => same, 3 => within, 1 => any_operands, 2 => numbers, 2 => written]
            .prop_map(|(left, operator, right)| joined(&[left, right], ["((", &format!(") {operator} ("), "))"])),
        16 => logic.prop_map(|(left, operator, right)| joined(&[left, right], ["((", &format!(") {operator} ("), "))"])),
        4 => truth().prop_map(|part| joined(&[part], ["(!(", "))"])),
        8 => each.prop_map(|(name, list, each)| joined(&[list, each], [&format!("{name}("), ", {", "})"])),
        4 => counted.prop_map(|(list, each)| joined(&[list, each], ["(count(", ", {", "}) > 1)"])),
        1 => value(),
    ]
    .boxed()
}

fn document() -> impl Strategy<Value = Value> {
    let texts = prop::sample::select(TEXTS).prop_map(|text| json!(text));
    let others =
        prop::sample::select(vec![json!(null), json!(true), json!(false), json!(0), json!(1), json!(0.5), json!(-1)]);
    let value = prop_oneof![texts, others].prop_recursive(3, 24, 3, |inner| {
        let object = prop::collection::btree_map(prop::sample::select(NAMES), inner.clone(), 0..3);
        let object =
            object.prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
        prop_oneof![prop::collection::vec(inner, 0..3).prop_map(Value::Array), object.prop_map(Value::Object)]
    });
    let root = || prop::collection::btree_map(prop::sample::select(NAMES), value.clone(), 1..4);
    (root(), root()).prop_map(|(spec, status)| json!({ "spec": spec, "status": status }))
}

/// Returns true if an operator that is stricter there has nil as its operand.
fn asked_nothing(explanation: &Explanation, finding: &Finding) -> bool {
    let source = explanation.source_of(finding);
    let nil = finding.parts().iter().any(|part| part.answer() == &Answer::Is(Shown::Nil));
    let here = finding.parts().len() == 2 && nil && LENIENT.iter().any(|operator| source.contains(operator));
    here || finding.parts().iter().any(|part| asked_nothing(explanation, part))
}

#[expect(clippy::match_same_arms, reason = "a table of who says what")]
fn compare(expression: &Both, document: &Value) -> Result<Option<Outcome>, TestCaseError> {
    let precondition = Precondition::parse(&expression.own);
    let precondition = precondition.map_err(|error| TestCaseError::fail(format!("{}\n{error}", expression.own)))?;
    let evaluation = precondition.evaluate(&Context::of(document));
    let context = TheirContext::from_serialize(document).unwrap();
    let reference = Environment::new().eval(&expression.reference, &context);
    let explained = evaluation.explanation.to_string();
    let agree = match (evaluation.outcome, &reference) {
        (Outcome::Met, Ok(TheirValue::Bool(true))) => true,
        (Outcome::NotMet, Ok(TheirValue::Bool(false))) => true,
        (Outcome::Unanswerable, Err(_)) => true,
        (Outcome::Unanswerable, Ok(value)) if value.as_bool().is_none() => true,
        (Outcome::Unanswerable, Ok(_)) => {
            return known(STRICTER.iter().any(|reason| explained.contains(reason)), expression, &explained, &reference);
        }
        (_, Err(_)) => {
            let nothing = asked_nothing(&evaluation.explanation, evaluation.explanation.root());
            return known(nothing, expression, &explained, &reference);
        }
        _ => false,
    };
    prop_assert!(agree, "{}\n{}\nours: {explained}\ntheirs: {reference:?}", expression.own, expression.reference);
    Ok(Some(evaluation.outcome))
}

/// A difference that is documented is one that is not compared.
fn known(
    known: bool,
    expression: &Both,
    explained: &str,
    reference: &Result<TheirValue, expr::Error>,
) -> Result<Option<Outcome>, TestCaseError> {
    prop_assert!(known, "{}\n{}\nours: {explained}\ntheirs: {reference:?}", expression.own, expression.reference);
    Ok(None)
}

#[test]
fn answers_are_those_of_expr_lang() {
    // More with PROPTEST_CASES.
    let cases = ProptestConfig::default().cases.max(600);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let compared = std::cell::Cell::new(0_u32);
    let answered = std::cell::Cell::new(0_u32);
    let inputs = (condition(4, false), document());
    let outcome = runner.run(&inputs, |(expression, document)| {
        let outcome = compare(&expression, &document)?;
        compared.set(compared.get() + u32::from(outcome.is_some()));
        answered.set(answered.get() + u32::from(outcome.is_some_and(|outcome| outcome != Outcome::Unanswerable)));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{cases} cases, {} compared, {} of them true or false", compared.get(), answered.get());
    assert!(answered.get() > cases / 3, "only {} of {cases} were true or false", answered.get());
    // The excluded must stay few, or nothing is shown.
    assert!(compared.get() > cases * 3 / 4, "only {} of {cases} were compared", compared.get());
}
