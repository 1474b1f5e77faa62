//! Every command line of README, guides and operations pages is one that its program accepts.
//!
//! The guides that can run as they are written are executed (`lab/scenarios/tests/scenarios/guides.rs`); this covers the lines
//! with placeholders too. A block is indented by four spaces; `#` begins a comment, `[…]` is optional, `…` repeats.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory as _};

use crate::tree;

/// Folders and files with commands for people.
const PAGES: [&str; 3] = ["README.md", "docs/guides", "docs/operations"];

/// Words that end a program's words: redirections, pipes, a comment, the next command.
const ENDS: [&str; 8] = [">", "<", "|", "&", "&&", ";", "#", "2>/dev/null"];

/// A program's parser, by its name.
fn program(name: &str) -> Option<Command> {
    match name {
        "pull-secret" => Some(pull_secret::cli::Cli::command()),
        "pull-secret-local" => Some(pull_secret_local::cli::Cli::command()),
        "global-pull-secret" => Some(global_pull_secret::cli::Cli::command()),
        _ => None,
    }
}

/// The indented lines of a page, with continued ones joined.
fn lines(page: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in page.lines().filter_map(|line| line.strip_prefix("    ")) {
        let (text, continued) = line.strip_suffix('\\').map_or((line, false), |text| (text, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(text),
            None => lines.push(text.to_owned()),
        }
        goes_on = continued;
    }
    lines
}

/// The words of a line up to the end of its first command; quotes group, brackets and ellipses are left out, and the output of
/// another command is some text.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    if let Some((before, (_, after))) =
        line.split_once("$(").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    {
        return self::words(&format!("{before}output{after}"));
    }
    let mut rest = line;
    while let Some(quote) = rest.find(['"', '\'']).map(|at| &rest[at..=at]) {
        let (part, after) = rest.split_once(quote).unwrap_or((rest, ""));
        if unquoted(part, &mut words) {
            return words;
        }
        let (text, after) = after.split_once(quote).unwrap_or((after, ""));
        words.push(text.to_owned());
        rest = after;
    }
    unquoted(rest, &mut words);
    words
}

/// Adds the words of a text without quotes; returns true if the command ends in it.
fn unquoted(text: &str, words: &mut Vec<String>) -> bool {
    for word in text.split_whitespace() {
        if ENDS.contains(&word) {
            return true;
        }
        let word = word.trim_start_matches('[').trim_end_matches(']').trim_end_matches('…');
        words.extend((!word.is_empty()).then(|| word.to_owned()));
    }
    false
}

/// The program and the words of a line that calls one of this project's programs.
fn call(line: &str) -> Option<(Command, Vec<String>)> {
    let mut words = words(line);
    if words.len() > 1 && words[..2] == ["pull-secret", "local"] {
        words.splice(..2, ["pull-secret-local".to_owned()]);
    }
    Some((program(words.first()?)?, words))
}

fn pages(path: &Path) -> Vec<std::path::PathBuf> {
    if path.is_file() {
        return path
            .extension()
            .is_some_and(|extension| extension == "md")
            .then(|| path.to_owned())
            .into_iter()
            .collect();
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| pages(&entry)).collect()
}

#[test]
fn every_documented_command_is_accepted() {
    let root = tree::root();
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let (mut calls, mut targets) = (0, 0);
    for page in PAGES.iter().flat_map(|page| pages(&root.join(page))) {
        for line in lines(&fs::read_to_string(&page).unwrap()) {
            if let Some(target) = line.strip_prefix("make ").and_then(|rest| rest.split_whitespace().next()) {
                assert!(makefile.contains(&format!("\n{target}:")), "{}: {line}: no such target", page.display());
                targets += 1;
            }
            if let Some((program, words)) = call(&line) {
                let parsed = program.try_get_matches_from(words);
                assert!(parsed.is_ok(), "{}: {line}: {}", page.display(), parsed.unwrap_err());
                calls += 1;
            }
        }
    }
    assert!(calls > 50 && targets > 2, "only {calls} calls and {targets} targets were found");
}

#[test]
fn a_line_is_split_as_a_shell_does() {
    let line = r#"pull-secret status --search "a = 'b c'" [--output json] ID… --x=$(y -v z) > file # or else"#;
    assert_eq!(words(line), ["pull-secret", "status", "--search", "a = 'b c'", "--output", "json", "ID", "--x=output"]);
    assert_eq!(words(r#"a --b 'c d' "e 'f'" # g"#), ["a", "--b", "c d", "e 'f'"]);
    assert_eq!(lines("    a \\\n      b\ntext\n    c"), ["a   b", "c"]);
    assert!(call("pull-secret local up --port 0").is_some() && call("kubectl get pods").is_none());
}
