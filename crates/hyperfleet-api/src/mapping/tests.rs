//! Tests of expressions: their results, their variables, and the expressions that are refused.

mod hostile;

use fleet_model::{Condition, Generation, Report};
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::*;
use crate::decide::mapped::conditions;
use crate::entity::MappingOutput;
use crate::resource::{State, Target};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn report(adapter: &str, second: i64, available: &str, data: &Json) -> Report {
    serde_json::from_value(json!({
        "adapter": adapter,
        "observed_generation": 2,
        "conditions": [
            {"type": "Available", "status": available, "reason": "Because", "last_transition_time": at(second)},
            {"type": "Health", "status": "True", "last_transition_time": at(second)},
        ],
        "data": data,
        "created_time": at(second),
        "last_report_time": at(second),
    }))
    .unwrap()
}

fn resource() -> Resource {
    let reports = [
        report("dns", 50, "True", &json!({"zone": {"name": "z1"}, "count": 4, "big": u64::MAX, "ratio": 0.5})),
        report("hypershift", 60, "False", &json!({"api_TOKEN": "sesame", "deep": [{"Password": {"x": "sesame"}}]})),
        report("validation", 70, "Unknown", &json!({})),
    ];
    Resource {
        id: "c1".to_owned(),
        kind: "Cluster".to_owned(),
        name: "one".to_owned(),
        owner: Some(Target { id: "o1".to_owned(), kind: "Fleet".to_owned(), href: "/o1".to_owned() }),
        spec: json!({"region": "eu", "nodes": 3, "pullSecret": {"data": "sesame"}}).as_object().unwrap().clone(),
        href: "/api/hyperfleet/v1/clusters/0197".to_owned(),
        generation: Generation::from(2),
        created_time: at(0),
        created_by: "someone".to_owned(),
        updated_time: at(40),
        updated_by: "someone".to_owned(),
        deleted_time: None,
        deleted_by: None,
        state: State {
            labels: [("env".to_owned(), "prod".to_owned())].into(),
            reports: reports.map(|report| (report.adapter.clone(), report)).into(),
            ..State::default()
        },
    }
}

fn mapping(status: &str, reason: Option<&str>, message: Option<&str>) -> ConditionMapping {
    let expression = |source: &str| MappingExpression { expression: source.to_owned() };
    ConditionMapping {
        kind: "Mapped".to_owned(),
        when: expression("true"),
        output: MappingOutput {
            status: expression(status),
            reason: expression(reason.unwrap_or("''")),
            message: expression(message.unwrap_or("''")),
        },
    }
}

fn map(mapping: ConditionMapping) -> Result<Vec<Condition>, MappingError> {
    map_after(&Mapper::compile(&[mapping]).unwrap(), &resource(), &[])
}

/// Evaluates as the evaluator does, and draws the conditions with the history of `previous`.
fn map_after(mapper: &Mapper, resource: &Resource, previous: &[Condition]) -> Result<Vec<Condition>, MappingError> {
    let mapped = stack::run(|stack| mapper.evaluate(resource, stack)).unwrap()?;
    Ok(conditions(&mapped, resource, previous, at(60)))
}

fn cause(error: MappingError) -> &'static str {
    match error {
        MappingError::Expression { cause, .. } => cause,
        other => panic!("{other}"),
    }
}

/// Returns the text that an expression evaluates to.
fn text(source: &str) -> Result<Option<String>, &'static str> {
    let mapped = map(mapping("true", None, Some(source)));
    mapped.map(|conditions| conditions[0].message.clone()).map_err(cause)
}

