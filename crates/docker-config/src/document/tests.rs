//! Accepted and refused documents, their messages, and the equality of documents.

mod bad;
mod corpus;
pub(crate) mod documents;
mod fuzz;
mod good;
mod laws;

use std::collections::BTreeSet;

use rstest::rstest;

use super::{Limits, parse};
use crate::problem::{IDS, Position, ProblemKind};
use crate::{CredentialKind, Digest, DockerConfig, Problems};

fn read(document: &str) -> Result<DockerConfig, Problems> {
    parse(document.as_bytes(), &Limits::default())
}

fn digest(document: &str) -> Digest {
    read(document).unwrap_or_else(|problems| panic!("{problems}\n{document}")).digest()
}

/// The only problem, where just one is expected.
fn only_problem(document: &[u8], limits: &Limits) -> crate::Problem {
    let mut problems = parse(document, limits).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems}");
    problems.found.remove(0)
}

#[test]
fn bad_documents_are_refused_in_these_words() {
    for (name, document, expected) in bad::bad() {
        let problems = read(document).expect_err(name);
        assert_eq!(problems.to_string(), expected.join("\n"), "{name}");
        assert_eq!(problems.len(), expected.len(), "{name}");
        assert_eq!((&problems).into_iter().count(), expected.len(), "{name}");
    }
}

#[test]
fn good_documents_are_accepted_with_these_warnings() {
    for (name, document, entries, warnings) in good::GOOD {
        let config = read(document).unwrap_or_else(|problems| panic!("{name}: {problems}"));
        let found: Vec<String> = config
            .entries()
            .iter()
            .map(|entry| {
                let user = entry.masked_user().unwrap_or_else(|| "-".to_owned());
                let key = entry.key();
                format!("{key} | {} | {user} | {}", key.normalized(), entry.credential().label())
            })
            .collect();
        assert_eq!(found, *entries, "{name}");
        let found: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(found, *warnings, "{name}");
    }
}

#[test]
fn kinds_have_distinct_ids_in_kebab_case() {
    assert_eq!(IDS.iter().collect::<BTreeSet<_>>().len(), IDS.len());
    for id in IDS {
        assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
    }
}

#[rstest]
#[case::placeholder(r#"{"auths": {"a.io": {"auth": "..."}}}"#, "placeholder", "put base64 of user:password")]
#[case::url_safe(r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNz_-8="}}}"#, "url-safe-base64", "+ and /")]
#[case::wrapped(r#"{"auths": {"a.io": {"auth": "dXNl\ncjpw"}}}"#, "whitespace-in-base64", "one line")]
#[case::old_format(r#"{"a.io": {"auth": "dXNlcjpw"}}"#, "bare-entries", "wrap it in {\"auths\": …}")]
#[case::encoded("eyJhdXRocyI6IHt9fQ==", "encoded-document", "decode")]
#[case::secret(r#"{"kind": "Secret"}"#, "kubernetes-secret", ".dockerconfigjson")]
fn problems_carry_an_id_and_a_hint(#[case] document: &str, #[case] id: &str, #[case] hint: &str) {
    let problem = only_problem(document.as_bytes(), &Limits::default());
    assert_eq!(problem.kind().id(), id);
    assert!(problem.hint().unwrap().contains(hint), "{:?}", problem.hint());
}

#[test]
fn size_is_limited_to_the_byte() {
    let document = br#"{"auths": {"a.io": {"auth": "dXNlcjpw"}}}"#;
    let limits = |max_bytes| Limits { max_bytes, ..Limits::default() };
    assert!(parse(document, &limits(document.len())).is_ok());

    let problem = only_problem(document, &limits(document.len() - 1));
    assert_eq!(problem.kind(), ProblemKind::TooLarge { bytes: 41, allowed: 40 });
    assert_eq!(problem.to_string(), "document: is 41 bytes long, 40 are allowed (line 1, column 1)");
}

#[test]
fn depth_is_limited_whatever_the_caller_allows() {
    let deep = format!("{}{}", "[".repeat(30_000), "{\"a\":".repeat(5_000));
    let limits = Limits { max_depth: usize::MAX, ..Limits::default() };
    let problem = only_problem(deep.as_bytes(), &limits);
    assert_eq!(problem.kind(), ProblemKind::TooDeep { allowed: 128 });
    assert_eq!(problem.position(), Position { line: 1, column: 129 });

    let limits = Limits { max_depth: 0, ..Limits::default() };
    assert_eq!(only_problem(b"{}", &limits).kind(), ProblemKind::TooDeep { allowed: 0 });
}

