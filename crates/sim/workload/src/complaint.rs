//! Plans, testbeds, profiles and what is kept of runs: all TOML that people write is read here, and what is
//! wrong with it is told in their words: the line, the section and the key, and what was meant.

use std::fmt::Display;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomlComplaint {
    /// At which byte, as far as that is known.
    pub at: Option<usize>,
    pub line: Option<usize>,
    /// What, in one line: of an unknown key with the nearest known one.
    pub why: String,
}

/// A step to a value of a text, from the top on.
#[derive(Clone, Debug)]
pub enum TomlStep {
    Key(String),
    /// Which of the sections of a repeated name, from 0 on.
    Place(usize),
}

impl From<&str> for TomlStep {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for TomlStep {
    fn from(place: usize) -> Self {
        Self::Place(place)
    }
}

/// Reads a text.
///
/// # Errors
/// What is wrong with it.
pub fn read_toml<T: DeserializeOwned>(text: &str) -> Result<T, TomlComplaint> {
    let is_none = |why: Error| {
        let at = why.span().map(|span| span.start);
        let line = at.map(|at| line_of(text, at));
        TomlComplaint { at, line, why: format!("is not TOML: {}", why.message()) }
    };
    let parsed = DeTable::parse(text).map_err(is_none)?;
    T::deserialize(Deserializer::from(parsed)).map_err(|why| {
        let said = in_words(why.message().lines().next().unwrap_or_default());
        match why.span() {
            Some(span) => told(text, span.start, &of_brackets(&text[span.start..], said)),
            None => TomlComplaint { at: None, line: None, why: said },
        }
    })
}

impl TomlComplaint {
    /// A complaint about a value that can be read and does not fit the others; about its section if it is not
    /// there.
    pub fn of(text: &str, path: &[TomlStep], why: impl Display) -> Self {
        let parsed = DeTable::parse(text);
        let at = parsed.as_ref().map_or(0, |top| place_of(top.get_ref(), path));
        told(text, at, &why.to_string())
    }

    /// The place as it stands behind a file's name: ` line 3`, or nothing.
    pub fn place(&self) -> String {
        self.line.map_or_else(String::new, |line| format!(" line {line}"))
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at.min(text.len())].matches('\n').count() + 1
}

/// Says what is wrong at byte `at`, with the key and the section there.
fn told(text: &str, at: usize, why: &str) -> TomlComplaint {
    let parsed = DeTable::parse(text).ok();
    let found = parsed.as_ref().and_then(|top| named(top.get_ref(), at, &[], None));
    let why = found.map_or_else(|| why.to_owned(), |place| place + ": " + why);
    TomlComplaint { at: Some(at), line: Some(line_of(text, at)), why }
}

/// Where the value is that a path leads to; as far as it leads.
fn place_of(top: &DeTable<'_>, path: &[TomlStep]) -> usize {
    let Some((TomlStep::Key(first), rest)) = path.split_first() else { return 0 };
    let Some(mut value) = top.get(first.as_str()) else { return 0 };
    for step in rest {
        let next = match step {
            TomlStep::Key(key) => value.get_ref().as_table().and_then(|table| table.get(key.as_str())),
            TomlStep::Place(place) => value.get_ref().as_array().and_then(|list| list.get(*place)),
        };
        let Some(next) = next else { break };
        value = next;
    }
    value.span().start
}

/// The key whose value is at byte `at`, and its section; a section alone if it is as a whole, or for a key
/// itself. None of these at the top level.
fn named(table: &DeTable<'_>, at: usize, above: &[&str], here: Option<&str>) -> Option<String> {
    let is_at = |span: Range<usize>| span.contains(&at);
    table.iter().find_map(|(key, value)| {
        let path = [above, &[key.get_ref().as_ref()]].concat();
        let inner = |value: &Spanned<DeValue<'_>>, section: String| {
            let found = value.get_ref().as_table().and_then(|inner| named(inner, at, &path, Some(&section)));
            found.or_else(|| is_at(value.span()).then_some(section))
        };
        match value.get_ref() {
            _ if is_at(key.span()) => here.map(str::to_owned),
            DeValue::Table(_) => inner(value, format!("[{}]", path.join("."))),
            DeValue::Array(list) if list.iter().any(|item| item.get_ref().is_table()) => {
                list.iter().find_map(|item| inner(item, format!("[[{}]]", path.join("."))))
            }
            _ if is_at(value.span()) => {
                let key = key.get_ref();
                Some(here.map_or_else(|| key.to_string(), |here| format!("{key} in {here}")))
            }
            _ => None,
        }
    })
}

