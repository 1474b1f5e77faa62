//! Laws of parsing, digests and secrecy, over made-up documents.

use damage::Random;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::documents::{Model, model};
use super::{digest, read};
use crate::{Entry, Limits, Problem, parse};

/// All that can be got out of a reading, as text.
pub(super) fn everything_shown(bytes: &[u8]) -> String {
    match parse(bytes, &Limits::default()) {
        Ok(config) => {
            format!("{config:?} {config:#?}\n{}", accepted(config.entries(), config.warnings()))
        }
        Err(problems) => {
            let hints: Vec<_> = problems.iter().map(|p| format!("{:?} {}", p.hint(), p.kind())).collect();
            let accepted = accepted(problems.entries(), problems.warnings());
            format!("{problems} {} {problems:?} {problems:#?} {hints:?}\n{accepted}", problems.summary(3))
        }
    }
}

fn accepted(entries: &[Entry], warnings: &[Problem]) -> String {
    let entries =
        entries.iter().map(|entry| format!("{} {:?} {}", entry.key(), entry.masked_user(), entry.credential().label()));
    let warnings = warnings.iter().map(|w| format!("{w} {:?}", w.hint()));
    entries.chain(warnings).collect::<Vec<String>>().join("\n")
}

fn written(model: &Model, seed: u64) -> String {
    model.write(&mut Random::new(seed))
}

fn changed(model: &Model, change: impl Fn(&mut Model)) -> Model {
    let mut model = model.clone();
    change(&mut model);
    model
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        everything_shown(&bytes);
    }

    #[test]
    fn bytes_that_look_like_json_never_panic(text in r#"[\[\]{}:,"\\ua0-9 .eE+-]{0,200}"#) {
        everything_shown(text.as_bytes());
    }

    #[test]
    fn every_spelling_is_accepted_and_means_the_same(model in model(), seeds in any::<[u64; 2]>()) {
        let [one, other] = seeds.map(|seed| written(&model, seed));
        prop_assert_eq!(digest(&one), digest(&other), "{}\n{}", one, other);
        let config = read(&one).unwrap();
        prop_assert_eq!(config.entries().len(), model.entries.len());
        for entry in config.entries() {
            prop_assert_eq!(entry.masked_user().unwrap(), "U***");
        }
    }

    #[test]
    fn every_change_of_meaning_changes_the_digest(model in model(), seed in any::<u64>(), at in any::<prop::sample::Index>()) {
        let original = digest(&written(&model, seed));
        let at = at.index(model.entries.len());
        let differs = |change: fn(&mut Model, usize)| -> Result<(), TestCaseError> {
            let document = written(&changed(&model, |m| change(m, at)), seed);
            prop_assert_ne!(original, digest(&document), "{}", document);
            Ok(())
        };
        differs(|m, at| m.entries[at].user.push('X'))?;
        differs(|m, at| m.entries[at].password.push('X'))?;
        differs(|m, at| m.entries[at].only_kubelet ^= true)?;
        differs(|m, at| m.entries[at].host.insert(0, 'x'))?;
        differs(|m, at| m.entries[at].host.make_ascii_uppercase())?;
        differs(|m, at| m.entries[at].email.get_or_insert_default().push('X'))?;
        differs(|m, at| m.entries[at].token.get_or_insert_default().push('X'))?;
        differs(|m, _| m.extra.get_or_insert_default().push('X'))?;
        differs(|m, at| {
            let mut more = m.entries[at].clone();
            more.host.insert(0, 'x');
            m.entries.push(more);
        })?;
    }

    #[test]
    fn nothing_secret_is_printed(model in model(), seed in any::<u64>()) {
        let shown = everything_shown(written(&model, seed).as_bytes());
        for secret in model.secrets() {
            prop_assert!(!shown.contains(&secret), "{} in {}", secret, shown);
        }
    }

    #[test]
    fn nothing_secret_is_printed_of_a_misplaced_value(
        secret in "SECRET[ -!#-Z^-~]{4,40}",
        place in 0..DAMAGED.len(),
    ) {
        let document = DAMAGED[place].replace("SECRET", &secret);
        let shown = everything_shown(document.as_bytes());
        prop_assert!(!shown.contains(&secret), "{}", shown);
    }
}

/// Every place that takes a text, and every fault that comes with one.
const DAMAGED: &[&str] = &[
    r#""SECRET""#,
    r#"["SECRET"]"#,
    "SECRET",
    r#"{"auths": "SECRET"}"#,
    r#"{"auths": ["SECRET"]}"#,
    r#"{"auths": {"a.io": "SECRET"}}"#,
    r#"{"auths": {"a.io": ["SECRET"]}}"#,
    r#"{"auths": {"a.io": {"auth": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"auth": {"x": "SECRET"}}}}"#,
    r#"{"auths": {"a.io": {"auth": SECRET}}}"#,
    r#"{"auths": {"a.io": {"auth": "SECRET}}}"#,
    r#"{"auths": {"a.io": {"username": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"password": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"username": "", "password": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"username": "SECRET", "password": "\u0000SECRET"}}}"#,
    r#"{"auths": {"a.io": {"username": "SECRET", "password": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"auth": "dXNlcjpw", "username": "SECRET", "password": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"identitytoken": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"registrytoken": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"passwd": "SECRET", "Auth": "SECRET", "token": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"auth": "dXNlcjpw", "Auth": "SECRET"}}}"#,
    r#"{"auths": {"a.io": {"auth": "dXNlcjpw", "email": ["SECRET"]}}}"#,
    r#"{"auths": {"a.io": {"auth": "dXNlcjpw", "auth": "SECRET"}}}"#,
    r#"{"auths": {"user:SECRET@a.io": {}}}"#,
    r#"{"auths": {"https://SECRET@a.io/v1/": {}}}"#,
    r#"{"auths": {"a.io?token=SECRET": {}}}"#,
    r#"{"auths": {"user:SECRET://a.io": {}}}"#,
    r#"{"auths": {}, "credHelpers": {"a.io": ["SECRET"]}}"#,
    r#"{"auths": {"a.io": {"auth": "dXNlcjpw"}}, "credsStore": "SECRET", "HttpHeaders": {"A": "SECRET"}}"#,
    r#"{"a.io": {"auth": "SECRET"}}"#,
    r#"{"kind": "Secret", "data": {".dockerconfigjson": "SECRET"}}"#,
    "kind: Secret\ndata:\n  .dockerconfigjson: SECRET\n",
];
