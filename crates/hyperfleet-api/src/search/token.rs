//! The tokens of a search: names, keywords, literals and symbols.

use super::error::{Quote, SearchError};

/// All symbols, the longer ones first.
const SYMBOLS: &[&str] =
    &["<>", "<=", ">=", "!=", "==", "~=", "~!", "=", "<", ">", "(", ")", "[", "]", ",", "+", "-", "*", "/", "%"];

/// The prefix of names in which `-` and `/` belong to the name; elsewhere they are arithmetic.
const FREE_NAMES: &str = "labels.";

/// A token with its location.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    /// The position of its first character, counted from 1.
    pub(super) column: usize,
    pub(super) text: &'a str,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or a field.
    Word,
    /// A text with its escapes resolved.
    Quoted(String),
    Number,
    /// A date or a time without quotes.
    Time,
    Symbol,
    End,
}

struct Tokenizer<'a> {
    rest: &'a str,
    column: usize,
}

/// Splits a search into tokens; the last one is the end.
pub(super) fn read(text: &str) -> Result<Vec<Token<'_>>, SearchError> {
    // PostgreSQL stores no NUL character in a text.
    if let Some(at) = text.chars().position(|character| character == '\0') {
        return Err(SearchError::search(at + 1, "a search has no NUL character: remove it"));
    }
    let mut tokenizer = Tokenizer { rest: text, column: 1 };
    let mut tokens = Vec::new();
    loop {
        let token = tokenizer.next()?;
        let ends = token.kind == Kind::End;
        tokens.push(token);
        if ends {
            return Ok(tokens);
        }
    }
}

// === impl Token ===

impl Token<'_> {
    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }
}

// === impl Tokenizer ===

impl<'a> Tokenizer<'a> {
    fn next(&mut self) -> Result<Token<'a>, SearchError> {
        self.take(run(self.rest, char::is_whitespace));
        let Some(first) = self.rest.chars().next() else { return Ok(self.token(Kind::End, 0)) };
        if matches!(first, '\'' | '"' | '`') {
            return self.quoted(first);
        }
        if first.is_ascii_digit() {
            return Ok(match time_length(self.rest) {
                Some(length) => self.token(Kind::Time, length),
                None => self.token(Kind::Number, number_length(self.rest)),
            });
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(self.token(Kind::Word, word_length(self.rest)));
        }
        match SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
            Some(symbol) => Ok(self.token(Kind::Symbol, symbol.len())),
            None => Err(SearchError::search(
                self.column,
                format!("{} is unexpected: put text in quotes", Quote(self.take(first.len_utf8()))),
            )),
        }
    }

    /// A quoted text. A doubled quote stands for one, as in SQL; so does a quote after a backslash.
    fn quoted(&mut self, quote: char) -> Result<Token<'a>, SearchError> {
        let mut content = String::new();
        let mut characters = self.rest.char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
                return Ok(self.token(Kind::Quoted(content), at + quote.len_utf8()));
            }
            match (character, characters.peek()) {
                ('\\', Some((_, next))) => {
                    push_escaped(&mut content, *next);
                    characters.next();
                }
                _ => content.push(character),
            }
        }
        Err(SearchError::search(self.column, format!("the quote {quote} is never closed: add it at the end")))
    }

    fn token(&mut self, kind: Kind, length: usize) -> Token<'a> {
        Token { column: self.column, kind, text: self.take(length) }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.column += taken.chars().count();
        taken
    }
}

/// Adds an escaped character. An unknown escape keeps its backslash, so that a pattern may contain `\%`.
fn push_escaped(content: &mut String, character: char) {
    match character {
        'n' => content.push('\n'),
        'r' => content.push('\r'),
        't' => content.push('\t'),
        '\\' | '\'' | '"' | '`' => content.push(character),
        _ => content.extend(['\\', character]),
    }
}

/// Length of the prefix that consists of such characters.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|character| !belongs(character)).unwrap_or(text.len())
}

fn word_length(text: &str) -> usize {
    let free = text.starts_with(FREE_NAMES);
    run(text, |character| {
        character.is_ascii_alphanumeric() || matches!(character, '_' | '.') || (free && matches!(character, '-' | '/'))
    })
}

/// Length of a number such as `3`, `1.5Gi` or `2e-3`.
fn number_length(text: &str) -> usize {
    let length = run(text, |character| character.is_ascii_alphanumeric() || character == '.');
    let (number, rest) = text.split_at(length);
    match rest.strip_prefix(['+', '-']) {
        Some(exponent) if number.ends_with(['e', 'E']) => length + 1 + run(exponent, |digit| digit.is_ascii_digit()),
        _ => length,
    }
}

/// Length of a time such as `2026-01-31T12:00:00Z`; `None` unless it begins with four digits and a hyphen.
fn time_length(text: &str) -> Option<usize> {
    let year = run(text, |character| character.is_ascii_digit());
    let (_, rest) = text.split_at(year);
    (year == 4 && rest.starts_with('-'))
        .then(|| run(text, |character| character.is_ascii_alphanumeric() || matches!(character, '-' | '+' | ':' | '.')))
}
