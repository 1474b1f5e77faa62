//! Parameters have names: a tuple in the place of several of them dodges the limit of their number, and its callers read worse.

use anyhow::Context as _;
use syn::visit::{self, Visit};
use syn::{FnArg, Pat, Signature, Type};

use crate::tree::SourceFile;

/// The functions of a file that take a tuple apart.
#[derive(Default)]
struct Tuples(Vec<String>);

impl<'ast> Visit<'ast> for Tuples {
    fn visit_signature(&mut self, signature: &'ast Signature) {
        // A type that is a tuple elsewhere, such as a key, has a name of its own.
        let is_tuple = |input: &FnArg| matches!(input, FnArg::Typed(typed) if matches!((&*typed.pat, &*typed.ty), (Pat::Tuple(_), Type::Tuple(_))));
        if signature.ident != "from" && signature.inputs.iter().any(is_tuple) {
            self.0.push(signature.ident.to_string());
        }
        visit::visit_signature(self, signature);
    }
}

/// A breach for each function outside tests and benchmarks that takes a tuple apart in its parameters.
pub(crate) fn check(sources: &[SourceFile]) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    let is_checked = |path: &str| {
        !["/tests/", "/benches/", "/tests.rs"].iter().any(|part| path.contains(part))
            && !path.starts_with("lab/testkit/")
    };
    for source in sources.iter().filter(|source| is_checked(&source.path)) {
        let syntax = syn::parse_file(&source.text).with_context(|| format!("cannot parse {}", source.path))?;
        let mut tuples = Tuples::default();
        tuples.visit_file(&syntax);
        let breach =
            |name| format!("{}: {name} takes a tuple apart: give each parameter a name of its own", source.path);
        breaches.extend(tuples.0.into_iter().map(breach));
    }
    Ok(breaches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_is_found_in_functions_but_not_in_closures() {
        let text = "impl A { fn a(&self, (b, c): (u8, u8)) {} } fn d(e: (u8, u8)) { let f = |(g, h): (u8, u8)| g; }";
        let source = |path: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
        let breaches = check(&[source("crates/a/src/b.rs"), source("crates/a/src/b/tests.rs")]).unwrap();
        assert_eq!(breaches, ["crates/a/src/b.rs: a takes a tuple apart: give each parameter a name of its own"]);
    }
}
