//! One table of a plan, read key by key.
//!
//! The reader asks for keys by name; a key in the file that was never asked for is unknown. So each key is
//! written down once, where it is used, and every error names file, line and section.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fail::{Failure, Outcome};
use crate::units;

/// The largest number of workers that one section may describe.
pub(crate) const COUNT_MAX: usize = 1024;

/// The origin of a plan, for error messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'p> {
    pub(crate) name: &'p str,
    /// The whole text.
    pub(crate) text: &'p str,
}

impl Source<'_> {
    /// An error about the byte at `at`.
    pub(crate) fn complain(&self, at: usize, why: impl Display) -> Failure {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        Failure::bad_input(format!("plan {} line {line}: {why}", self.name))
    }
}

/// One table of a plan.
#[derive(Debug)]
pub(crate) struct Section<'p> {
    source: Source<'p>,
    name: String,
    at: usize,
    table: &'p DeTable<'p>,
    asked: RefCell<Vec<&'static str>>,
}

type Value<'p> = &'p Spanned<DeValue<'p>>;

impl<'p> Section<'p> {
    /// The plan's top level.
    pub(crate) fn top(source: Source<'p>, table: &'p DeTable<'p>) -> Self {
        Self::new(source, "the plan's top level".to_owned(), 0, table)
    }

    fn new(source: Source<'p>, name: String, at: usize, table: &'p DeTable<'p>) -> Self {
        Self { source, name, at, table, asked: RefCell::default() }
    }

    /// An error about this section as a whole.
    pub(crate) fn complain(&self, why: impl Display) -> Failure {
        self.source.complain(self.at, format!("{}: {why}", self.name))
    }

    /// An error about the value of `key`.
    pub(crate) fn complain_of(&self, key: &str, why: impl Display) -> Failure {
        let at = self.table.get(key).map_or(self.at, |value| value.span().start);
        self.source.complain(at, format!("{key} in {}: {why}", self.name))
    }

