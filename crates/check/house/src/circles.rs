//! Circles inside a crate, of files and of modules: a file or module of a circle imports itself through the
//! others.
//!
//! To understand one file of a circle, a reader has to know all of them. A module is its file with all files
//! below it, so a circle of two modules needs no circle of files: `a::x` imports `b::y`, and `b::z` imports
//! `a`. A file imports what its `use` lines name, and what its code names by a path from `crate`, `super` or
//! one of its own modules. A re-exported item (`pub use`) counts as imported from the file that declares it.
//! Not covered: unit tests, and methods, whose calls do not name a file.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{Use, code_outside_tests, declared, paths, split_uses, without_comments, words};
use crate::files::File;

/// How many re-exports of an item are followed.
const HANDS_MAX: usize = 8;

/// The circles among a crate's files, each as a set of module names.
pub fn circles(files: &[File]) -> Vec<BTreeSet<String>> {
    let modules = Modules::read(files);
    let shown = |at: &usize| modules.all[*at].shown();
    closed(&modules.imports).iter().map(|circle| circle.iter().map(shown).collect()).collect()
}

/// The circles among a crate's sibling modules, each as a set of module names. A module is its file with all
/// files below it.
pub fn module_circles(files: &[File]) -> Vec<BTreeSet<String>> {
    let modules = Modules::read(files);
    let parents: BTreeSet<&[String]> =
        modules.by_path.keys().filter_map(|path| Some(path.split_last()?.1)).collect();
    parents.into_iter().flat_map(|parent| modules.circles_below(parent)).collect()
}

/// The circles of a graph: sets of nodes, each of which reaches itself through the others.
fn closed(edges: &[BTreeSet<usize>]) -> BTreeSet<BTreeSet<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..edges.len()).map(|from| reached(edges, from)).collect();
    let in_circles = reached.iter().enumerate().filter(|(at, behind)| behind.contains(at));
    let circle = |(at, behind): (usize, &BTreeSet<usize>)| {
        behind.iter().copied().filter(|other| reached[*other].contains(&at)).collect()
    };
    in_circles.map(circle).collect()
}

fn reached(edges: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        open.extend(edges[next].iter().filter(|other| reached.insert(**other)));
    }
    reached
}

/// A path of names, starting at the crate's root.
type Names = Vec<String>;

#[derive(Debug)]
struct Module {
    path: Names,
    /// The names that `use` imports and their paths; `None` for another crate.
    brought: BTreeMap<String, Option<Names>>,
    /// The modules from which `use` imports everything.
    globs: Vec<Names>,
    /// The names that the file declares.
    declared: BTreeSet<String>,
    /// The paths in the file's code.
    named: Vec<Names>,
}

impl Module {
    fn read(path: Names, text: &str, known: &BTreeMap<Names, usize>) -> Self {
        let code = without_comments(code_outside_tests(text));
        let (uses, rest) = split_uses(&code);
        let (words, inline) = (words(&rest), paths(&rest));
        let declared = declared(&rest);
        let mut module =
            Self { path, brought: BTreeMap::new(), globs: Vec::new(), declared, named: Vec::new() };
        module.named = inline.into_iter().filter_map(|path| module.absolute(path, known)).collect();
        for Use { is_public, name, path } in uses {
            let path = module.absolute(path, known);
            let only_handed_on = is_public && !words.contains(name.as_str());
            module.named.extend(path.clone().filter(|_| !only_handed_on));
            if name == "*" {
                module.globs.extend(path.map(|mut path| {
                    path.pop();
                    path
                }));
            } else {
                module.brought.insert(name, path);
            }
        }
        module
    }

    /// A path from the crate's root; `None` if it leads to another crate.
    fn absolute(&self, mut path: Names, known: &BTreeMap<Names, usize>) -> Option<Names> {
        let mut base = self.path.clone();
        match path.first()?.as_str() {
            "crate" => base.clear(),
            "self" | "super" => {}
            child => {
                base.push(child.to_owned());
                known.get(&base)?;
                base.pop();
                return Some([base, path].concat());
            }
        }
        while path.first().is_some_and(|name| ["crate", "self", "super"].contains(&name.as_str())) {
            if path.remove(0) == "super" {
                base.pop();
            }
        }
        (!path.is_empty()).then(|| [base, path].concat())
    }

    fn shown(&self) -> String {
        if self.path.is_empty() { "the root".to_owned() } else { self.path.join("::") }
    }
}

#[derive(Debug)]
struct Modules {
    all: Vec<Module>,
    by_path: BTreeMap<Names, usize>,
    imports: Vec<BTreeSet<usize>>,
}

impl Modules {
    fn read(files: &[File]) -> Self {
        let files: BTreeMap<Names, &File> =
            files.iter().map(|file| (module_path(&file.name), file)).collect();
        let by_path: BTreeMap<Names, usize> = files.keys().cloned().zip(0..).collect();
        let read = |(path, file): (Names, &File)| Module::read(path, &file.text, &by_path);
        let all: Vec<Module> = files.into_iter().map(read).collect();
        let mut modules = Self { all, by_path, imports: Vec::new() };
        modules.imports = (0..modules.all.len()).map(|at| modules.imported_by(at)).collect();
        modules
    }

