//! Bad entries of an additional document: all refused, or left out by name.

use rstest::rstest;

use crate::Limits;
use crate::merge::{InvalidEntries, admit};

const GOOD: &str = r#""good.io": {"auth": "YTpi"}"#;

#[rstest]
#[case::bad_base64(r#""bad.io": {"auth": "SECRET!"}"#, r#"auths["bad.io"].auth: not base64"#)]
#[case::no_colon(r#""bad.io": {"auth": "YWFh"}"#, r#"auths["bad.io"].auth: no colon in the decoded credential"#)]
#[case::no_credential(r#""bad.io": {}"#, r#"auths["bad.io"]: has no credential"#)]
#[case::bad_key(
    r#""bad io": {"auth": "YTpi"}"#,
    r#"auths["bad io"]: has white space or a control character in the registry key"#
)]
#[case::twice(r#""bad.io": {"auth": "YTpi"}, "bad.io": {"auth": "Yzpk"}"#, "stands there twice")]
#[case::twice_within(r#""bad.io": {"auth": "YTpi", "auth": "Yzpk"}"#, "stands there twice")]
#[case::two_cases(r#""bad.io": {"auth": "YTpi", "Auth": "Yzpk"}"#, "differs only in case")]
fn a_bad_entry_is_named(#[case] bad: &str, #[case] expected: &str) {
    let text = format!(r#"{{"auths": {{{GOOD}, {bad}}}}}"#);
    let problems = admit(text.as_bytes(), &Limits::default(), InvalidEntries::RejectAll).unwrap_err();
    assert!(problems.to_string().contains(expected), "{problems}");
    let admitted = admit(text.as_bytes(), &Limits::default(), InvalidEntries::Skip).unwrap();
    assert_eq!(admitted.document.keys().collect::<Vec<_>>(), ["good.io"]);
    let left_out: Vec<String> = admitted.left_out.iter().map(ToString::to_string).collect();
    assert!(left_out.join("; ").contains(expected) && !left_out.is_empty(), "{left_out:?}");
}

#[rstest]
#[case("{")]
#[case(r#"{"auths": {}}"#)]
#[case(r#"{"AUTHS": {"good.io": {"auth": "YTpi"}}}"#)]
#[case(r#"{"auths": {"bad.io": {}}}"#)]
#[case(r#"{"auths": null}"#)]
#[case("")]
fn what_has_nothing_good_is_refused_either_way(#[case] text: &str) {
    for invalid in [InvalidEntries::RejectAll, InvalidEntries::Skip] {
        admit(text.as_bytes(), &Limits::default(), invalid).unwrap_err();
    }
}

#[test]
fn warnings_stay() {
    let text = r#"{"auths": {"a.io": {"auth": "YTpiYg"}}}"#;
    let admitted = admit(text.as_bytes(), &Limits::default(), InvalidEntries::RejectAll).unwrap();
    assert_eq!((admitted.warnings.len(), admitted.left_out.len()), (1, 0));
}
