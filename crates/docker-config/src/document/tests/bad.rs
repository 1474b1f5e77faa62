//! Documents that are refused, each with every line that the user gets to see.

mod entries;
mod keys;
mod text;

/// Name, document, problems.
type Bad = (&'static str, &'static str, &'static [&'static str]);

pub(super) fn bad() -> impl Iterator<Item = &'static Bad> {
    text::TEXT.iter().chain(entries::ENTRIES).chain(keys::KEYS)
}