#[rstest]
#[case("true", Ok(Status::True))]
#[case("false", Ok(Status::False))]
#[case("'True'", Ok(Status::True))]
#[case("'False'", Ok(Status::False))]
#[case("'TRUE'", Ok(Status::True))]
#[case("'false'", Ok(Status::False))]
#[case("'Unknown'", Err("its value is neither True nor False"))]
#[case("1", Err("its value is neither True nor False"))]
#[case("null", Err("its value is neither True nor False"))]
#[case("[true]", Err("its value is not a text"))]
#[case::counted("dig(statuses[0], 'conditions.0.status')", Ok(Status::True))]
#[case("statuses.exists(s, s.adapter == 'dns')", Ok(Status::True))]
#[case::unknown_is_left_out("statuses.exists(s, s.adapter == 'validation')", Ok(Status::False))]
#[case("size(statuses) == 2", Ok(Status::True))]
#[case("statuses.all(s, s.conditions.exists(c, c.type == 'Available' && c.status == 'True'))", Ok(Status::False))]
#[case("statuses.filter(s, s.adapter == 'dns')[0].conditions[0].status", Ok(Status::True))]
#[case("statuses[0].conditions[0].reason == 'Because' && statuses[0].conditions[1].reason == ''", Ok(Status::True))]
#[case("statuses[0].observed_generation == resource.generation", Ok(Status::True))]
#[case("resource.labels['env'] == 'prod' && resource.owner.kind == 'Fleet'", Ok(Status::True))]
#[case("has(resource.deleted_time)", Ok(Status::False))]
#[case("resource.spec.?zone.orValue('none') == 'none'", Ok(Status::True))]
#[case::int_arithmetic("resource.spec.nodes + 1 == 4 && resource.spec.nodes - 5 < 0", Ok(Status::True))]
#[case::int_type("type(statuses[0].data.count) == int && type(resource.generation) == int", Ok(Status::True))]
#[case::too_big_for_int("type(statuses[0].data.big) == double", Ok(Status::True))]
#[case::float("statuses[0].data.ratio * 2.0 == 1.0", Ok(Status::True))]
#[case::missing_key("resource.spec.zone == 'x'", Err("a key is missing"))]
#[case::missing_element("statuses[7].adapter == 'x'", Err("an index is out of bounds"))]
#[case::wrong_types("resource.name + 1 == 2", Err("the types of values do not fit together"))]
#[case::no_result("1 / 0 == 1", Err("its arithmetic has no result"))]
#[case::unknown_function("frobnicate(1)", Err("it uses an unknown variable or function"))]
fn statuses_of_conditions(#[case] source: &str, #[case] expected: Result<Status, &'static str>) {
    let mapped = map(mapping(source, None, None));
    assert_eq!(mapped.map(|conditions| conditions[0].status).map_err(cause), expected);
}

#[rstest]
#[case("'a' + 'b'", Ok(Some("ab")))]
#[case("''", Ok(Some("")))]
#[case("null", Ok(Some("")))]
#[case("1", Ok(Some("1")))]
#[case("2.5", Ok(Some("2.5")))]
#[case("2 > 1", Ok(Some("True")))]
#[case("[1]", Err("its value is not a text"))]
#[case("dig(statuses[0].conditions, '1.type')", Ok(Some("Health")))]
#[case("dig(statuses[0].conditions, '7.type')", Ok(Some("")))]
#[case("toJson(statuses[0].data.zone)", Ok(Some(r#"{"name":"z1"}"#)))]
#[case(
    "toJson([1, -2, 2.5, 'x', true, null, {'b': 1, 'a': 2u}])",
    Ok(Some(r#"[1,-2,2.5,"x",true,null,{"a":2,"b":1}]"#))
)]
#[case("toJson(b'x')", Err("a function refused its arguments"))]
#[case("toJson()", Err("a function got a wrong number of arguments"))]
#[case("dig(statuses[0], 'data.zone.name')", Ok(Some("z1")))]
#[case("dig(statuses[0], 'data.zone.nothing')", Ok(Some("")))]
#[case("dig(statuses[0], 'data.zone.nothing', 'else')", Ok(Some("else")))]
#[case("dig(statuses[0], 'data.zone.name.deeper', 'else')", Ok(Some("else")))]
#[case("dig(statuses[0], 1)", Err("a function refused its arguments"))]
#[case("dig(statuses[0])", Err("a function got a wrong number of arguments"))]
#[case::redacted_in_data("statuses[1].data.api_TOKEN", Ok(Some("***REDACTED***")))]
#[case::redacted_deeply("statuses[1].data.deep[0].Password", Ok(Some("***REDACTED***")))]
#[case::redacted_in_spec("resource.spec.pullSecret", Ok(Some("***REDACTED***")))]
#[case::time("statuses[0].last_report_time", Ok(Some("1970-01-01T00:00:50Z")))]
fn texts(#[case] source: &str, #[case] expected: Result<Option<&str>, &'static str>) {
    assert_eq!(text(source), expected.map(|text| text.map(str::to_owned)));
}

