//! Searches by plain words, for people who do not know the search language.

/// Words of the search language: a text with one of them was meant as a search.
const KEYWORDS: [&str; 9] = ["and", "between", "ilike", "in", "is", "like", "not", "null", "or"];

/// The search for resources whose names contain every word, or whose id is a word; `None` if the text is no plain words.
pub(super) fn search(text: &str) -> Option<String> {
    let is_plain = |word: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        word.bytes().all(is_part) && !KEYWORDS.contains(&word.to_ascii_lowercase().as_str())
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let conditions = words.iter().map(|word| format!("(name ilike '%{word}%' or id = '{word}')"));
    (!words.is_empty() && words.iter().all(|word| is_plain(word))).then(|| conditions.collect::<Vec<_>>().join(" and "))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::search::Search;

    #[rstest]
    #[case("payments", Some("(name ilike '%payments%' or id = 'payments')"))]
    #[case(" eu  pay-1 ", Some("(name ilike '%eu%' or id = 'eu') and (name ilike '%pay-1%' or id = 'pay-1')"))]
    #[case("", None)]
    #[case("name = 'a'", None)]
    #[case("name LIKE a", None)]
    #[case("a_b", None)]
    #[case("100%", None)]
    fn words_that_are_no_search_are_names(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(search(text).as_deref(), expected);
        assert!(expected.is_none_or(|expected| Search::parse(expected).is_ok() && Search::parse(text).is_err()));
    }
}