    /// A string.
    pub(crate) fn text(&self, key: &'static str) -> Outcome<Option<&'p str>> {
        self.read(key, "a string", DeValue::as_str)
    }

    /// A required string.
    pub(crate) fn needed_text(&self, key: &'static str) -> Outcome<&'p str> {
        self.text(key)?.ok_or_else(|| self.complain(format!("`{key}` is missing; add it")))
    }

    /// A string that `parse` accepts.
    pub(crate) fn parsed<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Outcome<Option<T>> {
        let parsed = self.text(key)?.map(parse).transpose();
        parsed.map_err(|why| self.complain_of(key, why))
    }

    /// A span such as `"15s"`.
    pub(crate) fn span(&self, key: &'static str) -> Outcome<Option<Duration>> {
        self.parsed(key, units::span)
    }

    /// An integer within `range`.
    pub(crate) fn whole(&self, key: &'static str, range: Range<u64>) -> Outcome<Option<u64>> {
        let Some(number) = self.read(key, "a whole number", integer)? else { return Ok(None) };
        match u64::try_from(number) {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let why = format!("{number} is not between {} and {}", range.start, range.end - 1);
                Err(self.complain_of(key, why))
            }
        }
    }

    /// A power of two, up to the largest number of entries in a ring.
    pub(crate) fn ring(&self, key: &'static str) -> Outcome<Option<u32>> {
        let Some(entries) = self.whole(key, 1..(1 << 20) + 1)? else { return Ok(None) };
        if entries.is_power_of_two() {
            return Ok(Some(entries as u32));
        }
        let why = format!("{entries} is not a power of two; the next is {}", entries.next_power_of_two());
        Err(self.complain_of(key, why))
    }

    /// A number that `check` accepts; as a string it may have a suffix, such as `"2000k"`.
    pub(crate) fn number(
        &self,
        key: &'static str,
        check: impl Fn(f64) -> Result<f64, String>,
    ) -> Outcome<Option<f64>> {
        let number = self.read(key, "a number", float)?;
        number.map(check).transpose().map_err(|why| self.complain_of(key, why))
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &'static str) -> Outcome<Option<bool>> {
        self.read(key, "true or false", DeValue::as_bool)
    }

    /// A list of strings; empty if missing.
    pub(crate) fn texts(&self, key: &'static str) -> Outcome<Vec<&'p str>> {
        let list = self.read(key, "a list of strings", |value| {
            value.as_array()?.iter().map(|item| item.get_ref().as_str()).collect::<Option<Vec<_>>>()
        })?;
        Ok(list.unwrap_or_default())
    }

    /// A section under this one.
    pub(crate) fn section(&self, key: &'static str) -> Outcome<Option<Self>> {
        let name = format!("[{key}]");
        let Some(value) = self.ask(key) else { return Ok(None) };
        self.under(name, key, value).map(Some)
    }

    /// All sections of a repeated name; none if missing.
    pub(crate) fn sections(&self, key: &'static str) -> Outcome<Vec<Self>> {
        let Some(value) = self.ask(key) else { return Ok(Vec::new()) };
        let wrong = || self.complain_of(key, format!("is not a list of sections; write [[{key}]]"));
        let items = value.get_ref().as_array().ok_or_else(wrong)?;
        items.iter().map(|item| self.under(format!("[[{key}]]"), key, item)).collect()
    }

    /// All entries of a section with user-chosen keys, each with its section.
    pub(crate) fn named_sections(&self) -> Outcome<Vec<(&'p str, Self)>> {
        let each = self.table.iter().map(|(key, value)| {
            let key = key.get_ref().as_ref();
            Ok((key, self.under(format!("{} {key}", self.name), key, value)?))
        });
        each.collect()
    }

    /// All entries of a section with user-chosen keys, each with its integer within `range`.
    pub(crate) fn named_numbers(&self, range: Range<u64>) -> Outcome<Vec<(&'p str, u64)>> {
        let each = self.table.iter().map(|(key, value)| {
            let key = key.get_ref().as_ref();
            let number = integer(value.get_ref()).and_then(|number| u64::try_from(number).ok());
            let number = number.filter(|number| range.contains(number)).ok_or_else(|| {
                let why = format!("is not a whole number between {} and {}", range.start, range.end - 1);
                self.complain_of(key, why)
            })?;
            Ok((key, number))
        });
        each.collect()
    }

    /// Refuses keys that were never asked for.
    pub(crate) fn finish(self) -> Outcome<()> {
        let asked = self.asked.into_inner();
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !asked.contains(&name) {
                let why = sluice_units::unknown("key", name, &asked);
                return Err(self.source.complain(key.span().start, format!("{}: {why}", self.name)));
            }
        }
        Ok(())
    }

    fn ask(&self, key: &'static str) -> Option<Value<'p>> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    fn read<T>(
        &self,
        key: &'static str,
        what: &str,
        take: impl Fn(&'p DeValue<'p>) -> Option<T>,
    ) -> Outcome<Option<T>> {
        let Some(value) = self.ask(key) else { return Ok(None) };
        let taken = take(value.get_ref());
        taken.map(Some).ok_or_else(|| {
            self.complain_of(key, format!("is {} where {what} belongs", article(value.get_ref())))
        })
    }

    fn under(&self, name: String, key: &str, value: Value<'p>) -> Outcome<Self> {
        let wrong = || self.complain_of(key, format!("is not a section; write {name}"));
        let table = value.get_ref().as_table().ok_or_else(wrong)?;
        Ok(Self::new(self.source, name, value.span().start, table))
    }
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn float(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(_) => integer(value).map(|number| number as f64),
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::String(text) => sluice_units::number(text).ok(),
        _ => None,
    }
}

fn article(value: &DeValue<'_>) -> String {
    match value.type_str() {
        kind if kind.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}
