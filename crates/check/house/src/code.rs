//! Parses Rust code as far as the rules need it; expects the layout of rustfmt.

use std::collections::BTreeSet;

/// A name that a `use` statement imports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) is_public: bool,
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
}

/// The text before the unit tests, which are at a file's end.
pub fn code_outside_tests(text: &str) -> &str {
    let mut starts = text.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at);
    let is_inline = |at: &usize| text[*at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
    starts.find(is_inline).map_or(text, |at| &text[..at])
}

pub(crate) fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(line));
    code.flat_map(|line| [line, "\n"]).collect()
}

/// The imports of the `use` statements, and the code without them.
pub(crate) fn split_uses(code: &str) -> (Vec<Use>, String) {
    let (mut uses, mut rest, mut lines) = (Vec::new(), String::new(), code.lines());
    while let Some(line) = lines.next() {
        let (is_public, statement) = visibility(line);
        let Some(tree) = statement.strip_prefix("use ") else {
            rest.extend([line, "\n"]);
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';')
            && let Some(more) = lines.next()
        {
            tree.push_str(more.trim());
        }
        branches(tree.trim_end_matches(';'), &[], is_public, &mut uses);
    }
    (uses, rest)
}

/// Whether a line starts with `pub` or `pub(…)`, and the rest of the line.
pub(crate) fn visibility(line: &str) -> (bool, &str) {
    let line = line.trim_start();
    if let Some(behind) = line.strip_prefix("pub ") {
        return (true, behind);
    }
    let within = line.strip_prefix("pub(").and_then(|behind| behind.split_once(") "));
    within.map_or((false, line), |(_, behind)| (true, behind))
}

/// Collects the names that a tree such as `a::{b, c::{self, d as e}}` imports.
fn branches(tree: &str, before: &[String], is_public: bool, found: &mut Vec<Use>) {
    let names = |text: &str| -> Vec<String> {
        let names = text.split("::").map(str::trim).filter(|name| !name.is_empty());
        before.iter().cloned().chain(names.map(str::to_owned)).collect()
    };
    if let Some((stem, inner)) = tree.split_once('{') {
        let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
        for branch in split_outside_braces(inner) {
            branches(branch, &names(stem), is_public, found);
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let mut path = names(path);
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(last) = path.last() else { return };
    let name = alias.map_or_else(|| last.clone(), |alias| alias.trim().to_owned());
    found.push(Use { is_public, name, path });
}

fn split_outside_braces(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The words of code that use something; a module's declaration does not use it.
pub(crate) fn words(code: &str) -> BTreeSet<&str> {
    let lines = code.lines().filter(|line| !visibility(line).1.starts_with("mod "));
    lines.flat_map(|line| line.split(is_no_word)).collect()
}

/// The names of the items that code declares.
pub(crate) fn declared(code: &str) -> BTreeSet<String> {
    const KINDS: [&str; 8] = ["struct", "enum", "trait", "type", "union", "fn", "const", "static"];
    let items = code.lines().map(|line| visibility(line).1);
    let names = items.filter_map(|item| {
        let mut words = item.split(is_no_word).skip_while(|word| ["const", "unsafe", "async"].contains(word));
        let behind = words.next().filter(|kind| KINDS.contains(kind)).and_then(|_| words.next());
        behind.or_else(|| item.strip_prefix("const ")?.split(is_no_word).next())
    });
    names.map(str::to_owned).collect()
}

fn is_no_word(c: char) -> bool {
    !(c.is_alphanumeric() || c == '_')
}

/// The paths with `::` in code, except those in visibilities (`pub(in a::b)`).
pub(crate) fn paths(code: &str) -> Vec<Vec<String>> {
    let is_outside = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let runs = code.lines().flat_map(|line| visibility(line).1.split(is_outside));
    let paths = runs.filter(|run| run.contains("::"));
    paths.map(|run| run.trim_end_matches(':').split("::").map(str::to_owned).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_statements_are_read_as_trees() {
        let code =
            "pub(crate) use a::{\n    b,\n    c::{self, d as e},\n};\npub(in i::j) fn f() { g::h(); }\n";
        let (uses, rest) = split_uses(code);
        let read = uses.iter().map(|u| (u.is_public, u.name.as_str(), u.path.join("::")));
        let expected = [("b", "a::b"), ("c", "a::c"), ("e", "a::c::d")];
        assert_eq!(read.collect::<Vec<_>>(), expected.map(|(name, path)| (true, name, path.to_owned())));
        assert_eq!(paths(&rest), [["g", "h"]]);
    }

    #[test]
    fn code_ends_where_unit_tests_stand_not_where_a_module_for_them_is_named() {
        let named = "#[cfg(test)]\nmod wrong;\nfn f() {}\n";
        assert_eq!(code_outside_tests(named), named);
        assert_eq!(code_outside_tests("fn f() {}\n#[cfg(test)]\nmod tests {\n}\n"), "fn f() {}\n");
    }
}
