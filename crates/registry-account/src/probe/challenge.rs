//! `WWW-Authenticate`: what a registry asks for (RFC 9110 §11.6.1).

/// The longest header that is read.
const LONGEST: usize = 4096;

/// The authentication that a registry demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token, from there.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
    /// User and password.
    Basic,
}

/// The challenge that is answered: a token rather than the password itself.
pub(super) fn best(challenges: Vec<Challenge>) -> Option<Challenge> {
    let is_bearer = |challenge: &Challenge| matches!(challenge, Challenge::Bearer { .. });
    let place = challenges.iter().position(is_bearer).unwrap_or_default();
    challenges.into_iter().nth(place)
}

/// The challenges of one header; those of other kinds, and what cannot be read, are passed over.
pub(super) fn parse(header: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = header;
    if header.len() > LONGEST {
        return Vec::new();
    }
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            break;
        }
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        match (value, found.last_mut()) {
            (Some(text), Some((_, parameters))) => {
                let Some((value, after)) = value_of(text) else { break };
                parameters.push((word.to_ascii_lowercase(), value));
                rest = after;
            }
            (Some(_), None) => break,
            (None, _) => {
                found.push((word.to_ascii_lowercase(), Vec::new()));
                rest = after;
            }
        }
    }
    found.into_iter().filter_map(|(scheme, parameters)| challenge(&scheme, parameters)).collect()
}

fn challenge(scheme: &str, parameters: Vec<(String, String)>) -> Option<Challenge> {
    let (mut realm, mut service, mut scope) = (None, None, None);
    for (name, value) in parameters {
        match name.as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            "scope" => scope = Some(value),
            _ => {}
        }
    }
    match scheme {
        "bearer" => realm.map(|realm| Challenge::Bearer { realm, service, scope }),
        "basic" => Some(Challenge::Basic),
        _ => None,
    }
}

/// A value, quoted or not, and what follows it; `None` where its quote has no end.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return Some((value.to_owned(), after));
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return Some((value, characters.as_str())),
            '\\' => value.push(characters.next()?),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Challenge, best, parse};

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Challenge::Bearer { realm: realm.to_owned(), service: owned(service), scope: owned(scope) }
    }

    #[rstest]
    #[case::usual(r#"Bearer realm="https://a/t",service="a b,c""#, Some(bearer("https://a/t", Some("a b,c"), None)))]
    #[case::scope(r#"bearer realm="https://a", scope="x:y""#, Some(bearer("https://a", None, Some("x:y"))))]
    #[case::unquoted("Bearer realm=https://a,service=s", Some(bearer("https://a", Some("s"), None)))]
    #[case::escaped(r#"Bearer realm="a\"b""#, Some(bearer("a\"b", None, None)))]
    #[case::spaces(r#"Bearer  realm = "a" ,, service = "s""#, Some(bearer("a", Some("s"), None)))]
    #[case::both(r#"Basic realm="b", Bearer realm="a""#, Some(bearer("a", None, None)))]
    #[case::basic(r#"Basic realm="b""#, Some(Challenge::Basic))]
    #[case::no_realm(r#"Bearer service="a""#, None)]
    #[case::no_end(r#"Bearer realm="a"#, None)]
    #[case::another("Negotiate", None)]
    #[case::no_scheme("realm=a", None)]
    #[case::empty("", None)]
    fn challenges_are_read(#[case] header: &str, #[case] expected: Option<Challenge>) {
        assert_eq!(best(parse(header)), expected);
    }

    #[test]
    fn a_header_that_is_too_long_is_none() {
        assert_eq!(parse(&format!("Basic realm=\"{}\"", "a".repeat(5000))), []);
    }
}
