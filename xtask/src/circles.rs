//! Finds files of one crate that import each other in a circle.
//!
//! An import is an item of another file that a file's own code names. Declaring a module or re-exporting its items is
//! none: an import through a re-export counts for the file that defines the item. Tests may import as they like.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, ItemMod, ItemUse, Macro, Token, UseTree, Visibility};

use crate::tree::SourceFile;

/// A re-export may lead to another; more than this many in a row lead nowhere.
const MAX_REEXPORTS: usize = 8;

/// A path from the root of the crate, one segment each.
type ModulePath = Vec<String>;

/// The files of one crate, by the path of their module.
type Crate = BTreeMap<ModulePath, Module>;

/// One file: its own names, and the paths that its code uses.
#[derive(Default)]
struct Module {
    file: String,
    /// Names that `use` declarations of the file's own module bring in, private and public.
    names: BTreeMap<String, ModulePath>,
    /// Paths that the code names, each with the module (perhaps an inline one) in which it stands.
    used: Vec<(ModulePath, ModulePath)>,
}

/// Returns one line for each circle of files.
pub(crate) fn check(sources: &[SourceFile]) -> anyhow::Result<Vec<String>> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    for source in sources {
        let Some((folder, module)) = location(&source.path) else { continue };
        let syntax = syn::parse_file(&source.text).with_context(|| format!("cannot parse {}", source.path))?;
        let mut collector = Collector { file: module.clone(), module: module.clone(), found: Module::default() };
        collector.found.file.clone_from(&source.path);
        collector.visit_file(&syntax);
        crates.entry(folder).or_default().insert(module, collector.found);
    }
    Ok(crates.values().flat_map(circles).collect())
}

/// The crate's folder and the module's path of a source file; `None` for tests, benches and the roots of binaries.
fn location(path: &str) -> Option<(&str, ModulePath)> {
    let (folder, file) = path.split_once("/src/")?;
    let file = file.strip_suffix(".rs")?;
    let segments: ModulePath = file.split('/').map(str::to_owned).collect();
    if segments.iter().any(|segment| segment == "tests") || file == "main" || file.starts_with("bin/") {
        return None;
    }
    Some((folder, if file == "lib" { ModulePath::new() } else { segments }))
}

/// Groups of files of which each imports, directly or through others, all the others.
fn circles(modules: &Crate) -> Vec<String> {
    let imports: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        modules.iter().map(|(path, module)| (path, imports(modules, path, module))).collect();
    let reachable: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        imports.keys().map(|start| (*start, reachable(&imports, start))).collect();
    let mut groups = BTreeSet::new();
    for (start, reached) in &reachable {
        if !reached.contains(start) {
            continue;
        }
        let group = reached.iter().filter(|other| reachable.get(*other).is_some_and(|back| back.contains(start)));
        let files: Vec<&str> = group.filter_map(|path| modules.get(*path)).map(|module| module.file.as_str()).collect();
        groups.insert(files);
    }
    groups.into_iter().map(|files| format!("these files import each other in a circle: {}", files.join(", "))).collect()
}

/// All modules that imports lead to from `start`.
fn reachable<'a>(
    imports: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
    start: &ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = vec![start];
    while let Some(path) = open.pop() {
        for next in imports.get(path).into_iter().flatten() {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

/// The other files whose items a file uses.
fn imports<'a>(modules: &'a Crate, path: &ModulePath, module: &Module) -> BTreeSet<&'a ModulePath> {
    let used = module.used.iter().filter_map(|(from, used)| defining(modules, absolute(modules, from, used)?));
    used.filter(|found| *found != path).collect()
}

/// The path from the root of the crate; `None` where it leads out of the crate.
fn absolute(modules: &Crate, from: &ModulePath, used: &[String]) -> Option<ModulePath> {
    let (first, rest) = used.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some(joined(from, rest)),
        "super" => {
            let (_, parent) = from.split_last()?;
            let parent = parent.to_vec();
            if rest.first().is_some_and(|next| next == "super") {
                absolute(modules, &parent, rest)
            } else {
                Some(joined(&parent, rest))
            }
        }
        name => {
            let (file, _) = enclosing(modules, from)?;
            match modules.get(file).and_then(|module| module.names.get(name)) {
                Some(alias) if alias.first() != Some(first) => absolute(modules, file, &joined(alias, rest)),
                _ => {
                    let child = joined(file, std::slice::from_ref(first));
                    modules.contains_key(&child).then(|| joined(&child, rest))
                }
            }
        }
    }
}

/// The deepest module on the path that is a file, and the rest of the path.
fn enclosing<'a, 'p>(modules: &'a Crate, path: &'p [String]) -> Option<(&'a ModulePath, &'p [String])> {
    (0..=path.len()).rev().find_map(|depth| {
        let (module, item) = path.split_at_checked(depth)?;
        Some((modules.get_key_value(module)?.0, item))
    })
}