#[test]
fn sensitive_values_are_redacted_everywhere() {
    let all = text("toJson(statuses) + toJson(resource)").unwrap().unwrap();
    assert!(!all.contains("sesame"), "{all}");
}

/// A long reason drops the condition, a long message is cut.
#[test]
fn long_texts() {
    let of = |reason: &str, message: &str| {
        map(mapping("true", Some(&format!("'{reason}'")), Some(&format!("'{message}'")))).unwrap()
    };
    assert_eq!(of(&"ü".repeat(256), "")[0].reason, Some("ü".repeat(256)));
    assert_eq!(of(&"r".repeat(257), ""), []);
    assert_eq!(of("", &"m".repeat(2048))[0].message, Some("m".repeat(2048)));
    assert_eq!(of("", &"m".repeat(2049))[0].message, Some("m".repeat(2048)));
    let doubled = mapping("true", None, Some(&format!("'{0}' + '{0}'", "ü".repeat(1020))));
    assert_eq!(map(doubled).unwrap()[0].message, Some("ü".repeat(2040)));
    let cut = format!("['{}'].map(x, x + x + x)[0]", "ü".repeat(1000));
    assert_eq!(text(&cut).unwrap(), Some("ü".repeat(2048)));
}

fn times(condition: &Condition) -> [i64; 3] {
    [condition.created_time, condition.last_updated_time, condition.last_transition_time].map(Timestamp::as_second)
}

/// Creation, update and transition times follow the evaluation, here at second 60, and the previous condition.
#[test]
fn history() {
    let mapper = Mapper::compile(&[mapping("true", None, None)]).unwrap();
    let first = map_after(&mapper, &resource(), &[]).unwrap();
    assert_eq!(times(&first[0]), [60, 60, 60]);
    assert_eq!(first[0].observed_generation, Generation::from(2));

    let before = |status: Status| Condition {
        status,
        created_time: at(1),
        last_updated_time: at(2),
        last_transition_time: at(3),
        ..first[0].clone()
    };
    assert_eq!(times(&map_after(&mapper, &resource(), &[before(Status::True)]).unwrap()[0]), [1, 60, 3]);
    assert_eq!(times(&map_after(&mapper, &resource(), &[before(Status::False)]).unwrap()[0]), [1, 60, 60]);
}

/// Without its `when` a condition is not there.
#[test]
fn conditions_are_there_when_they_are_to_be() {
    let when = |source: &str| {
        let when = MappingExpression { expression: source.to_owned() };
        map(ConditionMapping { when, ..mapping("true", None, None) }).map(|conditions| conditions.len()).map_err(cause)
    };
    assert_eq!(when("statuses.exists(s, s.adapter == 'dns')"), Ok(1));
    assert_eq!(when("statuses.exists(s, s.adapter == 'none')"), Ok(0));
    assert_eq!(when("'True'"), Err("its value is neither true nor false"));
    assert_eq!(when("resource.spec.none"), Err("a key is missing"));
}

#[test]
fn an_error_names_the_expression_and_no_data() {
    let failing = mapping("true", Some("resource.spec.region + 1"), None);
    assert_eq!(
        map(failing).unwrap_err().to_string(),
        "cannot compute output.reason of the mapped condition Mapped: the types of values do not fit together; \
         correct its expression in entities[].conditions[]"
    );
}

#[test]
fn conditions_are_sorted_by_type() {
    let of = |kind: &str| ConditionMapping { kind: kind.to_owned(), ..mapping("true", None, None) };
    let mapped = map_after(&Mapper::compile(&["b", "a", "c"].map(of)).unwrap(), &resource(), &[]).unwrap();
    assert_eq!(mapped.iter().map(|condition| condition.kind.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn nothing_to_map() {
    let mapper = Mapper::compile(&[]).unwrap();
    assert!(mapper.is_empty());
    assert_eq!(map_after(&mapper, &resource(), &[]).unwrap(), []);
}
