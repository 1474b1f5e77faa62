//! The metrics and labels that a `PromQL` expression names.

/// The names in an expression.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expression {
    /// The metrics, each with the labels that its selector names.
    pub(super) metrics: Vec<(String, Vec<String>)>,
    /// The labels of `by`, `on` and the like.
    pub(super) grouped: Vec<String>,
}

/// Operators that are words, and what follows them.
const OPERATORS: [&str; 6] = ["and", "or", "unless", "bool", "offset", "inf"];
/// Between an aggregation and its argument.
const AGGREGATED: [&str; 2] = ["by", "without"];
const GROUPINGS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

impl Expression {
    pub(super) fn of(text: &str) -> Self {
        let tokens = tokens(text);
        let mut found = Self::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            let next = tokens.get(at).map_or("", String::as_str);
            if !is_name(token) || OPERATORS.contains(&token.as_str()) {
                continue;
            }
            if GROUPINGS.contains(&token.as_str()) {
                let labels = tokens.iter().skip(at).take_while(|token| *token != ")");
                found.grouped.extend(labels.filter(|token| is_name(token)).cloned());
                at += tokens.iter().skip(at).take_while(|token| *token != ")").count();
            } else if next == "{" {
                let matchers = tokens.iter().skip(at).take_while(|token| *token != "}");
                let labels = matchers.filter(|token| is_name(token)).cloned().collect();
                found.metrics.push((token.clone(), labels));
                at += tokens.iter().skip(at).take_while(|token| *token != "}").count();
            } else if next != "(" && !AGGREGATED.contains(&next) {
                found.metrics.push((token.clone(), Vec::new()));
            }
        }
        found
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// Words and single characters; strings, durations and numbers are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, char)| {
                    let ends = *char == first && !escaped;
                    escaped = *char == '\\' && !escaped;
                    ends
                });
                end.map_or(rest.len(), |(end, _)| end + 1)
            }
            _ if first.is_whitespace() => first.len_utf8(),
            '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
            _ if first.is_ascii_alphanumeric() || first == '_' => {
                let is_of_word = |char: char| char.is_ascii_alphanumeric() || "_:.".contains(char);
                let end = rest.find(|char| !is_of_word(char)).unwrap_or(rest.len());
                tokens.push(rest[..end].to_owned());
                end
            }
            _ => {
                tokens.push(first.to_string());
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

#[test]
fn names_are_found() {
    let text = "sum by (le, a) (rate(m_bucket{code=~\"[45]\\\"x{y}..\",le!='1'}[5m])) / on () n_total > 0.5 and changes(o[30m]) == 0";
    let metrics = [("m_bucket", &["code", "le"][..]), ("n_total", &[]), ("o", &[])];
    let metrics = metrics.map(|(metric, labels)| (metric.to_owned(), labels.iter().map(ToString::to_string).collect()));
    let grouped = vec!["le".to_owned(), "a".to_owned()];
    assert_eq!(Expression::of(text), Expression { metrics: metrics.into(), grouped });
}
