//! What a misspelt name was probably meant to be.

/// Longer names are not compared: the work is quadratic.
const LONGEST_NAME: usize = 64;
/// As many siblings are looked at.
const MOST_NAMES: usize = 256;

/// The candidate that is a slip of the finger away, if there is one.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length == 0 || length > LONGEST_NAME {
        return None;
    }
    let allowed = (length / 3).clamp(1, 2);
    let near = candidates.take(MOST_NAMES).filter_map(|candidate| {
        let distance = distance(name, candidate)?;
        (distance <= allowed && distance < length).then_some((distance, candidate))
    });
    // Of equals the first: candidates come in a stable order.
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements, and swaps of neighbours; a difference in case alone is nothing.
fn distance(left: &str, right: &str) -> Option<usize> {
    let left = left.chars().map(|next| next.to_ascii_lowercase()).collect::<Vec<_>>();
    let right = right.chars().take(LONGEST_NAME + 1).map(|next| next.to_ascii_lowercase()).collect::<Vec<_>>();
    if right.len() > LONGEST_NAME {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
    for (row, from) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, to) in right.iter().enumerate() {
            let replaced = at(&last, column) + usize::from(from != to);
            let mut best = replaced.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            let swapped = row > 0 && column > 0 && right.get(column - 1) == Some(from) && left.get(row - 1) == Some(to);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied()
}

/// At most so many characters, and `…` where there were more.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
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

    #[test]
    fn shortening_counts_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü…");
    }
}
