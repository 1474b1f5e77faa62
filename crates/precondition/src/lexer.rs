//! Splits a source into tokens.

use std::ops::Range;

use crate::number::Number;
use crate::parse_error::SyntaxError;

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// A name or a keyword; the parser decides by its position.
    Name(String),
    Number(Number),
    Text(String),
    Symbol(&'static str),
    End,
}

/// All symbols, longest first, including those that are refused with a hint.
const SYMBOLS: &[&str] = &[
    "===", "!==", "&&", "||", "==", "!=", "<=", ">=", "=~", "<>", "??", "?.", "**", "..", "<", ">", "!", "?", ":", ".",
    ",", "(", ")", "[", "]", "{", "}", "#", "-", "=", "&", "|", "+", "*", "/", "%", "^", ";", "~", "$", "@",
];

struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

/// Returns the tokens; the last is always `End`.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut lexer = Lexer { source, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.take_while(char::is_whitespace);
        let start = lexer.at;
        let kind = lexer.token()?;
        let end = kind == TokenKind::End;
        tokens.push(Token { kind, span: start..lexer.at });
        if end {
            return Ok(tokens);
        }
    }
}

// === impl Lexer ===

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take_while(&mut self, mut accepts: impl FnMut(char) -> bool) -> &'s str {
        let rest = self.rest();
        let length = rest.find(|character| !accepts(character)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn token(&mut self) -> Result<TokenKind, SyntaxError> {
        let Some(first) = self.peek() else {
            return Ok(TokenKind::End);
        };
        let second = self.rest().chars().nth(1);
        if first.is_ascii_digit() || (first == '.' && second.is_some_and(|next| next.is_ascii_digit())) {
            return self.number();
        }
        if is_name_start(first) {
            return Ok(TokenKind::Name(self.take_while(is_name).to_owned()));
        }
        match first {
            '"' | '\'' => self.text(first),
            '`' => self.raw_text(),
            _ => self.symbol(first),
        }
    }

    fn symbol(&mut self, first: char) -> Result<TokenKind, SyntaxError> {
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)) {
            self.at += symbol.len();
            return Ok(TokenKind::Symbol(symbol));
        }
        let fault = SyntaxError::new(self.at..self.at + first.len_utf8(), format!("unexpected character {first:?}"));
        Err(match first {
            '“' | '”' | '„' | '‘' | '’' => fault.hint("write texts in plain quotes: \"…\" or '…'"),
            _ => fault,
        })
    }

    fn number(&mut self) -> Result<TokenKind, SyntaxError> {
        let start = self.at;
        let prefix = self.rest().get(..2).unwrap_or_default().to_ascii_lowercase();
        let radix = match prefix.as_str() {
            "0x" => 16,
            "0o" => 8,
            "0b" => 2,
            _ => 10,
        };
        if radix == 10 {
            self.decimal();
        } else {
            self.at += 2;
            self.take_while(|next| next.is_ascii_alphanumeric() || next == '_');
        }
        self.take_while(is_name);
        let text = self.source.get(start..self.at).unwrap_or_default();
        let fault = |what: &str| SyntaxError::new(start..self.at, format!("`{text}` is {what}"));
        let digits = text.replace('_', "");
        if radix == 10 && digits.contains(['.', 'e', 'E']) {
            let float = digits.parse::<f64>().map_err(|_| fault("not a number"))?;
            return if float.is_finite() {
                Ok(TokenKind::Number(Number::Float(float)))
            } else {
                Err(fault("too large"))
            };
        }
        let digits = if radix == 10 { digits.as_str() } else { digits.get(2..).unwrap_or_default() };
        let integer = u128::from_str_radix(digits, radix).map_err(|_| fault("not a number"))?;
        match u64::try_from(integer) {
            Ok(integer) => Ok(TokenKind::Number(Number::Integer(integer.into()))),
            Err(_) => Err(fault("too large")),
        }
    }

    fn decimal(&mut self) {
        let is_digit = |next: char| next.is_ascii_digit() || next == '_';
        self.take_while(is_digit);
        let mut rest = self.rest().chars();
        if rest.next() == Some('.') && rest.next().is_some_and(|next| next.is_ascii_digit()) {
            self.at += 1;
            self.take_while(is_digit);
        }
        let mut rest = self.rest().chars();
        if rest.next().is_some_and(|next| next.eq_ignore_ascii_case(&'e')) {
            let sign = rest.next().filter(|next| matches!(next, '+' | '-'));
            let digit = if sign.is_some() { rest.next() } else { self.rest().chars().nth(1) };
            if digit.is_some_and(|next| next.is_ascii_digit()) {
                self.at += 1 + sign.map_or(0, char::len_utf8);
                self.take_while(is_digit);
            }
        }
    }

    fn raw_text(&mut self) -> Result<TokenKind, SyntaxError> {
        let start = self.at;
        self.next();
        let text = self.take_while(|next| next != '`');
        match self.next() {
            Some(_) => Ok(TokenKind::Text(text.to_owned())),
            None => Err(unfinished(start)),
        }
    }

    fn text(&mut self, quote: char) -> Result<TokenKind, SyntaxError> {
        let start = self.at;
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                None | Some('\n') => return Err(unfinished(start)),
                Some('\\') => text.push(self.escape()?),
                Some(next) if next == quote => return Ok(TokenKind::Text(text)),
                Some(next) => text.push(next),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let start = self.at - 1;
        let digits = match self.next() {
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some('b') => return Ok('\u{8}'),
            Some('f') => return Ok('\u{c}'),
            Some(next @ ('\\' | '"' | '\'' | '/')) => return Ok(next),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let code = self.rest().get(..digits).filter(|code| code.chars().all(|digit| digit.is_ascii_hexdigit()));
        let character = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        self.at += if character.is_some() { digits } else { 0 };
        character.ok_or_else(|| {
            let fault = SyntaxError::new(start..self.at, "this escape is unknown".to_owned());
            fault.hint("known are \\\\ \\\" \\' \\/ \\n \\r \\t \\b \\f \\xHH \\uHHHH; `…` takes everything as it is")
        })
    }
}

pub(crate) fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

pub(crate) fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn unfinished(start: usize) -> SyntaxError {
    SyntaxError::new(start..start + 1, "this text does not end".to_owned())
        .hint("a text ends with the quote it begins with, on the same line")
}
