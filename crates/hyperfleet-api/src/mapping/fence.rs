//! Bounds on the source and the tree of an expression, which keep the parser's stack and the evaluation's cost finite.

use cel::Env;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr};

use super::functions::PAY_LOOP;

/// The variable that holds the reports.
pub(super) const STATUSES: &str = "statuses";
/// The variable that holds the resource.
pub(super) const RESOURCE: &str = "resource";

/// Maximum number of bytes of an expression.
const MAX_SOURCE: usize = 4096;
/// Maximum nesting of parentheses, brackets and braces.
const MAX_BRACKETS: usize = 20;
/// Maximum number of tokens. Everything that the parser recurses on (`!!!x`, `a ? b : c ? d : e`, `a.b().c()`) needs at
/// least one for each level.
const MAX_TOKENS: usize = 512;
/// Maximum depth of a tree, because evaluation recurses.
const MAX_DEPTH: usize = 64;
/// Maximum nesting of loops. The cost grows exponentially with it.
const MAX_LOOPS: usize = 2;

/// Refuses a source that must not reach the parser.
///
/// The scanner is stricter than CEL's where the two could disagree on the end of a text: CEL's continues after an error,
/// and code that only CEL takes for code would bypass these bounds.
pub(super) fn check_source(source: &str) -> Result<(), String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("it has more than {MAX_SOURCE} bytes"));
    }
    let mut scanner = Scanner { rest: source };
    let (mut tokens, mut depth) = (0, 0_usize);
    while let Some(token) = scanner.next_token()? {
        tokens += 1;
        match token {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_BRACKETS {
            return Err(format!("it nests parentheses, brackets and braces deeper than {MAX_BRACKETS}"));
        }
        if tokens > MAX_TOKENS {
            return Err(format!("it has more than {MAX_TOKENS} tokens"));
        }
    }
    Ok(())
}

/// Splits a source into tokens.
struct Scanner<'a> {
    /// The part of the source that is still to be scanned.
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Returns the first character of the next token and skips the token.
    fn next_token(&mut self) -> Result<Option<char>, String> {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with("//") {
                break;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let word = self.take_word();
        if word.is_empty() && !self.at_quote() {
            self.skip(first.len_utf8());
        } else if self.at_quote() {
            self.skip_text_after(word)?;
        }
        Ok(Some(first))
    }

    fn take_word(&mut self) -> &'a str {
        let end = self.rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn at_quote(&self) -> bool {
        self.rest.starts_with(['"', '\''])
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Skips the text at the front; `word` stands directly before it and may be its prefix.
    fn skip_text_after(&mut self, word: &str) -> Result<(), String> {
        if word.starts_with(|letter: char| letter.is_ascii_digit()) {
            return Err("a text follows a number".to_owned());
        }
        let raw = ["r", "br"].contains(&word.to_ascii_lowercase().as_str());
        let long = ["\"\"\"", "'''"].into_iter().find(|quote| self.rest.starts_with(quote));
        let quote = long.unwrap_or(if self.rest.starts_with('"') { "\"" } else { "'" });
        self.skip(quote.len());
        while !self.rest.starts_with(quote) {
            let Some(letter) = self.rest.chars().next() else { return Err("a text does not end".to_owned()) };
            match letter {
                '\n' | '\r' if long.is_none() => return Err("a text does not end before its line does".to_owned()),
                '\\' if !raw => self.skip_escape()?,
                letter => self.skip(letter.len_utf8()),
            }
        }
        self.skip(quote.len());
        Ok(())
    }

    fn skip_escape(&mut self) -> Result<(), String> {
        let is_octal = |digit: char| digit.is_digit(8);
        let is_hex = |digit: char| digit.is_ascii_hexdigit();
        let escape = self.rest.chars().nth(1);
        let digits = self.rest.chars().skip(2);
        let (length, valid) = match escape {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' | '?' | '"' | '\'' | '`') => (2, true),
            Some('x' | 'X') => (4, digits.take(2).filter(|digit| is_hex(*digit)).count() == 2),
            Some('u') => (6, digits.take(4).filter(|digit| is_hex(*digit)).count() == 4),
            Some('U') => (10, digits.take(8).filter(|digit| is_hex(*digit)).count() == 8),
            Some('0'..='3') => (4, digits.take(2).filter(|digit| is_octal(*digit)).count() == 2),
            _ => (0, false),
        };
        self.skip(length);
        if valid { Ok(()) } else { Err("a text has an escape that CEL does not know".to_owned()) }
    }
}

/// Checks a parsed expression, and adds the metering of its loops.
pub(super) fn secure(env: &Env, tree: &mut IdedExpr) -> Result<(), String> {
    Walk { env, known: vec![STATUSES.to_owned(), RESOURCE.to_owned()], depth: 0, loops: 0 }.visit(tree)
}

/// The position of a walk through a tree.
struct Walk<'a> {
    env: &'a Env,
    /// The variables in scope.
    known: Vec<String>,
    depth: usize,
    loops: usize,
}

