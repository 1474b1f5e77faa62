//! Equal meaning is equal bytes, and the normal form means what the document meant.

use damage::Random;
use proptest::prelude::*;
use rstest::rstest;
use secrecy::ExposeSecret as _;

use crate::document::tests::documents::model;
use crate::{Document, Limits};

fn read(text: &str) -> Document {
    Document::parse(text.as_bytes(), &Limits::default()).unwrap()
}

fn written(document: &Document) -> String {
    String::from_utf8(document.to_bytes().expose_secret().to_vec()).unwrap()
}

#[rstest]
#[case::members(r#"{"email":"x","auth":"YTpi"}"#, r#"{"auth":"YTpi","email":"x"}"#)]
#[case::what_repeats_auth(r#"{"username":"a","password":"b","auth":"YTpi"}"#, r#"{"auth":"YTpi"}"#)]
#[case::what_differs_from_it(r#"{"username":"c","auth":"YTpi"}"#, r#"{"auth":"YTpi","username":"c"}"#)]
#[case::ignored_bits(r#"{"auth":"YTpiYh=="}"#, r#"{"auth":"YTpiYg=="}"#)]
#[case::only_for_kubelet(r#"{"auth":"YTpiYg"}"#, r#"{"password":"bb","username":"a"}"#)]
#[case::only_for_kubelet_in_halves(
    r#"{"username":"a","auth":"","password":"bb"}"#,
    r#"{"password":"bb","username":"a"}"#
)]
#[case::no_text(r#"{"auth":"YTr/"}"#, r#"{"auth":"YTr/"}"#)]
#[case::a_token(r#"{"identitytoken":"t","auth":"YTo="}"#, r#"{"auth":"YTo=","identitytoken":"t"}"#)]
#[case::an_unpadded_token(r#"{"identitytoken":"t","auth":"YTo"}"#, r#"{"auth":"YTo","identitytoken":"t"}"#)]
#[case::nested(
    r#"{"auth":"YTpi","x":{"b":[{"d":1,"c":2}],"a":null}}"#,
    r#"{"auth":"YTpi","x":{"a":null,"b":[{"c":2,"d":1}]}}"#
)]
#[case::two_cases_keep_their_order(r#"{"auth":"YTpi","Auth":"Yzpk"}"#, r#"{"auth":"YTpi","Auth":"Yzpk"}"#)]
#[case::twice_keeps_its_order(r#"{"x":2,"auth":"YTpi","auth":"Yzpk"}"#, r#"{"x":2,"auth":"YTpi","auth":"Yzpk"}"#)]
#[case::nothing("{}", "{}")]
fn an_entry_has_one_spelling(#[case] entry: &str, #[case] expected: &str) {
    let document = read(&format!(r#"{{"auths":{{"a.io":{entry}}}}}"#));
    assert_eq!(written(&document.normalized()), format!(r#"{{"auths":{{"a.io":{expected}}}}}"#));
    assert_eq!(document.normalized().digest(), document.digest());
}

#[rstest]
#[case(&["QUAY.io"], "quay.io=0")]
#[case(&["https://quay.io/v2/"], "quay.io=0")]
#[case(&["https://quay.io", "quay.io"], "quay.io=1")]
#[case(&["quay.io/", "https://quay.io"], "quay.io=1")]
#[case(&["https://index.docker.io/v1/"], "docker.io=0")]
#[case(&["quay.io:443", "quay.io"], "quay.io=1 quay.io:443=0")]
#[case(&["https://quay.io/team"], "quay.io/team=0")]
#[case::read_as_another_key(&["https://quay.io/v2/v2/x"], "https://quay.io/v2/v2/x=0")]
#[case::no_key(&["?", ""], "=1 ?=0")]
fn a_registry_occurs_once(#[case] keys: &[&str], #[case] expected: &str) {
    let entries: Vec<String> = keys.iter().enumerate().map(|(at, key)| format!(r#""{key}":{{"x":"{at}"}}"#)).collect();
    let document = read(&format!(r#"{{"auths":{{{}}}}}"#, entries.join(","))).normalized();
    let entry = |key: &str| written_entry(&document, key);
    let shown: Vec<String> = document.keys().map(|key| format!("{key}={}", entry(key))).collect();
    assert_eq!(shown.join(" "), expected);
}

fn written_entry(document: &Document, key: &str) -> String {
    let bytes = document.entry(key).unwrap().to_bytes();
    String::from_utf8(bytes.expose_secret().to_vec()).unwrap().replace(r#"{"x":""#, "").replace(r#""}"#, "")
}

proptest! {
    #[test]
    fn equal_meaning_is_equal_bytes(model in model(), seeds in any::<[u64; 2]>()) {
        let [one, other] = seeds.map(|seed| read(&model.write(&mut Random::new(seed))));
        prop_assert_eq!(one.digest(), other.digest());
        prop_assert_eq!(written(&one.normalized()), written(&other.normalized()));
        prop_assert_eq!(one.normalized().digest(), one.digest());
        prop_assert_eq!(written(&one.normalized().normalized()), written(&one.normalized()));
    }
}
