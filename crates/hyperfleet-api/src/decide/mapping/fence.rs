//! What an expression may be: bounds that keep the parser's stack and the evaluation's cost finite.

use cel::Env;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr};

use super::functions::PAY_LOOP;

/// The variable that holds the reports.
pub(super) const STATUSES: &str = "statuses";
/// The variable that holds the resource.
pub(super) const RESOURCE: &str = "resource";

/// The most bytes of an expression.
const LONGEST_SOURCE: usize = 4096;
/// The deepest nesting of parentheses, brackets and braces.
const DEEPEST_BRACKETS: usize = 20;
/// The most words and signs. Whatever the parser recurses on, be it `!!!x`, `a ? b : c ? d : e` or `a.b().c()`, needs at
/// least one for each step down.
const MOST_TOKENS: usize = 512;
/// The deepest tree: evaluating one recurses.
const DEEPEST_TREE: usize = 64;
/// How deep loops may be nested: cost grows with the power of it.
const DEEPEST_LOOPS: usize = 2;

/// Refuses a source that the parser must not see.
///
/// The scanner is stricter than CEL's where the two could disagree on what is text and what is code: CEL's goes on after
/// an error, and code in a text that it does not take for one would come unseen through this fence.
pub(super) fn check_source(source: &str) -> Result<(), String> {
    if source.len() > LONGEST_SOURCE {
        return Err(format!("it has more than {LONGEST_SOURCE} bytes"));
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
        if depth > DEEPEST_BRACKETS {
            return Err(format!("it nests parentheses, brackets and braces deeper than {DEEPEST_BRACKETS}"));
        }
        if tokens > MOST_TOKENS {
            return Err(format!("it has more than {MOST_TOKENS} words and signs"));
        }
    }
    Ok(())
}

/// What is left of a source.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// The first character of the next word, text or sign.
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

    /// Skips the text at the front, to which this word, which may be a prefix, belongs.
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

/// Checks a parsed expression, and makes its loops pay for their lists.
pub(super) fn secure(env: &Env, tree: &mut IdedExpr) -> Result<(), String> {
    Walk { env, known: vec![STATUSES.to_owned(), RESOURCE.to_owned()], depth: 0, loops: 0 }.visit(tree)
}

/// A walk through a tree: where it is.
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
        if self.depth > DEEPEST_TREE {
            return Err(format!("its operators and calls build on each other more than {DEEPEST_TREE} deep"));
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
        if self.loops > DEEPEST_LOOPS {
            return Err(format!("it nests loops (all, exists, map, filter) deeper than {DEEPEST_LOOPS}"));
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