#[rstest]
#[case::latin_1(b"{\"auths\":\n \"\xFC\"}", 2, 3)]
#[case::behind_wide_characters(b"{\"\xC3\xA9\xF0\x9F\x98\x80\": \xFF}", 1, 8)]
#[case::utf_16(b"\xFF\xFE{\0}\0", 1, 1)]
#[case::cut_character(b"{\"\xF0\x9F", 1, 3)]
#[case::surrogate(b"\"\xED\xA0\x80\"", 1, 2)]
fn bytes_that_are_no_text_are_refused(#[case] document: &[u8], #[case] line: u32, #[case] column: u32) {
    let problem = only_problem(document, &Limits::default());
    assert_eq!(problem.kind(), ProblemKind::NotUtf8);
    assert_eq!(problem.position(), Position { line, column });
}

const PADDED: &str = r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA=="}}}"#;
const UNPADDED: &str = r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA"}}}"#;

#[rstest]
#[case::both(
    PADDED,
    r#"{"auths": {"a.io": {"password": "password", "auth": "dXNlcjpwYXNzd29yZA==", "username": "user"}}}"#
)]
#[case::half(PADDED, r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA==", "username": "user", "password": ""}}}"#)]
#[case::last_bits(PADDED, r#"{"auths":{"a.io":{"auth":"dXNlcjpwYXNzd29yZB=="}}}"#)]
#[case::escapes(PADDED, r#"{"\u0061uths": {"a\u002eio": {"auth": "\u0064XNlcjpwYXNzd29yZA=="}}}"#)]
#[case::url(PADDED, r#"{"auths": {"https://a.io/v2/": {"auth": "dXNlcjpwYXNzd29yZA=="}}}"#)]
#[case::members(UNPADDED, r#"{"auths": {"a.io": {"username": "user", "password": "password"}}}"#)]
#[case::empty_auth(UNPADDED, r#"{"auths": {"a.io": {"auth": "", "username": "user", "password": "password"}}}"#)]
#[case::unpadded_and_members(
    UNPADDED,
    r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA", "username": "user", "password": "password"}}}"#
)]
fn same_meaning_has_the_same_digest(#[case] one: &str, #[case] other: &str) {
    assert_eq!(digest(one), digest(other));
}

#[rstest]
#[case::unpadded(UNPADDED)]
#[case::members(r#"{"auths": {"a.io": {"username": "user", "password": "password"}}}"#)]
#[case::password(r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZB1="}}}"#)]
#[case::colon_moved(r#"{"auths": {"a.io": {"auth": "dXNlOnI6cGFzc3dvcmQ="}}}"#)]
#[case::registry(r#"{"auths": {"b.io": {"auth": "dXNlcjpwYXNzd29yZA=="}}}"#)]
#[case::port(r#"{"auths": {"a.io:443": {"auth": "dXNlcjpwYXNzd29yZA=="}}}"#)]
#[case::slash(r#"{"auths": {"a.io/": {"auth": "dXNlcjpwYXNzd29yZA=="}}}"#)]
#[case::upper_case(r#"{"auths": {"A.io": {"auth": "dXNlcjpwYXNzd29yZA=="}}}"#)]
#[case::email(r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA==", "email": ""}}}"#)]
#[case::disagreeing(r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA==", "username": "x"}}}"#)]
#[case::token(r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA==", "identitytoken": "x"}}}"#)]
#[case::twice(r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA=="}, "a.io/": {"auth": "dXNlcjpwYXNzd29yZA=="}}}"#)]
#[case::other_member(r#"{"auths": {"a.io": {"auth": "dXNlcjpwYXNzd29yZA=="}}, "x": null}"#)]
fn other_meaning_has_another_digest(#[case] document: &str) {
    assert_ne!(digest(document), digest(PADDED));
}

#[test]
fn padding_counts_for_an_identity_token_too() {
    let document = |auth| format!(r#"{{"auths": {{"a.io": {{"auth": "{auth}", "identitytoken": "x"}}}}}}"#);
    assert_ne!(digest(&document("dXNlcjo=")), digest(&document("dXNlcjo")));
}

/// Computed by an independent program; a change means that every stored digest changes.
#[test]
fn keyed_digests_are_these() {
    let of_bytes = |key: &[u8]| Digest::of_bytes(b"abc").keyed(key).to_string();
    assert_eq!(of_bytes(b"key"), "hmac-sha256:7e72bda5ad7875f57eb084414b990405260f909ddd0e050fd9fa082e829ac290");
    assert_eq!(of_bytes(&[b'k'; 100]), "hmac-sha256:30864bf2a32e11484863de03e46e18c6a0eafdc11ec7570fb8025af0d0e7f941");
    let document = r#"{"x": [null, true, false, 1.0], "auths": {
        "quay.io": {"email": "me@example.com", "auth": "dXNlcjpwYXNzd29yZA"},
        "https://A.io/team/": {"auth": "dXNlcjpwYXNzd29yZA==", "username": "user", "password": "other"},
        "https://index.docker.io/v1/": {"username": "bob", "password": "hunter2!"}}}"#;
    assert_eq!(
        digest(document).keyed(b"key").to_string(),
        "hmac-sha256:a912e6f8f342404e166c8142a92dc263bf7c053e15bc02c26899f057a9dacbf5"
    );
}

