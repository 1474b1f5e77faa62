//! Rules for labels, and conversion of texts to them.

/// Maximum number of labels of a secret.
pub const MAX_LABELS: usize = 64;
const MAX_CHARACTERS: usize = 63;
const MAX_BYTES: usize = 128;

/// Returns true if `key` can be a label's key: a lower-case letter, then lower-case letters, digits, `_` and `-`.
pub fn is_key(key: &str) -> bool {
    key.starts_with(is_letter) && is_value(key)
}

/// Returns true if `value` can be a label's value; an empty one can.
pub fn is_value(value: &str) -> bool {
    value.len() <= MAX_BYTES && value.chars().count() <= MAX_CHARACTERS && value.chars().all(is_allowed)
}

/// Makes a label's value of a text: lower-case, each character that is not allowed replaced by `-`, truncated.
///
/// The caller should report a result that differs from the text.
pub fn sanitized(text: &str) -> String {
    let mut value = String::new();
    let lower_case = text.chars().flat_map(char::to_lowercase);
    for char in lower_case.map(|char| if is_allowed(char) { char } else { '-' }).take(MAX_CHARACTERS) {
        if value.len() + char.len_utf8() > MAX_BYTES {
            break;
        }
        value.push(char);
    }
    value
}

/// Letters without an upper-case form of their own count as lower-case, as Google Secret Manager has it.
fn is_letter(char: char) -> bool {
    char.is_alphabetic() && !char.is_uppercase()
}

fn is_allowed(char: char) -> bool {
    is_letter(char) || char.is_numeric() || char == '_' || char == '-'
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("production-cluster", "production-cluster")]
    #[case("Production Cluster", "production-cluster")]
    #[case("v1.2", "v1-2")]
    #[case("größe", "größe")]
    #[case("", "")]
    fn values_are_made_to_fit(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(sanitized(text), expected);
        assert!(is_value(expected));
    }

    #[test]
    fn long_values_are_cut_by_characters_and_by_bytes() {
        assert_eq!(sanitized(&"a".repeat(70)), "a".repeat(63));
        assert_eq!(sanitized(&"日".repeat(70)), "日".repeat(42));
    }

    #[rstest]
    #[case("team", true)]
    #[case("cost_center-1", true)]
    #[case("1team", false)]
    #[case("Team", false)]
    #[case("", false)]
    #[case("hyperfleet.io/x", false)]
    fn keys(#[case] key: &str, #[case] valid: bool) {
        assert_eq!(is_key(key), valid);
    }
}