    fn imported_by(&self, at: usize) -> BTreeSet<usize> {
        let declared = self.all[at].named.iter().filter_map(|path| self.file_of(path, HANDS_MAX));
        declared.filter(|other| *other != at).collect()
    }

    /// The file that declares the item at a path; `None` if it is in another crate.
    fn file_of(&self, path: &[String], hands: usize) -> Option<usize> {
        let file = |depth: usize| Some((depth, *self.by_path.get(&path[..depth])?));
        let (depth, at) = (0..=path.len()).rev().find_map(file)?;
        let module = &self.all[at];
        let Some(name) = path.get(depth).filter(|name| hands > 0 && !module.declared.contains(*name)) else {
            return Some(at);
        };
        match module.brought.get(name) {
            Some(Some(from)) => self.file_of(from, hands - 1),
            Some(None) => None,
            None => {
                let mut globs = module.globs.iter().filter_map(|from| self.by_path.get(from).copied());
                Some(globs.find(|other| self.all[*other].declared.contains(name)).unwrap_or(at))
            }
        }
    }

    /// The circles of this module's children.
    fn circles_below(&self, parent: &[String]) -> Vec<BTreeSet<String>> {
        let child = |at: usize| self.all[at].path.strip_prefix(parent)?.first();
        let names: BTreeSet<&String> = (0..self.all.len()).filter_map(child).collect();
        let number = |at: usize| names.iter().position(|name| Some(*name) == child(at));
        let mut edges = vec![BTreeSet::new(); names.len()];
        for (at, imports) in self.imports.iter().enumerate() {
            let Some(from) = number(at) else { continue };
            edges[from].extend(imports.iter().filter_map(|other| number(*other)).filter(|to| *to != from));
        }
        let names: Vec<&String> = names.into_iter().collect();
        let shown = |at: &usize| [parent, &[names[*at].clone()]].concat().join("::");
        closed(&edges).iter().map(|circle| circle.iter().map(shown).collect()).collect()
    }
}

/// The module of a file: `crates/core/host/src/worker/mod.rs` is `worker`; the first file of a library or
/// program is the root.
fn module_path(file: &str) -> Names {
    let inside = file.split_once("/src/").map_or(file, |(_, inside)| inside).trim_end_matches(".rs");
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    if ["lib", "main"].contains(&inside) {
        return Names::new();
    }
    inside.split('/').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        shown(circles(&read(files)))
    }

    fn modules_found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        shown(module_circles(&read(files)))
    }

    fn shown(circles: Vec<BTreeSet<String>>) -> Vec<Vec<String>> {
        circles.into_iter().map(|circle| circle.into_iter().collect()).collect()
    }

    fn read(files: &[(&str, &str)]) -> Vec<File> {
        let file = |(name, text): &(&str, &str)| File {
            name: format!("crates/one/src/{name}.rs"),
            text: (*text).to_owned(),
        };
        files.iter().map(file).collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let files = [("lib", "mod a;\nmod b;"), ("a", "use crate::b::{B, c};"), ("b", "use super::a::A;")];
        assert_eq!(found(&files), [["a", "b"]]);
    }

    #[test]
    fn a_circle_closes_over_paths_in_the_code_and_over_other_files() {
        let files = [
            ("a/mod", "mod b;\nfn f() { b::g(); }"),
            ("a/b", "use crate::c;"),
            ("c", "fn f() -> crate::a::A {}"),
            ("d", "use crate::a::A;"),
        ];
        assert_eq!(found(&files), [["a", "a::b", "c"]]);
    }

    #[test]
    fn what_is_handed_on_is_imported_from_where_it_stands() {
        let handing = [("lib", "mod a;\npub use a::a;\npub use b::B;"), ("a", "use crate::B;"), ("b", "")];
        assert_eq!(found(&handing), [[""; 0]; 0]);
        let all = [("lib", "pub use b::*;\nuse a::A;"), ("a", "use crate::B;"), ("b", "pub struct B;")];
        assert_eq!(found(&all), [[""; 0]; 0]);
        let using = [("lib", "pub use a::A;\nfn f(a: A) {}"), ("a", "use crate::f;"), ("b", "")];
        assert_eq!(found(&using), [["a", "the root"]]);
    }

    #[test]
    fn modules_are_a_circle_also_where_their_files_are_none() {
        let files = [("a/mod", ""), ("a/x", "use crate::b::y::Y;"), ("b/y", ""), ("b/z", "use crate::a::A;")];
        assert_eq!(found(&files), [[""; 0]; 0]);
        assert_eq!(modules_found(&files), [["a", "b"]]);
    }

    #[test]
    fn a_module_and_what_stands_below_it_are_no_circle_of_modules() {
        let files = [
            ("a/mod", "use b::B;"),
            ("a/b", "use super::c::C;"),
            ("a/c/mod", ""),
            ("a/c/d", "use crate::a;"),
        ];
        assert_eq!(modules_found(&files), [[""; 0]; 0]);
    }

    #[test]
    fn comments_unit_tests_and_other_crates_do_not_count() {
        let tests = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}";
        let a = format!("use other::b::B;\n/// See [`crate::b::B`].\nfn f() {{}}\n{tests}");
        assert_eq!(found(&[("a", &a), ("b", "use crate::a::A;")]), [[""; 0]; 0]);
    }
}