#[test]
fn digests_of_bytes_and_of_documents_never_meet() {
    let document = r#"{"auths": {"a.io": {"auth": "dXNlcjpw"}}}"#;
    assert_ne!(digest(document), Digest::of_bytes(document.as_bytes()));
    assert_eq!(format!("{:?}", digest(document)), "Digest(redacted)");
}

#[test]
fn entries_are_sorted_and_know_their_place() {
    let config = read(concat!(
        "{\"auths\": {\n",
        "\"z.io\": {\"auth\": \"dXNlcjpw\"},\n",
        "  \"http://a.io\": {\"auth\": \"dXNlcjpw\"}, \"a.io\": {\"auth\": \"dXNlcjpw\"}}}"
    ))
    .unwrap();
    let found: Vec<_> = config.entries().iter().map(|e| (e.key().as_written(), e.position())).collect();
    let at = |line, column| Position { line, column };
    assert_eq!(found, [("a.io", at(3, 40)), ("http://a.io", at(3, 3)), ("z.io", at(2, 1))]);
    assert!(config.entries().iter().all(|e| e.credential() == CredentialKind::Auth));
}

#[test]
fn entries_without_a_problem_are_there_beside_the_problems() {
    let problems = read(concat!(
        "{\"auths\": {\n",
        "\"z.io\": {\"auth\": \"dXNlcjpw\", \"email\": \"e\"},\n",
        "\"y.io\": {\"auth\": \"dXNlcjpw\", \"auth\": \"dXNlcjpw\"},\n",
        "\"x.io\": {\"auth\": \"dXNlcjpw\", \"x\": [{\"y\": 1, \"y\": 2}]},\n",
        "\"w.io\": {\"auth\": 1},\n",
        "\"v w\": {\"auth\": \"dXNlcjpw\"},\n",
        "\"b.io\": {\"auth\": \"dXNlcjpwdw\"},\n",
        "\"b.io\": {\"auth\": \"dXNlcjpw\"}}}"
    ))
    .unwrap_err();
    assert_eq!(problems.len(), 5, "{problems}");
    let found: Vec<_> = problems.entries().iter().map(|e| (e.key().as_written(), e.position().line)).collect();
    assert_eq!(found, [("b.io", 7), ("z.io", 2)]);
    let warnings: Vec<String> = problems.warnings().iter().map(ToString::to_string).collect();
    let unpadded = "unpadded base64: kubelet reads it, containers/image does not";
    assert_eq!(warnings, [format!("auths[\"b.io\"].auth: {unpadded} (line 7, column 18)")]);
}

#[rstest]
#[case::no_json(r#"{"auths": {"a.io": {"auth": "dXNlcjpw"}}"#)]
#[case::no_auths(r#"{"a.io": {"auth": "dXNlcjpw"}}"#)]
fn there_are_no_entries_where_reading_ended_early(#[case] document: &str) {
    let problems = read(document).unwrap_err();
    assert!(problems.entries().is_empty());
    assert!(problems.warnings().is_empty());
}

#[test]
fn problems_are_summed_up_in_one_line() {
    let problems = read(r#"{"auths": {"a.io": 1, "b\n.io": {"auth": ""}}}"#).unwrap_err();
    let lines = [
        r#"auths["a.io"]: must be an object, not a number (line 1, column 20)"#,
        r#"auths["b\u000a.io"]: has white space or a control character in the registry key (line 1, column 23)"#,
        r#"auths["b\u000a.io"].auth: is empty (line 1, column 42)"#,
    ];
    assert_eq!(problems.summary(usize::MAX), lines.join("; "));
    assert_eq!(problems.summary(3), lines.join("; "));
    assert_eq!(problems.summary(2), format!("{}; {}; and 1 more", lines[0], lines[1]));
    assert_eq!(problems.summary(1), format!("{}; and 2 more", lines[0]));
    assert_eq!(problems.summary(0), problems.summary(1));

    let hostile = format!(r#"{{"auths": {{{}"x": 1}}}}"#, r#""": 0,"#.repeat(9_000));
    let problems = read(&hostile).unwrap_err();
    assert!(problems.summary(5).ends_with(&format!("; and {} more", problems.len() - 5)));
    assert_eq!(problems.iter().count(), problems.len());
    assert!(problems.summary(5).len() < 1_000, "{}", problems.summary(5));
}