/// The module whose file defines the item; `None` where the path names a module itself.
fn defining(modules: &Crate, mut path: ModulePath) -> Option<&ModulePath> {
    for _ in 0..MAX_REEXPORTS {
        let (module, item) = enclosing(modules, &path)?;
        let (name, rest) = item.split_first()?;
        let alias = modules.get(module).and_then(|definition| definition.names.get(name));
        match alias.and_then(|alias| absolute(modules, module, &joined(alias, rest))) {
            Some(next) if next != path => path = next,
            _ => return Some(module),
        }
    }
    None
}

fn joined(base: &[String], rest: &[String]) -> ModulePath {
    [base, rest].concat()
}

/// Walks through a file.
struct Collector {
    /// The module of the file.
    file: ModulePath,
    /// The module that is being walked through; longer than the file's own inside inline modules.
    module: ModulePath,
    found: Module,
}

impl Collector {
    /// Records each name of a `use` tree.
    fn record_use(&mut self, tree: &UseTree, prefix: &ModulePath, is_import: bool) {
        let is_file_level = self.module == self.file;
        let mut add = |name: String, path: ModulePath| {
            if is_import {
                self.found.used.push((self.module.clone(), path.clone()));
            }
            if is_file_level {
                self.found.names.insert(name, path);
            }
        };
        match tree {
            UseTree::Path(path) => {
                let prefix = joined(prefix, &[path.ident.to_string()]);
                self.record_use(&path.tree, &prefix, is_import);
            }
            UseTree::Name(name) if name.ident == "self" => {
                add(prefix.last().cloned().unwrap_or_default(), prefix.clone());
            }
            UseTree::Name(name) => add(name.ident.to_string(), joined(prefix, &[name.ident.to_string()])),
            UseTree::Rename(rename) => add(rename.rename.to_string(), joined(prefix, &[rename.ident.to_string()])),
            UseTree::Glob(_) => self.found.used.push((self.module.clone(), joined(prefix, &["*".to_owned()]))),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.record_use(tree, prefix, is_import)),
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.record_use(&item.tree, &ModulePath::new(), matches!(item.vis, Visibility::Inherited));
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.found.used.push((self.module.clone(), segments));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast Macro) {
        if let Ok(arguments) = invocation.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            arguments.iter().for_each(|argument| visit::visit_expr(self, argument));
        }
    }

    fn visit_attribute(&mut self, _attribute: &'ast Attribute) {}

    fn visit_visibility(&mut self, _visibility: &'ast Visibility) {}
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .meta
            .require_list()
            .is_ok_and(|list| list.tokens.to_string().split([' ', '(', ')', ',']).any(|word| word == "test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() };
        check(&files.iter().map(file).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        let one = ("crates/a/src/one.rs", "use crate::two::Two;\npub struct One(Two);");
        let two = ("crates/a/src/two.rs", "pub struct Two;\nfn f() { drop(vec![crate::one::One]); }");
        let expected = "these files import each other in a circle: crates/a/src/one.rs, crates/a/src/two.rs";
        assert_eq!(found(&[one, two]), [expected]);
        assert_eq!(found(&[one, ("crates/b/src/two.rs", two.1)]), Vec::<String>::new());
    }

    #[test]
    fn a_circle_through_modules_and_aliases_is_found() {
        let parent = ("crates/a/src/json.rs", "mod reader;\nuse reader as r;\npub struct Value;\nfn f() { r::read() }");
        let child = ("crates/a/src/json/reader.rs", "use super::Value;\npub fn read() -> Value { Value }");
        assert_eq!(found(&[parent, child]).len(), 1);
    }

    #[test]
    fn a_re_export_is_no_import_but_leads_to_the_definition() {
        let parent = ("crates/a/src/json.rs", "mod reader;\npub(crate) use reader::read;\npub struct Value;");
        let child = ("crates/a/src/json/reader.rs", "use super::Value;\npub fn read() { crate::path::shown() }");
        let user = ("crates/a/src/path.rs", "pub fn shown() {}\nfn f() { crate::json::read() }");
        assert_eq!(found(&[parent, child]), Vec::<String>::new());
        let expected = "these files import each other in a circle: crates/a/src/json/reader.rs, crates/a/src/path.rs";
        assert_eq!(found(&[parent, child, user]), [expected]);
    }

    /// The imports of an inline module begin there, and are unknown to the rest of its file.
    #[test]
    fn inline_modules_import_from_their_own_path() {
        let parent = ("crates/a/src/b.rs", "mod one;\npub struct Two;\nfn f() { drop(one::One) }");
        let of = |import: &'static str| found(&[parent, ("crates/a/src/b/one.rs", import)]).len();
        assert_eq!(of("pub struct One;\nmod inner { use super::super::Two; }"), 1);
        assert_eq!(of("pub struct One;\nmod inner { use super::super::super::Two; fn f(_: Two) {} }"), 0);
    }

    #[test]
    fn tests_may_import_in_circles() {
        let one = ("crates/a/src/one.rs", "pub struct One;\n#[cfg(test)]\nmod tests { use crate::two::Two; }");
        let two = ("crates/a/src/two.rs", "use crate::one::One;\npub struct Two(One);");
        let tests = ("crates/a/src/one/tests.rs", "use super::One;");
        assert_eq!(found(&[one, two, tests]), Vec::<String>::new());
    }
}
