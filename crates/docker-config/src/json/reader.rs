//! Parses JSON by recursive descent, with bounded depth.

use zeroize::Zeroizing;

use super::text::{Text, problem};
use super::{Content, Member, Value};
use crate::problem::{Position, Problem, ProblemKind};

/// Maximum depth regardless of the limits, which protects the stack.
const MAX_DEPTH: usize = 128;

/// Parses one JSON value and nothing after it. `max_depth` counts nested arrays and objects.
pub(crate) fn read(text: &str, max_depth: usize) -> Result<Value, Problem> {
    let allowed = max_depth.min(MAX_DEPTH);
    let mut reader = Reader { text: Text::new(text), allowed, depth: 0 };
    reader.text.skip_white_space();
    let value = reader.value(ProblemKind::ExpectedValue)?;
    reader.text.skip_white_space();
    if reader.text.peek().is_some() {
        return Err(reader.text.unexpected(ProblemKind::TrailingContent));
    }
    Ok(value)
}

struct Reader<'a> {
    text: Text<'a>,
    allowed: usize,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self, expected: ProblemKind) -> Result<Value, Problem> {
        let position = self.text.position();
        let content = match self.text.peek() {
            Some('{') => self.nested(Self::object)?,
            Some('[') => self.nested(Self::array)?,
            Some('"') => Content::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some('a'..='z') => self.literal()?,
            _ => return Err(self.text.unexpected(expected)),
        };
        Ok(Value { position, content })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Content, Problem>) -> Result<Content, Problem> {
        if self.depth == self.allowed {
            let kind = ProblemKind::TooDeep { allowed: self.allowed };
            return Err(problem(kind, self.text.position()));
        }
        self.depth += 1;
        self.text.next();
        self.text.skip_white_space();
        let content = read(self)?;
        self.depth -= 1;
        Ok(content)
    }

    fn object(&mut self) -> Result<Content, Problem> {
        let mut members = Vec::new();
        if self.text.take('}') {
            return Ok(Content::Object(members));
        }
        loop {
            let position = self.text.position();
            if self.text.peek() != Some('"') {
                return Err(self.text.unexpected(ProblemKind::ExpectedName));
            }
            let name = self.string()?;
            self.text.skip_white_space();
            if !self.text.take(':') {
                return Err(self.text.unexpected(ProblemKind::ExpectedColon));
            }
            self.text.skip_white_space();
            let value = self.value(ProblemKind::ExpectedValue)?;
            members.push(Member { name, position, value });
            if self.ends('}')? {
                return Ok(Content::Object(members));
            }
        }
    }

    fn array(&mut self) -> Result<Content, Problem> {
        let mut values = Vec::new();
        if self.text.take(']') {
            return Ok(Content::Array(values));
        }
        loop {
            values.push(self.value(ProblemKind::ExpectedValue)?);
            if self.ends(']')? {
                return Ok(Content::Array(values));
            }
        }
    }

    /// After an element: returns true at the end of the list, otherwise consumes the comma.
    fn ends(&mut self, bracket: char) -> Result<bool, Problem> {
        self.text.skip_white_space();
        if self.text.take(bracket) {
            return Ok(true);
        }
        let comma = self.text.position();
        if !self.text.take(',') {
            return Err(self.text.unexpected(ProblemKind::ExpectedComma));
        }
        self.text.skip_white_space();
        match self.text.peek() {
            Some(next) if next == bracket => Err(problem(ProblemKind::TrailingComma, comma)),
            _ => Ok(false),
        }
    }

    fn literal(&mut self) -> Result<Content, Problem> {
        let position = self.text.position();
        match self.text.take_while(|c| c.is_ascii_alphanumeric()) {
            "null" => Ok(Content::Null),
            "true" => Ok(Content::Boolean(true)),
            "false" => Ok(Content::Boolean(false)),
            _ => Err(problem(ProblemKind::ExpectedValue, position)),
        }
    }

    fn number(&mut self) -> Result<Content, Problem> {
        let position = self.text.position();
        let number = self.text.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        if is_number(number) {
            Ok(Content::Number(Zeroizing::new(number.to_owned())))
        } else {
            Err(problem(ProblemKind::BadNumber, position))
        }
    }

    fn string(&mut self) -> Result<Zeroizing<String>, Problem> {
        let start = self.text.position();
        self.text.next();
        // The full capacity at once: a string that grows leaves copies behind.
        let mut string = Zeroizing::new(String::with_capacity(raw_length(self.text.rest())));
        loop {
            let position = self.text.position();
            match self.text.next() {
                Some('"') => return Ok(string),
                Some('\\') => string.push(self.escape(start, position)?),
                Some('\0') => return Err(problem(ProblemKind::NulByte, position)),
                Some('\u{1}'..='\u{1F}') => {
                    return Err(problem(ProblemKind::ControlCharacter, position));
                }
                Some(plain) => string.push(plain),
                None => return Err(problem(ProblemKind::UnterminatedString, start)),
            }
        }
    }

    fn escape(&mut self, start: Position, position: Position) -> Result<char, Problem> {
        match self.text.next() {
            Some(character @ ('"' | '\\' | '/')) => Ok(character),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{C}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => self.unicode_escape(position),
            Some(_) => Err(problem(ProblemKind::BadEscape, position)),
            None => Err(problem(ProblemKind::UnterminatedString, start)),
        }
    }

    fn unicode_escape(&mut self, position: Position) -> Result<char, Problem> {
        let first = self.hex4().ok_or_else(|| problem(ProblemKind::BadEscape, position))?;
        let code = if (0xD800..0xDC00).contains(&first) {
            let lone = || problem(ProblemKind::LoneSurrogate, position);
            if !(self.text.take('\\') && self.text.take('u')) {
                return Err(lone());
            }
            let second = self.hex4().ok_or_else(lone)?;
            if !(0xDC00..0xE000).contains(&second) {
                return Err(lone());
            }
            0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00)
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| problem(ProblemKind::LoneSurrogate, position))
    }

    fn hex4(&mut self) -> Option<u32> {
        let mut code = 0;
        for _ in 0..4 {
            code = code * 16 + self.text.next()?.to_digit(16)?;
        }
        Some(code)
    }
}

/// Returns the length up to the closing quote; unescaping only makes it shorter.
fn raw_length(rest: &str) -> usize {
    let mut escaped = false;
    rest.bytes()
        .position(|byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        })
        .unwrap_or(rest.len())
}

/// RFC 8259 §6: no leading zero, no bare point, no plus sign in front.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}
