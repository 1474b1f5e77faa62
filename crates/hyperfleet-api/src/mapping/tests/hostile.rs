//! Tests of configuration that would overflow a stack, never end, or is a mistake.

use super::*;

fn refusal(mapping: ConditionMapping) -> String {
    Mapper::compile(&[mapping]).err().unwrap_or_default()
}

fn refusal_of(source: &str) -> String {
    refusal(mapping(source, None, None))
}

#[rstest]
#[case::too_long(format!("'{}'", "x".repeat(4095)), "it has more than 4096 bytes")]
#[case::parentheses(nested("(", "true", ")", 21), "it nests parentheses, brackets and braces deeper than 20")]
#[case::brackets(nested("[", "", "]", 21), "it nests parentheses, brackets and braces deeper than 20")]
#[case::braces(nested("{1:", "1", "}", 21), "it nests parentheses, brackets and braces deeper than 20")]
#[case::unclosed("(".repeat(2000), "it nests parentheses, brackets and braces deeper than 20")]
#[case::hidden_in_texts(format!("')))' + {}", nested("(", "'('", ")", 21)), "it nests parentheses, brackets and braces deeper than 20")]
#[case::nots(format!("{}true", "!".repeat(4000)), "it has more than 512 tokens")]
#[case::minuses(format!("{}1", "- ".repeat(2000)), "it has more than 512 tokens")]
#[case::ternaries(format!("{}1", "true?1:".repeat(500)), "it has more than 512 tokens")]
#[case::members(format!("resource{}", ".a".repeat(1000)), "it has more than 512 tokens")]
#[case::ins(format!("1{}", " in a".repeat(600)), "it has more than 512 tokens")]
#[case::deep_sum(format!("1{}", "+1".repeat(255)), "its operators and calls build on each other more than 64 deep")]
#[case::deep_members(format!("resource{}", ".a".repeat(255)), "its operators and calls build on each other more than 64 deep")]
#[case::deep_ternaries(format!("{}1", "true?1:".repeat(80)), "its operators and calls build on each other more than 64 deep")]
#[case::loops("[1].all(a, [1].all(b, [1].all(c, true)))".to_owned(), "it nests loops (all, exists, map, filter) deeper than 2")]
#[case::unended_text("'abc".to_owned(), "a text does not end")]
#[case::broken_text("'abc\n'".to_owned(), "a text does not end before its line does")]
#[case::bad_escape(r"'\z'".to_owned(), "a text has an escape that CEL does not know")]
#[case::bad_hex(r"'\xg0'".to_owned(), "a text has an escape that CEL does not know")]
#[case::glued_text("1r'a'".to_owned(), "a text follows a number")]
#[case::unknown_variable("status == 1".to_owned(), "it uses the unknown variable status; there are statuses and resource")]
#[case::out_of_scope("[1].all(x, x == 1) && x == 1".to_owned(), "it uses the unknown variable x; there are statuses and resource")]
fn refused(#[case] source: String, #[case] expected: &str) {
    let excerpt = excerpt(&source);
    assert_eq!(refusal_of(&source), format!("conditions[0].output.status.expression: '{excerpt}': {expected}"));
}

fn nested(open: &str, core: &str, close: &str, times: usize) -> String {
    format!("{}{core}{}", open.repeat(times), close.repeat(times))
}

/// The CEL parser's own error follows.
#[rstest]
#[case("")]
#[case("1 +")]
#[case("a b")]
#[case("@pay_loop([1])")]
#[case("has(1)")]
#[case("[1].map(1, 2)")]
#[case("\u{0}#$é")]
#[case("a.`b`")]
fn not_cel(#[case] source: &str) {
    let refusal = refusal_of(source);
    assert!(refusal.starts_with("conditions[0].output.status.expression: "), "{refusal}");
}

/// Everything that the bounds allow can be evaluated, although a test's thread has a small stack.
#[rstest]
#[case(nested("(", "true", ")", 20))]
#[case(format!("{}true", "!".repeat(510)))]
#[case(nested("true?(", "true", "):true", 20))]
#[case(format!("{}true", "false?false:".repeat(60)))]
#[case(format!("1{} == 61", "+1".repeat(60)))]
#[case(format!("true{}", " && true".repeat(150)))]
#[case(format!("{} == {}", nested("[", "1", "]", 20), nested("[", "1", "]", 20)))]
#[case(r#"'\x41\u0041\101\n' == "A" + 'A' + '''A''' + "\n" // it's ("#.to_owned())]
#[case(r#"r'\' == "\\" && b'x' == br"x" && """a"b""" == 'a"b'"#.to_owned())]
#[case("optional.of(1).hasValue()".to_owned())]
#[case("statuses.map(s, s.adapter).exists(a, a == 'dns') && [1].all(x, [2].all(y, x < y))".to_owned())]
fn accepted_and_true(#[case] source: String) {
    assert_eq!(refusal_of(&source), "");
    assert_eq!(map(mapping(&source, None, None)).map(|conditions| conditions[0].status), Ok(Status::True));
}

#[rstest]
#[case::steps("resource.spec.long.all(x, resource.spec.long.all(y, x == y || true))")]
#[case::errors_are_not_swallowed("resource.spec.long.exists(x, resource.spec.long.all(y, false)) || true")]
#[case::growth(
    "[resource.spec.text].map(a, a+a+a+a+a+a+a+a).map(b, b+b+b+b+b+b+b+b).map(c, c+c+c+c+c+c+c+c).map(d, d) == []"
)]
#[case::json("resource.spec.long.all(x, toJson(resource.spec.text) != '')")]
fn too_costly(#[case] source: &str) {
    let mut resource = resource();
    resource.spec.insert("long".to_owned(), json!(vec![1; 5000]));
    resource.spec.insert("text".to_owned(), json!("x".repeat(100_000)));
    let error = map_after(&Mapper::compile(&[mapping(source, None, None)]).unwrap(), &resource, &[]).unwrap_err();
    assert_eq!(cause(error), "it takes too many steps or handles too much text");
}

/// One costly expression does not make the next one fail.
#[test]
fn each_expression_has_its_own_budget() {
    let mut resource = resource();
    resource.spec.insert("long".to_owned(), json!(vec![1; 6000]));
    let loops = "resource.spec.long.all(x, x == 1)";
    let mapper = Mapper::compile(&[mapping(loops, Some(&format!("{loops} ? 'Yes' : 'No'")), None)]).unwrap();
    assert_eq!(map_after(&mapper, &resource, &[]).unwrap()[0].reason.as_deref(), Some("Yes"));
}

#[test]
fn the_refused_part_is_named() {
    assert!(refusal(mapping("true", Some("1 +"), None)).starts_with("conditions[0].output.reason.expression: '1 +'"));
    assert!(refusal(mapping("true", None, Some("1 +"))).starts_with("conditions[0].output.message.expression: '1 +'"));
}

/// A panic of the library is an error.
#[test]
fn a_panic_is_caught() {
    let result: Result<(), String> = stack::run(|_| panic!("on purpose"));
    assert_eq!(result, Err("the CEL library panicked".to_owned()));
}

/// The API shares mappers between its requests.
#[test]
fn a_mapper_is_shared() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Mapper>();
}

proptest::proptest! {
    /// Every source is either refused or can be evaluated.
    #[test]
    fn any_source_is_refused_or_evaluated(source in r#"[()\[\]{}!?:.+\-*'"\\r0x1a, =&|]{0,80}"#) {
        if let Ok(mapper) = Mapper::compile(&[mapping(&source, None, None)]) {
            let _evaluated = map_after(&mapper, &resource(), &[]);
        }
    }
}