impl Walk<'_> {
    fn visit(&mut self, tree: &mut IdedExpr) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("its operators and calls build on each other more than {MAX_DEPTH} deep"));
        }
        match &mut tree.expr {
            Expr::Unspecified => return Err("a part of it is empty".to_owned()),
            Expr::Literal(_) => {}
            Expr::Ident(name) => self.check_name(name)?,
            Expr::Select(select) => self.visit(&mut select.operand)?,
            Expr::Call(call) => self.visit_call(call)?,
            Expr::List(list) => list.elements.iter_mut().try_for_each(|element| self.visit(element))?,
            Expr::Map(map) => self.visit_entries(&mut map.entries)?,
            Expr::Struct(literal) => self.visit_entries(&mut literal.entries)?,
            Expr::Comprehension(comprehension) => self.visit_loop(comprehension)?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn visit_call(&mut self, call: &mut CallExpr) -> Result<(), String> {
        if let Some(target) = &mut call.target {
            // `optional.of(x)`: the target is part of the function's name.
            if !matches!(&target.expr, Expr::Ident(name) if name == "optional") {
                self.visit(target)?;
            }
        }
        call.args.iter_mut().try_for_each(|argument| self.visit(argument))
    }

    fn visit_entries(&mut self, entries: &mut [IdedEntryExpr]) -> Result<(), String> {
        entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
            EntryExpr::StructField(field) => self.visit(&mut field.value),
            EntryExpr::MapEntry(entry) => self.visit(&mut entry.key).and_then(|()| self.visit(&mut entry.value)),
        })
    }

    fn visit_loop(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), String> {
        self.visit(&mut comprehension.iter_range)?;
        self.visit(&mut comprehension.accu_init)?;
        pay_for(&mut comprehension.iter_range);
        self.loops += 1;
        if self.loops > MAX_LOOPS {
            return Err(format!("it nests loops (all, exists, map, filter) deeper than {MAX_LOOPS}"));
        }
        let outside = self.known.len();
        self.known.extend([comprehension.iter_var.clone(), comprehension.accu_var.clone()]);
        self.known.extend(comprehension.iter_var2.clone());
        self.visit(&mut comprehension.loop_cond)?;
        self.visit(&mut comprehension.loop_step)?;
        self.visit(&mut comprehension.result)?;
        self.known.truncate(outside);
        self.loops -= 1;
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), String> {
        let plain = name.trim_start_matches('.');
        if self.known.iter().any(|known| known == plain) || self.env.types().find_type(plain).is_some() {
            return Ok(());
        }
        Err(format!("it uses the unknown variable {name}; there are {STATUSES} and {RESOURCE}"))
    }
}

fn pay_for(range: &mut IdedExpr) {
    let id = range.id;
    let call = CallExpr { func_name: PAY_LOOP.to_owned(), target: None, args: vec![std::mem::take(range)] };
    *range = IdedExpr { id, expr: Expr::Call(call) };
}