/// Serde's message, without the names of our types.
fn in_words(message: &str) -> String {
    // Serde's form: ``unknown field `x`, expected one of `a`, `b` ``.
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        return quoted.next().map_or_else(String::new, |key| sluice_units::unknown("key", key, quoted));
    }
    if message.starts_with("unknown variant") {
        return quoted.next().map_or_else(String::new, |word| sluice_units::unknown("word", word, quoted));
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    // Serde's form: ``invalid type: integer `5`, expected struct Worker``.
    let told = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match told.and_then(|told| told.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("{} stands where {} belongs", noun(found), noun(expected)),
        None if message.starts_with("data did not match any variant") => {
            "is neither of what may stand there".to_owned()
        }
        None => message.to_owned(),
    }
}

/// What is wrong with a section that has one pair of brackets too many or too few; else what serde said.
fn of_brackets(section: &str, said: String) -> String {
    // Serde takes the items of a list for the fields of a table, in their order.
    let is_no_item = said.starts_with("a table stands where") || said.starts_with("unknown word");
    if section.starts_with("[[") && is_no_item {
        "there is only one such section: write it with one pair of brackets".to_owned()
    } else if section.starts_with('[') && said == "a table stands where a list belongs" {
        "there may be several such sections: write it with two pairs of brackets".to_owned()
    } else {
        said
    }
}

/// The words for a type of serde's, with its value if there is one.
fn noun(of: &str) -> String {
    let (kind, value) = match of.find(['`', '"']) {
        Some(at) => (of[..at].trim_end(), &of[at..]),
        None => (of, ""),
    };
    let word = match kind {
        "map" | "a map" | "table" => "a table",
        _ if kind.starts_with("struct ") || kind.starts_with("enum ") => "a table",
        "sequence" | "a sequence" | "array" => "a list",
        "integer" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" => {
            "a whole number"
        }
        "floating point" | "f32" | "f64" => "a number",
        "boolean" | "a boolean" => "true or false",
        "string" | "a string" | "str" => "a text in quotes",
        "nonzero u8" | "nonzero u16" | "nonzero u32" | "nonzero u64" | "a nonzero u32" => {
            "a whole number from 1 on"
        }
        other => other,
    };
    if value.is_empty() { word.to_owned() } else { format!("{word}, {value},") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_with_the_wrong_number_of_brackets_is_told_as_one() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Plan {
            #[expect(dead_code, reason = "it is only read")]
            load: Load,
            #[expect(dead_code, reason = "it is only read")]
            slice: Vec<Load>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Load {
            #[expect(dead_code, reason = "it is only read")]
            rate: f64,
        }
        for (text, why) in [
            (
                "[[load]]\nrate = 1.0\n[[slice]]\nrate = 1.0",
                "[[load]]: there is only one such section: write it with one pair of brackets",
            ),
            (
                "[load]\nrate = 1.0\n[slice]\nrate = 1.0",
                "[slice]: there may be several such sections: write it with two pairs of brackets",
            ),
            ("[load]\nrate = {}\n[[slice]]", "[load.rate]: a table stands where a number belongs"),
            ("[load]\nrate = [[]]\n[[slice]]", "rate in [load]: a list stands where a number belongs"),
        ] {
            assert_eq!(read_toml::<Plan>(text).expect_err("it is wrong").why, why);
        }
    }

    #[test]
    fn serdes_words_become_the_readers() {
        for (serdes, ours) in [
            (
                "invalid type: string \"fast\", expected struct WorkerTimes",
                "a text in quotes, \"fast\", stands where a table belongs",
            ),
            (
                "invalid type: floating point `2.5`, expected u32",
                "a number, `2.5`, stands where a whole number belongs",
            ),
            ("invalid type: map, expected a string", "a table stands where a text in quotes belongs"),
            (
                "invalid value: integer `-1`, expected u32",
                "a whole number, `-1`, stands where a whole number belongs",
            ),
            ("missing field `at`", "the key `at` is missing"),
            (
                "invalid type: boolean `true`, expected a sequence",
                "true or false, `true`, stands where a list belongs",
            ),
        ] {
            assert_eq!(in_words(serdes), ours);
        }
        let meant = in_words("unknown variant `stedy`, expected one of `steady`, `burst`");
        assert!(meant.contains("did you mean `steady`?"), "{meant}");
        assert_eq!(in_words("a span needs its unit"), "a span needs its unit");
    }
}
