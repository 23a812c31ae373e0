//! The conformance cases of `cases.txt`, as values: what the tests of each language run.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt;

/// One line of the cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConformanceCase {
    pub name: String,
    pub act: CaseWords,
    pub expected: CaseWords,
}

/// What is done or expected: a word, and values by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseWords {
    pub word: String,
    values: BTreeMap<String, Vec<u8>>,
}

/// A line that is no case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedCase {
    /// Its number, from 1.
    line: usize,
    why: &'static str,
}

impl fmt::Display for MalformedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {} is no case: {}; README.md beside the cases says how one is written",
            self.line, self.why
        )
    }
}

impl std::error::Error for MalformedCase {}

/// The cases of this project.
///
/// # Panics
/// Never: a test reads them.
pub fn cases() -> Vec<ConformanceCase> {
    parse(include_str!("../cases.txt")).expect("a test reads them")
}

/// Reads cases.
///
/// # Errors
/// The first line that is none.
pub fn parse(text: &str) -> Result<Vec<ConformanceCase>, MalformedCase> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let cases = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    cases.map(|(number, line)| case(line).map_err(|why| MalformedCase { line: number, why })).collect()
}

fn case(line: &str) -> Result<ConformanceCase, &'static str> {
    let (act, expected) = line.split_once(" -> ").ok_or("it has no ` -> `")?;
    let mut words = act.split_whitespace();
    if words.next() != Some("case") {
        return Err("it does not begin with `case`");
    }
    let name = words.next().ok_or("it has no name")?.to_owned();
    Ok(ConformanceCase { name, act: step(words)?, expected: step(expected.split_whitespace())? })
}

fn step<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<CaseWords, &'static str> {
    let word = words.next().ok_or("it says not what is done, or what is expected")?.to_owned();
    let value = |word: &str| {
        let (name, value) = word.split_once('=').ok_or("a word is no name=value")?;
        Ok((
            name.to_owned(),
            decoded(value.as_bytes()).ok_or("after % there are not two hexadecimal digits")?,
        ))
    };
    Ok(CaseWords { word, values: words.map(value).collect::<Result<_, _>>()? })
}

/// The bytes of a value.
fn decoded(mut value: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(value.len());
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    loop {
        match value {
            [] => return Some(bytes),
            [b'%', high, low, rest @ ..] => {
                bytes.push(digit(*high)? << 4 | digit(*low)?);
                value = rest;
            }
            [b'%', ..] => return None,
            [byte, rest @ ..] => {
                bytes.push(*byte);
                value = rest;
            }
        }
    }
}

impl CaseWords {
    /// The bytes of a value.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// A value that is text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.bytes(name).map(|bytes| std::str::from_utf8(bytes).unwrap_or_else(|why| panic!("{name}: {why}")))
    }

    /// A value that is a number.
    ///
    /// # Panics
    /// If it is none.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name).map(|text| text.parse().unwrap_or_else(|why| panic!("{name}={text}: {why}")))
    }

    /// The bytes of the task that a `submit` says.
    pub fn task(&self) -> Vec<u8> {
        let filled = self.number("fill").map(|count| vec![b'x'; count as usize]);
        self.bytes("text").map(<[u8]>::to_vec).or(filled).unwrap_or_default()
    }

    /// The bytes of task `number` of a `burst`.
    pub fn task_of_burst(&self, number: u64) -> Vec<u8> {
        let digits = format!("{number:08}");
        digits.bytes().cycle().take(self.number("fill").unwrap_or(0) as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_can_be_read_and_have_names_of_their_own() {
        let cases = cases();
        let names: std::collections::BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        let any_byte = cases.iter().find(|case| case.name == "any-byte").expect("there is one");
        assert_eq!((any_byte.act.task(), any_byte.act.number("type")), (vec![0, 255, 10, 32], Some(9)));
        assert_eq!(
            (any_byte.expected.word.as_str(), any_byte.expected.bytes("text")),
            ("reply", Some(&[32, 10, 255, 0][..]))
        );
    }

    #[test]
    fn a_task_of_a_burst_is_its_number_again_and_again() {
        let burst = &parse("case b burst count=3 type=9 fill=11 -> ended").expect("it is one")[0].act;
        assert_eq!(burst.task_of_burst(42), b"00000042000");
    }

    #[test]
    fn a_line_that_is_no_case_is_named() {
        for (line, why) in [
            ("case a submit", "->"),
            ("cas a submit -> reply", "`case`"),
            ("case -> reply", "name"),
            ("case a -> reply", "done"),
            ("case a submit type -> reply", "name=value"),
            ("case a submit text=%2 -> reply", "digits"),
            ("case a submit text=%+1 -> reply", "digits"),
            ("case a submit -> ", "->"),
        ] {
            let error = parse(&format!("# a comment\n\n{line}\r\n")).expect_err(line).to_string();
            assert!(error.starts_with("line 3 ") && error.contains(why), "{line}: {error}");
        }
    }
}
