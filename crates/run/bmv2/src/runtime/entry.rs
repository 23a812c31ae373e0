//! Entries of tables, by the program's names.

/// Which table and key an entry has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryName {
    /// The table's full name.
    pub table: String,
    /// The values of the fields, which are all exact.
    pub key: Vec<Vec<u8>>,
}

/// An action and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// The action's full name.
    pub name: String,
    /// The arguments.
    pub data: Vec<Vec<u8>>,
}

/// What becomes of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryChange<'a> {
    Insert(&'a ActionCall),
    Modify(&'a ActionCall),
    Delete,
}
