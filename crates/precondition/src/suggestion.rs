//! Finds the name that a misspelt one was probably meant to be.

use strsim::osa_distance;

/// Maximum characters of a compared name: the work is quadratic.
const MAX_NAME: usize = 64;
/// Maximum number of compared candidates.
const MAX_CANDIDATES: usize = 256;

/// Returns the closest candidate within one or two edits, regardless of case. Of equally close ones the first.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().take(MAX_NAME + 1).count();
    if length == 0 || length > MAX_NAME {
        return None;
    }
    let allowed = (length / 3).clamp(1, 2);
    let name = name.to_ascii_lowercase();
    let near = candidates.take(MAX_CANDIDATES).filter_map(|candidate| {
        if candidate.chars().take(MAX_NAME + 1).count() > MAX_NAME {
            return None;
        }
        let distance = osa_distance(&name, &candidate.to_ascii_lowercase());
        (distance <= allowed && distance < length).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let names = || ["dns", "placement", "validation"].into_iter();
        assert_eq!(nearest("validaton", names()), Some("validation"));
        assert_eq!(nearest("vlaidation", names()), Some("validation"));
        assert_eq!(nearest("Placement", names()), Some("placement"));
        assert_eq!(nearest("dn", names()), Some("dns"));
        assert_eq!(nearest("hypershift", names()), None);
        assert_eq!(nearest("x", ["y"].into_iter()), None);
        assert_eq!(nearest("", names()), None);
        assert_eq!(nearest(&"x".repeat(100_000), names()), None);
    }
}
