//! Bounds: no input exhausts the stack, the memory or the time.

use precondition::{Context, Outcome, Precondition};
use serde_json::{Value, json};

const MAX_LENGTH: usize = 4096;

/// Deep in every way that the grammar knows; the second is what closes the first.
const WAYS: &[(&str, &str, &str)] = &[
    ("(", "true", ")"),
    ("[", "1", "]"),
    ("not ", "true", ""),
    ("!", "true", ""),
    ("true ? true : ", "true", ""),
    ("true ? ", "true", " : true"),
    ("len(", "spec", ")"),
    ("any(", "spec.list", ", {true})"),
    ("any(spec.list, {", "true", "})"),
    ("any([[1]], any(#, ", "true", "))"),
    ("spec[", "spec", "]"),
    ("nil ?? not ", "true", ""),
    ("(false or false and 1 == nil ?? spec[", "'a'", "].b)"),
    ("spec.list == [", "1", "]"),
    ("any(spec.list, {false or true and nil == nil ?? spec[", "'a'", "]})"),
];

#[test]
fn depth_is_bounded_and_what_is_allowed_runs_on_a_small_stack() {
    let deepest = || {
        let document = json!({ "spec": { "list": [1, 2] } });
        for (open, inner, close) in WAYS {
            let nested = |depth: usize| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            let mut read = 0;
            for depth in 1..=80 {
                let source = nested(depth);
                match Precondition::parse(&source) {
                    Ok(precondition) => {
                        read = depth;
                        let evaluation = precondition.evaluate(&Context::of(&document));
                        drop((evaluation.explanation.to_string(), evaluation.explanation.tree().to_string()));
                    }
                    Err(error) => {
                        let bounded = error.message().contains("deeper than 64") || error.message().contains("4096");
                        assert!(bounded, "{source}\n{error}");
                    }
                }
            }
            assert!((20..=64).contains(&read), "{open}: {read}");
            let hopeless = open.repeat(MAX_LENGTH / open.len());
            assert!(Precondition::parse(&hopeless).is_err());
        }
    };
    // Less than what a thread has by default, and without the compiler's optimisations.
    std::thread::Builder::new().stack_size(1280 << 10).spawn(deepest).unwrap().join().unwrap();
}

#[test]
fn length_is_no_depth() {
    let document = json!({ "spec": { "a": true } });
    for (first, next) in [("true", " and true"), ("false", "||true"), ("nil", "??nil"), ("spec", ".a"), ("spec", "[a]")]
    {
        let source = format!("{first}{}", next.repeat((MAX_LENGTH - first.len()) / next.len()));
        Precondition::parse(&source).unwrap().evaluate(&Context::of(&document));
    }
}

#[test]
fn size_is_bounded() {
    let source = format!("true{}", " ".repeat(MAX_LENGTH));
    let error = Precondition::parse(&source).unwrap_err();
    assert_eq!(error.message(), "4100 bytes are more than the 4096 of an expression");
    assert!(Precondition::parse(source.trim_end()).is_ok());
}

#[test]
fn steps_are_bounded() {
    let numbers = (0..1000).collect::<Vec<_>>();
    let long = "x".repeat(10_000_000);
    let objects = vec![json!({}); 20];
    // Small once compiled, and a long way to that.
    let patterns = vec![format!("(?i)(?:{}){{0}}", r"\pL".repeat(330)); 20];
    let spec = json!({ "list": numbers, "long": long, "same": long, "objects": objects, "patterns": patterns });
    let document = json!({ "spec": spec });
    let path = format!("any(spec.objects, {{{} == 1}})", ".a".repeat(1_000));
    for source in [
        path.as_str(),
        "any(spec.patterns, {'x' matches # and false})",
        "any(spec.list, {spec.long < spec.same})",
        "any(spec.list, {any(spec.list, {# == -1})})",
        "any(spec.list, {spec.list == filter(spec.list, true) and false})",
        "any(spec.list, {spec.long contains 'y'})",
        "any(spec.list, {'x' matches spec.pattern ?? 'y'})",
        "any(spec.list, {len(spec.long) == 1})",
        "spec.long matches '[a-z]{1,500}[0-9]'",
        "any(spec.list, {# in spec.list and false})",
    ] {
        let evaluation = Precondition::parse(source).unwrap().evaluate(&Context::of(&document));
        assert_eq!(evaluation.outcome, Outcome::Unanswerable, "{source}");
        let explained = evaluation.explanation.to_string();
        assert!(explained.ends_with("takes more than 100000 steps on this document"), "{explained}");
    }
}

#[test]
fn documents_may_be_deeper_than_the_stack() {
    const DEPTH: usize = 10_000;
    const SMALL: usize = 256 << 10;
    let asked = || {
        let deep = || (0..DEPTH).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        let document = json!({});
        let (spec, status) = (deep(), deep());
        let ask = || {
            let precondition = Precondition::parse("spec == status and spec in [status]").unwrap();
            let evaluation = precondition.evaluate(&Context::of(&document).with_spec(&spec).with_status(&status));
            assert_eq!(evaluation.outcome, Outcome::Met);
        };
        std::thread::scope(|scope| {
            std::thread::Builder::new().stack_size(SMALL).spawn_scoped(scope, ask).unwrap().join().unwrap();
        });
    };
    // The documents themselves are made and dropped by serde, which needs a large stack for that.
    std::thread::Builder::new().stack_size(256 << 20).spawn(asked).unwrap().join().unwrap();
}

#[test]
fn an_explanation_is_to_be_read() {
    let terms = (0..280).map(|term| format!(".a{term} == 1")).collect::<Vec<_>>().join(" or ");
    let document = json!({ "spec": { "list": vec![json!([{}, {}, {}, {}]); 10] } });
    let source = format!("any(spec.list, {{any(#, {{{terms}}})}})");
    let evaluation = Precondition::parse(&source).unwrap().evaluate(&Context::of(&document));
    assert_eq!(evaluation.outcome, Outcome::NotMet);
    let explained = evaluation.explanation.to_string();
    assert!(explained.len() < 4_000, "{} bytes", explained.len());
}
