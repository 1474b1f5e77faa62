//! The language of the project: doc comments state, and retired words stay retired.

use crate::tree::SourceFile;

/// Words that begin a question; a doc comment states instead.
const INTERROGATIVES: &[&str] = &["How", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why"];

/// Retired words and their replacements in docs/glossary.md.
const RETIRED: &[(&str, &str)] = &[
    ("bereave", "collect orphans"),
    ("errand", "work item"),
    ("misfit", "incompatible configuration"),
    ("nobody", "the concrete party"),
    ("sighting", "observation"),
    ("somebody", "the concrete party"),
    ("told", "published, reported, logged or printed"),
    ("whoever", "the concrete party"),
];

/// Every breach of a source file or document, with its line.
pub(crate) fn breaches(file: &SourceFile) -> Vec<String> {
    let is_source = file.is("rs");
    if !is_source && !is_document(file) || file.path == "xtask/src/language.rs" {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    let mut in_doc = false;
    for (number, line) in file.text.lines().enumerate() {
        let number = number + 1;
        let doc = doc_text(line).filter(|_| is_source);
        if let Some(word) = doc.filter(|_| !in_doc).and_then(first_word)
            && INTERROGATIVES.contains(&word)
        {
            breaches.push(format!("line {number}: a doc comment states, but this begins with `{word}`"));
        }
        in_doc = doc.is_some_and(|text| !text.trim().is_empty());
        for (retired, instead) in RETIRED.iter().filter(|(retired, _)| words(line).any(|word| word == *retired)) {
            breaches.push(format!("line {number}: `{retired}` is retired: write {instead} (docs/glossary.md)"));
        }
    }
    breaches
}

/// The changelog names retired words on purpose; what is generated follows from the code.
fn is_document(file: &SourceFile) -> bool {
    file.is("md") && file.path != "CHANGELOG.md" && !file.path.starts_with("docs/reference/")
}

fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

fn first_word(text: &str) -> Option<&str> {
    text.trim_start().split(|char: char| !char.is_alphanumeric()).next()
}

/// The words of a line in lower case; identifiers count as the words that they are made of.
fn words(line: &str) -> impl Iterator<Item = String> {
    let lower = line.to_lowercase();
    let words: Vec<_> = lower.split(|char: char| !char.is_alphabetic()).map(str::to_owned).collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        breaches(&SourceFile { path: path.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn a_doc_comment_that_asks_is_found() {
        assert_eq!(found("crates/a/src/b.rs", "/// Whether it is there.\nfn b() {}\n"), 1);
        assert_eq!(found("crates/a/src/b.rs", "/// True if it is there.\n/// Where it is not, false.\nfn b() {}\n"), 0);
        assert_eq!(found("crates/a/src/b.rs", "/// First.\n///\n/// What follows.\nfn b() {}\n"), 1);
        assert_eq!(found("crates/a/src/b.rs", "// Whether it is there decides the caller.\n"), 0);
    }

    #[test]
    fn a_retired_word_is_found_in_text_and_names() {
        assert_eq!(found("crates/a/src/b.rs", "let told_by = 1;\n"), 1);
        assert_eq!(found("docs/guides/a.md", "Nobody reads it.\n"), 1);
        assert_eq!(found("CHANGELOG.md", "`told` is now `reported`\n"), 0);
    }
}
