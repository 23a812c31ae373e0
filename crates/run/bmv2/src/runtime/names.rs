//! The numbers of a program's tables, actions, counters and registers, as its P4Info gives them.

use std::collections::BTreeMap;

use prost::Message as _;

use super::entry::{ActionCall, EntryName};
use super::proto::p4::config::v1::{P4Info, Preamble};
use super::proto::p4::v1::action::Param;
use super::proto::p4::v1::field_match::{Exact, FieldMatchType};
use super::proto::p4::v1::table_action::Type;
use super::proto::p4::v1::{Action, FieldMatch, TableAction, TableEntry};
use crate::error::Bmv2Error;

/// What a program has, by its names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct P4Names {
    tables: BTreeMap<String, TableNumbers>,
    actions: BTreeMap<String, Numbers>,
    arrays: BTreeMap<String, ArrayNumbers>,
}

/// A number, and those of the parts with their bits, in the order of the program.
#[derive(Debug, PartialEq, Eq)]
struct Numbers {
    id: u32,
    parts: Vec<(u32, i32)>,
}

#[derive(Debug, PartialEq, Eq)]
struct TableNumbers {
    own: Numbers,
    actions: Vec<u32>,
    size: i64,
}

/// A counter's or register's number, and its number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayNumbers {
    pub(crate) id: u32,
    pub(crate) size: i64,
    is_register: bool,
}

impl P4Names {
    /// Those of a P4Info in its binary form.
    pub(crate) fn read(p4info: &[u8]) -> Result<Self, Bmv2Error> {
        let info = P4Info::decode(p4info).map_err(|why| Bmv2Error::P4Info(why.to_string()))?;
        let named = |preamble: Option<Preamble>| preamble.map_or((0, String::new()), |of| (of.id, of.name));
        let tables = info.tables.into_iter().map(|table| {
            let (id, name) = named(table.preamble);
            let parts = table.match_fields.iter().map(|field| (field.id, field.bitwidth)).collect();
            let actions = table.action_refs.iter().map(|action| action.id).collect();
            (name, TableNumbers { own: Numbers { id, parts }, actions, size: table.size })
        });
        let actions = info.actions.into_iter().map(|action| {
            let (id, name) = named(action.preamble);
            let parts = action.params.iter().map(|param| (param.id, param.bitwidth)).collect();
            (name, Numbers { id, parts })
        });
        let counters = info.counters.into_iter().map(|counter| (counter.preamble, counter.size, false));
        let registers = info.registers.into_iter();
        let registers = registers.map(|register| (register.preamble, register.size.into(), true));
        let arrays = counters.chain(registers).map(|(preamble, size, is_register)| {
            let (id, name) = named(preamble);
            (name, ArrayNumbers { id, size, is_register })
        });
        Ok(Self { tables: tables.collect(), actions: actions.collect(), arrays: arrays.collect() })
    }

    /// An entry without its action.
    pub(crate) fn entry(&self, entry: &EntryName) -> Result<TableEntry, Bmv2Error> {
        let table = self.tables.get(&entry.table).ok_or_else(|| unknown(&entry.table))?;
        let parts = paired(&entry.table, &table.own.parts, &entry.key)?;
        let fields = parts.map(|(field_id, bytes)| FieldMatch {
            field_id,
            field_match_type: Some(FieldMatchType::Exact(Exact { value: canonical(bytes) })),
        });
        Ok(TableEntry { table_id: table.own.id, r#match: fields.collect(), ..TableEntry::default() })
    }

    /// How many entries a table takes.
    pub(crate) fn size_of(&self, table: &str) -> Result<i64, Bmv2Error> {
        self.tables.get(table).map(|table| table.size).ok_or_else(|| unknown(table))
    }

    /// A table's default entry without its action.
    pub(crate) fn default_entry(&self, table: &str) -> Result<TableEntry, Bmv2Error> {
        let numbers = self.tables.get(table).ok_or_else(|| unknown(table))?;
        Ok(TableEntry { table_id: numbers.own.id, is_default_action: true, ..TableEntry::default() })
    }

    /// An action with its arguments.
    pub(crate) fn action(&self, action: &ActionCall) -> Result<TableAction, Bmv2Error> {
        let numbers = self.actions.get(&action.name).ok_or_else(|| unknown(&action.name))?;
        let parts = paired(&action.name, &numbers.parts, &action.data)?;
        let params = parts.map(|(param_id, bytes)| Param { param_id, value: canonical(bytes) }).collect();
        Ok(TableAction { r#type: Some(Type::Action(Action { action_id: numbers.id, params })) })
    }

    /// A counter or register.
    pub(crate) fn array(&self, name: &str) -> Result<ArrayNumbers, Bmv2Error> {
        self.arrays.get(name).copied().ok_or_else(|| unknown(name))
    }

    /// The first register.
    pub(crate) fn first_register(&self) -> Option<&str> {
        let is_register = |(_, array): &(&String, &ArrayNumbers)| array.is_register;
        self.arrays.iter().find(is_register).map(|(name, _)| name.as_str())
    }

    /// The first thing that another program has in another size, or not at all.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let table = |(name, table): (&String, &TableNumbers)| {
            let theirs = other.tables.get(name);
            (theirs != Some(table)).then(|| told("table", name, table.size, theirs.map(|table| table.size)))
        };
        let array = |(name, array): (&String, &ArrayNumbers)| {
            let theirs = other.arrays.get(name);
            (theirs != Some(array)).then(|| told("array", name, array.size, theirs.map(|array| array.size)))
        };
        let mut tables = self.tables.iter().filter_map(table);
        let mut arrays = self.arrays.iter().filter_map(array);
        let differs = || (self != other).then(|| "its actions are others".to_owned());
        tables.next().or_else(|| arrays.next()).or_else(differs)
    }
}

fn told(what: &str, name: &str, own: i64, theirs: Option<i64>) -> String {
    match theirs {
        None => format!("it has no {what} {name}"),
        Some(size) if size == own => format!("its {what} {name} has other keys or numbers"),
        Some(size) => format!("its {what} {name} has {size} places, and this plan's {own}"),
    }
}

fn paired<'b>(
    of: &str,
    parts: &[(u32, i32)],
    bytes: &'b [Vec<u8>],
) -> Result<impl Iterator<Item = (u32, &'b [u8])>, Bmv2Error> {
    if parts.len() != bytes.len() {
        let (parts, bytes) = (parts.len(), bytes.len());
        let why = format!("{of} has {parts} fields or parameters, and this driver knows {bytes}");
        return Err(Bmv2Error::P4Info(why));
    }
    let ids: Vec<u32> = parts.iter().map(|(id, _)| *id).collect();
    Ok(ids.into_iter().zip(bytes.iter().map(Vec::as_slice)))
}

/// The shortest form of a number, which servers compare: without zeros in front, but one byte at least.
pub(crate) fn canonical(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes[zeros.min(bytes.len().saturating_sub(1))..].to_vec()
}

fn unknown(name: &str) -> Bmv2Error {
    Bmv2Error::P4Info(format!(
        "{name} is not there; the switch runs another program, or one of another version"
    ))
}
