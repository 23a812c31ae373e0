//! Finds public items without docs.
//!
//! The compiler's lint also requires docs on fields and variants. Their names often say enough: `/// The
//! rate.` above `rate` teaches nothing. So this test requires docs on items only.

use crate::code::code_outside_tests;

const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];
const BEFORE_FN: [&str; 4] = ["const", "async", "unsafe", "extern"];

/// The lines, from 1, of public items and of methods of public traits that have no docs.
pub fn items_without_docs(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = code_outside_tests(text).lines().collect();
    let mut trait_indent = None;
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code == "}" && trait_indent == Some(indent) {
            trait_indent = None;
        }
        let of_trait = trait_indent.is_some_and(|outer| indent == outer + 4);
        let item = code.strip_prefix("pub ").or(of_trait.then_some(code));
        if item.is_some_and(is_item) && !has_docs(&lines[..at]) {
            found.push(at + 1);
        }
        if code.starts_with("pub trait ") && code.ends_with('{') {
            trait_indent = Some(indent);
        }
    }
    found
}

fn is_item(code: &str) -> bool {
    let mut words = code.split_whitespace().peekable();
    let first = words.next().unwrap_or_default();
    let is_qualified = BEFORE_FN.contains(&first) && words.any(|word| word == "fn");
    ITEMS.contains(&first) || is_qualified
}

/// Whether docs precede an item, possibly with attributes of several lines in between.
fn has_docs(above: &[&str]) -> bool {
    let mut is_inside = false;
    for line in above.iter().rev().map(|line| line.trim_start()) {
        if ["///", "#[doc", "$(#["].iter().any(|docs| line.starts_with(docs)) {
            return true;
        }
        let ends_attribute = line.ends_with(']');
        let starts_attribute = line.starts_with("#[");
        if !(is_inside || starts_attribute || ends_attribute) {
            return false;
        }
        is_inside = !starts_attribute && (is_inside || ends_attribute);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::items_without_docs;

    #[test]
    fn items_need_docs_and_fields_do_not() {
        let text =
            "pub struct A {\n    pub a: u8,\n}\n/// B.\n#[derive(\n    Debug\n)]\npub enum B {\n    C,\n}\n";
        assert_eq!(items_without_docs(text), [1]);
        assert_eq!(items_without_docs("/// A.\nfn a() {}\npub const unsafe fn b() {}\n"), [3]);
    }

    #[test]
    fn methods_of_public_traits_are_items() {
        let text =
            "/// T.\npub trait T {\n    fn a();\n    /// B.\n    fn b() {\n        fn c() {}\n    }\n}\n";
        assert_eq!(items_without_docs(text), [3]);
    }
}
