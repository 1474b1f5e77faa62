//! The language of the project: doc comments state, and retired words stay retired.

use crate::tree::SourceFile;

/// Words that begin a question; a doc comment and the help of a flag state instead.
const INTERROGATIVES: &[&str] = &[
    "How",
    "What",
    "Whatever",
    "When",
    "Whenever",
    "Where",
    "Wherever",
    "Whether",
    "Which",
    "Whichever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Why",
];

/// Retired words and their replacements in docs/glossary.md.
const RETIRED: &[(&str, &str)] = &[
    ("believed", "trusted or accepted"),
    ("bereave", "collect orphans"),
    ("condemn", "mark for rollback"),
    ("condemned", "marked for rollback"),
    ("desk", "work queue"),
    ("errand", "work item"),
    ("manners", "options"),
    ("mend", "fix or repair"),
    ("mended", "fixed or repaired"),
    ("mends", "fixes or repairs"),
    ("misfit", "incompatible configuration"),
    ("nobody", "the concrete party"),
    ("occasion", "trigger or repetition"),
    ("occasions", "triggers or repetitions"),
    ("patience", "time-out"),
    ("sighting", "observation"),
    ("sightings", "observations"),
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
        if let Some(word) = help_text(line).filter(|_| is_source).and_then(first_word)
            && INTERROGATIVES.contains(&word)
        {
            breaches.push(format!("line {number}: help states, but this begins with `{word}`"));
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

/// The help of a flag that is an attribute.
fn help_text(line: &str) -> Option<&str> {
    line.split_once("help = \"").map(|(_, text)| text)
}

fn first_word(text: &str) -> Option<&str> {
    text.trim_start().split(|char: char| !char.is_alphanumeric()).next()
}

/// The words of a line in lower case; identifiers count as the words that they are made of.
fn words(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split(|char: char| !char.is_alphabetic()).flat_map(humps).map(str::to_lowercase)
}

/// The parts of a word that begin with a capital letter after a small one: `Told` and `By` of `ToldBy`.
fn humps(word: &str) -> impl Iterator<Item = &str> {
    let starts = word.char_indices().zip(word.chars().skip(1));
    let starts = starts.filter(|((_, before), after)| before.is_lowercase() && after.is_uppercase());
    let mut ends: Vec<_> = starts.map(|((index, before), _)| index + before.len_utf8()).collect();
    ends.push(word.len());
    let mut start = 0;
    ends.into_iter().filter_map(move |end| word.get(std::mem::replace(&mut start, end)..end))
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
        assert_eq!(found("crates/a/src/b.rs", "#[arg(help = \"Where it is\")]\n"), 1);
        assert_eq!(found("crates/a/src/b.rs", "#[arg(help = \"Address of it\")]\n"), 0);
    }

    #[test]
    fn a_retired_word_is_found_in_text_and_names() {
        assert_eq!(found("crates/a/src/b.rs", "let told_by = 1;\n"), 1);
        assert_eq!(found("crates/a/src/b.rs", "let x = IsToldBy;\n"), 1);
        assert_eq!(found("crates/a/src/b.rs", "let x = Desktop;\n"), 0);
        assert_eq!(found("docs/guides/a.md", "Nobody reads it.\n"), 1);
        assert_eq!(found("CHANGELOG.md", "`told` is now `reported`\n"), 0);
    }
}
